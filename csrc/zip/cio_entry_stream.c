/* SPDX-License-Identifier: MIT
 * cio_entry_stream.c - a member piece by piece, in bounded memory.
 *
 * Compressed bytes are read where they are needed and not kept: a stream that
 * waits for its next read holds an inflate state and nothing else. While few
 * streams are open they have the fast engine; beyond the pool's limit the one
 * with the smallest state.
 */
#include "zip/cio_entry.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"

static _Atomic uint64_t reserved;

static bool
reserve(uint64_t nbytes, unsigned share)
{
    struct cio_pool_stats stats;
    uint64_t now = atomic_load_explicit(&reserved, memory_order_relaxed);
    uint64_t limit;

    cio_pool_stats(&stats);
    /* With pooling off a single stream should still be a fast one. */
    limit = cio_max_u64(stats.limit, CIO_MIB) / share;
    do {
        if (nbytes > limit || now > limit - nbytes) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &reserved, &now, now + nbytes, memory_order_relaxed,
        memory_order_relaxed));
    return true;
}

bool
cio_entry_reserve(uint64_t nbytes)
{
    return reserve(nbytes, 1);
}

bool
cio_entry_reserve_spare(uint64_t nbytes)
{
    return reserve(nbytes, 4);
}

void
cio_entry_release(uint64_t nbytes)
{
    atomic_fetch_sub_explicit(&reserved, nbytes, memory_order_relaxed);
}

void
cio_entry_stream_init(struct cio_entry_stream *stream,
                      const struct cio_entry *entry)
{
    memset(stream, 0, sizeof *stream);
    stream->entry = *entry;
    stream->keys = entry->keys;
    stream->unbroken = true;
}

static void
give_back(struct cio_entry_stream *stream)
{
    cio_inflater_give(stream->inflater);
    stream->inflater = NULL;
    if (stream->reserved > 0) {
        cio_entry_release(stream->reserved);
        stream->reserved = 0;
    }
}

void
cio_entry_stream_close(struct cio_entry_stream *stream)
{
    give_back(stream);
    stream->ended = true;
}

void
cio_entry_stream_rewind(struct cio_entry_stream *stream)
{
    if (stream->inflater != NULL) {
        cio_inflater_reset(stream->inflater);
    }
    stream->keys = stream->entry.keys;
    stream->in_done = 0;
    stream->out_done = 0;
    stream->crc = 0;
    stream->unbroken = true;
    stream->ended = false;
}

void
cio_entry_stream_skip(struct cio_entry_stream *stream, uint64_t nbytes)
{
    stream->in_done += nbytes;
    stream->out_done += nbytes;
    stream->unbroken = false;
}

static enum cio_status
bad(struct cio_entry_stream *stream, struct cio_zip_problem *problem,
    enum cio_zip_rule rule, uint64_t expected, uint64_t found)
{
    *problem = (struct cio_zip_problem){
        .rule = rule,
        .index = stream->entry.index,
        .offset = stream->entry.data_off + stream->in_done,
        .expected = expected,
        .found = found,
    };
    give_back(stream);
    return CIO_ERR_DATA;
}

/* The state that this stream gets: the fast engine's as long as such states
 * fit into half of the pool's limit, zlib's beyond. */
static enum cio_status
lease(struct cio_entry_stream *stream)
{
    const uint64_t fast = cio_inflater_nbytes(true) + CIO_CHUNK_NBYTES;
    const bool checked = stream->entry.verify && stream->unbroken
                         && stream->entry.nbytes > 0
                         && cio_entry_reserve(2 * fast);

    stream->reserved = checked ? 2 * fast : 0;
    stream->inflater = cio_inflater_take(checked);
    if (stream->inflater == NULL) {
        give_back(stream);
        return CIO_ERR_NOMEM;
    }
    return CIO_OK;
}

