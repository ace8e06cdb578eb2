/* SPDX-License-Identifier: MIT
 * cio_fd.h - one bounded call on a descriptor, its outcome told apart.
 *
 * Why      read() says five things by one number and errno. Here each has its
 *          name, so no caller takes a short count for the end or an
 *          interrupted call for an error.
 * Owner    The caller owns the descriptor and the memory.
 * Units    Bytes; `off` is a position from the start, or CIO_OWN_OFFSET for
 *          the descriptor's own offset, which then moves.
 * Errors   CIO_OK: nbytes moved, perhaps fewer than asked. CIO_EOF: nothing
 *          is left. CIO_MORE: a signal came first. CIO_ERR_SYS: sys_errno
 *          (EAGAIN where a non-blocking descriptor would block).
 * Threads  No state. No call moves more than CIO_CALL_MAX_NBYTES.
 */
#ifndef CIO_FD_H
#define CIO_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/cio_status.h"

#define CIO_OWN_OFFSET ((int64_t)-1)

struct cio_done cio_fd_read(int fd, void *buf, size_t nbytes, int64_t off);
/* Only what the page cache holds, so it never waits: good under a lock that
 * others want. CIO_MORE: it can't say, make the call that may wait (a count
 * of 0 is such a case: Linux 5.9 and 5.10 return it before the end).
 * *refused is set where the file system doesn't know the call. */
struct cio_done cio_fd_read_nowait(int fd, void *buf, size_t nbytes,
                                   int64_t off, bool *refused);
struct cio_done cio_fd_write(int fd, const void *buf, size_t nbytes,
                             int64_t off);
struct cio_done cio_fd_writev(int fd, const struct iovec *list, int n);
/* SEEK_SET and friends; *pos is the new position. */
struct cio_done cio_fd_seek(int fd, int64_t off, int whence, int64_t *pos);
/* Opens at `path` and says what is there; close-on-exec. CIO_MORE: a signal
 * came first. On failure nothing stays open. */
struct cio_done cio_fd_open(const char *path, int flags, mode_t mode, int *fd,
                            struct stat *st);
/* As cio_fd_open, and where a regular file's content fits the memory, reads it
 * and closes: what came is nbytes, *fd is -1. Where it doesn't, or the file
 * isn't what its size says, *fd is open at its start and nbytes is 0. */
struct cio_done cio_fd_read_small(const char *path, void *buf, size_t nbytes,
                                  int *fd, struct stat *st);
/* /dev/zero, full, random, urandom: reading them never ends. */
bool cio_stat_is_endless(const struct stat *st);
/* It lies on a device, not on tmpfs, NFS, FUSE or another of those that don't
 * know RWF_NOWAIT (nor on btrfs, which does). */
bool cio_stat_is_on_device(const struct stat *st);
/* Regular file or block device: reads by position, ends at its size. */
bool cio_stat_is_seekable(const struct stat *st);

#endif
