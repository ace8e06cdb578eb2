/* SPDX-License-Identifier: MIT
 * pyio_data_writer.c - DataWriter's buffer and its target. The values are in
 * pyio_data_number.c, _text.c, _array.c and _record_io.c, the file object's
 * methods in pyio_data_writer_file.c.
 *
 * What is buffered is [s.buffer, s.next). A value enters the buffer whole or
 * not at all; when the target fails, what it did not take stays there.
 */
#include "glue/data/pyio_data.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"

/* --------------------------------------------------------------- target */

/* One write(2) at most; 0 or an errno. */
static int
write_once(int fd, const uint8_t *data, size_t nbytes, size_t *put)
{
    ssize_t n;
    int sys_errno;

    Py_BEGIN_ALLOW_THREADS
    n = cio_sys->write(fd, data, cio_min_size(nbytes, CIO_SLICE_NBYTES));
    sys_errno = errno;
    Py_END_ALLOW_THREADS
    if (n < 0) {
        return sys_errno;
    }
    *put += (size_t)n;
    return n == 0 ? EIO : 0; /* a target that takes nothing would loop */
}

static int
emit_to_fd(struct pyio_data_writer *w, const uint8_t *data, size_t nbytes,
           size_t *put)
{
    while (*put < nbytes) {
        const int fd = data_stream_fd(&w->s);
        int error;

        if (fd < 0) {
            return -1;
        }
        error = write_once(fd, data + *put, nbytes - *put, put);
        if (error == EAGAIN && w->s.kind == PYIO_STREAM_SOCKET) {
            if (data_stream_wait(&w->s, fd, POLLOUT, *put) < 0) {
                return -1;
            }
        } else if (error != 0 && error != EINTR) {
            return data_stream_failed(&w->s, error, *put);
        }
        if ((*put < nbytes || error == EINTR) && PyErr_CheckSignals() < 0) {
            return data_stream_failed(&w->s, EINTR, *put);
        }
    }
    return 0;
}

