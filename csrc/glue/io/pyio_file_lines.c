/* SPDX-License-Identifier: MIT
 * pyio_file_lines.c - lines out of the chunk.
 *
 * Nearly every line lies whole in the chunk: one search, one copy, no lock.
 * Only the one that a chunk's end cuts is put together in a growing result.
 */
#include "glue/base/pyio_read.h"
#include "glue/io/pyio_file.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"

/* The line at the chunk's front, newline and all; NULL without an exception
 * where the newline isn't there. */
static PyObject *
whole_line(struct pyio_file *self)
{
    struct cio_chunk *chunk = &self->core.chunk;
    const uint8_t *const line = chunk->data + chunk->begin;
    const size_t held = cio_chunk_held(chunk);
    const uint8_t *newline;
    PyObject *bytes;

    if (held == 0) {
        return NULL;
    }
    newline = memchr(line, '\n', held);
    if (newline == NULL) {
        return NULL;
    }
    bytes = PyBytes_FromStringAndSize((const char *)line, newline + 1 - line);
    if (bytes != NULL) {
        cio_chunk_used(chunk, (size_t)(newline + 1 - line));
    }
    return bytes;
}

/* Moves up to `most` bytes, no further than a newline, from the chunk to the
 * result, which has room. True: the line is complete. */
static bool
take_part(struct pyio_file *self, struct pyio_result *result, size_t most)
{
    struct cio_chunk *chunk = &self->core.chunk;
    size_t n = cio_min_size(cio_chunk_held(chunk), most - result->nbytes);
    const uint8_t *const line = chunk->data + chunk->begin;
    const uint8_t *const newline = memchr(line, '\n', n);

    if (newline != NULL) {
        n = (size_t)(newline + 1 - line);
    }
    result->nbytes +=
        cio_file_take(&self->core, result->data + result->nbytes, n);
    pyio_file_drop_stash(self);
    return newline != NULL || result->nbytes == most;
}

/* Room for what the chunk can bring next, made while the chunk is empty: where
 * there is none, the result alone holds all that arrived. */
