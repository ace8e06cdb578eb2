/* SPDX-License-Identifier: MIT
 * cio_engine_parts.h - what each engine's file gives to cio_engine.c.
 *
 * Why      cio_engine.c chooses, the files beside it only wrap one library
 *          each, without policy.
 */
#ifndef CIO_ENGINE_PARTS_H
#define CIO_ENGINE_PARTS_H

#include "base/cio_pool.h"
#include "inflate/cio_engine.h"

/* The head of every engine's stream state. */
struct cio_inflater {
    struct cio_piece piece;
    const struct cio_stream_engine *engine;
    const char *text; /* why CIO_ERR_DATA came; static */
    bool pending;     /* the last step filled its output window */
    bool ended;       /* CIO_EOF or CIO_ERR_DATA was returned */
};

struct cio_stream_engine {
    const char *name;
    struct cio_pool_class *class;
    void (*reset)(struct cio_inflater *inflater);
    /* Both windows have room, or output is pending. */
    enum cio_status (*step)(struct cio_inflater *inflater,
                            struct cio_span *span);
    enum cio_status (*copy)(struct cio_inflater *target,
                            const struct cio_inflater *source);
    enum cio_status (*dictionary)(struct cio_inflater *inflater,
                                  const uint8_t *data, size_t nbytes);
};

struct cio_whole_engine {
    const char *name;
    /* CIO_OK, CIO_ERR_LIMIT (out is too small), CIO_ERR_DATA, CIO_ERR_NOMEM.
     * Sets in_used and out_used with CIO_OK; zlib's sets all but crc, always.
     */
    enum cio_status (*inflate)(struct cio_whole *whole);
};

extern const struct cio_stream_engine cio_zlib_stream;
extern const struct cio_whole_engine cio_zlib_whole;
const char *cio_zlib_version(void);
/* Distances may be at most 1 << window_bits. NULL: out of memory. */
struct cio_inflater *cio_zlib_take_window(int window_bits);

#if CIO_HAVE_ISAL
extern const struct cio_stream_engine cio_isal_stream;
extern const struct cio_whole_engine cio_isal_whole;
const char *cio_isal_version(void);
uint32_t cio_isal_crc32(uint32_t crc, const void *data, size_t nbytes);
uint32_t cio_isal_adler32(uint32_t adler, const void *data, size_t nbytes);
#endif

#if CIO_HAVE_LIBDEFLATE
extern const struct cio_whole_engine cio_libdeflate_whole;
const char *cio_libdeflate_version(void);
uint32_t cio_libdeflate_crc32(uint32_t crc, const void *data, size_t nbytes);
uint32_t cio_libdeflate_adler32(uint32_t adler, const void *data,
                                size_t nbytes);
#endif

/* One native call, for cio_engine_counts. */
void cio_engine_count(bool with_input);

/* Which checksums are in use (cio_crc32.c). */
enum cio_engine_kind cio_crc32_choose(const enum cio_engine_kind *forced);

/* The libraries count in 32 bits: windows are cut to this. */
#define CIO_ENGINE_WINDOW_NBYTES ((size_t)1 << 30)

#endif
