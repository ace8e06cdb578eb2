/* SPDX-License-Identifier: MIT
 * pyio_slices.c - the loop between slices: signals and progress.
 */
#include "glue/base/pyio.h"

#include <errno.h>
#include <time.h>

#define REPORT_NS 50000000 /* api.pyi: at most every 50 ms */

int64_t
pyio_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int
pyio_report(struct pyio_slices *slices, bool last)
{
    PyObject *result;
    int64_t now;

    if (slices->progress == NULL) {
        return 0;
    }
    now = pyio_now_ns();
    if (!last && now < slices->next_ns) {
        return 0;
    }
    slices->next_ns = now + REPORT_NS;
    result = slices->total < 0
                 ? PyObject_CallFunction(slices->progress, "LO",
                                         (long long)slices->done, Py_None)
                 : PyObject_CallFunction(slices->progress, "LL",
                                         (long long)slices->done,
                                         (long long)slices->total);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

struct cio_done
pyio_run_slices(struct pyio_slices *slices)
{
    uint64_t moved = 0;
    struct cio_done done;

    do {
        Py_BEGIN_ALLOW_THREADS
        done = slices->step(slices->argument);
        Py_END_ALLOW_THREADS
        moved += done.nbytes;
        slices->done += (int64_t)done.nbytes;
        if (done.status == CIO_ERR_SYS && done.sys_errno == EINTR) {
            done.status = CIO_MORE;
        }
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0
             && pyio_report(slices, false) == 0);

    done.nbytes = moved;
    if ((done.status == CIO_OK || done.status == CIO_EOF)
        && pyio_report(slices, true) < 0) {
        done.status = CIO_MORE;
    }
    return done;
}
