/* SPDX-License-Identifier: MIT
 * cio_atomic.h - a file that appears whole, or not at all.
 *
 * Why      A temporary file in the same folder takes the bytes and is renamed
 *          over the target when all of them are there: readers see the old
 *          file or the new one, whatever fails in between.
 * Owner    The struct owns the descriptor and its paths between begin and
 *          commit or abort; both end it.
 * Errors   struct cio_done. EINVAL: the target is no regular file.
 * Threads  One user.
 */
#ifndef CIO_ATOMIC_H
#define CIO_ATOMIC_H

#include <stdbool.h>

#include "base/cio_status.h"

struct cio_atomic {
    int fd;          /* to write to, -1 when there is none */
    char *target;    /* links followed: what is replaced */
    char *temporary; /* NULL: nothing to remove */
};

/* Links are followed to what gets replaced, whose mode and, where we may,
 * owner and group are kept (without them no set-ID bits either); where nothing
 * is there yet, a new file's mode (0666 less the umask) is used. */
struct cio_done cio_atomic_begin(struct cio_atomic *atomic, const char *path);
/* Closes and renames; sync: the file before, its folder after. On failure
 * the target is as it was and the temporary file is gone. */
struct cio_done cio_atomic_commit(struct cio_atomic *atomic, bool sync);
/* Removes the temporary file; fine after a failed begin. */
void cio_atomic_abort(struct cio_atomic *atomic);

/* fsync of the folder that the file `path` lies in. */
struct cio_done cio_sync_folder(const char *path);

#endif
