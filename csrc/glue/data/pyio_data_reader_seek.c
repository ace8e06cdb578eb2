/* SPDX-License-Identifier: MIT
 * pyio_data_reader_seek.c - where DataReader stands: seeking, skipping, and
 * bringing the source to the same place.
 */
#include "glue/data/pyio_data.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"

/* Moves the source itself; *position is where it then stands. */
static int
seek_source(struct pyio_data_reader *r, int64_t offset, int whence,
            int64_t *position)
{
    const int fd = data_stream_fd(&r->s);
    PyObject *answer;
    off_t at;
    int result;

    if (fd == -1) {
        return -1;
    }
    if (fd >= 0) {
        at = cio_sys->lseek(fd, offset, whence);
        *position = at;
        return at < 0 ? data_stream_failed(&r->s, errno, 0) : 0;
    }
    answer = PyObject_CallMethod(r->s.object, "seek", "Li", (long long)offset,
                                 whence);
    if (answer == NULL) {
        return -1;
    }
    result = pyio_as_offset(answer, "seek()", position);
    Py_DECREF(answer);
    return result;
}

static int
seek_memory(struct pyio_data_reader *r, int64_t target)
{
    uint8_t *const begin = r->view.buf;
    const int64_t at = target < r->view.len ? target : r->view.len;

    r->s.next = begin + at;
    r->s.limit = begin + r->view.len;
    /* Behind the end there is nothing; tell says so all the same. */
    r->end_offset = target > r->view.len ? target : r->view.len;
    return 0;
}

/* The bytes of the buffer that were read already still are what they were. */
static bool
seek_in_buffer(struct pyio_data_reader *r, int64_t target)
{
    struct data_stream *const s = &r->s;
    const int64_t begin = r->end_offset - (s->limit - s->buffer);

    if (s->buffer == NULL || target < begin || target > r->end_offset) {
        return false;
    }
    s->next = s->buffer + (target - begin);
    return true;
}

static int
end_of_source(struct pyio_data_reader *r, int64_t *end)
{
    struct stat st;

    if (r->memory) {
        *end = r->view.len;
        return 0;
    }
    if (cio_sys->fstat(r->s.fd, &st) < 0) {
        return data_stream_failed(&r->s, errno, 0);
    }
    *end = st.st_size;
    return 0;
}

int
reader_seek_locked(struct pyio_data_reader *r, int64_t offset, int whence)
{
    int64_t base = 0, target;

    if (!r->seekable) {
        return pyio_raise(pyio_state_of(Py_TYPE(r))->unsupported,
                          "the source is not seekable");
    }
    if (whence == SEEK_END && !r->memory && !r->positional) {
        if (seek_source(r, offset, whence, &target) < 0) {
            return -1;
        }
        reader_drop(r);
        r->end_offset = target;
        return 0;
    }
    if (whence == SEEK_CUR) {
        base = reader_tell_locked(r);
    } else if (whence == SEEK_END && end_of_source(r, &base) < 0) {
        return -1;
    }
    if (__builtin_add_overflow(base, offset, &target)) {
        return pyio_raise(PyExc_OverflowError, "position is 2**63 or more");
    }
    if (target < 0) {
        return pyio_raise(PyExc_ValueError, "negative seek position %lld",
                          (long long)target);
    }
    if (r->memory) {
        return seek_memory(r, target);
    }
    if (seek_in_buffer(r, target)) {
        return 0;
    }
    if (!r->positional && seek_source(r, target, SEEK_SET, &target) < 0) {
        return -1;
    }
    reader_drop(r);
    r->end_offset = target;
    return 0;
}

int
reader_sync_locked(struct pyio_data_reader *r)
{
    const int64_t position = reader_tell_locked(r);
    const bool ahead = stream_room(&r->s) != 0;
    int64_t reached;

    if (r->memory || !r->seekable || (!ahead && !r->positional)) {
        return 0;
    }
    if (seek_source(r, position, SEEK_SET, &reached) < 0) {
        return -1;
    }
    if (!r->positional) {
        reader_drop(r);
        r->end_offset = reached;
    }
    return 0;
}

static int
raise_skip(struct pyio_data_reader *r, uint64_t nbytes, const char *what)
{
    const size_t at_hand = stream_room(&r->s);
    const struct data_short value = {
        what, nbytes, r->s.next, NULL, at_hand, 0, reader_tell_locked(r),
        0,    0};

    return data_short_read(pyio_state_of(Py_TYPE(r)), &value);
}

/* One buffer's worth of a skip; *passed is less only at the end or with -1. */
static int
skip_step(struct pyio_data_reader *r, size_t nbytes, size_t *passed)
{
    const int result = reader_fill_locked(r, nbytes);

    *passed = 0;
    if (result == 0) {
        *passed = cio_min_size(stream_room(&r->s), nbytes);
        r->s.next += *passed;
    }
    return result;
}

/* A skip that failed: back to where it began. What can't seek back stays where
 * it came to, and `transferred` says how far. */
static void
skip_failed(struct pyio_data_reader *r, int64_t begin, uint64_t passed)
{
    PyObject *exception;

    if (!r->seekable) {
        pyio_exception_attribute("transferred",
                                 PyLong_FromUnsignedLongLong(passed));
        return;
    }
    exception = pyio_exception_take();
    if (reader_seek_locked(r, begin, SEEK_SET) < 0) {
        Py_XDECREF(exception); /* the new one tells of the loss */
    } else {
        pyio_exception_give(exception);
    }
}

/* More than the buffer holds, from a source of unknown length: read and
 * dropped. Where it can't seek back, a short source stands at its end. */
static int
skip_by_reading(struct pyio_data_reader *r, uint64_t nbytes, const char *what)
{
    const int64_t begin = reader_tell_locked(r);
    uint64_t left = nbytes;

    while (left > 0) {
        const size_t step = (size_t)cio_min_u64(left, r->s.capacity);
        size_t passed;
        const int result = skip_step(r, step, &passed);

        left -= passed;
        if (result < 0 || (left > 0 && PyErr_CheckSignals() < 0)) {
            skip_failed(r, begin, nbytes - left);
            return -1;
        }
        if (passed < step) {
            if (nbytes - left == passed) { /* all of it is at hand */
                r->s.next -= passed;
            } else if (r->seekable
                       && reader_seek_locked(r, begin, SEEK_SET) < 0) {
                return -1;
            }
            return raise_skip(r, nbytes, what);
        }
    }
    return 0;
}

int
reader_skip_locked(struct pyio_data_reader *r, uint64_t nbytes,
                   const char *what)
{
    uint64_t left;
    int known;

    if (nbytes <= r->s.capacity || r->memory) {
        if (!r->memory && reader_fill_locked(r, (size_t)nbytes) < 0) {
            return -1;
        }
        if (stream_room(&r->s) < nbytes) {
            return raise_skip(r, nbytes, what);
        }
        r->s.next += nbytes;
        return 0;
    }
    known = r->seekable ? reader_remaining_locked(r, &left) : 0;
    if (known < 0) {
        return -1;
    }
    if (known && left >= nbytes) {
        return reader_seek_locked(r, (int64_t)nbytes, SEEK_CUR);
    }
    return known ? raise_skip(r, nbytes, what)
                 : skip_by_reading(r, nbytes, what);
}
