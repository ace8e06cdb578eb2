/* SPDX-License-Identifier: MIT
 * cio_profile_header.c - field by field, as APPNOTE 4.3.7 and 4.3.9 list them.
 */
#include "zip/cio_profile_header.h"

#include <stdbool.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "zip/cio_profile.h"

#define EXTRA_ZIP64 0x0001
#define EXTRA_UNICODE_PATH 0x7075

/* Flags that say how to read a member. Bits 1 and 2 tell how hard the packer
 * tried; some write them in one place only. */
#define FLAGS_THAT_COUNT                                                      \
    (CIO_ZIP_FLAG_ENCRYPTED | CIO_ZIP_FLAG_DESCRIPTOR | CIO_ZIP_FLAG_PATCH    \
     | CIO_ZIP_FLAG_STRONG | CIO_ZIP_FLAG_UTF8)

struct field {
    const uint8_t *data; /* NULL: not there */
    size_t nbytes;
};

/* false: a field is longer than its room. A rest of zeros is padding, as
 * zipalign leaves it. */
static bool
find_field(const uint8_t *extra, size_t nbytes, unsigned id,
           struct field *found)
{
    *found = (struct field){NULL, 0};
    while (nbytes >= 4) {
        const size_t length = cio_load_le16(extra + 2);

        if (length > nbytes - 4) {
            return false;
        }
        if (cio_load_le16(extra) == id && found->data == NULL) {
            *found = (struct field){extra + 4, length};
        }
        extra += 4 + length;
        nbytes -= 4 + length;
    }
    while (nbytes > 0 && *extra == 0) {
        extra++;
        nbytes--;
    }
    return nbytes == 0;
}

static bool
same_field(const struct field *a, const struct field *b)
{
    return (a->data == NULL) == (b->data == NULL) && a->nbytes == b->nbytes
           && (a->data == NULL || memcmp(a->data, b->data, a->nbytes) == 0);
}

/* A size in the header: the directory's, by itself or in the zip64 field; of
 * a streamed member also 0. */
static bool
size_agrees(uint32_t in_header, const struct field *zip64, size_t at,
            uint64_t expected, bool streamed)
{
    uint64_t size = in_header;

    if (in_header == UINT32_MAX && zip64->data != NULL
        && zip64->nbytes >= at + 8) {
        size = cio_load_le64(zip64->data + at);
    }
    return size == expected || (streamed && size == 0);
}

uint32_t
cio_profile_header_rules(const struct cio_zip_info *info,
                         const uint8_t *header)
{
    const uint16_t flags = cio_load_le16(header + 6);
    const size_t name_nbytes = cio_load_le16(header + 26);
    const size_t extra_nbytes = cio_load_le16(header + 28);
    const uint8_t *const name = header + CIO_ZIP_HEADER_NBYTES;
    const uint8_t *const extra = name + name_nbytes;
    const bool streamed = (info->flags & CIO_ZIP_FLAG_DESCRIPTOR) != 0;
    const uint32_t crc = cio_load_le32(header + 14);
    const uint32_t compressed = cio_load_le32(header + 18);
    const uint32_t size = cio_load_le32(header + 22);
    struct field zip64, path, path_said;
    uint32_t rules = 0;

    if (name_nbytes != info->raw_name_nbytes
        || memcmp(name, info->raw_name, name_nbytes) != 0) {
        rules |= CIO_PROFILE_HEADER_NAME;
    }
    if (((flags ^ info->flags) & FLAGS_THAT_COUNT) != 0) {
        rules |= CIO_PROFILE_HEADER_FLAGS;
    }
    if (cio_load_le16(header + 8) != info->method) {
        rules |= CIO_PROFILE_HEADER_METHOD;
    }
    if (cio_load_le16(header + 10) != info->time
        || cio_load_le16(header + 12) != info->date) {
        rules |= CIO_PROFILE_HEADER_TIME;
    }
    if (crc != info->crc && !(streamed && crc == 0)) {
        rules |= CIO_PROFILE_HEADER_CRC;
    }
    if (!find_field(extra, extra_nbytes, EXTRA_ZIP64, &zip64)
        || !find_field(info->extra, info->extra_nbytes, EXTRA_UNICODE_PATH,
                       &path_said)
        || !find_field(extra, extra_nbytes, EXTRA_UNICODE_PATH, &path)
        || !same_field(&path, &path_said)) {
        rules |= CIO_PROFILE_HEADER_EXTRA;
    } else if (!size_agrees(size, &zip64, 0, info->nbytes, streamed)
               || !size_agrees(compressed, &zip64, 8, info->compressed_nbytes,
                               streamed)) {
        rules |= CIO_PROFILE_HEADER_SIZE;
    }
    return rules;
}

/* The bytes of the form that agrees with the directory; 0: it doesn't. */
static size_t
match_descriptor(const struct cio_zip_info *info, const uint8_t *got,
                 size_t got_nbytes, size_t front, bool wide)
{
    const size_t nbytes = front + (wide ? 20u : 12u);
    const uint8_t *p = got + front;

    if (got_nbytes < nbytes || (front != 0 && memcmp(got, "PK\7\10", 4) != 0)
        || cio_load_le32(p) != info->crc) {
        return 0;
    }
    if (wide) {
        return cio_load_le64(p + 4) == info->compressed_nbytes
                       && cio_load_le64(p + 12) == info->nbytes
                   ? nbytes
                   : 0;
    }
    return cio_load_le32(p + 4) == info->compressed_nbytes
                   && cio_load_le32(p + 8) == info->nbytes
               ? nbytes
               : 0;
}

uint32_t
cio_profile_descriptor_rules(const struct cio_zip_info *info,
                             const uint8_t *got, size_t got_nbytes,
                             uint64_t room)
{
    bool agrees = false;

    for (size_t form = 0; form < 4; form++) {
        const size_t nbytes = match_descriptor(
            info, got, got_nbytes, form < 2 ? 4 : 0, form % 2 != 0);

        if (nbytes != 0 && nbytes == room) {
            return 0;
        }
        agrees = agrees || nbytes != 0;
    }
    return agrees ? CIO_PROFILE_GAP : CIO_PROFILE_DESCRIPTOR;
}
