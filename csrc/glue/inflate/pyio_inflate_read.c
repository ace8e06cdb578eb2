/* SPDX-License-Identifier: MIT
 * pyio_inflate_read.c - the reading methods of a reader.
 *
 * What is at hand comes in this order: `saved` (what a call had when it
 * failed), the output window, the decoder. A read of 64 KiB and more decodes
 * into the result's own memory.
 */
#include "glue/base/pyio_read.h"
#include "glue/inflate/pyio_inflate.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"

/* Reads from here on go past the output window: engines copy their history
 * at every call, which smaller pieces would feel. */
#define DIRECT_NBYTES (64 * CIO_KIB)
/* Blocks are inflated ahead of the call: only as many as this are worth to be
 * inflated in their place. */
#define BLOCKS_NBYTES CIO_MIB
/* A result for more than this grows with what arrives. */
#define TRUSTED_NBYTES CIO_MIB

/* Bytes that can be had without decoding: from saved or the window. */
size_t
pyio_reader_take_ready(struct pyio_reader *r, uint8_t *dst, size_t nbytes)
{
    size_t n;

    if (r->saved != NULL) {
        const size_t size = (size_t)PyBytes_GET_SIZE(r->saved);

        n = cio_min_size(nbytes, size - r->saved_at);
        memcpy(dst, PyBytes_AS_STRING(r->saved) + r->saved_at, n);
        r->saved_at += n;
        if (r->saved_at == size) {
            Py_CLEAR(r->saved);
        }
    } else {
        n = cio_min_size(nbytes, r->out.end - r->out.at);
        if (n > 0) {
            memcpy(dst, r->out.data + r->out.at, n);
            r->out.at += n;
        }
    }
    r->pos += (int64_t)n;
    return n;
}

/* Up to nbytes into dst: -1 with an exception (*got is right), 0 at the end
 * or when some came, with `any`. */
static int
read_some(struct pyio_state *st, struct pyio_reader *r, uint8_t *dst,
          size_t nbytes, bool any, size_t *got)
{
    *got = 0;
    while (*got < nbytes) {
        size_t n = pyio_reader_take_ready(r, dst + *got, nbytes - *got);
        int result = 0;

        if (n == 0 && nbytes - *got >= DIRECT_NBYTES
            && (r->blocks == NULL || nbytes - *got >= BLOCKS_NBYTES)) {
            r->out.at = r->out.end = 0; /* no longer what is before pos */
            result =
                pyio_reader_fill(st, r, dst + *got, nbytes - *got, any, &n);
            r->pos += (int64_t)n;
        } else if (n == 0) {
            result = pyio_reader_fill_out(st, r);
            if (result > 0) {
                continue;
            }
        }
        *got += n;
        if (result < 0) {
            return -1;
        }
        if (n == 0 || any) {
            return 0;
        }
    }
    return 0;
}

/* An exception came behind nbytes that were read: they come first at the next
 * read. */
void
pyio_reader_save(struct pyio_reader *r, const uint8_t *data, size_t nbytes)
{
    PyObject *const exception = pyio_exception_take();
    PyObject *const rest = r->saved;
    const size_t rest_nbytes =
        rest == NULL ? 0 : (size_t)PyBytes_GET_SIZE(rest) - r->saved_at;
    PyObject *saved;

    if (nbytes > 0) {
        saved = PyBytes_FromStringAndSize(NULL,
                                          (Py_ssize_t)(nbytes + rest_nbytes));
        if (saved == NULL) {
            PyErr_Clear(); /* lost: there is no memory for it */
        } else {
            char *const to = PyBytes_AS_STRING(saved);

            memcpy(to, data, nbytes);
            if (rest_nbytes > 0) {
                memcpy(to + nbytes, PyBytes_AS_STRING(rest) + r->saved_at,
                       rest_nbytes);
            }
            r->saved = saved;
            r->saved_at = 0;
            r->pos -= (int64_t)nbytes;
            Py_XDECREF(rest);
        }
    }
    pyio_exception_give(exception);
}

