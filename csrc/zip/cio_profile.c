/* SPDX-License-Identifier: MIT
 * cio_profile.c - the rules of safe and strict, and how members are checked.
 */
#include "zip/cio_profile.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "zip/cio_profile_header.h"

/* A local header's name and extra field may be this long beyond what the
 * directory lets one expect. */
#define REACH_NBYTES (2 * (uint64_t)65535)

/* In an end: the member of this place was checked and is right. */
#define ADMITTED ((uint64_t)1 << 63)

struct cio_profile {
    enum cio_profile_kind kind;
    const struct cio_directory *directory;
    uint32_t *positions; /* by index; NULL: the same */
    /* By position. End of a member's data, 0: its header was not seen. */
    _Atomic uint64_t *ends;
    /* The furthest end of all members up to here, where that lies behind this
     * one's offset; 0: not known. */
    _Atomic uint64_t *reaches;
    /* Going by the directory alone, no member reaches over the next: then only
     * those at most REACH_NBYTES in front can. */
    bool clean;
    atomic_bool surveyed; /* not clean: all headers were seen */
};

/* ----------------------------------------------------------------- places */

static uint32_t
index_at(const struct cio_directory *directory, uint32_t position)
{
    return directory->ascending ? position : directory->order[position];
}

static const struct cio_zip_member *
member_at(const struct cio_directory *directory, uint32_t position)
{
    return &directory->members[index_at(directory, position)];
}

/* The directory's compressed size: its entry's field, or what the zip64 extra
 * has in place of it. */
static uint64_t
compressed_at(const struct cio_directory *directory, uint32_t position)
{
    const struct cio_zip_member *member = member_at(directory, position);
    const uint32_t field =
        cio_load_le32(directory->raw + member->entry_off + 20);
    struct cio_zip_info info;

    if (field != UINT32_MAX) {
        return field;
    }
    cio_directory_info(directory, index_at(directory, position), &info);
    return info.compressed_nbytes;
}

static uint64_t
add_capped(uint64_t a, uint64_t b)
{
    return a > INT64_MAX - cio_min_u64(b, INT64_MAX) ? INT64_MAX : a + b;
}

/* Where the bytes behind a member begin to be somebody else's. */
static uint64_t
next_offset(const struct cio_directory *directory, uint32_t position)
{
    uint64_t next = directory->end.dir_off;

    if (position + 1 < directory->count) {
        next =
            cio_min_u64(next, member_at(directory, position + 1)->header_off);
    }
    return next;
}

static bool
is_clean(const struct cio_directory *directory)
{
    for (uint32_t i = 0; i + 1 < directory->count; i++) {
        const struct cio_zip_member *member = member_at(directory, i);

        if (add_capped(member->header_off + CIO_ZIP_HEADER_NBYTES,
                       compressed_at(directory, i))
            > member_at(directory, i + 1)->header_off) {
            return false;
        }
    }
    return true;
}

struct cio_profile *
cio_profile_new(enum cio_profile_kind kind,
                const struct cio_directory *directory)
{
    const size_t count = directory->count;
    struct cio_profile *profile = cio_sys->calloc(1, sizeof *profile);

    if (profile == NULL) {
        return NULL;
    }
    profile->kind = kind;
    profile->directory = directory;
    /* one more than count: calloc(0) may be NULL */
    profile->ends = cio_sys->calloc(count + 1, sizeof *profile->ends);
    profile->reaches = cio_sys->calloc(count + 1, sizeof *profile->reaches);
    if (!directory->ascending) {
        profile->positions =
            cio_sys->malloc((count + 1) * sizeof *profile->positions);
    }
    if (profile->ends == NULL || profile->reaches == NULL
        || (profile->positions == NULL && !directory->ascending)) {
        cio_profile_free(profile);
        return NULL;
    }
    if (!directory->ascending) {
        for (uint32_t i = 0; i < directory->count; i++) {
            profile->positions[directory->order[i]] = i;
        }
    }
    profile->clean = is_clean(directory);
    return profile;
}

void
cio_profile_free(struct cio_profile *profile)
{
    if (profile != NULL) {
        cio_free(profile->ends);
        cio_free(profile->reaches);
        cio_free(profile->positions);
        cio_free(profile);
    }
}

