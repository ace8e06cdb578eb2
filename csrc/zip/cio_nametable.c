/* SPDX-License-Identifier: MIT
 * cio_nametable.c - keyed hash, open addressing, aliases.
 */
#include "zip/cio_nametable.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"

#define FREE UINT32_MAX
/* The table is doubled when it is fuller than this many eighths: linear
 * probing with the tag in the slot stays within a cache line or two. */
#define LOAD_EIGHTHS 6

/* Both halves of a 128-bit product, folded: every bit of the result depends
 * on every bit of both factors, which hold unknown keys. */
static inline uint64_t
fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ const unsigned __int128 product =
        (__extension__(unsigned __int128) a) * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t al = (uint32_t)a, ah = a >> 32;
    const uint64_t bl = (uint32_t)b, bh = b >> 32;
    const uint64_t low = al * bl, middle = ah * bl + (low >> 32);
    const uint64_t cross = al * bh + (uint32_t)middle;

    return (cross << 32 | (uint32_t)low)
           ^ (ah * bh + (middle >> 32) + (cross >> 32));
#endif
}

static inline uint64_t
load64(const uint8_t *p)
{
    return cio_load_le64(p);
}

uint64_t
cio_nametable_hash(const uint64_t seed[4], const void *name, size_t nbytes,
                   uint64_t *bits)
{
    const uint8_t *p = name;
    uint64_t h = seed[0], a = 0, b = 0, all = 0;
    size_t left = nbytes;

    for (; left > 16; left -= 16, p += 16) {
        a = load64(p);
        b = load64(p + 8);
        all |= a | b;
        h = fold(a ^ seed[1] ^ h, b ^ seed[2]);
    }
    if (left >= 8) {
        a = load64(p);
        b = load64(p + left - 8);
    } else if (left >= 4) {
        a = cio_load_le32(p);
        b = cio_load_le32(p + left - 4);
    } else if (left > 0) {
        a = (uint64_t)p[0] | (uint64_t)p[left / 2] << 8;
        b = p[left - 1];
    } else {
        a = 0;
        b = 0;
    }
    *bits = all | a | b;
    h = fold(a ^ seed[1] ^ h, b ^ seed[2]);
    return fold(h ^ seed[3], seed[0] ^ (uint64_t)nbytes);
}

/* ------------------------------------------------------------------- seed */

static struct {
    uint64_t words[4];
    atomic_bool drawn;
} process_seed;

void
cio_directory_seed(const uint64_t seed[4])
{
    memcpy(process_seed.words, seed, sizeof process_seed.words);
    atomic_store(&process_seed.drawn, true);
}

/* Two threads may draw at once: each then uses what it copied, and a directory
 * keeps the seed that it was built with. */
