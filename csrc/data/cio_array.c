/* SPDX-License-Identifier: MIT
 * cio_array.c - byte swaps of whole arrays: 32 bytes a step where the machine
 * has a byte shuffle, element by element otherwise.
 */
#include "data/cio_array.h"

#include <stdbool.h>
#include <string.h>

#define SWAP_ELEMENTS(bits, reverse)                                          \
    for (; i < nbytes; i += bits / 8) {                                       \
        uint##bits##_t v;                                                     \
        memcpy(&v, in + i, sizeof v);                                         \
        v = reverse(v);                                                       \
        memcpy(out + i, &v, sizeof v);                                        \
    }

static void
swap_elements(uint8_t *out, const uint8_t *in, size_t i, size_t nbytes,
              unsigned width)
{
    if (width == 2) {
        SWAP_ELEMENTS(16, __builtin_bswap16)
    } else if (width == 4) {
        SWAP_ELEMENTS(32, __builtin_bswap32)
    } else {
        SWAP_ELEMENTS(64, __builtin_bswap64)
    }
}

#if defined(__x86_64__)

/* AVX2 is not in the baseline: asked for at run time, and only these functions
 * are compiled for it. */
#include <immintrin.h>

__attribute__((target("avx2"))) static size_t
swap_vectors(uint8_t *out, const uint8_t *in, size_t nbytes, unsigned width)
{
    const __m256i by2 =
        _mm256_set_epi64x(0x0E0F0C0D0A0B0809, 0x0607040502030001,
                          0x0E0F0C0D0A0B0809, 0x0607040502030001);
    const __m256i by4 =
        _mm256_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203,
                          0x0C0D0E0F08090A0B, 0x0405060700010203);
    const __m256i by8 =
        _mm256_set_epi64x(0x08090A0B0C0D0E0F, 0x0001020304050607,
                          0x08090A0B0C0D0E0F, 0x0001020304050607);
    const __m256i order = width == 2 ? by2 : width == 4 ? by4 : by8;
    size_t i = 0;

    for (; nbytes - i >= 64; i += 64) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(in + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(in + i + 32));

        _mm256_storeu_si256((__m256i *)(out + i),
                            _mm256_shuffle_epi8(a, order));
        _mm256_storeu_si256((__m256i *)(out + i + 32),
                            _mm256_shuffle_epi8(b, order));
    }
    return i;
}

static bool
has_vectors(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

#elif defined(__aarch64__)

#include <arm_neon.h>

static size_t
swap_vectors(uint8_t *out, const uint8_t *in, size_t nbytes, unsigned width)
{
    size_t i = 0;

    for (; nbytes - i >= 16; i += 16) {
        const uint8x16_t v = vld1q_u8(in + i);

        vst1q_u8(out + i, width == 2   ? vrev16q_u8(v)
                          : width == 4 ? vrev32q_u8(v)
                                       : vrev64q_u8(v));
    }
    return i;
}

static bool
has_vectors(void)
{
    return true;
}

#else

static size_t
swap_vectors(uint8_t *out, const uint8_t *in, size_t nbytes, unsigned width)
{
    (void)out, (void)in, (void)nbytes, (void)width;
    return 0;
}

static bool
has_vectors(void)
{
    return false;
}

#endif

void
cio_array_swap(void *dst, const void *src, size_t nbytes, unsigned width)
{
    size_t done = 0;

    if (nbytes == 0) {
        return; /* the pointers may be NULL */
    }
    if (width == 1) {
        memmove(dst, src, nbytes);
        return;
    }
    if (nbytes >= 64 && has_vectors()) {
        done = swap_vectors(dst, src, nbytes, width);
    }
    swap_elements(dst, src, done, nbytes, width);
}
