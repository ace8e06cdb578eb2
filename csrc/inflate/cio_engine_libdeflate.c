/* SPDX-License-Identifier: MIT
 * cio_engine_libdeflate.c - libdeflate: fastest where all input is there.
 *
 * It can't stream and gives no partial result. Works with 1.14 and later.
 */
#include <libdeflate.h>

#include "base/cio_sys.h"
#include "inflate/cio_engine_parts.h"

struct libdeflate_state {
    struct cio_piece piece;
    struct libdeflate_decompressor *decompressor;
};

static struct cio_piece *
libdeflate_create(struct cio_pool_class *of)
{
    struct libdeflate_state *state = cio_sys->malloc(sizeof *state);

    (void)of;
    if (state == NULL) {
        return NULL;
    }
    /* Its allocator is its own (a hook for each object came with 1.19). */
    state->decompressor = libdeflate_alloc_decompressor();
    if (state->decompressor == NULL) {
        cio_free(state);
        return NULL;
    }
    return &state->piece;
}

static void
libdeflate_destroy(struct cio_piece *piece)
{
    struct libdeflate_state *state = (struct libdeflate_state *)piece;

    libdeflate_free_decompressor(state->decompressor);
    cio_free(state);
}

static struct cio_pool_class libdeflate_class = {
    .name = "libdeflate state",
    .piece_nbytes = sizeof(struct libdeflate_state) + 11 * 1024 + 512,
    .create = libdeflate_create,
    .destroy = libdeflate_destroy,
};

static enum cio_status
libdeflate_inflate_whole(struct cio_whole *whole)
{
    struct libdeflate_state *state =
        (struct libdeflate_state *)cio_pool_take(&libdeflate_class);
    enum libdeflate_result result;

    if (state == NULL) {
        return CIO_ERR_NOMEM;
    }
    cio_engine_count(whole->in_nbytes > 0);
    result = libdeflate_deflate_decompress_ex(
        state->decompressor, whole->in, whole->in_nbytes, whole->out,
        whole->out_nbytes, &whole->in_used, &whole->out_used);
    cio_pool_give(&state->piece);
    switch (result) {
    case LIBDEFLATE_SUCCESS:
        return CIO_OK;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        return CIO_ERR_LIMIT;
    case LIBDEFLATE_SHORT_OUTPUT: /* only without a place for out_used */
    case LIBDEFLATE_BAD_DATA:
        break;
    }
    return CIO_ERR_DATA;
}

const struct cio_whole_engine cio_libdeflate_whole = {
    "libdeflate", libdeflate_inflate_whole};

const char *
cio_libdeflate_version(void)
{
    return LIBDEFLATE_VERSION_STRING; /* the headers'; it has no call */
}

uint32_t
cio_libdeflate_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    return libdeflate_crc32(crc, data, nbytes);
}

uint32_t
cio_libdeflate_adler32(uint32_t adler, const void *data, size_t nbytes)
{
    return libdeflate_adler32(adler, data, nbytes);
}
