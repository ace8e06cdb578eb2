/* SPDX-License-Identifier: MIT
 * cio_route_kernel.c - copies inside the kernel: copy_file_range, sendfile,
 * splice. Explicit offsets wherever the call takes them.
 */
#include <errno.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

static struct cio_done
moved(ssize_t nbytes)
{
    if (nbytes < 0) {
        return cio_done_sys(errno, 0);
    }
    return cio_done_of(nbytes == 0 ? CIO_EOF : CIO_OK, (uint64_t)nbytes);
}

static size_t
one_call(const struct cio_transfer *t, uint64_t want)
{
    return (size_t)cio_min_u64(want, t->call_max_nbytes);
}

struct cio_done
cio_route_copy_file_range(struct cio_transfer *t, uint64_t want)
{
    off_t from = (off_t)t->source.off, to = (off_t)t->target.off;

    return moved(cio_sys->copy_file_range(t->source.fd, &from, t->target.fd,
                                          &to, one_call(t, want)));
}

/* sendfile writes where the target's descriptor stands. */
struct cio_done
cio_route_sendfile(struct cio_transfer *t, uint64_t want)
{
    off_t from = (off_t)t->source.off;
    struct cio_done done;

    if (t->target.positional) {
        done = cio_end_seek(&t->target, t->target.off);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    done = moved(cio_sys->sendfile(t->target.fd, t->source.fd,
                                   t->source.positional ? &from : NULL,
                                   one_call(t, want)));
    if (t->target.own >= 0) {
        t->target.own += (int64_t)done.nbytes;
    }
    return done;
}

struct cio_done
cio_route_splice(struct cio_transfer *t, uint64_t want)
{
    off_t from = (off_t)t->source.off, to = (off_t)t->target.off;

    return moved(cio_sys->splice(
        t->source.fd, t->source.positional ? &from : NULL, t->target.fd,
        t->target.positional ? &to : NULL, one_call(t, want)));
}
