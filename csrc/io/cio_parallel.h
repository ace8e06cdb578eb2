/* SPDX-License-Identifier: MIT
 * cio_parallel.h - one read by several threads, each at its own position.
 *
 * Why      Fresh memory costs a page fault and a zeroing for each page, which
 *          bounds one thread at a third of what the machine's memory gives.
 * Owner    The caller owns descriptor, memory and the struct, which must live
 *          until cio_parallel_end said that no worker is inside.
 * Units    Bytes.
 * Errors   As a reader from the start would meet them: the bytes before the
 *          first gap count, and what stood at the gap is the outcome.
 * Threads  The caller runs cio_parallel_step between its looks at signals;
 *          workers (base/cio_workers.h) do the same on their own.
 */
#ifndef CIO_PARALLEL_H
#define CIO_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cio_status.h"
#include "base/cio_workers.h"

struct cio_parallel {
    struct cio_job job;
    int fd;
    int64_t off;
    uint8_t *buf;
    uint64_t nbytes;
    _Atomic uint64_t claimed, moved;
    pthread_mutex_t lock; /* guards the two below */
    uint64_t gap;         /* where the bytes from the start end */
    struct cio_done at_gap;
};

/* fd is a file that can be read by position. threads counts the caller. */
void cio_parallel_begin(struct cio_parallel *read, int fd, int64_t off,
                        uint8_t *buf, uint64_t nbytes, unsigned threads);
/* One piece, of at most a slice. CIO_MORE: call again, nbytes is what all
 * threads have moved so far; CIO_OK: nothing is left to claim, end it. */
struct cio_done cio_parallel_step(struct cio_parallel *read);
/* No new pieces: for a caller that gives up. End still has to follow. */
void cio_parallel_cancel(struct cio_parallel *read);
/* Waits at most CIO_WAIT_MS for workers; CIO_MORE while one is inside. Then
 * the outcome of the whole: CIO_OK with nbytes, CIO_EOF before, CIO_ERR_SYS;
 * after cancel CIO_MORE's place is taken by CIO_OK with what came in a row. */
struct cio_done cio_parallel_end(struct cio_parallel *read);

#endif
