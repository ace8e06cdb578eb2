/* SPDX-License-Identifier: MIT
 * cio_scalar.h - one value to bytes and back, in a byte order that the stream
 * knows only at run time.
 *
 * Why      A stream's order is bound when it is made; a flag that never
 *          changes costs a well predicted move, not a call per order.
 * Units    `swap` means: not the order of this machine.
 * Errors   Ranges are the caller's to check, but for floats: false means that
 *          the value is finite and too large for the type.
 * Threads  No state.
 *
 * NaN payloads are kept. A C conversion between float and double sets the
 * quiet bit of a signalling NaN, so NaNs are converted here as integers.
 */
#ifndef CIO_SCALAR_H
#define CIO_SCALAR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CIO_DEFINE_SCALAR(bits, reverse)                                      \
    static inline void cio_put##bits(void *p, uint##bits##_t v, bool swap)    \
    {                                                                         \
        v = swap ? reverse(v) : v;                                            \
        memcpy(p, &v, sizeof v);                                              \
    }                                                                         \
    static inline uint##bits##_t cio_get##bits(const void *p, bool swap)      \
    {                                                                         \
        uint##bits##_t v;                                                     \
        memcpy(&v, p, sizeof v);                                              \
        return swap ? reverse(v) : v;                                         \
    }

static inline uint8_t
cio_same8(uint8_t v)
{
    return v;
}

CIO_DEFINE_SCALAR(8, cio_same8)
CIO_DEFINE_SCALAR(16, __builtin_bswap16)
CIO_DEFINE_SCALAR(32, __builtin_bswap32)
CIO_DEFINE_SCALAR(64, __builtin_bswap64)
#undef CIO_DEFINE_SCALAR

static inline uint64_t
cio_bits_of_double(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double
cio_double_of_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t
cio_bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float
cio_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Sign, exponent of ones and the payload's upper bits; a payload that would
 * become zero (an infinity) gets the quiet bit. */
static inline uint32_t
cio_narrow_nan(uint64_t bits, unsigned mantissa_bits, unsigned width)
{
    const uint32_t sign = (uint32_t)(bits >> 63) << (width - 1);
    const uint32_t ones = (((uint32_t)1 << (width - 1 - mantissa_bits)) - 1)
                          << mantissa_bits;
    uint32_t payload =
        (uint32_t)((bits & 0xFFFFFFFFFFFFFu) >> (52 - mantissa_bits));

    if (payload == 0) {
        payload = (uint32_t)1 << (mantissa_bits - 1);
    }
    return sign | ones | payload;
}

static inline bool
cio_float32_of_double(double value, uint32_t *bits)
{
    const float narrow = (float)value;

    if (__builtin_expect(value != value, 0)) {
        *bits = cio_narrow_nan(cio_bits_of_double(value), 23, 32);
        return true;
    }
    *bits = cio_bits_of_float(narrow);
    return __builtin_expect((*bits & 0x7FFFFFFFu) != 0x7F800000u, 1)
           || value - value != 0; /* an infinity it was */
}

static inline double
cio_double_of_float32(uint32_t bits)
{
    const float value = cio_float_of_bits(bits);

    if (__builtin_expect(value != value, 0)) {
        return cio_double_of_bits((uint64_t)(bits >> 31) << 63
                                  | (uint64_t)0x7FF << 52
                                  | (uint64_t)(bits & 0x7FFFFFu) << 29);
    }
    return (double)value;
}

/* IEEE 754 binary16, rounded once, half to even. */
bool cio_float16_of_double(double value, uint16_t *bits);
double cio_double_of_float16(uint16_t bits);

#endif