enum cio_status
cio_entry_stream_begin(struct cio_entry_stream *stream)
{
    if (stream->entry.method == CIO_ZIP_STORED || stream->inflater != NULL
        || stream->ended) {
        return CIO_OK;
    }
    return lease(stream);
}

/* All bytes of the member have come. */
static enum cio_status
end(struct cio_entry_stream *stream, struct cio_zip_problem *problem)
{
    const struct cio_entry *const entry = &stream->entry;

    if (stream->out_done != entry->nbytes) {
        return bad(stream, problem, CIO_ZIP_RULE_SHORT, entry->nbytes,
                   stream->out_done);
    }
    if (entry->verify && stream->unbroken && stream->crc != entry->crc) {
        return bad(stream, problem, CIO_ZIP_RULE_CRC, entry->crc, stream->crc);
    }
    give_back(stream);
    stream->ended = true;
    return CIO_EOF;
}

static enum cio_status
inflate_step(struct cio_entry_stream *stream, struct cio_span *span,
             struct cio_zip_problem *problem)
{
    const uint64_t left = stream->entry.nbytes - stream->out_done;
    const size_t room = span->out_nbytes - span->out_used;
    const size_t in_before = span->in_used;
    uint8_t beyond;
    struct cio_span step;
    enum cio_status status;

    /* Behind the last byte that the directory promises the stream has to end:
     * one byte of room shows whether it does. */
    step = (struct cio_span){
        .in = span->in + span->in_used,
        .in_nbytes = span->in_nbytes - span->in_used,
        .out = left == 0 ? &beyond : span->out + span->out_used,
        .out_nbytes = left == 0 ? 1 : (size_t)cio_min_u64(room, left),
    };
    status = cio_inflater_step(stream->inflater, &step);
    span->in_used = in_before + step.in_used;
    stream->in_done += step.in_used;
    if (left == 0) {
        if (step.out_used > 0) {
            return bad(stream, problem, CIO_ZIP_RULE_LONG,
                       stream->entry.nbytes, stream->out_done + 1);
        }
    } else {
        stream->crc = cio_crc32(stream->crc, step.out, step.out_used);
        stream->out_done += step.out_used;
        span->out_used += step.out_used;
    }
    if (status == CIO_ERR_DATA) {
        const char *const text = cio_inflater_text(stream->inflater);

        (void)bad(stream, problem, CIO_ZIP_RULE_STREAM, stream->entry.nbytes,
                  stream->out_done);
        problem->text = text;
    }
    return status;
}

/* No compressed byte is left, and the stream didn't end by itself. */
static enum cio_status
out_of_input(struct cio_entry_stream *stream, struct cio_zip_problem *problem)
{
    if (stream->out_done == stream->entry.nbytes) {
        return end(stream, problem); /* as zipfile: all bytes are there */
    }
    return bad(stream, problem, CIO_ZIP_RULE_STREAM_CUT, stream->entry.nbytes,
               stream->out_done);
}

static enum cio_status
step_deflated(struct cio_entry_stream *stream, struct cio_span *span,
              struct cio_zip_problem *problem)
{
    const struct cio_entry *const entry = &stream->entry;
    enum cio_status status = cio_entry_stream_begin(stream);

    while (status == CIO_OK) {
        const size_t in_before = span->in_used, out_before = span->out_used;
        const bool complete = stream->out_done == entry->nbytes;

        if (!complete && span->out_used == span->out_nbytes) {
            return CIO_OK;
        }
        status = inflate_step(stream, span, problem);
        if (status == CIO_EOF) {
            return end(stream, problem);
        }
        if (status != CIO_OK || span->in_used != in_before
            || span->out_used != out_before) {
            continue;
        }
        return stream->in_done >= entry->compressed_nbytes
                   ? out_of_input(stream, problem)
                   : CIO_OK;
    }
    return status;
}

