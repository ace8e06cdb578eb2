/* SPDX-License-Identifier: MIT
 * pyio_inflate_lines.c - lines of a reader, and its position.
 */
#include "glue/inflate/pyio_inflate.h"

#include <string.h>

#include "base/cio_bytes.h"

/* ------------------------------------------------------------------ lines */

/* The line in the window, if it ends there; else NULL without exception. */
static PyObject *
ready_line(struct pyio_reader *r, size_t limit)
{
    const uint8_t *const at = r->out.data + r->out.at;
    const size_t unread = r->out.end - r->out.at;
    const size_t n = cio_min_size(unread, limit);
    const uint8_t *const end = n == 0 ? NULL : memchr(at, '\n', n);

    if (end != NULL) {
        return pyio_reader_take_bytes(r, (size_t)(end - at) + 1);
    }
    return n == limit ? pyio_reader_take_bytes(r, n) : NULL;
}

/* A line that crosses windows. */
static PyObject *
long_line(struct pyio_state *st, struct pyio_reader *r, size_t limit)
{
    struct pyio_result result;
    bool whole = false;
    int status = 0;

    if (pyio_result_init(&result, cio_min_size(limit, 256)) < 0) {
        return NULL;
    }
    while (!whole && result.nbytes < limit
           && (status = pyio_reader_fill_out(st, r)) > 0) {
        const uint8_t *const at = r->out.data + r->out.at;
        const uint8_t *end;
        size_t n = cio_min_size(r->out.end - r->out.at, limit - result.nbytes);

        end = memchr(at, '\n', n);
        if (end != NULL) {
            n = (size_t)(end - at) + 1;
            whole = true;
        }
        while (status >= 0 && result.capacity - result.nbytes < n) {
            status = pyio_result_grow(&result, PY_SSIZE_T_MAX);
        }
        if (status < 0) {
            break;
        }
        (void)pyio_reader_take_ready(r, result.data + result.nbytes, n);
        result.nbytes += n;
    }
    if (status < 0 && !pyio_reader_would_block(result.nbytes)) {
        pyio_reader_keep(r, &result);
        return NULL;
    }
    return pyio_result_finish(&result);
}

static PyObject *
read_line(PyObject *op, size_t limit)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *line = NULL;

    if (pyio_reader_enter(r) < 0) {
        return NULL;
    }
    if (pyio_reader_saved_to_window(r) == 0) {
        line = limit == 0 ? PyBytes_FromStringAndSize(NULL, 0)
                          : ready_line(r, limit);
        if (line == NULL && !PyErr_Occurred()) {
            line = long_line(pyio_state_of(Py_TYPE(op)), r, limit);
        }
    }
    pyio_reader_leave(r);
    return line;
}

PyObject *
pyio_reader_readline(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t size;

    if (pyio_size_argument("readline", args, nargs, PYIO_SIZE_LINE, &size)
        < 0) {
        return NULL;
    }
    return read_line(
        op, size < 0 ? (size_t)PY_SSIZE_T_MAX
                     : (size_t)cio_min_u64((uint64_t)size, PY_SSIZE_T_MAX));
}

PyObject *
pyio_reader_next(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *line;

    if (pyio_reader_is_ready(r, 1)) {
        line = ready_line(r, SIZE_MAX);
        if (line != NULL || PyErr_Occurred()) {
            return line;
        }
    }
    line = read_line(op, (size_t)PY_SSIZE_T_MAX);
    if (line != NULL && PyBytes_GET_SIZE(line) == 0) {
        Py_CLEAR(line); /* the end of the iteration */
    }
    return line;
}

/* ------------------------------------------------------------------- seek */

/* Decode and drop until pos is at target, or the end. */
static int
skip_to(struct pyio_state *st, struct pyio_reader *r, int64_t target)
{
    while (r->pos < target) {
        const size_t unread = r->out.end - r->out.at;
        size_t n;
        int status;

        if (unread == 0) {
            status = pyio_reader_fill_out(st, r);
            if (status <= 0) {
                return status;
            }
            continue;
        }
        n = (size_t)cio_min_u64((uint64_t)(target - r->pos), unread);
        r->out.at += n;
        r->pos += (int64_t)n;
    }
    return 0;
}

static int
seek_to(struct pyio_state *st, struct pyio_reader *r, int64_t target)
{
    if (pyio_reader_saved_to_window(r) < 0) {
        return -1;
    }
    /* Back by a little: what was read is still in the window. */
    if (target < r->pos && r->pos - target <= (int64_t)r->out.at) {
        r->out.at -= (size_t)(r->pos - target);
        r->pos = target;
        return 0;
    }
    if (target < r->pos && pyio_reader_rewind(r) < 0) {
        return -1;
    }
    return skip_to(st, r, target);
}

PyObject *
pyio_reader_seek(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                 PyObject *kwnames)
{
    static const char *const names[] = {"offset", "whence", NULL};
    static const struct pyio_signature signature = {"seek", names, 2, 1};
    struct pyio_reader *r = (struct pyio_reader *)op;
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    PyObject *given[2];
    int64_t offset;
    int whence, status = -1;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || pyio_seek_arguments(given, given[1] == NULL ? 1 : 2, 2, false,
                               &offset, &whence)
               < 0) {
        return NULL;
    }
    if (pyio_reader_enter(r) < 0) {
        return NULL;
    }
    if (whence == 2 && pyio_reader_saved_to_window(r) == 0
        && skip_to(st, r, INT64_MAX) == 0) {
        whence = 1;
    }
    if (whence == 1) {
        offset = __builtin_add_overflow(offset, r->pos, &offset) ? INT64_MAX
                                                                 : offset;
    }
    if (whence != 2) {
        status = seek_to(st, r, offset < 0 ? 0 : offset);
    }
    pyio_reader_leave(r);
    return status < 0 ? NULL : PyLong_FromLongLong(r->pos);
}
