/* SPDX-License-Identifier: MIT
 * cio_end.c - one end of a transfer: what it is, one read or write, its
 * offset.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "io/cio_fd.h"
#include "io/cio_move.h"
#include "transfer/cio_routes.h"

static enum cio_end_kind
kind_of(mode_t mode)
{
    if (S_ISREG(mode)) {
        return CIO_END_FILE;
    }
    if (S_ISBLK(mode)) {
        return CIO_END_BLOCK;
    }
    if (S_ISCHR(mode)) {
        return CIO_END_CHAR;
    }
    if (S_ISFIFO(mode)) {
        return CIO_END_PIPE;
    }
    if (S_ISSOCK(mode)) {
        return CIO_END_SOCKET;
    }
    return S_ISDIR(mode) ? CIO_END_DIRECTORY : CIO_END_OTHER;
}

void
cio_end_of_stat(struct cio_end *end, int fd, const struct stat *st,
                uint64_t off)
{
    end->fd = fd;
    end->kind = kind_of(st->st_mode);
    end->rule = CIO_OFFSET_LOOSE;
    end->positional = cio_stat_is_seekable(st);
    end->append = false;
    end->timeout_ms = -1;
    end->off = off;
    end->own = -1;
    end->first = -1;
    end->size = st->st_size > 0 ? (uint64_t)st->st_size : 0;
    end->allocated = (uint64_t)st->st_blocks * 512;
    end->device = (uint64_t)st->st_dev;
    end->inode = (uint64_t)st->st_ino;
    end->endless = cio_stat_is_endless(st);
}

void
cio_end_of_caller(struct cio_end *end)
{
    memset(end, 0, sizeof *end);
    end->fd = -1;
    end->kind = CIO_END_CALLER;
    end->timeout_ms = -1;
    end->own = -1;
    end->first = -1;
}

struct cio_done
cio_end_open(struct cio_end *end, int fd, enum cio_offset_rule rule,
             int64_t off)
{
    struct stat st;

    if (cio_sys->fstat(fd, &st) < 0) {
        return cio_done_sys(errno, 0);
    }
    cio_end_of_stat(end, fd, &st, off < 0 ? 0 : (uint64_t)off);
    end->rule = rule;
    if (off >= 0) { /* the kernel says whether it can, by ESPIPE */
        end->positional = true;
        return cio_done_of(CIO_OK, 0);
    }
    if (!end->positional) {
        return cio_done_of(CIO_OK, 0);
    }
    end->own = cio_sys->lseek(fd, 0, SEEK_CUR);
    if (end->own < 0) {
        return cio_done_sys(errno, 0);
    }
    end->first = end->own;
    end->off = (uint64_t)end->own;
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_end_as_target(struct cio_end *end)
{
    const int flags = cio_sys->fcntl(end->fd, F_GETFL, 0);

    if (flags < 0) {
        return cio_done_sys(errno, 0);
    }
    end->append = (flags & O_APPEND) != 0;
    /* Writes in append mode begin at the end, wherever the offset stands. */
    if (end->append && end->own >= 0) {
        end->off = end->size;
    }
    return cio_done_of(CIO_OK, 0);
}

bool
cio_end_same_file(const struct cio_end *a, const struct cio_end *b)
{
    return a->kind == CIO_END_FILE && b->kind == CIO_END_FILE
           && a->device == b->device && a->inode == b->inode;
}

struct cio_done
cio_source_read(struct cio_transfer *t, void *data, size_t nbytes)
{
    const struct cio_end *end = &t->source;

    return cio_fd_read(end->fd, data, nbytes,
                       end->positional ? (int64_t)end->off : CIO_OWN_OFFSET);
}

struct cio_done
cio_target_truncate(struct cio_transfer *t)
{
    if (t->truncate) {
        if (t->target_size > 0 && cio_sys->ftruncate(t->target.fd, 0) < 0) {
            return cio_done_sys(errno, 0);
        }
        t->truncate = false;
        t->target_size = 0;
    }
    return cio_done_of(CIO_OK, 0);
}

void
cio_target_reserve(struct cio_transfer *t)
{
    const uint64_t off = t->target.off;
    const uint64_t nbytes =
        cio_min_u64(cio_transfer_ahead(t), CIO_RESERVE_MAX_NBYTES);

    if (nbytes == 0) {
        return;
    }
    if (cio_sys->reserve(t->target.fd, (off_t)off, (off_t)nbytes) < 0) {
        t->reserve = false;
        if (errno == EOPNOTSUPP || errno == ENOSYS) {
            return;
        }
    }
    t->reserved_end = off + nbytes; /* on a full disk a part of it */
}

/* A copy that stopped, a source that shrank. Giving the file the size that it
 * has frees what lies behind; not when others have made it longer. */
void
cio_target_release(struct cio_transfer *t)
{
    struct stat st;

    if (t->reserved_end > t->target.off
        && cio_sys->fstat(t->target.fd, &st) == 0
        && (uint64_t)st.st_size <= t->target.off) {
        (void)cio_sys->ftruncate(t->target.fd, st.st_size);
    }
}

/* One write, never a loop: a short count may be the only trace of a signal,
 * which must reach the caller before we block. */
struct cio_done
cio_target_write(struct cio_transfer *t, const void *data, size_t nbytes)
{
    const struct cio_end *end = &t->target;
    const bool at_offset = end->positional && !end->append;

    return cio_fd_write(end->fd, data, nbytes,
                        at_offset ? (int64_t)end->off : CIO_OWN_OFFSET);
}

/* ---------------------------------------------------------- own offsets */

struct cio_done
cio_end_note(struct cio_end *end)
{
    if (end->first < 0 && end->rule != CIO_OFFSET_LOOSE) {
        end->first = cio_sys->lseek(end->fd, 0, SEEK_CUR);
        if (end->first < 0) {
            return cio_done_sys(errno, 0);
        }
        end->own = end->first;
    }
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_end_seek(struct cio_end *end, uint64_t off)
{
    const struct cio_done noted = cio_end_note(end);

    if (noted.status != CIO_OK) {
        return noted;
    }
    if (end->own < 0 || (uint64_t)end->own != off) {
        end->own = cio_sys->lseek(end->fd, (off_t)off, SEEK_SET);
        if (end->own < 0) {
            return cio_done_sys(errno, 0);
        }
    }
    return cio_done_of(CIO_OK, 0);
}

/* ----------------------------------------------------------------- waits */

static struct cio_done
wait_for(struct cio_transfer *t, const struct cio_end *end, short events)
{
    struct pollfd one = {.fd = end->fd, .events = events};
    int64_t left_ms;
    int ready;

    if (t->wait_until_ns == 0) {
        t->wait_until_ns = cio_clock_ns() + (int64_t)end->timeout_ms * 1000000;
    }
    left_ms = (t->wait_until_ns - cio_clock_ns() + 999999) / 1000000;
    ready = cio_sys->poll(&one, 1, left_ms > 0 ? (int)left_ms : 0);
    if (ready < 0) {
        return errno == EINTR ? cio_done_of(CIO_MORE, 0)
                              : cio_done_sys(errno, 0);
    }
    return ready == 0 ? cio_done_sys(ETIMEDOUT, 0) : cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_transfer_wait(struct cio_transfer *t)
{
    const bool reading = t->pending_begin == t->pending_end;
    struct cio_done done = cio_done_sys(EAGAIN, 0);

    if (reading && t->source.timeout_ms > 0) {
        done = wait_for(t, &t->source, POLLIN);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    if (t->target.timeout_ms > 0) {
        done = wait_for(t, &t->target, POLLOUT);
    }
    return done;
}
