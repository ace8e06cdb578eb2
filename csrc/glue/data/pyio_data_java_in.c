/* SPDX-License-Identifier: MIT
 * pyio_data_java_in.c - java.DataInput: java.io.DataInputStream's methods and
 * habits. A value that the end cuts short is gone, as there; the exception is
 * ShortReadError, as EOFException.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "data/cio_scalar.h"
#include "glue/base/pyio_read.h"

DATA_GET(readBoolean, "readBoolean", 8, PyBool_FromLong(v))
DATA_GET(readByte, "readByte", 8, PyLong_FromLong((int8_t)v))
DATA_GET(readUnsignedByte, "readUnsignedByte", 8, PyLong_FromLong(v))
DATA_GET(readShort, "readShort", 16, PyLong_FromLong((int16_t)v))
DATA_GET(readUnsignedShort, "readUnsignedShort", 16, PyLong_FromLong(v))
DATA_GET(readChar, "readChar", 16, PyUnicode_FromOrdinal(v))
DATA_GET(readInt, "readInt", 32, PyLong_FromLong((int32_t)v))
DATA_GET(readLong, "readLong", 64, PyLong_FromLongLong((int64_t)v))
DATA_GET(readFloat, "readFloat", 32,
         PyFloat_FromDouble(cio_double_of_float32(v)))
DATA_GET(readDouble, "readDouble", 64,
         PyFloat_FromDouble(cio_double_of_bits(v)))

static PyObject *
readUTF(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return reader_get_mutf8(as_reader(op),
                            pyio_state_of(Py_TYPE(op))->utf_error);
}

/* ----------------------------------------------------------- whole reads */

/* read(): a byte, or -1 at the end. */
static PyObject *
read_byte(struct pyio_data_reader *r)
{
    long byte = -1;
    int filled;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    filled = reader_fill_locked(r, 1);
    if (filled == 0 && stream_room(&r->s) != 0) {
        byte = *r->s.next++;
    }
    data_stream_leave(&r->s);
    return filled < 0 ? NULL : PyLong_FromLong(byte);
}

/* As many as there are without waiting for more than one read of a source
 * that can wait; -1 at the end. */
static int
read_some_locked(struct pyio_data_reader *r, uint8_t *data, size_t nbytes,
                 long long *count)
{
    size_t filled = 0;
    int result;

    if (nbytes == 0) {
        *count = 0;
        return 0;
    }
    result = reader_fill_locked(r, 1);
    if (result == 0) {
        if (!r->seekable) {
            nbytes = cio_min_size(nbytes, stream_room(&r->s));
        }
        result = reader_upto_into_locked(r, data, nbytes, &filled);
    }
    *count = filled == 0 ? -1 : (long long)filled;
    return result;
}

static int
check_count(const char *name, Py_ssize_t nargs, Py_ssize_t least)
{
    return nargs >= least && nargs <= 3
               ? 0
               : pyio_raise(PyExc_TypeError,
                            "%s() takes (b, off=0, len=None), not %zd "
                            "arguments",
                            name, nargs);
}

/* Into a Buffer: all of it, or what there is. */
static PyObject *
read_to_part(struct pyio_data_reader *r, PyObject *const *args,
             Py_ssize_t nargs, bool fully)
{
    Py_buffer view;
    long long count = 0;
    uint8_t *data;
    size_t nbytes;
    int result;

    if (pyio_target_buffer(args[0], fully ? "readFully" : "read", &view) < 0) {
        return NULL;
    }
    result = data_java_part(&view, args, nargs, &data, &nbytes);
    if (result == 0 && (result = data_stream_enter(&r->s)) == 0) {
        result = fully ? reader_copy_locked(r, 0, data, nbytes, "readFully")
                       : read_some_locked(r, data, nbytes, &count);
        data_stream_leave(&r->s);
    }
    PyBuffer_Release(&view);
    if (result < 0) {
        return NULL;
    }
    return fully ? Py_NewRef(Py_None) : PyLong_FromLongLong(count);
}

static PyObject *
java_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    if (check_count("read", nargs, 0) < 0) {
        return NULL;
    }
    return nargs == 0 || args[0] == Py_None
               ? read_byte(as_reader(op))
               : read_to_part(as_reader(op), args, nargs, false);
}

static PyObject *
readFully(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    if (check_count("readFully", nargs, 1) < 0) {
        return NULL;
    }
    if (nargs == 1 && PyIndex_Check(args[0])
        && !PyObject_CheckBuffer(args[0])) {
        return reader_get_bytes(as_reader(op), args[0], "readFully");
    }
    return read_to_part(as_reader(op), args, nargs, true);
}

