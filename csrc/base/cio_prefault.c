/* SPDX-License-Identifier: MIT
 * cio_prefault.c - pieces of fresh memory, claimed from its start on.
 */
#include "base/cio_prefault.h"

#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"
#include "base/cio_thresholds.h"

static bool
piece(struct cio_job *job)
{
    struct cio_prefault *const p = (struct cio_prefault *)job;
    const uintptr_t at = atomic_fetch_add(&p->next, CIO_PREFAULT_PIECE_NBYTES);

    if (at >= p->end) {
        return false;
    }
    /* Before Linux 5.14: EINVAL, and the owner's touch does it. */
    return cio_sys->madvise((void *)at,
                            p->end - at < CIO_PREFAULT_PIECE_NBYTES
                                ? p->end - at
                                : CIO_PREFAULT_PIECE_NBYTES,
                            cio_advice_populate)
           == 0;
}

void
cio_prefault_start(struct cio_prefault *prefault, void *p, size_t nbytes,
                   size_t whole_nbytes)
{
    /* Whole huge pages: a part of one would be made of small pages. */
    const uintptr_t mask = CIO_PREFAULT_PIECE_NBYTES - 1;

    *prefault = (struct cio_prefault){
        .job = {.step = piece},
        .begin = ((uintptr_t)p + mask) & ~mask,
        .end = ((uintptr_t)p + nbytes) & ~mask,
    };
    atomic_init(&prefault->next, prefault->begin);
    if (whole_nbytes < atomic_load(&cio_thresholds.huge_pages)
        || prefault->begin >= prefault->end) {
        prefault->end = 0;
        return;
    }
    cio_job_start(&prefault->job, cio_workers_count(2));
}

void
cio_prefault_stop(struct cio_prefault *prefault)
{
    if (prefault->end == 0) {
        return;
    }
    cio_job_cancel(&prefault->job);
    while (!cio_job_join(&prefault->job, CIO_WAIT_MS)) {
    }
}
