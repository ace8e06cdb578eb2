/* SPDX-License-Identifier: MIT
 * cio_route_mapped.c - a window of the source is mapped and written with
 * write(2).
 *
 * The window is never touched by our code: a file that shrinks would raise
 * SIGBUS here, while write(2) comes back short or with EFAULT. But write(2)
 * takes the page behind the new end as zeros: so the source's size is looked
 * at after each window, and what is too much is cut from the target.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

/* What the source still had of the n bytes that were written; the rest is
 * taken off the target's end. */
static struct cio_done
cut(struct cio_transfer *t, uint64_t n)
{
    const uint64_t off = t->source.off;
    struct stat st;
    uint64_t valid;

    if (cio_sys->fstat(t->source.fd, &st) < 0) {
        return cio_done_sys(errno, 0);
    }
    t->source.size = (uint64_t)st.st_size;
    valid = t->source.size > off ? cio_min_u64(n, t->source.size - off) : 0;
    if (valid < n) {
        uint64_t end = t->target.off + n;

        if (cio_sys->fstat(t->target.fd, &st) < 0) {
            return cio_done_sys(errno, 0);
        }
        /* Only where these bytes are the last: others are not ours to cut. */
        if (t->target.append) {
            end = (uint64_t)st.st_size;
        }
        if ((uint64_t)st.st_size == end
            && cio_sys->ftruncate(t->target.fd, (off_t)(end - (n - valid)))
                   < 0) {
            return cio_done_sys(errno, 0);
        }
    }
    return cio_done_of(valid > 0 ? CIO_OK : CIO_EOF, valid);
}

/* EFAULT: the file shrank under the window [.., end). A window within the new
 * size is tried; it takes a further loss to come here again. */
static struct cio_done
after_fault(struct cio_transfer *t, uint64_t end, uint64_t want)
{
    struct stat st;

    if (cio_sys->fstat(t->source.fd, &st) < 0) {
        return cio_done_sys(errno, 0);
    }
    if ((uint64_t)st.st_size >= end) {
        t->refused = true; /* it isn't that */
        return cio_done_sys(EFAULT, 0);
    }
    t->source.size = (uint64_t)st.st_size;
    return cio_route_mapped(t, want);
}

/* A window in a few writes, up to the first that comes back short: that may be
 * the only trace of a signal, or of a source that shrank. */
static struct cio_done
write_window(struct cio_transfer *t, const uint8_t *data, uint64_t nbytes)
{
    const uint64_t off = t->target.off;
    struct cio_done total = {CIO_OK, 0, 0};
    uint64_t n, put;

    do {
        struct cio_done step;

        n = cio_min_u64(nbytes - total.nbytes, CIO_WINDOW_WRITE_NBYTES);
        t->target.off = off + total.nbytes;
        step = cio_target_write(t, data + total.nbytes, (size_t)n);
        put = step.nbytes;
        total.nbytes += put;
        if (step.status != CIO_OK) {
            total =
                total.nbytes > 0 ? cio_done_of(CIO_OK, total.nbytes) : step;
        }
    } while (put == n && total.nbytes < nbytes);
    t->target.off = off;
    return total;
}

struct cio_done
cio_route_mapped(struct cio_transfer *t, uint64_t want)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t off = t->source.off;
    uint64_t lead, nbytes;
    uint8_t *window;
    struct cio_done done;

    if (off >= t->source.size) {
        return cio_done_of(CIO_EOF, 0);
    }
    lead = off & (page - 1);
    nbytes = cio_min_u64(want, t->source.size - off);
    nbytes = cio_min_u64(nbytes, CIO_WINDOW_NBYTES - lead);
    window = cio_sys->mmap(NULL, (size_t)(lead + nbytes), PROT_READ,
                           MAP_SHARED | cio_map_populate, t->source.fd,
                           (off_t)(off - lead));
    if ((void *)window == CIO_MAP_FAILED) {
        t->refused = true;
        return cio_done_sys(errno, 0);
    }
    done = write_window(t, window + lead, nbytes);
    (void)cio_sys->munmap(window, (size_t)(lead + nbytes));
    if (done.status == CIO_OK) {
        return cut(t, done.nbytes);
    }
    if (done.status == CIO_ERR_SYS && done.sys_errno == EFAULT) {
        return after_fault(t, off + nbytes, want);
    }
    return done;
}
