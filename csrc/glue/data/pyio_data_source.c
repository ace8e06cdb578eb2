/* SPDX-License-Identifier: MIT
 * pyio_data_source.c - what DataReader reads from: memory, a path by position,
 * a descriptor, or an object's methods.
 */
#include "glue/data/pyio_data.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "io/cio_fd.h"

/* --------------------------------------------------------------- source */

/* One read of a descriptor; 0 or an errno. */
static int
read_once(const struct pyio_data_reader *r, int fd, uint8_t *data,
          size_t nbytes, size_t *got)
{
    const size_t want = cio_min_size(nbytes, CIO_SLICE_NBYTES);
    const int64_t offset = r->end_offset;
    const bool positional = r->positional;
    ssize_t n;
    int sys_errno;

    Py_BEGIN_ALLOW_THREADS
    n = positional ? cio_sys->pread(fd, data, want, offset)
                   : cio_sys->read(fd, data, want);
    sys_errno = errno;
    Py_END_ALLOW_THREADS
    *got = n < 0 ? 0 : (size_t)n;
    return n < 0 ? sys_errno : 0;
}

static int
fetch_from_fd(struct pyio_data_reader *r, uint8_t *data, size_t nbytes,
              size_t *got)
{
    int error;

    do {
        const int fd = data_stream_fd(&r->s);

        if (fd < 0) {
            return -1;
        }
        error = read_once(r, fd, data, nbytes, got);
        if (error == ESPIPE && r->positional && r->end_offset == 0) {
            /* A regular file that can't seek, as /proc has some. */
            r->positional = r->seekable = r->cached = false;
            error = read_once(r, fd, data, nbytes, got);
        }
        if (error == EAGAIN && r->s.kind == PYIO_STREAM_SOCKET) {
            if (data_stream_wait(&r->s, fd, POLLIN, 0) < 0) {
                return -1;
            }
        } else if (error != 0 && error != EINTR) {
            return data_stream_failed(&r->s, error, 0);
        }
        if (error != 0 && PyErr_CheckSignals() < 0) {
            return -1;
        }
    } while (error != 0);
    return 0;
}

int
reader_source_read(struct pyio_data_reader *r, uint8_t *data, size_t nbytes,
                   size_t *got)
{
    int result;

    *got = 0;
    if (r->memory) {
        return 0;
    }
    /* A source may say that it stands anywhere; nothing lies behind 2**63. */
    nbytes =
        (size_t)cio_min_u64(nbytes, (uint64_t)(INT64_MAX - r->end_offset));
    if (nbytes == 0) {
        return 0;
    }
    switch (r->s.kind) {
    case PYIO_STREAM_PATH:
    case PYIO_STREAM_FD:
    case PYIO_STREAM_RAW:
    case PYIO_STREAM_SOCKET:
        result = fetch_from_fd(r, data, nbytes, got);
        break;
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
    case PYIO_STREAM_OBJECT:
        result = pyio_object_read(pyio_state_of(Py_TYPE(r)), r->s.object, data,
                                  nbytes, got, NULL);
        break;
    default:
        Py_UNREACHABLE();
    }
    r->end_offset += (int64_t)*got;
    return result;
}

int
reader_source_refill(struct pyio_data_reader *r, uint8_t *data, size_t nbytes,
                     size_t *got)
{
    const int64_t offset = r->positional ? r->end_offset : CIO_OWN_OFFSET;
    struct cio_done done;
    bool refused = false;
    int fd;

    if (r->cached && !r->s.kept_gil && nbytes <= CIO_NOWAIT_NBYTES) {
        fd = data_stream_fd(&r->s);
        if (fd < 0) {
            *got = 0;
            return -1;
        }
        done = cio_fd_read_nowait(fd, data, nbytes, offset, &refused);
        r->cached = !refused;
        if (done.status == CIO_OK) {
            r->s.kept_gil = true;
            *got = (size_t)done.nbytes;
            r->end_offset += (int64_t)*got;
            return 0;
        }
    }
    return reader_source_read(r, data, nbytes, got);
}

