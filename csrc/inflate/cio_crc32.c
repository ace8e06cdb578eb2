/* SPDX-License-Identifier: MIT
 * cio_crc32.c - the fastest checksum of those that are built in.
 */
#include "inflate/cio_crc32.h"

#include <time.h>
#include <zlib.h>

#include "base/cio_bytes.h"
#include "inflate/cio_engine_parts.h"

typedef uint32_t checksum(uint32_t start, const void *data, size_t nbytes);

static uint32_t
zlib_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    return (uint32_t)crc32_z(crc, data, nbytes);
}

static uint32_t
zlib_adler32(uint32_t adler, const void *data, size_t nbytes)
{
    return (uint32_t)adler32_z(adler, data, nbytes);
}

static checksum *crc32_now = zlib_crc32;
static checksum *adler32_now = zlib_adler32;

uint32_t
cio_crc32(uint32_t crc, const void *data, size_t nbytes)
{
    /* zlib starts anew where it is given NULL. */
    return nbytes == 0 ? crc : crc32_now(crc, data, nbytes);
}

uint32_t
cio_adler32(uint32_t adler, const void *data, size_t nbytes)
{
    return nbytes == 0 ? adler : adler32_now(adler, data, nbytes);
}

uint32_t
cio_crc32_combine(uint32_t first, uint32_t second, uint64_t nbytes)
{
    return (uint32_t)crc32_combine(first, second, (z_off_t)nbytes);
}

#if CIO_HAVE_ISAL || CIO_HAVE_LIBDEFLATE
/* The best of a few runs over what fits the first cache; takes some 10 us. */
static int64_t
time_of(checksum *function)
{
    static uint8_t data[8192];
    int64_t best = INT64_MAX - 1;

    for (size_t k = 0; k < sizeof data; k++) {
        data[k] = (uint8_t)(k * k >> 3);
    }
    if (function(1, data, sizeof data) != zlib_crc32(1, data, sizeof data)) {
        return INT64_MAX;
    }

    for (int i = 0; i < 5; i++) {
        struct timespec a, b;
        volatile uint32_t kept;
        int64_t took;

        (void)clock_gettime(CLOCK_MONOTONIC, &a);
        kept = function(0, data, sizeof data);
        (void)clock_gettime(CLOCK_MONOTONIC, &b);
        (void)kept;
        took = (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec
               - a.tv_nsec;
        best = took < best ? took : best;
    }
    return best;
}
#endif

enum cio_engine_kind
cio_crc32_choose(const enum cio_engine_kind *forced)
{
    enum cio_engine_kind kind = CIO_ENGINE_ZLIB;

    crc32_now = zlib_crc32;
    adler32_now = zlib_adler32;
    if (forced != NULL) {
        kind = *forced;
    } else {
#if CIO_HAVE_ISAL && CIO_HAVE_LIBDEFLATE
        kind = time_of(cio_isal_crc32) <= time_of(cio_libdeflate_crc32)
                   ? CIO_ENGINE_ISAL
                   : CIO_ENGINE_LIBDEFLATE;
#elif CIO_HAVE_ISAL
        kind = CIO_ENGINE_ISAL;
#elif CIO_HAVE_LIBDEFLATE
        kind = CIO_ENGINE_LIBDEFLATE;
#endif
    }
#if CIO_HAVE_ISAL
    if (kind == CIO_ENGINE_ISAL) {
        crc32_now = cio_isal_crc32;
        adler32_now = cio_isal_adler32;
    }
#endif
#if CIO_HAVE_LIBDEFLATE
    if (kind == CIO_ENGINE_LIBDEFLATE) {
        crc32_now = cio_libdeflate_crc32;
        adler32_now = cio_libdeflate_adler32;
    }
#endif
    return kind;
}
