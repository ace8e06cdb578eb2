/* SPDX-License-Identifier: MIT
 * cio_thresholds.c - the values at the start, and the advice they rule.
 */
#include "base/cio_thresholds.h"

#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"

#define HUGE_PAGE_NBYTES (2 * CIO_MIB)

struct cio_thresholds cio_thresholds = {
    .mapped = CIO_MAPPED_NBYTES,
    .parallel = CIO_PARALLEL_NBYTES,
    .huge_pages = CIO_HUGE_PAGES_NBYTES,
};

void
cio_advise_huge(void *p, size_t nbytes)
{
    const uintptr_t mask = HUGE_PAGE_NBYTES - 1;
    const uintptr_t begin = ((uintptr_t)p + mask) & ~mask;
    const uintptr_t end = ((uintptr_t)p + nbytes) & ~mask;

    if (nbytes < atomic_load(&cio_thresholds.huge_pages) || begin >= end) {
        return;
    }
    (void)cio_sys->madvise((void *)begin, end - begin, cio_advice_huge);
}
