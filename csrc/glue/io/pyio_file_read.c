/* SPDX-License-Identifier: MIT
 * pyio_file_read.c - reading from the position.
 *
 * A small read is served from the chunk; a large one goes past it, straight
 * into the memory of the result.
 */
#include "glue/base/pyio_read.h"
#include "glue/io/pyio_file.h"

#include <errno.h>

#include "base/cio_bytes.h"

static bool
would_block(struct cio_done done)
{
    return done.status == CIO_ERR_SYS && done.sys_errno == EAGAIN;
}

/* Begins a read: the lock is entered, nothing is pending. */
static int
begin(struct pyio_file *self)
{
    if (pyio_file_want_readable(self) < 0 || pyio_file_enter(self) < 0) {
        return -1;
    }
    if (pyio_file_start_reading(self) < 0) {
        pyio_file_leave(self);
        return -1;
    }
    return 0;
}

PyObject *
pyio_file_result(struct pyio_file *self, struct cio_done done,
                 struct pyio_result *result)
{
    if (would_block(done)) {
        if (result->nbytes == 0) {
            pyio_result_drop(result);
            return Py_NewRef(Py_None);
        }
        done.status = CIO_OK;
    }
    if (done.status != CIO_OK && done.status != CIO_EOF) {
        (void)pyio_file_check(self, done, (int64_t)done.nbytes);
        pyio_file_give_back(self, result);
        return NULL;
    }
    return pyio_result_finish(result);
}

/* True where filling the chunk would only add a copy: the rest of the file
 * fits the request, or the request is large enough for a call of its own. */
static bool
goes_past_chunk(const struct cio_file *file, uint64_t want)
{
    uint64_t rest;

    if (want >= file->chunk_nbytes
        || (file->cached && want >= CIO_DIRECT_NBYTES)) {
        return true;
    }
    rest = cio_file_rest_seen(file);
    return rest != 0 && rest <= want;
}

/* nbytes into memory, by way of the chunk where that saves calls. */
static struct cio_done
read_into(struct pyio_file *self, uint8_t *buf, size_t nbytes,
          unsigned threads)
{
    struct cio_file *file = &self->core;
    size_t got = cio_file_take(file, buf, nbytes);
    struct cio_done done = cio_done_of(CIO_OK, 0);

    pyio_file_drop_stash(self);
    while (got < nbytes && done.status == CIO_OK) {
        if (goes_past_chunk(file, nbytes - got)) {
            done = pyio_read_memory(file, buf + got, nbytes - got, threads);
            got += done.nbytes;
            break;
        }
        done = pyio_fill(file);
        if (done.status == CIO_OK) {
            got += cio_file_take(file, buf + got, nbytes - got);
        }
    }
    done.nbytes = got;
    return done;
}

/* ------------------------------------------------------------------ read */

static PyObject *
read_small(struct pyio_file *self, size_t size)
{
    struct pyio_result result;
    struct cio_done done;

    if (pyio_result_init(&result, size) < 0) {
        return NULL;
    }
    done = read_into(self, result.data, size, 1);
    result.nbytes = (size_t)done.nbytes;
    return pyio_file_result(self, done, &result);
}

static PyObject *
read_large(struct pyio_file *self, size_t limit)
{
    struct pyio_result result;
    const struct cio_done done =
        pyio_read_result(&self->core, limit, 0, &result);

    pyio_file_drop_stash(self);
    return pyio_file_result(self, done, &result);
}

static PyObject *
read_bytes(struct pyio_file *self, int64_t size)
{
    const size_t ahead = cio_file_ahead(&self->core);

    if (size < 0 && self->endless) {
        (void)pyio_raise(PyExc_ValueError,
                         "%R never ends: read() needs a size", self->name);
        return NULL;
    }
    if (size >= 0 && (size_t)size <= ahead) {
        PyObject *const bytes = PyBytes_FromStringAndSize(
            (const char *)self->core.chunk.data + self->core.chunk.begin,
            size);

        if (bytes != NULL && size > 0) {
            cio_chunk_used(&self->core.chunk, (size_t)size);
        }
        return bytes;
    }
    if (size < 0 || goes_past_chunk(&self->core, (uint64_t)size - ahead)) {
        return read_large(self, size < 0 ? SIZE_MAX : (size_t)size);
    }
    return read_small(self, (size_t)size);
}

PyObject *
pyio_file_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *bytes;
    int64_t size;

    if (pyio_size_argument("read", args, nargs, PYIO_SIZE_READ, &size) < 0) {
        return NULL;
    }
    if (PYIO_LIKELY(size >= 0) && pyio_file_is_quick(self)
        && (size_t)size <= cio_file_ahead(&self->core) && size > 0) {
        return read_bytes(self, size);
    }
    if (begin(self) < 0) {
        return NULL;
    }
    bytes = read_bytes(self, size);
    pyio_file_leave(self);
    return bytes;
}

/* ----------------------------------------------------------------- read1 */

/* One call of at most nbytes into memory; without a wait where that can be. */
static struct cio_done
read_once(struct cio_file *file, uint8_t *buf, size_t nbytes)
{
    struct cio_done done = cio_done_of(CIO_MORE, 0);

    if (nbytes <= CIO_NOWAIT_NBYTES) {
        done = cio_file_read_now(file, buf, nbytes);
    }
    while (done.status == CIO_MORE) {
        Py_BEGIN_ALLOW_THREADS
        done =
            cio_file_read(file, buf, cio_min_size(nbytes, CIO_SLICE_NBYTES));
        Py_END_ALLOW_THREADS
        if (done.status == CIO_MORE && PyErr_CheckSignals() < 0) {
            break;
        }
    }
    return done;
}

