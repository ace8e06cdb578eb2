/* SPDX-License-Identifier: MIT
 * pyio_data_text.c - DataWriter's bytes and text: behind a length, before a
 * NUL, in modified UTF-8.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "data/cio_mutf8.h"
#include "data/cio_scalar.h"
#include "data/cio_varint.h"

#define NONE_OR_NULL(result) ((result) < 0 ? NULL : Py_NewRef(Py_None))

/* UTF-8 longer than this isn't left in the str for good, as
 * PyUnicode_AsUTF8AndSize does. */
#define CACHED_UTF8_NBYTES 4096

int
data_prefix_of(PyObject *name, enum data_prefix *prefix)
{
    static const char *const choices[] = {
        [DATA_PREFIX_UINT8] = "uint8",     [DATA_PREFIX_UINT16] = "uint16",
        [DATA_PREFIX_UINT32] = "uint32",   [DATA_PREFIX_UINT64] = "uint64",
        [DATA_PREFIX_UVARINT] = "uvarint", NULL};
    int which = DATA_PREFIX_UINT32;

    if (name != NULL && pyio_as_choice(name, "prefix", choices, &which) < 0) {
        return -1;
    }
    *prefix = (enum data_prefix)which;
    return 0;
}

int
data_prefix_arguments(const char *function, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *kwnames, int positional,
                      PyObject **value, enum data_prefix *prefix)
{
    static const char *const both[] = {"s", "prefix", NULL};
    const struct pyio_signature signature = {function, both + 1 - positional,
                                             positional + 1, positional};
    PyObject *given[2];

    if (kwnames == NULL && nargs == positional) {
        *value = positional ? args[0] : NULL;
        *prefix = DATA_PREFIX_UINT32;
        return 0;
    }
    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0) {
        return -1;
    }
    *value = positional ? given[0] : NULL;
    return data_prefix_of(given[positional], prefix);
}

/* The length in front, at most ten bytes. 0: it does not fit. */
static size_t
encode_prefix(uint8_t *head, enum data_prefix prefix, uint64_t n, bool swap)
{
    switch (prefix) {
    case DATA_PREFIX_UINT8:
        cio_put8(head, (uint8_t)n, swap);
        return n <= UINT8_MAX ? 1 : 0;
    case DATA_PREFIX_UINT16:
        cio_put16(head, (uint16_t)n, swap);
        return n <= UINT16_MAX ? 2 : 0;
    case DATA_PREFIX_UINT32:
        cio_put32(head, (uint32_t)n, swap);
        return n <= UINT32_MAX ? 4 : 0;
    case DATA_PREFIX_UINT64:
        cio_put64(head, n, swap);
        return 8;
    case DATA_PREFIX_UVARINT:
        return cio_varint_encode(head, n);
    }
    Py_UNREACHABLE();
}

/* Memory of `owner`, which must outlive a view that the target kept. */
static int
put_owned(struct pyio_data_writer *w, const void *head, size_t head_nbytes,
          const void *body, size_t body_nbytes, PyObject *owner)
{
    const int result = writer_put(w, head, head_nbytes, body, body_nbytes);

    if (result == PYIO_KEPT) {
        Py_INCREF(owner);
    }
    return result;
}

/* UTF-8 of a str with its NUL; *owner is a new reference to what holds it. */
static const char *
utf8_of(PyObject *text, Py_ssize_t *nbytes, PyObject **owner)
{
    if (!PyUnicode_Check(text)) {
        (void)pyio_raise(PyExc_TypeError, "a str is required, not '%s'",
                         Py_TYPE(text)->tp_name);
        return NULL;
    }
    if (PyUnicode_IS_ASCII(text)
        || PyUnicode_GET_LENGTH(text) <= CACHED_UTF8_NBYTES) {
        *owner = Py_NewRef(text);
        return PyUnicode_AsUTF8AndSize(text, nbytes);
    }
    *owner = PyUnicode_AsUTF8String(text);
    if (*owner == NULL) {
        return NULL;
    }
    *nbytes = PyBytes_GET_SIZE(*owner);
    return PyBytes_AS_STRING(*owner);
}

static PyObject *
write_str(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
          PyObject *kwnames)
{
    struct pyio_data_writer *const w = as_writer(op);
    uint8_t head[CIO_VARINT_MAX_NBYTES];
    PyObject *text, *owner = NULL;
    enum data_prefix prefix;
    const char *utf8;
    Py_ssize_t nbytes;
    size_t head_nbytes;
    int result = -1;

    if (data_prefix_arguments("write_str", args, nargs, kwnames, 1, &text,
                              &prefix)
        < 0) {
        return NULL;
    }
    utf8 = utf8_of(text, &nbytes, &owner);
    if (utf8 != NULL) {
        head_nbytes = encode_prefix(head, prefix, (uint64_t)nbytes, w->s.swap);
        result =
            head_nbytes == 0
                ? pyio_raise(PyExc_OverflowError,
                             "%zd bytes of text are too long for their "
                             "prefix",
                             nbytes)
                : put_owned(w, head, head_nbytes, utf8, (size_t)nbytes, owner);
    }
    Py_XDECREF(owner);
    return NONE_OR_NULL(result);
}

