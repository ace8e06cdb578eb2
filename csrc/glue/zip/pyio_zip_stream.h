/* SPDX-License-Identifier: MIT
 * pyio_zip_stream.h - the stream over one member: its state, and what its
 * files share.
 *
 * Why      A member up to 256 KiB is inflated whole at its first read, larger
 *          ones pass through a chunk; beyond the pool's limit a stream keeps
 *          an inflate state alone and reads straight into the caller's memory.
 * Owner    The stream owns its leases; it gives them back at the member's end,
 *          at an error, at close.
 * Units    Bytes of the plain member.
 * Threads  One call at a time, under lock.
 */
#ifndef PYIO_ZIP_STREAM_H
#define PYIO_ZIP_STREAM_H

#include "glue/base/pyio_stream_type.h"
#include "glue/zip/pyio_zip.h"

struct zip_stream {
    struct pyio_stream head;
    struct pyio_archive *archive; /* owned; NULL once closed */
    PyObject *name;               /* owned; may be set by the user */
    struct cio_entry_stream stream;
    struct cio_buffer *buffer; /* [buffer_off, buffer_off + buffer_nbytes) */
    uint64_t buffer_off;
    uint64_t position;
    uint64_t reserved; /* for buffer, when the member was inflated whole */
    size_t buffer_nbytes;
    bool checked; /* the end was reached and was right, or was skipped to */
    bool failed;  /* was found bad: nothing is skipped any more */
};

/* What is there at the position without reading. */
static inline const uint8_t *
zip_stream_here(const struct zip_stream *self, size_t *nbytes)
{
    if (self->position < self->buffer_off
        || self->position - self->buffer_off >= self->buffer_nbytes) {
        *nbytes = 0;
        return NULL;
    }
    *nbytes =
        self->buffer_nbytes - (size_t)(self->position - self->buffer_off);
    return self->buffer->data + (self->position - self->buffer_off);
}

/* Makes at least one byte be there, unless the member ends; under the lock. */
int zip_stream_ahead(struct zip_stream *self);
/* Moves the position over bytes that are there. */
void zip_stream_advance(struct zip_stream *self, size_t nbytes);
/* Fills memory up to nbytes or the end. */
int zip_stream_read_into(struct zip_stream *self, uint8_t *out, size_t nbytes,
                         size_t *got);
/* As read(size) under the lock; size below 0: all. */
PyObject *zip_stream_read_bytes(struct zip_stream *self, int64_t size);
void zip_stream_give_back(struct zip_stream *self);

/* ----------------------------------------------------------------- methods */

PyObject *zip_stream_read(PyObject *op, PyObject *const *args,
                          Py_ssize_t nargs);
PyObject *zip_stream_read1(PyObject *op, PyObject *const *args,
                           Py_ssize_t nargs);
PyObject *zip_stream_readinto(PyObject *op, PyObject *buffer);
PyObject *zip_stream_readinto1(PyObject *op, PyObject *buffer);
PyObject *zip_stream_peek(PyObject *op, PyObject *const *args,
                          Py_ssize_t nargs);
PyObject *zip_stream_readline(PyObject *op, PyObject *const *args,
                              Py_ssize_t nargs);
PyObject *zip_stream_next(PyObject *op);

#endif
