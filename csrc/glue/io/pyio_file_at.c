/* SPDX-License-Identifier: MIT
 * pyio_file_at.c - reading and writing by position: many threads at once, no
 * lock but for bytes that the chunk holds.
 */
#include "glue/base/pyio_read.h"
#include "glue/io/pyio_file.h"

#include <errno.h>

#include "io/cio_move.h"

static int
arguments(const char *name, Py_ssize_t nargs)
{
    if (nargs != 2) {
        return pyio_raise(PyExc_TypeError,
                          "%s() takes exactly 2 arguments (%zd given)", name,
                          nargs);
    }
    return 0;
}

/* What the chunk holds back, or holds of old bytes, must not be missed by a
 * call that goes past it. */
static int
settle(struct pyio_file *self, bool writing)
{
    int result;

    if (!self->writable || self->core.chunk.data == NULL
        || (!writing && !self->core.dirty)) {
        return 0;
    }
    if (pyio_file_enter(self) < 0) {
        return -1;
    }
    result = writing ? pyio_file_settle(self) : pyio_file_flush(self);
    pyio_file_leave(self);
    return result;
}

/* A view of the descriptor at one position, for one call. */
static struct cio_file
core_at(const struct pyio_file *self, int64_t off)
{
    return (struct cio_file){
        .fd = self->core.fd,
        .seekable = true,
        .cached = self->core.cached,
        .refused = self->core.refused,
        .off = off,
        .size_seen = self->core.size_seen,
        .chunk_nbytes = self->core.chunk_nbytes,
    };
}

static int
begin_at(struct pyio_file *self, bool writing)
{
    if ((writing ? pyio_file_want_writable(self)
                 : pyio_file_want_readable(self))
            < 0
        || settle(self, writing) < 0) {
        return -1;
    }
    return pyio_file_hold(self);
}

PyObject *
pyio_file_pread(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    struct pyio_result result;
    struct cio_file core;
    struct cio_done done;
    int64_t size, off;
    PyObject *bytes = NULL;

    if (arguments("pread", nargs) < 0 || pyio_as_size(args[0], &size) < 0
        || pyio_as_offset(args[1], "offset", &off) < 0
        || pyio_end_fits(off, size < 0 ? 0 : size) < 0
        || begin_at(self, false) < 0) {
        return NULL;
    }
    core = core_at(self, off);
    done = pyio_read_result(&core, size < 0 ? SIZE_MAX : (size_t)size, 0,
                            &result);
    self->core.refused = core.refused;
    if (done.status == CIO_OK || done.status == CIO_EOF) {
        bytes = pyio_result_finish(&result);
    } else {
        (void)pyio_file_check(self, done, (int64_t)done.nbytes);
        pyio_result_drop(&result);
    }
    pyio_file_release(self);
    return bytes;
}

PyObject *
pyio_file_preadinto(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    struct cio_file core;
    struct cio_done done;
    Py_buffer view;
    int64_t off;
    PyObject *count = NULL;

    if (arguments("preadinto", nargs) < 0
        || pyio_as_offset(args[1], "offset", &off) < 0
        || pyio_target_buffer(args[0], "preadinto", &view) < 0) {
        return NULL;
    }
    if (pyio_end_fits(off, view.len) == 0 && begin_at(self, false) == 0) {
        core = core_at(self, off);
        done = pyio_read_memory(&core, view.buf, (size_t)view.len, 0);
        self->core.refused = core.refused;
        if (pyio_file_check(self, done, (int64_t)done.nbytes) == 0) {
            count = PyLong_FromUnsignedLongLong(done.nbytes);
        }
        pyio_file_release(self);
    }
    PyBuffer_Release(&view);
    return count;
}

static struct cio_done
write_detached(void *argument)
{
    return cio_write_step(argument);
}

PyObject *
pyio_file_pwrite(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    Py_buffer view;
    int64_t off;
    PyObject *count = NULL;

    if (arguments("pwrite", nargs) < 0
        || pyio_as_offset(args[1], "offset", &off) < 0
        || PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (self->append && pyio_stream_is_open(&self->head)) {
        /* Linux would append all the same. */
        (void)pyio_stream_unsupported(&self->head, "pwrite() in append mode");
    } else if (pyio_end_fits(off, view.len) == 0
               && begin_at(self, true) == 0) {
        struct cio_move move = {.fd = self->core.fd,
                                .off = off,
                                .buf = view.buf,
                                .left = (uint64_t)view.len};
        struct pyio_slices slices = {.step = write_detached,
                                     .argument = &move};
        const struct cio_done done = pyio_run_slices(&slices);

        if (pyio_file_check(self, done, (int64_t)done.nbytes) == 0) {
            count = PyLong_FromSsize_t(view.len);
        }
        pyio_file_release(self);
    }
    PyBuffer_Release(&view);
    return count;
}
