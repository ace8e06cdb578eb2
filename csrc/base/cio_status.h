/* SPDX-License-Identifier: MIT
 * cio_status.h - how a core call ended, and how far it came.
 *
 * Why      A count can't be taken for an error, nor an error hide a count: the
 *          outcome is a type of its own, right on every path.
 * Units    Bytes.
 */
#ifndef CIO_STATUS_H
#define CIO_STATUS_H

#include <stddef.h>
#include <stdint.h>

enum cio_status {
    CIO_OK = 0,
    CIO_EOF,       /* the source ended; not an error */
    CIO_MORE,      /* stopped early, perhaps by a signal; progress is kept */
    CIO_ERR_SYS,   /* a system call failed: see sys_errno */
    CIO_ERR_NOMEM, /* an allocation failed */
    CIO_ERR_DATA,  /* the input breaks its format */
    CIO_ERR_LIMIT, /* a bound that the caller set was reached */
};

struct cio_done {
    enum cio_status status;
    int sys_errno;   /* errno saved at the call; only with CIO_ERR_SYS */
    uint64_t nbytes; /* what reached the destination, failure or not */
};

/* A stage's two windows. The stage moves in_used and out_used; it never asks
 * for more by itself: the caller looks at the windows and calls again. */
struct cio_span {
    const uint8_t *in;
    size_t in_nbytes, in_used;
    uint8_t *out;
    size_t out_nbytes, out_used;
};

static inline struct cio_done
cio_done_sys(int sys_errno, uint64_t nbytes)
{
    return (struct cio_done){CIO_ERR_SYS, sys_errno, nbytes};
}

static inline struct cio_done
cio_done_of(enum cio_status status, uint64_t nbytes)
{
    return (struct cio_done){status, 0, nbytes};
}

#endif