uint32_t
cio_profile_name_rules(enum cio_profile_kind kind,
                       const struct cio_directory *directory,
                       const struct cio_zip_info *info)
{
    uint32_t mask = CIO_PROFILE_SAFE_NAMES, rules = 0;

    if (kind == CIO_PROFILE_COMPAT) {
        return 0;
    }
    if (kind == CIO_PROFILE_STRICT) {
        mask |= CIO_NAME_CONTROL;
    }
    /* In an encoding of the caller's, a byte 0x5c can be half a letter: there
     * the decoded name counts, which is cut at a NUL. */
    if (directory->foreign && (info->flags & CIO_ZIP_FLAG_UTF8) == 0) {
        if (memchr(info->raw_name, 0, info->raw_name_nbytes) != NULL) {
            rules |= CIO_NAME_NUL;
        }
    } else {
        rules |= cio_name_scan(info->raw_name, info->raw_name_nbytes);
    }
    if ((info->member_flags & CIO_ZIP_MEMBER_RENAMED) != 0) {
        rules |= cio_name_scan((const uint8_t *)info->name, info->name_nbytes);
    }
    return rules & mask;
}

/* ----------------------------------------------------------------- checks */

enum phase { START, OWN_HEADER, FRONT, SURVEY, TAIL, END };

void
cio_profile_check_init(struct cio_profile_check *check,
                       struct cio_profile *profile, uint32_t index)
{
    check->profile = profile;
    check->rules = 0;
    check->want_nbytes = 0;
    check->phase = START;
    check->position =
        profile->positions == NULL ? index : profile->positions[index];
    if ((atomic_load_explicit(&profile->ends[check->position],
                              memory_order_relaxed)
         & ADMITTED)
        != 0) {
        check->phase = END;
        return;
    }
    cio_directory_info(profile->directory, index, &check->info);
}

static enum cio_status
want(struct cio_profile_check *check, int phase, uint64_t off, size_t nbytes)
{
    check->phase = phase;
    check->want_off = off;
    check->want_nbytes = nbytes;
    return CIO_MORE;
}

/* Notes the end of a member's data from its local header (NULL: there can't be
 * one); one without a header takes up no room, but can't be read neither. */
static uint64_t
note_end(struct cio_profile *profile, uint32_t position, const uint8_t *header,
         size_t nbytes)
{
    const struct cio_zip_member *member =
        member_at(profile->directory, position);
    /* an offset that no file reaches may have ADMITTED's bit */
    uint64_t end = cio_min_u64(member->header_off, INT64_MAX);

    if (header != NULL && nbytes >= CIO_ZIP_HEADER_NBYTES
        && memcmp(header, "PK\3\4", 4) == 0) {
        end =
            add_capped(end + CIO_ZIP_HEADER_NBYTES + cio_load_le16(header + 26)
                           + cio_load_le16(header + 28),
                       compressed_at(profile->directory, position));
    }
    /* 0 means unknown; nothing ends there */
    atomic_store_explicit(&profile->ends[position], cio_max_u64(end, 1),
                          memory_order_relaxed);
    return cio_max_u64(end, 1);
}

/* The end of a member's data; 0: its header has to be seen first. */
static uint64_t
known_end(struct cio_profile *profile, uint32_t position)
{
    if ((member_at(profile->directory, position)->flags
         & CIO_ZIP_MEMBER_NOWHERE)
        != 0) {
        return note_end(profile, position, NULL, 0);
    }
    return atomic_load_explicit(&profile->ends[position], memory_order_relaxed)
           & ~ADMITTED;
}

static enum cio_status
begin(struct cio_profile_check *check)
{
    const struct cio_profile *profile = check->profile;
    const struct cio_zip_info *info = &check->info;
    const bool strict = profile->kind == CIO_PROFILE_STRICT;

    check->rules =
        cio_profile_name_rules(profile->kind, profile->directory, info);
    if ((info->member_flags & CIO_ZIP_MEMBER_NOWHERE) != 0) {
        check->rules |= CIO_PROFILE_HEADER;
        check->phase = END;
        return CIO_OK;
    }
    return want(
        check, OWN_HEADER, info->header_off,
        CIO_ZIP_HEADER_NBYTES
            + (strict ? info->raw_name_nbytes + info->extra_nbytes + 32 : 0));
}

