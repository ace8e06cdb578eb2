/* SPDX-License-Identifier: MIT
 * cio_thresholds.h - the sizes at which the process changes its method.
 *
 * Why      They depend on the machine and can be measured (calibrate), so they
 *          are values and not constants; cio_limits.h has where they start.
 * Units    Bytes; UINT64_MAX means never.
 * Threads  Any; each value is atomic by itself.
 */
#ifndef CIO_THRESHOLDS_H
#define CIO_THRESHOLDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cio_thresholds {
    _Atomic uint64_t mapped;     /* mapped beats chunked */
    _Atomic uint64_t parallel;   /* reads use more than one thread */
    _Atomic uint64_t huge_pages; /* results ask for huge pages */
};

extern struct cio_thresholds cio_thresholds;

/* Ask for huge pages behind [p, p+nbytes), fresh memory that is about to be
 * filled, when nbytes reaches the threshold. Best effort: never an error. */
void cio_advise_huge(void *p, size_t nbytes);

#endif