/* The chunk, filled if it was empty; false with *done where that failed. */
static bool
have_ahead(struct pyio_file *self, struct cio_done *done)
{
    if (cio_file_ahead(&self->core) > 0) {
        return true;
    }
    *done = pyio_fill(&self->core);
    return done->status == CIO_OK;
}

static PyObject *
read1_past_chunk(struct pyio_file *self, size_t size)
{
    struct pyio_result result;
    struct cio_done done;

    /* Memory follows what arrives: one call rarely brings more than this, and
     * read1 may bring less than was asked. */
    size = cio_min_size(size, cio_file_rest_seen(&self->core) != 0
                                  ? (size_t)cio_file_rest_seen(&self->core)
                                  : CIO_CHUNK_NBYTES);
    if (pyio_result_init(&result, size) < 0) {
        return NULL;
    }
    done = read_once(&self->core, result.data, size);
    result.nbytes = (size_t)done.nbytes;
    return pyio_file_result(self, done, &result);
}

static PyObject *
read1_bytes(struct pyio_file *self, size_t size)
{
    struct cio_done done;

    if (size == 0) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    if (cio_file_ahead(&self->core) == 0
        && goes_past_chunk(&self->core, size)) {
        return read1_past_chunk(self, size);
    }
    if (have_ahead(self, &done)) {
        return read_bytes(
            self, (int64_t)cio_min_size(size, cio_file_ahead(&self->core)));
    }
    if (would_block(done)) {
        return Py_NewRef(Py_None);
    }
    return pyio_file_check(self, done, 0) < 0
               ? NULL
               : PyBytes_FromStringAndSize(NULL, 0);
}

PyObject *
pyio_file_read1(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *bytes;
    int64_t size;

    if (pyio_size_argument("read1", args, nargs, PYIO_SIZE_SOME, &size) < 0) {
        return NULL;
    }
    if (size < 0) {
        size = self->chunk_size;
    }
    if (pyio_file_is_quick(self) && cio_file_ahead(&self->core) > 0
        && self->readable) {
        return read1_bytes(self, (size_t)size);
    }
    if (begin(self) < 0) {
        return NULL;
    }
    bytes = read1_bytes(self, (size_t)size);
    pyio_file_leave(self);
    return bytes;
}

/* -------------------------------------------------------------- readinto */

/* A would-be block, a failure or the count. What a failed call read goes back
 * to the position; where that can't be, it is kept as read-ahead. */
static PyObject *
count_result(struct pyio_file *self, struct cio_done done,
             const Py_buffer *view)
{
    if (would_block(done)) {
        if (done.nbytes == 0) {
            return Py_NewRef(Py_None);
        }
        done.status = CIO_OK;
    }
    if (done.status == CIO_OK || done.status == CIO_EOF) {
        return PyLong_FromUnsignedLongLong(done.nbytes);
    }
    (void)pyio_file_check(self, done, (int64_t)done.nbytes);
    if (done.nbytes > 0) {
        PyObject *const failure = pyio_exception_take();
        struct pyio_result kept = {0};

        if (!cio_file_unread(&self->core, done.nbytes)
            && pyio_result_init(&kept, (size_t)done.nbytes) == 0) {
            memcpy(kept.data, view->buf, (size_t)done.nbytes);
            kept.nbytes = (size_t)done.nbytes;
            pyio_file_give_back(self, &kept);
        }
        PyErr_Clear();
        pyio_exception_give(failure);
    }
    return NULL;
}

static struct cio_done
read_into_once(struct pyio_file *self, uint8_t *buf, size_t nbytes)
{
    struct cio_done done = cio_done_of(CIO_OK, 0);

    if (nbytes == 0) {
        return done;
    }
    if (cio_file_ahead(&self->core) == 0
        && goes_past_chunk(&self->core, nbytes)) {
        return read_once(&self->core, buf, nbytes);
    }
    if (have_ahead(self, &done)) {
        done.nbytes = cio_file_take(&self->core, buf, nbytes);
    }
    return done;
}

static PyObject *
fill_buffer(struct pyio_file *self, PyObject *buffer, const char *function,
            bool once)
{
    Py_buffer view;
    PyObject *count = NULL;

    if (pyio_file_want_readable(self) < 0
        || pyio_target_buffer(buffer, function, &view) < 0) {
        return NULL;
    }
    if (begin(self) == 0) {
        const size_t nbytes = (size_t)view.len;

        count = count_result(self,
                             once ? read_into_once(self, view.buf, nbytes)
                                  : read_into(self, view.buf, nbytes, 0),
                             &view);
        pyio_file_leave(self);
    }
    PyBuffer_Release(&view);
    return count;
}

PyObject *
pyio_file_readinto(PyObject *op, PyObject *buffer)
{
    return fill_buffer((struct pyio_file *)op, buffer, "readinto", false);
}

PyObject *
pyio_file_readinto1(PyObject *op, PyObject *buffer)
{
    return fill_buffer((struct pyio_file *)op, buffer, "readinto1", true);
}

/* ------------------------------------------------------------------ peek */

PyObject *
pyio_file_peek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *bytes = NULL;
    struct cio_done done = cio_done_of(CIO_OK, 0);
    int64_t size;

    if (pyio_size_argument("peek", args, nargs, PYIO_SIZE_SOME, &size) < 0) {
        return NULL;
    }
    if (begin(self) < 0) {
        return NULL;
    }
    if (have_ahead(self, &done) || would_block(done)
        || pyio_file_check(self, done, 0) == 0) {
        bytes = PyBytes_FromStringAndSize(
            (const char *)self->core.chunk.data + self->core.chunk.begin,
            (Py_ssize_t)cio_file_ahead(&self->core));
    }
    pyio_file_leave(self);
    return bytes;
}
