/* SPDX-License-Identifier: MIT
 * cio_workers.h - C threads that help a caller through a job of many pieces.
 *
 * Why      Big reads, batches of members and folders of files are cut into
 *          pieces that are claimed one by one. The calling thread works too,
 *          and comes back between pieces to look at signals.
 * Owner    The job belongs to the caller and must live until cio_job_join said
 *          that no worker is inside it.
 * Units    Threads count the caller: 1 means that none is started.
 * Errors   Where no thread can be started the caller does all the work.
 * Threads  Started on first use, all signals blocked, never inherited by fork,
 *          ended at exit.
 */
#ifndef CIO_WORKERS_H
#define CIO_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>

struct cio_job {
    /* Claims and does one piece; false: none was left to claim. Called by many
     * threads at once, so claim with an atomic. Errors stay in the job. */
    bool (*step)(struct cio_job *job);
    /* below: the helper's own; zero at first */
    struct cio_job *next;
    unsigned wanted; /* workers that may still enter */
    unsigned inside; /* workers that are in step */
    unsigned offers;
    atomic_bool cancelled;
};

/* Threads that `requested` means (0: as many as the machine gives this
 * process: affinity, cgroup quota, CIO_WORKERS_MAX), never above the cap of
 * PYIO_CHUNKED_WORKERS. At least 1. */
unsigned cio_workers_count(unsigned requested);

/* Offer the job to threads - 1 workers; returns at once. */
void cio_job_start(struct cio_job *job, unsigned threads);
/* The same for a job that goes on: it has new pieces, and may have workers
 * still. Works after a cancel and its join, too. */
void cio_job_offer(struct cio_job *job, unsigned threads);
/* Wait at most timeout_ms for the workers to leave it: true when none is
 * inside and none will enter. The caller has run step until false before. */
bool cio_job_join(struct cio_job *job, int timeout_ms);
/* No worker takes another step of it. Join still has to follow. */
void cio_job_cancel(struct cio_job *job);

/* Called once at load; PYIO_CHUNKED_WORKERS, 0 when not set. */
void cio_workers_set_cap(unsigned threads);
/* How many C threads are running now. */
unsigned cio_workers_running(void);
/* Ends and joins the threads, which leave their jobs to the callers. */
void cio_workers_stop(void);
/* The same for good: at exit, before threads that wait for a job vanish, and
 * it with them. */
void cio_workers_close(void);

#endif
