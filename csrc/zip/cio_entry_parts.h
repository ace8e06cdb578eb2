/* SPDX-License-Identifier: MIT
 * cio_entry_parts.h - what the files of the entry say only to each other.
 */
#ifndef CIO_ENTRY_PARTS_H
#define CIO_ENTRY_PARTS_H

#include "zip/cio_entry.h"

/* Fills the problem; CIO_ERR_DATA. */
enum cio_status cio_entry_bad(const struct cio_entry *entry,
                              struct cio_zip_problem *problem,
                              enum cio_zip_rule rule, uint64_t expected,
                              uint64_t found);
/* Bytes of the local header, as far as the directory tells. */
uint64_t cio_entry_header_guess(const struct cio_entry *entry);
/* No more than may belong to the member. */
uint64_t cio_entry_cap(const struct cio_entry *entry, uint64_t nbytes);

#endif
