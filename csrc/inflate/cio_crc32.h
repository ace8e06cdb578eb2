/* SPDX-License-Identifier: MIT
 * cio_crc32.h - checksums, each by the fastest library that is built in.
 *
 * Why      zlib's CRC-32 runs at 4-5 GB/s, libdeflate's and ISA-L's at 20-80:
 *          what would cost a fifth of inflating costs nothing.
 * Errors   None.
 * Threads  Any, after cio_engine_init.
 */
#ifndef CIO_CRC32_H
#define CIO_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* As zlib's: starts from 0, and goes on from an earlier result. */
uint32_t cio_crc32(uint32_t crc, const void *data, size_t nbytes);
/* As zlib's: starts from 1. */
uint32_t cio_adler32(uint32_t adler, const void *data, size_t nbytes);
/* The CRC of two pieces, from theirs; nbytes: of the second. */
uint32_t cio_crc32_combine(uint32_t first, uint32_t second, uint64_t nbytes);

#endif