void
pyio_reader_keep(struct pyio_reader *r, struct pyio_result *result)
{
    const size_t nbytes = result->nbytes;
    PyObject *exception;

    if (r->saved != NULL || nbytes == 0) {
        pyio_reader_save(r, result->data, nbytes);
        pyio_result_drop(result);
        return;
    }
    exception = pyio_exception_take();
    r->saved = pyio_result_finish(result);
    if (r->saved == NULL) {
        PyErr_Clear(); /* lost: even less memory can't be had */
    } else {
        r->saved_at = 0;
        r->pos -= (int64_t)nbytes;
    }
    pyio_exception_give(exception);
}

/* A non-blocking source has no more now: what was read is the result. */
bool
pyio_reader_would_block(size_t got)
{
    if (got > 0 && PyErr_ExceptionMatches(PyExc_BlockingIOError)) {
        PyErr_Clear();
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------- read */

/* A first size for the whole rest: what the source's size makes likely. */
static size_t
guess_rest(const struct pyio_reader *r)
{
    const int64_t left = pyio_reader_left(r);
    uint8_t isize[4];
    uint64_t hint;

    if (left <= 0) {
        return CIO_CHUNK_NBYTES;
    }
    hint = (uint64_t)left * 3;
    if (r->decoder.wanted == CIO_FORMAT_GZIP && left >= 18
        && cio_sys->pread(r->fd, isize, 4, r->file_at + left - 4) == 4) {
        const uint64_t size = cio_load_le32(isize);

        /* Believed between "not packed at all" and "packed like text"; what
         * is below is the last of many members, or a lie. */
        if (size >= (uint64_t)left
            && size <= (uint64_t)left * CIO_SIZE_HINT_RATIO) {
            hint = size;
        }
    }
    hint =
        cio_min_u64(hint + r->out.end - r->out.at + 1, r->decoder.max_nbytes);
    return (size_t)cio_min_u64(hint, PY_SSIZE_T_MAX / 2);
}

static PyObject *
read_all(struct pyio_state *st, struct pyio_reader *r)
{
    struct pyio_result result;
    size_t got = 1;

    if (pyio_result_init(&result, guess_rest(r)) < 0) {
        PyErr_Clear(); /* a guess: there may be less */
        if (pyio_result_init(&result, CIO_GROW_FIRST_NBYTES) < 0) {
            return NULL;
        }
    }
    while (got > 0) {
        int status;

        if (result.nbytes == result.capacity) {
            /* Is there more at all? */
            status = r->saved != NULL ? 1 : pyio_reader_fill_out(st, r);
            if (status == 0) {
                break;
            }
            if (status < 0 || pyio_result_grow(&result, PY_SSIZE_T_MAX) < 0) {
                goto failed;
            }
        }
        status = read_some(st, r, result.data + result.nbytes,
                           result.capacity - result.nbytes, false, &got);
        result.nbytes += got;
        if (status < 0) {
            goto failed;
        }
    }
    return pyio_result_finish(&result);
failed:
    if (pyio_reader_would_block(result.nbytes)) {
        return pyio_result_finish(&result);
    }
    pyio_reader_keep(r, &result);
    return NULL;
}

static PyObject *
read_size(struct pyio_state *st, struct pyio_reader *r, size_t size, bool any)
{
    struct pyio_result result;

    if (size == 0) {
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    if (pyio_result_init(&result, cio_min_size(size, TRUSTED_NBYTES)) < 0) {
        return NULL;
    }
    for (;;) {
        const size_t room =
            cio_min_size(result.capacity, size) - result.nbytes;
        size_t got;
        const int status =
            read_some(st, r, result.data + result.nbytes, room, any, &got);

        result.nbytes += got;
        if (status < 0) {
            break;
        }
        if (got < room || result.nbytes == size || any) {
            return pyio_result_finish(&result);
        }
        if (pyio_result_grow(&result, size) < 0) {
            break;
        }
    }
    if (pyio_reader_would_block(result.nbytes)) {
        return pyio_result_finish(&result);
    }
    pyio_reader_keep(r, &result);
    return NULL;
}

PyObject *
pyio_reader_take_bytes(struct pyio_reader *r, size_t size)
{
    PyObject *const bytes = PyBytes_FromStringAndSize(
        (const char *)r->out.data + r->out.at, (Py_ssize_t)size);

    if (bytes != NULL) {
        r->out.at += size;
        r->pos += (int64_t)size;
    }
    return bytes;
}

PyObject *
pyio_reader_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *value;
    int64_t size;

    if (pyio_size_argument("read", args, nargs, PYIO_SIZE_READ, &size) < 0) {
        return NULL;
    }
    if (size > 0 && pyio_reader_is_ready(r, size)) {
        return pyio_reader_take_bytes(r, (size_t)size);
    }
    if (pyio_reader_enter(r) < 0) {
        return NULL;
    }
    value = size < 0 ? read_all(pyio_state_of(Py_TYPE(op)), r)
                     : read_size(pyio_state_of(Py_TYPE(op)), r,
                                 (size_t)cio_min_u64((uint64_t)size,
                                                     PY_SSIZE_T_MAX / 2),
                                 false);
    pyio_reader_leave(r);
    return value;
}

PyObject *
pyio_reader_read1(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *value = NULL;
    int64_t size;
    int status;

    if (pyio_size_argument("read1", args, nargs, PYIO_SIZE_SOME, &size) < 0) {
        return NULL;
    }
    if (size > 0 && pyio_reader_is_ready(r, 1)) {
        return pyio_reader_take_bytes(
            r, cio_min_size((size_t)size, r->out.end - r->out.at));
    }
    if (pyio_reader_enter(r) < 0) {
        return NULL;
    }
    if (size < 0) {
        size = (int64_t)r->chunk_nbytes;
    }
    if ((size_t)size >= DIRECT_NBYTES || r->saved != NULL) {
        value = read_size(pyio_state_of(Py_TYPE(op)), r,
                          cio_min_size((size_t)size, TRUSTED_NBYTES), true);
    } else {
        status = size == 0
                     ? 0
                     : pyio_reader_fill_out(pyio_state_of(Py_TYPE(op)), r);
        if (status >= 0) {
            value = pyio_reader_take_bytes(
                r, cio_min_size((size_t)size, r->out.end - r->out.at));
        }
    }
    pyio_reader_leave(r);
    return value;
}

static PyObject *
read_into(PyObject *op, PyObject *buffer, const char *function, bool any)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *value = NULL;
    Py_buffer view;
    size_t got;

    if (pyio_target_buffer(buffer, function, &view) < 0) {
        return NULL;
    }
    if (pyio_reader_enter(r) == 0) {
        const int status = read_some(pyio_state_of(Py_TYPE(op)), r, view.buf,
                                     (size_t)view.len, any, &got);

        if (status == 0 || pyio_reader_would_block(got)) {
            value = PyLong_FromSize_t(got);
        } else {
            pyio_reader_save(r, view.buf, got);
        }
        pyio_reader_leave(r);
    }
    PyBuffer_Release(&view);
    return value;
}

PyObject *
pyio_reader_readinto(PyObject *op, PyObject *buffer)
{
    return read_into(op, buffer, "readinto", false);
}

PyObject *
pyio_reader_readinto1(PyObject *op, PyObject *buffer)
{
    return read_into(op, buffer, "readinto1", true);
}

/* ------------------------------------------------------------------- peek */

/* What was saved, in front of the window: as a window of its own. */
int
pyio_reader_saved_to_window(struct pyio_reader *r)
{
    const size_t unread = r->out.end - r->out.at;
    struct pyio_window window = {0};
    size_t size;

    if (r->saved == NULL) {
        return 0;
    }
    size = (size_t)PyBytes_GET_SIZE(r->saved) - r->saved_at;
    window.size = cio_min_size(size + unread, SIZE_MAX);
    window.data = cio_sys->malloc(window.size);
    if (window.data == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    memcpy(window.data, PyBytes_AS_STRING(r->saved) + r->saved_at, size);
    if (unread > 0) {
        memcpy(window.data + size, r->out.data + r->out.at, unread);
    }
    window.end = window.size;
    pyio_window_drop(&r->out);
    r->out = window;
    Py_CLEAR(r->saved);
    return 0;
}

PyObject *
pyio_reader_peek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *value = NULL;
    int64_t size;

    if (pyio_size_argument("peek", args, nargs, PYIO_SIZE_SOME, &size) < 0
        || pyio_reader_enter(r) < 0) {
        return NULL;
    }
    if (pyio_reader_saved_to_window(r) == 0
        && pyio_reader_fill_out(pyio_state_of(Py_TYPE(op)), r) >= 0) {
        value =
            PyBytes_FromStringAndSize((const char *)r->out.data + r->out.at,
                                      (Py_ssize_t)(r->out.end - r->out.at));
    }
    pyio_reader_leave(r);
    return value;
}
