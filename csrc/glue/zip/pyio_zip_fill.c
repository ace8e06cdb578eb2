/* SPDX-License-Identifier: MIT
 * pyio_zip_fill.c - how a member's stream comes by its bytes.
 */
#include "glue/zip/pyio_zip_stream.h"

#include <string.h>

#include "base/cio_bytes.h"

static void
drop_buffer(struct zip_stream *self)
{
    cio_buffer_give(self->buffer);
    self->buffer = NULL;
    self->buffer_nbytes = 0;
    self->buffer_off = 0;
    if (self->reserved > 0) {
        cio_entry_release(self->reserved);
        self->reserved = 0;
    }
}

void
zip_stream_give_back(struct zip_stream *self)
{
    drop_buffer(self);
    cio_entry_stream_close(&self->stream);
}

static int
raise_problem(struct zip_stream *self, struct cio_done done,
              const struct cio_zip_problem *problem)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));

    drop_buffer(self);
    if (done.status == CIO_ERR_DATA) { /* a later read finds it again */
        cio_entry_stream_rewind(&self->stream);
        self->failed = true;
    }
    return pyio_zip_check(st, self->archive, self->name, done, problem);
}

static uint64_t
size_of(const struct zip_stream *self)
{
    return self->stream.entry.nbytes;
}

void
zip_stream_advance(struct zip_stream *self, size_t nbytes)
{
    self->position += nbytes;
    if (self->position == size_of(self) && self->checked) {
        drop_buffer(self); /* read to its end: nothing is kept */
    }
}

/* The member as a whole into memory of its size. */
static int
read_whole(struct zip_stream *self, uint8_t *out)
{
    struct pyio_member member = {.entry = self->stream.entry,
                                 .name = self->name};

    if (pyio_member_read_into(pyio_state_of(Py_TYPE(self)), self->archive,
                              &member, out)
        < 0) {
        return -1;
    }
    self->checked = true;
    return 0;
}

/* Not begun as a stream, and small: the fast engine does it at once. */
static bool
may_be_whole(const struct zip_stream *self)
{
    return self->stream.out_done == 0 && self->stream.inflater == NULL
           && size_of(self) > 0 && cio_entry_is_whole(&self->stream.entry);
}

/* 1: the whole member is in the buffer. 0: there is no room for it now. */
static int
buffer_whole(struct zip_stream *self)
{
    const size_t nbytes = (size_t)size_of(self);

    if (!may_be_whole(self) || nbytes > CIO_ZIP_OPEN_WHOLE_NBYTES
        || !cio_entry_reserve(nbytes)) {
        return 0;
    }
    drop_buffer(self);
    self->reserved = nbytes;
    self->buffer = cio_buffer_take(nbytes);
    if (self->buffer == NULL) {
        drop_buffer(self);
        (void)PyErr_NoMemory();
        return -1;
    }
    if (read_whole(self, self->buffer->data) < 0) {
        drop_buffer(self);
        return -1;
    }
    self->buffer_nbytes = nbytes;
    return 1;
}

/* The next bytes of the stream into out; *got 0 is the end. */
static int
pull(struct zip_stream *self, uint8_t *out, size_t nbytes, size_t *got)
{
    struct cio_zip_problem problem = {0};
    const struct cio_done done =
        pyio_stream_fill(pyio_state_of(Py_TYPE(self)), self->archive,
                         &self->stream, out, nbytes, &problem);

    *got = (size_t)done.nbytes;
    if (done.status == CIO_EOF) {
        self->checked = true;
    } else if (done.status != CIO_OK) {
        return raise_problem(self, done, &problem);
    }
    return 0;
}

/* How much a stream reads ahead: a chunk while it has the fast engine's room,
 * little when it is one of too many. */
static size_t
ahead_nbytes(const struct zip_stream *self)
{
    const uint64_t left = size_of(self) - self->stream.out_done;
    const size_t most = self->stream.reserved > 0 ? CIO_CHUNK_NBYTES
                        : cio_entry_is_plain(&self->stream.entry)
                            ? CIO_ZIP_AHEAD_NBYTES
                            : CIO_ZIP_LEAN_NBYTES;

    return (size_t)cio_min_u64(left, most);
}

