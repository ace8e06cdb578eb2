/* SPDX-License-Identifier: MIT
 * pyio_object.c - what a Python object is as a stream, and its methods called
 * on our memory.
 */
#include "glue/base/pyio.h"

#include <errno.h>

/* ------------------------------------------------------------- classify */

/* 1, 0, or -1 with an exception: is this exactly the standard library's
 * socket.socket? Subclasses (SSLSocket) have bytes that their descriptor does
 * not. The module is looked up, not imported: without it there is no socket.
 */
static int
is_socket(PyObject *object)
{
    PyObject *const name = PyUnicode_FromString("socket");
    PyObject *module, *type = NULL;
    int result = -1;

    if (name == NULL) {
        return -1;
    }
    module = PyImport_GetModule(name);
    Py_DECREF(name);
    if (module == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    type = PyObject_GetAttrString(module, "socket");
    if (type != NULL) {
        result = Py_IS_TYPE(object, (PyTypeObject *)type);
        Py_DECREF(type);
    }
    Py_DECREF(module);
    return result;
}

static bool
is_exact(PyObject *object, PyObject *type)
{
    return Py_IS_TYPE(object, (PyTypeObject *)type);
}

/* Exact Buffered* over an exact FileIO: 1, 0 or -1. */
static int
is_plain_buffered(const struct pyio_state *st, PyObject *object)
{
    PyObject *raw;
    int result;

    if (!is_exact(object, st->buffered_reader)
        && !is_exact(object, st->buffered_writer)
        && !is_exact(object, st->buffered_random)) {
        return 0;
    }
    raw = PyObject_GetAttrString(object, "raw");
    if (raw == NULL) {
        return -1;
    }
    result = is_exact(raw, st->file_io);
    Py_DECREF(raw);
    return result;
}

static int
has_attribute(PyObject *object, PyObject *name)
{
    PyObject *const value = PyObject_GetAttr(object, name);

    if (value != NULL) {
        Py_DECREF(value);
        return 1;
    }
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 0;
    }
    return -1;
}

/* An object without readinto, read and write, but with fileno. */
static int
has_only_fileno(const struct pyio_state *st, PyObject *object)
{
    PyObject *const names[] = {st->str_readinto, st->str_read, st->str_write};

    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        const int has = has_attribute(object, names[i]);

        if (has != 0) {
            return has < 0 ? -1 : 0;
        }
    }
    return has_attribute(object, st->str_fileno);
}

static int
classify_object(struct pyio_state *st, PyObject *object,
                enum pyio_stream_kind *kind)
{
    int is;

    if (st->file_type != NULL && Py_IS_TYPE(object, st->file_type)) {
        *kind = PYIO_STREAM_FILE;
        return 0;
    }
    if (is_exact(object, st->file_io)) {
        *kind = PYIO_STREAM_RAW;
        return 0;
    }
    if ((is = is_plain_buffered(st, object)) != 0) {
        *kind = PYIO_STREAM_BUFFERED;
        return is < 0 ? -1 : 0;
    }
    if ((is = is_socket(object)) != 0) {
        *kind = PYIO_STREAM_SOCKET;
        return is < 0 ? -1 : 0;
    }
    if ((is = PyObject_IsInstance(object, st->text_iobase)) != 0) {
        return is < 0 ? -1
                      : pyio_raise(PyExc_TypeError,
                                   "a binary file is needed, not the text "
                                   "file %R",
                                   object);
    }
    if ((is = has_only_fileno(st, object)) != 0) {
        *kind = PYIO_STREAM_RAW;
        return is < 0 ? -1 : 0;
    }
    *kind = PYIO_STREAM_OBJECT;
    return 0;
}

int
pyio_stream_classify(struct pyio_state *st, PyObject *object,
                     enum pyio_stream_kind *kind, int *fd)
{
    *fd = -1;
    if (PyLong_Check(object)) {
        *kind = PYIO_STREAM_FD;
        *fd = PyObject_AsFileDescriptor(object);
        return *fd < 0 ? -1 : 0;
    }
    if (PyUnicode_Check(object) || PyBytes_Check(object)
        || PyObject_HasAttrString(object, "__fspath__")) {
        *kind = PYIO_STREAM_PATH;
        return 0;
    }
    if (classify_object(st, object, kind) < 0) {
        return -1;
    }
    if (*kind == PYIO_STREAM_OBJECT) {
        return 0;
    }
    *fd = PyObject_AsFileDescriptor(object);
    return *fd < 0 ? -1 : 0;
}

/* ------------------------------------------------------- memory for calls */

/* Calls object.name(view of memory). Who keeps the view, or a slice of it,
 * would read or write memory that is no longer his: PYIO_KEPT. */
