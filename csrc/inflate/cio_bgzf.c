/* SPDX-License-Identifier: MIT
 * cio_bgzf.c - find blocks, hand them out, take them back in order.
 */
#include "inflate/cio_bgzf.h"

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_workers.h"
#include "inflate/cio_decoder_parts.h"

#define BLOCKS_MAX 256 /* one turn's */
#define TRAILER_NBYTES 8

struct block {
    struct cio_whole whole;
    size_t nbytes; /* of the member */
    uint32_t crc, mtime;
    bool right;
};

struct batch {
    struct cio_job job;
    _Atomic unsigned next;
    unsigned count;
    struct block blocks[BLOCKS_MAX];
};

/* Size of the member at the start, from its header; 0: it isn't a block's, or
 * it is cut. */
static size_t
block_nbytes(const uint8_t *in, size_t in_nbytes, size_t *header_nbytes)
{
    size_t extra, at = 12;

    if (in_nbytes < 18 || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8
        || in[3] != 4) {
        return 0;
    }
    extra = cio_load_le16(in + 10);
    if (extra > in_nbytes - 12) {
        return 0;
    }
    *header_nbytes = 12 + extra;
    while (at + 6 <= 12 + extra) {
        const size_t size = cio_load_le16(in + at + 2);

        if (in[at] == 'B' && in[at + 1] == 'C' && size == 2) {
            return (size_t)cio_load_le16(in + at + 4) + 1;
        }
        at += 4 + size;
    }
    return 0;
}

bool
cio_bgzf_starts(const uint8_t *in, size_t nbytes)
{
    size_t header_nbytes;

    return block_nbytes(in, nbytes, &header_nbytes) != 0;
}

/* The block at the window's start: fills in all but out. */
static bool
parse_block(const uint8_t *in, size_t in_nbytes, struct block *block)
{
    size_t header_nbytes;
    const size_t nbytes = block_nbytes(in, in_nbytes, &header_nbytes);

    if (nbytes == 0 || nbytes > in_nbytes
        || nbytes < header_nbytes + TRAILER_NBYTES) {
        return false;
    }
    block->nbytes = nbytes;
    block->mtime = cio_load_le32(in + 4);
    block->crc = cio_load_le32(in + nbytes - 8);
    block->whole = (struct cio_whole){
        .in = in + header_nbytes,
        .in_nbytes = nbytes - header_nbytes - TRAILER_NBYTES,
        .out_nbytes = cio_load_le32(in + nbytes - 4),
        .checked = true,
    };
    return block->whole.out_nbytes <= CIO_BGZF_BLOCK_NBYTES;
}

static bool
inflate_next(struct cio_job *job)
{
    struct batch *const batch = (struct batch *)job;
    const unsigned k = atomic_fetch_add(&batch->next, 1);
    struct block *block;

    if (k >= batch->count) {
        return false;
    }
    block = &batch->blocks[k];
    block->right = cio_inflate_whole(&block->whole) == CIO_OK
                   && block->whole.in_used == block->whole.in_nbytes
                   && block->whole.crc == block->crc;
    return true;
}

static void
inflate_all(struct batch *batch, unsigned threads)
{
    if (batch->count < threads) {
        threads = batch->count;
    }
    if (threads > 1) {
        cio_job_start(&batch->job, threads);
    }
    while (inflate_next(&batch->job)) {
    }
    if (threads > 1) {
        while (!cio_job_join(&batch->job, CIO_WAIT_MS)) {
        }
    }
}

static void
find_blocks(struct batch *batch, const struct cio_decoder *d,
            const struct cio_span *span)
{
    size_t in_at = span->in_used, out_at = span->out_used;
    uint64_t allowed = d->max_nbytes - d->out_total;

    while (batch->count < BLOCKS_MAX) {
        struct block *const block = &batch->blocks[batch->count];

        if (!parse_block(span->in + in_at, span->in_nbytes - in_at, block)
            || block->whole.out_nbytes > span->out_nbytes - out_at
            || block->whole.out_nbytes > allowed) {
            return;
        }
        block->whole.out = span->out + out_at;
        block->right = false;
        in_at += block->nbytes;
        out_at += block->whole.out_nbytes;
        allowed -= block->whole.out_nbytes;
        batch->count++;
    }
}

bool
cio_bgzf_step(struct cio_decoder *d, struct cio_span *span, unsigned threads)
{
    /* The workers' job lives here: none is left behind. */
    struct batch batch;

    if ((d->phase != CIO_PHASE_PADDING
         && !(d->phase == CIO_PHASE_GZIP && d->held_nbytes == 0))
        || span->in_used == span->in_nbytes) {
        return false;
    }
    batch.job = (struct cio_job){.step = inflate_next};
    batch.next = 0;
    batch.count = 0;
    find_blocks(&batch, d, span);
    inflate_all(&batch, threads);
    for (unsigned k = 0; k < batch.count; k++) {
        const struct block *const block = &batch.blocks[k];

        if (!block->right) {
            return k > 0;
        }
        span->in_used += block->nbytes;
        span->out_used += block->whole.out_nbytes;
        d->in_total += block->nbytes;
        d->out_total += block->whole.out_nbytes;
        d->members++;
        d->mtime = block->mtime;
        if (!d->first_came && block->whole.out_nbytes > 0) {
            d->first_came = true;
            d->first_mtime = d->mtime;
        }
        d->has_mtime = d->bgzf = true;
        d->phase = CIO_PHASE_PADDING;
    }
    return batch.count > 0;
}
