/* SPDX-License-Identifier: MIT
 * pyio_zip_run.c - the loop around a batch: steps, signals, progress, join.
 */
#include "glue/zip/pyio_zip_run.h"

#include "base/cio_bytes.h"
#include "base/cio_fork.h"

/* Bytes from which a second thread is worth waking (20 us and more). */
#define WORTH_NBYTES (48 * CIO_KIB)
#define TURN_NS 10000000
#define CLAIM_NBYTES (64 * CIO_KIB)

int
pyio_as_workers(PyObject *value, unsigned *workers)
{
    long n;

    *workers = 0;
    if (value == NULL || value == Py_None) {
        return 0;
    }
    n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (n < 1) {
        return pyio_raise(PyExc_ValueError,
                          "workers must be at least 1, or None");
    }
    *workers = (unsigned)(n > CIO_WORKERS_MAX ? CIO_WORKERS_MAX : n);
    return 0;
}

static uint64_t
bytes_of(const struct cio_batch_item *items, size_t count)
{
    uint64_t nbytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (!cio_add_u64(nbytes, items[i].entry.nbytes, &nbytes)) {
            return UINT64_MAX;
        }
    }
    return nbytes;
}

static uint64_t
bytes_done(const struct cio_batch_item *items, size_t count)
{
    uint64_t nbytes = 0;

    for (size_t i = 0; i < count; i++) {
        nbytes += items[i].done.status == CIO_OK ? items[i].done.nbytes : 0;
    }
    return nbytes;
}

/* Detached: steps for a while; false when no piece is left. */
static bool
take_turn(struct cio_job *job)
{
    const int64_t until = pyio_now_ns() + TURN_NS;
    bool more;

    do {
        more = job->step(job);
    } while (more && pyio_now_ns() < until);
    return more;
}

/* Claims of up to 100 us of work, and of no more than a tenth of what a thread
 * gets, so that none waits long for the last one. */
static size_t
claim_size(uint64_t nbytes, size_t count, unsigned threads)
{
    const uint64_t each = nbytes / count + 1;

    return cio_min_size((size_t)(CLAIM_NBYTES / each) + 1,
                        count / ((size_t)threads * 10) + 1);
}

void
pyio_zip_start(struct pyio_zip_run *run, struct pyio_archive *archive,
               struct cio_batch_item *items, size_t count, unsigned threads)
{
    const uint64_t nbytes = bytes_of(items, count);

    cio_batch_init(&run->batch, items, count, archive->fd);
    run->batch.profile = archive->profile;
    run->batch.run = claim_size(nbytes, count, threads);
    run->done_before = bytes_done(items, count);
    run->archive = archive;
    run->threads = threads;
    run->generation = cio_fork_generation;
    run->started = true;
    cio_job_start(&run->batch.job, nbytes < WORTH_NBYTES ? 1 : threads);
}

/* The workers stayed behind in the parent, and what they wrote in that moment
 * may be here in part: it is all begun anew. */
static bool
was_forked(struct pyio_zip_run *run)
{
    struct cio_batch *const batch = &run->batch;

    if (run->generation == cio_fork_generation) {
        return false;
    }
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].stream = NULL; /* lost: it may be half written */
        batch->items[i].done = cio_done_of(CIO_MORE, 0);
    }
    run->started = false;
    return true;
}

void
pyio_zip_stop(struct pyio_zip_run *run)
{
    if (run->started && !was_forked(run)) {
        cio_job_cancel(&run->batch.job);
        while (!cio_job_join(&run->batch.job, CIO_WAIT_MS)) {
        }
        cio_batch_clear(&run->batch);
        run->started = false;
    }
}

int
pyio_zip_finish(struct pyio_zip_run *run, struct pyio_slices *slices)
{
    struct cio_batch *const batch = &run->batch;
    const int64_t before = slices->done;
    bool more = true, left = false;

    while (!left) {
        if (was_forked(run)) { /* by a handler or progress, too */
            pyio_zip_start(run, run->archive, batch->items, batch->count,
                           run->threads);
            more = true;
        }
        Py_BEGIN_ALLOW_THREADS
        if (more) {
            more = take_turn(&batch->job);
        } else {
            left = cio_job_join(&batch->job, CIO_WAIT_MS);
        }
        Py_END_ALLOW_THREADS
        slices->done = before + (int64_t)atomic_load(&batch->done_nbytes);
        if (!left
            && (PyErr_CheckSignals() < 0 || pyio_report(slices, false) < 0)) {
            Py_BEGIN_ALLOW_THREADS
            pyio_zip_stop(run);
            Py_END_ALLOW_THREADS
            slices->done = before
                           + (int64_t)(bytes_done(batch->items, batch->count)
                                       - run->done_before);
            return -1;
        }
    }
    pyio_zip_stop(run);
    return 0;
}

int64_t
pyio_zip_size(const struct cio_directory *directory)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < directory->count; i++) {
        struct cio_zip_info info;

        cio_directory_info(directory, i, &info);
        if (!cio_add_u64(sum, info.nbytes, &sum) || sum > INT64_MAX) {
            return -1;
        }
    }
    return (int64_t)sum;
}
