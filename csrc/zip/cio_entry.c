/* SPDX-License-Identifier: MIT
 * cio_entry.c - a member's header, and members read as a whole.
 */
#include "zip/cio_entry.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"
#include "zip/cio_charset.h"

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

static enum cio_status
bad(const struct cio_entry *entry, struct cio_zip_problem *problem,
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
        return bad(entry, problem, CIO_ZIP_RULE_PATCH, 0, entry->flags);
    }
    if (entry->flags & CIO_ZIP_FLAG_STRONG) {
        return bad(entry, problem, CIO_ZIP_RULE_STRONG, 0, entry->flags);
    }
    if ((entry->flags & CIO_ZIP_FLAG_ENCRYPTED) && !entry->decrypt) {
        return bad(entry, problem, CIO_ZIP_RULE_ENCRYPTED, 0, entry->flags);
    }
    return CIO_OK;
}

enum cio_status
cio_entry_check(const struct cio_entry *entry, struct cio_zip_problem *problem)
{
    uint64_t most, packed = entry->compressed_nbytes;

    if (entry->nowhere) {
        return bad(entry, problem, CIO_ZIP_RULE_HEADER_CUT,
                   CIO_ZIP_HEADER_NBYTES, 0);
    }
    if (check_flags(entry, problem) != CIO_OK) {
        return CIO_ERR_DATA;
    }
    if (entry->decrypt) {
        if (packed < CIO_ZIPCRYPTO_HEADER_NBYTES) {
            return bad(entry, problem, CIO_ZIP_RULE_STREAM_CUT,
                       CIO_ZIPCRYPTO_HEADER_NBYTES, packed);
        }
        packed -= CIO_ZIPCRYPTO_HEADER_NBYTES;
    }
    if (entry->method == CIO_ZIP_STORED) {
        most = packed;
        if (entry->nbytes < most) {
            return bad(entry, problem, CIO_ZIP_RULE_LONG, entry->nbytes, most);
        }
    } else if (entry->method == CIO_ZIP_DEFLATED) {
        most = UINT64_MAX;
        (void)cio_mul_u64(packed, CIO_DEFLATE_MAX_RATIO, &most);
    } else {
        return bad(entry, problem, CIO_ZIP_RULE_METHOD, 0, entry->method);
    }
    if (entry->nbytes > most) {
        return bad(entry, problem, CIO_ZIP_RULE_IMPOSSIBLE, most,
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

/* ----------------------------------------------------------------- header */

static uint64_t
header_guess(const struct cio_entry *entry)
{
    return CIO_ZIP_HEADER_NBYTES + entry->raw_name_nbytes + entry->extra_nbytes
           + CIO_ZIP_EXTRA_SLACK;
}

static uint64_t
cap_to_end(const struct cio_entry *entry, uint64_t nbytes)
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

    (void)cio_add_u64(header_guess(entry), entry->compressed_nbytes, &nbytes);
    return cap_to_end(entry, nbytes);
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
        return bad(entry, problem, CIO_ZIP_RULE_HEADER_MAGIC, HEADER_MAGIC,
                   cio_load_le32(got));
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
        return bad(entry, problem, CIO_ZIP_RULE_HEADER_NAME, 0, 0);
    }
    /* Of members at one offset all but the last have that as their end;
     * zipfile since 3.13.1 only warns of those. */
    if (entry->end_off != entry->header_off
        && (!cio_add_u64(data_off, entry->compressed_nbytes, &data_end)
            || data_end > entry->end_off)) {
        return bad(entry, problem, CIO_ZIP_RULE_OVERLAP, entry->end_off,
                   data_off + entry->compressed_nbytes);
    }
    if (entry->decrypt) {
        const size_t start = (size_t)(data_off - entry->header_off);

        *need_nbytes = start + CIO_ZIPCRYPTO_HEADER_NBYTES;
        if (got_nbytes < *need_nbytes) {
            return CIO_MORE;
        }
        if (!is_password(entry, got + start)) {
            return bad(entry, problem, CIO_ZIP_RULE_PASSWORD, 0, 0);
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
        return bad(entry, problem, CIO_ZIP_RULE_CRC, entry->crc, crc);
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
    (void)bad(entry, problem, rule, entry->nbytes, whole->out_used);
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
        .checked = true,
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

/* ------------------------------------------------------------------- read */

/* A window of the file from header_off on, in pooled or own memory. */
struct window {
    struct cio_buffer *pooled;
    uint8_t *own;
    uint8_t *data;
    size_t nbytes, capacity;
};

static void
drop(struct window *w)
{
    cio_buffer_give(w->pooled);
    cio_free(w->own);
    memset(w, 0, sizeof *w);
}

/* Room for nbytes; what is there is kept. */
static enum cio_status
make_room(struct window *w, size_t nbytes)
{
    struct window wider = {0};

    if (nbytes <= w->capacity) {
        return CIO_OK;
    }
    if (nbytes <= CIO_CHUNK_NBYTES) {
        wider.pooled = cio_buffer_take(nbytes);
        if (wider.pooled == NULL) {
            return CIO_ERR_NOMEM;
        }
        wider.data = wider.pooled->data;
        wider.capacity = wider.pooled->nbytes;
    } else {
        wider.own = cio_sys->malloc(nbytes);
        if (wider.own == NULL) {
            return CIO_ERR_NOMEM;
        }
        wider.data = wider.own;
        wider.capacity = nbytes;
    }
    if (w->nbytes > 0) {
        memcpy(wider.data, w->data, w->nbytes);
    }
    wider.nbytes = w->nbytes;
    drop(w);
    *w = wider;
    return CIO_OK;
}

/* Reads until nbytes are there or the file ends; nbytes of the result counts
 * what came. With nowait CIO_MORE as cio_entry_read says. */
static struct cio_done
read_at(int fd, uint8_t *data, size_t nbytes, uint64_t off, bool nowait,
        bool *refused)
{
    size_t have = 0;

    while (have < nbytes) {
        const size_t want = cio_min_size(nbytes - have, CIO_SLICE_NBYTES);
        const ssize_t got =
            nowait
                ? cio_sys->pread_nowait(fd, data + have, want,
                                        (off_t)(off + have))
                : cio_sys->pread(fd, data + have, want, (off_t)(off + have));

        if (got == 0) {
            break;
        }
        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        if (!nowait) {
            return cio_done_sys(errno, have);
        }
        if (errno != EAGAIN) { /* EOPNOTSUPP (tmpfs), ENOSYS */
            *refused = true;
        }
        return cio_done_of(CIO_MORE, have);
    }
    return cio_done_of(have < nbytes ? CIO_EOF : CIO_OK, have);
}

struct source {
    int fd;
    bool nowait;
    bool *refused;
};

/* The window grows to nbytes. CIO_EOF: the file ended first. */
static struct cio_done
fill(struct window *w, size_t nbytes, const struct cio_entry *entry,
     const struct source *source)
{
    const enum cio_status status = make_room(w, nbytes);
    struct cio_done done;

    if (status != CIO_OK) {
        return cio_done_of(status, 0);
    }
    if (w->nbytes >= nbytes) {
        return cio_done_of(CIO_OK, 0);
    }
    done = read_at(source->fd, w->data + w->nbytes, nbytes - w->nbytes,
                   entry->header_off + w->nbytes, source->nowait,
                   source->refused);
    w->nbytes += (size_t)done.nbytes;
    done.nbytes = 0;
    return done;
}

/* Reads at least the header, `nbytes` when that is more. */
static struct cio_done
read_header(struct window *w, size_t nbytes, struct cio_entry *entry,
            const struct source *source, struct cio_zip_problem *problem)
{
    size_t need = nbytes;
    enum cio_status status;

    do {
        const struct cio_done done = fill(w, need, entry, source);

        if (done.status != CIO_OK && done.status != CIO_EOF) {
            return done;
        }
        status = cio_entry_header(entry, w->data, w->nbytes, &need, problem);
        if (status == CIO_MORE && done.status == CIO_EOF) {
            status =
                bad(entry, problem, CIO_ZIP_RULE_HEADER_CUT, need, w->nbytes);
        }
    } while (status == CIO_MORE);
    return cio_done_of(status, 0);
}

static struct cio_done
cut(const struct cio_entry *entry, struct cio_zip_problem *problem,
    uint64_t found)
{
    (void)bad(entry, problem, CIO_ZIP_RULE_DATA_CUT, entry->compressed_nbytes,
              found);
    return cio_done_of(CIO_ERR_DATA, 0);
}

static struct cio_done
read_together(struct window *w, struct cio_entry *entry, uint8_t *out,
              const struct source *source, struct cio_zip_problem *problem)
{
    struct cio_done done = read_header(w, (size_t)cio_entry_window(entry),
                                       entry, source, problem);
    uint64_t start;
    enum cio_status status;

    if (done.status != CIO_OK) {
        return done;
    }
    start = entry->data_off - entry->header_off;
    done = fill(w, (size_t)(start + entry->compressed_nbytes), entry, source);
    if (done.status == CIO_EOF) {
        return cut(entry, problem, w->nbytes > start ? w->nbytes - start : 0);
    }
    if (done.status != CIO_OK) {
        return done;
    }
    status = cio_entry_decode(entry, w->data + start, out, problem);
    return cio_done_of(status, status == CIO_OK ? entry->nbytes : 0);
}

/* A stored member of size: its data never passes through a buffer. */
static struct cio_done
read_apart(struct window *w, struct cio_entry *entry, uint8_t *out,
           const struct source *source, struct cio_zip_problem *problem)
{
    struct cio_done done;
    enum cio_status status;

    if (entry->data_off == 0) {
        done = read_header(w, (size_t)cap_to_end(entry, header_guess(entry)),
                           entry, source, problem);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    done = read_at(source->fd, out, (size_t)entry->nbytes, entry->data_off,
                   source->nowait, source->refused);
    if (done.status == CIO_EOF) {
        return cut(entry, problem, done.nbytes);
    }
    if (done.status != CIO_OK) {
        done.nbytes = 0;
        return done;
    }
    status = cio_entry_decode(entry, out, out, problem);
    return cio_done_of(status, status == CIO_OK ? entry->nbytes : 0);
}

struct cio_done
cio_entry_read(struct cio_entry *entry, int fd, uint8_t *out, bool nowait,
               bool *refused, struct cio_zip_problem *problem)
{
    const struct source source = {fd, nowait, refused};
    const uint64_t header_seen = entry->data_off;
    struct window w = {0};
    struct cio_done done;

    if (cio_entry_is_plain(entry) && entry->nbytes > CIO_ZIP_COPY_NBYTES) {
        done = read_apart(&w, entry, out, &source, problem);
    } else {
        done = read_together(&w, entry, out, &source, problem);
    }
    if (done.status == CIO_MORE) {
        entry->data_off = header_seen;
    }
    drop(&w);
    return done;
}

struct cio_done
cio_entry_locate(struct cio_entry *entry, int fd, bool nowait, bool *refused,
                 struct cio_zip_problem *problem)
{
    const struct source source = {fd, nowait, refused};
    struct window w = {0};
    struct cio_done done;

    done = read_header(&w, (size_t)cap_to_end(entry, header_guess(entry)),
                       entry, &source, problem);
    drop(&w);
    return done;
}
