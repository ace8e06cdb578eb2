/* SPDX-License-Identifier: MIT
 * cio_mutf8.c - modified UTF-8.
 */
#include "data/cio_mutf8.h"

#include <string.h>

static inline uint32_t
char_at(const void *text, size_t i, unsigned kind)
{
    return kind == 1   ? ((const uint8_t *)text)[i]
           : kind == 2 ? ((const uint16_t *)text)[i]
                       : ((const uint32_t *)text)[i];
}

static inline size_t
char_nbytes(uint32_t c)
{
    if (c - 1 < 0x7F) { /* not NUL */
        return 1;
    }
    return c < 0x800 ? 2 : c < 0x10000 ? 3 : 6;
}

/* Made three times, for the loop to know the kind. */
static inline __attribute__((always_inline)) size_t
count_kind(const void *text, size_t nchars, unsigned kind, size_t limit)
{
    size_t nbytes = 0;

    for (size_t i = 0; i < nchars && nbytes <= limit; i++) {
        nbytes += char_nbytes(char_at(text, i, kind));
    }
    return nbytes;
}

size_t
cio_mutf8_nbytes(const void *text, size_t nchars, unsigned kind, size_t limit)
{
    return kind == 1   ? count_kind(text, nchars, 1, limit)
           : kind == 2 ? count_kind(text, nchars, 2, limit)
                       : count_kind(text, nchars, 4, limit);
}

static inline uint8_t *
put_unit(uint8_t *out, uint32_t c)
{
    if (c - 1 < 0x7F) {
        *out++ = (uint8_t)c;
    } else if (c < 0x800) {
        *out++ = (uint8_t)(0xC0 | c >> 6);
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    } else {
        *out++ = (uint8_t)(0xE0 | c >> 12);
        *out++ = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (c & 0x3F));
    }
    return out;
}

static inline __attribute__((always_inline)) uint8_t *
encode_kind(uint8_t *out, const void *text, size_t nchars, unsigned kind)
{
    for (size_t i = 0; i < nchars; i++) {
        const uint32_t c = char_at(text, i, kind);

        if (kind == 4 && c >= 0x10000) {
            out = put_unit(out, 0xD800 + ((c - 0x10000) >> 10));
            out = put_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
        } else {
            out = put_unit(out, c);
        }
    }
    return out;
}

uint8_t *
cio_mutf8_encode(uint8_t *out, const void *text, size_t nchars, unsigned kind)
{
    return kind == 1   ? encode_kind(out, text, nchars, 1)
           : kind == 2 ? encode_kind(out, text, nchars, 2)
                       : encode_kind(out, text, nchars, 4);
}

static bool
is_high(uint32_t unit)
{
    return (unit & 0xFC00) == 0xD800;
}

static bool
is_low(uint32_t unit)
{
    return (unit & 0xFC00) == 0xDC00;
}

/* Leading bytes that are ASCII (NUL too: Java takes it), eight at a time. */
static size_t
ascii_prefix(const uint8_t *in, size_t nbytes)
{
    size_t i = 0;

    for (; nbytes - i >= 8; i += 8) {
        uint64_t eight;

        memcpy(&eight, in + i, sizeof eight);
        if (eight & 0x8080808080808080u) {
            break;
        }
    }
    while (i < nbytes && in[i] < 0x80) {
        i++;
    }
    return i;
}

/* One UTF-16 unit at in[*at], by the form of its first byte; what
 * java.io.DataInputStream.readUTF checks, and no more. */
static inline enum cio_status
next_unit(const uint8_t *in, size_t nbytes, size_t *at, uint32_t *unit,
          struct cio_mutf8_shape *shape)
{
    const uint32_t c = in[*at];
    const size_t left = nbytes - *at;
    const size_t want = c < 0x80             ? 1
                        : (c & 0xE0) == 0xC0 ? 2
                        : (c & 0xF0) == 0xE0 ? 3
                                             : 0;

    shape->bad_at = *at;
    shape->ends_inside = want > left;
    if (want == 0 || want > left || (want >= 2 && (in[*at + 1] & 0xC0) != 0x80)
        || (want == 3 && (in[*at + 2] & 0xC0) != 0x80)) {
        return CIO_ERR_DATA;
    }
    *unit = want == 1   ? c
            : want == 2 ? (c & 0x1F) << 6 | (in[*at + 1] & 0x3Fu)
                        : (c & 0x0F) << 12 | (in[*at + 1] & 0x3Fu) << 6
                              | (in[*at + 2] & 0x3Fu);
    *at += want;
    return CIO_OK;
}

enum cio_status
cio_mutf8_scan(const uint8_t *in, size_t nbytes, struct cio_mutf8_shape *shape)
{
    size_t at = ascii_prefix(in, nbytes);
    uint32_t before = 0, unit = 0;

    *shape = (struct cio_mutf8_shape){.nchars = at, .widest = 0x7F};
    while (at < nbytes) {
        if (next_unit(in, nbytes, &at, &unit, shape) != CIO_OK) {
            return CIO_ERR_DATA;
        }
        if (is_low(unit) && is_high(before)) {
            shape->widest = 0x10FFFF;
            before = 0; /* its pair is complete */
            continue;
        }
        shape->nchars++;
        shape->widest = unit > shape->widest ? unit : shape->widest;
        before = unit;
    }
    return CIO_OK;
}

static inline void
put_char(void *text, size_t i, unsigned kind, uint32_t c)
{
    if (kind == 1) {
        ((uint8_t *)text)[i] = (uint8_t)c;
    } else if (kind == 2) {
        ((uint16_t *)text)[i] = (uint16_t)c;
    } else {
        ((uint32_t *)text)[i] = c;
    }
}

void
cio_mutf8_decode(const uint8_t *in, size_t nbytes, void *text, unsigned kind)
{
    struct cio_mutf8_shape ignored;
    size_t at = 0, n = 0;
    uint32_t before = 0, unit = 0;

    if (kind == 1) {
        at = n = ascii_prefix(in, nbytes);
        memcpy(text, in, at);
    }
    while (at < nbytes) {
        (void)next_unit(in, nbytes, &at, &unit, &ignored);
        if (is_low(unit) && is_high(before)) {
            put_char(text, n - 1, kind,
                     0x10000 + ((before & 0x3FF) << 10) + (unit & 0x3FF));
            before = 0;
            continue;
        }
        put_char(text, n++, kind, unit);
        before = unit;
    }
}
