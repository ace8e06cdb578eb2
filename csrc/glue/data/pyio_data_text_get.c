/* SPDX-License-Identifier: MIT
 * pyio_data_text_get.c - DataReader's varints, bytes and text.
 *
 * A length that was read allocates nothing by itself: a value in the buffer is
 * decoded where it lies, a larger one is gathered as it arrives.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "data/cio_mutf8.h"
#include "data/cio_scalar.h"
#include "data/cio_varint.h"

/* -------------------------------------------------------------- lengths */

/* *nbytes of LEB128 at the position; 0, or -1 with ShortReadError or
 * ValueError. The position has not moved. */
static int
peek_varint_locked(struct pyio_data_reader *r, uint64_t *value, size_t *nbytes,
                   const char *what)
{
    for (;;) {
        const size_t at_hand = stream_room(&r->s);

        switch (cio_varint_decode(r->s.next, at_hand, value, nbytes)) {
        case CIO_OK:
            return 0;
        case CIO_MORE:
            if (reader_need_locked(r, at_hand + 1, what) < 0) {
                return -1;
            }
            break;
        case CIO_ERR_DATA:
        case CIO_ERR_SYS:
        case CIO_ERR_NOMEM:
        case CIO_ERR_LIMIT:
        case CIO_EOF:
            return pyio_raise(PyExc_ValueError,
                              "%s at offset %lld needs more than 64 bits",
                              what, (long long)reader_tell_locked(r));
        }
    }
}

/* The length in front of a value and the bytes that it takes itself. */
static int
peek_prefix_locked(struct pyio_data_reader *r, enum data_prefix prefix,
                   uint64_t *length, size_t *skip)
{
    static const uint8_t widths[] = {[DATA_PREFIX_UINT8] = 1,
                                     [DATA_PREFIX_UINT16] = 2,
                                     [DATA_PREFIX_UINT32] = 4,
                                     [DATA_PREFIX_UINT64] = 8};

    if (prefix == DATA_PREFIX_UVARINT) {
        return peek_varint_locked(r, length, skip, "length");
    }
    *skip = widths[prefix];
    if (reader_need_locked(r, *skip, "length") < 0) {
        return -1;
    }
    *length = *skip == 1   ? *r->s.next
              : *skip == 2 ? cio_get16(r->s.next, r->s.swap)
              : *skip == 4 ? cio_get32(r->s.next, r->s.swap)
                           : cio_get64(r->s.next, r->s.swap);
    return 0;
}

static int
read_varint(struct pyio_data_reader *r, uint64_t *value, const char *what)
{
    size_t nbytes = 0;
    int result;

    if (data_stream_enter(&r->s) < 0) {
        return -1;
    }
    result = peek_varint_locked(r, value, &nbytes, what);
    r->s.next += result == 0 ? nbytes : 0;
    data_stream_leave(&r->s);
    return result;
}

static PyObject *
read_uvarint(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t value;

    return read_varint(as_reader(op), &value, "uvarint") < 0
               ? NULL
               : PyLong_FromUnsignedLongLong(value);
}

static PyObject *
read_svarint(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    uint64_t value;

    return read_varint(as_reader(op), &value, "svarint") < 0
               ? NULL
               : PyLong_FromLongLong(cio_unzigzag(value));
}

/* ------------------------------------------------------- bytes and text */

