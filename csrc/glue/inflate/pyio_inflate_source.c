/* SPDX-License-Identifier: MIT
 * pyio_inflate_source.c - where a reader's compressed bytes come from.
 *
 * A path is opened, and read by position where it is a regular file; an int
 * and a socket are read by their descriptor; any other object by its readinto
 * or read, which is right for whatever it has buffered.
 */
#include "glue/inflate/pyio_inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "io/cio_fd.h"

/* ----------------------------------------------------------------- attach */

static int
attach_descriptor(struct pyio_reader *r)
{
    struct stat st;
    off_t at;

    if (cio_sys->fstat(r->fd, &st) < 0) {
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (cio_stat_is_endless(&st)) {
        return pyio_raise(PyExc_ValueError,
                          "%R has no end: there is nothing to inflate",
                          r->name);
    }
    at = cio_sys->lseek(r->fd, 0, SEEK_CUR);
    r->start = at < 0 ? -1 : (int64_t)at;
    r->regular = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
    /* Only what we opened has an offset of its own to leave alone. */
    r->positional = at >= 0 && r->kind == PYIO_STREAM_PATH && r->regular;
    r->file_at = r->start;
    return 0;
}

static PyObject *
name_of(PyObject *source)
{
    PyObject *name;

    if (PyUnicode_Check(source) || PyBytes_Check(source)
        || PyLong_Check(source)) {
        return Py_NewRef(source);
    }
    if (PyObject_HasAttrString(source, "__fspath__")) {
        return PyOS_FSPath(source);
    }
    name = PyObject_GetAttrString(source, "name");
    if (name == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    }
    return name;
}

int
pyio_reader_attach(struct pyio_state *st, struct pyio_reader *r,
                   PyObject *source)
{
    int fd;

    if (pyio_stream_classify(st, source, &r->kind, &fd) < 0) {
        return -1;
    }
    r->fd = -1;
    r->start = -1;
    r->name = name_of(source);
    if (r->name == NULL && PyErr_Occurred()) {
        return -1;
    }
    r->source = Py_NewRef(source);
    switch (r->kind) {
    case PYIO_STREAM_PATH:
        r->fd = pyio_open(source, "rb", O_RDONLY, 0);
        if (r->fd < 0) {
            return -1;
        }
        break;
    case PYIO_STREAM_FD:
    case PYIO_STREAM_SOCKET:
        r->fd = fd;
        break;
    case PYIO_STREAM_RAW:
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
    case PYIO_STREAM_OBJECT:
        /* An object that has nothing but fileno() is read by that. */
        if (!PyObject_HasAttrString(source, "readinto")
            && !PyObject_HasAttrString(source, "read")) {
            if (fd < 0) {
                return pyio_raise(PyExc_TypeError,
                                  "%R has neither readinto() nor read()",
                                  source);
            }
            r->kind = PYIO_STREAM_FD;
            r->fd = fd;
        }
        break;
    }
    if (r->fd >= 0 && attach_descriptor(r) < 0) {
        if (!PyErr_Occurred()) {
            (void)PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, r->name);
        }
        if (r->kind == PYIO_STREAM_PATH) {
            (void)pyio_close(r->fd);
        }
        r->fd = -1;
        return -1;
    }
    return 0;
}

int64_t
pyio_reader_left(const struct pyio_reader *r)
{
    struct stat st;

    if (!r->positional || cio_sys->fstat(r->fd, &st) < 0
        || !S_ISREG(st.st_mode) || st.st_size < r->file_at) {
        return -1;
    }
    return (int64_t)st.st_size - r->file_at;
}

/* ----------------------------------------------------------------- reading */

static struct cio_done
pulled(struct pyio_reader *r, ssize_t n)
{
    if (n < 0) {
        return cio_done_sys(errno, 0);
    }
    r->in.end += (size_t)n;
    if (r->positional) {
        r->file_at += n;
    }
    return cio_done_of(n == 0 ? CIO_EOF : CIO_OK, (uint64_t)n);
}

struct cio_done
pyio_reader_pull(struct pyio_reader *r)
{
    struct pyio_window *const in = &r->in;
    const size_t room = in->size - in->end;

    return pulled(
        r, r->positional
               ? cio_sys->pread(r->fd, in->data + in->end, room, r->file_at)
               : cio_sys->read(r->fd, in->data + in->end, room));
}

struct cio_done
pyio_reader_pull_nowait(struct pyio_reader *r)
{
    struct pyio_window *const in = &r->in;

    return pulled(r, cio_sys->pread_nowait(r->fd, in->data + in->end,
                                           in->size - in->end, r->file_at));
}