static enum cio_status
step_stored(struct cio_entry_stream *stream, struct cio_span *span,
            struct cio_zip_problem *problem)
{
    const size_t nbytes = cio_min_size(
        span->out_nbytes - span->out_used,
        (size_t)cio_min_u64(span->in_nbytes - span->in_used,
                            stream->entry.nbytes - stream->out_done));
    uint8_t *const out = span->out + span->out_used;

    if (nbytes > 0) {
        if (out != span->in + span->in_used) {
            memcpy(out, span->in + span->in_used, nbytes);
        }
        if (stream->entry.verify && stream->unbroken) {
            stream->crc = cio_crc32(stream->crc, out, nbytes);
        }
    }
    span->in_used += nbytes;
    span->out_used += nbytes;
    stream->in_done += nbytes;
    stream->out_done += nbytes;
    return stream->out_done == stream->entry.nbytes ? end(stream, problem)
                                                    : CIO_OK;
}

static enum cio_status
step_method(struct cio_entry_stream *stream, struct cio_span *span,
            struct cio_zip_problem *problem)
{
    return stream->entry.method == CIO_ZIP_STORED
               ? step_stored(stream, span, problem)
               : step_deflated(stream, span, problem);
}

/* Decrypts a piece into memory of its own. What the step behind doesn't take
 * comes again with the next window, so the keys go on only as far as it did.
 */
static enum cio_status
step_piece(struct cio_entry_stream *stream, struct cio_span *span,
           struct cio_buffer *buffer, struct cio_zip_problem *problem)
{
    const size_t nbytes =
        cio_min_size(span->in_nbytes - span->in_used, buffer->nbytes);
    struct cio_zipcrypto ahead = stream->keys;
    struct cio_span inner = *span;
    enum cio_status status;

    cio_zipcrypto_decrypt(&ahead, span->in + span->in_used, buffer->data,
                          nbytes);
    inner.in = buffer->data;
    inner.in_nbytes = nbytes;
    inner.in_used = 0;
    if (stream->in_done < CIO_ZIPCRYPTO_HEADER_NBYTES) {
        inner.in_used = cio_min_size(
            nbytes, (size_t)(CIO_ZIPCRYPTO_HEADER_NBYTES - stream->in_done));
        stream->in_done += inner.in_used;
    }
    status = stream->in_done < CIO_ZIPCRYPTO_HEADER_NBYTES
                 ? CIO_OK
                 : step_method(stream, &inner, problem);
    if (inner.in_used == nbytes) {
        stream->keys = ahead;
    } else {
        cio_zipcrypto_advance(&stream->keys, buffer->data, inner.in_used);
    }
    span->in_used += inner.in_used;
    span->out_used = inner.out_used;
    return status;
}

static enum cio_status
step_encrypted(struct cio_entry_stream *stream, struct cio_span *span,
               struct cio_zip_problem *problem)
{
    struct cio_buffer *const buffer = cio_buffer_take(
        cio_min_size(span->in_nbytes - span->in_used, 64 * CIO_KIB));
    enum cio_status status;
    size_t in_before, out_before;

    if (buffer == NULL) {
        return CIO_ERR_NOMEM;
    }
    do {
        in_before = span->in_used;
        out_before = span->out_used;
        status = step_piece(stream, span, buffer, problem);
    } while (status == CIO_OK && span->in_used < span->in_nbytes
             && span->out_used < span->out_nbytes
             && (span->in_used != in_before || span->out_used != out_before));
    cio_buffer_give(buffer);
    return status;
}

enum cio_status
cio_entry_stream_step(struct cio_entry_stream *stream, struct cio_span *span,
                      struct cio_zip_problem *problem)
{
    if (stream->ended) {
        return CIO_EOF;
    }
    return stream->entry.decrypt ? step_encrypted(stream, span, problem)
                                 : step_method(stream, span, problem);
}

/* ------------------------------------------------------------- descriptor */

