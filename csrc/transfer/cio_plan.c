/* SPDX-License-Identifier: MIT
 * cio_plan.c - the one place that decides: which routes, in which order, and
 * what an error of one means.
 *
 * Direct first (reflink, copy_file_range, sendfile, splice), then mapped from
 * its threshold on, then the chunked loop, which every end has.
 *
 * On ext4, source in the page cache and nothing else running, mapped is 7 %
 * faster than copy_file_range, which fills 64 KiB of page cache at a time. It
 * stays second: each 8 MiB it has to come back for signals (beside a busy
 * Python thread 100 MB take it 1.5 to 1.9 times as long), and a source that
 * must be read from disk takes it 10 % longer. Blocks asked for ahead bring
 * 23 % to every method, so auto does that instead.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"
#include "base/cio_thresholds.h"
#include "transfer/cio_routes.h"

const char *const cio_route_names[] = {
    "reflink", "copy_file_range", "sendfile", "splice",
    "mapped",  "chunked",         "auto",     NULL,
};

void
cio_transfer_init(struct cio_transfer *t)
{
    memset(t, 0, sizeof *t);
    t->left = UINT64_MAX;
    t->sparse = CIO_SPARSE_NEVER;
    t->threshold = atomic_load(&cio_thresholds.mapped);
    t->chunk_nbytes = CIO_CHUNK_NBYTES;
    t->call_max_nbytes = CIO_CALL_MAX_NBYTES;
}

/* Before Linux 5.3 copy_file_range could lose data or lie about the end. */
static bool
copy_file_range_is_sound(void)
{
    static atomic_int verdict; /* 0: not asked, 1: sound, 2: not */

    if (atomic_load(&verdict) == 0) {
        struct utsname name;
        unsigned major = 0, minor = 0;
        bool sound = true;

        if (uname(&name) == 0 && strcmp(name.sysname, "Linux") == 0
            && sscanf(name.release, "%u.%u", &major, &minor) == 2) {
            sound = major > 5 || (major == 5 && minor >= 3);
        }
        atomic_store(&verdict, sound ? 1 : 2);
    }
    return atomic_load(&verdict) == 1;
}

/* Blocks short of the size: holes, or a file system that compresses. */
static bool
may_have_holes(const struct cio_end *end)
{
    return end->kind == CIO_END_FILE && end->allocated < end->size;
}

uint64_t
cio_transfer_ahead(const struct cio_transfer *t)
{
    const uint64_t size = t->source.size, off = t->source.off;

    return size > off ? cio_min_u64(t->left, size - off) : 0;
}

static bool
reflink_fits(const struct cio_transfer *t)
{
    const uint64_t ahead = cio_transfer_ahead(t);
    const uint64_t mask = CIO_BLOCK_NBYTES - 1;

    if (t->target.append || ahead == 0) {
        return false;
    }
    /* A range has to keep to blocks, but for its end at the source's. */
    return ((t->source.off | t->target.off) & mask) == 0
           && ((ahead & mask) == 0 || t->source.off + ahead == t->source.size);
}

/* What can serve these two kinds of ends at all; for a forced method. */
static bool
route_serves(const struct cio_transfer *t, enum cio_route route)
{
    const enum cio_end_kind from = t->source.kind, to = t->target.kind;
    const bool files = from == CIO_END_FILE && to == CIO_END_FILE;

    if (from == CIO_END_CALLER || to == CIO_END_CALLER) {
        return route == CIO_ROUTE_CHUNKED;
    }
    if (!cio_has_kernel_copies && route < CIO_ROUTE_MAPPED) {
        return false;
    }
    switch (route) {
    case CIO_ROUTE_REFLINK:
    case CIO_ROUTE_COPY_FILE_RANGE:
        return files && !t->target.append;
    case CIO_ROUTE_SENDFILE:
        return !t->target.append && from != CIO_END_PIPE
               && from != CIO_END_SOCKET;
    case CIO_ROUTE_SPLICE:
        return !t->target.append
               && (from == CIO_END_PIPE || to == CIO_END_PIPE);
    case CIO_ROUTE_MAPPED:
        return files;
    case CIO_ROUTE_CHUNKED:
    case CIO_ROUTE_COUNT:
        break;
    }
    return true;
}

static void
add(struct cio_transfer *t, enum cio_route route)
{
    if (route_serves(t, route)) {
        t->routes[t->route_count++] = route;
    }
}

/* A window is cut when the source shrank under it, and that needs the written
 * bytes to be the target's last. */
static bool
mapped_pays(const struct cio_transfer *t)
{
    return cio_transfer_ahead(t) > 0 && cio_transfer_ahead(t) >= t->threshold
           && (t->target.append || t->truncate
               || t->target.off >= t->target_size);
}

/* What a stopped copy leaves of it is given back by a cut at the file's end,
 * which would take from others who write there. Not where holes are kept. */
static bool
reserving_pays(const struct cio_transfer *t)
{
    return t->alone && !t->segments
           && cio_transfer_ahead(t) >= CIO_RESERVE_NBYTES;
}

