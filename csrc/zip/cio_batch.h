/* SPDX-License-Identifier: MIT
 * cio_batch.h - many members read by several threads.
 *
 * Why      One release of the GIL serves hundreds of small members; workers
 *          claim them in runs of a few, so that the claim costs nothing.
 * Owner    Items and their memory are the caller's, until cio_job_join.
 * Units    Bytes.
 * Errors   Each item has its own outcome; one that failed stops nobody.
 * Threads  step runs in many threads at once.
 */
#ifndef CIO_BATCH_H
#define CIO_BATCH_H

#include <stdatomic.h>

#include "base/cio_limits.h"
#include "base/cio_workers.h"
#include "zip/cio_entry.h"
#include "zip/cio_profile.h"

struct cio_batch_item {
    struct cio_entry entry;
    uint8_t *out; /* room for entry.nbytes; NULL: tested in bounded memory */
    struct cio_done done; /* CIO_MORE: not finished, the job was cancelled */
    struct cio_zip_problem problem;
    struct cio_entry_stream *stream; /* its own, while it is in the middle */
};

struct cio_batch {
    struct cio_job job; /* first */
    struct cio_batch_item *items;
    size_t count;
    size_t run; /* members claimed at once */
    int fd;
    struct cio_profile *profile;  /* NULL: everything is admitted */
    atomic_size_t next;           /* first that is not claimed */
    _Atomic uint64_t done_nbytes; /* plain bytes of what was read */
    /* Large members go a slice a step; between two steps they wait here for
     * any thread. */
    _Atomic(struct cio_batch_item *) waiting[CIO_WORKERS_MAX + 1];
};
/* Reads the items whose done.status is CIO_MORE; their streams are NULL.
 * Then cio_job_start, job.step until false, cio_job_join, clear. */
void cio_batch_init(struct cio_batch *batch, struct cio_batch_item *items,
                    size_t count, int fd);
/* Gives back what members in the middle hold; after cio_job_join. */
void cio_batch_clear(struct cio_batch *batch);

#endif
