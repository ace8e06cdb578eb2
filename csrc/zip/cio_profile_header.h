/* SPDX-License-Identifier: MIT
 * cio_profile_header.h - a local header and a data descriptor, held against
 * the directory.
 *
 * Why      A program that reads a stream sees only these, one that opens a
 *          file sees only the directory: strict wants them to agree.
 * Threads  No state.
 */
#ifndef CIO_PROFILE_HEADER_H
#define CIO_PROFILE_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "zip/cio_directory.h"

/* The longest: signature, CRC, two sizes of 64 bits. */
enum { CIO_PROFILE_DESCRIPTOR_NBYTES = 24 };

/* Rules (enum cio_profile_rule) that the header breaks; name and extra field
 * are there. */
uint32_t cio_profile_header_rules(const struct cio_zip_info *info,
                                  const uint8_t *header);
/* got: the bytes behind the data. room: how many there are until the next
 * header or the directory. */
uint32_t cio_profile_descriptor_rules(const struct cio_zip_info *info,
                                      const uint8_t *got, size_t got_nbytes,
                                      uint64_t room);

#endif
