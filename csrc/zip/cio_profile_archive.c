/* SPDX-License-Identifier: MIT
 * cio_profile_archive.c - the rules' names, and what an archive breaks as a
 * whole.
 */
#include "base/cio_bytes.h"
#include "zip/cio_profile.h"

const char *
cio_profile_rule_text(uint32_t rules)
{
    static const char *const words[] = {
        "overlap",
        "local header",
        "local header's name",
        "local header's flags",
        "local header's method",
        "local header's time",
        "local header's CRC",
        "local header's size",
        "local header's extra field",
        "data descriptor",
        "unused bytes",
        "bytes before the archive",
        "bytes behind the archive",
        "second end record",
        "entry count",
        "directory offset",
        "zip64 locator",
        "zip64 end record",
        "disk number",
        "comment length",
        "duplicate name",
        "directory size",
    };

    if ((rules & 0xff) != 0) {
        return cio_name_rule_text(rules & 0xff);
    }
    return words[__builtin_ctz(rules) - 8];
}

static uint32_t
zip64_rules(const struct cio_zip_end *end, const uint8_t *plain)
{
    const uint64_t shift = end->dir_off - end->dir_said;
    const uint16_t here = cio_load_le16(plain + 8);
    const uint16_t total = cio_load_le16(plain + 10);
    const uint32_t size = cio_load_le32(plain + 12);
    const uint32_t offset = cio_load_le32(plain + 16);
    uint32_t rules = 0;

    if (end->locator_said + shift != end->end64_off || end->disks > 1) {
        rules |= CIO_PROFILE_LOCATOR;
    }
    if ((here != 0xffff && here != end->entries_disk)
        || (total != 0xffff && total != end->entries_said)
        || (size != UINT32_MAX && size != end->dir_nbytes)
        || (offset != UINT32_MAX && offset != end->dir_said)
        || end->end64_off + end->end64_nbytes != end->locator_off
        || end->locator_off + CIO_ZIP_LOCATOR_NBYTES != end->end_off) {
        rules |= CIO_PROFILE_ZIP64;
    }
    return rules;
}

static uint64_t
first_offset(const struct cio_directory *directory)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < directory->count; i++) {
        first = cio_min_u64(first, directory->members[i].header_off);
        if (directory->ascending || first == 0) {
            break;
        }
    }
    return cio_min_u64(first, directory->end.dir_off);
}

/* Where the last entry ends by its own lengths: zipfile takes what there is.
 */
static uint64_t
directory_end(const struct cio_directory *directory)
{
    uint64_t off;
    const uint8_t *p;

    if (directory->count == 0) {
        return directory->raw_nbytes;
    }
    off = directory->members[directory->count - 1].entry_off;
    p = directory->raw + off;
    return off + CIO_ZIP_CENTRAL_NBYTES + cio_load_le16(p + 28)
           + cio_load_le16(p + 30) + cio_load_le16(p + 32);
}

uint32_t
cio_profile_archive_rules(const struct cio_directory *directory,
                          const uint8_t end_record[CIO_ZIP_END_NBYTES])
{
    const struct cio_zip_end *end = &directory->end;
    uint32_t rules = 0;

    if (end->dir_off < end->dir_said) {
        rules |= CIO_PROFILE_OFFSET;
    }
    if (end->dir_off > end->dir_said || first_offset(directory) != 0) {
        rules |= CIO_PROFILE_BEFORE;
    }
    if (end->end_off + CIO_ZIP_END_NBYTES + end->comment_nbytes
        < end->file_nbytes) {
        rules |= CIO_PROFILE_BEHIND;
    }
    if (end->comment_said != end->comment_nbytes) {
        rules |= CIO_PROFILE_COMMENT;
    }
    /* The last one counts; a nested archive's may lie in a member. */
    if (end->ends_seen > 1
        && (rules & (CIO_PROFILE_OFFSET | CIO_PROFILE_BEFORE)) != 0) {
        rules |= CIO_PROFILE_SECOND_END;
    }
    if (end->entries_said != directory->count
        || end->entries_disk != directory->count) {
        rules |= CIO_PROFILE_COUNT;
    }
    if (end->disk != 0 || end->dir_disk != 0) {
        rules |= CIO_PROFILE_DISK;
    }
    if (end->end64_off != UINT64_MAX) {
        rules |= zip64_rules(end, end_record);
    } else if (end->locator_off != UINT64_MAX) {
        rules |= CIO_PROFILE_LOCATOR;
    }
    if (directory_end(directory) != end->dir_nbytes) {
        rules |= CIO_PROFILE_DIRECTORY;
    }
    if (directory->duplicates) {
        rules |= CIO_PROFILE_DUPLICATE;
    }
    return rules;
}