PyObject *
reader_get_bytes(struct pyio_data_reader *r, PyObject *count, const char *what)
{
    PyObject *result;
    int64_t nbytes;

    if (pyio_as_offset(count, "n", &nbytes) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_bytes_locked(r, 0, (uint64_t)nbytes, what);
    data_stream_leave(&r->s);
    return result;
}

static PyObject *
read_bytes(PyObject *op, PyObject *count)
{
    return reader_get_bytes(as_reader(op), count, "bytes");
}

static PyObject *
read_str(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
         PyObject *kwnames)
{
    struct pyio_data_reader *const r = as_reader(op);
    struct data_whole whole;
    PyObject *ignored, *text = NULL;
    enum data_prefix prefix;
    uint64_t nbytes;
    size_t skip;

    if (data_prefix_arguments("read_str", args, nargs, kwnames, 0, &ignored,
                              &prefix)
            < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    if (peek_prefix_locked(r, prefix, &nbytes, &skip) == 0
        && reader_whole_locked(r, skip, nbytes, "str", &whole) == 0) {
        text = PyUnicode_DecodeUTF8((const char *)whole.data,
                                    (Py_ssize_t)nbytes, NULL);
        reader_whole_done_locked(r, &whole, text != NULL);
    }
    data_stream_leave(&r->s);
    return text;
}

/* Offset of the next NUL from the position. */
static int
find_nul_locked(struct pyio_data_reader *r, size_t *length)
{
    size_t searched = 0;

    for (;;) {
        const size_t at_hand = stream_room(&r->s);
        const uint8_t *const nul =
            at_hand == searched
                ? NULL
                : memchr(r->s.next + searched, 0, at_hand - searched);

        if (nul != NULL) {
            *length = (size_t)(nul - r->s.next);
            return 0;
        }
        searched = at_hand;
        if (reader_need_locked(r, at_hand + 1, "cstr") < 0
            || PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
}

static PyObject *
read_cstr(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *text = NULL;
    size_t length;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    if (find_nul_locked(r, &length) == 0) {
        text = PyUnicode_DecodeUTF8((const char *)r->s.next,
                                    (Py_ssize_t)length, NULL);
        r->s.next += text == NULL ? 0 : length + 1;
    }
    data_stream_leave(&r->s);
    return text;
}

/* -------------------------------------------------------- modified UTF-8 */

PyObject *
data_decode_mutf8(const uint8_t *data, size_t nbytes, PyObject *error)
{
    struct cio_mutf8_shape shape;
    PyObject *text;

    if (cio_mutf8_scan(data, nbytes, &shape) != CIO_OK) {
        (void)pyio_raise(error,
                         shape.ends_inside
                             ? "malformed modified UTF-8: it ends inside the "
                               "character at byte %zu"
                             : "malformed modified UTF-8 around byte %zu",
                         shape.bad_at);
        return NULL;
    }
    text = PyUnicode_New((Py_ssize_t)shape.nchars, shape.widest);
    if (text != NULL && nbytes != 0) {
        cio_mutf8_decode(data, nbytes, PyUnicode_DATA(text),
                         (unsigned)PyUnicode_KIND(text));
    }
    return text;
}

PyObject *
reader_get_mutf8(struct pyio_data_reader *r, PyObject *error)
{
    struct data_whole whole;
    PyObject *text = NULL;
    uint64_t nbytes;
    size_t skip;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    if (peek_prefix_locked(r, DATA_PREFIX_UINT16, &nbytes, &skip) == 0
        && reader_whole_locked(r, skip, nbytes, "mutf8", &whole) == 0) {
        text = data_decode_mutf8(whole.data, (size_t)nbytes, error);
        reader_whole_done_locked(r, &whole, text != NULL || r->lossy);
    }
    data_stream_leave(&r->s);
    return text;
}

static PyObject *
read_mutf8(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return reader_get_mutf8(as_reader(op), PyExc_ValueError);
}

PyMethodDef pyio_data_text_get_methods[] = {
    {"read_uvarint", read_uvarint, METH_NOARGS,
     PyDoc_STR("read_uvarint($self, /)\n--\n\n"
               "LEB128, 64 bits. ValueError: it needs more.")},
    {"read_svarint", read_svarint, METH_NOARGS,
     PyDoc_STR("read_svarint($self, /)\n--\n\n"
               "LEB128 of a zigzag, 64 bits. ValueError: it needs more.")},
    {"read_bytes", read_bytes, METH_O,
     PyDoc_STR("read_bytes($self, n, /)\n--\n\n"
               "Exactly n bytes, else ShortReadError. Memory follows what "
               "arrives.")},
    {"read_str", PYIO_AS_METHOD(read_str), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("read_str($self, /, prefix='uint32')\n--\n\n"
               "UTF-8 behind its length in bytes. After UnicodeDecodeError "
               "the position stays.")},
    {"read_cstr", read_cstr, METH_NOARGS,
     PyDoc_STR("read_cstr($self, /)\n--\n\nUTF-8 up to a NUL.")},
    {"read_mutf8", read_mutf8, METH_NOARGS,
     PyDoc_STR("read_mutf8($self, /)\n--\n\n"
               "Modified UTF-8 behind a uint16, as lenient as Java. "
               "ValueError: malformed.")},
    {NULL, NULL, 0, NULL},
};
