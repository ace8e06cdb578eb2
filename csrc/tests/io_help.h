/* SPDX-License-Identifier: MIT
 * io_help.h - files of known content and faults, for the tests of io.
 */
#ifndef CIO_IO_HELP_H
#define CIO_IO_HELP_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "io/cio_atomic.h"
#include "io/cio_chunk.h"
#include "io/cio_fd.h"
#include "io/cio_file.h"
#include "io/cio_move.h"
#include "io/cio_parallel.h"
#include "tests/test.h"

/* Byte i of every test file. */
static inline uint8_t
byte_at(uint64_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

static inline bool
is_content(const uint8_t *p, uint64_t off, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++) {
        if (p[i] != byte_at(off + i)) {
            return false;
        }
    }
    return true;
}

static inline const char *
path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *result = path[next++ % 4];

    (void)snprintf(result, 512, "%s/%s", cio_test_folder(), name);
    return result;
}

static inline int
make_file(const char *name, size_t nbytes, int flags)
{
    const char *const path = path_of(name);
    uint8_t *data = malloc(nbytes + 1);
    FILE *file = fopen(path, "wb");
    int fd;

    CHECK(data != NULL && file != NULL);
    for (size_t i = 0; i < nbytes; i++) {
        data[i] = byte_at(i);
    }
    CHECK_EQ(fwrite(data, 1, nbytes, file), nbytes);
    CHECK_EQ(fclose(file), 0);
    free(data);
    fd = open(path, flags | O_CLOEXEC);
    CHECK_GE(fd, 0);
    return fd;
}

static inline void
fault(enum cio_call call, int error, size_t max_nbytes, unsigned first,
      unsigned times)
{
    const struct cio_fault f = {call, first, times, error, max_nbytes};

    CHECK(cio_fault_add(&f));
}

#endif
