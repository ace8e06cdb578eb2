/* SPDX-License-Identifier: MIT
 * cio_sys.h - the one door to the kernel and to malloc.
 *
 * Why      Every error path must be reached by a test. All calls go through
 *          one table; cio_fault_* swaps in a table that makes the k-th call
 *          fail, or come back short. The same binary ships: a call through a
 *          pointer is nothing beside a system call.
 * Owner    Nothing is owned here.
 * Units    As POSIX.
 * Errors   As POSIX: -1 and errno (NULL for memory, MAP_FAILED for mmap). What
 *          a system lacks fails with ENOSYS (cio_sys_portable.c).
 * Threads  Calls may run anywhere. Faults are set while no call is under way.
 */
#ifndef CIO_SYS_H
#define CIO_SYS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

/* X(result, failure, name, parameters, arguments): failure is what the call
 * returns when it fails. The second list holds the calls whose last size
 * argument `nbytes` a fault may cut short. */
#define CIO_PLAIN_CALLS(X)                                                    \
    X(int, -1, openat, (int dir, const char *path, int flags, mode_t mode),   \
      (dir, path, flags, mode))                                               \
    X(int, -1, close, (int fd), (fd))                                         \
    X(off_t, -1, lseek, (int fd, off_t off, int whence), (fd, off, whence))   \
    X(int, -1, fstat, (int fd, struct stat *st), (fd, st))                    \
    X(int, -1, fstatat,                                                       \
      (int dir, const char *path, struct stat *st, int flags),                \
      (dir, path, st, flags))                                                 \
    X(int, -1, ftruncate, (int fd, off_t size), (fd, size))                   \
    X(int, -1, fallocate, (int fd, int mode, off_t off, off_t nbytes),        \
      (fd, mode, off, nbytes))                                                \
    /* blocks behind the file's end, on a file system that gains by having    \
     * them asked for at once; EOPNOTSUPP on any other */                     \
    X(int, -1, reserve, (int fd, off_t off, off_t nbytes), (fd, off, nbytes)) \
    X(int, -1, fsync, (int fd), (fd))                                         \
    X(int, -1, fdatasync, (int fd), (fd))                                     \
    X(int, -1, fcntl, (int fd, int command, int value), (fd, command, value)) \
    X(int, -1, clone, (int target, int source), (target, source))             \
    X(int, -1, clone_range,                                                   \
      (int target, int source, off_t source_off, off_t nbytes,                \
       off_t target_off),                                                     \
      (target, source, source_off, nbytes, target_off))                       \
    X(void *, CIO_MAP_FAILED, mmap,                                           \
      (void *addr, size_t size, int prot, int flags, int fd, off_t off),      \
      (addr, size, prot, flags, fd, off))                                     \
    X(int, -1, munmap, (void *addr, size_t size), (addr, size))               \
    X(int, -1, madvise, (void *addr, size_t size, int advice),                \
      (addr, size, advice))                                                   \
    X(int, -1, renameat,                                                      \
      (int old_dir, const char *old_path, int new_dir, const char *new_path), \
      (old_dir, old_path, new_dir, new_path))                                 \
    X(int, -1, unlinkat, (int dir, const char *path, int flags),              \
      (dir, path, flags))                                                     \
    X(int, -1, mkdirat, (int dir, const char *path, mode_t mode),             \
      (dir, path, mode))                                                      \
    X(int, -1, symlinkat, (const char *text, int dir, const char *path),      \
      (text, dir, path))                                                      \
    X(ssize_t, -1, readlinkat,                                                \
      (int dir, const char *path, char *text, size_t size),                   \
      (dir, path, text, size))                                                \
    X(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))                     \
    X(int, -1, fchown, (int fd, uid_t owner, gid_t group),                    \
      (fd, owner, group))                                                     \
    X(int, -1, futimens, (int fd, const struct timespec times[2]),            \
      (fd, times))                                                            \
    X(int, -1, utimensat,                                                     \
      (int dir, const char *path, const struct timespec times[2], int flags), \
      (dir, path, times, flags))                                              \
    X(ssize_t, -1, flistxattr, (int fd, char *list, size_t size),             \
      (fd, list, size))                                                       \
    X(ssize_t, -1, fgetxattr,                                                 \
      (int fd, const char *name, void *value, size_t size),                   \
      (fd, name, value, size))                                                \
    X(int, -1, fsetxattr,                                                     \
      (int fd, const char *name, const void *value, size_t size),             \
      (fd, name, value, size))                                                \
    /* 1: a network file system, where EIO may mean "not this call" */        \
    X(int, -1, is_network, (int fd), (fd))                                    \
    X(int, -1, poll, (struct pollfd * fds, nfds_t n, int timeout_ms),         \
      (fds, n, timeout_ms))                                                   \
    X(int, -1, pipe, (int fds[2]), (fds))                                     \
    X(int, 0, isatty, (int fd), (fd))                                         \
    X(ssize_t, -1, getrandom, (void *buf, size_t size), (buf, size))          \
    X(void *, NULL, malloc, (size_t size), (size))                            \
    X(void *, NULL, calloc, (size_t n, size_t size), (n, size))               \
    X(void *, NULL, realloc, (void *p, size_t size), (p, size))               \
    /* asked before a result is allocated by Python, whose allocator isn't    \
     * behind this table: 0, or -1 as malloc's NULL */                        \
    X(int, -1, allow_result, (size_t size), (size))                           \
    X(int, -1, thread_start, (void *(*run)(void *), void *argument),          \
      (run, argument))

