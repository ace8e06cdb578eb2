/* SPDX-License-Identifier: MIT
 * cio_engine_zlib.c - zlib: the judge, and the engine that is always there.
 */
#include <string.h>
#include <zlib.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "inflate/cio_engine_parts.h"

#define RAW_WINDOW_BITS (-15)

struct zlib_state {
    struct cio_inflater head;
    z_stream stream;
};

static voidpf
zlib_alloc(voidpf opaque, uInt items, uInt size)
{
    (void)opaque;
    /* calloc: zlib reads bits of its tables before it writes them all, which
     * is harmless, but not to a memory checker. */
    return cio_sys->calloc(items, size);
}

static void
zlib_free(voidpf opaque, voidpf address)
{
    (void)opaque;
    cio_free(address);
}

static struct cio_pool_class zlib_class;
static struct cio_pool_class small_class; /* for windows below 32 KiB */
static const struct cio_stream_engine small_stream;

/* An empty dictionary makes zlib allocate its window now: when it can't later,
 * in the middle of a stream, it never goes on. */
static bool
make_window(z_stream *stream)
{
    return inflateSetDictionary(stream, (const Bytef *)"", 0) == Z_OK;
}

static struct cio_piece *
zlib_create(struct cio_pool_class *of)
{
    struct zlib_state *state = cio_sys->calloc(1, sizeof *state);

    if (state == NULL) {
        return NULL;
    }
    state->stream.zalloc = zlib_alloc;
    state->stream.zfree = zlib_free;
    if (inflateInit2(&state->stream, RAW_WINDOW_BITS) != Z_OK) {
        cio_free(state);
        return NULL;
    }
    if (of == &zlib_class && !make_window(&state->stream)) {
        (void)inflateEnd(&state->stream);
        cio_free(state);
        return NULL;
    }
    state->head.engine = of == &small_class ? &small_stream : &cio_zlib_stream;
    return &state->head.piece;
}

static void
zlib_destroy(struct cio_piece *piece)
{
    struct zlib_state *state = (struct zlib_state *)piece;

    (void)inflateEnd(&state->stream);
    cio_free(state);
}

/* zlib's own state takes 7 KB. */
static struct cio_pool_class zlib_class = {
    .name = "zlib state",
    .piece_nbytes = sizeof(struct zlib_state) + 7 * 1024 + 32 * 1024,
    .create = zlib_create,
    .destroy = zlib_destroy,
};

static struct cio_pool_class small_class = {
    .name = "zlib state, small window",
    .piece_nbytes = sizeof(struct zlib_state) + 7 * 1024 + 16 * 1024,
    .create = zlib_create,
    .destroy = zlib_destroy,
};

static void
zlib_reset(struct cio_inflater *inflater)
{
    struct zlib_state *state = (struct zlib_state *)inflater;

    (void)inflateReset(&state->stream);
    state->stream.msg = NULL;
}

static enum cio_status
run_step(struct zlib_state *state, struct cio_span *span, int flush)
{
    z_stream *stream = &state->stream;
    const size_t in_nbytes = cio_min_size(span->in_nbytes - span->in_used,
                                          CIO_ENGINE_WINDOW_NBYTES);
    const size_t out_nbytes = cio_min_size(span->out_nbytes - span->out_used,
                                           CIO_ENGINE_WINDOW_NBYTES);
    int result;

    stream->next_in = (z_const Bytef *)(span->in + span->in_used);
    stream->avail_in = (uInt)in_nbytes;
    stream->next_out = span->out + span->out_used;
    stream->avail_out = (uInt)out_nbytes;
    cio_engine_count(in_nbytes > 0);
    result = inflate(stream, flush);
    span->in_used += in_nbytes - stream->avail_in;
    span->out_used += out_nbytes - stream->avail_out;
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR: /* no progress was possible; no error */
        return CIO_OK;
    case Z_STREAM_END:
        return CIO_EOF;
    case Z_MEM_ERROR:
        return CIO_ERR_NOMEM;
    default:
        state->head.text = stream->msg;
        return CIO_ERR_DATA;
    }
}

static enum cio_status
zlib_step(struct cio_inflater *inflater, struct cio_span *span)
{
    return run_step((struct zlib_state *)inflater, span, Z_SYNC_FLUSH);
}