static void
choose(struct cio_transfer *t, enum cio_reflink reflink)
{
    const bool files =
        t->source.kind == CIO_END_FILE && t->target.kind == CIO_END_FILE;
    /* Shared blocks would keep holes that are to be filled; on btrfs and XFS
     * copy_file_range shares them too. */
    const bool share =
        files && reflink != CIO_REFLINK_NEVER
        && !(t->sparse == CIO_SPARSE_NEVER && may_have_holes(&t->source));

    if (t->sparse == CIO_SPARSE_ALWAYS && t->segments) {
        add(t, CIO_ROUTE_CHUNKED); /* every block has to be looked at */
        return;
    }
    /* One read and one write are two calls, a refused clone, a kernel copy and
     * the read behind it three: 1.0 us of 12. No space is saved by sharing. */
    if (files && cio_transfer_ahead(t) > 0
        && cio_transfer_ahead(t) <= CIO_BLOCK_NBYTES) {
        add(t, CIO_ROUTE_CHUNKED);
        return;
    }
    t->reserve = files && reserving_pays(t);
    if (share && reflink_fits(t)) {
        add(t, CIO_ROUTE_REFLINK);
    }
    if (share && copy_file_range_is_sound()) {
        add(t, CIO_ROUTE_COPY_FILE_RANGE);
    }
    add(t, CIO_ROUTE_SPLICE);
    if (t->source.kind == CIO_END_FILE || t->source.kind == CIO_END_BLOCK) {
        add(t, CIO_ROUTE_SENDFILE);
    }
    if (mapped_pays(t)) {
        add(t, CIO_ROUTE_MAPPED);
    }
    add(t, CIO_ROUTE_CHUNKED);
}

/* Ranges of one file: never over each other, never running after its own
 * growing end. */
static bool
ranges_overlap(struct cio_transfer *t)
{
    const uint64_t from = t->source.off;
    const uint64_t to = t->target.append ? t->target.size : t->target.off;
    uint64_t ahead;

    if (!cio_end_same_file(&t->source, &t->target)) {
        return false;
    }
    if (t->truncate) {
        return true;
    }
    ahead = cio_transfer_ahead(t);
    t->left = ahead;
    return ahead > 0 && from < to + ahead && to < from + ahead;
}

enum cio_verdict
cio_plan(struct cio_transfer *t, enum cio_route method,
         enum cio_reflink reflink)
{
    if (t->source.kind == CIO_END_DIRECTORY) {
        return CIO_PLAN_DIRECTORY;
    }
    if (t->left == UINT64_MAX && t->source.endless) {
        return CIO_PLAN_ENDLESS;
    }
    t->target_size = t->target.size;
    if (ranges_overlap(t)) {
        return CIO_PLAN_OVERLAP;
    }
    t->segments =
        t->sparse != CIO_SPARSE_NEVER && t->target.kind == CIO_END_FILE
        && !t->target.append
        && (t->sparse == CIO_SPARSE_ALWAYS || (may_have_holes(&t->source)));
    if (reflink == CIO_REFLINK_ALWAYS) {
        method = CIO_ROUTE_REFLINK;
    }
    if (method == CIO_ROUTE_AUTO) {
        choose(t, reflink);
    } else {
        add(t, method);
    }
    if (t->route_count == 0) {
        return CIO_PLAN_NO_METHOD;
    }
    t->moved_by = t->routes[0];
    return CIO_PLAN_OK;
}

/* Between regular files nobody has to be waited for: ZFS and GPFS say EAGAIN
 * to what they don't do. */
static bool
is_refusal_of_copy(const struct cio_transfer *t, int error)
{
    switch (error) {
    case EXDEV:      /* another file system; sealed memfd; /proc, sysfs */
    case EINVAL:     /* not these kinds of files, or not these ranges */
    case EBADF:      /* copy_file_range: target opened with O_APPEND */
    case ENOSYS:     /* an old kernel, or seccomp */
    case EOPNOTSUPP: /* the file system; FICLONE on ext4 */
    case ENOTTY:     /* FICLONE where ioctls are unknown */
    case EPERM:      /* seccomp; sendfile into a sealed memfd */
    case EACCES:     /* CephFS before Linux 4.20 */
    case ETXTBSY:    /* swap files */
    case ENODATA:    /* Lustre, sendfile */
    case EOVERFLOW:  /* ranges near 2**63 */
    case ESPIPE:     /* offsets where the call takes none */
        return true;
    case EAGAIN:
        return t->source.kind == CIO_END_FILE
               && t->target.kind == CIO_END_FILE;
    case EIO: /* CIFS; on a local disk it is a broken disk */
        return t->count == 0
               && (cio_sys->is_network(t->source.fd) > 0
                   || cio_sys->is_network(t->target.fd) > 0);
    default: /* ENOSPC, EDQUOT, ENOMEM, EFBIG, EPIPE: no way is better */
        return false;
    }
}

bool
cio_route_refuses(const struct cio_transfer *t, enum cio_route route,
                  int error)
{
    switch (route) {
    case CIO_ROUTE_REFLINK:
    case CIO_ROUTE_COPY_FILE_RANGE:
    case CIO_ROUTE_SENDFILE:
    case CIO_ROUTE_SPLICE:
        return is_refusal_of_copy(t, error);
    case CIO_ROUTE_MAPPED: /* only the mapping: a write is a write */
        return t->refused;
    case CIO_ROUTE_CHUNKED:
    case CIO_ROUTE_COUNT:
        break;
    }
    return false;
}
