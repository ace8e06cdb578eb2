/* SPDX-License-Identifier: MIT
 * cio_fd.c - one bounded call on a descriptor.
 */
#include "io/cio_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#ifdef __linux__
#include <sys/sysmacros.h>
#endif

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"

static struct cio_done
failed(void)
{
    const int error = errno;

    if (error == EINTR) {
        return cio_done_of(CIO_MORE, 0);
    }
    return cio_done_sys(error == EWOULDBLOCK ? EAGAIN : error, 0);
}

struct cio_done
cio_fd_read(int fd, void *buf, size_t nbytes, int64_t off)
{
    const size_t want = cio_min_size(nbytes, CIO_CALL_MAX_NBYTES);
    const ssize_t got = off == CIO_OWN_OFFSET
                            ? cio_sys->read(fd, buf, want)
                            : cio_sys->pread(fd, buf, want, (off_t)off);

    if (got < 0) {
        return failed();
    }
    return cio_done_of(got == 0 && want != 0 ? CIO_EOF : CIO_OK,
                       (uint64_t)got);
}

struct cio_done
cio_fd_read_nowait(int fd, void *buf, size_t nbytes, int64_t off,
                   bool *refused)
{
    const size_t want = cio_min_size(nbytes, CIO_CALL_MAX_NBYTES);
    const ssize_t got = cio_sys->pread_nowait(fd, buf, want, (off_t)off);

    if (got > 0) {
        return cio_done_of(CIO_OK, (uint64_t)got);
    }
    /* ENOSYS and EPERM: old kernels, and seccomp filters of containers. */
    if (got < 0
        && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM
            || errno == EINVAL)) {
        *refused = true;
    }
    return cio_done_of(CIO_MORE, 0);
}

static struct cio_done
written(ssize_t put, size_t want)
{
    if (put < 0) {
        return failed();
    }
    /* Some drivers say 0 when they are full; asking again would never end. */
    if (put == 0 && want != 0) {
        return cio_done_sys(ENOSPC, 0);
    }
    return cio_done_of(CIO_OK, (uint64_t)put);
}

struct cio_done
cio_fd_write(int fd, const void *buf, size_t nbytes, int64_t off)
{
    const size_t want = cio_min_size(nbytes, CIO_CALL_MAX_NBYTES);

    return written(off == CIO_OWN_OFFSET
                       ? cio_sys->write(fd, buf, want)
                       : cio_sys->pwrite(fd, buf, want, (off_t)off),
                   want);
}

struct cio_done
cio_fd_writev(int fd, const struct iovec *list, int n)
{
    size_t want = 0;

    for (int i = 0; i < n; i++) {
        want += list[i].iov_len;
    }
    return written(cio_sys->writev(fd, list, n), want);
}

struct cio_done
cio_fd_seek(int fd, int64_t off, int whence, int64_t *pos)
{
    const off_t at = cio_sys->lseek(fd, (off_t)off, whence);

    if (at < 0) {
        return cio_done_sys(errno, 0);
    }
    *pos = (int64_t)at;
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_fd_open(const char *path, int flags, mode_t mode, int *fd, struct stat *st)
{
    struct cio_done done;

    *fd = cio_sys->openat(AT_FDCWD, path, flags, mode);
    if (*fd < 0) {
        return failed();
    }
    if (cio_sys->fstat(*fd, st) < 0) {
        done = cio_done_sys(errno, 0);
        (void)cio_sys->close(*fd);
        *fd = -1;
        return done;
    }
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_fd_read_small(const char *path, void *buf, size_t nbytes, int *fd,
                  struct stat *st)
{
    struct cio_done done = cio_fd_open(path, O_RDONLY | O_CLOEXEC, 0, fd, st);
    ssize_t got;

    if (done.status != CIO_OK || !S_ISREG(st->st_mode) || st->st_size == 0
        || (uint64_t)st->st_size >= nbytes) {
        return done;
    }
    /* One byte more than the size tells the end without a second call. By
     * position, so that nothing has happened where it is not the end. */
    got = cio_sys->pread(*fd, buf, (size_t)st->st_size + 1, 0);
    if (got == (ssize_t)st->st_size) {
        done.nbytes = (uint64_t)got;
        (void)cio_sys->close(*fd); /* read only: nothing can be lost */
        *fd = -1;
    }
    return done;
}

bool
cio_stat_is_endless(const struct stat *st)
{
#ifdef __linux__
    /* Linux's fixed numbers: Documentation/admin-guide/devices.txt */
    const unsigned which = minor(st->st_rdev);

    return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1
           && (which == 5 || which == 7 || which == 8 || which == 9);
#else
    (void)st;
    return false;
#endif
}

bool
cio_stat_is_on_device(const struct stat *st)
{
#ifdef __linux__
    return major(st->st_dev) != 0;
#else
    (void)st;
    return false;
#endif
}

bool
cio_stat_is_seekable(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode);
}
