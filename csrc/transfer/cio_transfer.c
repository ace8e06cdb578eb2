/* SPDX-License-Identifier: MIT
 * cio_transfer.c - the loop over routes: one slice, falling back at the
 * position reached.
 */
#include "transfer/cio_transfer.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "io/cio_move.h"
#include "transfer/cio_routes.h"

static void
advance(struct cio_transfer *t, uint64_t nbytes)
{
    t->source.off += nbytes;
    t->target.off += nbytes;
    t->count += nbytes;
    if (t->left != UINT64_MAX) {
        t->left -= nbytes;
    }
    t->wait_until_ns = 0;
}

static struct cio_done
run_route(struct cio_transfer *t, uint64_t want)
{
    t->refused = false;
    switch (t->routes[t->route_at]) {
    case CIO_ROUTE_REFLINK:
        return cio_route_reflink(t, want);
    case CIO_ROUTE_COPY_FILE_RANGE:
        return cio_route_copy_file_range(t, want);
    case CIO_ROUTE_SENDFILE:
        return cio_route_sendfile(t, want);
    case CIO_ROUTE_SPLICE:
        return cio_route_splice(t, want);
    case CIO_ROUTE_MAPPED:
        return cio_route_mapped(t, want);
    case CIO_ROUTE_CHUNKED:
    case CIO_ROUTE_COUNT:
        break;
    }
    return cio_route_chunked(t, want);
}

/* The next route, from the position reached; false: there is none. */
static bool
give_up(struct cio_transfer *t, int error)
{
    if (t->route_at + 1 >= t->route_count) {
        return false;
    }
    t->fallbacks[t->fallback_count].route = t->routes[t->route_at];
    t->fallbacks[t->fallback_count].error = error;
    t->fallback_count++;
    t->route_at++;
    if (t->count == 0) {
        t->moved_by = t->routes[t->route_at];
    }
    return true;
}

/* A kernel copy said 0, or the known size is reached. Only a read knows: /proc
 * and CIFS say 0 to copies of files that have bytes. CIO_OK: there is more. */
static struct cio_done
confirm_end(struct cio_transfer *t, bool route_said_so)
{
    struct cio_done done;

    if (t->source.positional) {
        uint8_t one[1];

        done = cio_source_read(t, one, sizeof one);
    } else {
        done = cio_transfer_fill(t); /* what comes is pending, not lost */
    }
    if (done.status == CIO_OK && route_said_so && t->source.positional
        && !give_up(t, 0)) {
        done = cio_done_sys(EOPNOTSUPP, 0);
    }
    done.nbytes = 0;
    return done;
}

