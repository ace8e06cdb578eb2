/* SPDX-License-Identifier: MIT
 * cio_charset.h - the two encodings of member names.
 *
 * Why      Names are looked up by their UTF-8 form; most are ASCII, where it
 *          is the raw one.
 * Owner    The caller owns all memory.
 * Threads  No state.
 */
#ifndef CIO_CHARSET_H
#define CIO_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As strict as Python's decoder: no surrogates, nothing overlong. */
bool cio_utf8_valid(const uint8_t *text, size_t nbytes);
/* Returns the bytes written; out has room for 3 * nbytes. */
size_t cio_cp437_to_utf8(const uint8_t *text, size_t nbytes, uint8_t *out);

#endif
