/* SPDX-License-Identifier: MIT
 * pyio_file_write.c - writing: small pieces gathered in the chunk, large ones
 * straight through.
 */
#include "glue/io/pyio_file.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "io/cio_move.h"

static struct cio_done
flush_detached(void *argument)
{
    return cio_file_flush(argument);
}

static struct cio_done
flush_pending(struct pyio_file *self)
{
    struct pyio_slices slices = {.step = flush_detached,
                                 .argument = &self->core};

    if (!self->core.dirty) {
        return cio_done_of(CIO_OK, 0);
    }
    return pyio_run_slices(&slices);
}

static bool
would_block(struct cio_done done)
{
    return done.status == CIO_ERR_SYS && done.sys_errno == EAGAIN;
}

/* BlockingIOError with characters_written, as BufferedWriter raises it. */
static int
raise_blocking(struct pyio_file *self, size_t accepted)
{
    PyObject *const error = PyObject_CallFunction(
        PyExc_BlockingIOError, "isn", EAGAIN,
        "write could not complete without blocking", (Py_ssize_t)accepted);

    (void)self;
    if (error != NULL) {
        PyErr_SetObject(PyExc_BlockingIOError, error);
        Py_DECREF(error);
        pyio_exception_attribute("transferred", PyLong_FromSize_t(accepted));
    }
    return -1;
}

int
pyio_file_flush(struct pyio_file *self)
{
    const struct cio_done done = flush_pending(self);

    if (would_block(done)) {
        return raise_blocking(self, 0);
    }
    return pyio_file_check(self, done, (int64_t)done.nbytes);
}

static struct cio_done
write_detached(void *argument)
{
    return cio_write_step(argument);
}

/* So that more can be put behind bytes that are only lent. */
static bool
own_pending(struct pyio_file *self)
{
    if (!cio_file_own(&self->core)) {
        return false;
    }
    Py_CLEAR(self->stash);
    return true;
}

/* Into the chunk, where there is room. With nothing pending, large bytes are
 * kept instead of copied; memory that may change can't be kept, and its copy
 * costs half of the write, so it is left to be written now. */
static bool
gather(struct pyio_file *self, const void *data, size_t nbytes,
       PyObject *owner)
{
    struct cio_file *file = &self->core;

    if (nbytes >= file->chunk_nbytes) {
        return false;
    }
    if (nbytes >= CIO_ADOPT_NBYTES && file->chunk.data == NULL) {
        if (PyBytes_CheckExact(owner)) {
            cio_file_adopt(file, data, nbytes);
            Py_XSETREF(self->stash, Py_NewRef(owner));
            return true;
        }
        if (nbytes >= file->chunk_nbytes / CIO_DIRECT_SHARE) {
            return false;
        }
    }
    if (file->chunk.adopted
        && (nbytes > file->chunk_nbytes - cio_file_pending(file)
            || !own_pending(self))) {
        return false;
    }
    if (nbytes > cio_file_room(file)) {
        return false;
    }
    cio_file_put(file, data, nbytes);
    return true;
}

/* As much as there is room for; the rest can't be had without waiting. */
static Py_ssize_t
buffer_some(struct pyio_file *self, const uint8_t *data, size_t nbytes,
            size_t written)
{
    struct cio_chunk *chunk = &self->core.chunk;
    size_t n;

    if (chunk->adopted && !own_pending(self)) {
        return raise_blocking(self, written);
    }
    if (chunk->begin > 0) { /* a flush wrote some of it */
        memmove(chunk->data, chunk->data + chunk->begin,
                cio_chunk_held(chunk));
        chunk->end -= chunk->begin;
        chunk->begin = 0;
    }
    n = cio_min_size(cio_file_room(&self->core), nbytes - written);
    if (n > 0) {
        cio_file_put(&self->core, data + written, n);
    }
    if (written + n < nbytes) {
        return raise_blocking(self, written + n);
    }
    return (Py_ssize_t)nbytes;
}

/* Not all of it fits: first what is pending, then the data itself, of which
 * less than a chunk stays. */
static Py_ssize_t
write_through(struct pyio_file *self, const uint8_t *data, size_t nbytes,
              PyObject *owner)
{
    struct cio_move move = {.fd = self->core.fd,
                            .off = CIO_OWN_OFFSET,
                            .buf = (uint8_t *)(uintptr_t)data,
                            .left = nbytes};
    struct pyio_slices slices = {.step = write_detached, .argument = &move};
    struct cio_done done;

    if (self->core.dirty) {
        done = flush_pending(self);
        if (would_block(done)) {
            return buffer_some(self, data, nbytes, 0);
        }
        if (done.status != CIO_OK) {
            return pyio_file_check(self, done, 0);
        }
    }
    if (gather(self, data, nbytes, owner)) {
        return (Py_ssize_t)nbytes;
    }
    done = pyio_run_slices(&slices);
    if (would_block(done)) {
        return buffer_some(self, data, nbytes, (size_t)done.nbytes);
    }
    return pyio_file_check(self, done, (int64_t)done.nbytes) < 0
               ? -1
               : (Py_ssize_t)nbytes;
}

