/* SPDX-License-Identifier: MIT
 * cio_sys.c - the native table, and the faulty one that tests swap in.
 */
#include "base/cio_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_native.h"

/* The native functions are named cio_native_<call>; those that only some
 * systems have come from cio_sys_linux.c or cio_sys_portable.c. */
static int
cio_native_openat(int dir, const char *path, int flags, mode_t mode)
{
    return openat(dir, path, flags | O_CLOEXEC, mode);
}

static int
cio_native_fcntl(int fd, int command, int value)
{
    return fcntl(fd, command, value);
}

static int
cio_native_thread_start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    int error;

    error = pthread_create(&thread, NULL, run, argument);
    if (error != 0) {
        errno = error;
        return -1;
    }
    (void)pthread_detach(thread);
    return 0;
}

static int
cio_native_allow_result(size_t size)
{
    (void)size;
    return 0;
}

#define cio_native_close close
#define cio_native_lseek lseek
#define cio_native_fstat fstat
#define cio_native_fstatat fstatat
#define cio_native_ftruncate ftruncate
#define cio_native_fsync fsync
#define cio_native_isatty isatty
#define cio_native_mmap mmap
#define cio_native_munmap munmap
#define cio_native_renameat renameat
#define cio_native_unlinkat unlinkat
#define cio_native_mkdirat mkdirat
#define cio_native_symlinkat symlinkat
#define cio_native_readlinkat readlinkat
#define cio_native_fchmod fchmod
#define cio_native_fchown fchown
#define cio_native_futimens futimens
#define cio_native_utimensat utimensat
#define cio_native_poll poll
#define cio_native_malloc malloc
#define cio_native_calloc calloc
#define cio_native_realloc realloc
#define cio_native_read read
#define cio_native_pread pread
#define cio_native_write write
#define cio_native_pwrite pwrite
#define cio_native_writev writev

static const struct cio_sys cio_native_table = {
#define X(result, failure, name, parameters, arguments)                       \
    .name = cio_native_##name,
    CIO_ALL_CALLS(X)
#undef X
};

const struct cio_sys *cio_sys = &cio_native_table;

void
cio_free(void *p)
{
    free(p);
}

/* ---------------------------------------------------------------- faults */

#define FAULTS_MAX 16

static struct {
    struct cio_fault fault;
    uint64_t base; /* calls made before it was added */
} faults[FAULTS_MAX];
static unsigned fault_count;
static _Atomic uint64_t call_counts[CIO_CALL_COUNT];

/* Counts the call. NULL, or the fault that it meets. */
static const struct cio_fault *
meet_fault(enum cio_call call)
{
    const uint64_t k = atomic_fetch_add(&call_counts[call], 1) + 1;

    for (unsigned i = 0; i < fault_count; i++) {
        const struct cio_fault *fault = &faults[i].fault;
        const uint64_t since = k - faults[i].base;

        if (fault->call == call && since >= fault->first
            && since - fault->first < fault->times) {
            return fault;
        }
    }
    return NULL;
}

#define X(result, failure, name, parameters, arguments)                       \
    static result faulty_##name parameters                                    \
    {                                                                         \
        const struct cio_fault *fault = meet_fault(CIO_CALL_##name);          \
                                                                              \
        if (fault != NULL && fault->error != 0) {                             \
            errno = fault->error;                                             \
            return failure;                                                   \
        }                                                                     \
        return cio_native_table.name arguments;                               \
    }
/* A descriptor whose close fails is closed all the same, as on Linux. */
#define faulty_close plain_close
CIO_PLAIN_CALLS(X)
#undef faulty_close
#undef X

static int
faulty_close(int fd)
{
    const int result = plain_close(fd);

    if (result < 0) {
        const int error = errno;

        (void)cio_native_table.close(fd);
        errno = error;
    }
    return result;
}

#define X(result, failure, name, parameters, arguments)                       \
    static result faulty_##name parameters                                    \
    {                                                                         \
        const struct cio_fault *fault = meet_fault(CIO_CALL_##name);          \
                                                                              \
        if (fault != NULL && fault->error != 0) {                             \
            errno = fault->error;                                             \
            return failure;                                                   \
        }                                                                     \
        if (fault != NULL && fault->max_nbytes < nbytes) {                    \
            if (fault->max_nbytes == 0) {                                     \
                return 0;                                                     \
            }                                                                 \
            nbytes = fault->max_nbytes;                                       \
        }                                                                     \
        return cio_native_table.name arguments;                               \
    }
CIO_SIZED_CALLS(X)
#undef X

static ssize_t
faulty_writev(int fd, const struct iovec *list, int n)
{
    const struct cio_fault *fault = meet_fault(CIO_CALL_writev);

    if (fault != NULL && fault->error != 0) {
        errno = fault->error;
        return -1;
    }
    if (fault != NULL) {
        size_t left = fault->max_nbytes;
        ssize_t total = 0;

        for (int i = 0; i < n && left > 0; i++) {
            const size_t want =
                list[i].iov_len < left ? list[i].iov_len : left;
            const ssize_t put =
                cio_native_table.write(fd, list[i].iov_base, want);

            if (put < 0) {
                return total > 0 ? total : -1;
            }
            total += put;
            left -= (size_t)put;
        }
        return total;
    }
    return cio_native_table.writev(fd, list, n);
}

static const struct cio_sys faulty_table = {
#define X(result, failure, name, parameters, arguments) .name = faulty_##name,
    CIO_ALL_CALLS(X)
#undef X
};

bool
cio_fault_add(const struct cio_fault *fault)
{
    if (fault_count == FAULTS_MAX) {
        return false;
    }
    faults[fault_count].fault = *fault;
    faults[fault_count].base = atomic_load(&call_counts[fault->call]);
    fault_count++;
    cio_sys = &faulty_table;
    return true;
}

void
cio_fault_count(void)
{
    cio_sys = &faulty_table;
}

uint64_t
cio_fault_calls(enum cio_call call)
{
    return atomic_load(&call_counts[call]);
}

void
cio_fault_clear(void)
{
    cio_sys = &cio_native_table;
    fault_count = 0;
    for (int call = 0; call < CIO_CALL_COUNT; call++) {
        atomic_store(&call_counts[call], 0);
    }
}

static const char *const call_names[CIO_CALL_COUNT] = {
#define X(result, failure, name, parameters, arguments) #name,
    CIO_ALL_CALLS(X)
#undef X
};

int
cio_call_of_name(const char *name)
{
    for (int call = 0; call < CIO_CALL_COUNT; call++) {
        if (strcmp(call_names[call], name) == 0) {
            return call;
        }
    }
    return -1;
}

const char *
cio_call_name(enum cio_call call)
{
    return call_names[call];
}
