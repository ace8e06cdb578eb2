/* SPDX-License-Identifier: MIT
 * cio_window.h - a piece of a file, read once for many who look at it.
 *
 * Why      Small members lie side by side: one read for a run of them costs
 *          less than one each.
 * Owner    The window leases a buffer from its first look to its end.
 * Units    Bytes.
 * Errors   NULL: see sys_errno; 0: out of memory.
 * Threads  One at a time.
 */
#ifndef CIO_WINDOW_H
#define CIO_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_pool.h"

struct cio_window {
    struct cio_buffer *buffer; /* NULL: nothing was looked at */
    uint64_t off;
    size_t nbytes;
    bool ended; /* the file ends behind it */
    int sys_errno;
};

/* The window holds all of it, or what the file has of it. */
bool cio_window_has(const struct cio_window *window, uint64_t off,
                    size_t nbytes);
/* nbytes from off (at most CIO_CHUNK_NBYTES), good until the next look. Where
 * they aren't there, `ahead` bytes from off are read. *got is less than nbytes
 * where the file ends. */
const uint8_t *cio_window_look(struct cio_window *window, int fd, uint64_t off,
                               size_t nbytes, size_t ahead, size_t *got);
void cio_window_end(struct cio_window *window);

#endif
