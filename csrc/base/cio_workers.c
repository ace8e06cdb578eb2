/* SPDX-License-Identifier: MIT
 * cio_workers.c - a list of jobs under one mutex, and the threads that serve
 * it.
 *
 * A worker enters the first job that still wants one, takes steps until none
 * is left, leaves, and looks for another. Threads stay for the next job.
 */
#include "base/cio_workers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/cio_internal.h"
#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a job wants workers, or stop */
    pthread_cond_t left; /* a worker left a job, or ended */
    struct cio_job *jobs;
    unsigned threads, idle, cap;
    unsigned starting; /* threads that have not run yet: as good as idle */
    atomic_bool stop;
    bool closed, ready;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits on `left` are bounded by the monotonic clock. */
static void
make_ready(void)
{
    pthread_condattr_t attributes;

    if (pool.ready) {
        return;
    }
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&pool.left, &attributes);
    (void)pthread_cond_init(&pool.work, NULL);
    (void)pthread_condattr_destroy(&attributes);
    pool.ready = true;
}

static void
unlink_job(struct cio_job *job)
{
    for (struct cio_job **at = &pool.jobs; *at != NULL; at = &(*at)->next) {
        if (*at == job) {
            *at = job->next;
            job->next = NULL;
            return;
        }
    }
}

static bool
is_over(struct cio_job *job)
{
    return atomic_load(&job->cancelled) || atomic_load(&pool.stop);
}

static void
serve(struct cio_job *job)
{
    unsigned offers;

    job->wanted--;
    if (job->wanted == 0) {
        unlink_job(job);
    }
    job->inside++;
    do { /* pieces may have come after step saw none */
        offers = job->offers;
        (void)pthread_mutex_unlock(&pool.lock);
        while (!is_over(job) && job->step(job)) {
        }
        (void)pthread_mutex_lock(&pool.lock);
    } while (job->offers != offers && !is_over(job));
    if (job->wanted != 0) { /* no piece is left: nobody else need look */
        job->wanted = 0;
        unlink_job(job);
    }
    job->inside--;
    (void)pthread_cond_broadcast(&pool.left);
}

static void *
worker_main(void *argument)
{
    (void)argument;
    (void)pthread_mutex_lock(&pool.lock);
    pool.starting--;
    while (!pool.stop) {
        if (pool.jobs != NULL) {
            serve(pool.jobs);
        } else {
            pool.idle++;
            (void)pthread_cond_wait(&pool.work, &pool.lock);
            pool.idle--;
        }
    }
    pool.threads--;
    (void)pthread_cond_broadcast(&pool.left);
    (void)pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* A new thread inherits the mask: signals stay with Python's own threads. */
static bool
start_thread(void)
{
    sigset_t all, before;
    int result;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    result = cio_sys->thread_start(worker_main, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result == 0;
}

unsigned
cio_workers_count(unsigned requested)
{
    unsigned count = requested;

    if (count == 0) {
        count = cio_cpu_count();
        if (count > CIO_WORKERS_MAX) {
            count = CIO_WORKERS_MAX;
        }
    }
    if (pool.cap != 0 && count > pool.cap) {
        count = pool.cap;
    }
    return count > 0 ? count : 1;
}

void
cio_workers_set_cap(unsigned threads)
{
    pool.cap = threads;
}

/* Workers for job->wanted; the lock is held. */
static void
call_workers(struct cio_job *job)
{
    unsigned lacking = pool.idle + pool.starting;

    lacking = job->wanted > lacking ? job->wanted - lacking : 0;
    while (lacking > 0 && pool.threads < CIO_THREADS_MAX
           && (pool.cap == 0 || pool.threads + 1 < pool.cap)
           && start_thread()) {
        pool.threads++;
        pool.starting++;
        lacking--;
    }
    if (pool.threads == 0) {
        job->wanted = 0;
    } else {
        struct cio_job **at = &pool.jobs;

        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = job;
        (void)pthread_cond_broadcast(&pool.work);
    }
}

void
cio_job_start(struct cio_job *job, unsigned threads)
{
    job->next = NULL;
    job->inside = 0;
    job->wanted = 0;
    job->offers = 0;
    atomic_store(&job->cancelled, false);
    cio_job_offer(job, threads);
}

void
cio_job_offer(struct cio_job *job, unsigned threads)
{
    if (threads <= 1) {
        return;
    }
    (void)pthread_mutex_lock(&pool.lock);
    if (pool.closed) {
        (void)pthread_mutex_unlock(&pool.lock);
        return;
    }
    make_ready();
    if (job->inside == 0) {
        atomic_store(&job->cancelled, false);
    }
    job->offers++;
    if (job->wanted != 0) {
        unlink_job(job);
    }
    job->wanted = job->inside < threads - 1 ? threads - 1 - job->inside : 0;
    if (job->wanted != 0) {
        call_workers(job);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

static struct timespec
deadline_in(int timeout_ms)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

/* Waits for `left` while *count is not 0; the lock is held. */
static bool
wait_for_zero(const unsigned *count, int timeout_ms)
{
    const struct timespec until = deadline_in(timeout_ms);
    int error = 0;

    while (*count != 0 && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&pool.left, &pool.lock, &until);
    }
    return *count == 0;
}

bool
cio_job_join(struct cio_job *job, int timeout_ms)
{
    bool out = true;

    (void)pthread_mutex_lock(&pool.lock);
    if (job->wanted != 0) { /* the caller found no piece left */
        job->wanted = 0;
        unlink_job(job);
    }
    if (job->inside != 0) {
        out = wait_for_zero(&job->inside, timeout_ms);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    return out;
}

void
cio_job_cancel(struct cio_job *job)
{
    atomic_store(&job->cancelled, true);
}

unsigned
cio_workers_running(void)
{
    unsigned threads;

    (void)pthread_mutex_lock(&pool.lock);
    threads = pool.threads;
    (void)pthread_mutex_unlock(&pool.lock);
    return threads;
}

void
cio_workers_stop(void)
{
    (void)pthread_mutex_lock(&pool.lock);
    if (pool.threads > 0) {
        atomic_store(&pool.stop, true);
        (void)pthread_cond_broadcast(&pool.work);
        /* A worker in a blocking call must not hold up the exit for ever. */
        (void)wait_for_zero(&pool.threads, 1000);
        atomic_store(&pool.stop, pool.threads > 0);
    }
    (void)pthread_mutex_unlock(&pool.lock);
}

void
cio_workers_close(void)
{
    (void)pthread_mutex_lock(&pool.lock);
    pool.closed = true;
    (void)pthread_mutex_unlock(&pool.lock);
    cio_workers_stop();
}

void
cio_workers_forget(void)
{
    (void)pthread_mutex_init(&pool.lock, NULL);
    pool.ready = false;
    pool.jobs = NULL;
    pool.threads = 0;
    pool.starting = 0;
    pool.idle = 0;
    atomic_store(&pool.stop, false);
    pool.closed = false;
}
