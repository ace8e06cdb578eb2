/* SPDX-License-Identifier: MIT
 * cio_move.h - a read or a write of any size, one slice a step.
 *
 * Why      A signal has to get through within 50 ms, and one system call
 *          holds it: so no call moves more than a slice, and a slice that
 *          took too long is halved for the next.
 * Owner    The caller owns descriptor and memory.
 * Units    Bytes.
 * Errors   A step makes one system call. CIO_MORE: come again, after a look
 *          at signals (a short count may be their only trace). CIO_OK: all is
 *          moved. CIO_EOF (reading): the source ended. nbytes is this step's.
 *          The struct stands behind the last byte moved on every path.
 * Threads  One step at a time on one struct.
 */
#ifndef CIO_MOVE_H
#define CIO_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/cio_status.h"

struct cio_move {
    int fd;
    int64_t off; /* of the next byte, or CIO_OWN_OFFSET */
    uint8_t *buf;
    uint64_t left;
    size_t slice_nbytes; /* 0 at first */
};

struct cio_done cio_read_step(struct cio_move *move);
/* Reads from move->buf, never writes to it. */
struct cio_done cio_write_step(struct cio_move *move);

/* The same for a list of buffers, whose entries are used up. */
struct cio_vector {
    int fd;
    struct iovec *list;
    int n;
    size_t slice_nbytes; /* 0 at first */
};
struct cio_done cio_write_vector_step(struct cio_vector *vector);

/* For other loops of slices: how much to move now, and what it took. */
size_t cio_slice_next(size_t *slice_nbytes);
void cio_slice_took(size_t *slice_nbytes, int64_t ns);
int64_t cio_clock_ns(void);

#endif