#define CIO_SIZED_CALLS(X)                                                    \
    X(ssize_t, -1, read, (int fd, void *buf, size_t nbytes),                  \
      (fd, buf, nbytes))                                                      \
    X(ssize_t, -1, pread, (int fd, void *buf, size_t nbytes, off_t off),      \
      (fd, buf, nbytes, off))                                                 \
    /* what the page cache holds, never waiting: EAGAIN, EOPNOTSUPP */        \
    X(ssize_t, -1, pread_nowait,                                              \
      (int fd, void *buf, size_t nbytes, off_t off), (fd, buf, nbytes, off))  \
    X(ssize_t, -1, write, (int fd, const void *buf, size_t nbytes),           \
      (fd, buf, nbytes))                                                      \
    X(ssize_t, -1, pwrite,                                                    \
      (int fd, const void *buf, size_t nbytes, off_t off),                    \
      (fd, buf, nbytes, off))                                                 \
    X(ssize_t, -1, copy_file_range,                                           \
      (int source, off_t *source_off, int target, off_t *target_off,          \
       size_t nbytes),                                                        \
      (source, source_off, target, target_off, nbytes))                       \
    X(ssize_t, -1, sendfile,                                                  \
      (int target, int source, off_t *source_off, size_t nbytes),             \
      (target, source, source_off, nbytes))                                   \
    X(ssize_t, -1, splice,                                                    \
      (int source, off_t *source_off, int target, off_t *target_off,          \
       size_t nbytes),                                                        \
      (source, source_off, target, target_off, nbytes))

/* writev is cut in its own way: a short count ends inside the list. */
#define CIO_VECTOR_CALLS(X)                                                   \
    X(ssize_t, -1, writev, (int fd, const struct iovec *list, int n),         \
      (fd, list, n))

#define CIO_ALL_CALLS(X)                                                      \
    CIO_PLAIN_CALLS(X) CIO_SIZED_CALLS(X) CIO_VECTOR_CALLS(X)

#define CIO_MAP_FAILED ((void *)-1)

struct cio_sys {
#define X(result, failure, name, parameters, arguments)                       \
    result(*name) parameters;
    CIO_ALL_CALLS(X)
#undef X
};

enum cio_call {
#define X(result, failure, name, parameters, arguments) CIO_CALL_##name,
    CIO_ALL_CALLS(X)
#undef X
        CIO_CALL_COUNT
};

/* What every core file calls: cio_sys->read(...). openat and pipe always set
 * close-on-exec; thread_start starts a detached thread with every signal
 * blocked. */
extern const struct cio_sys *cio_sys;

/* Memory from cio_sys; NULL is fine. */
void cio_free(void *p);

/* One fault: calls number first .. first+times-1 of this kind, counted from 1
 * since cio_fault_add, fail with `error`; or, with error 0, move at most
 * max_nbytes (0: the call moves nothing and returns 0). */
struct cio_fault {
    enum cio_call call;
    unsigned first, times;
    int error;
    size_t max_nbytes;
};

/* false: no room for another fault (16 are kept). */
bool cio_fault_add(const struct cio_fault *fault);
/* Count calls even without a fault; cio_fault_clear ends it. */
void cio_fault_count(void);
uint64_t cio_fault_calls(enum cio_call call);
void cio_fault_clear(void);
/* -1: no such call. */
int cio_call_of_name(const char *name);
const char *cio_call_name(enum cio_call call);

#endif
