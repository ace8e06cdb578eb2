/* SPDX-License-Identifier: MIT
 * cio_nametable.h - what the files of the directory say only to each other:
 * names by index, and the table from name to index.
 *
 * Why      A slot holds 32 bits of a keyed hash beside the index, so that a
 *          probe touches a name only where it will be the right one. The keys
 *          come from the kernel: who makes an archive can't know which names
 *          collide.
 * Owner    All of it lies in the cio_directory.
 * Threads  As cio_directory.h.
 */
#ifndef CIO_NAMETABLE_H
#define CIO_NAMETABLE_H

#include "zip/cio_directory.h"

struct cio_zip_slot {
    uint32_t tag, index; /* index UINT32_MAX: free */
};

struct cio_zip_alias { /* the name of a member that isn't its raw one */
    uint32_t index, nbytes;
    size_t off; /* in names */
};

/* 64 bits of keyed hash; *bits gets the or of all 8-byte words, so that one
 * look says whether a byte is above 127. */
uint64_t cio_nametable_hash(const uint64_t seed[4], const void *name,
                            size_t nbytes, uint64_t *bits);

void cio_nametable_name(const struct cio_directory *directory, uint32_t index,
                        const uint8_t **name, size_t *nbytes);

/* Room for `members` at the load the table may have. */
enum cio_status cio_nametable_init(struct cio_directory *directory,
                                   uint64_t members);
/* Adds a member; of the same name the last one wins. */
enum cio_status cio_nametable_add(struct cio_directory *directory,
                                  uint32_t index, uint32_t tag);
/* Brings the slot of a tag near; call it a few members ahead of add. */
static inline void
cio_nametable_prefetch(const struct cio_directory *directory, uint32_t tag)
{
    __builtin_prefetch(&directory->slots[tag & directory->slot_mask], 1);
}

/* A name that differs from the raw one; in ascending order of index, or to be
 * sorted before the next look-up. */
enum cio_status cio_nametable_alias(struct cio_directory *directory,
                                    uint32_t index, const uint8_t *name,
                                    size_t nbytes);
void cio_nametable_sort(struct cio_directory *directory);

#endif
