/* SPDX-License-Identifier: MIT
 * cio_sys_linux.c - the calls that Linux has beyond POSIX.
 */
#include "base/cio_native.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

/* From linux/fs.h, which clashes with libc headers on some systems. */
struct clone_range {
    int64_t source_fd;
    uint64_t source_off, nbytes, target_off;
};
#define CLONE_FILE _IOW(0x94, 9, int)
#define CLONE_FILE_RANGE _IOW(0x94, 13, struct clone_range)

/* Headers older than Linux 5.14, which the oldest systems of wheels have. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
const int cio_advice_huge = MADV_HUGEPAGE;
const int cio_advice_sequential = MADV_SEQUENTIAL;
const int cio_advice_dont_need = MADV_DONTNEED;
const int cio_advice_populate = MADV_POPULATE_WRITE;

const _Bool cio_has_kernel_copies = 1;
const int cio_map_populate = MAP_POPULATE;
const int cio_fallocate_punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
const int cio_seek_data = SEEK_DATA;
const int cio_seek_hole = SEEK_HOLE;

int
cio_native_clone(int target, int source)
{
    return ioctl(target, CLONE_FILE, source);
}

int
cio_native_clone_range(int target, int source, off_t source_off, off_t nbytes,
                       off_t target_off)
{
    struct clone_range range = {source, (uint64_t)source_off, (uint64_t)nbytes,
                                (uint64_t)target_off};

    return ioctl(target, CLONE_FILE_RANGE, &range);
}

ssize_t
cio_native_copy_file_range(int source, off_t *source_off, int target,
                           off_t *target_off, size_t nbytes)
{
    return copy_file_range(source, source_off, target, target_off, nbytes, 0);
}

ssize_t
cio_native_sendfile(int target, int source, off_t *source_off, size_t nbytes)
{
    return sendfile(target, source, source_off, nbytes);
}

ssize_t
cio_native_splice(int source, off_t *source_off, int target, off_t *target_off,
                  size_t nbytes)
{
    return splice(source, source_off, target, target_off, nbytes,
                  SPLICE_F_MOVE);
}

ssize_t
cio_native_pread_nowait(int fd, void *buf, size_t nbytes, off_t off)
{
    const struct iovec one = {buf, nbytes};

    return preadv2(fd, &one, 1, off, RWF_NOWAIT);
}

int
cio_native_fallocate(int fd, int mode, off_t off, off_t nbytes)
{
    return fallocate(fd, mode, off, nbytes);
}

/* ext4 books each new block of a delayed allocation by itself, which costs a
 * quarter of a copy. Elsewhere this was not measured, or can only lose: tmpfs
 * would fill its pages twice, btrfs would not compress. */
int
cio_native_reserve(int fd, off_t off, off_t nbytes)
{
    const uint32_t ext4 = 0xEF53; /* linux/magic.h; ext2 and ext3 refuse */
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0) {
        return -1;
    }
    if ((uint32_t)fs.f_type != ext4) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, off, nbytes);
}

int
cio_native_fdatasync(int fd)
{
    return fdatasync(fd);
}

int
cio_native_madvise(void *addr, size_t size, int advice)
{
    return madvise(addr, size, advice);
}

int
cio_native_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

ssize_t
cio_native_getrandom(void *buf, size_t size)
{
    return getrandom(buf, size, 0);
}

ssize_t
cio_native_flistxattr(int fd, char *list, size_t size)
{
    return flistxattr(fd, list, size);
}

ssize_t
cio_native_fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return fgetxattr(fd, name, value, size);
}

int
cio_native_fsetxattr(int fd, const char *name, const void *value, size_t size)
{
    return fsetxattr(fd, name, value, size, 0);
}

int
cio_native_is_network(int fd)
{
    /* From linux/magic.h and the file systems' own sources. */
    static const uint32_t magics[] = {
        0x6969,     /* NFS */
        0xFF534D42, /* CIFS */
        0xFE534D42, /* SMB2 */
        0x517B,     /* SMB */
        0x00C36400, /* Ceph */
        0x0BD00BD0, /* Lustre */
        0x01021997, /* 9p */
        0x5346414F, /* AFS */
        0x47504653, /* GPFS */
        0x65735546, /* FUSE, behind which anything may be */
    };
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        if ((uint32_t)fs.f_type == magics[i]) {
            return 1;
        }
    }
    return 0;
}

/* CPUs that a cgroup v2 or v1 quota leaves, rounded up; 0: no quota. */
static unsigned
quota_cpus(void)
{
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (file != NULL) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2) {
            quota = -1; /* "max" */
        }
        (void)fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))
               != NULL) {
        if (fscanf(file, "%lld", &quota) != 1) {
            quota = -1;
        }
        (void)fclose(file);
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (file != NULL) {
            if (fscanf(file, "%lld", &period) != 1) {
                period = 0;
            }
            (void)fclose(file);
        }
    }
    if (quota <= 0 || period <= 0) {
        return 0;
    }
    return (unsigned)((quota + period - 1) / period);
}

unsigned
cio_cpu_count(void)
{
    cpu_set_t set;
    unsigned cpus = 1;
    const unsigned quota = quota_cpus();

    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        cpus = (unsigned)CPU_COUNT(&set);
    } else {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);

        cpus = online > 0 ? (unsigned)online : 1;
    }
    if (quota != 0 && quota < cpus) {
        cpus = quota;
    }
    return cpus > 0 ? cpus : 1;
}
