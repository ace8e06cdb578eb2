/* SPDX-License-Identifier: MIT
 * cio_directory.c - one walk over the raw directory, entries unpacked on
 * demand, and who lies where in the file.
 *
 * The walk touches each entry once, in order, and puts its name into the table
 * a few entries later, when the slot has come from memory.
 */
#include "zip/cio_directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"
#include "zip/cio_charset.h"
#include "zip/cio_nametable.h"

#define CENTRAL_MAGIC 0x02014b50u
#define VERSION_MAX 63 /* zipfile.MAX_EXTRACT_VERSION */
#define EXTRA_ZIP64 0x0001u
#define EXTRA_UNICODE_PATH 0x7075u
#define AHEAD 16
#define HIGH_BITS UINT64_C(0x8080808080808080)

enum cio_status
cio_directory_init(struct cio_directory *directory,
                   const struct cio_zip_opener *opener, uint8_t *raw,
                   size_t raw_nbytes, uint8_t *comment, bool foreign)
{
    /* Neither number alone: what fits into the bytes that arrived. */
    const uint64_t most = raw_nbytes / CIO_ZIP_CENTRAL_NBYTES;
    const uint64_t hint = cio_min_u64(opener->end.entries_said, most);

    memset(directory, 0, sizeof *directory);
    directory->end = opener->end;
    directory->bounds = opener->bounds;
    directory->raw = raw;
    directory->raw_nbytes = raw_nbytes;
    directory->comment = comment;
    directory->foreign = foreign;
    directory->ascending = true;
    if (raw_nbytes >> 47 != 0) {
        return CIO_ERR_NOMEM; /* entry_off has 48 bits */
    }
    directory->capacity = (uint32_t)cio_min_u64(hint, UINT32_MAX - 1);
    if (directory->capacity > 0) {
        directory->members =
            cio_sys->malloc(directory->capacity * sizeof *directory->members);
        if (directory->members == NULL) {
            return CIO_ERR_NOMEM;
        }
    }
    return cio_nametable_init(directory, directory->capacity);
}

void
cio_directory_clear(struct cio_directory *directory)
{
    cio_free(directory->raw);
    cio_free(directory->comment);
    cio_free(directory->members);
    cio_free(directory->order);
    cio_free(directory->slots);
    cio_free(directory->aliases);
    cio_free(directory->names);
    memset(directory, 0, sizeof *directory);
}

/* ------------------------------------------------------------------ entry */

/* One zip64 value: as zipfile, a field is there only where the entry has all
 * ones, and consumed in this order. */
static bool
take_u64(const uint8_t **p, size_t *left, uint64_t *value)
{
    if (*left < 8) {
        return false;
    }
    *value = cio_load_le64(*p);
    *p += 8;
    *left -= 8;
    return true;
}

static enum cio_zip_rule
apply_zip64(struct cio_zip_info *info, const uint8_t *p, size_t left)
{
    if ((info->nbytes == UINT64_MAX || info->nbytes == UINT32_MAX)
        && !take_u64(&p, &left, &info->nbytes)) {
        return CIO_ZIP_RULE_EXTRA_SIZE;
    }
    if (info->compressed_nbytes == UINT32_MAX
        && !take_u64(&p, &left, &info->compressed_nbytes)) {
        return CIO_ZIP_RULE_EXTRA_COMPRESSED;
    }
    if (info->header_said == UINT32_MAX
        && !take_u64(&p, &left, &info->header_said)) {
        return CIO_ZIP_RULE_EXTRA_OFFSET;
    }
    return CIO_ZIP_RULE_NONE;
}

