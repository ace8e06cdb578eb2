/* SPDX-License-Identifier: MIT
 * pyio_transfer_ends.c - the ends of a transfer as Python gives them: paths,
 * descriptors, files with buffers of their own, sockets, objects.
 */
#include "glue/transfer/pyio_transfer.h"

#include <errno.h>
#include <fcntl.h>

#include "glue/io/pyio_file.h"

void
pyio_end_init(struct pyio_end *end, PyObject *object)
{
    memset(end, 0, sizeof *end);
    end->object = object;
    end->fd = -1;
    end->given = -1;
    end->before = -1;
}

int
pyio_end_classify(struct pyio_state *st, struct pyio_end *end)
{
    if (pyio_stream_classify(st, end->object, &end->kind, &end->fd) < 0) {
        return -1;
    }
    if (end->kind == PYIO_STREAM_PATH) {
        end->path = PyOS_FSPath(end->object);
        return end->path == NULL ? -1 : 0;
    }
    /* Whoever closes the File meanwhile must not let the number be taken by
     * another file. */
    if (end->kind == PYIO_STREAM_FILE) {
        if (pyio_file_hold((struct pyio_file *)end->object) < 0) {
            return -1;
        }
        end->held = true;
    }
    return 0;
}

/* --------------------------------------------------- methods of the object */

int
pyio_end_ask(PyObject *object, const char *name)
{
    PyObject *const answer = PyObject_CallMethod(object, name, NULL);
    int result;

    if (answer == NULL) {
        return -1;
    }
    result = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return result;
}

static int
ask_position(PyObject *object, int64_t *position)
{
    PyObject *const answer = PyObject_CallMethod(object, "tell", NULL);

    if (answer == NULL) {
        return -1;
    }
    *position = PyLong_AsLongLong(answer);
    Py_DECREF(answer);
    return *position == -1 && PyErr_Occurred() ? -1 : 0;
}

