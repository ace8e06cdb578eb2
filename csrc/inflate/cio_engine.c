/* SPDX-License-Identifier: MIT
 * cio_engine.c - the one place that chooses an engine, and the rules of
 * judgement around it.
 */
#include "inflate/cio_engine.h"

#include <stdatomic.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "inflate/cio_crc32.h"
#include "inflate/cio_engine_parts.h"

static const struct cio_whole_engine *whole_engine = &cio_zlib_whole;
static const struct cio_stream_engine *stream_engine = &cio_zlib_stream;
static enum cio_engine_kind crc32_engine = CIO_ENGINE_ZLIB;
static bool isal_refused;

static _Atomic uint64_t calls_with_input, calls_without_input;

void
cio_engine_count(bool with_input)
{
    atomic_fetch_add_explicit(with_input ? &calls_with_input
                                         : &calls_without_input,
                              1, memory_order_relaxed);
}

void
cio_engine_counts(struct cio_engine_counts *counts)
{
    counts->with_input = atomic_load(&calls_with_input);
    counts->without_input = atomic_load(&calls_without_input);
}

/* ----------------------------------------------------------- whole members */

/* `exact`: the stream must end where out does. */
static enum cio_status
inflate_whole(struct cio_whole *whole, bool exact)
{
    static uint8_t nowhere[1]; /* libraries dislike NULL for "no room" */
    const struct cio_whole_engine *engine =
        whole->checked ? whole_engine : &cio_zlib_whole;
    enum cio_status status;

    whole->in_used = whole->out_used = 0;
    whole->crc = 0;
    whole->fault = CIO_FAULT_NONE;
    whole->text = NULL;
    if (whole->in == NULL) {
        whole->in = nowhere; /* in_nbytes is 0 */
    }
    if (whole->out == NULL) {
        whole->out = nowhere; /* out_nbytes is 0 */
    }
    status = engine->inflate(whole);
    if (engine != &cio_zlib_whole
        && (status == CIO_ERR_DATA || (exact && status == CIO_ERR_LIMIT))) {
        /* The judge: for the verdict, the words, and how far data is good. */
        status = cio_zlib_whole.inflate(whole);
    }
    if (status == CIO_ERR_LIMIT) {
        whole->fault = CIO_FAULT_LONG;
        status = CIO_ERR_DATA;
    } else if (status == CIO_OK && exact
               && whole->out_used != whole->out_nbytes) {
        whole->fault = CIO_FAULT_SHORT;
        status = CIO_ERR_DATA;
    }
    if (whole->checked) {
        whole->crc = cio_crc32(0, whole->out, whole->out_used);
    }
    return status;
}

enum cio_status
cio_inflate_whole(struct cio_whole *whole)
{
    return inflate_whole(whole, true);
}

enum cio_status
cio_inflate_within(struct cio_whole *whole)
{
    return inflate_whole(whole, false);
}

enum cio_status
cio_inflate_try(struct cio_whole *whole)
{
    return whole_engine == &cio_zlib_whole ? CIO_ERR_LIMIT
                                           : whole_engine->inflate(whole);
}

bool
cio_whole_is_faster(void)
{
#if CIO_HAVE_LIBDEFLATE
    return whole_engine == &cio_libdeflate_whole;
#else
    return false;
#endif
}

/* ------------------------------------------------------------------ streams
 */

static const struct cio_stream_engine *
engine_for(bool checked)
{
    return checked ? stream_engine : &cio_zlib_stream;
}

struct cio_inflater *
cio_inflater_take(bool checked)
{
    struct cio_inflater *inflater =
        (struct cio_inflater *)cio_pool_take(engine_for(checked)->class);

    if (inflater != NULL) {
        cio_inflater_reset(inflater);
    }
    return inflater;
}

bool
cio_inflater_is_zlib(bool checked)
{
    return engine_for(checked) == &cio_zlib_stream;
}

struct cio_inflater *
cio_inflater_take_window(int window_bits)
{
    struct cio_inflater *inflater = cio_zlib_take_window(window_bits);

    if (inflater != NULL) {
        inflater->text = NULL;
        inflater->pending = inflater->ended = false;
    }
    return inflater;
}

void
cio_inflater_give(struct cio_inflater *inflater)
{
    /* Nothing is reset here: take does it for every stream. */
    cio_pool_give(inflater == NULL ? NULL : &inflater->piece);
}

void
cio_inflater_reset(struct cio_inflater *inflater)
{
    inflater->text = NULL;
    inflater->pending = inflater->ended = false;
    inflater->engine->reset(inflater);
}

enum cio_status
cio_inflater_poke(struct cio_inflater *inflater, struct cio_span *span)
{
    enum cio_status status;

    if (inflater->ended) {
        return inflater->text == NULL ? CIO_EOF : CIO_ERR_DATA;
    }
    status = inflater->engine->step(inflater, span);
    inflater->pending = span->out_used == span->out_nbytes;
    if (status != CIO_OK) {
        inflater->ended = status != CIO_ERR_NOMEM;
        inflater->pending = false;
    }
    return status;
}

enum cio_status
cio_inflater_step(struct cio_inflater *inflater, struct cio_span *span)
{
    enum cio_status status = CIO_OK;

    while (status == CIO_OK && span->out_used < span->out_nbytes
           && (span->in_used < span->in_nbytes || inflater->pending)) {
        status = cio_inflater_poke(inflater, span);
    }
    return status;
}

const char *
cio_inflater_text(const struct cio_inflater *inflater)
{
    return inflater->text == NULL ? "invalid data" : inflater->text;
}