/* The Unicode path extra counts only where its CRC is that of the raw name. */
static enum cio_zip_rule
apply_unicode_path(struct cio_zip_info *info, const uint8_t *p, size_t left)
{
    if (left < 5) {
        return CIO_ZIP_RULE_UNICODE_PATH;
    }
    if (p[0] != 1
        || cio_load_le32(p + 1)
               != cio_crc32(0, info->raw_name, info->raw_name_nbytes)) {
        return CIO_ZIP_RULE_NONE;
    }
    if (!cio_utf8_valid(p + 5, left - 5)) {
        return CIO_ZIP_RULE_UNICODE_PATH_UTF8;
    }
    if (left > 5) {
        info->name = (const char *)p + 5;
        info->name_nbytes = left - 5;
    }
    return CIO_ZIP_RULE_NONE;
}

static enum cio_zip_rule
apply_extras(struct cio_zip_info *info, struct cio_zip_problem *problem)
{
    const uint8_t *p = info->extra;
    size_t left = info->extra_nbytes;
    enum cio_zip_rule rule = CIO_ZIP_RULE_NONE;

    while (left >= 4 && rule == CIO_ZIP_RULE_NONE) {
        const unsigned type = cio_load_le16(p);
        const size_t nbytes = cio_load_le16(p + 2);

        if (nbytes + 4 > left) {
            problem->expected = type;
            problem->found = nbytes;
            return CIO_ZIP_RULE_EXTRA;
        }
        if (type == EXTRA_ZIP64) {
            rule = apply_zip64(info, p + 4, nbytes);
        } else if (type == EXTRA_UNICODE_PATH) {
            rule = apply_unicode_path(info, p + 4, nbytes);
        }
        p += nbytes + 4;
        left -= nbytes + 4;
    }
    return rule;
}

static void
place_header(const struct cio_zip_end *end, struct cio_zip_info *info)
{
    uint64_t off = info->header_said;
    bool there;

    if (end->dir_off >= end->dir_said) {
        there = cio_add_u64(off, end->dir_off - end->dir_said, &off);
    } else {
        there = off >= end->dir_said - end->dir_off;
        off -= end->dir_said - end->dir_off;
    }
    if (!there || off > INT64_MAX) {
        info->member_flags |= CIO_ZIP_MEMBER_NOWHERE;
        off = UINT64_MAX;
    }
    info->header_off = off;
}

/* The fixed fields; at least 46 bytes are there. Variable ones are cut where
 * the directory ends, as zipfile's are. */
static void
unpack(const uint8_t *p, size_t left, struct cio_zip_info *info)
{
    left -= CIO_ZIP_CENTRAL_NBYTES;
    info->create_version = p[4];
    info->create_system = p[5];
    info->extract_version = p[6];
    info->reserved = p[7];
    info->flags = cio_load_le16(p + 8);
    info->method = cio_load_le16(p + 10);
    info->time = cio_load_le16(p + 12);
    info->date = cio_load_le16(p + 14);
    info->crc = cio_load_le32(p + 16);
    info->compressed_nbytes = cio_load_le32(p + 20);
    info->nbytes = cio_load_le32(p + 24);
    info->disk = cio_load_le16(p + 34);
    info->internal_attr = cio_load_le16(p + 36);
    info->external_attr = cio_load_le32(p + 38);
    info->header_said = cio_load_le32(p + 42);
    info->raw_name = p + CIO_ZIP_CENTRAL_NBYTES;
    info->raw_name_nbytes = cio_min_size(cio_load_le16(p + 28), left);
    info->extra = info->raw_name + info->raw_name_nbytes;
    left -= info->raw_name_nbytes;
    info->extra_nbytes = cio_min_size(cio_load_le16(p + 30), left);
    info->comment = info->extra + info->extra_nbytes;
    left -= info->extra_nbytes;
    info->comment_nbytes = cio_min_size(cio_load_le16(p + 32), left);
    info->name = (const char *)info->raw_name;
    info->name_nbytes = info->raw_name_nbytes;
    info->member_flags = 0;
}

void
cio_directory_info(const struct cio_directory *directory, uint32_t index,
                   struct cio_zip_info *info)
{
    const struct cio_zip_member *const m = &directory->members[index];
    struct cio_zip_problem ignored;
    const uint8_t *name;

