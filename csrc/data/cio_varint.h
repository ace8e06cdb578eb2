/* SPDX-License-Identifier: MIT
 * cio_varint.h - LEB128 of 64 bits, and zigzag for signed numbers.
 *
 * Units    Bytes; seven bits of the value in each, lowest first.
 * Errors   decode: CIO_MORE while the input ends inside a number,
 *          CIO_ERR_DATA for one that needs more than 64 bits. Numbers longer
 *          than they need be (padded with zeros) are taken, up to ten bytes.
 * Threads  No state.
 */
#ifndef CIO_VARINT_H
#define CIO_VARINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"

#define CIO_VARINT_MAX_NBYTES 10

static inline size_t
cio_varint_encode(uint8_t *out, uint64_t value)
{
    size_t n = 0;

    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

/* *used is set with CIO_OK alone. */
static inline enum cio_status
cio_varint_decode(const uint8_t *in, size_t nbytes, uint64_t *value,
                  size_t *used)
{
    uint64_t result = 0;

    for (size_t n = 0; n < CIO_VARINT_MAX_NBYTES; n++) {
        if (n == nbytes) {
            return CIO_MORE;
        }
        if (n == CIO_VARINT_MAX_NBYTES - 1 && in[n] > 1) {
            return CIO_ERR_DATA;
        }
        result |= (uint64_t)(in[n] & 0x7F) << (7 * n);
        if (in[n] < 0x80) {
            *value = result;
            *used = n + 1;
            return CIO_OK;
        }
    }
    return CIO_ERR_DATA;
}

static inline uint64_t
cio_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t
cio_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

#endif
