/* SPDX-License-Identifier: MIT
 * pyio_data_reader.c - DataReader: the bytes at hand, and how a value that did
 * not come whole is given back.
 *
 * The bytes at hand are [s.next, s.limit); end_offset is the source's position
 * of s.limit. A value is taken only when all of it is there, so that a short
 * read, a signal handler that raises or an error leaves the position where it
 * was. What went straight to a caller's memory is put back in front.
 */
#include "glue/data/pyio_data.h"

#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"

/* --------------------------------------------------------------- buffer */

/* What is at hand moves to the front of a buffer that holds more than it. */
static int
make_room(struct pyio_data_reader *r)
{
    struct data_stream *const s = &r->s;
    const size_t at_hand = stream_room(s);
    size_t capacity = s->capacity;
    uint8_t *larger;

    if (s->buffer != NULL && at_hand < capacity) {
        memmove(s->buffer, s->next, at_hand);
        s->next = s->buffer;
        s->limit = s->buffer + at_hand;
        return 0;
    }
    if (s->buffer != NULL) { /* full, and still too small: it grows */
        capacity += capacity < CIO_GROW_SLOW_NBYTES ? capacity : capacity / 2;
    }
    larger = cio_sys->malloc(capacity);
    if (larger == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (at_hand != 0) {
        memcpy(larger, s->next, at_hand);
    }
    cio_free(s->buffer);
    s->buffer = s->next = larger;
    s->limit = larger + at_hand;
    s->capacity = capacity;
    return 0;
}

int
reader_fetch_locked(struct pyio_data_reader *r, size_t nbytes)
{
    struct data_stream *const s = &r->s;
    size_t want, got;
    int result;

    if (s->buffer == NULL || s->limit == s->buffer + s->capacity
        || nbytes > (size_t)(s->buffer + s->capacity - s->limit)) {
        if (make_room(r) < 0) {
            return -1;
        }
    }
    want = (size_t)(s->buffer + s->capacity - s->limit);
    if (s->unbuffered) {
        want = cio_min_size(want, nbytes);
    }
    result = reader_source_refill(r, s->limit, want, &got);
    if (result < 0) {
        if (result == PYIO_KEPT) {
            data_stream_abandon_buffer(s);
        }
        return -1;
    }
    s->limit += got;
    return got != 0;
}

int
reader_fill_locked(struct pyio_data_reader *r, size_t nbytes)
{
    while (stream_room(&r->s) < nbytes && !r->memory) {
        const int result = reader_fetch_locked(r, nbytes - stream_room(&r->s));

        if (result <= 0) {
            return result;
        }
    }
    return 0;
}

int64_t
reader_tell_locked(const struct pyio_data_reader *r)
{
    return r->end_offset - (int64_t)stream_room(&r->s);
}

/* The value at the position: skip bytes of it are at hand, nbytes lie at data.
 */
static int
raise_short(struct pyio_data_reader *r, size_t prefix, uint64_t expected,
            size_t skip, const void *data, size_t nbytes, const char *what)
{
    const struct data_short value = {
        what, expected, r->s.next, data, skip, nbytes, reader_tell_locked(r),
        0,    prefix};

    return data_short_read(pyio_state_of(Py_TYPE(r)), &value);
}

/* The source ended inside a value that was not gathered: ShortReadError. */
static int
fall_short(struct pyio_data_reader *r, size_t prefix, uint64_t expected,
           const char *what)
{
    const int result =
        raise_short(r, prefix, expected, stream_room(&r->s), NULL, 0, what);

    if (r->lossy) {
        r->s.next = r->s.limit;
    }
    return result;
}

int
reader_need_locked(struct pyio_data_reader *r, size_t nbytes, const char *what)
{
    if (reader_fill_locked(r, nbytes) < 0) {
        return -1;
    }
    return stream_room(&r->s) >= nbytes ? 0 : fall_short(r, 0, nbytes, what);
}

int
reader_need(struct pyio_data_reader *r, size_t nbytes, const char *what)
{
    int result;

    if (data_stream_enter(&r->s) < 0) {
        return -1;
    }
    result = reader_need_locked(r, nbytes, what);
    data_stream_leave(&r->s);
    return result;
}

/* ------------------------------------------------------- straight reads */

/* Other memory as the buffer, of which nbytes are at hand. */
static void
use_buffer(struct data_stream *s, uint8_t *memory, size_t nbytes)
{
    cio_free(s->buffer);
    s->buffer = s->next = memory;
    s->limit = memory + nbytes;
    s->capacity = nbytes > s->capacity ? nbytes : s->capacity;
}

/* Bytes that went to a caller's memory come first again: [s.next, + skip) and
 * data become the bytes at hand. */
static int
put_back(struct pyio_data_reader *r, size_t skip, const uint8_t *data,
         size_t nbytes)
{
    struct data_stream *const s = &r->s;
    PyObject *const exception = pyio_exception_take();
    const size_t whole = skip + nbytes;
    uint8_t *memory;

    if (whole <= stream_room(s)) { /* nothing was read past them */
        pyio_exception_give(exception);
        return 0;
    }
    if (r->positional) { /* they can be read again */
        r->end_offset -= (int64_t)(whole - stream_room(s));
        pyio_exception_give(exception);
        return 0;
    }
    memory = cio_sys->malloc(whole > s->capacity ? whole : s->capacity);
    if (memory == NULL) {
        Py_XDECREF(exception);
        s->next = s->limit;
        (void)PyErr_NoMemory();
        return -1;
    }
    if (skip != 0) {
        memcpy(memory, s->next, skip);
    }
    memcpy(memory + skip, data, nbytes);
    use_buffer(s, memory, whole);
    pyio_exception_give(exception);
    return 0;
}

/* More of a value to its destination: straight from a descriptor, through the
 * buffer from an object (whose readinto may keep the view that it gets). The
 * buffer's own bytes stay as they are. */
static int
fetch_more(struct pyio_data_reader *r, uint8_t *data, size_t nbytes,
           size_t *got)
{
    uint8_t *piece;
    int result;

    if (reader_by_descriptor(r) || r->memory) {
        return reader_source_read(r, data, nbytes, got);
    }
    nbytes = cio_min_size(nbytes, CIO_DATA_BUFFER_NBYTES);
    piece = cio_sys->malloc(nbytes);
    if (piece == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    result = reader_source_read(r, piece, nbytes, got);
    if (result == PYIO_KEPT) {
        return -1; /* the piece is the keeper's now */
    }
    memcpy(data, piece, *got);
    cio_free(piece);
    return result;
}

/* nbytes to memory, or less at the end; the position has not moved yet. After
 * a failure it is where it was. */
static int
copy_upto(struct pyio_data_reader *r, size_t skip, uint8_t *data,
          size_t nbytes, size_t *filled)
{
    size_t got = 1;
    int result = 0;

    *filled = cio_min_size(stream_room(&r->s) - skip, nbytes);
    if (*filled != 0) {
        memcpy(data, r->s.next + skip, *filled);
    }
    while (*filled < nbytes && result == 0 && got != 0) {
        result = fetch_more(r, data + *filled, nbytes - *filled, &got);
        *filled += got;
        if (result == 0 && *filled < nbytes && PyErr_CheckSignals() < 0) {
            result = -1;
        }
    }
    if (result < 0) {
        (void)put_back(r, skip, data, *filled);
    }
    return result;
}

/* Behind a value of which `filled` bytes, after skip, were copied. */
static void
pass(struct pyio_data_reader *r, size_t skip, size_t filled)
{
    if (skip + filled > stream_room(&r->s)) {
        reader_drop(r);
    } else {
        r->s.next += skip + filled;
    }
}

/* The same for a value whose part lies at data and not in the buffer. */
static int
fall_short_gathered(struct pyio_data_reader *r, size_t skip,
                    const uint8_t *data, size_t filled, uint64_t nbytes,
                    const char *what)
{
    const size_t found = skip + filled;

    if (r->lossy) {
        struct data_short value = {what,
                                   nbytes,
                                   r->s.next,
                                   data,
                                   skip,
                                   filled,
                                   r->end_offset - (int64_t)found,
                                   0,
                                   skip};

        (void)data_short_read(pyio_state_of(Py_TYPE(r)), &value);
        reader_drop(r);
        return -1;
    }
    return put_back(r, skip, data, filled) < 0
               ? -1
               : raise_short(r, skip, nbytes, skip, data, filled, what);
}

int
reader_copy_locked(struct pyio_data_reader *r, size_t skip, uint8_t *data,
                   size_t nbytes, const char *what)
{
    size_t filled;

    if (copy_upto(r, skip, data, nbytes, &filled) < 0) {
        return -1;
    }
    if (filled == nbytes) {
        pass(r, skip, filled);
        return 0;
    }
    return fall_short_gathered(r, skip, data, filled, nbytes, what);
}

int
reader_upto_into_locked(struct pyio_data_reader *r, uint8_t *data,
                        size_t nbytes, size_t *filled)
{
    if (copy_upto(r, 0, data, nbytes, filled) < 0) {
        return -1;
    }
    pass(r, 0, *filled);
    return 0;
}

/* Room that the bytes at hand, or the file's size, vouch for; one more to see
 * the end where the end is looked for. */
static int
first_capacity(struct pyio_data_reader *r, size_t skip, uint64_t nbytes,
               size_t *capacity)
{
    uint64_t left = 0;
    const int known = reader_remaining_locked(r, &left);

    if (known < 0) {
        return -1;
    }
    left = known && left > skip ? left - skip + 1 : 0;
    left = cio_max_u64(left, stream_room(&r->s) - skip);
    left = cio_max_u64(left, CIO_GROW_FIRST_NBYTES);
    *capacity = (size_t)cio_min_u64(cio_min_u64(left, nbytes),
                                    (uint64_t)PY_SSIZE_T_MAX);
    return 0;
}

static int
gather(struct pyio_data_reader *r, struct pyio_result *result, uint64_t nbytes)
{
    size_t got = 1;

    while (result->nbytes < nbytes && got != 0) {
        if (result->nbytes == result->capacity
            && pyio_result_grow(result, (size_t)cio_min_u64(
                                            nbytes, (uint64_t)PY_SSIZE_T_MAX))
                   < 0) {
            return -1;
        }
        if (fetch_more(r, result->data + result->nbytes,
                       (size_t)cio_min_u64(nbytes - result->nbytes,
                                           result->capacity - result->nbytes),
                       &got)
            < 0) {
            return -1;
        }
        result->nbytes += got;
        if (result->nbytes < nbytes && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    return 0;
}

/* nbytes, or less at the end; what is at hand is taken only with success. */
static int
gather_all(struct pyio_data_reader *r, size_t skip, uint64_t nbytes,
           struct pyio_result *result)
{
    size_t capacity;

    result->bytes = NULL;
    if (first_capacity(r, skip, nbytes, &capacity) < 0
        || pyio_result_init(result, capacity) < 0) {
        return -1;
    }
    result->nbytes = (size_t)cio_min_u64(stream_room(&r->s) - skip, nbytes);
    if (result->nbytes != 0) {
        memcpy(result->data, r->s.next + skip, result->nbytes);
    }
    if (gather(r, result, nbytes) == 0) {
        return 0;
    }
    (void)put_back(r, skip, result->data, result->nbytes);
    pyio_result_drop(result);
    return -1;
}

PyObject *
reader_bytes_locked(struct pyio_data_reader *r, size_t skip, uint64_t nbytes,
                    const char *what)
{
    struct data_stream *const s = &r->s;
    struct pyio_result result;
    PyObject *bytes;

    if (nbytes <= stream_room(s) - skip) {
        bytes = PyBytes_FromStringAndSize((char *)s->next + skip,
                                          (Py_ssize_t)nbytes);
        s->next += bytes == NULL ? 0 : skip + (size_t)nbytes;
        return bytes;
    }
    if (r->memory) {
        (void)fall_short(r, skip, nbytes, what);
        return NULL;
    }
    if (gather_all(r, skip, nbytes, &result) < 0) {
        return NULL;
    }
    if (result.nbytes == nbytes) {
        reader_drop(r);
        return pyio_result_finish(&result);
    }
    (void)fall_short_gathered(r, skip, result.data, result.nbytes, nbytes,
                              what);
    pyio_result_drop(&result);
    return NULL;
}

int
reader_whole_locked(struct pyio_data_reader *r, size_t skip, uint64_t nbytes,
                    const char *what, struct data_whole *whole)
{
    struct data_stream *const s = &r->s;
    struct pyio_result *const gathered = &whole->gathered;

    whole->skip = skip;
    whole->nbytes = nbytes;
    gathered->bytes = NULL;
    if (nbytes > stream_room(s) - skip && !r->memory
        && nbytes > s->capacity - skip) {
        if (gather_all(r, skip, nbytes, gathered) < 0) {
            return -1;
        }
        whole->data = gathered->data;
        if (gathered->nbytes < nbytes) {
            (void)fall_short_gathered(r, skip, gathered->data,
                                      gathered->nbytes, nbytes, what);
            pyio_result_drop(gathered);
            return -1;
        }
        return 0;
    }
    if (!r->memory && reader_fill_locked(r, skip + (size_t)nbytes) < 0) {
        return -1;
    }
    whole->data = s->next + skip;
    return nbytes <= stream_room(s) - skip ? 0
                                           : fall_short(r, skip, nbytes, what);
}

void
reader_whole_done_locked(struct pyio_data_reader *r, struct data_whole *whole,
                         bool taken)
{
    if (whole->gathered.bytes == NULL) {
        r->s.next += taken ? whole->skip + (size_t)whole->nbytes : 0;
        return;
    }
    if (taken) {
        reader_drop(r);
    } else {
        (void)put_back(r, whole->skip, whole->data, (size_t)whole->nbytes);
    }
    pyio_result_drop(&whole->gathered);
}

PyObject *
reader_upto_locked(struct pyio_data_reader *r, uint64_t nbytes)
{
    struct pyio_result result;

    if (r->memory || nbytes <= stream_room(&r->s)) {
        nbytes = cio_min_u64(nbytes, stream_room(&r->s));
        return reader_bytes_locked(r, 0, nbytes, "read");
    }
    if (gather_all(r, 0, nbytes, &result) < 0) {
        return NULL;
    }
    reader_drop(r);
    return pyio_result_finish(&result);
}

int
reader_unread_locked(struct pyio_data_reader *r, const uint8_t *data,
                     size_t nbytes)
{
    struct data_stream *const s = &r->s;
    PyObject *const exception = pyio_exception_take();
    const size_t at_hand = stream_room(s), whole = nbytes + at_hand;
    uint8_t *memory;
    int result = 0;

    if (r->memory || r->positional) {
        result = reader_seek_locked(r, reader_tell_locked(r) - (int64_t)nbytes,
                                    SEEK_SET);
        pyio_exception_give(exception);
        return result;
    }
    memory = cio_sys->malloc(whole > s->capacity ? whole : s->capacity);
    if (memory == NULL) {
        Py_XDECREF(exception);
        (void)PyErr_NoMemory();
        return -1;
    }
    if (nbytes != 0) { /* no bytes may lie nowhere */
        memcpy(memory, data, nbytes);
    }
    if (at_hand != 0) {
        memcpy(memory + nbytes, s->next, at_hand);
    }
    use_buffer(s, memory, whole);
    pyio_exception_give(exception);
    return 0;
}

int
reader_short_locked(struct pyio_data_reader *r, uint64_t nbytes,
                    const char *what)
{
    struct data_short value = {.name = what, .expected = nbytes};

    /* A file is read again, for what the error shows of it. */
    if (r->positional
        && (reader_fill_locked(
                r, (size_t)cio_min_u64(nbytes, CIO_DATA_PARTIAL_NBYTES))
                < 0
            || reader_remaining_locked(r, &value.found) < 0)) {
        return -1;
    }
    value.head = r->s.next;
    value.head_nbytes = stream_room(&r->s);
    value.offset = reader_tell_locked(r);
    return data_short_read(pyio_state_of(Py_TYPE(r)), &value);
}
