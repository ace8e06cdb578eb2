/* SPDX-License-Identifier: MIT
 * cio_decoder.c - the phases of a stream, each a function that takes what the
 * windows have.
 */
#include "inflate/cio_decoder.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "inflate/cio_crc32.h"
#include "inflate/cio_decoder_parts.h"
#include "inflate/cio_engine_parts.h"

void
cio_decoder_init(struct cio_decoder *d, enum cio_format format)
{
    memset(d, 0, sizeof *d);
    d->wanted = format;
    d->window_bits = 15;
    d->max_nbytes = UINT64_MAX;
    cio_decoder_rewind(d);
}

static void
start_member(struct cio_decoder *d)
{
    d->held_nbytes = 0;
    d->extra_nbytes = 0;
    d->flags = 0;
    d->tried = false;
    d->header_crc = 0;
    d->header_nbytes = 0;
    d->block_nbytes = 0;
    d->check = d->format == CIO_FORMAT_ZLIB ? 1 : 0;
    d->member_in = d->member_out = 0;
    d->fresh = true;
}

void
cio_decoder_rewind(struct cio_decoder *d)
{
    cio_decoder_release(d);
    d->format = d->wanted;
    d->in_total = d->out_total = d->members = 0;
    d->has_mtime = d->bgzf = false;
    d->problem = CIO_PROBLEM_NONE;
    d->failure = CIO_OK;
    d->text = NULL;
    d->last_in = d->last_out = SIZE_MAX;
    start_member(d);
    switch (d->wanted) {
    case CIO_FORMAT_AUTO:
    case CIO_FORMAT_WRAPPED:
        d->phase = CIO_PHASE_FORMAT;
        break;
    case CIO_FORMAT_RAW:
        d->phase = CIO_PHASE_DATA;
        break;
    case CIO_FORMAT_ZLIB:
        d->phase = CIO_PHASE_ZLIB;
        break;
    case CIO_FORMAT_GZIP:
        d->phase = CIO_PHASE_GZIP;
        break;
    }
}

void
cio_decoder_release(struct cio_decoder *d)
{
    cio_inflater_give(d->inflater);
    d->inflater = NULL;
}

enum cio_status
cio_decoder_copy(struct cio_decoder *target, const struct cio_decoder *source)
{
    *target = *source;
    if (source->inflater != NULL) {
        target->inflater = cio_inflater_copy(source->inflater);
        if (target->inflater == NULL) {
            return CIO_ERR_NOMEM;
        }
    }
    return CIO_OK;
}

bool
cio_decoder_pending(const struct cio_decoder *d)
{
    return d->inflater != NULL && cio_inflater_pending(d->inflater);
}

bool
cio_decoder_between(const struct cio_decoder *d)
{
    return d->phase == CIO_PHASE_PADDING || d->phase == CIO_PHASE_END
           || (d->held_nbytes == 0 && d->in_total == 0);
}

enum cio_status
cio_decoder_fail(struct cio_decoder *d, enum cio_problem problem,
                 const char *text)
{
    d->problem = problem;
    d->text = text;
    d->failure = CIO_ERR_DATA;
    d->phase = CIO_PHASE_FAILED;
    cio_decoder_release(d);
    return CIO_ERR_DATA;
}

bool
cio_decoder_gather(struct cio_decoder *d, struct cio_span *span, size_t want)
{
    const size_t have = d->held_nbytes;
    size_t n;

    if (have >= want) {
        return true;
    }
    n = cio_min_size(want - have, span->in_nbytes - span->in_used);
    if (n > 0) {
        memcpy(d->held + have, span->in + span->in_used, n);
        span->in_used += n;
        d->held_nbytes = (uint8_t)(have + n);
    }
    return have + n == want;
}

/* ---------------------------------------------------------------- headers */

static bool
is_gzip(const uint8_t *first)
{
    return first[0] == 0x1f && first[1] == 0x8b;
}

static bool
is_zlib(const uint8_t *first)
{
    return ((unsigned)first[0] << 8 | first[1]) % 31 == 0
           && (first[0] & 15) == 8 && first[0] >> 4 <= 7;
}

static enum cio_status
find_format(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 2)) {
        return CIO_OK;
    }
    if (is_gzip(d->held)) {
        d->format = CIO_FORMAT_GZIP;
        d->phase = CIO_PHASE_GZIP;
    } else if (d->wanted == CIO_FORMAT_WRAPPED || is_zlib(d->held)) {
        d->format = CIO_FORMAT_ZLIB;
        d->check = 1;
        d->phase = CIO_PHASE_ZLIB;
    } else {
        /* What was held is data: CIO_PHASE_DATA takes it first. */
        d->format = CIO_FORMAT_RAW;
        d->phase = CIO_PHASE_DATA;
    }
    return CIO_MORE;
}