static PyObject *
write_cstr(PyObject *op, PyObject *text)
{
    PyObject *owner = NULL;
    Py_ssize_t nbytes;
    const char *const utf8 = utf8_of(text, &nbytes, &owner);
    int result = -1;

    if (utf8 != NULL) {
        result = memchr(utf8, 0, (size_t)nbytes) != NULL
                     ? pyio_raise(PyExc_ValueError, "embedded null character")
                     : put_owned(as_writer(op), "", 0, utf8,
                                 (size_t)nbytes + 1, owner);
    }
    Py_XDECREF(owner);
    return NONE_OR_NULL(result);
}

static PyObject *
write_bytes(PyObject *op, PyObject *data)
{
    return NONE_OR_NULL(writer_put_buffer(as_writer(op), data));
}

/* -------------------------------------------------------- modified UTF-8 */

static int
raise_long(size_t nbytes, PyObject *error)
{
    return pyio_raise(error,
                      "text takes more than 65535 bytes in modified UTF-8 "
                      "(counted %zu)",
                      nbytes);
}

/* Encoded at its place, where the buffer surely has room for it. */
static int
put_mutf8_in_place(struct pyio_data_writer *w, PyObject *text, PyObject *error)
{
    uint8_t *const begin = w->s.next + 2;
    const uint8_t *const end = cio_mutf8_encode(
        begin, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text),
        (unsigned)PyUnicode_KIND(text));
    const size_t nbytes = (size_t)(end - begin);

    if (nbytes > UINT16_MAX) {
        return raise_long(nbytes, error);
    }
    cio_put16(w->s.next, (uint16_t)nbytes, w->s.swap);
    w->s.next += 2 + nbytes;
    return 0;
}

static int
put_mutf8_composed(struct pyio_data_writer *w, PyObject *text, PyObject *error)
{
    const void *const data = PyUnicode_DATA(text);
    const size_t nchars = (size_t)PyUnicode_GET_LENGTH(text);
    const unsigned kind = (unsigned)PyUnicode_KIND(text);
    const size_t nbytes = cio_mutf8_nbytes(data, nchars, kind, UINT16_MAX);
    uint8_t *whole;
    int result;

    if (nbytes > UINT16_MAX) {
        return raise_long(nbytes, error);
    }
    whole = cio_sys->malloc(2 + nbytes);
    if (whole == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    cio_put16(whole, (uint16_t)nbytes, w->s.swap);
    (void)cio_mutf8_encode(whole + 2, data, nchars, kind);
    result = writer_put(w, "", 0, whole, 2 + nbytes);
    if (result != PYIO_KEPT) {
        cio_free(whole);
    }
    return result;
}

int
writer_put_mutf8(struct pyio_data_writer *w, PyObject *text, PyObject *error)
{
    size_t nchars, widest;
    uint8_t head[2];

    if (!PyUnicode_Check(text)) {
        return pyio_raise(PyExc_TypeError, "a str is required, not '%s'",
                          Py_TYPE(text)->tp_name);
    }
    nchars = (size_t)PyUnicode_GET_LENGTH(text);
    if (PyUnicode_IS_ASCII(text)
        && memchr(PyUnicode_DATA(text), 0, nchars) == NULL) {
        if (nchars > UINT16_MAX) {
            return raise_long(nchars, error);
        }
        cio_put16(head, (uint16_t)nchars, w->s.swap);
        return put_owned(w, head, 2, PyUnicode_DATA(text), nchars, text);
    }
    widest = PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND   ? 2
             : PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND ? 3
                                                            : 6;
    return nchars <= UINT16_MAX && pyio_lock_free(&w->s.head.lock)
                   && nchars * widest + 2 <= stream_room(&w->s)
               ? put_mutf8_in_place(w, text, error)
               : put_mutf8_composed(w, text, error);
}

static PyObject *
write_mutf8(PyObject *op, PyObject *text)
{
    return NONE_OR_NULL(
        writer_put_mutf8(as_writer(op), text, PyExc_OverflowError));
}

PyMethodDef pyio_data_text_methods[] = {
    {"write_bytes", write_bytes, METH_O,
     PyDoc_STR("write_bytes($self, data, /)\n--\n\n"
               "The bytes of a Buffer as they are, without a length.")},
    {"write_str", PYIO_AS_METHOD(write_str), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("write_str($self, /, s, prefix='uint32')\n--\n\n"
               "UTF-8 behind its length in bytes: uint8, uint16, uint32, "
               "uint64 or uvarint.\nOverflowError: too long for the prefix; "
               "nothing is written.")},
    {"write_cstr", write_cstr, METH_O,
     PyDoc_STR("write_cstr($self, s, /)\n--\n\n"
               "UTF-8 and a NUL. ValueError: a NUL inside.")},
    {"write_mutf8", write_mutf8, METH_O,
     PyDoc_STR("write_mutf8($self, s, /)\n--\n\n"
               "Modified UTF-8 (Java's) behind its length in bytes as uint16 "
               "of the stream's\norder. OverflowError: more than 65535 "
               "bytes; nothing is written.")},
    {NULL, NULL, 0, NULL},
};
