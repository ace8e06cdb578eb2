/* SPDX-License-Identifier: MIT
 * cio_gzip.c - the gzip member header (RFC 1952), field by field at any cut.
 *
 * Nothing is stored but what BGZF keeps in the extra field: a name of 64 MiB
 * passes through in constant memory.
 */
#include <string.h>

#include "base/cio_bytes.h"
#include "inflate/cio_crc32.h"
#include "inflate/cio_decoder_parts.h"

#define FLAG_CRC 0x02
#define FLAG_EXTRA 0x04
#define FLAG_NAME 0x08
#define FLAG_COMMENT 0x10
#define FLAGS_RESERVED 0xe0

static void
header_came(struct cio_decoder *d, const uint8_t *bytes, size_t nbytes)
{
    d->header_nbytes += nbytes;
    if (d->flags & FLAG_CRC) {
        d->header_crc = cio_crc32(d->header_crc, bytes, nbytes);
    }
}

/* The phase of the first field behind `phase` that the flags name. */
static enum cio_status
next_field(struct cio_decoder *d, enum cio_phase phase)
{
    static const struct {
        uint8_t flag;
        enum cio_phase phase;
    } fields[] = {
        {FLAG_EXTRA, CIO_PHASE_GZIP_EXTRA_SIZE},
        {FLAG_NAME, CIO_PHASE_GZIP_NAME},
        {FLAG_COMMENT, CIO_PHASE_GZIP_COMMENT},
        {FLAG_CRC, CIO_PHASE_GZIP_CRC},
    };

    d->held_nbytes = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if ((d->flags & fields[i].flag) && fields[i].phase > phase) {
            d->phase = (int)fields[i].phase;
            return CIO_MORE;
        }
    }
    d->phase = CIO_PHASE_DATA;
    return CIO_MORE;
}

static enum cio_status
fixed_part(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 2)) {
        return CIO_OK;
    }
    if (d->held[0] != 0x1f || d->held[1] != 0x8b) {
        memcpy(d->first, d->held, 2);
        d->first_nbytes = 2;
        return cio_decoder_fail(d, CIO_PROBLEM_MAGIC,
                                "incorrect header check");
    }
    if (!cio_decoder_gather(d, span, 4)) {
        return CIO_OK;
    }
    d->flags = d->held[3];
    if (d->held[2] != 8) {
        d->found = d->held[2];
        return cio_decoder_fail(d, CIO_PROBLEM_METHOD,
                                "unknown compression method");
    }
    if (d->flags & FLAGS_RESERVED) {
        d->found = d->flags;
        return cio_decoder_fail(d, CIO_PROBLEM_FLAGS,
                                "unknown header flags set");
    }
    if (!cio_decoder_gather(d, span, 10)) {
        return CIO_OK;
    }
    d->mtime = cio_load_le32(d->held + 4);
    d->has_mtime = true;
    d->bgzf = false;
    header_came(d, d->held, 10);
    return next_field(d, CIO_PHASE_GZIP);
}

static enum cio_status
extra_size(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 2)) {
        return CIO_OK;
    }
    d->left = cio_load_le16(d->held);
    header_came(d, d->held, 2);
    d->held_nbytes = 0;
    d->phase = CIO_PHASE_GZIP_EXTRA;
    return CIO_MORE;
}

/* BGZF's subfield "BC": two bytes, the member's whole size less one. */
static void
find_block_size(struct cio_decoder *d)
{
    const uint8_t *const extra = d->extra;
    size_t at = 0;

    while (at + 4 <= d->extra_nbytes) {
        const size_t size = cio_load_le16(extra + at + 2);

        if (extra[at] == 'B' && extra[at + 1] == 'C' && size == 2
            && at + 6 <= d->extra_nbytes) {
            d->block_nbytes = (size_t)cio_load_le16(extra + at + 4) + 1;
            d->bgzf = true;
            return;
        }
        at += 4 + size;
    }
}

static enum cio_status
extra_field(struct cio_decoder *d, struct cio_span *span)
{
    const uint8_t *const at = span->in + span->in_used;
    const size_t n = cio_min_size(d->left, span->in_nbytes - span->in_used);
    const size_t kept =
        cio_min_size(n, CIO_GZIP_EXTRA_NBYTES - d->extra_nbytes);

    if (n > 0) {
        memcpy(d->extra + d->extra_nbytes, at, kept);
        d->extra_nbytes = (uint8_t)(d->extra_nbytes + kept);
        header_came(d, at, n);
        span->in_used += n;
        d->left -= n;
    }
    if (d->left > 0) {
        return CIO_OK;
    }
    find_block_size(d);
    return next_field(d, CIO_PHASE_GZIP_EXTRA);
}

/* A name or comment: up to its NUL. */
static enum cio_status
text_field(struct cio_decoder *d, struct cio_span *span)
{
    const uint8_t *const at = span->in + span->in_used;
    const size_t have = span->in_nbytes - span->in_used;
    const uint8_t *const end = have == 0 ? NULL : memchr(at, 0, have);
    const size_t n = end == NULL ? have : (size_t)(end - at) + 1;

    if (n > 0) {
        header_came(d, at, n);
        span->in_used += n;
    }
    return end == NULL ? CIO_OK : next_field(d, (enum cio_phase)d->phase);
}

static enum cio_status
header_crc(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 2)) {
        return CIO_OK;
    }
    d->header_nbytes += 2;
    d->expected = cio_load_le16(d->held);
    d->found = d->header_crc & 0xffff;
    if (d->found != d->expected) {
        return cio_decoder_fail(d, CIO_PROBLEM_HEADER_CRC,
                                "header crc mismatch");
    }
    return next_field(d, CIO_PHASE_GZIP_CRC);
}

enum cio_status
cio_gzip_header(struct cio_decoder *d, struct cio_span *span)
{
    enum cio_status status;

    switch (d->phase) {
    case CIO_PHASE_GZIP:
        status = fixed_part(d, span);
        break;
    case CIO_PHASE_GZIP_EXTRA_SIZE:
        status = extra_size(d, span);
        break;
    case CIO_PHASE_GZIP_EXTRA:
        status = extra_field(d, span);
        break;
    case CIO_PHASE_GZIP_CRC:
        status = header_crc(d, span);
        break;
    default:
        status = text_field(d, span);
        break;
    }
    if (status == CIO_MORE && d->phase == CIO_PHASE_DATA
        && d->block_nbytes != 0 && d->block_nbytes < d->header_nbytes + 8) {
        d->block_nbytes = 0; /* can't be true: read it as any member */
    }
    return status;
}