    unpack(directory->raw + m->entry_off, directory->raw_nbytes - m->entry_off,
           info);
    info->index = index;
    if (info->extra_nbytes >= 4) {
        (void)apply_extras(info, &ignored); /* the walk saw it pass */
    }
    place_header(&directory->end, info);
    info->member_flags = m->flags;
    cio_nametable_name(directory, index, &name, &info->name_nbytes);
    info->name = (const char *)name;
}

/* ------------------------------------------------------------------- walk */

struct pending {
    uint32_t index, tag;
};

static enum cio_status
new_member(struct cio_directory *directory, const struct cio_zip_info *info,
           uint64_t entry_off)
{
    struct cio_zip_member *members = directory->members;

    if (directory->count == directory->capacity) {
        const uint64_t more = (uint64_t)directory->capacity * 2 + 16;

        if (more >= UINT32_MAX) {
            return CIO_ERR_NOMEM;
        }
        members = cio_sys->realloc(members, (size_t)more * sizeof *members);
        if (members == NULL) {
            return CIO_ERR_NOMEM;
        }
        directory->members = members;
        directory->capacity = (uint32_t)more;
    }
    if (directory->count > 0
        && members[directory->count - 1].header_off > info->header_off) {
        directory->ascending = false;
    }
    members[directory->count].header_off = info->header_off;
    members[directory->count].entry_off = entry_off & 0xffffffffffffu;
    members[directory->count].flags = info->member_flags & 0xffffu;
    directory->count++;
    return CIO_OK;
}

static enum cio_status
bad(struct cio_zip_problem *problem, const struct cio_directory *directory,
    enum cio_zip_rule rule)
{
    problem->rule = rule;
    problem->index = directory->count;
    problem->offset = directory->end.dir_off + directory->walked;
    return CIO_ERR_DATA;
}

/* The name's UTF-8 form, as an alias where it isn't the raw one. The member
 * has been added. */
static enum cio_status
settle_name(struct cio_directory *directory, const struct cio_zip_info *info,
            bool ascii)
{
    uint8_t *decoded = NULL;
    const uint8_t *name = (const uint8_t *)info->name;
    size_t nbytes = info->name_nbytes;
    const uint8_t *nul;
    enum cio_status status = CIO_OK;

    if (name == info->raw_name && !ascii
        && !(info->flags & CIO_ZIP_FLAG_UTF8)) {
        decoded = cio_sys->malloc(3 * nbytes);
        if (decoded == NULL) {
            return CIO_ERR_NOMEM;
        }
        nbytes = cio_cp437_to_utf8(name, nbytes, decoded);
        name = decoded;
    }
    nul = memchr(name, 0, nbytes);
    if (nul != NULL) {
        nbytes = (size_t)(nul - name);
    }
    if (name != info->raw_name || nbytes != info->raw_name_nbytes) {
        status =
            cio_nametable_alias(directory, directory->count - 1, name, nbytes);
    }
    cio_free(decoded);
    return status;
}

static enum cio_status
check_bounds(const struct cio_directory *directory,
             const struct cio_zip_info *info, struct cio_zip_problem *problem)
{
    if (directory->count >= directory->bounds.entries) {
        (void)bad(problem, directory, CIO_ZIP_RULE_LIMIT_ENTRIES);
        problem->expected = directory->bounds.entries;
        problem->found = directory->count + 1;
        return CIO_ERR_LIMIT;
    }
    if (info->raw_name_nbytes > directory->bounds.name_nbytes) {
        (void)bad(problem, directory, CIO_ZIP_RULE_LIMIT_NAME);
        problem->expected = directory->bounds.name_nbytes;
        problem->found = info->raw_name_nbytes;
        return CIO_ERR_LIMIT;
    }
    return CIO_OK;
}

/* One entry: checked as zipfile checks it, added, its name settled. */
static enum cio_status
walk_entry(struct cio_directory *directory, struct pending *pending,
           struct cio_zip_problem *problem)
{
    const size_t off = directory->walked;
    const size_t left = directory->raw_nbytes - off;
    const uint8_t *const p = directory->raw + off;
    struct cio_zip_info info;
    enum cio_zip_rule rule;
    enum cio_status status;
    uint64_t bits, hash;