static int
make_room(struct pyio_result *result, size_t more, size_t most)
{
    more = cio_min_size(more, most - result->nbytes);
    if (result->bytes == NULL) {
        return pyio_result_init(result, more);
    }
    while (result->capacity - result->nbytes < more) {
        if (pyio_result_grow(result, most) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *
cut_line(struct pyio_file *self, size_t most)
{
    struct pyio_result result = {0};
    struct cio_done done = cio_done_of(CIO_OK, 0);
    bool complete = false;

    while (!complete && done.status == CIO_OK) {
        const size_t ahead = cio_file_ahead(&self->core);

        if (ahead == 0 && result.bytes == NULL) {
            done = pyio_fill(&self->core);
            continue;
        }
        if (make_room(&result, ahead > 0 ? ahead : self->core.chunk_nbytes,
                      most)
            < 0) {
            PyErr_Clear();
            done.status = CIO_ERR_NOMEM;
        } else if (ahead > 0) {
            complete = take_part(self, &result, most);
        } else {
            done = pyio_fill(&self->core);
        }
    }
    done.nbytes = result.nbytes;
    if (result.bytes == NULL) {
        if (done.status == CIO_ERR_SYS && done.sys_errno == EAGAIN) {
            done.status = CIO_OK;
        }
        return pyio_file_check(self, done, 0) < 0
                   ? NULL
                   : PyBytes_FromStringAndSize(NULL, 0);
    }
    return pyio_file_result(self, done, &result);
}

static PyObject *
read_line(struct pyio_file *self, int64_t size)
{
    PyObject *line = NULL;

    if (pyio_file_want_readable(self) < 0 || pyio_file_enter(self) < 0) {
        return NULL;
    }
    if (pyio_file_start_reading(self) == 0) {
        if (size == 0) {
            line = PyBytes_FromStringAndSize(NULL, 0);
        } else if (size < 0) {
            line = whole_line(self);
            if (line == NULL && !PyErr_Occurred()) {
                line = cut_line(self, SIZE_MAX);
            }
        } else {
            line = cut_line(self, (size_t)size);
        }
    }
    pyio_file_leave(self);
    return line;
}

PyObject *
pyio_file_readline(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    int64_t size;

    if (pyio_size_argument("readline", args, nargs, PYIO_SIZE_LINE, &size)
        < 0) {
        return NULL;
    }
    if (size < 0 && pyio_file_is_quick(self)) {
        PyObject *const line = whole_line(self);

        if (line != NULL || PyErr_Occurred()) {
            return line;
        }
    }
    return read_line(self, size);
}

PyObject *
pyio_file_next(PyObject *op)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *line = NULL;

    if (PYIO_LIKELY(pyio_file_is_quick(self)) && self->plain) {
        line = whole_line(self);
        if (PYIO_LIKELY(line != NULL)) {
            return line;
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (self->plain) {
        line = read_line(self, -1);
    } else {
        line = PyObject_CallMethod(op, "readline", NULL);
        if (line != NULL && !PyBytes_Check(line)) {
            PyErr_Format(PyExc_OSError,
                         "readline() should have returned a bytes object, "
                         "not '%.200s'",
                         Py_TYPE(line)->tp_name);
            Py_CLEAR(line);
        }
    }
    if (line != NULL && PyBytes_GET_SIZE(line) == 0) {
        Py_CLEAR(line);
    }
    return line;
}

/* ------------------------------------------------------------- readlines */

/* What lies in front of the read-ahead again. */
static int
put_in_front(struct pyio_file *self, PyObject *front)
{
    struct cio_chunk *chunk = &self->core.chunk;
    struct pyio_result both = {0};
    const size_t nbytes = (size_t)PyBytes_GET_SIZE(front);
    const size_t ahead = cio_file_ahead(&self->core);

    if (self->core.seekable) {
        return cio_file_drop_ahead(&self->core).status == CIO_OK
                       && cio_file_unread(&self->core, nbytes)
                   ? 0
                   : -1;
    }
    if (pyio_result_init(&both, nbytes + ahead) < 0) {
        return -1;
    }
    memcpy(both.data, PyBytes_AS_STRING(front), nbytes);
    if (ahead > 0) {
        memcpy(both.data + nbytes, chunk->data + chunk->begin, ahead);
        cio_chunk_give(chunk);
    }
    both.nbytes = nbytes + ahead;
    pyio_file_give_back(self, &both);
    return 0;
}

/* readlines() failed: its lines come again at the next read. */
static void
give_lines_back(struct pyio_file *self, PyObject *lines)
{
    PyObject *const failure = pyio_exception_take();
    PyObject *const nothing = PyBytes_FromStringAndSize(NULL, 0);
    PyObject *const front =
        nothing == NULL ? NULL
                        : PyObject_CallMethod(nothing, "join", "O", lines);
    PyObject *told = NULL;
    long long moved = -1;

    if (front != NULL && PyBytes_GET_SIZE(front) > 0
        && pyio_file_enter(self) == 0) {
        if (put_in_front(self, front) == 0
            && (told = PyObject_GetAttrString(failure, "transferred"))
                   != NULL) {
            moved = PyLong_AsLongLong(told);
        }
        pyio_file_leave(self);
    }
    PyErr_Clear();
    pyio_exception_give(failure);
    if (moved >= 0) {
        pyio_exception_attribute(
            "transferred",
            PyLong_FromLongLong(moved + PyBytes_GET_SIZE(front)));
    }
    Py_XDECREF(told);
    Py_XDECREF(front);
    Py_XDECREF(nothing);
}

/* Lines until there is no other, or more than hint bytes are in them. */
static int
append_lines(PyObject *iterator, PyObject *lines, int64_t hint)
{
    Py_ssize_t nbytes = 0;
    PyObject *line;

    while ((line = PyIter_Next(iterator)) != NULL) {
        const int appended = PyList_Append(lines, line);
        const Py_ssize_t n = appended < 0 ? -1 : PyObject_Size(line);

        Py_DECREF(line);
        if (n < 0) {
            return -1;
        }
        if (hint > 0 && n > hint - nbytes) {
            return 0;
        }
        nbytes += n;
    }
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *
pyio_file_readlines(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *iterator, *lines;
    int64_t hint;

    if (pyio_size_argument("readlines", args, nargs, PYIO_SIZE_LINE, &hint)
        < 0) {
        return NULL;
    }
    iterator = PyObject_GetIter(op);
    lines = iterator == NULL ? NULL : PyList_New(0);
    if (lines != NULL && append_lines(iterator, lines, hint) < 0) {
        if (self->plain) {
            give_lines_back(self, lines);
        }
        Py_CLEAR(lines);
    }
    Py_XDECREF(iterator);
    return lines;
}

PyObject *
pyio_file_unread(PyObject *op, PyObject *front)
{
    struct pyio_file *self = (struct pyio_file *)op;
    int result = 0;

    if (!PyBytes_CheckExact(front)) {
        (void)pyio_raise(PyExc_TypeError, "bytes are needed, not %R", front);
        return NULL;
    }
    if (pyio_file_want_readable(self) < 0 || pyio_file_enter(self) < 0) {
        return NULL;
    }
    if (PyBytes_GET_SIZE(front) > 0) {
        result = put_in_front(self, front);
    }
    pyio_file_leave(self);
    if (result < 0 && !PyErr_Occurred()) {
        (void)pyio_raise(PyExc_OSError, "%R can't be put back", front);
    }
    return result < 0 ? NULL : Py_NewRef(Py_None);
}
