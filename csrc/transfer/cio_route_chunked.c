/* SPDX-License-Identifier: MIT
 * cio_route_chunked.c - read into a pooled buffer, write from it: the way that
 * every end has.
 *
 * What was read and not yet written stays pending: from a pipe it can't be
 * read again.
 */
#include <errno.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

uint8_t *
cio_transfer_room(struct cio_transfer *t, size_t *room_nbytes)
{
    size_t size = t->chunk_nbytes;

    if (t->left < size) {
        size = (size_t)t->left;
    }
    if (t->buffer == NULL) {
        size_t first = size;

        /* A small file needs a small buffer; one byte more finds its end. */
        if (t->source.kind == CIO_END_FILE && t->source.size > 0
            && t->source.size < first) {
            first = (size_t)t->source.size + 1;
        }
        t->buffer = cio_buffer_take(first);
        if (t->buffer == NULL) {
            return NULL;
        }
    }
    t->pending = t->buffer->data;
    t->pending_begin = 0;
    t->pending_end = 0;
    *room_nbytes = cio_min_size(size, t->buffer->nbytes);
    return t->buffer->data;
}

struct cio_done
cio_transfer_fill(struct cio_transfer *t)
{
    size_t room;
    uint8_t *data = cio_transfer_room(t, &room);
    struct cio_done done;

    if (data == NULL) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    done = cio_source_read(t, data, room);
    t->pending_end = (size_t)done.nbytes;
    /* A short count is no end, but here fstat has said so too. */
    t->ended = t->source.kind == CIO_END_FILE && done.status == CIO_OK
               && done.nbytes < room
               && t->source.off + done.nbytes == t->source.size;
    return done;
}

struct cio_done
cio_transfer_drain(struct cio_transfer *t)
{
    const uint8_t *data = t->pending + t->pending_begin;
    const size_t nbytes =
        cio_min_size(t->pending_end - t->pending_begin, CIO_SLICE_NBYTES);
    struct cio_done done;

    if (t->sparse == CIO_SPARSE_ALWAYS && t->segments) {
        bool zeros;
        const size_t run = cio_sparse_run(t, data, nbytes, &zeros);

        done =
            zeros ? cio_sparse_hole(t, run) : cio_target_write(t, data, run);
    } else {
        done = cio_target_write(t, data, nbytes);
    }
    t->pending_begin += (size_t)done.nbytes;
    return done;
}

struct cio_done
cio_route_chunked(struct cio_transfer *t, uint64_t want)
{
    const uint64_t left = t->left;
    struct cio_done done;

    t->left = want; /* the end of a segment is a bound like the count */
    done = cio_transfer_fill(t);
    t->left = left;
    return done.status == CIO_OK ? cio_transfer_drain(t) : done;
}