bool
cio_inflater_pending(const struct cio_inflater *inflater)
{
    return inflater->pending;
}

struct cio_inflater *
cio_inflater_copy(const struct cio_inflater *inflater)
{
    struct cio_inflater *other =
        (struct cio_inflater *)cio_pool_take(inflater->engine->class);

    if (other == NULL) {
        return NULL;
    }
    other->text = inflater->text;
    other->pending = inflater->pending;
    other->ended = inflater->ended;
    if (inflater->engine->copy(other, inflater) != CIO_OK) {
        /* It may be half made: not for the pool. */
        other->engine->class->destroy(&other->piece);
        return NULL;
    }
    return other;
}

enum cio_status
cio_inflater_dictionary(struct cio_inflater *inflater, const uint8_t *data,
                        size_t nbytes)
{
    return inflater->engine->dictionary(inflater, data, nbytes);
}

size_t
cio_inflater_nbytes(bool checked)
{
    return engine_for(checked)->class->piece_nbytes;
}

/* ------------------------------------------------------------------ choice */

#if CIO_HAVE_ISAL
/* Streams a dynamic block with bytes behind it through ISA-L, in pieces that
 * end inside and behind it: the output must be right, and the end exact. */
static bool
isal_works(void)
{
    enum { PLAIN_NBYTES = 512, TAIL_NBYTES = 8 };
    /* zlib level 9 over PROBE_BYTE(0 .. 511), and the tail. */
#define PROBE_BYTE(k) ((uint8_t)('a' + (((k) * (k) >> 3) % 7) % 11))
    static const uint8_t stream[] = {
        0xed, 0xc9, 0xc1, 0x0d, 0x00, 0x30, 0x08, 0x03, 0xb1, 0x59, 0x2f,
        0x24, 0xb0, 0xff, 0x06, 0x55, 0xd7, 0x40, 0xf8, 0x6b, 0x40, 0xe5,
        0x8c, 0xdc, 0x0a, 0x26, 0x6a, 0x6b, 0xe2, 0x12, 0xdf, 0xdd, 0xf2,
        0x7b, 0x54, 0x41, 0x49, 0x4c, 0x54, 0x41, 0x49, 0x4c,
    };
    const size_t cuts[] = {1, sizeof stream / 2,
                           sizeof stream - TAIL_NBYTES - 1, sizeof stream - 3,
                           sizeof stream};
    uint8_t out[PLAIN_NBYTES + 16];
    bool right = true;

    for (size_t i = 0; right && i < sizeof cuts / sizeof cuts[0]; i++) {
        struct cio_span span = {stream, cuts[i], 0, out, sizeof out, 0};
        struct cio_inflater *inflater =
            (struct cio_inflater *)cio_pool_take(cio_isal_stream.class);
        enum cio_status status;

        if (inflater == NULL) {
            return false;
        }
        cio_inflater_reset(inflater);
        status = cio_inflater_step(inflater, &span);
        span.in_nbytes = sizeof stream;
        if (status == CIO_OK) {
            status = cio_inflater_step(inflater, &span);
        }
        cio_inflater_give(inflater);
        right = status == CIO_EOF
                && span.in_used == sizeof stream - TAIL_NBYTES
                && span.out_used == PLAIN_NBYTES;
        for (size_t k = 0; right && k < PLAIN_NBYTES; k++) {
            right = out[k] == PROBE_BYTE(k);
        }
    }
    return right;
}
#endif

static bool
parse_forced(const char *forced, enum cio_engine_kind *kind)
{
    if (strcmp(forced, "zlib") == 0) {
        *kind = CIO_ENGINE_ZLIB;
        return true;
    }
    if (strcmp(forced, "isal") == 0) {
        *kind = CIO_ENGINE_ISAL;
        return CIO_HAVE_ISAL;
    }
    if (strcmp(forced, "libdeflate") == 0) {
        *kind = CIO_ENGINE_LIBDEFLATE;
        return CIO_HAVE_LIBDEFLATE;
    }
    return false;
}

bool
cio_engine_init(const char *forced)
{
    enum cio_engine_kind kind = CIO_ENGINE_ZLIB;

    if (forced != NULL && !parse_forced(forced, &kind)) {
        return false;
    }
    crc32_engine = cio_crc32_choose(forced == NULL ? NULL : &kind);
    whole_engine = &cio_zlib_whole;
    stream_engine = &cio_zlib_stream;
#if CIO_HAVE_ISAL
    isal_refused = !isal_works();
    if (!isal_refused && (forced == NULL || kind == CIO_ENGINE_ISAL)) {
        whole_engine = &cio_isal_whole;
        stream_engine = &cio_isal_stream;
    }
#endif
#if CIO_HAVE_LIBDEFLATE
    if (forced == NULL || kind == CIO_ENGINE_LIBDEFLATE) {
        whole_engine = &cio_libdeflate_whole;
    }
#endif
    return true;
}

void
cio_engine_info(struct cio_engine_info *info)
{
    static const char *const names[] = {"zlib", "isal", "libdeflate"};

    *info = (struct cio_engine_info){
        .whole = whole_engine->name,
        .stream = stream_engine->name,
        .crc32 = names[crc32_engine],
        .zlib = cio_zlib_version(),
        .isal_refused = isal_refused,
    };
#if CIO_HAVE_ISAL
    info->isal = cio_isal_version();
#endif
#if CIO_HAVE_LIBDEFLATE
    info->libdeflate = cio_libdeflate_version();
#endif
}
