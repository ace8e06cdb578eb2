/* SPDX-License-Identifier: MIT
 * cio_pool.h - one bounded pool of buffers and inflate states for the process.
 *
 * Why      A small archive member costs more in building an inflate state than
 *          in inflating; and hundreds of open archives must not keep a buffer
 *          each (JDK-8244659). So pieces are kept in one place, capped in
 *          bytes. A miss allocates and never waits.
 * Owner    cio_pool_take hands a piece to the caller, cio_pool_give takes it
 *          back (NULL is fine). What is idle belongs to the pool.
 * Units    Bytes: size of a piece with all that hangs on it.
 * Errors   take returns NULL when out of memory.
 * Threads  Any. After fork the child starts with an empty pool.
 */
#ifndef CIO_POOL_H
#define CIO_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of every pooled piece. */
struct cio_piece {
    struct cio_piece *next;
    struct cio_pool_class *of;
};

/* A kind of piece; static storage, one per kind. */
struct cio_pool_class {
    const char *name;
    size_t piece_nbytes;
    struct cio_piece *(*create)(struct cio_pool_class *of); /* NULL: nomem */
    void (*destroy)(struct cio_piece *piece);
    /* below: the pool's own */
    _Atomic(struct cio_piece *) slot; /* taken and given without the lock */
    struct cio_piece *idle;
    struct cio_pool_class *next;
    _Atomic _Bool registered;
};

struct cio_piece *cio_pool_take(struct cio_pool_class *of);
void cio_pool_give(struct cio_piece *piece);

/* Buffers: 4 KiB, 16 KiB, 64 KiB, 256 KiB (a chunk). */
struct cio_buffer {
    struct cio_piece piece;
    size_t nbytes; /* usable size of data */
    uint8_t *data; /* 64-byte aligned; poisoned while idle */
};

/* The smallest class that holds want_nbytes; the largest for more. */
struct cio_buffer *cio_buffer_take(size_t want_nbytes);
void cio_buffer_give(struct cio_buffer *buffer);
/* Leaves its memory for good to somebody who may still look at it: it is no
 * longer the pool's and no longer counted. NULL is fine. */
void cio_buffer_abandon(struct cio_buffer *buffer);

struct cio_pool_stats {
    uint64_t limit, held, in_use, high_water; /* bytes */
    uint64_t hits, misses, discarded;         /* pieces */
};
void cio_pool_stats(struct cio_pool_stats *stats);
void cio_pool_set_limit(uint64_t nbytes);     /* 0: nothing is kept */
uint64_t cio_pool_trim(uint64_t keep_nbytes); /* bytes freed */

#endif
