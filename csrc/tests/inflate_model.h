/* SPDX-License-Identifier: MIT
 * inflate_model.h - the decoder against zlib on one input; for the unit test
 * and the fuzz target.
 */
#ifndef INFLATE_MODEL_H
#define INFLATE_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* The first bytes choose format, engine settings and piece sizes; the rest is
 * plain data to be packed and then damaged, or a stream as it stands. NULL, or
 * what went wrong. */
const char *inflate_model(const uint8_t *data, size_t nbytes);

#endif
