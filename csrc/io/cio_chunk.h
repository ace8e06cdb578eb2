/* SPDX-License-Identifier: MIT
 * cio_chunk.h - a bounded piece of memory that bytes pass through.
 *
 * Why      It is held only while it holds bytes: a thousand idle files cost
 *          nothing, and the pool serves the next one warm.
 * Owner    The struct owns its memory between take and give; adopted memory
 *          stays the adopter's, who learns by data == NULL that it is free.
 * Units    Bytes; [begin, end) of data is what it holds.
 * Errors   take: false when out of memory.
 * Threads  One user at a time.
 */
#ifndef CIO_CHUNK_H
#define CIO_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cio_buffer;

struct cio_chunk {
    uint8_t *data; /* NULL: none held */
    size_t begin, end, capacity;
    struct cio_buffer *pooled; /* NULL: own memory, or adopted */
    bool adopted;
};

/* Memory for nbytes, empty; nothing may be held. Up to CIO_CHUNK_NBYTES it
 * comes from the pool. */
bool cio_chunk_take(struct cio_chunk *chunk, size_t nbytes);
void cio_chunk_give(struct cio_chunk *chunk);
/* Holds nbytes of somebody's memory, to be read only. */
void cio_chunk_adopt(struct cio_chunk *chunk, uint8_t *data, size_t nbytes);

static inline size_t
cio_chunk_held(const struct cio_chunk *chunk)
{
    return chunk->end - chunk->begin;
}

static inline void
cio_chunk_drop(struct cio_chunk *chunk)
{
    if (chunk->data != NULL) {
        cio_chunk_give(chunk);
    }
}

/* Drops nbytes from the front. */
static inline void
cio_chunk_used(struct cio_chunk *chunk, size_t nbytes)
{
    chunk->begin += nbytes;
    if (chunk->begin == chunk->end) {
        cio_chunk_give(chunk);
    }
}

#endif
