/* SPDX-License-Identifier: MIT
 * pyio_io_write.c - write_bytes: one buffer or many, in place or atomic.
 */
#include "glue/io/pyio_io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/cio_atomic.h"
#include "io/cio_fd.h"
#include "io/cio_move.h"

const char pyio_write_bytes_doc[] =
    "write_bytes($module, file, data, *, atomic=False, sync=False)\n--\n\n"
    "Write data, a buffer or an iterable of buffers, to file; the number of "
    "bytes.\n\nfile is a path, which is created or truncated, or a "
    "descriptor, "
    "which is\nwritten at its own offset and stays open. atomic: a temporary "
    "file in the same\nfolder is renamed over the target, so a failure leaves "
    "the old file. sync:\nwait until the device has it. OSError names the "
    "file and has `transferred`.";

struct sink {
    PyObject *name; /* owned */
    int fd;
    bool ours, is_atomic;
    bool created; /* by us: may be removed when nothing reached it */
    int64_t moved;
    PyObject *bytes; /* owned; the path for the kernel */
    struct cio_atomic atomic;
};

static int
check(const struct sink *sink, struct cio_done done)
{
    const struct pyio_context context = {sink->name, NULL, sink->moved};

    return pyio_check(NULL, done, &context);
}

/* --------------------------------------------------------------- opening */

/* Whether the file is ours to remove is known only by O_EXCL. */
static struct cio_done
open_or_create(struct sink *sink)
{
    const char *const path = PyBytes_AS_STRING(sink->bytes);
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    struct stat st;
    struct cio_done done =
        cio_fd_open(path, flags | O_EXCL, 0666, &sink->fd, &st);

    sink->created = done.status == CIO_OK;
    if (done.status == CIO_ERR_SYS && done.sys_errno == EEXIST) {
        done = cio_fd_open(path, flags | O_TRUNC, 0666, &sink->fd, &st);
    }
    return done;
}

