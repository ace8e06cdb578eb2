/* SPDX-License-Identifier: MIT
 * pyio_data_java_out.c - java.DataOutput: java.io.DataOutputStream's methods,
 * bytes and habits (numbers cut to their width, one NaN, modified UTF-8).
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "data/cio_scalar.h"

#define NONE_OR_NULL(result) ((result) < 0 ? NULL : Py_NewRef(Py_None))

/* The low 64 bits of an int of any size, as a Java cast leaves them. */
static int
low_bits(PyObject *value, uint64_t *bits)
{
    PyObject *const index = PyNumber_Index(value);

    if (index == NULL) {
        return -1;
    }
    *bits = PyLong_AsUnsignedLongLongMask(index);
    Py_DECREF(index);
    return *bits == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

static __attribute__((noinline)) PyObject *
put_number(struct pyio_data_writer *w, uint64_t bits, unsigned nbytes)
{
    uint8_t whole[8];

    cio_put64(whole, bits, w->s.swap); /* big-endian: the last bytes count */
    return NONE_OR_NULL(
        writer_put(w, "", 0, whole + sizeof whole - nbytes, nbytes));
}

static __attribute__((noinline)) PyObject *
put_slowly(struct pyio_data_writer *w, PyObject *value, unsigned nbytes)
{
    uint64_t bits;

    return low_bits(value, &bits) < 0 ? NULL : put_number(w, bits, nbytes);
}

#define PUT_INT(name, bits)                                                   \
    static PyObject *name(PyObject *op, PyObject *value)                      \
    {                                                                         \
        struct pyio_data_writer *const w = as_writer(op);                     \
        int64_t n;                                                            \
                                                                              \
        if (PYIO_LIKELY(stream_is_quick(&w->s, bits / 8)                      \
                        && pyio_long_short(value, &n))) {                     \
            cio_put##bits(w->s.next, (uint##bits##_t)n, w->s.swap);           \
            w->s.next += bits / 8;                                            \
            Py_RETURN_NONE;                                                   \
        }                                                                     \
        return put_slowly(w, value, bits / 8);                                \
    }

PUT_INT(writeByte, 8)
PUT_INT(writeShort, 16)
PUT_INT(writeInt, 32)
PUT_INT(writeLong, 64)

static PyObject *
writeChar(PyObject *op, PyObject *value)
{
    if (PyUnicode_Check(value) && PyUnicode_GET_LENGTH(value) == 1) {
        return put_number(as_writer(op), PyUnicode_READ_CHAR(value, 0), 2);
    }
    return writeShort(op, value);
}

static PyObject *
writeBoolean(PyObject *op, PyObject *value)
{
    const int truth = PyObject_IsTrue(value);

    return truth < 0 ? NULL : put_number(as_writer(op), (uint64_t)truth, 1);
}

/* floatToIntBits: there is one NaN; what is too large is an infinity. */
static PyObject *
writeFloat(PyObject *op, PyObject *value)
{
    const double number = PyFloat_AsDouble(value);

    if (number == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    return put_number(
        as_writer(op),
        number != number ? 0x7FC00000u : cio_bits_of_float((float)number), 4);
}

static PyObject *
writeDouble(PyObject *op, PyObject *value)
{
    struct pyio_data_writer *const w = as_writer(op);
    const double number = PyFloat_AsDouble(value);

    if (number == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    return put_number(
        w, number != number ? 0x7FF8000000000000u : cio_bits_of_double(number),
        8);
}

/* --------------------------------------------------------- bytes and text */

/* Part of a Buffer by Java's (off, len); IndexError as
 * IndexOutOfBoundsException. */
int
data_java_part(const Py_buffer *view, PyObject *const *args, Py_ssize_t nargs,
               uint8_t **data, size_t *nbytes)
{
    Py_ssize_t off, len;

    *data = view->buf;
    *nbytes = (size_t)view->len;
    off = nargs > 1 ? PyNumber_AsSsize_t(args[1], PyExc_OverflowError) : 0;
    if (off == -1 && PyErr_Occurred()) {
        return -1;
    }
    len = view->len - off;
    if (nargs > 2 && args[2] != Py_None) {
        len = PyNumber_AsSsize_t(args[2], PyExc_OverflowError);
        if (len == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    if (off < 0 || len < 0 || len > view->len || off > view->len - len) {
        return pyio_raise(PyExc_IndexError,
                          "off %zd, len %zd is outside of %zd bytes", off, len,
                          view->len);
    }
    *data += off;
    *nbytes = (size_t)len;
    return 0;
}

static PyObject *
write_part(struct pyio_data_writer *w, PyObject *const *args, Py_ssize_t nargs)
{
    Py_buffer view;
    uint8_t *data;
    size_t nbytes;
    int result;

    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    result = data_java_part(&view, args, nargs, &data, &nbytes);
    if (result == 0) {
        result = writer_put(w, "", 0, data, nbytes);
    }
    if (result != PYIO_KEPT) {
        PyBuffer_Release(&view);
    }
    return NONE_OR_NULL(result);
}

static PyObject *
java_write(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs < 1 || nargs > 3) {
        return PyErr_Format(PyExc_TypeError,
                            "write() takes (b, off=0, len=None), not %zd "
                            "arguments",
                            nargs);
    }
    if (nargs == 1 && PyIndex_Check(args[0])
        && !PyObject_CheckBuffer(args[0])) {
        return writeByte(op, args[0]);
    }
    return write_part(as_writer(op), args, nargs);
}

/* UTF-16 units of a str, each put as `width` low bytes. */
static PyObject *
put_units(struct pyio_data_writer *w, PyObject *text, size_t width)
{
    size_t nchars, nunits = 0;
    uint8_t *whole, *out;
    int result;

    if (!PyUnicode_Check(text)) {
        return PyErr_Format(PyExc_TypeError, "a str is required, not '%s'",
                            Py_TYPE(text)->tp_name);
    }
    nchars = (size_t)PyUnicode_GET_LENGTH(text);
    out = whole = cio_sys->malloc(nchars * 2 * width + 1);
    if (whole == NULL) {
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < nchars; i++) {
        const Py_UCS4 c = PyUnicode_READ_CHAR(text, (Py_ssize_t)i);
        Py_UCS4 units[2] = {c, 0};
        const size_t n = c < 0x10000 ? 1 : 2;

        if (n == 2) {
            units[0] = 0xD800 + ((c - 0x10000) >> 10);
            units[1] = 0xDC00 + ((c - 0x10000) & 0x3FF);
        }
        for (size_t k = 0; k < n; k++, nunits++) {
            if (width == 2) {
                *out++ = (uint8_t)(units[k] >> 8);
            }
            *out++ = (uint8_t)units[k];
        }
    }
    result = writer_put(w, "", 0, whole, nunits * width);
    if (result != PYIO_KEPT) {
        cio_free(whole);
    }
    return NONE_OR_NULL(result);
}

static PyObject *
writeBytes(PyObject *op, PyObject *text)
{
    return put_units(as_writer(op), text, 1);
}

static PyObject *
writeChars(PyObject *op, PyObject *text)
{
    return put_units(as_writer(op), text, 2);
}

static PyObject *
writeUTF(PyObject *op, PyObject *text)
{
    return NONE_OR_NULL(writer_put_mutf8(
        as_writer(op), text, pyio_state_of(Py_TYPE(op))->utf_length_error));
}

static PyObject *
size(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const struct pyio_data_writer *const w = as_writer(op);
    const uint64_t written = (uint64_t)w->flushed + writer_pending(w);

    return PyLong_FromUnsignedLongLong(cio_min_u64(written, INT32_MAX));
}

/* ----------------------------------------------------------------- type */

static int
java_out_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"target", "buffer_size", NULL};
    static const struct pyio_signature signature = {"DataOutput", names, 1, 1};
    PyObject *given[2];

    return pyio_arguments_tuple(&signature, args, kwargs, given) < 0
               ? -1
               : writer_init(as_writer(op), given[0], NULL, given[1]);
}

#define WRITE(name, what)                                                     \
    {#name, name, METH_O, PyDoc_STR(#name "($self, v, /)\n--\n\n" what)}

static PyMethodDef methods[] = {
    WRITE(writeBoolean, "One byte, 1 or 0."),
    WRITE(writeByte, "The low 8 bits."),
    WRITE(writeShort, "The low 16 bits, big-endian."),
    WRITE(writeChar, "The low 16 bits of an int or of a one-character str."),
    WRITE(writeInt, "The low 32 bits, big-endian."),
    WRITE(writeLong, "The low 64 bits, big-endian."),
    WRITE(writeFloat, "binary32; every NaN as 7fc00000, too large a number as "
                      "an infinity."),
    WRITE(writeDouble, "binary64; every NaN as 7ff8000000000000."),
    WRITE(writeBytes, "The low byte of each UTF-16 unit of a str."),
    WRITE(writeChars, "Each UTF-16 unit of a str, big-endian."),
    WRITE(writeUTF, "Modified UTF-8 behind a uint16. UTFDataFormatError: more "
                    "than 65535 bytes;\nnothing is written."),
    {"write", (PyCFunction)(void (*)(void))java_write, METH_FASTCALL,
     PyDoc_STR("write($self, b, off=0, len=None, /)\n--\n\n"
               "The low byte of an int; or a Buffer, or len bytes of it from "
               "off.")},
    {"size", size, METH_NOARGS,
     PyDoc_STR("size($self, /)\n--\n\n"
               "Bytes written so far, at most 2**31-1.")},
    {"flush", writer_flush, METH_NOARGS,
     PyDoc_STR("flush($self, /)\n--\n\n"
               "Hand what is buffered to the target, and flush that.")},
    {"close", writer_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\n"
               "Flush; close what was opened from a path. A target that was "
               "given stays open.")},
    {"detach", writer_detach, METH_NOARGS,
     PyDoc_STR("detach($self, /)\n--\n\nFlush and return the target.")},
    {"__enter__", pyio_stream_enter_context, METH_NOARGS, NULL},
    PYIO_FAST("__exit__", pyio_stream_exit_context, 0, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "DataOutput(target, *, buffer_size=65536)\n--\n\n"
         "java.io.DataOutputStream's methods over a path, descriptor or file "
         "object:\nthe same bytes for the same calls.")},
    {Py_tp_init, java_out_init},
    {Py_tp_methods, methods},
    {Py_tp_getset, data_stream_getset},
    {Py_tp_members, data_stream_members},
    {Py_tp_traverse, data_stream_traverse},
    {Py_tp_clear, data_stream_clear},
    {Py_tp_finalize, writer_finalize},
    {Py_tp_dealloc, writer_dealloc},
    {0, NULL},
};

PyType_Spec pyio_java_output_spec = {
    .name = "pyio_chunked.java.DataOutput",
    .basicsize = sizeof(struct pyio_data_writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
