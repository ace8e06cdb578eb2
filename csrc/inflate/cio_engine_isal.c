/* SPDX-License-Identifier: MIT
 * cio_engine_isal.c - ISA-L's igzip: fastest for streams.
 *
 * What its manual doesn't say, for 2.30 and 2.31 (igzip_inflate.c):
 * - Input is read up to 8 bytes ahead into a bit buffer. Whole bytes in there
 *   are given back at the end of a stream, and whenever output stopped it:
 *   else the bytes behind the stream could lie in a window that is gone.
 * - crc_flag and hist_bits keep what the last user set.
 * - Counters have 32 bits.
 * - A call can come back without progress on broken data.
 */
#if defined(__has_include)
#if __has_include(<isa-l.h>)
#include <isa-l.h> /* the version */
#endif
#endif
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "inflate/cio_engine_parts.h"

struct isal_state {
    struct cio_inflater head;
    struct inflate_state state;
};

static struct cio_piece *
isal_create(struct cio_pool_class *of)
{
    struct isal_state *state = cio_sys->malloc(sizeof *state);

    (void)of;
    if (state == NULL) {
        return NULL;
    }
    memset(&state->head, 0, sizeof state->head);
    state->head.engine = &cio_isal_stream;
    isal_inflate_init(&state->state);
    return &state->head.piece;
}

static void
isal_destroy(struct cio_piece *piece)
{
    cio_free(piece);
}

static struct cio_pool_class isal_class = {
    .name = "ISA-L state",
    .piece_nbytes = sizeof(struct isal_state),
    .create = isal_create,
    .destroy = isal_destroy,
};

static void
isal_reset(struct cio_inflater *inflater)
{
    struct inflate_state *state = &((struct isal_state *)inflater)->state;

    isal_inflate_reset(state);
    state->crc_flag = ISAL_DEFLATE;
    state->hist_bits = ISAL_DEF_MAX_HIST_BITS;
}

static const char *
isal_text(int result)
{
    switch (result) {
    case ISAL_INVALID_BLOCK:
        return "invalid block type or code lengths";
    case ISAL_INVALID_SYMBOL:
        return "invalid literal/length or distance code";
    case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
    default:
        return "invalid data";
    }
}

/* Whole bytes of the bit buffer go back to the window that they came from:
 * at most `used`, those of this call. */
static size_t
give_back(struct inflate_state *state, size_t used)
{
    size_t nbytes;

    if (state->tmp_in_size != 0 || state->read_in_length < 8) {
        return 0; /* a header's bytes are held behind those in the buffer */
    }
    nbytes = cio_min_size((size_t)state->read_in_length / 8, used);
    state->read_in_length -= (int32_t)(8 * nbytes);
    state->read_in &= ((uint64_t)1 << state->read_in_length) - 1;
    return nbytes;
}

static enum cio_status
isal_step(struct cio_inflater *inflater, struct cio_span *span)
{
    struct inflate_state *state = &((struct isal_state *)inflater)->state;
    const size_t in_nbytes = cio_min_size(span->in_nbytes - span->in_used,
                                          CIO_ENGINE_WINDOW_NBYTES);
    const size_t out_nbytes = cio_min_size(span->out_nbytes - span->out_used,
                                           CIO_ENGINE_WINDOW_NBYTES);
    size_t in_used, out_used;
    int result;

    /* ISA-L takes no const; it doesn't write there. */
    state->next_in = (uint8_t *)(uintptr_t)(span->in + span->in_used);
    state->avail_in = (uint32_t)in_nbytes;
    state->next_out = span->out + span->out_used;
    state->avail_out = (uint32_t)out_nbytes;
    state->total_out = 0;
    cio_engine_count(in_nbytes > 0);
    result = isal_inflate(state);
    /* An invalid stream can leave the counter below zero (ISA-L 2.30). */
    in_used =
        state->avail_in > in_nbytes ? in_nbytes : in_nbytes - state->avail_in;
    out_used = out_nbytes - state->avail_out;
    if (result == ISAL_DECOMP_OK
        && (state->avail_out == 0
            || state->block_state == ISAL_BLOCK_FINISH)) {
        in_used -= give_back(state, in_used);
    }
    span->in_used += in_used;
    span->out_used += out_used;
    if (result != ISAL_DECOMP_OK) {
        inflater->text = isal_text(result);
        return CIO_ERR_DATA;
    }
    if (state->block_state == ISAL_BLOCK_FINISH) {
        return CIO_EOF;
    }
    if (in_used == 0 && out_used == 0 && in_nbytes > 0 && out_nbytes > 0) {
        inflater->text = isal_text(0);
        return CIO_ERR_DATA;
    }
    return CIO_OK;
}

