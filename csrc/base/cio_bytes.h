/* SPDX-License-Identifier: MIT
 * cio_bytes.h - loads and stores in a named byte order, and sizes that can't
 * wrap.
 *
 * Why      Formats name their byte order; memcpy and a swap are what compilers
 *          turn into one instruction, on any alignment.
 * Errors   The checked operations return false and leave *result untouched.
 * Threads  No state.
 */
#ifndef CIO_BYTES_H
#define CIO_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define CIO_BIG_ENDIAN_HOST 1
#else
#define CIO_BIG_ENDIAN_HOST 0
#endif

#define CIO_DEFINE_ORDER(bits, swap)                                          \
    static inline uint##bits##_t cio_load_le##bits(const void *p)             \
    {                                                                         \
        uint##bits##_t v;                                                     \
        memcpy(&v, p, sizeof v);                                              \
        return CIO_BIG_ENDIAN_HOST ? swap(v) : v;                             \
    }                                                                         \
    static inline uint##bits##_t cio_load_be##bits(const void *p)             \
    {                                                                         \
        uint##bits##_t v;                                                     \
        memcpy(&v, p, sizeof v);                                              \
        return CIO_BIG_ENDIAN_HOST ? v : swap(v);                             \
    }                                                                         \
    static inline void cio_store_le##bits(void *p, uint##bits##_t v)          \
    {                                                                         \
        v = CIO_BIG_ENDIAN_HOST ? swap(v) : v;                                \
        memcpy(p, &v, sizeof v);                                              \
    }                                                                         \
    static inline void cio_store_be##bits(void *p, uint##bits##_t v)          \
    {                                                                         \
        v = CIO_BIG_ENDIAN_HOST ? v : swap(v);                                \
        memcpy(p, &v, sizeof v);                                              \
    }

CIO_DEFINE_ORDER(16, __builtin_bswap16)
CIO_DEFINE_ORDER(32, __builtin_bswap32)
CIO_DEFINE_ORDER(64, __builtin_bswap64)
#undef CIO_DEFINE_ORDER

static inline bool
cio_add_u64(uint64_t a, uint64_t b, uint64_t *result)
{
    uint64_t sum;

    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *result = sum;
    return true;
}

static inline bool
cio_mul_u64(uint64_t a, uint64_t b, uint64_t *result)
{
    uint64_t product;

    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *result = product;
    return true;
}

static inline uint64_t
cio_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t
cio_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline size_t
cio_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