/* One pread of compressed bytes at the stream's place. */
static struct cio_done
read_input(struct cio_entry_stream *stream, int fd, uint8_t *in, size_t nbytes,
           struct cio_zip_problem *problem)
{
    ssize_t got;

    if (nbytes == 0) {
        return cio_done_of(CIO_OK, 0);
    }
    got = cio_sys->pread(fd, in, nbytes,
                         (off_t)(stream->entry.data_off + stream->in_done));
    if (got < 0) {
        return cio_done_sys(errno, 0);
    }
    if (got == 0) {
        return cio_done_of(bad(stream, problem, CIO_ZIP_RULE_DATA_CUT,
                               stream->entry.compressed_nbytes,
                               stream->in_done),
                           0);
    }
    return cio_done_of(CIO_OK, (uint64_t)got);
}

/* Stored: straight into out, a chunk at a time so that the checksum finds it
 * in the cache. */
static struct cio_done
pull_stored(struct cio_entry_stream *stream, int fd, struct cio_span *span,
            struct cio_zip_problem *problem)
{
    uint8_t *const out = span->out + span->out_used;
    const size_t want = (size_t)cio_min_u64(
        cio_min_size(span->out_nbytes - span->out_used, CIO_CHUNK_NBYTES),
        stream->entry.nbytes - stream->out_done);
    struct cio_done done = read_input(stream, fd, out, want, problem);

    if (done.status == CIO_OK) {
        span->in = out;
        span->in_used = 0;
        span->in_nbytes = (size_t)done.nbytes;
        done.status = cio_entry_stream_step(stream, span, problem);
    }
    return done;
}

/* Deflated: as much input as may give what is wanted, so that little is read
 * twice. */
static struct cio_done
pull_deflated(struct cio_entry_stream *stream, int fd, struct cio_span *span,
              struct cio_buffer *buffer, struct cio_zip_problem *problem)
{
    const uint64_t left = stream->entry.compressed_nbytes - stream->in_done;
    const size_t room = span->out_nbytes - span->out_used;
    const size_t want = (size_t)cio_min_u64(
        cio_min_size(buffer->nbytes, room < 4 * CIO_KIB ? 4 * CIO_KIB : room),
        left);
    struct cio_done done = read_input(stream, fd, buffer->data, want, problem);

    if (done.status == CIO_OK) {
        span->in = buffer->data;
        span->in_used = 0;
        span->in_nbytes = (size_t)done.nbytes;
        done.status = cio_entry_stream_step(stream, span, problem);
    }
    return done;
}

struct cio_done
cio_entry_stream_read(struct cio_entry_stream *stream, int fd, uint8_t *out,
                      size_t out_nbytes, struct cio_zip_problem *problem)
{
    const bool plain = cio_entry_is_plain(&stream->entry);
    struct cio_span span = {
        .out = out, .out_nbytes = cio_min_size(out_nbytes, CIO_SLICE_NBYTES)};
    struct cio_buffer *buffer = NULL;
    struct cio_done done = {CIO_OK, 0, 0};

    if (stream->ended) {
        return cio_done_of(CIO_EOF, 0);
    }
    if (!plain) {
        buffer = cio_buffer_take(
            (size_t)cio_min_u64(cio_min_size(64 * CIO_KIB, span.out_nbytes),
                                stream->entry.compressed_nbytes));
        if (buffer == NULL) {
            return cio_done_of(CIO_ERR_NOMEM, 0);
        }
    }
    do {
        done = plain ? pull_stored(stream, fd, &span, problem)
                     : pull_deflated(stream, fd, &span, buffer, problem);
        /* With all bytes delivered the end still has to be seen. */
    } while (done.status == CIO_OK
             && (span.out_used < span.out_nbytes
                 || stream->out_done == stream->entry.nbytes));
    cio_buffer_give(buffer);
    if (done.status == CIO_OK && span.out_nbytes < out_nbytes) {
        done.status = CIO_MORE;
    }
    done.nbytes = span.out_used;
    return done;
}
