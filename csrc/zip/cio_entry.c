/* SPDX-License-Identifier: MIT
 * cio_entry.c - what a member may be, its header, and its bytes decoded.
 */
#include "zip/cio_entry.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"
#include "zip/cio_charset.h"
#include "zip/cio_entry_parts.h"

#define HEADER_MAGIC 0x04034b50u

void
cio_entry_of(const struct cio_directory *directory,
             const struct cio_zip_info *info, struct cio_entry *entry)
{
    *entry = (struct cio_entry){
        .header_off = info->header_off,
        .end_off = cio_directory_end_of(directory, info->index),
        .compressed_nbytes = info->compressed_nbytes,
        .nbytes = info->nbytes,
        .raw_name = info->raw_name,
        .raw_name_nbytes = info->raw_name_nbytes,
        .extra_nbytes = info->extra_nbytes,
        .crc = info->crc,
        .index = info->index,
        .method = info->method,
        .flags = info->flags,
        .time = info->time,
        .verify = true,
        .nowhere = (info->member_flags & CIO_ZIP_MEMBER_NOWHERE) != 0,
    };
}

enum cio_status
cio_entry_bad(const struct cio_entry *entry, struct cio_zip_problem *problem,
              enum cio_zip_rule rule, uint64_t expected, uint64_t found)
{
    *problem = (struct cio_zip_problem){
        .rule = rule,
        .index = entry->index,
        .offset = entry->data_off != 0 ? entry->data_off : entry->header_off,
        .expected = expected,
        .found = found,
    };
    return CIO_ERR_DATA;
}

static enum cio_status
check_flags(const struct cio_entry *entry, struct cio_zip_problem *problem)
{
    if (entry->flags & CIO_ZIP_FLAG_PATCH) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_PATCH, 0,
                             entry->flags);
    }
    if (entry->flags & CIO_ZIP_FLAG_STRONG) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_STRONG, 0,
                             entry->flags);
    }
    if ((entry->flags & CIO_ZIP_FLAG_ENCRYPTED) && !entry->decrypt) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_ENCRYPTED, 0,
                             entry->flags);
    }
    return CIO_OK;
}

enum cio_status
cio_entry_check(const struct cio_entry *entry, struct cio_zip_problem *problem)
{
    uint64_t most, packed = entry->compressed_nbytes;

    if (entry->nowhere) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_HEADER_CUT,
                             CIO_ZIP_HEADER_NBYTES, 0);
    }
    if (check_flags(entry, problem) != CIO_OK) {
        return CIO_ERR_DATA;
    }
    if (entry->decrypt) {
        if (packed < CIO_ZIPCRYPTO_HEADER_NBYTES) {
            return cio_entry_bad(entry, problem, CIO_ZIP_RULE_STREAM_CUT,
                                 CIO_ZIPCRYPTO_HEADER_NBYTES, packed);
        }
        packed -= CIO_ZIPCRYPTO_HEADER_NBYTES;
    }
    if (entry->method == CIO_ZIP_STORED) {
        most = packed;
        if (entry->nbytes < most) {
            return cio_entry_bad(entry, problem, CIO_ZIP_RULE_LONG,
                                 entry->nbytes, most);
        }
    } else if (entry->method == CIO_ZIP_DEFLATED) {
        most = UINT64_MAX;
        (void)cio_mul_u64(packed, CIO_DEFLATE_MAX_RATIO, &most);
    } else {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_METHOD, 0,
                             entry->method);
    }
    if (entry->nbytes > most) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_IMPOSSIBLE, most,
                             entry->nbytes);
    }
    return CIO_OK;
}

bool
cio_entry_is_whole(const struct cio_entry *entry)
{
    if (entry->method == CIO_ZIP_STORED) {
        return entry->nbytes <= CIO_SLICE_NBYTES;
    }
    return entry->compressed_nbytes <= CIO_ZIP_WHOLE_IN_NBYTES
           && entry->nbytes <= CIO_ZIP_WHOLE_OUT_NBYTES
           && (entry->nbytes <= CIO_ZIP_TRUST_NBYTES
               || entry->nbytes
                      <= entry->compressed_nbytes * CIO_ZIP_TRUST_RATIO);
}

bool
cio_entry_is_whole_alone(const struct cio_entry *entry)
{
    return cio_entry_is_whole(entry)
           || (entry->method == CIO_ZIP_DEFLATED && cio_whole_is_faster()
               && entry->compressed_nbytes <= CIO_ZIP_ALONE_IN_NBYTES
               && entry->nbytes <= CIO_INFLATE_WHOLE_MAX_NBYTES
               && entry->nbytes
                      <= entry->compressed_nbytes * CIO_ZIP_TRUST_RATIO);
}

/* ----------------------------------------------------------------- header */