static int
call_with_view(PyObject *object, PyObject *name, void *data, size_t nbytes,
               int flags, PyObject **result)
{
    PyObject *const view =
        PyMemoryView_FromMemory(data, (Py_ssize_t)nbytes, flags);
    const PyMemoryViewObject *inner = (PyMemoryViewObject *)view;
    PyObject *released;

    *result = NULL;
    if (view == NULL) {
        return -1;
    }
    *result = PyObject_CallMethodOneArg(object, name, view);
    if (inner->exports == 0 && inner->mbuf->exports <= 1) {
        PyObject *const exception = pyio_exception_take();

        released = PyObject_CallMethod(view, "release", NULL);
        Py_XDECREF(released);
        Py_DECREF(view);
        pyio_exception_give(exception);
        return *result == NULL ? -1 : 0;
    }
    Py_CLEAR(*result);
    Py_DECREF(view);
    PyErr_Clear();
    (void)pyio_raise(PyExc_BufferError,
                     "%U() of %R kept a view of memory that it was lent", name,
                     object);
    return PYIO_KEPT;
}

static int
would_block_or_raise(PyObject *object, bool *would_block)
{
    if (would_block != NULL) {
        *would_block = true;
        return 0;
    }
    errno = EAGAIN;
    (void)object;
    (void)PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

/* A count as io checks it: OSError, chained to what made it unusable. */
static int
take_count(PyObject *value, PyObject *name, size_t most, size_t *count)
{
    const Py_ssize_t n = PyNumber_AsSsize_t(value, PyExc_ValueError);

    if (n == -1 && PyErr_Occurred()) {
        PyObject *const cause = pyio_exception_take();
        PyObject *failed;

        (void)pyio_raise(PyExc_OSError, "raw %U() failed", name);
        failed = pyio_exception_take();
        PyException_SetCause(failed, cause);
        pyio_exception_give(failed);
        return -1;
    }
    if (n < 0 || (size_t)n > most) {
        return pyio_raise(PyExc_OSError,
                          "raw %U() returned invalid length %zd (should have "
                          "been between 0 and %zu)",
                          name, n, most);
    }
    *count = (size_t)n;
    return 0;
}

/* object.read(nbytes), copied: for who has no readinto. */
static int
read_and_copy(struct pyio_state *st, PyObject *object, void *data,
              size_t nbytes, size_t *got, bool *would_block)
{
    PyObject *size, *piece;
    Py_buffer view;
    int result = -1;

    size = PyLong_FromSize_t(nbytes);
    if (size == NULL) {
        return -1;
    }
    piece = PyObject_CallMethodOneArg(object, st->str_read, size);
    Py_DECREF(size);
    if (piece == NULL) {
        return -1;
    }
    if (piece == Py_None) {
        result = would_block_or_raise(object, would_block);
    } else if (PyUnicode_Check(piece)) {
        result = pyio_raise(PyExc_TypeError,
                            "read() of %R returned str, not bytes", object);
    } else if (PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE) == 0) {
        if ((size_t)view.len > nbytes) {
            (void)pyio_raise(PyExc_OSError,
                             "read() returned too much data: %zu bytes "
                             "requested, %zd returned",
                             nbytes, view.len);
        } else {
            memcpy(data, view.buf, (size_t)view.len);
            *got = (size_t)view.len;
            result = 0;
        }
        PyBuffer_Release(&view);
    }
    Py_DECREF(piece);
    return result;
}

int
pyio_object_read(struct pyio_state *st, PyObject *object, void *data,
                 size_t nbytes, size_t *got, bool *would_block)
{
    PyObject *count;
    int result;

    *got = 0;
    result = has_attribute(object, st->str_readinto);
    if (result <= 0) {
        return result < 0
                   ? -1
                   : read_and_copy(st, object, data, nbytes, got, would_block);
    }
    result = call_with_view(object, st->str_readinto, data, nbytes,
                            PyBUF_WRITE, &count);
    if (result < 0) {
        return result;
    }
    result = count == Py_None
                 ? would_block_or_raise(object, would_block)
                 : take_count(count, st->str_readinto, nbytes, got);
    Py_DECREF(count);
    return result;
}

int
pyio_object_write(struct pyio_state *st, PyObject *object, const void *data,
                  size_t nbytes, size_t *put, bool *would_block)
{
    PyObject *count;
    int result;

    *put = 0;
    result = call_with_view(object, st->str_write, (void *)(uintptr_t)data,
                            nbytes, PyBUF_READ, &count);
    if (result < 0) {
        return result;
    }
    if (count != Py_None) {
        result = take_count(count, st->str_write, nbytes, put);
    } else if ((result = PyObject_IsInstance(object, st->raw_iobase)) > 0) {
        result = would_block_or_raise(object, would_block);
    } else if (result == 0) {
        *put = nbytes;
    }
    Py_DECREF(count);
    return result;
}