/* Where a rewind has to go: asked before the first byte is taken. */
static int
note_start(struct pyio_reader *r)
{
    const int seekable = pyio_reader_seekable(r);
    PyObject *at;

    if (seekable <= 0) {
        return seekable;
    }
    at = PyObject_CallMethod(r->source, "tell", NULL);
    if (at != NULL) {
        r->start = PyLong_AsLongLong(at);
        Py_DECREF(at);
    }
    if (PyErr_Occurred()) {
        /* Who only reads on needs no position, and gzip asks for none. */
        r->start = -1;
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        PyErr_Clear();
    }
    return 0;
}

int
pyio_reader_ask(struct pyio_state *st, struct pyio_reader *r, size_t *got)
{
    struct pyio_window *const in = &r->in;
    int result;

    if (r->decoder.in_total == 0 && in->end == 0 && r->start < 0
        && note_start(r) < 0) {
        return -1;
    }
    result = pyio_object_read(st, r->source, in->data + in->end,
                              in->size - in->end, got, NULL);
    if (result == PYIO_KEPT) {
        /* Somebody may write there at any time: nobody's memory from now. */
        if (r->blocks != NULL) {
            pyio_blocks_abandon(r);
        } else {
            cio_buffer_abandon(in->lease);
            memset(in, 0, sizeof *in);
        }
        return -1;
    }
    in->end += *got;
    return result;
}

int
pyio_reader_wait(struct pyio_reader *r)
{
    PyObject *timeout;
    double seconds;
    int64_t until;

    if (r->kind != PYIO_STREAM_SOCKET) {
        errno = EAGAIN;
        (void)PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, r->name);
        return -1;
    }
    timeout = PyObject_CallMethod(r->source, "gettimeout", NULL);
    if (timeout == NULL) {
        return -1;
    }
    seconds = timeout == Py_None ? 1e9 : PyFloat_AsDouble(timeout);
    Py_DECREF(timeout);
    if (seconds == 0) {
        errno = EAGAIN;
        (void)PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    until = pyio_now_ns() + (int64_t)(seconds * 1e9);
    for (;;) {
        struct pollfd one = {r->fd, POLLIN, 0};
        const int64_t left = until - pyio_now_ns();
        int n;

        if (left <= 0) {
            return pyio_raise(PyExc_TimeoutError, "timed out");
        }
        Py_BEGIN_ALLOW_THREADS
        n = cio_sys->poll(
            &one, 1, left > 1000000000 ? 1000 : (int)(left / 1000000) + 1);
        Py_END_ALLOW_THREADS
        if (n > 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            (void)PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        if (PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
}

/* ----------------------------------------------------------------- seeking */

int
pyio_reader_seekable(struct pyio_reader *r)
{
    PyObject *answer;
    int result;

    if (r->fd >= 0) {
        return r->start >= 0;
    }
    answer = PyObject_CallMethod(r->source, "seekable", NULL);
    if (answer != NULL) {
        result = PyObject_IsTrue(answer);
        Py_DECREF(answer);
        return result;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    return PyObject_HasAttrString(r->source, "seek");
}

int
pyio_reader_rewind(struct pyio_reader *r)
{
    if (r->fd < 0 && r->start < 0 && r->decoder.in_total == 0
        && r->in.end == 0) {
        return 0; /* nothing was read yet */
    }
    if (r->start < 0) {
        PyObject *const unsupported = pyio_state_of(Py_TYPE(r))->unsupported;

        return pyio_raise(unsupported, "can't go back: %R is not seekable",
                          r->source);
    }
    if (r->positional) {
        r->file_at = r->start;
    } else if (r->fd >= 0) {
        if (cio_sys->lseek(r->fd, (off_t)r->start, SEEK_SET) < 0) {
            (void)PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, r->name);
            return -1;
        }
    } else {
        PyObject *const at =
            PyObject_CallMethod(r->source, "seek", "L", (long long)r->start);

        if (at == NULL) {
            return -1;
        }
        Py_DECREF(at);
    }
    pyio_blocks_end(r);
    cio_decoder_rewind(&r->decoder);
    r->in.at = r->in.end = 0;
    r->out.at = r->out.end = 0;
    r->in_ended = r->ended = false;
    r->ahead_errno = 0;
    r->failed = CIO_OK;
    r->pos = 0;
    Py_CLEAR(r->saved);
    return 0;
}