/* The next header in front whose end isn't known, or what comes after that. */
static enum cio_status
look_in_front(struct cio_profile_check *check)
{
    struct cio_profile *profile = check->profile;
    const uint64_t off = check->info.header_off;

    while (check->looking_at > 0) {
        const uint32_t j = check->looking_at - 1;
        const struct cio_zip_member *member = member_at(profile->directory, j);
        const uint64_t reach =
            atomic_load_explicit(&profile->reaches[j], memory_order_relaxed);
        const uint64_t end = known_end(profile, j);

        if (reach != 0) { /* says it for all before j, too */
            check->reach = cio_max_u64(check->reach, reach);
            break;
        }
        if (end == 0) {
            return want(check, FRONT, member->header_off,
                        CIO_ZIP_HEADER_NBYTES);
        }
        check->reach = cio_max_u64(check->reach, end);
        if (add_capped(member->header_off, REACH_NBYTES) <= off) {
            break;
        }
        check->looking_at = j;
    }
    return CIO_OK;
}

/* Members overlap by the directory's own word: then far ones may, too. All
 * headers are seen, once, and what reaches how far is known for each. */
static enum cio_status
survey(struct cio_profile_check *check)
{
    struct cio_profile *profile = check->profile;
    const uint32_t count = profile->directory->count;
    uint64_t reach = 1;

    while (check->looking_at < count) {
        if (known_end(profile, check->looking_at) == 0) {
            return want(
                check, SURVEY,
                member_at(profile->directory, check->looking_at)->header_off,
                CIO_ZIP_HEADER_NBYTES);
        }
        check->looking_at++;
    }
    for (uint32_t i = 0; i < count; i++) {
        reach = cio_max_u64(reach, known_end(profile, i));
        atomic_store_explicit(&profile->reaches[i], reach,
                              memory_order_relaxed);
    }
    atomic_store(&profile->surveyed, true);
    return CIO_OK;
}

/* What lies in front is known. */
static enum cio_status
judge_overlap(struct cio_profile_check *check)
{
    struct cio_profile *profile = check->profile;
    const struct cio_directory *directory = profile->directory;
    const uint32_t p = check->position;
    const uint64_t end = known_end(profile, p);
    const uint64_t next = next_offset(directory, p);

    if (!profile->clean && p > 0) {
        check->reach = atomic_load_explicit(&profile->reaches[p - 1],
                                            memory_order_relaxed);
    }
    if (check->reach > check->info.header_off || end > next
        || check->info.header_off >= directory->end.dir_off) {
        check->rules |= CIO_PROFILE_OVERLAP;
    }
    if (profile->clean) {
        atomic_store_explicit(&profile->reaches[p],
                              cio_max_u64(check->reach, end),
                              memory_order_relaxed);
    }
    check->phase = END;
    if (profile->kind != CIO_PROFILE_STRICT
        || (check->rules & (CIO_PROFILE_OVERLAP | CIO_PROFILE_HEADER)) != 0) {
        return CIO_OK;
    }
    if ((check->info.flags & CIO_ZIP_FLAG_DESCRIPTOR) == 0) {
        check->rules |= end < next ? CIO_PROFILE_GAP : 0u;
        return CIO_OK;
    }
    if (end == next) {
        check->rules |= CIO_PROFILE_DESCRIPTOR; /* no room for it */
        return CIO_OK;
    }
    return want(
        check, TAIL, end,
        (size_t)cio_min_u64(next - end, CIO_PROFILE_DESCRIPTOR_NBYTES));
}

/* After the member's own header, or one in front of it. */
static enum cio_status
go_on(struct cio_profile_check *check)
{
    if (check->profile->clean) {
        const enum cio_status status = look_in_front(check);

        return status == CIO_OK ? judge_overlap(check) : status;
    }
    if (!atomic_load(&check->profile->surveyed)) {
        const enum cio_status status = survey(check);

        if (status != CIO_OK) {
            return status;
        }
    }
    return judge_overlap(check);
}