static enum cio_status
zlib_header(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 2)) {
        return CIO_OK;
    }
    /* In zlib's order, with its words. */
    if (((unsigned)d->held[0] << 8 | d->held[1]) % 31 != 0) {
        memcpy(d->first, d->held, 2);
        d->first_nbytes = 2;
        return cio_decoder_fail(d, CIO_PROBLEM_MAGIC,
                                "incorrect header check");
    }
    if ((d->held[0] & 15) != 8) {
        return cio_decoder_fail(d, CIO_PROBLEM_METHOD,
                                "unknown compression method");
    }
    if ((d->held[0] >> 4) + 8 > d->window_bits) {
        return cio_decoder_fail(d, CIO_PROBLEM_WINDOW, "invalid window size");
    }
    d->phase = d->held[1] & 0x20 ? CIO_PHASE_ZLIB_ID : CIO_PHASE_DATA;
    d->held_nbytes = 0;
    return CIO_MORE;
}

static enum cio_status
zlib_dictionary_id(struct cio_decoder *d, struct cio_span *span)
{
    if (!cio_decoder_gather(d, span, 4)) {
        return CIO_OK;
    }
    d->expected = cio_load_be32(d->held);
    if (d->dictionary == NULL) {
        return cio_decoder_fail(d, CIO_PROBLEM_NEED_DICTIONARY,
                                "a preset dictionary is needed");
    }
    d->found = cio_adler32(1, d->dictionary, d->dictionary_nbytes);
    if (d->found != d->expected) {
        return cio_decoder_fail(d, CIO_PROBLEM_DICTIONARY,
                                "another preset dictionary is needed");
    }
    d->held_nbytes = 0;
    d->flags = 0x20;
    d->phase = CIO_PHASE_DATA;
    return CIO_MORE;
}

/* ------------------------------------------------------------------- data */

static enum cio_status
lease(struct cio_decoder *d)
{
    const bool checked = d->format != CIO_FORMAT_RAW && !d->zlib_only;
    const bool preset = d->dictionary != NULL
                        && (d->format == CIO_FORMAT_RAW || d->flags == 0x20);

    if (d->inflater == NULL) {
        d->inflater = d->window_bits < 15
                          ? cio_inflater_take_window(d->window_bits)
                          : cio_inflater_take(checked);
    } else {
        cio_inflater_reset(d->inflater);
    }
    if (d->inflater == NULL) {
        return CIO_ERR_NOMEM;
    }
    d->fresh = false;
    if (preset) {
        return cio_inflater_dictionary(d->inflater, d->dictionary,
                                       d->dictionary_nbytes);
    }
    return CIO_OK;
}

static void
data_came(struct cio_decoder *d, const uint8_t *data, size_t nbytes)
{
    if (d->format == CIO_FORMAT_GZIP) {
        d->check = cio_crc32(d->check, data, nbytes);
    } else if (d->format == CIO_FORMAT_ZLIB) {
        d->check = cio_adler32(d->check, data, nbytes);
    }
    if (!d->first_came && nbytes > 0) {
        d->first_came = true;
        d->first_mtime = d->mtime;
    }
    d->out_total += nbytes;
    d->member_out += nbytes;
}

static void
data_ended(struct cio_decoder *d)
{
    if (d->format == CIO_FORMAT_RAW) {
        d->phase = CIO_PHASE_END;
        d->members = 1;
        return;
    }
    d->held_nbytes = 0;
    d->phase = CIO_PHASE_TRAILER;
}

/* Room for output: the window's, the caller's bound's, and no more than the
 * checksum finds in the cache afterwards. */
static size_t
room_for(const struct cio_decoder *d, const struct cio_span *span)
{
    const uint64_t allowed = d->max_nbytes - d->out_total;

    return (size_t)cio_min_u64(span->out_nbytes - span->out_used, allowed);
}