static enum cio_status
zlib_copy(struct cio_inflater *target, const struct cio_inflater *source)
{
    struct zlib_state *to = (struct zlib_state *)target;
    struct zlib_state *from = (struct zlib_state *)(uintptr_t)source;

    (void)inflateEnd(&to->stream);
    if (inflateCopy(&to->stream, &from->stream) != Z_OK) {
        /* Leave something that can be destroyed: inflateEnd refuses NULL. */
        to->stream.state = Z_NULL;
        return CIO_ERR_NOMEM;
    }
    return CIO_OK;
}

static enum cio_status
zlib_dictionary(struct cio_inflater *inflater, const uint8_t *data,
                size_t nbytes)
{
    struct zlib_state *state = (struct zlib_state *)inflater;
    const size_t kept = cio_min_size(nbytes, 32768); /* all that is of use */

    switch (inflateSetDictionary(&state->stream, data + nbytes - kept,
                                 (uInt)kept)) {
    case Z_OK:
        return CIO_OK;
    case Z_MEM_ERROR:
        return CIO_ERR_NOMEM;
    default:
        return CIO_ERR_DATA;
    }
}

const struct cio_stream_engine cio_zlib_stream = {
    .name = "zlib",
    .class = &zlib_class,
    .reset = zlib_reset,
    .step = zlib_step,
    .copy = zlib_copy,
    .dictionary = zlib_dictionary,
};

static const struct cio_stream_engine small_stream = {
    .name = "zlib",
    .class = &small_class,
    .reset = zlib_reset,
    .step = zlib_step,
    .copy = zlib_copy,
    .dictionary = zlib_dictionary,
};

struct cio_inflater *
cio_zlib_take_window(int window_bits)
{
    struct zlib_state *state =
        (struct zlib_state *)cio_pool_take(&small_class);

    if (state == NULL) {
        return NULL;
    }
    /* A window of another size is freed and made anew. */
    if (inflateReset2(&state->stream, -window_bits) != Z_OK
        || !make_window(&state->stream)) {
        cio_pool_give(&state->head.piece);
        return NULL;
    }
    (void)inflateReset(&state->stream);
    return &state->head;
}

/* Runs zlib over all of the input. Z_FINISH says that both windows are all
 * there is, so that it makes no window of its own. */
static enum cio_status
run_whole(struct zlib_state *state, struct cio_whole *whole)
{
    struct cio_span span = {whole->in,  whole->in_nbytes,  0,
                            whole->out, whole->out_nbytes, 0};
    uint8_t beyond; /* one byte more tells "too long" from "ends here" */
    bool full = false;
    enum cio_status status;

    zlib_reset(&state->head);
    do {
        if (span.out_used == span.out_nbytes && !full) {
            full = true;
            span.out = &beyond;
            span.out_nbytes = 1;
            span.out_used = 0;
        }
        status = run_step(state, &span, Z_FINISH);
    } while (status == CIO_OK
             && (full ? span.out_used == 0 && span.in_used < span.in_nbytes
                      : span.out_used == span.out_nbytes
                            || span.in_used < span.in_nbytes));
    whole->in_used = span.in_used;
    whole->out_used = full ? whole->out_nbytes : span.out_used;
    whole->text = state->head.text;
    if (full && span.out_used > 0) {
        whole->fault = CIO_FAULT_LONG;
        return CIO_ERR_LIMIT;
    }
    switch (status) {
    case CIO_EOF:
        return CIO_OK;
    case CIO_OK: /* zlib wants more input */
        whole->fault = CIO_FAULT_CUT;
        return CIO_ERR_DATA;
    case CIO_ERR_DATA:
        whole->fault = CIO_FAULT_STREAM;
        return status;
    case CIO_MORE:
    case CIO_ERR_SYS:
    case CIO_ERR_NOMEM:
    case CIO_ERR_LIMIT:
        return status;
    }
    return status;
}

static enum cio_status
zlib_inflate_whole(struct cio_whole *whole)
{
    struct zlib_state *state = (struct zlib_state *)cio_pool_take(&zlib_class);
    enum cio_status status;

    if (state == NULL) {
        whole->in_used = whole->out_used = 0;
        return CIO_ERR_NOMEM;
    }
    state->head.text = NULL;
    status = run_whole(state, whole);
    cio_pool_give(&state->head.piece);
    return status;
}

const struct cio_whole_engine cio_zlib_whole = {"zlib", zlib_inflate_whole};

const char *
cio_zlib_version(void)
{
    return zlibVersion();
}