static int
open_path(struct sink *sink)
{
    struct cio_done done;

    if (PySys_Audit("open", "Osi", sink->name, "w",
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
        < 0) {
        return -1;
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        if (sink->is_atomic) {
            done = cio_atomic_begin(&sink->atomic,
                                    PyBytes_AS_STRING(sink->bytes));
            sink->fd = sink->atomic.fd;
        } else {
            done = open_or_create(sink);
        }
        Py_END_ALLOW_THREADS
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0);
    return check(sink, done);
}

static int
sink_open(struct sink *sink, PyObject *file)
{
    if (PyLong_Check(file)) {
        if (sink->is_atomic) {
            return pyio_raise(PyExc_ValueError,
                              "atomic=True needs a path, not a descriptor");
        }
        sink->name = Py_NewRef(file);
        sink->fd = PyObject_AsFileDescriptor(file);
        return sink->fd < 0 ? -1 : 0;
    }
    sink->name = PyOS_FSPath(file);
    if (sink->name == NULL || pyio_as_path(sink->name, &sink->bytes) < 0) {
        return -1;
    }
    sink->ours = true;
    return open_path(sink);
}

/* --------------------------------------------------------------- writing */

static struct cio_done
write_detached(void *argument)
{
    return cio_write_step(argument);
}

static struct cio_done
write_vector_detached(void *argument)
{
    return cio_write_vector_step(argument);
}

static int
write_one(struct sink *sink, const Py_buffer *view)
{
    struct cio_move move = {.fd = sink->fd,
                            .off = CIO_OWN_OFFSET,
                            .buf = view->buf,
                            .left = (uint64_t)view->len};
    struct pyio_slices slices = {.step = write_detached, .argument = &move};
    struct cio_done done;

    if (view->len == 0) {
        return 0;
    }
    done = pyio_run_slices(&slices);
    sink->moved += (int64_t)done.nbytes;
    return check(sink, done);
}

/* Buffers of one writev; their exports are held until it is done. */
#define BATCH 256
struct batch {
    Py_buffer views[BATCH];
    struct iovec list[BATCH];
    int n;
    uint64_t nbytes;
};

static int
write_batch(struct sink *sink, struct batch *batch)
{
    struct cio_vector vector = {
        .fd = sink->fd, .list = batch->list, .n = batch->n};
    struct pyio_slices slices = {.step = write_vector_detached,
                                 .argument = &vector};
    int result = 0;

    if (batch->nbytes > 0) {
        const struct cio_done done = pyio_run_slices(&slices);

        sink->moved += (int64_t)done.nbytes;
        result = check(sink, done);
    }
    while (batch->n > 0) {
        PyBuffer_Release(&batch->views[--batch->n]);
    }
    batch->nbytes = 0;
    return result;
}

static int
add_buffer(struct sink *sink, struct batch *batch, PyObject *data)
{
    Py_buffer *view = &batch->views[batch->n];

    if (PyObject_GetBuffer(data, view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    batch->list[batch->n].iov_base = view->buf;
    batch->list[batch->n].iov_len = (size_t)view->len;
    batch->nbytes += (uint64_t)view->len;
    batch->n++;
    return batch->n == BATCH || batch->nbytes >= CIO_SLICE_NBYTES
               ? write_batch(sink, batch)
               : 0;
}

static int
write_many(struct sink *sink, PyObject *iterator)
{
    struct batch *batch = PyMem_Malloc(sizeof *batch);
    PyObject *data;
    int result = 0;

    if (batch == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    batch->n = 0;
    batch->nbytes = 0;
    while (result == 0 && (data = PyIter_Next(iterator)) != NULL) {
        result = add_buffer(sink, batch, data);
        Py_DECREF(data);
    }
    if (result == 0 && PyErr_Occurred()) {
        result = -1;
    }
    if (result == 0) {
        result = write_batch(sink, batch);
    }
    while (batch->n > 0) { /* after a failure */
        PyBuffer_Release(&batch->views[--batch->n]);
    }
    PyMem_Free(batch);
    return result;
}

/* ---------------------------------------------------------------- ending */

static int
sync_file(struct sink *sink)
{
    int result, sys_errno;

    do {
        Py_BEGIN_ALLOW_THREADS
        result = cio_sys->fsync(sink->fd);
        sys_errno = errno;
        Py_END_ALLOW_THREADS
    } while (result < 0 && sys_errno == EINTR && PyErr_CheckSignals() == 0);
    if (result == 0) {
        return 0;
    }
    return check(sink, sys_errno == EINTR ? cio_done_of(CIO_MORE, 0)
                                          : cio_done_sys(sys_errno, 0));
}

/* All is written: the descriptor is closed, or the new file put in place. */
static int
sink_finish(struct sink *sink, bool sync)
{
    struct cio_done done = cio_done_of(CIO_OK, 0);

    if (sink->is_atomic) {
        Py_BEGIN_ALLOW_THREADS
        done = cio_atomic_commit(&sink->atomic, sync);
        Py_END_ALLOW_THREADS
        sink->fd = -1;
        return check(sink, done);
    }
    if (sync && sync_file(sink) < 0) {
        return -1;
    }
    if (sink->ours) {
        const int fd = sink->fd;

        sink->fd = -1;
        Py_BEGIN_ALLOW_THREADS
        if (cio_sys->close(fd) < 0 && errno != EINTR) {
            done = cio_done_sys(errno, 0);
        }
        Py_END_ALLOW_THREADS
    }
    return check(sink, done);
}

/* Nothing is left of what failed before a byte reached it. */
static void
sink_drop(struct sink *sink)
{
    PyObject *const failure = pyio_exception_take();
    const bool told =
        failure != NULL && PyObject_HasAttrString(failure, "transferred");

    Py_BEGIN_ALLOW_THREADS
    if (sink->is_atomic) {
        cio_atomic_abort(&sink->atomic);
    } else if (sink->ours && sink->fd >= 0) {
        (void)cio_sys->close(sink->fd);
        if (sink->created && sink->moved == 0) {
            (void)cio_sys->unlinkat(AT_FDCWD, PyBytes_AS_STRING(sink->bytes),
                                    0);
        }
    }
    Py_END_ALLOW_THREADS
    sink->fd = -1;
    pyio_exception_give(failure);
    if (!told) {
        pyio_exception_attribute("transferred",
                                 PyLong_FromLongLong(sink->moved));
    }
}

PyObject *
pyio_write_bytes(PyObject *Py_UNUSED(mod), PyObject *const *args,
                 Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"file", "data", "atomic", "sync",
                                        NULL};
    static const struct pyio_signature signature = {"write_bytes", names, 2,
                                                    2};
    PyObject *given[4], *iterator = NULL;
    Py_buffer view = {0};
    struct sink sink = {.fd = -1, .atomic = {.fd = -1}};
    bool sync = false;
    int result = -1;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || pyio_as_bool(given[2], &sink.is_atomic) < 0
        || pyio_as_bool(given[3], &sync) < 0) {
        return NULL;
    }
    if (PyUnicode_Check(given[1])) {
        (void)pyio_raise(PyExc_TypeError,
                         "a bytes-like object is required, not 'str'");
        return NULL;
    }
    if (PyObject_CheckBuffer(given[1])
            ? PyObject_GetBuffer(given[1], &view, PyBUF_SIMPLE) < 0
            : (iterator = PyObject_GetIter(given[1])) == NULL) {
        return NULL;
    }
    if (sink_open(&sink, given[0]) == 0
        && (iterator != NULL ? write_many(&sink, iterator)
                             : write_one(&sink, &view))
               == 0) {
        result = sink_finish(&sink, sync);
    }
    if (result < 0) {
        sink_drop(&sink);
    }
    PyBuffer_Release(&view);
    Py_XDECREF(iterator);
    Py_XDECREF(sink.bytes);
    Py_XDECREF(sink.name);
    return result < 0 ? NULL : PyLong_FromLongLong(sink.moved);
}