uint64_t
cio_entry_header_guess(const struct cio_entry *entry)
{
    return CIO_ZIP_HEADER_NBYTES + entry->raw_name_nbytes + entry->extra_nbytes
           + CIO_ZIP_EXTRA_SLACK;
}

uint64_t
cio_entry_cap(const struct cio_entry *entry, uint64_t nbytes)
{
    if (entry->end_off > entry->header_off) {
        nbytes = cio_min_u64(nbytes, entry->end_off - entry->header_off);
    }
    return cio_max_u64(nbytes, CIO_ZIP_HEADER_NBYTES);
}

uint64_t
cio_entry_window(const struct cio_entry *entry)
{
    uint64_t nbytes = UINT64_MAX;

    (void)cio_add_u64(cio_entry_header_guess(entry), entry->compressed_nbytes,
                      &nbytes);
    return cio_entry_cap(entry, nbytes);
}

/* Names are compared as zipfile does, decoded by each side's own flag: the
 * same bytes under other flags may be another name, and other bytes the same
 * one. */
static bool
same_decoded(const struct cio_entry *entry, const uint8_t *name, size_t nbytes,
             bool utf8)
{
    const bool entry_utf8 = (entry->flags & CIO_ZIP_FLAG_UTF8) != 0;
    const uint8_t *const legacy = utf8 ? entry->raw_name : name;
    const size_t legacy_nbytes = utf8 ? entry->raw_name_nbytes : nbytes;
    const uint8_t *const other = utf8 ? name : entry->raw_name;
    const size_t other_nbytes = utf8 ? nbytes : entry->raw_name_nbytes;
    uint8_t *decoded;
    bool same;

    if (utf8 == entry_utf8) {
        return nbytes == entry->raw_name_nbytes
               && memcmp(name, entry->raw_name, nbytes) == 0;
    }
    decoded = cio_sys->malloc(3 * legacy_nbytes + 1);
    same = decoded != NULL
           && cio_cp437_to_utf8(legacy, legacy_nbytes, decoded) == other_nbytes
           && memcmp(decoded, other, other_nbytes) == 0;
    cio_free(decoded);
    return same;
}

/* The last of the random bytes tells: of the CRC, or of the time where that
 * wasn't known when the member was written. */
static bool
is_password(const struct cio_entry *entry, const uint8_t *random)
{
    const uint32_t expected = (entry->flags & CIO_ZIP_FLAG_DESCRIPTOR)
                                  ? entry->time >> 8
                                  : entry->crc >> 24;
    struct cio_zipcrypto keys = entry->keys;
    uint8_t plain[CIO_ZIPCRYPTO_HEADER_NBYTES];

    cio_zipcrypto_decrypt(&keys, random, plain, sizeof plain);
    return plain[sizeof plain - 1] == expected;
}

enum cio_status
cio_entry_header(struct cio_entry *entry, const uint8_t *got,
                 size_t got_nbytes, size_t *need_nbytes,
                 struct cio_zip_problem *problem)
{
    size_t name_nbytes;
    uint64_t data_off, data_end;

    *need_nbytes = CIO_ZIP_HEADER_NBYTES;
    if (got_nbytes < CIO_ZIP_HEADER_NBYTES) {
        return CIO_MORE;
    }
    if (cio_load_le32(got) != HEADER_MAGIC) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_HEADER_MAGIC,
                             HEADER_MAGIC, cio_load_le32(got));
    }
    if (entry->bare) {
        entry->flags = cio_load_le16(got + 6);
        entry->time = cio_load_le16(got + 10);
        if (check_flags(entry, problem) != CIO_OK) {
            return CIO_ERR_DATA;
        }
    }
    name_nbytes = cio_load_le16(got + 26);
    *need_nbytes += name_nbytes;
    if (got_nbytes < *need_nbytes) {
        return CIO_MORE;
    }
    data_off = entry->header_off + *need_nbytes + cio_load_le16(got + 28);
    if (entry->raw_name != NULL
        && !same_decoded(entry, got + CIO_ZIP_HEADER_NBYTES, name_nbytes,
                         (cio_load_le16(got + 6) & CIO_ZIP_FLAG_UTF8) != 0)) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_HEADER_NAME, 0, 0);
    }
    /* Of members at one offset all but the last have that as their end;
     * zipfile since 3.13.1 only warns of those. */
    if (entry->end_off != entry->header_off
        && (!cio_add_u64(data_off, entry->compressed_nbytes, &data_end)
            || data_end > entry->end_off)) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_OVERLAP,
                             entry->end_off,
                             data_off + entry->compressed_nbytes);
    }
    if (entry->decrypt) {
        const size_t start = (size_t)(data_off - entry->header_off);

        *need_nbytes = start + CIO_ZIPCRYPTO_HEADER_NBYTES;
        if (got_nbytes < *need_nbytes) {
            return CIO_MORE;
        }
        if (!is_password(entry, got + start)) {
            return cio_entry_bad(entry, problem, CIO_ZIP_RULE_PASSWORD, 0, 0);
        }
    }
    entry->data_off = data_off;
    return CIO_OK;
}