static int
emit_to_object(struct pyio_data_writer *w, const uint8_t *data, size_t nbytes,
               size_t *put)
{
    struct pyio_state *const st = pyio_state_of(Py_TYPE(w));

    while (*put < nbytes) {
        bool would_block = false;
        size_t n = 0;
        const int result = pyio_object_write(st, w->s.object, data + *put,
                                             nbytes - *put, &n, &would_block);

        *put += n;
        if (result == 0 && would_block) {
            return data_stream_failed(&w->s, EAGAIN, *put);
        }
        if (result == 0 && n == 0) {
            return data_stream_failed(&w->s, EIO, *put);
        }
        if (result == 0 && *put < nbytes && PyErr_CheckSignals() < 0) {
            return data_stream_failed(&w->s, EINTR, *put);
        }
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

int
writer_emit_locked(struct pyio_data_writer *w, const uint8_t *data,
                   size_t nbytes, size_t *put)
{
    int result;

    *put = 0;
    switch (w->s.kind) {
    case PYIO_STREAM_PATH:
    case PYIO_STREAM_FD:
    case PYIO_STREAM_RAW:
    case PYIO_STREAM_SOCKET:
        result = emit_to_fd(w, data, nbytes, put);
        break;
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
    case PYIO_STREAM_OBJECT:
        result = emit_to_object(w, data, nbytes, put);
        break;
    default:
        Py_UNREACHABLE();
    }
    w->flushed += (int64_t)*put;
    return result;
}

/* The buffer holds this much. Unbuffered, what a target refused may be in it,
 * but there never is room for more: fast paths must not store. */
static void
set_pending(struct pyio_data_writer *w, size_t nbytes)
{
    struct data_stream *const s = &w->s;

    s->next = s->buffer + nbytes;
    s->limit = s->unbuffered ? s->next : s->buffer + s->capacity;
}

int
writer_drain_locked(struct pyio_data_writer *w)
{
    const size_t nbytes = writer_pending(w);
    size_t put;
    int result;

    if (nbytes == 0) {
        return 0;
    }
    result = writer_emit_locked(w, w->s.buffer, nbytes, &put);
    if (result == PYIO_KEPT) {
        data_stream_abandon_buffer(&w->s);
    }
    if (w->s.buffer != NULL) {
        memmove(w->s.buffer, w->s.buffer + put, nbytes - put);
        set_pending(w, nbytes - put);
    }
    return result < 0 ? -1 : 0;
}

int
writer_room_locked(struct pyio_data_writer *w, size_t nbytes)
{
    return w->s.capacity - writer_pending(w) >= nbytes
               ? 0
               : writer_drain_locked(w);
}

/* What the target did not take of a value that it began to take is kept, where
 * it fits: half a value would shift all behind it. */
static void
keep_rest(struct pyio_data_writer *w, const uint8_t *rest, size_t nbytes,
          size_t before, size_t put)
{
    const bool kept = before + put > 0 && nbytes - put <= w->s.capacity;

    if (kept) {
        memmove(w->s.buffer, rest + put, nbytes - put);
        set_pending(w, nbytes - put);
    }
    pyio_exception_attribute("transferred", PyLong_FromSize_t(before + put));
    if (PyErr_ExceptionMatches(PyExc_BlockingIOError)) {
        pyio_exception_attribute(
            "characters_written",
            PyLong_FromSize_t(before + (kept ? nbytes : put)));
    }
}

int
writer_send_locked(struct pyio_data_writer *w, const uint8_t *data,
                   size_t nbytes)
{
    size_t put;
    int result;

    if (writer_drain_locked(w) < 0) {
        return -1;
    }
    result = writer_emit_locked(w, data, nbytes, &put);
    if (result < 0) {
        keep_rest(w, data, nbytes, 0, put);
    }
    return result;
}

/* Unbuffered: head and body in one piece of memory, one write. */
static int
put_composed_locked(struct pyio_data_writer *w, const void *head,
                    size_t head_nbytes, const void *body, size_t body_nbytes)
{
    const size_t nbytes = head_nbytes + body_nbytes;
    uint8_t *const whole = cio_sys->malloc(nbytes);
    int result;

    if (whole == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    memcpy(whole, head, head_nbytes);
    memcpy(whole + head_nbytes, body, body_nbytes);
    result = writer_send_locked(w, whole, nbytes);
    if (result != PYIO_KEPT) {
        cio_free(whole);
        return result;
    }
    return -1; /* only `whole` was kept, not the caller's memory */
}

/* A value larger than the buffer: its head goes with as much of the body as
 * the buffer takes, the rest of the body from where it lies. */
static int
put_large_locked(struct pyio_data_writer *w, const void *head,
                 size_t head_nbytes, const uint8_t *body, size_t body_nbytes)
{
    const size_t first = w->s.capacity - head_nbytes;
    size_t put;
    int result;

    if (head_nbytes == 0) {
        return writer_send_locked(w, body, body_nbytes);
    }
    if (writer_drain_locked(w) < 0) {
        return -1;
    }
    memcpy(w->s.buffer, head, head_nbytes);
    memcpy(w->s.buffer + head_nbytes, body, first);
    result = writer_emit_locked(w, w->s.buffer, w->s.capacity, &put);
    if (result == PYIO_KEPT) {
        data_stream_abandon_buffer(&w->s);
    }
    if (result < 0) {
        return -1; /* nothing of it is pending; `transferred` tells */
    }
    result = writer_emit_locked(w, body + first, body_nbytes - first, &put);
    if (result < 0) {
        keep_rest(w, body + first, body_nbytes - first, w->s.capacity, put);
    }
    return result;
}

static int
put_locked(struct pyio_data_writer *w, const void *head, size_t head_nbytes,
           const void *body, size_t body_nbytes)
{
    if (w->s.unbuffered && head_nbytes > 0) {
        return put_composed_locked(w, head, head_nbytes, body, body_nbytes);
    }
    if (w->s.unbuffered) {
        return writer_send_locked(w, body, body_nbytes);
    }
    if (body_nbytes > w->s.capacity - head_nbytes) {
        return put_large_locked(w, head, head_nbytes, body, body_nbytes);
    }
    if (writer_room_locked(w, head_nbytes + body_nbytes) < 0) {
        return -1;
    }
    memcpy(w->s.next, head, head_nbytes);
    memcpy(w->s.next + head_nbytes, body, body_nbytes);
    w->s.next += head_nbytes + body_nbytes;
    return 0;
}

int
writer_put(struct pyio_data_writer *w, const void *head, size_t head_nbytes,
           const void *body, size_t body_nbytes)
{
    int result;

    if (body_nbytes == 0) {
        body = ""; /* an empty Buffer may point nowhere */
    }
    if (PYIO_LIKELY(pyio_lock_free(&w->s.head.lock)
                    && head_nbytes <= stream_room(&w->s)
                    && body_nbytes <= stream_room(&w->s) - head_nbytes)
        && w->s.next != NULL) {
        memcpy(w->s.next, head, head_nbytes);
        memcpy(w->s.next + head_nbytes, body, body_nbytes);
        w->s.next += head_nbytes + body_nbytes;
        return pyio_stream_check(&w->s.head); /* closed and nothing to store */
    }
    if (data_stream_enter(&w->s) < 0) {
        return -1;
    }
    result = put_locked(w, head, head_nbytes, body, body_nbytes);
    data_stream_leave(&w->s);
    return result;
}

Py_ssize_t
writer_put_buffer(struct pyio_data_writer *w, PyObject *data)
{
    Py_ssize_t nbytes;
    Py_buffer view;
    int result;

    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    nbytes = view.len;
    result = writer_put(w, "", 0, view.buf, (size_t)nbytes);
    if (result != PYIO_KEPT) { /* else somebody still looks through it */
        PyBuffer_Release(&view);
    }
    return result < 0 ? -1 : nbytes;
}

int
writer_tell_locked(struct pyio_data_writer *w, int64_t *position)
{
    bool seekable;

    if (data_stream_position(&w->s, position, &seekable) < 0) {
        return -1;
    }
    if (!seekable) {
        *position = w->flushed;
    }
    return __builtin_add_overflow(*position, (int64_t)writer_pending(w),
                                  position)
               ? pyio_raise(PyExc_OverflowError, "position is 2**63 or more")
               : 0;
}

/* ----------------------------------------------------------------- life */

static int
attach(struct pyio_data_writer *w, PyObject *target)
{
    struct data_stream *const s = &w->s;
    struct stat info;

    if (pyio_stream_classify(pyio_state_of(Py_TYPE(w)), target, &s->kind,
                             &s->fd)
        < 0) {
        return -1;
    }
    if (s->kind == PYIO_STREAM_FD && cio_sys->fstat(s->fd, &info) < 0) {
        return data_stream_failed(s, errno, 0); /* as builtins.open does */
    }
    if (s->buffer == NULL) {
        s->buffer = cio_sys->malloc(s->capacity);
        if (s->buffer == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
    }
    if (s->kind == PYIO_STREAM_PATH) {
        s->fd = pyio_open(target, "wb", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (s->fd < 0) {
            return -1;
        }
        s->owns_fd = true;
    }
    return data_stream_hold(s, target);
}

int
writer_init(struct pyio_data_writer *w, PyObject *target, PyObject *byteorder,
            PyObject *buffer_size)
{
    int result;

    if (data_stream_init(&w->s, byteorder, buffer_size) < 0) {
        return -1;
    }
    result = attach(w, target);
    if (result == 0) {
        set_pending(w, 0);
        w->flushed = 0;
    }
    return data_stream_made(&w->s, result);
}
