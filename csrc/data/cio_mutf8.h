/* SPDX-License-Identifier: MIT
 * cio_mutf8.h - modified UTF-8, as class files, JNI and DataOutput write it.
 *
 * Why      NUL is c0 80, and what lies beyond U+FFFF is written as its two
 *          UTF-16 surrogates, three bytes each. No codec of Python does it.
 * Owner    The caller's memory throughout.
 * Units    Text comes as code points of 1, 2 or 4 bytes each (`kind`), in the
 *          machine's order; surrogates may stand alone.
 * Errors   Decoding is as lenient as Java's: overlong forms and lone or
 *          reversed surrogates pass; what it refuses is CIO_ERR_DATA.
 * Threads  No state.
 */
#ifndef CIO_MUTF8_H
#define CIO_MUTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"

/* Bytes of the encoded text; counting ends once it is above limit. */
size_t cio_mutf8_nbytes(const void *text, size_t nchars, unsigned kind,
                        size_t limit);
/* Writes cio_mutf8_nbytes bytes and returns the end. */
uint8_t *cio_mutf8_encode(uint8_t *out, const void *text, size_t nchars,
                          unsigned kind);

struct cio_mutf8_shape {
    size_t nchars;    /* code points: a pair of surrogates is one */
    uint32_t widest;  /* largest code point, at least 0x7f */
    size_t bad_at;    /* with CIO_ERR_DATA: offset of the byte refused */
    bool ends_inside; /* with CIO_ERR_DATA: the text ends in a character */
};
enum cio_status cio_mutf8_scan(const uint8_t *in, size_t nbytes,
                               struct cio_mutf8_shape *shape);
/* Only after a scan that said CIO_OK: fills shape->nchars units of kind. */
void cio_mutf8_decode(const uint8_t *in, size_t nbytes, void *text,
                      unsigned kind);

#endif