/* How much input to offer an engine that only does whole members; 0: none. */
static size_t
whole_input(const struct cio_decoder *d, size_t in_nbytes, size_t room)
{
    if (d->block_nbytes != 0) {
        const size_t data = d->block_nbytes - d->header_nbytes - 8;

        /* BGZF never holds more; less room might do, or not. */
        return data <= in_nbytes && room >= CIO_BGZF_BLOCK_NBYTES ? data : 0;
    }
    if (d->all_input && d->members == 0
        && room <= CIO_INFLATE_WHOLE_MAX_NBYTES) {
        return in_nbytes; /* the caller made room by what ISIZE says */
    }
    /* Members come in sizes that are alike. What is offered bounds what a
     * wrong guess costs. */
    if (d->last_in > CIO_INFLATE_SMALL_NBYTES
        || d->last_out > CIO_INFLATE_SMALL_OUT_NBYTES
        || room < d->last_out * 2 + 64) {
        return 0;
    }
    return d->last_in <= in_nbytes
               ? cio_min_size(in_nbytes, d->last_in * 4 + 64)
               : 0;
}

/* The member's data at one go. false: not this way. */
static bool
inflate_at_once(struct cio_decoder *d, struct cio_span *span)
{
    const size_t in_nbytes = span->in_nbytes - span->in_used;
    const size_t room = room_for(d, span);
    struct cio_whole whole = {
        .in = span->in + span->in_used,
        .out = span->out + span->out_used,
        .out_nbytes = room,
    };

    if (d->format != CIO_FORMAT_GZIP || d->zlib_only || d->tried
        || room == 0) {
        return false;
    }
    whole.in_nbytes = whole_input(d, in_nbytes, room);
    if (whole.in_nbytes == 0) {
        return false;
    }
    if (cio_inflate_try(&whole) != CIO_OK) {
        d->last_in = SIZE_MAX;
        d->tried = true; /* a wrong guess, or broken: the stream tells */
        return false;
    }
    span->in_used += whole.in_used;
    span->out_used += whole.out_used;
    d->member_in = whole.in_used;
    data_came(d, whole.out, whole.out_used);
    data_ended(d);
    return true;
}

/* Room is used up by the caller's bound: does the stream end here? */
static enum cio_status
step_at_bound(struct cio_decoder *d, struct cio_span *span)
{
    uint8_t beyond;
    struct cio_span probe = {
        span->in, span->in_nbytes, span->in_used, &beyond, 1, 0};
    const enum cio_status status = cio_inflater_step(d->inflater, &probe);

    span->in_used = probe.in_used;
    if (probe.out_used > 0) {
        d->failure = CIO_ERR_LIMIT;
        d->phase = CIO_PHASE_FAILED;
        cio_decoder_release(d);
        return CIO_ERR_LIMIT;
    }
    return status;
}

static enum cio_status
step_engine(struct cio_decoder *d, struct cio_span *span)
{
    const size_t before = span->in_used;
    enum cio_status status;

    if (room_for(d, span) == 0 && d->out_total == d->max_nbytes) {
        status = step_at_bound(d, span);
    } else {
        const size_t room =
            cio_min_size(room_for(d, span), CIO_INFLATE_PIECE_NBYTES);
        struct cio_span piece = {span->in,      span->in_nbytes,
                                 span->in_used, span->out + span->out_used,
                                 room,          0};

        status = room == 0 ? cio_inflater_poke(d->inflater, &piece)
                           : cio_inflater_step(d->inflater, &piece);
        span->in_used = piece.in_used;
        span->out_used += piece.out_used;
        data_came(d, piece.out, piece.out_used);
    }
    d->member_in += span->in_used - before;
    return status;
}

static enum cio_status
data(struct cio_decoder *d, struct cio_span *span)
{
    const bool full = span->out_used == span->out_nbytes;
    enum cio_status status;

    if (d->fresh && d->held_nbytes == 0 && inflate_at_once(d, span)) {
        return CIO_MORE;
    }
    if (full && !d->eager && d->out_total != d->max_nbytes) {
        return CIO_OK;
    }
    if (span->in_used == span->in_nbytes && d->held_nbytes == 0
        && !cio_decoder_pending(d)) {
        return CIO_OK;
    }
    if (d->fresh) {
        status = lease(d);
        if (status != CIO_OK) {
            return status;
        }
    }
    if (d->held_nbytes > 0) {
        /* A raw stream that was looked at to find its format. */
        struct cio_span held = {d->held,   d->held_nbytes,   0,
                                span->out, span->out_nbytes, span->out_used};

        status = step_engine(d, &held);
        memmove(d->held, d->held + held.in_used,
                d->held_nbytes - held.in_used);
        d->held_nbytes = (uint8_t)(d->held_nbytes - held.in_used);
        span->out_used = held.out_used;
    } else {
        status = step_engine(d, span);
    }
    switch (status) {
    case CIO_OK:
        return full ? CIO_OK : CIO_MORE;
    case CIO_EOF:
        data_ended(d);
        return CIO_MORE;
    case CIO_ERR_DATA:
        return cio_decoder_fail(d, CIO_PROBLEM_DATA,
                                cio_inflater_text(d->inflater));
    case CIO_MORE:
    case CIO_ERR_SYS:
    case CIO_ERR_NOMEM:
    case CIO_ERR_LIMIT:
        break;
    }
    return status;
}