/* Under the lock; the count, or -1. */
static Py_ssize_t
write_bytes(struct pyio_file *self, const void *data, size_t nbytes,
            PyObject *owner)
{
    if (nbytes == 0) {
        return 0;
    }
    if (cio_file_ahead(&self->core) > 0
        && pyio_file_check(self, cio_file_drop_ahead(&self->core), 0) < 0) {
        return -1;
    }
    if (gather(self, data, nbytes, owner)) {
        return (Py_ssize_t)nbytes;
    }
    return write_through(self, data, nbytes, owner);
}

static Py_ssize_t
write_object(struct pyio_file *self, PyObject *data)
{
    Py_buffer view;
    Py_ssize_t put;

    if (PyUnicode_Check(data)) {
        return pyio_raise(PyExc_TypeError,
                          "a bytes-like object is required, not 'str'");
    }
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    put = pyio_file_enter(self);
    if (put == 0) {
        put = write_bytes(self, view.buf, (size_t)view.len, data);
        pyio_file_leave(self);
    }
    PyBuffer_Release(&view);
    return put;
}

PyObject *
pyio_file_write(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    Py_ssize_t put;

    if (nargs != 1) {
        PyErr_Format(PyExc_TypeError,
                     "write() takes exactly one argument (%zd given)", nargs);
        return NULL;
    }
    if (pyio_file_want_writable(self) < 0) {
        return NULL;
    }
    if (PyBytes_CheckExact(args[0]) && pyio_lock_free(&self->head.lock)
        && self->core.dirty) {
        const size_t nbytes = (size_t)PyBytes_GET_SIZE(args[0]);

        if (nbytes <= self->core.chunk.capacity - self->core.chunk.end) {
            cio_file_put(&self->core, PyBytes_AS_STRING(args[0]), nbytes);
            return PyLong_FromSize_t(nbytes);
        }
    }
    put = write_object(self, args[0]);
    return put < 0 ? NULL : PyLong_FromSsize_t(put);
}

PyObject *
pyio_file_writelines(PyObject *op, PyObject *lines)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *iterator, *line;

    if (pyio_stream_check(&self->head) < 0) {
        return NULL;
    }
    iterator = PyObject_GetIter(lines);
    if (iterator == NULL) {
        return NULL;
    }
    while ((line = PyIter_Next(iterator)) != NULL) {
        PyObject *const put =
            self->plain ? pyio_file_write(op, &line, 1)
                        : PyObject_CallMethod(op, "write", "O", line);

        Py_DECREF(line);
        if (put == NULL) {
            break;
        }
        Py_DECREF(put);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *
pyio_file_flush_method(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    int result;

    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    result = pyio_file_flush(self);
    pyio_file_leave(self);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static int
truncate_to(struct pyio_file *self, int64_t size)
{
    int result, sys_errno;

    do {
        Py_BEGIN_ALLOW_THREADS
        result = cio_sys->ftruncate(self->core.fd, (off_t)size);
        sys_errno = errno;
        Py_END_ALLOW_THREADS
    } while (result < 0 && sys_errno == EINTR && PyErr_CheckSignals() == 0);
    if (result < 0) {
        return pyio_file_check(self,
                               sys_errno == EINTR ? cio_done_of(CIO_MORE, 0)
                                                  : cio_done_sys(sys_errno, 0),
                               -1);
    }
    return 0;
}

PyObject *
pyio_file_truncate(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    int64_t size = -1;
    int result;

    if (nargs > 1) {
        PyErr_Format(PyExc_TypeError,
                     "truncate() takes at most one argument (%zd given)",
                     nargs);
        return NULL;
    }
    if (pyio_file_want_writable(self) < 0) {
        return NULL;
    }
    if (nargs == 1 && args[0] != Py_None) {
        /* A negative one is the kernel's to refuse, as io does it. */
        size = PyLong_AsLongLong(args[0]);
        if (size == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    result = pyio_file_settle(self);
    if (result == 0 && (nargs == 0 || args[0] == Py_None)) {
        result = pyio_file_tell(self, &size);
    }
    if (result == 0) {
        result = truncate_to(self, size);
    }
    pyio_file_leave(self);
    return result < 0 ? NULL : PyLong_FromLongLong(size);
}

PyObject *
pyio_file_sync(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
               PyObject *kwnames)
{
    static const char *const names[] = {"data_only", NULL};
    static const struct pyio_signature signature = {"sync", names, 0, 0};
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *value;
    bool data_only = false;
    int result, sys_errno = 0;

    if (pyio_arguments(&signature, args, nargs, kwnames, &value) < 0
        || pyio_as_bool(value, &data_only) < 0 || pyio_file_enter(self) < 0) {
        return NULL;
    }
    result = pyio_file_flush(self);
    if (result == 0) {
        do {
            Py_BEGIN_ALLOW_THREADS
            result = data_only ? cio_sys->fdatasync(self->core.fd)
                               : cio_sys->fsync(self->core.fd);
            sys_errno = errno;
            Py_END_ALLOW_THREADS
        } while (result < 0 && sys_errno == EINTR
                 && PyErr_CheckSignals() == 0);
        if (result < 0) {
            result = pyio_file_check(self,
                                     sys_errno == EINTR
                                         ? cio_done_of(CIO_MORE, 0)
                                         : cio_done_sys(sys_errno, 0),
                                     -1);
        }
    }
    pyio_file_leave(self);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}