int
reader_remaining_locked(struct pyio_data_reader *r, uint64_t *nbytes)
{
    struct stat st;
    int64_t at = r->end_offset;
    bool seekable = true;
    int fd;

    *nbytes = stream_room(&r->s);
    if (r->memory) {
        return 1;
    }
    if (!reader_by_descriptor(r)) {
        return 0;
    }
    fd = data_stream_fd(&r->s);
    if (fd < 0) {
        return -1;
    }
    if (cio_sys->fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)
        || st.st_size == 0) { /* /proc says 0 and means unknown */
        return 0;
    }
    if (!r->positional && data_stream_position(&r->s, &at, &seekable) < 0) {
        return -1;
    }
    if (seekable && st.st_size > at) {
        *nbytes += (uint64_t)(st.st_size - at);
    }
    return seekable;
}

/* ----------------------------------------------------------------- life */

static int
init_memory(struct pyio_data_reader *r, PyObject *source)
{
    struct data_stream *const s = &r->s;

    if (PyObject_GetBuffer(source, &r->view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    s->next = r->view.buf;
    s->limit = s->next + r->view.len;
    r->end_offset = r->view.len;
    r->memory = r->seekable = true;
    s->kind = PYIO_STREAM_OBJECT;
    return 0;
}

static int
init_path(struct pyio_data_reader *r, PyObject *source)
{
    struct data_stream *const s = &r->s;
    struct stat st;

    s->fd = pyio_open(source, "rb", O_RDONLY, 0);
    if (s->fd < 0) {
        return -1;
    }
    if (cio_sys->fstat(s->fd, &st) < 0 || S_ISDIR(st.st_mode)) {
        const int sys_errno = S_ISDIR(st.st_mode) ? EISDIR : errno;
        const struct pyio_context context = {source, NULL, -1};

        (void)pyio_check(NULL, cio_done_sys(sys_errno, 0), &context);
        (void)pyio_close(s->fd);
        s->fd = -1;
        return -1;
    }
    s->owns_fd = true;
    r->cached = S_ISREG(st.st_mode);
    r->positional = r->seekable = r->cached || S_ISBLK(st.st_mode);
    return 0;
}

/* A descriptor, or an object that may have one. */
static int
init_given(struct pyio_data_reader *r)
{
    struct data_stream *const s = &r->s;
    struct stat st;
    int fd;

    if (data_stream_position(s, &r->end_offset, &r->seekable) < 0) {
        return -1;
    }
    if (r->seekable && reader_by_descriptor(r)) {
        fd = data_stream_fd(s);
        if (fd < 0) {
            return -1;
        }
        /* Without an answer it isn't known to be one. */
        r->cached = cio_sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    }
    return 0;
}

/* Bytes are data here, not a path. */
static bool
is_memory(PyObject *source)
{
    return PyObject_CheckBuffer(source)
           && !PyObject_HasAttrString(source, "__fspath__")
           && !PyObject_HasAttrString(source, "readinto");
}

int
reader_init(struct pyio_data_reader *r, PyObject *source, PyObject *byteorder,
            PyObject *buffer_size)
{
    struct data_stream *const s = &r->s;
    struct pyio_state *const st = pyio_state_of(Py_TYPE(r));
    int result;

    if (data_stream_init(s, byteorder, buffer_size) < 0) {
        return -1;
    }
    if (is_memory(source)) {
        result = init_memory(r, source);
    } else {
        result = pyio_stream_classify(st, source, &s->kind, &s->fd);
        Py_XSETREF(s->object, Py_NewRef(source));
        if (result == 0 && s->kind == PYIO_STREAM_PATH) {
            result = init_path(r, source);
        } else if (result == 0) {
            result = init_given(r);
        }
    }
    if (result == 0) {
        result = data_stream_hold(s, source);
    }
    return data_stream_made(s, result);
}
