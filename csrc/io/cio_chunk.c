/* SPDX-License-Identifier: MIT
 * cio_chunk.c - a chunk from the pool, or of its own where it is larger.
 */
#include "io/cio_chunk.h"

#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"

bool
cio_chunk_take(struct cio_chunk *chunk, size_t nbytes)
{
    *chunk = (struct cio_chunk){.capacity = nbytes};
    if (nbytes <= CIO_CHUNK_NBYTES) {
        chunk->pooled = cio_buffer_take(nbytes);
        chunk->data = chunk->pooled != NULL ? chunk->pooled->data : NULL;
    } else {
        chunk->data = cio_sys->malloc(nbytes);
    }
    return chunk->data != NULL;
}

void
cio_chunk_give(struct cio_chunk *chunk)
{
    if (chunk->pooled != NULL) {
        cio_buffer_give(chunk->pooled);
    } else if (!chunk->adopted) {
        cio_free(chunk->data);
    }
    *chunk = (struct cio_chunk){0};
}

void
cio_chunk_adopt(struct cio_chunk *chunk, uint8_t *data, size_t nbytes)
{
    *chunk = (struct cio_chunk){
        .data = data, .end = nbytes, .capacity = nbytes, .adopted = true};
}