/* Refills the buffer at the stream's own place. */
static int
refill(struct zip_stream *self)
{
    size_t want, got;
    const enum cio_status status = cio_entry_stream_begin(&self->stream);

    if (status != CIO_OK) {
        return raise_problem(self, cio_done_of(status, 0), NULL);
    }
    want = ahead_nbytes(self);
    if (self->buffer == NULL || self->buffer->nbytes < want) {
        drop_buffer(self);
        self->buffer = cio_buffer_take(want);
        if (self->buffer == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
    }
    self->buffer_nbytes = 0;
    self->buffer_off = self->stream.out_done;
    if (pull(self, self->buffer->data, want, &got) < 0) {
        return -1;
    }
    self->buffer_nbytes = got;
    return 0;
}

/* Brings the stream to the position: stored members jump, deflated ones read
 * on, from the start when the position lies behind. */
static int
catch_up(struct zip_stream *self)
{
    struct cio_entry_stream *const s = &self->stream;

    if (s->out_done > self->position || (s->ended && !self->checked)) {
        cio_entry_stream_rewind(s);
        drop_buffer(self);
    }
    if (s->out_done < self->position && !self->failed
        && cio_entry_is_plain(&s->entry)) {
        drop_buffer(self);
        cio_entry_stream_skip(s, self->position - s->out_done);
    }
    while (s->out_done < self->position) {
        if (refill(self) < 0) {
            return -1;
        }
        if (self->buffer_nbytes == 0) {
            break;
        }
    }
    return 0;
}

int
zip_stream_ahead(struct zip_stream *self)
{
    size_t nbytes;
    int whole;

    if (zip_stream_here(self, &nbytes) != NULL
        || (self->position == size_of(self) && self->position > 0)) {
        return 0;
    }
    whole = buffer_whole(self);
    if (whole != 0) {
        return whole < 0 ? -1 : 0;
    }
    if (catch_up(self) < 0) {
        return -1;
    }
    if (zip_stream_here(self, &nbytes) != NULL || self->stream.ended) {
        return 0;
    }
    return refill(self);
}

/* Large pieces, and all pieces of a lean stream, go past the buffer. */
static bool
goes_direct(const struct zip_stream *self, size_t nbytes)
{
    return nbytes >= CIO_CHUNK_NBYTES / 4
           || (self->stream.inflater != NULL && self->stream.reserved == 0);
}

static int
read_some(struct zip_stream *self, uint8_t *out, size_t nbytes, size_t *got)
{
    size_t here;
    const uint8_t *data = zip_stream_here(self, &here);
    int whole;

    *got = 0;
    if (data == NULL && self->position == 0 && nbytes == size_of(self)
        && may_be_whole(self)) {
        *got = nbytes;
        return read_whole(self, out);
    }
    if (data == NULL) {
        whole = buffer_whole(self);
        if (whole < 0) {
            return -1;
        }
        if (whole == 0) {
            enum cio_status status;

            if (catch_up(self) < 0) {
                return -1;
            }
            status = cio_entry_stream_begin(&self->stream);
            if (status != CIO_OK) {
                return raise_problem(self, cio_done_of(status, 0), NULL);
            }
            if (zip_stream_here(self, &here) == NULL
                && goes_direct(self, nbytes)) {
                drop_buffer(self);
                return pull(self, out, nbytes, got);
            }
            if (zip_stream_ahead(self) < 0) {
                return -1;
            }
        }
        data = zip_stream_here(self, &here);
    }
    if (data != NULL) {
        *got = cio_min_size(nbytes, here);
        memcpy(out, data, *got);
    }
    return 0;
}

int
zip_stream_read_into(struct zip_stream *self, uint8_t *out, size_t nbytes,
                     size_t *got)
{
    const uint64_t start = self->position;

    *got = 0;
    nbytes = (size_t)cio_min_u64(nbytes, size_of(self) - self->position);
    if (nbytes == 0 && size_of(self) == 0 && !self->checked) {
        size_t none;

        return pull(self, out, 0, &none); /* an empty member has a CRC too */
    }
    while (*got < nbytes) {
        size_t n;

        if (read_some(self, out + *got, nbytes - *got, &n) < 0) {
            self->position = start; /* nothing was handed out */
            return -1;
        }
        if (n == 0) {
            break;
        }
        *got += n;
        zip_stream_advance(self, n);
    }
    return 0;
}

/* A size is a directory's word: memory is taken on it as far as the
 * compressed bytes make it likely, and grows with what comes beyond. */
static size_t
first_capacity(const struct zip_stream *self, uint64_t nbytes)
{
    uint64_t likely = UINT64_MAX;

    (void)cio_mul_u64(self->stream.entry.compressed_nbytes,
                      CIO_ZIP_TRUST_RATIO, &likely);
    return (size_t)cio_min_u64(nbytes,
                               cio_max_u64(likely, CIO_ZIP_TRUST_NBYTES));
}

static PyObject *
read_growing(struct zip_stream *self, uint64_t nbytes)
{
    const uint64_t start = self->position;
    struct pyio_result result;
    size_t got = 1;

    if (pyio_result_init(&result, first_capacity(self, nbytes)) < 0) {
        return NULL;
    }
    while (result.nbytes < nbytes && got > 0) {
        if (result.nbytes == result.capacity
            && pyio_result_grow(&result, (size_t)nbytes) < 0) {
            break;
        }
        if (zip_stream_read_into(self, result.data + result.nbytes,
                                 (size_t)cio_min_u64(result.capacity, nbytes)
                                     - result.nbytes,
                                 &got)
            < 0) {
            break;
        }
        result.nbytes += got;
    }
    if (PyErr_Occurred()) {
        self->position = start;
        pyio_result_drop(&result);
        return NULL;
    }
    return pyio_result_finish(&result);
}

PyObject *
zip_stream_read_bytes(struct zip_stream *self, int64_t size)
{
    const uint64_t left = size_of(self) - self->position;
    const uint64_t nbytes =
        size < 0 ? left : cio_min_u64((uint64_t)size, left);
    size_t here;
    const uint8_t *const data = zip_stream_here(self, &here);
    PyObject *result;

    if (data != NULL && nbytes <= here) {
        result =
            PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)nbytes);
        if (result != NULL) {
            zip_stream_advance(self, (size_t)nbytes);
        }
        return result;
    }
    if (nbytes == 0) {
        size_t none;

        if (zip_stream_read_into(self, NULL, 0, &none) < 0) {
            return NULL;
        }
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    return read_growing(self, nbytes);
}
