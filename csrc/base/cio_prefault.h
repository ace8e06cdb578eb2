/* SPDX-License-Identifier: MIT
 * cio_prefault.h - fresh memory made ready by a worker thread while its owner
 * reads or inflates.
 *
 * Why      The kernel zeroes each page of a new result at its first touch: 64
 *          MiB cost 8-12 ms, one fifth of what it takes to inflate them. A
 *          second CPU does that ahead of the one that fills them.
 * Owner    The memory is the caller's, who is going to write all of it. It
 *          must live until cio_prefault_stop.
 * Units    Bytes.
 * Errors   None: what isn't made ready is so at its first touch, as ever.
 * Threads  No content changes, so the owner may write meanwhile.
 */
#ifndef CIO_PREFAULT_H
#define CIO_PREFAULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cio_workers.h"

struct cio_prefault {
    struct cio_job job; /* first: a step gets only this */
    uintptr_t begin, end;
    _Atomic uintptr_t next;
};

/* Nothing happens where the whole result is below the size from which results
 * ask for huge pages, and where there is one CPU. */
void cio_prefault_start(struct cio_prefault *prefault, void *p, size_t nbytes,
                        size_t whole_nbytes);
/* No thread touches the memory after that. */
void cio_prefault_stop(struct cio_prefault *prefault);

#endif