    if (left < CIO_ZIP_CENTRAL_NBYTES) {
        return bad(problem, directory, CIO_ZIP_RULE_DIRECTORY_CUT);
    }
    if (cio_load_le32(p) != CENTRAL_MAGIC) {
        return bad(problem, directory, CIO_ZIP_RULE_DIRECTORY_MAGIC);
    }
    unpack(p, left, &info);
    status = check_bounds(directory, &info, problem);
    if (status != CIO_OK) {
        return status;
    }
    hash = cio_nametable_hash(directory->seed, info.raw_name,
                              info.raw_name_nbytes, &bits);
    if ((bits & HIGH_BITS) != 0 && (info.flags & CIO_ZIP_FLAG_UTF8)
        && !cio_utf8_valid(info.raw_name, info.raw_name_nbytes)) {
        return bad(problem, directory, CIO_ZIP_RULE_NAME_UTF8);
    }
    if (info.extract_version > VERSION_MAX) {
        problem->found = info.extract_version;
        return bad(problem, directory, CIO_ZIP_RULE_VERSION);
    }
    rule = info.extra_nbytes >= 4 ? apply_extras(&info, problem)
                                  : CIO_ZIP_RULE_NONE;
    if (rule != CIO_ZIP_RULE_NONE) {
        return bad(problem, directory, rule);
    }
    place_header(&directory->end, &info);
    status = new_member(directory, &info, off);
    if (status != CIO_OK) {
        return status;
    }
    pending->index = directory->count - 1;
    directory->walked += CIO_ZIP_CENTRAL_NBYTES + (size_t)cio_load_le16(p + 28)
                         + cio_load_le16(p + 30) + cio_load_le16(p + 32);
    if (directory->foreign && !(info.flags & CIO_ZIP_FLAG_UTF8)
        && info.name == (const char *)info.raw_name) {
        return CIO_OK; /* cio_directory_rename will follow */
    }
    status = settle_name(directory, &info, (bits & HIGH_BITS) == 0);
    if (directory->members[pending->index].flags & CIO_ZIP_MEMBER_RENAMED) {
        const uint8_t *name;
        size_t nbytes;

        cio_nametable_name(directory, pending->index, &name, &nbytes);
        hash = cio_nametable_hash(directory->seed, name, nbytes, &bits);
    }
    pending->tag = (uint32_t)hash;
    return status;
}

/* A count that lied has made the array grow past what is needed. */
static void
trim_members(struct cio_directory *directory)
{
    void *less;

    if (directory->count == 0 || directory->count == directory->capacity) {
        return;
    }
    less = cio_sys->realloc(directory->members,
                            directory->count * sizeof *directory->members);
    if (less != NULL) {
        directory->members = less;
        directory->capacity = directory->count;
    }
}

enum cio_status
cio_directory_walk(struct cio_directory *directory,
                   struct cio_zip_problem *problem)
{
    struct pending ring[AHEAD];
    uint32_t n = 0, added = 0;
    enum cio_status status = CIO_OK;

    *problem = (struct cio_zip_problem){.index = UINT32_MAX};
    while (directory->walked < directory->end.dir_nbytes
           && n < CIO_ZIP_WALK_MEMBERS && status == CIO_OK) {
        struct pending *const next = &ring[n % AHEAD];

        if (n - added == AHEAD && !directory->foreign) {
            status = cio_nametable_add(directory, next->index, next->tag);
            added++;
            if (status != CIO_OK) {
                break;
            }
        }
        /* An entry beyond what is there is cut; walk_entry says so. */
        if (directory->walked > directory->raw_nbytes) {
            directory->walked = directory->raw_nbytes;
        }
        status = walk_entry(directory, next, problem);
        if (status == CIO_OK && !directory->foreign) {
            cio_nametable_prefetch(directory, next->tag);
        }
        n++;
    }
    for (; added < n && status == CIO_OK && !directory->foreign; added++) {
        const struct pending *const next = &ring[added % AHEAD];

        status = cio_nametable_add(directory, next->index, next->tag);
    }
    if (status != CIO_OK) {
        return status;
    }
    if (directory->walked < directory->end.dir_nbytes) {
        return CIO_MORE;
    }
    trim_members(directory);
    return CIO_OK;
}