static enum cio_status
isal_copy(struct cio_inflater *target, const struct cio_inflater *source)
{
    /* No pointer of its state leads into it: memcpy copies it. */
    memcpy(&((struct isal_state *)target)->state,
           &((const struct isal_state *)source)->state,
           sizeof(struct inflate_state));
    return CIO_OK;
}

static enum cio_status
isal_dictionary(struct cio_inflater *inflater, const uint8_t *data,
                size_t nbytes)
{
    struct inflate_state *state = &((struct isal_state *)inflater)->state;
    const size_t kept = cio_min_size(nbytes, ISAL_DEF_HIST_SIZE);

    if (isal_inflate_set_dict(state,
                              (uint8_t *)(uintptr_t)(data + nbytes) - kept,
                              (uint32_t)kept)
        != 0) {
        return CIO_ERR_DATA;
    }
    return CIO_OK;
}

const struct cio_stream_engine cio_isal_stream = {
    .name = "isal",
    .class = &isal_class,
    .reset = isal_reset,
    .step = isal_step,
    .copy = isal_copy,
    .dictionary = isal_dictionary,
};

static enum cio_status
isal_inflate_whole(struct cio_whole *whole)
{
    struct isal_state *piece = (struct isal_state *)cio_pool_take(&isal_class);
    struct inflate_state *state;
    enum cio_status status = CIO_OK;
    int result;

    if (piece == NULL) {
        return CIO_ERR_NOMEM;
    }
    if (whole->in_nbytes > CIO_ENGINE_WINDOW_NBYTES
        || whole->out_nbytes > CIO_ENGINE_WINDOW_NBYTES) {
        cio_pool_give(&piece->head.piece);
        return CIO_ERR_DATA; /* beyond its counters: zlib does it */
    }
    isal_reset(&piece->head);
    state = &piece->state;
    state->next_in = (uint8_t *)(uintptr_t)whole->in;
    state->avail_in = (uint32_t)whole->in_nbytes;
    state->next_out = whole->out;
    state->avail_out = (uint32_t)whole->out_nbytes;
    cio_engine_count(whole->in_nbytes > 0);
    result = isal_inflate_stateless(state);
    if (result == ISAL_DECOMP_OK) {
        whole->in_used = whole->in_nbytes - state->avail_in;
        whole->in_used -= give_back(state, whole->in_used);
        whole->out_used = whole->out_nbytes - state->avail_out;
    } else {
        status = result == ISAL_OUT_OVERFLOW ? CIO_ERR_LIMIT : CIO_ERR_DATA;
    }
    cio_pool_give(&piece->head.piece);
    return status;
}

const struct cio_whole_engine cio_isal_whole = {"isal", isal_inflate_whole};

const char *
cio_isal_version(void)
{
#if defined(ISAL_MAJOR_VERSION)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(ISAL_MAJOR_VERSION) "." TEXT(ISAL_MINOR_VERSION) "." TEXT(
        ISAL_PATCH_VERSION);
#else
    return "unknown";
#endif
}

uint32_t
cio_isal_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    return crc32_gzip_refl(crc, data, nbytes);
}

uint32_t
cio_isal_adler32(uint32_t adler, const void *data, size_t nbytes)
{
    return isal_adler32(adler, data, nbytes);
}
