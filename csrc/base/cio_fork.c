/* SPDX-License-Identifier: MIT
 * cio_fork.c - one handler that makes pool and workers new in the child.
 */
#include "base/cio_fork.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/cio_internal.h"

unsigned cio_fork_generation;

static bool installed;

static void
in_child(void)
{
    cio_fork_generation++;
    cio_pool_forget();
    cio_workers_forget();
}

int
cio_fork_init(void)
{
    int error;

    if (installed) {
        return 0;
    }
    error = pthread_atfork(NULL, NULL, in_child);
    installed = error == 0;
    return error;
}
