/* SPDX-License-Identifier: MIT
 * cio_route_reflink.c - the target shares the source's blocks: FICLONE for a
 * whole file, FICLONERANGE for a range.
 */
#include <errno.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

/* A clone is made into the target as it is, so that a refusal leaves its old
 * bytes alone; what is behind the new end goes afterwards. */
static struct cio_done
clone_whole(struct cio_transfer *t)
{
    struct stat st;
    int result = cio_sys->clone(t->target.fd, t->source.fd);

    /* An end off the blocks must be the target's end too. */
    if (result < 0 && errno == EINVAL && t->truncate) {
        const struct cio_done cut = cio_target_truncate(t);

        if (cut.status != CIO_OK) {
            return cut;
        }
        result = cio_sys->clone(t->target.fd, t->source.fd);
    }
    if (result < 0 || cio_sys->fstat(t->source.fd, &st) < 0) {
        return cio_done_sys(errno, 0);
    }
    if (t->truncate && t->target_size > (uint64_t)st.st_size
        && cio_sys->ftruncate(t->target.fd, st.st_size) < 0) {
        return cio_done_sys(errno, 0);
    }
    t->truncate = false;
    return cio_done_of(st.st_size > 0 ? CIO_OK : CIO_EOF,
                       (uint64_t)st.st_size);
}

struct cio_done
cio_route_reflink(struct cio_transfer *t, uint64_t want)
{
    const uint64_t off = t->source.off;
    struct cio_done done;
    uint64_t nbytes;

    if (off >= t->source.size) {
        return cio_done_of(CIO_EOF, 0);
    }
    nbytes = cio_min_u64(want, t->source.size - off);
    if (off == 0 && t->target.off == 0 && t->left == UINT64_MAX
        && (t->truncate || t->target_size == 0)) {
        done = clone_whole(t);
    } else if (cio_sys->clone_range(t->target.fd, t->source.fd, (off_t)off,
                                    (off_t)nbytes, (off_t)t->target.off)
               < 0) {
        done = cio_done_sys(errno, 0);
    } else {
        done = cio_done_of(CIO_OK, nbytes);
    }
    if (done.status == CIO_OK && t->source.allocated < t->source.size) {
        t->holes += cio_sparse_count(&t->source, off, off + done.nbytes);
    }
    return done;
}