/* One move: pending bytes, a hole, or one call of the route. */
static struct cio_done
move(struct cio_transfer *t)
{
    const enum cio_route route = t->routes[t->route_at];
    struct cio_done done;
    uint64_t want = t->left;

    if (route != CIO_ROUTE_REFLINK && t->truncate) {
        done = cio_target_truncate(t);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    if (t->pending_begin < t->pending_end) {
        return cio_transfer_drain(t);
    }
    if (t->ended && t->source.off == t->source.size) {
        return cio_done_of(CIO_EOF, 0);
    }
    if (t->segments && route != CIO_ROUTE_REFLINK) {
        if (t->source.off >= t->data_end) {
            done = cio_sparse_next(t);
            if (done.status != CIO_OK || done.nbytes > 0) {
                return done;
            }
        }
        want = cio_min_u64(want, t->data_end - t->source.off);
    }
    /* Behind the size that fstat gave the answer is a read's anyway. */
    if (route != CIO_ROUTE_CHUNKED && t->source.kind == CIO_END_FILE
        && t->source.off >= t->source.size) {
        done = confirm_end(t, false);
        if (done.status != CIO_OK) {
            return done;
        }
        /* It grew, or is one of /proc: no size is known now. */
        t->source.size = UINT64_MAX >> 1;
        t->reserve = false;
        if (route == CIO_ROUTE_MAPPED || route == CIO_ROUTE_REFLINK) {
            return give_up(t, 0) ? cio_done_of(CIO_OK, 0)
                                 : cio_route_chunked(t, want);
        }
    }
    if (t->reserve && route != CIO_ROUTE_REFLINK
        && t->target.off >= t->reserved_end) {
        cio_target_reserve(t);
    }
    done = run_route(t, cio_min_u64(want, CIO_CALL_MAX_NBYTES));
    if (done.status == CIO_OK) {
        t->moved_by = route;
    }
    if (done.status == CIO_EOF && route != CIO_ROUTE_CHUNKED) {
        return confirm_end(t, true);
    }
    return done;
}

/* CIO_OK: go on; else how the step ends. */
static struct cio_done
judge(struct cio_transfer *t, struct cio_done done)
{
    if (done.status != CIO_ERR_SYS) {
        return done;
    }
    if (done.sys_errno == EINTR) {
        return cio_done_of(CIO_MORE, 0);
    }
    if (t->pending_begin == t->pending_end
        && cio_route_refuses(t, t->routes[t->route_at], done.sys_errno)
        && give_up(t, done.sys_errno)) {
        return cio_done_of(CIO_OK, 0);
    }
    if (done.sys_errno == EAGAIN || done.sys_errno == EWOULDBLOCK) {
        return cio_transfer_wait(t);
    }
    return done;
}

static bool
is_stream(const struct cio_end *end)
{
    return end->kind != CIO_END_FILE && end->kind != CIO_END_BLOCK;
}

static bool
ready_now(const struct cio_end *end, short events)
{
    struct pollfd one = {.fd = end->fd, .events = events};

    return !is_stream(end) || cio_sys->poll(&one, 1, 0) > 0;
}

/* Whether the caller has to look at signals before the next move: a signal
 * that came during this one left no trace but a short count, or none, and the
 * next move may block. */
static bool
must_return(const struct cio_transfer *t, uint64_t nbytes, uint64_t wanted)
{
    const enum cio_route route = t->routes[t->route_at];

    if (nbytes == 0) {
        return false; /* a confirmed position, a segment found */
    }
    if (t->pending_begin < t->pending_end) {
        return t->sparse != CIO_SPARSE_ALWAYS;
    }
    if (route == CIO_ROUTE_SPLICE
        || (route == CIO_ROUTE_CHUNKED && !is_stream(&t->target))) {
        return !(ready_now(&t->source, POLLIN)
                 && ready_now(&t->target, POLLOUT));
    }
    if (is_stream(&t->source) || is_stream(&t->target)) {
        return true;
    }
    return nbytes < wanted && t->source.off < t->source.size
           && (route == CIO_ROUTE_COPY_FILE_RANGE
               || route == CIO_ROUTE_SENDFILE);
}

/* The target's old bytes go also where there was nothing to move. */
static struct cio_done
finish(struct cio_transfer *t, struct cio_done done)
{
    if ((done.status == CIO_OK || done.status == CIO_EOF) && t->truncate) {
        const struct cio_done cut = cio_target_truncate(t);

        if (cut.status != CIO_OK) {
            done = cut;
        }
    }
    return done;
}

struct cio_done
cio_transfer_step(struct cio_transfer *t)
{
    const uint64_t before = t->count;
    const uint64_t slice = cio_slice_next(&t->slice_nbytes);
    int64_t begin = 0;
    struct cio_done done = cio_done_of(CIO_OK, 0);

    while (t->left > 0) {
        const uint64_t wanted = cio_min_u64(t->left, t->call_max_nbytes);

        done = move(t);
        if (done.status == CIO_OK) {
            advance(t, done.nbytes);
            if (t->left > 0
                && (t->count - before >= slice
                    || must_return(t, done.nbytes, wanted))) {
                done = cio_done_of(CIO_MORE, 0);
                break;
            }
        } else {
            done = judge(t, done);
            if (done.status != CIO_OK) {
                break;
            }
        }
        if (begin == 0) {
            begin = cio_clock_ns();
        } else if (cio_clock_ns() - begin > CIO_SLICE_MAX_NS) {
            cio_slice_took(&t->slice_nbytes, cio_clock_ns() - begin);
            done = cio_done_of(CIO_MORE, 0);
            break;
        }
    }
    done = finish(t, done);
    done.nbytes = t->count - before;
    return done;
}

/* ------------------------------------------------- ends of the caller */

void
cio_transfer_lend(struct cio_transfer *t, const uint8_t *data, size_t nbytes)
{
    t->pending = data;
    t->pending_begin = 0;
    t->pending_end = nbytes;
}

const uint8_t *
cio_transfer_pending(const struct cio_transfer *t, size_t *nbytes)
{
    *nbytes = t->pending_end - t->pending_begin;
    return *nbytes > 0 ? t->pending + t->pending_begin : NULL;
}

void
cio_transfer_took(struct cio_transfer *t, size_t nbytes)
{
    t->pending_begin += nbytes;
    advance(t, nbytes);
}

struct cio_done
cio_transfer_push(struct cio_transfer *t)
{
    struct cio_done done = cio_target_truncate(t);

    if (done.status == CIO_OK && t->pending_begin < t->pending_end) {
        done = cio_transfer_drain(t);
    }
    if (done.status == CIO_OK) {
        advance(t, done.nbytes);
    } else {
        done = judge(t, done);
    }
    if (done.status == CIO_OK && t->pending_begin < t->pending_end) {
        done.status = CIO_MORE;
    }
    return done;
}

struct cio_done
cio_transfer_pull(struct cio_transfer *t)
{
    struct cio_done done = cio_transfer_fill(t);

    if (done.status != CIO_OK) {
        done = judge(t, done);
        if (done.status == CIO_OK) { /* it was waited for */
            done.status = CIO_MORE;
        }
    }
    done.nbytes = 0; /* nothing has reached the target yet */
    return done;
}

/* ----------------------------------------------------------------- end */

static struct cio_done
settle(struct cio_end *end)
{
    if (end->fd < 0 || !end->positional) {
        return cio_done_of(CIO_OK, 0);
    }
    switch (end->rule) {
    case CIO_OFFSET_LOOSE:
        break;
    case CIO_OFFSET_KEEP:
        return end->first < 0 ? cio_done_of(CIO_OK, 0)
                              : cio_end_seek(end, (uint64_t)end->first);
    case CIO_OFFSET_FOLLOW:
        return end->append ? cio_done_of(CIO_OK, 0)
                           : cio_end_seek(end, end->off);
    }
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_transfer_end(struct cio_transfer *t)
{
    struct cio_done done = cio_done_of(CIO_OK, 0), other;

    cio_buffer_give(t->buffer);
    t->buffer = NULL;
    cio_target_release(t);
    if (t->holes > 0 && t->segments && t->target.off > t->target_size) {
        struct stat st;

        if (cio_sys->fstat(t->target.fd, &st) < 0
            || ((uint64_t)st.st_size < t->target.off
                && cio_sys->ftruncate(t->target.fd, (off_t)t->target.off)
                       < 0)) {
            done = cio_done_sys(errno, 0);
        }
    }
    other = settle(&t->source);
    if (done.status == CIO_OK) {
        done = other;
    }
    other = settle(&t->target);
    return done.status == CIO_OK ? other : done;
}
