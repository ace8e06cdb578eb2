/* SPDX-License-Identifier: MIT
 * cio_parallel.c - pieces of one read, claimed in order.
 */
#include "io/cio_parallel.h"

#include <stddef.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "io/cio_fd.h"

/* Remembers the gap that is nearest to the start. */
static void
note_gap(struct cio_parallel *read, uint64_t at, struct cio_done why)
{
    (void)pthread_mutex_lock(&read->lock);
    if (at < read->gap) {
        read->gap = at;
        read->at_gap = why;
    }
    (void)pthread_mutex_unlock(&read->lock);
}

static bool
piece(struct cio_job *job)
{
    struct cio_parallel *read = (struct cio_parallel *)job;
    uint64_t at = atomic_fetch_add(&read->claimed, CIO_PIECE_NBYTES), end;

    if (at >= read->nbytes) {
        return false;
    }
    end = cio_min_u64(at + CIO_PIECE_NBYTES, read->nbytes);
    while (at < end) {
        const struct cio_done done =
            cio_fd_read(read->fd, read->buf + at, (size_t)(end - at),
                        read->off + (int64_t)at);

        at += done.nbytes;
        atomic_fetch_add_explicit(&read->moved, done.nbytes,
                                  memory_order_relaxed);
        /* CIO_MORE is a signal: a piece is short, so it is looked at after
         * the piece, whichever thread it hit. */
        if (done.status != CIO_OK && done.status != CIO_MORE) {
            note_gap(read, at, done);
            return true;
        }
    }
    return true;
}

void
cio_parallel_begin(struct cio_parallel *read, int fd, int64_t off,
                   uint8_t *buf, uint64_t nbytes, unsigned threads)
{
    *read = (struct cio_parallel){
        .job = {.step = piece},
        .fd = fd,
        .off = off,
        .buf = buf,
        .nbytes = nbytes,
        .gap = nbytes,
    };
    (void)pthread_mutex_init(&read->lock, NULL);
    cio_job_start(&read->job, threads);
}

struct cio_done
cio_parallel_step(struct cio_parallel *read)
{
    const bool went_on = piece(&read->job);

    return cio_done_of(went_on ? CIO_MORE : CIO_OK, atomic_load(&read->moved));
}

void
cio_parallel_cancel(struct cio_parallel *read)
{
    /* Pieces are claimed in order: what lies before this is being read. */
    const uint64_t at = atomic_exchange(&read->claimed, read->nbytes);

    cio_job_cancel(&read->job);
    if (at < read->nbytes) {
        note_gap(read, at, cio_done_of(CIO_OK, 0));
    }
}

struct cio_done
cio_parallel_end(struct cio_parallel *read)
{
    struct cio_done done;

    if (!cio_job_join(&read->job, CIO_WAIT_MS)) {
        return cio_done_of(CIO_MORE, atomic_load(&read->moved));
    }
    done = read->at_gap; /* CIO_OK where there is no gap */
    done.nbytes = read->gap;
    (void)pthread_mutex_destroy(&read->lock);
    return done;
}