/* ----------------------------------------------------------------- decode */

static enum cio_status
check_crc(const struct cio_entry *entry, uint32_t crc,
          struct cio_zip_problem *problem)
{
    if (entry->verify && crc != entry->crc) {
        return cio_entry_bad(entry, problem, CIO_ZIP_RULE_CRC, entry->crc,
                             crc);
    }
    return CIO_OK;
}

static enum cio_status
blame(const struct cio_entry *entry, const struct cio_whole *whole,
      struct cio_zip_problem *problem)
{
    enum cio_zip_rule rule = CIO_ZIP_RULE_STREAM;

    switch (whole->fault) {
    case CIO_FAULT_NONE:
    case CIO_FAULT_STREAM:
        break;
    case CIO_FAULT_CUT:
        rule = CIO_ZIP_RULE_STREAM_CUT;
        break;
    case CIO_FAULT_SHORT:
        rule = CIO_ZIP_RULE_SHORT;
        break;
    case CIO_FAULT_LONG:
        rule = CIO_ZIP_RULE_LONG;
        break;
    }
    (void)cio_entry_bad(entry, problem, rule, entry->nbytes, whole->out_used);
    problem->text = whole->text;
    return CIO_ERR_DATA;
}

/* Under a checksum the fastest engine serves; what it makes of data that no
 * checksum confirms is for zlib to say. */
static enum cio_status
inflate_entry(const struct cio_entry *entry, const uint8_t *data, uint8_t *out,
              struct cio_zip_problem *problem)
{
    struct cio_whole whole = {
        .in = data,
        .in_nbytes = (size_t)entry->compressed_nbytes,
        .out = out,
        .out_nbytes = (size_t)entry->nbytes,
        .checked = entry->nbytes > 0, /* no byte: no checksum */
    };
    enum cio_status status = cio_inflate_whole(&whole);
    /* A stream without its last block is all right for zipfile, if its bytes
     * are all there. */
    bool whole_came =
        status == CIO_OK
        || (status == CIO_ERR_DATA && whole.fault == CIO_FAULT_CUT
            && whole.out_used == entry->nbytes);

    if (whole_came && whole.crc == entry->crc) {
        return CIO_OK;
    }
    if (whole_came && entry->verify) {
        return check_crc(entry, whole.crc, problem);
    }
    if (status == CIO_OK) {
        whole.checked = false;
        status = cio_inflate_whole(&whole);
        whole_came = status == CIO_OK;
    }
    if (whole_came) {
        return CIO_OK;
    }
    return status == CIO_ERR_DATA ? blame(entry, &whole, problem) : status;
}

/* Stored bytes are decrypted where they are wanted, deflated ones on the
 * way. */
static enum cio_status
decode_encrypted(const struct cio_entry *entry, const uint8_t *data,
                 uint8_t *out, struct cio_zip_problem *problem)
{
    struct cio_entry plain = *entry;
    struct cio_zipcrypto keys = entry->keys;
    uint8_t random[CIO_ZIPCRYPTO_HEADER_NBYTES], *between = out;
    enum cio_status status;

    plain.decrypt = false;
    plain.compressed_nbytes -= sizeof random;
    cio_zipcrypto_decrypt(&keys, data, random, sizeof random);
    if (entry->method != CIO_ZIP_STORED) {
        between = cio_sys->malloc((size_t)plain.compressed_nbytes + 1);
        if (between == NULL) {
            return CIO_ERR_NOMEM;
        }
    }
    cio_zipcrypto_decrypt(&keys, data + sizeof random, between,
                          (size_t)plain.compressed_nbytes);
    status = cio_entry_decode(&plain, between, out, problem);
    if (between != out) {
        cio_free(between);
    }
    return status;
}

enum cio_status
cio_entry_decode(const struct cio_entry *entry, const uint8_t *data,
                 uint8_t *out, struct cio_zip_problem *problem)
{
    if (entry->decrypt) {
        return decode_encrypted(entry, data, out, problem);
    }
    if (entry->method == CIO_ZIP_STORED) {
        if (out != data && entry->nbytes > 0) {
            memcpy(out, data, (size_t)entry->nbytes);
        }
        return entry->verify
                   ? check_crc(entry, cio_crc32(0, out, (size_t)entry->nbytes),
                               problem)
                   : CIO_OK;
    }
    if (entry->compressed_nbytes == 0) { /* zipfile: empty, whatever it is */
        return check_crc(entry, 0, problem);
    }
    return inflate_entry(entry, data, out, problem);
}