static int
call_seek(PyObject *object, int64_t position, int whence)
{
    PyObject *const answer =
        PyObject_CallMethod(object, "seek", "Li", (long long)position, whence);

    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int
call_flush(PyObject *object)
{
    PyObject *const answer = PyObject_CallMethod(object, "flush", NULL);

    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static int
need(struct pyio_state *st, PyObject *object, const char *ability)
{
    const int is = pyio_end_ask(object, ability);

    if (is == 0) {
        return pyio_raise(st->unsupported, "not %s", ability);
    }
    return is < 0 ? -1 : 0;
}

/* ---------------------------------------------------------- descriptors */

static int
check_core(struct cio_done done, const struct pyio_end *end)
{
    struct pyio_context context = {NULL, NULL, -1};
    PyObject *name;
    int result;

    if (done.status == CIO_OK) {
        return 0;
    }
    name = pyio_end_name(end);
    context.filename = name;
    result = pyio_check(NULL, done, &context);
    Py_XDECREF(name);
    return result;
}

/* A path's descriptor is ours alone: nobody sees its offset. */
static int
open_core_of_path(struct pyio_end *end, struct cio_end *core)
{
    struct stat st;
    int result, error;

    Py_BEGIN_ALLOW_THREADS
    result = cio_sys->fstat(end->fd, &st);
    error = errno;
    Py_END_ALLOW_THREADS
    if (result < 0) {
        return check_core(cio_done_sys(error, 0), end);
    }
    cio_end_of_stat(core, end->fd, &st,
                    end->given < 0 ? 0 : (uint64_t)end->given);
    if (end->given >= 0) {
        core->positional = true;
    }
    return 0;
}

static int
socket_timeout(PyObject *socket, struct cio_end *core)
{
    PyObject *const timeout = PyObject_CallMethod(socket, "gettimeout", NULL);
    double seconds;

    if (timeout == NULL) {
        return -1;
    }
    if (timeout == Py_None) {
        Py_DECREF(timeout);
        core->timeout_ms = -1;
        return 0;
    }
    seconds = PyFloat_AsDouble(timeout);
    Py_DECREF(timeout);
    if (seconds == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (seconds >= (double)INT32_MAX / 1000.0) {
        core->timeout_ms = INT32_MAX;
    } else {
        core->timeout_ms = (int)(seconds * 1000.0 + 0.999);
    }
    return 0;
}

static int
open_core_of_fd(struct pyio_end *end, struct cio_end *core)
{
    struct cio_done done;

    Py_BEGIN_ALLOW_THREADS
    done = cio_end_open(core, end->fd,
                        end->given < 0 ? CIO_OFFSET_FOLLOW : CIO_OFFSET_KEEP,
                        end->given);
    Py_END_ALLOW_THREADS
    if (check_core(done, end) < 0) {
        return -1;
    }
    return end->kind == PYIO_STREAM_SOCKET ? socket_timeout(end->object, core)
                                           : 0;
}

/* A file object with a position of its own: read and written at that position
 * under it, its own descriptor's offset kept where it believes it to be, and
 * told by seek() in the end. */
static int
open_core_of_file(struct pyio_end *end, struct cio_end *core)
{
    struct cio_done done;
    int64_t at = end->given;

    if (at < 0 && ask_position(end->object, &at) < 0) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_end_open(core, end->fd, CIO_OFFSET_KEEP, at);
    Py_END_ALLOW_THREADS
    end->seeks = end->given < 0;
    return check_core(done, end);
}

/* ---------------------------------------------------------------- source */

int
pyio_is_bytes_io(PyObject *object)
{
    PyObject *const io = PyImport_ImportModule("_io");
    PyObject *const type =
        io == NULL ? NULL : PyObject_GetAttrString(io, "BytesIO");
    const int result =
        type == NULL ? -1 : Py_IS_TYPE(object, (PyTypeObject *)type);

    Py_XDECREF(type);
    Py_XDECREF(io);
    return result;
}

static int
lend_memory(struct pyio_end *end)
{
    PyObject *const view = PyObject_CallMethod(end->object, "getbuffer", NULL);
    int result;

    if (view == NULL) {
        return -1;
    }
    result = PyObject_GetBuffer(view, &end->memory, PyBUF_SIMPLE);
    Py_DECREF(view);
    if (result == 0) {
        end->pull = PYIO_PULL_MEMORY;
        end->memory_at = end->given;
        if (end->given < 0 && ask_position(end->object, &end->memory_at) < 0) {
            return -1;
        }
        end->seeks = end->given < 0;
    }
    return result;
}

static int
place_object(struct pyio_end *end, struct cio_end *core)
{
    cio_end_of_caller(core);
    if (end->given >= 0) {
        core->positional = true;
        core->off = (uint64_t)end->given;
        if (ask_position(end->object, &end->before) < 0
            || call_seek(end->object, end->given, SEEK_SET) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
source_of_object(struct pyio_end *end, struct cio_end *core)
{
    const int in_memory = pyio_is_bytes_io(end->object);

    if (in_memory < 0) {
        return -1;
    }
    if (in_memory == 0) {
        end->pull = PYIO_PULL_OBJECT;
        return place_object(end, core);
    }
    if (lend_memory(end) < 0) {
        return -1;
    }
    cio_end_of_caller(core);
    core->positional = true;
    core->off = (uint64_t)end->memory_at;
    return 0;
}

static int
source_of_buffered(struct pyio_state *st, struct pyio_end *end,
                   struct cio_end *core)
{
    int seekable;

    if (need(st, end->object, "readable") < 0) {
        return -1;
    }
    seekable = pyio_end_ask(end->object, "seekable");
    if (seekable < 0) {
        return -1;
    }
    if (seekable == 0) { /* what it has read ahead comes first */
        if (end->given >= 0) {
            return check_core(cio_done_sys(ESPIPE, 0), end);
        }
        end->pull = PYIO_PULL_ONE;
        cio_end_of_caller(core);
        return 0;
    }
    return call_flush(end->object) < 0 ? -1 : open_core_of_file(end, core);
}

int
pyio_source_open(struct pyio_state *st, struct pyio_end *end,
                 struct cio_end *core)
{
    switch (end->kind) {
    case PYIO_STREAM_PATH:
        end->fd = pyio_open(end->path, "r", O_RDONLY, 0);
        end->opened = end->fd >= 0;
        return end->fd < 0 ? -1 : open_core_of_path(end, core);
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
        return source_of_buffered(st, end, core);
    case PYIO_STREAM_RAW:
        if (Py_IS_TYPE(end->object, (PyTypeObject *)st->file_io)
            && need(st, end->object, "readable") < 0) {
            return -1;
        }
        return open_core_of_fd(end, core);
    case PYIO_STREAM_FD:
    case PYIO_STREAM_SOCKET:
        return open_core_of_fd(end, core);
    case PYIO_STREAM_OBJECT:
        break;
    }
    return source_of_object(end, core);
}

/* ---------------------------------------------------------------- target */

/* Without O_TRUNC: its bytes go when the first new ones come, and not before
 * it is known that it isn't the source. */
static int
open_target_path(struct pyio_end *end)
{
    const struct pyio_context context = {end->path, NULL, -1};
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    PyObject *bytes;
    const char *path;
    int error = 0;

    if (pyio_as_path(end->path, &bytes) < 0) {
        return -1;
    }
    if (PySys_Audit("open", "Osi", end->path, "w",
                    flags | (end->given < 0 ? O_TRUNC : 0))
        < 0) {
        Py_DECREF(bytes);
        return -1;
    }
    path = PyBytes_AS_STRING(bytes);
    do {
        Py_BEGIN_ALLOW_THREADS
        end->fd = cio_sys->openat(AT_FDCWD, path, flags | O_EXCL, 0666);
        end->made = end->fd >= 0;
        if (end->fd < 0 && errno == EEXIST) {
            end->fd = cio_sys->openat(AT_FDCWD, path, flags, 0666);
        }
        error = end->fd < 0 ? errno : 0;
        Py_END_ALLOW_THREADS
    } while (error == EINTR && PyErr_CheckSignals() == 0);
    Py_DECREF(bytes);
    end->opened = end->fd >= 0;
    if (error != 0 && error != EINTR) {
        return pyio_check(NULL, cio_done_sys(error, 0), &context);
    }
    return error != 0 ? -1 : 0;
}

static int
target_of_path(struct pyio_end *end, struct cio_transfer *t)
{
    if (open_target_path(end) < 0 || open_core_of_path(end, &t->target) < 0) {
        return -1;
    }
    t->alone = end->given < 0;
    t->truncate =
        end->given < 0 && t->target.kind == CIO_END_FILE && t->target.size > 0;
    return 0;
}

static int
target_of_buffered(struct pyio_state *st, struct pyio_end *end,
                   struct cio_end *core)
{
    int seekable;

    if (need(st, end->object, "writable") < 0 || call_flush(end->object) < 0) {
        return -1;
    }
    seekable = pyio_end_ask(end->object, "seekable");
    if (seekable < 0) {
        return -1;
    }
    return seekable == 0 ? open_core_of_fd(end, core)
                         : open_core_of_file(end, core);
}

int
pyio_target_open(struct pyio_state *st, struct pyio_end *end,
                 struct cio_transfer *t)
{
    int result = -1;

    switch (end->kind) {
    case PYIO_STREAM_PATH:
        result = target_of_path(end, t);
        break;
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
        result = target_of_buffered(st, end, &t->target);
        break;
    case PYIO_STREAM_RAW:
        if (Py_IS_TYPE(end->object, (PyTypeObject *)st->file_io)
            && need(st, end->object, "writable") < 0) {
            break;
        }
        result = open_core_of_fd(end, &t->target);
        break;
    case PYIO_STREAM_FD:
    case PYIO_STREAM_SOCKET:
        result = open_core_of_fd(end, &t->target);
        break;
    case PYIO_STREAM_OBJECT:
        result = place_object(end, &t->target);
        break;
    }
    if (result == 0 && end->kind != PYIO_STREAM_PATH && t->target.fd >= 0) {
        result = check_core(cio_end_as_target(&t->target), end);
    }
    if (result == 0 && end->given >= 0 && t->target.append) {
        result = pyio_raise(PyExc_ValueError,
                            "target_offset can't be had on a target that is "
                            "open for appending");
    }
    return result;
}

/* ------------------------------------------------------------------- end */

int
pyio_end_settle(struct pyio_end *end, const struct cio_end *core)
{
    PyObject *const before = pyio_exception_take();
    int result = 0;

    if (end->memory.obj != NULL) {
        PyBuffer_Release(&end->memory);
    }
    if (end->seeks) {
        result = core->append
                     ? call_seek(end->object, 0, SEEK_END)
                     : call_seek(end->object, (int64_t)core->off, SEEK_SET);
    } else if (end->before >= 0) {
        result = call_seek(end->object, end->before, SEEK_SET);
    }
    if (before != NULL) {
        pyio_exception_give(before);
        return -1;
    }
    return result;
}

int
pyio_end_close(struct pyio_end *end)
{
    int result = 0;

    if (end->memory.obj != NULL) {
        PyBuffer_Release(&end->memory);
    }
    if (end->opened) {
        result = pyio_close(end->fd);
        end->opened = false;
    }
    if (end->held) {
        pyio_file_release((struct pyio_file *)end->object);
        end->held = false;
    }
    Py_CLEAR(end->path);
    return result;
}

void
pyio_target_remove(struct pyio_end *end)
{
    PyObject *const before = pyio_exception_take();
    PyObject *bytes;
    struct stat named, opened;

    if (pyio_as_path(end->path, &bytes) == 0) {
        const char *const path = PyBytes_AS_STRING(bytes);

        if (cio_sys->fstat(end->fd, &opened) == 0
            && cio_sys->fstatat(AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW)
                   == 0
            && S_ISREG(named.st_mode) && named.st_dev == opened.st_dev
            && named.st_ino == opened.st_ino) {
            (void)cio_sys->unlinkat(AT_FDCWD, path, 0);
        }
        Py_DECREF(bytes);
    }
    PyErr_Clear();
    pyio_exception_give(before);
}

PyObject *
pyio_end_name(const struct pyio_end *end)
{
    PyObject *name;

    if (end->kind == PYIO_STREAM_PATH) {
        return Py_NewRef(end->path);
    }
    if (end->kind == PYIO_STREAM_FD) {
        return Py_NewRef(end->object);
    }
    name = PyObject_GetAttrString(end->object, "name");
    if (name == NULL) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return name;
}
