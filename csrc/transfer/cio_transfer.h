/* SPDX-License-Identifier: MIT
 * cio_transfer.h - bytes from one end to another, by the method that can.
 *
 * Why      The kernel copies faster than a loop where it can, and refuses in
 *          many ways where it can't. One place decides (cio_plan.c); routes
 *          are leaves without policy; a refusal means the next route, from the
 *          position reached (JDK-8274112).
 * Owner    The caller owns descriptors and the struct. cio_transfer_end gives
 *          the buffer back and must follow every cio_plan.
 * Units    Bytes; times in milliseconds.
 * Errors   struct cio_done; transfer->count is right on every path.
 * Threads  One thread at a time in a transfer; different transfers are free.
 */
#ifndef CIO_TRANSFER_H
#define CIO_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cio_pool.h"
#include "base/cio_status.h"

enum cio_route {
    CIO_ROUTE_REFLINK,
    CIO_ROUTE_COPY_FILE_RANGE,
    CIO_ROUTE_SENDFILE,
    CIO_ROUTE_SPLICE,
    CIO_ROUTE_MAPPED,
    CIO_ROUTE_CHUNKED,
    CIO_ROUTE_COUNT,
    CIO_ROUTE_AUTO = CIO_ROUTE_COUNT,
};
/* "reflink" ... "chunked", "auto"; NULL at the end. */
extern const char *const cio_route_names[];

enum cio_end_kind {
    CIO_END_FILE,
    CIO_END_BLOCK,
    CIO_END_CHAR,
    CIO_END_PIPE,
    CIO_END_SOCKET,
    CIO_END_DIRECTORY,
    CIO_END_OTHER,
    CIO_END_CALLER, /* no descriptor: the caller moves its bytes */
};

/* What becomes of the descriptor's own offset. */
enum cio_offset_rule {
    CIO_OFFSET_LOOSE,  /* nobody else looks at it */
    CIO_OFFSET_KEEP,   /* ends where it was */
    CIO_OFFSET_FOLLOW, /* starts there, ends behind the last byte moved */
};

struct cio_end {
    int fd;
    enum cio_end_kind kind;
    enum cio_offset_rule rule;
    bool positional; /* used at off; else where the descriptor stands */
    bool append;     /* writes go to the end, whatever the offset */
    bool endless;    /* /dev/zero and the like */
    int timeout_ms;  /* on EAGAIN: wait so long; 0 or -1: don't wait */
    uint64_t off;    /* of the next byte to move */
    int64_t own;     /* the descriptor's own offset; -1: not asked yet */
    int64_t first;   /* own offset before the transfer; -1: not asked */
    uint64_t size, allocated, device, inode; /* from fstat */
};

enum cio_sparse { CIO_SPARSE_AUTO, CIO_SPARSE_ALWAYS, CIO_SPARSE_NEVER };
enum cio_reflink { CIO_REFLINK_AUTO, CIO_REFLINK_ALWAYS, CIO_REFLINK_NEVER };

struct cio_transfer {
    struct cio_end source, target;
    /* what is wanted */
    uint64_t left; /* bytes still to move; UINT64_MAX: all to the end */
    enum cio_sparse sparse;
    uint64_t threshold;     /* mapped from here on */
    size_t chunk_nbytes;    /* at most CIO_CHUNK_NBYTES */
    size_t call_max_nbytes; /* of one kernel copy */
    bool alone;    /* the target was made or emptied for this: nobody else's */
    bool truncate; /* the target's old bytes go before the first new */
    /* the plan */
    enum cio_route routes[CIO_ROUTE_COUNT];
    unsigned route_count, route_at;
    struct {
        enum cio_route route;
        int error;
    } fallbacks[CIO_ROUTE_COUNT];
    unsigned fallback_count;
    /* how far it came */
    uint64_t count, holes;
    enum cio_route moved_by;
    /* its own */
    bool segments;         /* holes are looked for */
    bool refused;          /* a leaf says: not the data, the method failed */
    bool reserve;          /* ask for the target's blocks ahead */
    uint64_t reserved_end; /* target offset up to which that was done */
    bool ended;            /* a read was short where fstat said the end is */
    uint64_t data_end;     /* source offset where the segment of data ends */
    size_t slice_nbytes;   /* of the next step */
    uint64_t target_size;  /* of the old bytes that are still there */
    int64_t wait_until_ns;
    struct cio_buffer *buffer;
    const uint8_t *pending; /* the buffer's data, or lent by the caller */
    size_t pending_begin, pending_end; /* read, not yet written */
};

/* Fills end from fstat; off < 0: no offset was given. Needs no cleaning up. */
struct cio_done cio_end_open(struct cio_end *end, int fd,
                             enum cio_offset_rule rule, int64_t off);
/* Of an end that is written to: whether it is open for appending, which says
 * nothing about reads. */
struct cio_done cio_end_as_target(struct cio_end *end);
/* From a struct stat at hand; off must be known. */
void cio_end_of_stat(struct cio_end *end, int fd, const struct stat *st,
                     uint64_t off);
void cio_end_of_caller(struct cio_end *end);
bool cio_end_same_file(const struct cio_end *a, const struct cio_end *b);

enum cio_verdict {
    CIO_PLAN_OK,
    CIO_PLAN_DIRECTORY, /* the source is one */
    CIO_PLAN_ENDLESS,   /* an unbounded device, and no count */
    CIO_PLAN_OVERLAP,   /* ranges of one file overlap */
    CIO_PLAN_NO_METHOD, /* the method asked for can't serve these ends */
};

/* Sizes and defaults: no count, no holes kept, this process's thresholds. */
void cio_transfer_init(struct cio_transfer *t);
/* Decides. source, target and what is wanted are set; method AUTO or one. */
enum cio_verdict cio_plan(struct cio_transfer *t, enum cio_route method,
                          enum cio_reflink reflink);
/* Moves about a slice. CIO_MORE: call again; CIO_OK: count reached; CIO_EOF:
 * the source ended. nbytes of this step. */
struct cio_done cio_transfer_step(struct cio_transfer *t);
/* Gives the target its length where it ends in a hole, puts offsets where they
 * belong, gives the buffer back. After success, failure and interruption. */
struct cio_done cio_transfer_end(struct cio_transfer *t);

/* For an end that is the caller's (a Python object):
 * source  the caller fills cio_transfer_room and says how much by lend, or
 *         lends memory of its own; push until CIO_OK
 * target  pull, then take the bytes of cio_transfer_pending and say how many
 *         by took. */
/* Room for the caller's bytes; NULL: out of memory. Nothing may be pending. */
uint8_t *cio_transfer_room(struct cio_transfer *t, size_t *room_nbytes);
void cio_transfer_lend(struct cio_transfer *t, const uint8_t *data,
                       size_t nbytes);
/* One write. CIO_OK: nothing is pending; CIO_MORE: call again. */
struct cio_done cio_transfer_push(struct cio_transfer *t);
/* One read. CIO_OK: bytes are pending; CIO_MORE: call again; CIO_EOF. */
struct cio_done cio_transfer_pull(struct cio_transfer *t);
/* What was read and not yet written; NULL: nothing. */
const uint8_t *cio_transfer_pending(const struct cio_transfer *t,
                                    size_t *nbytes);
void cio_transfer_took(struct cio_transfer *t, size_t nbytes);

#endif
