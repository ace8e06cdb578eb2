/* SPDX-License-Identifier: MIT
 * pyio_zip_stream_read.c - the reading methods of ZipMember.
 */
#include "glue/base/pyio_read.h"
#include "glue/zip/pyio_zip_stream.h"

#include <string.h>

#include "base/cio_bytes.h"

/* -------------------------------------------------------------------- read */

PyObject *
zip_stream_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyObject *result;
    int64_t size;

    if (pyio_size_argument("read", args, nargs, PYIO_SIZE_LINE, &size) < 0
        || pyio_stream_enter(&self->head) < 0) {
        return NULL;
    }
    result = zip_stream_read_bytes(self, size);
    pyio_stream_leave(&self->head);
    return result;
}

/* What is there, or comes by one step; at most size, if that isn't below 0. */
static PyObject *
read_once(struct zip_stream *self, int64_t size)
{
    size_t here;
    const uint8_t *data;
    PyObject *result;

    if (size == 0) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    if (zip_stream_ahead(self) < 0) {
        return NULL;
    }
    data = zip_stream_here(self, &here);
    if (size > 0 && (uint64_t)size < here) {
        here = (size_t)size;
    }
    result = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)here);
    if (result != NULL && here > 0) {
        zip_stream_advance(self, here);
    }
    return result;
}

PyObject *
zip_stream_read1(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyObject *result;
    int64_t size;

    if (pyio_size_argument("read1", args, nargs, PYIO_SIZE_LINE, &size) < 0
        || pyio_stream_enter(&self->head) < 0) {
        return NULL;
    }
    result = read_once(self, size);
    pyio_stream_leave(&self->head);
    return result;
}

PyObject *
zip_stream_readinto(PyObject *op, PyObject *buffer)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    Py_buffer view;
    size_t got = 0;
    int result;

    if (pyio_target_buffer(buffer, "readinto", &view) < 0) {
        return NULL;
    }
    result = pyio_stream_enter(&self->head);
    if (result == 0) {
        result = zip_stream_read_into(self, view.buf, (size_t)view.len, &got);
        pyio_stream_leave(&self->head);
    }
    PyBuffer_Release(&view);
    return result < 0 ? NULL : PyLong_FromSize_t(got);
}

PyObject *
zip_stream_readinto1(PyObject *op, PyObject *buffer)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    Py_buffer view;
    size_t here = 0;
    const uint8_t *data;
    int result;

    if (pyio_target_buffer(buffer, "readinto1", &view) < 0) {
        return NULL;
    }
    result = pyio_stream_enter(&self->head);
    if (result == 0) {
        result = view.len == 0 ? 0 : zip_stream_ahead(self);
        data = zip_stream_here(self, &here);
        if (result == 0 && data != NULL) {
            here = cio_min_size(here, (size_t)view.len);
            memcpy(view.buf, data, here);
            zip_stream_advance(self, here);
        }
        pyio_stream_leave(&self->head);
    }
    PyBuffer_Release(&view);
    return result < 0 ? NULL : PyLong_FromSize_t(here);
}

PyObject *
zip_stream_peek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyObject *result = NULL;
    const uint8_t *data;
    size_t here;
    int64_t size;

    if (pyio_size_argument("peek", args, nargs, PYIO_SIZE_SOME, &size) < 0
        || pyio_stream_enter(&self->head) < 0) {
        return NULL;
    }
    if (zip_stream_ahead(self) == 0) {
        data = zip_stream_here(self, &here);
        /* zipfile hands out up to 512 bytes, or what was asked for. */
        here = (size_t)cio_min_u64(
            here, cio_max_u64(size < 0 ? 0 : (uint64_t)size, 512));
        result =
            PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)here);
    }
    pyio_stream_leave(&self->head);
    return result;
}

/* ------------------------------------------------------------------- lines */

/* Bytes of the line that are there, at most `most`. */
static size_t
line_piece(const uint8_t *data, size_t here, uint64_t most, bool *ended)
{
    const size_t n = (size_t)cio_min_u64(here, most);
    const uint8_t *const newline = memchr(data, '\n', n);

    *ended = newline != NULL || n == most;
    return newline == NULL ? n : (size_t)(newline - data) + 1;
}

/* A line that goes on behind what is there. */
static PyObject *
long_line(struct zip_stream *self, uint64_t most)
{
    struct pyio_result result;
    bool ended = false;

    if (pyio_result_init(&result, CIO_GROW_FIRST_NBYTES) < 0) {
        return NULL;
    }
    while (!ended && zip_stream_ahead(self) == 0) {
        size_t here, n;
        const uint8_t *const data = zip_stream_here(self, &here);

        if (data == NULL) {
            break;
        }
        n = line_piece(data, here, most - result.nbytes, &ended);
        while (result.capacity - result.nbytes < n
               && pyio_result_grow(&result, PY_SSIZE_T_MAX / 2) == 0) {
        }
        if (PyErr_Occurred()) {
            break;
        }
        memcpy(result.data + result.nbytes, data, n);
        result.nbytes += n;
        zip_stream_advance(self, n);
    }
    if (PyErr_Occurred()) {
        self->position -= result.nbytes; /* nothing was handed out */
        pyio_result_drop(&result);
        return NULL;
    }
    return pyio_result_finish(&result);
}

static PyObject *
read_line(struct zip_stream *self, uint64_t most)
{
    const uint8_t *data;
    PyObject *line;
    size_t here, n;
    bool ended;

    if (most == 0) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    if (zip_stream_ahead(self) < 0) {
        return NULL;
    }
    data = zip_stream_here(self, &here);
    if (data == NULL) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    n = line_piece(data, here, most, &ended);
    if (!ended && self->position + n < self->stream.entry.nbytes) {
        return long_line(self, most);
    }
    line = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)n);
    if (line != NULL) {
        zip_stream_advance(self, n);
    }
    return line;
}

PyObject *
zip_stream_readline(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyObject *line;
    int64_t size;

    if (pyio_size_argument("readline", args, nargs, PYIO_SIZE_LINE, &size) < 0
        || pyio_stream_enter(&self->head) < 0) {
        return NULL;
    }
    line = read_line(self, size < 0 ? UINT64_MAX : (uint64_t)size);
    pyio_stream_leave(&self->head);
    return line;
}

PyObject *
zip_stream_next(PyObject *op)
{
    PyObject *line;

    if (Py_IS_TYPE(op, pyio_state_of(Py_TYPE(op))->zip_stream_type)) {
        line = zip_stream_readline(op, NULL, 0);
    } else { /* a subclass may have a readline of its own */
        line = PyObject_CallMethod(op, "readline", NULL);
    }
    if (line != NULL && PyObject_Size(line) == 0) {
        Py_CLEAR(line);
    }
    return line;
}