static enum cio_status
see_own_header(struct cio_profile_check *check, const uint8_t *got,
               size_t got_nbytes)
{
    struct cio_profile *profile = check->profile;
    const struct cio_zip_info *info = &check->info;
    size_t nbytes;

    if (got_nbytes < CIO_ZIP_HEADER_NBYTES || memcmp(got, "PK\3\4", 4) != 0) {
        check->rules |= CIO_PROFILE_HEADER;
    } else if (profile->kind == CIO_PROFILE_STRICT) {
        nbytes = (size_t)CIO_ZIP_HEADER_NBYTES + cio_load_le16(got + 26)
                 + cio_load_le16(got + 28);
        if (got_nbytes < nbytes && check->want_nbytes < nbytes) {
            return want(check, OWN_HEADER, info->header_off, nbytes);
        }
        check->rules |= got_nbytes < nbytes
                            ? (uint32_t)CIO_PROFILE_HEADER
                            : cio_profile_header_rules(info, got);
    }
    (void)note_end(profile, check->position, got, got_nbytes);
    check->reach = 0;
    check->looking_at = profile->clean ? check->position : 0;
    return go_on(check);
}

enum cio_status
cio_profile_check_step(struct cio_profile_check *check, const uint8_t *got,
                       size_t got_nbytes)
{
    struct cio_profile *profile = check->profile;
    enum cio_status status = CIO_OK;

    switch ((enum phase)check->phase) {
    case START:
        status = begin(check);
        break;
    case OWN_HEADER:
        status = see_own_header(check, got, got_nbytes);
        break;
    case FRONT:
        (void)note_end(profile, check->looking_at - 1, got, got_nbytes);
        status = go_on(check);
        break;
    case SURVEY:
        (void)note_end(profile, check->looking_at, got, got_nbytes);
        status = go_on(check);
        break;
    case TAIL:
        check->rules |= cio_profile_descriptor_rules(
            &check->info, got, got_nbytes,
            next_offset(profile->directory, check->position)
                - check->want_off);
        check->phase = END;
        break;
    case END:
        return CIO_OK;
    }
    if (status == CIO_OK && check->rules == 0) {
        atomic_fetch_or_explicit(&profile->ends[check->position], ADMITTED,
                                 memory_order_relaxed);
    }
    return status;
}

/* A few bytes of the file; fewer where it ends. */
static ssize_t
read_range(int fd, uint8_t *data, size_t nbytes, uint64_t off)
{
    size_t got = 0;

    while (got < nbytes) {
        const ssize_t n =
            cio_sys->pread(fd, data + got, nbytes - got, (off_t)(off + got));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -1;
        }
        if (n == 0) {
            break;
        }
        got += (size_t)n;
    }
    return (ssize_t)got;
}

struct cio_done
cio_profile_admit(struct cio_profile *profile, int fd, uint32_t index,
                  struct cio_zip_problem *problem)
{
    uint8_t small[512];
    struct cio_buffer *large = NULL;
    struct cio_profile_check check;
    struct cio_done done = {CIO_OK, 0, 0};
    ssize_t got = 0;

    cio_profile_check_init(&check, profile, index);
    for (;;) {
        uint8_t *data = small;

        if (check.want_nbytes > sizeof small) {
            if (large == NULL) {
                large = cio_buffer_take(CIO_PROFILE_WANT_NBYTES);
            }
            if (large == NULL) {
                return cio_done_of(CIO_ERR_NOMEM, 0);
            }
            data = large->data;
        }
        if (check.want_nbytes > 0) {
            got = read_range(fd, data, check.want_nbytes, check.want_off);
            if (got < 0) {
                done = cio_done_sys(errno, 0);
                break;
            }
        }
        if (cio_profile_check_step(&check, data, (size_t)got) == CIO_OK) {
            break;
        }
    }
    if (large != NULL) {
        cio_buffer_give(large);
    }
    if (done.status == CIO_OK && check.rules != 0) {
        *problem = (struct cio_zip_problem){
            .rule = CIO_ZIP_RULE_PROFILE,
            .index = index,
            .offset = check.info.header_off,
            .text = cio_profile_rule_text(check.rules)};
        done.status = CIO_ERR_DATA;
    }
    return done;
}