enum cio_status
cio_directory_rename(struct cio_directory *directory, uint32_t index,
                     const char *name, size_t nbytes)
{
    return cio_nametable_alias(directory, index, (const uint8_t *)name,
                               nbytes);
}

enum cio_status
cio_directory_index(struct cio_directory *directory)
{
    cio_nametable_sort(directory); /* the walk made some, the caller others */
    for (uint32_t i = 0; i < directory->count; i++) {
        const uint8_t *name;
        size_t nbytes;
        uint64_t bits;
        enum cio_status status;

        cio_nametable_name(directory, i, &name, &nbytes);
        status = cio_nametable_add(directory, i,
                                   (uint32_t)cio_nametable_hash(
                                       directory->seed, name, nbytes, &bits));
        if (status != CIO_OK) {
            return status;
        }
    }
    return CIO_OK;
}

/* ------------------------------------------------------------------ order */

struct at {
    uint64_t off;
    uint32_t index;
};

static int
compare_at(const void *a, const void *b)
{
    const struct at *const x = a, *const y = b;

    if (x->off != y->off) {
        return x->off < y->off ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

enum cio_status
cio_directory_order(struct cio_directory *directory)
{
    struct at *sorted;
    uint32_t *order;

    if (directory->ascending || directory->order != NULL) {
        return CIO_OK;
    }
    sorted = cio_sys->malloc(directory->count * sizeof *sorted);
    order = cio_sys->malloc(directory->count * sizeof *order);
    if (sorted == NULL || order == NULL) {
        cio_free(sorted);
        cio_free(order);
        return CIO_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < directory->count; i++) {
        sorted[i] = (struct at){directory->members[i].header_off, i};
    }
    qsort(sorted, directory->count, sizeof *sorted, compare_at);
    for (uint32_t i = 0; i < directory->count; i++) {
        order[i] = sorted[i].index;
    }
    cio_free(sorted);
    directory->order = order;
    return CIO_OK;
}

/* The member at a place in the order of offsets. */
static uint32_t
at_place(const struct cio_directory *directory, uint32_t place)
{
    return directory->order == NULL ? place : directory->order[place];
}

/* The first place whose member lies behind (off, index). */
static uint32_t
place_behind(const struct cio_directory *directory, uint64_t off,
             uint32_t index)
{
    const struct at key = {off, index};
    uint32_t low = 0, high = directory->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint32_t i = at_place(directory, middle);
        const struct at other = {directory->members[i].header_off, i};

        if (compare_at(&other, &key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Members that lie nowhere come last. In front of the file, where a directory
 * that lies before its said place puts them, they bound nobody. */
static uint64_t
offset_at_place(const struct cio_directory *directory, uint32_t place)
{
    const struct cio_zip_end *const end = &directory->end;
    uint64_t off = end->dir_off;

    if (place < directory->count) {
        off = directory->members[at_place(directory, place)].header_off;
        if (off == UINT64_MAX && end->dir_said > end->dir_off) {
            off = end->dir_off;
        }
    }
    return off;
}

uint64_t
cio_directory_end_of(const struct cio_directory *directory, uint32_t index)
{
    if (directory->ascending) {
        return offset_at_place(directory, index + 1);
    }
    return offset_at_place(
        directory,
        place_behind(directory, directory->members[index].header_off, index));
}

uint64_t
cio_directory_end_behind(const struct cio_directory *directory,
                         uint64_t header_off)
{
    return offset_at_place(directory,
                           place_behind(directory, header_off, UINT32_MAX));
}
