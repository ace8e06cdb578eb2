/* SPDX-License-Identifier: MIT
 * pyio_lock.c - who finds an object busy waits for any lock to be left.
 *
 * All waiting goes through one condition: it is rare, and an object pays a few
 * bytes for its lock instead of a mutex.
 */
#include "glue/base/pyio.h"

#include <pthread.h>
#include <time.h>

#include "base/cio_fork.h"

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t left;
    _Atomic uint64_t turns; /* locks left while somebody waited */
    _Atomic unsigned waiters;
    unsigned generation;
} wait = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .left = PTHREAD_COND_INITIALIZER};

/* A child of fork may have been born while a thread held the mutex. */
static void
renew_after_fork(void)
{
    if (wait.generation != cio_fork_generation) {
        (void)pthread_mutex_init(&wait.mutex, NULL);
        (void)pthread_cond_init(&wait.left, NULL);
        atomic_store(&wait.waiters, 0);
        wait.generation = cio_fork_generation;
    }
}

static void
wait_for_turn(uint64_t seen)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += CIO_WAIT_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&wait.mutex);
    if (wait.turns == seen) {
        (void)pthread_cond_timedwait(&wait.left, &wait.mutex, &until);
    }
    (void)pthread_mutex_unlock(&wait.mutex);
}

int
pyio_lock_enter(struct pyio_lock *lock, PyObject *object)
{
    const unsigned long me = PyThread_get_thread_ident();

    while (PYIO_UNLIKELY(lock->busy)) {
        uint64_t seen;

        if (lock->owner == me) {
            return pyio_raise(PyExc_RuntimeError, "reentrant call inside %R",
                              object);
        }
        if (lock->generation != cio_fork_generation) {
            return pyio_raise(PyExc_RuntimeError,
                              "%R was in a call of another thread when the "
                              "process forked",
                              object);
        }
        renew_after_fork();
        atomic_fetch_add(&wait.waiters, 1);
        seen = wait.turns; /* changes under the GIL and the mutex */
        Py_BEGIN_ALLOW_THREADS
        wait_for_turn(seen);
        Py_END_ALLOW_THREADS
        atomic_fetch_sub(&wait.waiters, 1);
        if (lock->busy && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    lock->busy = true;
    lock->owner = me;
    lock->generation = cio_fork_generation;
    return 0;
}

void
pyio_lock_leave(struct pyio_lock *lock)
{
    lock->busy = false;
    lock->owner = 0;
    if (PYIO_UNLIKELY(atomic_load(&wait.waiters) != 0)) {
        renew_after_fork();
        (void)pthread_mutex_lock(&wait.mutex);
        wait.turns++;
        (void)pthread_cond_broadcast(&wait.left);
        (void)pthread_mutex_unlock(&wait.mutex);
    }
}