static void
copy_seed(uint64_t seed[4])
{
    if (!atomic_load(&process_seed.drawn)) {
        uint64_t fresh[4];

        if (cio_sys->getrandom(fresh, sizeof fresh) != (ssize_t)sizeof fresh) {
            /* An early boot or a sandbox: addresses and time are what is left
             * that an archive's maker can't know. */
            struct timespec now;

            (void)clock_gettime(CLOCK_MONOTONIC, &now);
            fresh[0] = (uint64_t)(uintptr_t)&now;
            fresh[1] = (uint64_t)(uintptr_t)&process_seed ^ 0x9e3779b97f4a7c15;
            fresh[2] = (uint64_t)now.tv_nsec * 0xd6e8feb86659fd93;
            fresh[3] = (uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 32;
        }
        cio_directory_seed(fresh);
    }
    memcpy(seed, process_seed.words, sizeof process_seed.words);
}

/* ------------------------------------------------------------------ names */

static const struct cio_zip_alias *
find_alias(const struct cio_directory *directory, uint32_t index)
{
    size_t low = 0, high = directory->alias_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (directory->aliases[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return &directory->aliases[low];
}

void
cio_nametable_name(const struct cio_directory *directory, uint32_t index,
                   const uint8_t **name, size_t *nbytes)
{
    const struct cio_zip_member *const m = &directory->members[index];
    const uint8_t *const entry = directory->raw + m->entry_off;

    if (m->flags & CIO_ZIP_MEMBER_RENAMED) {
        const struct cio_zip_alias *const alias = find_alias(directory, index);

        /* Where all aliases are empty there is no memory for them. */
        *name = alias->nbytes == 0 ? entry : directory->names + alias->off;
        *nbytes = alias->nbytes;
        return;
    }
    *name = entry + CIO_ZIP_CENTRAL_NBYTES;
    /* The last entry's name may be cut by the directory's end. */
    *nbytes = cio_min_size(cio_load_le16(entry + 28),
                           directory->raw_nbytes - m->entry_off
                               - CIO_ZIP_CENTRAL_NBYTES);
}

static bool
same_name(const struct cio_directory *directory, uint32_t index,
          const uint8_t *name, size_t nbytes)
{
    const uint8_t *other;
    size_t other_nbytes;

    cio_nametable_name(directory, index, &other, &other_nbytes);
    return other_nbytes == nbytes && memcmp(other, name, nbytes) == 0;
}

static enum cio_status
reserve(void **memory, size_t *capacity, size_t want, size_t size)
{
    size_t room = *capacity < 16 ? 16 : *capacity;
    void *moved;

    if (want <= *capacity) {
        return CIO_OK;
    }
    while (room < want) {
        room *= 2;
    }
    moved = cio_sys->realloc(*memory, room * size);
    if (moved == NULL) {
        return CIO_ERR_NOMEM;
    }
    *memory = moved;
    *capacity = room;
    return CIO_OK;
}

enum cio_status
cio_nametable_alias(struct cio_directory *directory, uint32_t index,
                    const uint8_t *name, size_t nbytes)
{
    void *aliases = directory->aliases, *names = directory->names;
    enum cio_status status;

    status = reserve(&aliases, &directory->alias_capacity,
                     directory->alias_count + 1, sizeof *directory->aliases);
    directory->aliases = aliases;
    if (status != CIO_OK) {
        return status;
    }
    status = reserve(&names, &directory->names_capacity,
                     directory->names_nbytes + nbytes, 1);
    directory->names = names;
    if (status != CIO_OK) {
        return status;
    }
    if (nbytes > 0) {
        memcpy(directory->names + directory->names_nbytes, name, nbytes);
    }
    directory->aliases[directory->alias_count++] = (struct cio_zip_alias){
        index, (uint32_t)nbytes, directory->names_nbytes};
    directory->names_nbytes += nbytes;
    directory->members[index].flags |= CIO_ZIP_MEMBER_RENAMED;
    return CIO_OK;
}

static int
compare_aliases(const void *a, const void *b)
{
    const uint32_t x = ((const struct cio_zip_alias *)a)->index;
    const uint32_t y = ((const struct cio_zip_alias *)b)->index;

    return x < y ? -1 : x > y;
}

void
cio_nametable_sort(struct cio_directory *directory)
{
    if (directory->alias_count > 1) {
        qsort(directory->aliases, directory->alias_count,
              sizeof *directory->aliases, compare_aliases);
    }
}

/* ------------------------------------------------------------------ table */

static struct cio_zip_slot *
new_slots(uint64_t count)
{
    struct cio_zip_slot *slots;

    if (count > SIZE_MAX / sizeof *slots) {
        return NULL;
    }
    slots = cio_sys->malloc((size_t)count * sizeof *slots);
    if (slots != NULL) {
        memset(slots, 0xff, (size_t)count * sizeof *slots);
    }
    return slots;
}

enum cio_status
cio_nametable_init(struct cio_directory *directory, uint64_t members)
{
    uint64_t count = 8;

    while (count * LOAD_EIGHTHS / 8 < members
           && count < (uint64_t)UINT32_MAX + 1) {
        count *= 2;
    }
    directory->slots = new_slots(count);
    directory->slot_mask = (uint32_t)(count - 1);
    directory->used = 0;
    if (directory->slots == NULL) {
        return CIO_ERR_NOMEM;
    }
    copy_seed(directory->seed);
    return CIO_OK;
}

static void
place(struct cio_zip_slot *slots, uint32_t mask, struct cio_zip_slot slot)
{
    uint32_t at = slot.tag & mask;

    while (slots[at].index != FREE) {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

static enum cio_status
grow(struct cio_directory *directory)
{
    const uint64_t count = (uint64_t)directory->slot_mask + 1;
    struct cio_zip_slot *const slots = new_slots(count * 2);

    if (slots == NULL) {
        return CIO_ERR_NOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (directory->slots[i].index != FREE) {
            place(slots, (uint32_t)(count * 2 - 1), directory->slots[i]);
        }
    }
    cio_free(directory->slots);
    directory->slots = slots;
    directory->slot_mask = (uint32_t)(count * 2 - 1);
    return CIO_OK;
}

enum cio_status
cio_nametable_add(struct cio_directory *directory, uint32_t index,
                  uint32_t tag)
{
    const uint64_t count = (uint64_t)directory->slot_mask + 1;
    struct cio_zip_slot *slots;
    uint32_t at;

    if (directory->used >= count * LOAD_EIGHTHS / 8) {
        const enum cio_status status = grow(directory);

        if (status != CIO_OK) {
            return status;
        }
    }
    slots = directory->slots;
    at = tag & directory->slot_mask;
    for (; slots[at].index != FREE; at = (at + 1) & directory->slot_mask) {
        const uint8_t *name;
        size_t nbytes;

        if (slots[at].tag != tag) {
            continue;
        }
        cio_nametable_name(directory, index, &name, &nbytes);
        if (same_name(directory, slots[at].index, name, nbytes)) {
            directory->members[slots[at].index].flags |=
                CIO_ZIP_MEMBER_SHADOWED;
            directory->duplicates = true;
            slots[at].index = index;
            return CIO_OK;
        }
    }
    slots[at] = (struct cio_zip_slot){tag, index};
    directory->used++;
    return CIO_OK;
}

uint32_t
cio_directory_find(const struct cio_directory *directory, const char *name,
                   size_t nbytes)
{
    uint64_t bits;
    const uint32_t tag =
        (uint32_t)cio_nametable_hash(directory->seed, name, nbytes, &bits);
    const struct cio_zip_slot *const slots = directory->slots;
    uint32_t at;

    if (slots == NULL) {
        return UINT32_MAX;
    }
    at = tag & directory->slot_mask;
    for (; slots[at].index != FREE; at = (at + 1) & directory->slot_mask) {
        if (slots[at].tag == tag
            && same_name(directory, slots[at].index, (const uint8_t *)name,
                         nbytes)) {
            return slots[at].index;
        }
    }
    return UINT32_MAX;
}
