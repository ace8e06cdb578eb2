/* SPDX-License-Identifier: MIT
 * cio_sys_portable.c - a system of which nothing is known but POSIX.
 */
#include "base/cio_native.h"

#include <errno.h>
#include <fcntl.h>

const int cio_advice_huge = 0;
const int cio_advice_sequential = 0;
const int cio_advice_dont_need = 0;
const int cio_advice_populate = 0;

const _Bool cio_has_kernel_copies = 0;
const int cio_map_populate = 0;
const int cio_fallocate_punch = 0;
/* POSIX took them up in 2024, and headers hide them before; where they are
 * missing nothing is a hole. */
#if defined(SEEK_DATA)
const int cio_seek_data = SEEK_DATA;
const int cio_seek_hole = SEEK_HOLE;
#elif defined(__linux__) || defined(__FreeBSD__)
const int cio_seek_data = 3;
const int cio_seek_hole = 4;
#else
const int cio_seek_data = -1;
const int cio_seek_hole = -1;
#endif

static int
no_system_call(void)
{
    errno = ENOSYS;
    return -1;
}

int
cio_native_clone(int target, int source)
{
    (void)target, (void)source;
    return no_system_call();
}

int
cio_native_clone_range(int target, int source, off_t source_off, off_t nbytes,
                       off_t target_off)
{
    (void)target, (void)source, (void)source_off, (void)nbytes;
    (void)target_off;
    return no_system_call();
}

ssize_t
cio_native_copy_file_range(int source, off_t *source_off, int target,
                           off_t *target_off, size_t nbytes)
{
    (void)source, (void)source_off, (void)target, (void)target_off;
    (void)nbytes;
    return no_system_call();
}

ssize_t
cio_native_sendfile(int target, int source, off_t *source_off, size_t nbytes)
{
    (void)target, (void)source, (void)source_off, (void)nbytes;
    return no_system_call();
}

ssize_t
cio_native_splice(int source, off_t *source_off, int target, off_t *target_off,
                  size_t nbytes)
{
    (void)source, (void)source_off, (void)target, (void)target_off;
    (void)nbytes;
    return no_system_call();
}

ssize_t
cio_native_pread_nowait(int fd, void *buf, size_t nbytes, off_t off)
{
    (void)fd, (void)buf, (void)nbytes, (void)off;
    errno = EOPNOTSUPP;
    return -1;
}

int
cio_native_fallocate(int fd, int mode, off_t off, off_t nbytes)
{
    (void)fd, (void)mode, (void)off, (void)nbytes;
    return no_system_call();
}

int
cio_native_reserve(int fd, off_t off, off_t nbytes)
{
    (void)fd, (void)off, (void)nbytes;
    return no_system_call();
}

int
cio_native_fdatasync(int fd)
{
    return fsync(fd);
}

int
cio_native_madvise(void *addr, size_t size, int advice)
{
    (void)addr, (void)size, (void)advice;
    return no_system_call();
}

int
cio_native_pipe(int fds[2])
{
    if (pipe(fds) < 0) {
        return -1;
    }
    (void)fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

ssize_t
cio_native_getrandom(void *buf, size_t size)
{
    ssize_t got;
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    got = read(fd, buf, size);
    (void)close(fd);
    return got;
}

ssize_t
cio_native_flistxattr(int fd, char *list, size_t size)
{
    (void)fd, (void)list, (void)size;
    return no_system_call();
}

ssize_t
cio_native_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    (void)fd, (void)name, (void)value, (void)size;
    return no_system_call();
}

int
cio_native_fsetxattr(int fd, const char *name, const void *value, size_t size)
{
    (void)fd, (void)name, (void)value, (void)size;
    return no_system_call();
}

int
cio_native_is_network(int fd)
{
    (void)fd;
    return no_system_call();
}

unsigned
cio_cpu_count(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (unsigned)online : 1;
}
