/* SPDX-License-Identifier: MIT
 * cio_half.c - binary16 from and to double.
 */
#include "data/cio_scalar.h"

#define MANTISSA_MASK 0xFFFFFFFFFFFFFu
/* Where a half's mantissa ends in a double's. */
#define DROPPED_BITS 42

static uint64_t
shift_half_even(uint64_t value, unsigned shift)
{
    const uint64_t kept = value >> shift;
    const uint64_t rest = value & (((uint64_t)1 << shift) - 1);
    const uint64_t half = (uint64_t)1 << (shift - 1);

    return kept + (rest > half || (rest == half && (kept & 1)));
}

bool
cio_float16_of_double(double value, uint16_t *bits)
{
    const uint64_t wide = cio_bits_of_double(value);
    const uint16_t sign = (uint16_t)(wide >> 63 << 15);
    const int exponent = (int)(wide >> 52 & 0x7FF) - 1023;
    const uint64_t mantissa = wide & MANTISSA_MASK;
    uint64_t half;

    if (exponent == 1024) {
        *bits = mantissa != 0 ? (uint16_t)cio_narrow_nan(wide, 10, 16)
                              : (uint16_t)(sign | 0x7C00);
        return true;
    }
    if (exponent < -14 - 11) { /* less than half of the least subnormal */
        *bits = sign;
        return true;
    }
    if (exponent < -14) {
        half = shift_half_even((uint64_t)1 << 52 | mantissa,
                               (unsigned)(DROPPED_BITS - 14 - exponent));
    } else {
        /* A carry out of the mantissa rightly raises the exponent. */
        half =
            exponent > 15
                ? 0x7C00
                : shift_half_even((uint64_t)(exponent + 15) << 52 | mantissa,
                                  DROPPED_BITS);
    }
    if (half >= 0x7C00) {
        return false;
    }
    *bits = (uint16_t)(sign | half);
    return true;
}

double
cio_double_of_float16(uint16_t bits)
{
    const uint64_t sign = (uint64_t)(bits >> 15) << 63;
    const unsigned exponent = bits >> 10 & 0x1F;
    const uint64_t mantissa = bits & 0x3FF;

    if (exponent == 0) {
        /* Exact: a small integer times a power of two. */
        const double magnitude = (double)mantissa * 0x1p-24;

        return cio_double_of_bits(sign | cio_bits_of_double(magnitude));
    }
    if (exponent == 0x1F) {
        return cio_double_of_bits(sign | (uint64_t)0x7FF << 52
                                  | mantissa << DROPPED_BITS);
    }
    return cio_double_of_bits(sign | (uint64_t)(exponent + 1023 - 15) << 52
                              | mantissa << DROPPED_BITS);
}