static PyObject *
skipBytes(PyObject *op, PyObject *count)
{
    struct pyio_data_reader *const r = as_reader(op);
    const Py_ssize_t n = PyNumber_AsSsize_t(count, PyExc_OverflowError);
    size_t left = n < 0 ? 0 : (size_t)n;
    int result = 0;

    if ((n == -1 && PyErr_Occurred()) || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    while (left > 0 && result == 0) {
        size_t step;

        result = reader_fill_locked(r, 1);
        step = cio_min_size(left, stream_room(&r->s));
        if (step == 0) {
            break;
        }
        r->s.next += step;
        left -= step;
        if (PyErr_CheckSignals() < 0) {
            result = -1;
        }
    }
    data_stream_leave(&r->s);
    return result < 0 ? NULL
                      : PyLong_FromSsize_t(n < 0 ? 0 : n - (Py_ssize_t)left);
}

/* Up to \n, \r or \r\n, which are not part of it; each byte a character.
 * `*end` is where the next line begins. 1: a line, 0: the end. */
static int
find_line_locked(struct pyio_data_reader *r, size_t *length, size_t *end)
{
    size_t searched = 0;

    for (;;) {
        const size_t at_hand = stream_room(&r->s);

        for (; searched < at_hand; searched++) {
            const uint8_t c = r->s.next[searched];

            if (c == '\n' || c == '\r') {
                break;
            }
        }
        *length = *end = searched;
        if (searched < at_hand) {
            (*end)++;
            if (r->s.next[searched] == '\r') {
                if (reader_fill_locked(r, *end + 1) < 0) {
                    return -1;
                }
                *end += stream_room(&r->s) > *end && r->s.next[*end] == '\n';
            }
            return 1;
        }
        if (reader_fill_locked(r, at_hand + 1) < 0
            || PyErr_CheckSignals() < 0) {
            return -1;
        }
        if (stream_room(&r->s) == at_hand) {
            return at_hand != 0;
        }
    }
}

static PyObject *
readLine(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *line = NULL;
    size_t length, end;
    int found;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    found = find_line_locked(r, &length, &end);
    if (found == 0) {
        line = Py_NewRef(Py_None);
    } else if (found > 0) {
        line = PyUnicode_DecodeLatin1((const char *)r->s.next,
                                      (Py_ssize_t)length, NULL);
        r->s.next += line == NULL ? 0 : end;
    }
    data_stream_leave(&r->s);
    return line;
}

static PyObject *
readAllBytes(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_upto_locked(r, UINT64_MAX);
    data_stream_leave(&r->s);
    return result;
}

static PyObject *
readNBytes(PyObject *op, PyObject *count)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result;
    int64_t n;

    if (pyio_as_offset(count, "len", &n) < 0 || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_upto_locked(r, (uint64_t)n);
    data_stream_leave(&r->s);
    return result;
}

/* Bytes that can be read without waiting: an estimate, as there. */
static PyObject *
available(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    uint64_t left;
    int known;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    known = reader_remaining_locked(r, &left);
    data_stream_leave(&r->s);
    return known < 0
               ? NULL
               : PyLong_FromUnsignedLongLong(cio_min_u64(left, INT32_MAX));
}

/* ----------------------------------------------------------------- type */

static int
java_in_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"source", "buffer_size", NULL};
    static const struct pyio_signature signature = {"DataInput", names, 1, 1};
    PyObject *given[2];

    as_reader(op)->lossy = true;
    return pyio_arguments_tuple(&signature, args, kwargs, given) < 0
               ? -1
               : reader_init(as_reader(op), given[0], NULL, given[1]);
}

#define READ(name, what)                                                      \
    {#name, name, METH_NOARGS, PyDoc_STR(#name "($self, /)\n--\n\n" what)}
static PyMethodDef methods[] = {
    READ(readBoolean, "A byte; True for all but 0."),
    READ(readByte, "int8."),
    READ(readUnsignedByte, "uint8."),
    READ(readShort, "int16."),
    READ(readUnsignedShort, "uint16."),
    READ(readChar, "A UTF-16 unit, as a str of one character."),
    READ(readInt, "int32."),
    READ(readLong, "int64."),
    READ(readFloat, "binary32."),
    READ(readDouble, "binary64."),
    READ(readUTF, "Modified UTF-8 behind a uint16. UTFDataFormatError: "
                  "malformed; it is passed."),
    READ(readLine, "Up to \\n, \\r or \\r\\n, each byte a character; None at "
                   "the end."),
    READ(readAllBytes, "All that is left."),
    READ(available, "An estimate of the bytes that can be read without "
                    "waiting."),
    {"read", PYIO_AS_METHOD(java_read), METH_FASTCALL,
     PyDoc_STR("read($self, b=None, off=0, len=None, /)\n--\n\n"
               "A byte as an int, or -1 at the end; into a Buffer: the number "
               "of bytes, or -1.")},
    {"readFully", PYIO_AS_METHOD(readFully), METH_FASTCALL,
     PyDoc_STR("readFully($self, b, off=0, len=None, /)\n--\n\n"
               "Fill a Buffer, or len bytes of it from off; or return exactly "
               "b bytes.")},
    {"readNBytes", readNBytes, METH_O,
     PyDoc_STR("readNBytes($self, len, /)\n--\n\n"
               "Up to len bytes, fewer only at the end.")},
    {"skipBytes", skipBytes, METH_O,
     PyDoc_STR("skipBytes($self, n, /)\n--\n\n"
               "Pass up to n bytes, fewer only at the end; returns how "
               "many.")},
    {"close", reader_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\n"
               "Close what was opened from a path. A source that was given "
               "stays open.")},
    {"detach", reader_detach, METH_NOARGS,
     PyDoc_STR("detach($self, /)\n--\n\n"
               "Seek the source to the next value and return it.")},
    {"__enter__", pyio_stream_enter_context, METH_NOARGS, NULL},
    PYIO_FAST("__exit__", pyio_stream_exit_context, 0, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "DataInput(source, *, buffer_size=65536)\n--\n\n"
         "java.io.DataInputStream's methods over a path, descriptor, file "
         "object or Buffer:\nthe same values from the same bytes.")},
    {Py_tp_init, java_in_init},
    {Py_tp_methods, methods},
    {Py_tp_getset, data_stream_getset},
    {Py_tp_members, data_stream_members},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_finalize, reader_finalize},
    {Py_tp_dealloc, reader_dealloc},
    {0, NULL},
};

PyType_Spec pyio_java_input_spec = {
    .name = "pyio_chunked.java.DataInput",
    .basicsize = sizeof(struct pyio_data_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