/* --------------------------------------------------------------- trailers */

static enum cio_status
trailer(struct cio_decoder *d, struct cio_span *span)
{
    const bool gzip = d->format == CIO_FORMAT_GZIP;

    if (!cio_decoder_gather(d, span, 4)) {
        return CIO_OK;
    }
    d->expected = gzip ? cio_load_le32(d->held) : cio_load_be32(d->held);
    d->found = d->check;
    if (d->found != d->expected) {
        return cio_decoder_fail(d, CIO_PROBLEM_CHECK, "incorrect data check");
    }
    if (gzip) {
        if (!cio_decoder_gather(d, span, 8)) {
            return CIO_OK;
        }
        d->expected = cio_load_le32(d->held + 4);
        d->found = (uint32_t)d->member_out;
        if (d->found != d->expected) {
            return cio_decoder_fail(d, CIO_PROBLEM_SIZE,
                                    "incorrect length check");
        }
    }
    d->members++;
    if (!gzip || d->one_member) {
        d->phase = CIO_PHASE_END;
        return CIO_MORE;
    }
    d->last_in = (size_t)cio_min_u64(d->member_in, SIZE_MAX);
    d->last_out = (size_t)cio_min_u64(d->member_out, SIZE_MAX);
    d->phase = CIO_PHASE_PADDING;
    return CIO_MORE;
}

static enum cio_status
padding(struct cio_decoder *d, struct cio_span *span)
{
    /* Zeros may follow a member (tapes, and gzip's own FAQ). */
    while (span->in_used < span->in_nbytes && span->in[span->in_used] == 0) {
        span->in_used++;
    }
    if (span->in_used == span->in_nbytes) {
        return CIO_OK;
    }
    start_member(d);
    d->phase = CIO_PHASE_GZIP;
    return CIO_MORE;
}

/* ------------------------------------------------------------------ stage */

enum cio_status
cio_decoder_step(struct cio_decoder *d, struct cio_span *span)
{
    const size_t in_before = span->in_used, out_before = span->out_used;
    enum cio_status status;

    do {
        if (span->in_used - in_before >= CIO_SLICE_NBYTES
            || span->out_used - out_before >= CIO_SLICE_NBYTES) {
            status = CIO_MORE;
            break;
        }
        switch (d->phase) {
        case CIO_PHASE_FORMAT:
            status = find_format(d, span);
            break;
        case CIO_PHASE_ZLIB:
            status = zlib_header(d, span);
            break;
        case CIO_PHASE_ZLIB_ID:
            status = zlib_dictionary_id(d, span);
            break;
        case CIO_PHASE_DATA:
            status = data(d, span);
            break;
        case CIO_PHASE_TRAILER:
            status = trailer(d, span);
            break;
        case CIO_PHASE_PADDING:
            status = padding(d, span);
            break;
        case CIO_PHASE_END:
            cio_decoder_release(d);
            status = CIO_EOF;
            break;
        case CIO_PHASE_FAILED:
            status = d->failure;
            break;
        default:
            status = cio_gzip_header(d, span);
            break;
        }
    } while (status == CIO_MORE);
    d->in_total += span->in_used - in_before;
    return status;
}

enum cio_status
cio_decoder_finish(struct cio_decoder *d)
{
    switch (d->phase) {
    case CIO_PHASE_END:
        return CIO_EOF;
    case CIO_PHASE_FAILED:
        return d->failure;
    case CIO_PHASE_PADDING:
        d->phase = CIO_PHASE_END;
        cio_decoder_release(d);
        return CIO_EOF;
    case CIO_PHASE_GZIP:
        if (d->held_nbytes == 0 && d->wanted == CIO_FORMAT_GZIP) {
            /* Nothing at all is no member, which is what gzip says too. */
            d->phase = CIO_PHASE_END;
            return CIO_EOF;
        }
        if (d->held_nbytes == 1) {
            d->first[0] = d->held[0];
            d->first_nbytes = 1;
            return cio_decoder_fail(d, CIO_PROBLEM_MAGIC,
                                    "incorrect header check");
        }
        break;
    default:
        break;
    }
    return cio_decoder_fail(d, CIO_PROBLEM_CUT,
                            "incomplete or truncated stream");
}
