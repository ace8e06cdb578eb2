/* SPDX-License-Identifier: MIT
 * cio_native.h - the calls that not every POSIX system has, as the native
 * table wants them.
 *
 * Why      One system a file instead of #if: cio_sys_linux.c makes the calls,
 *          cio_sys_portable.c says ENOSYS (or what POSIX has in place).
 */
#ifndef CIO_NATIVE_H
#define CIO_NATIVE_H

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

int cio_native_clone(int target, int source);
int cio_native_clone_range(int target, int source, off_t source_off,
                           off_t nbytes, off_t target_off);
ssize_t cio_native_copy_file_range(int source, off_t *source_off, int target,
                                   off_t *target_off, size_t nbytes);
ssize_t cio_native_sendfile(int target, int source, off_t *source_off,
                            size_t nbytes);
ssize_t cio_native_splice(int source, off_t *source_off, int target,
                          off_t *target_off, size_t nbytes);
ssize_t cio_native_pread_nowait(int fd, void *buf, size_t nbytes, off_t off);
int cio_native_fallocate(int fd, int mode, off_t off, off_t nbytes);
int cio_native_reserve(int fd, off_t off, off_t nbytes);
int cio_native_fdatasync(int fd);
int cio_native_madvise(void *addr, size_t size, int advice);
int cio_native_pipe(int fds[2]);
ssize_t cio_native_getrandom(void *buf, size_t size);
ssize_t cio_native_flistxattr(int fd, char *list, size_t size);
ssize_t cio_native_fgetxattr(int fd, const char *name, void *value,
                             size_t size);
int cio_native_fsetxattr(int fd, const char *name, const void *value,
                         size_t size);
int cio_native_is_network(int fd);

/* Whether the system has any copy inside the kernel (those above). */
extern const _Bool cio_has_kernel_copies;
/* Flags and modes beyond POSIX; 0 or -1 where the system lacks them. */
extern const int cio_map_populate, cio_fallocate_punch;
extern const int cio_seek_data, cio_seek_hole;

/* Advice values for cio_sys->madvise; no-ops where the system lacks them. */
extern const int cio_advice_huge, cio_advice_sequential, cio_advice_dont_need;
extern const int cio_advice_populate;
/* CPUs that this process may use now; at least 1. */
unsigned cio_cpu_count(void);

#endif
