/* SPDX-License-Identifier: MIT
 * cio_zip_end.c - finds a ZIP archive's end records, and by them its
 * directory.
 *
 * A step looks at one range of the file and names the next one it wants: the
 * last few KiB first, which hold all that most archives have there; the last
 * 64 KiB where a comment may hide the record; the zip64 record where it is
 * neither in front of its locator nor in that range.
 */
#include "zip/cio_directory.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"

enum phase { PHASE_TAIL, PHASE_COMMENT, PHASE_END64 };

#define END_MAGIC 0x06054b50u
#define END64_MAGIC 0x06064b50u
#define LOCATOR_MAGIC 0x07064b50u
#define NONE UINT64_MAX

/* Where zipfile looks for the record, and what may stand in front of it. */
#define TAIL_MAX ((64 * CIO_KIB) + CIO_ZIP_END_NBYTES)
#define IN_FRONT (CIO_ZIP_LOCATOR_NBYTES + CIO_ZIP_END64_NBYTES)

/* A range of the file that is in memory. */
struct window {
    const uint8_t *data;
    uint64_t off;
    size_t nbytes;
};

static const uint8_t *
look(const struct window *w, uint64_t off, size_t nbytes)
{
    if (off < w->off || off - w->off > w->nbytes
        || w->nbytes - (size_t)(off - w->off) < nbytes) {
        return NULL;
    }
    return w->data + (off - w->off);
}

static enum cio_status
fail(struct cio_zip_problem *problem, enum cio_zip_rule rule, uint64_t off)
{
    *problem = (struct cio_zip_problem){
        .rule = rule, .index = UINT32_MAX, .offset = off};
    return CIO_ERR_DATA;
}

static void
want(struct cio_zip_opener *opener, enum phase phase, uint64_t off,
     uint64_t nbytes)
{
    opener->phase = (int)phase;
    opener->want_off = off;
    opener->want_nbytes = (size_t)nbytes;
}

void
cio_zip_opener_init(struct cio_zip_opener *opener, uint64_t file_nbytes,
                    const struct cio_zip_bounds *bounds)
{
    const uint64_t nbytes =
        cio_min_u64(file_nbytes, opener->whole_tail ? TAIL_MAX + IN_FRONT
                                                    : CIO_ZIP_TAIL_NBYTES);
    const bool whole_tail = opener->whole_tail;

    memset(opener, 0, sizeof *opener);
    opener->whole_tail = whole_tail;
    opener->bounds = *bounds;
    opener->end.file_nbytes = file_nbytes;
    want(opener, whole_tail ? PHASE_COMMENT : PHASE_TAIL, file_nbytes - nbytes,
         nbytes);
}

static void
want_all_of_tail(struct cio_zip_opener *opener)
{
    const uint64_t file_nbytes = opener->end.file_nbytes;
    const uint64_t nbytes = cio_min_u64(file_nbytes, TAIL_MAX + IN_FRONT);

    want(opener, PHASE_COMMENT, file_nbytes - nbytes, nbytes);
}

static void
read_end(struct cio_zip_end *end, const uint8_t *p, uint64_t off)
{
    end->end_off = off;
    end->locator_off = NONE;
    end->end64_off = NONE;
    end->disk = cio_load_le16(p + 4);
    end->dir_disk = cio_load_le16(p + 6);
    end->entries_disk = cio_load_le16(p + 8);
    end->entries_said = cio_load_le16(p + 10);
    end->dir_nbytes = cio_load_le32(p + 12);
    end->dir_said = cio_load_le32(p + 16);
    end->comment_said = cio_load_le16(p + 20);
    end->comment_nbytes = 0;
}

static void
read_end64(struct cio_zip_end *end, const uint8_t *p, uint64_t off)
{
    const uint64_t size = cio_load_le64(p + 4);

    end->end64_off = off;
    end->end64_nbytes = size > UINT64_MAX - 12 ? UINT64_MAX : size + 12;
    end->disk = cio_load_le32(p + 16);
    end->dir_disk = cio_load_le32(p + 20);
    end->entries_disk = cio_load_le64(p + 24);
    end->entries_said = cio_load_le64(p + 32);
    end->dir_nbytes = cio_load_le64(p + 40);
    end->dir_said = cio_load_le64(p + 48);
}

static bool
is_end64(const struct window *w, uint64_t off, uint64_t locator_off,
         bool fits_exactly)
{
    const uint8_t *const p = look(w, off, CIO_ZIP_END64_NBYTES);

    return p != NULL && cio_load_le32(p) == END64_MAGIC
           && (!fits_exactly
               || (locator_off - off >= CIO_ZIP_END64_NBYTES
                   && cio_load_le64(p + 4) == locator_off - off - 12));
}

/* The record with extensible data behind a prefix: the locator is off by the
 * prefix, but the record's own size leads up to the locator. */
static uint64_t
search_end64(const struct window *w, uint64_t locator_off)
{
    uint64_t off = locator_off - CIO_ZIP_END64_NBYTES;

    for (; off >= w->off && off <= locator_off; off--) {
        if (is_end64(w, off, locator_off, true)) {
            return off;
        }
        if (off == 0) {
            break;
        }
    }
    return NONE;
}

static enum cio_status
finish(struct cio_zip_opener *opener, struct cio_zip_problem *problem)
{
    struct cio_zip_end *const end = &opener->end;
    const uint64_t behind =
        end->end64_off != NONE ? end->end64_off : end->end_off;

    if (end->dir_nbytes > behind) {
        return fail(problem, CIO_ZIP_RULE_DIRECTORY_OFFSET, end->end_off);
    }
    /* The directory ends where the record begins: what it says about its
     * offset only tells how much lies before the archive. */
    end->dir_off = behind - end->dir_nbytes;
    if (end->dir_nbytes > opener->bounds.dir_nbytes) {
        (void)fail(problem, CIO_ZIP_RULE_LIMIT_DIRECTORY, end->end_off);
        problem->expected = opener->bounds.dir_nbytes;
        problem->found = end->dir_nbytes;
        return CIO_ERR_LIMIT;
    }
    return CIO_OK;
}

/* The end record is read; is it followed up by a zip64 one? Mirrors zipfile,
 * which looks right in front of the locator, then takes the format's word. */
static enum cio_status
follow_locator(struct cio_zip_opener *opener, const struct window *w,
               struct cio_zip_problem *problem)
{
    struct cio_zip_end *const end = &opener->end;
    const uint64_t off = end->end_off - CIO_ZIP_LOCATOR_NBYTES;
    const uint8_t *p;
    uint64_t found = NONE;

    if (end->end_off < CIO_ZIP_LOCATOR_NBYTES) {
        return finish(opener, problem);
    }
    p = look(w, off, CIO_ZIP_LOCATOR_NBYTES);
    if (p == NULL || cio_load_le32(p) != LOCATOR_MAGIC) {
        return finish(opener, problem);
    }
    end->locator_off = off;
    end->locator_said = cio_load_le64(p + 8);
    end->disks = cio_load_le32(p + 16);
    if (cio_load_le32(p + 4) != 0 || end->disks > 1) {
        return fail(problem, CIO_ZIP_RULE_DISKS, off);
    }
    if (off >= CIO_ZIP_END64_NBYTES
        && is_end64(w, off - CIO_ZIP_END64_NBYTES, off, false)) {
        found = off - CIO_ZIP_END64_NBYTES;
    } else if (end->locator_said < off
               && is_end64(w, end->locator_said, off, false)) {
        found = end->locator_said;
    } else if (off >= CIO_ZIP_END64_NBYTES) {
        found = search_end64(w, off);
    }
    if (found != NONE) {
        read_end64(end, look(w, found, CIO_ZIP_END64_NBYTES), found);
        return finish(opener, problem);
    }
    if (opener->phase == PHASE_TAIL && w->off > 0) {
        want_all_of_tail(opener);
        return CIO_MORE;
    }
    if (end->locator_said < w->off && off >= CIO_ZIP_END64_NBYTES
        && end->locator_said <= off - CIO_ZIP_END64_NBYTES) {
        want(opener, PHASE_END64, end->locator_said, CIO_ZIP_END64_NBYTES);
        return CIO_MORE;
    }
    return finish(opener, problem);
}

static enum cio_status
found_end(struct cio_zip_opener *opener, const struct window *w, uint64_t off,
          uint8_t *comment, struct cio_zip_problem *problem)
{
    struct cio_zip_end *const end = &opener->end;
    const uint64_t behind = off + CIO_ZIP_END_NBYTES;

    read_end(end, look(w, off, CIO_ZIP_END_NBYTES), off);
    end->comment_nbytes =
        (uint32_t)cio_min_u64(end->comment_said, w->off + w->nbytes - behind);
    if (end->comment_nbytes > 0) {
        memcpy(comment, look(w, behind, end->comment_nbytes),
               end->comment_nbytes);
    }
    return follow_locator(opener, w, problem);
}

static enum cio_status
step_tail(struct cio_zip_opener *opener, const struct window *w,
          uint8_t *comment, struct cio_zip_problem *problem)
{
    const uint64_t file_nbytes = opener->end.file_nbytes;
    const uint8_t *p = NULL;

    if (file_nbytes >= CIO_ZIP_END_NBYTES) {
        p = look(w, file_nbytes - CIO_ZIP_END_NBYTES, CIO_ZIP_END_NBYTES);
    }
    if (p != NULL && cio_load_le32(p) == END_MAGIC
        && cio_load_le16(p + 20) == 0) {
        opener->end.ends_seen = 1;
        return found_end(opener, w, file_nbytes - CIO_ZIP_END_NBYTES, comment,
                         problem);
    }
    want_all_of_tail(opener);
    return CIO_MORE;
}

/* Counts the signatures in the tail, and returns the last one's place. */
static uint64_t
search_end(const struct window *w, uint64_t from, uint32_t *seen)
{
    const uint8_t *const stop = w->data + w->nbytes;
    const uint8_t *p = look(w, cio_max_u64(from, w->off), 0);
    uint64_t last = NONE;

    while (p != NULL && stop - p >= 4
           && (p = memchr(p, 'P', (size_t)(stop - p - 3))) != NULL) {
        if (cio_load_le32(p) == END_MAGIC) {
            last = w->off + (uint64_t)(p - w->data);
            ++*seen;
        }
        p++;
    }
    return last;
}

static enum cio_status
step_comment(struct cio_zip_opener *opener, const struct window *w,
             uint8_t *comment, struct cio_zip_problem *problem)
{
    const uint64_t file_nbytes = opener->end.file_nbytes;
    const uint64_t from = file_nbytes > TAIL_MAX ? file_nbytes - TAIL_MAX : 0;
    const uint64_t last = search_end(w, from, &opener->end.ends_seen);
    uint64_t off = last;
    const uint8_t *p;

    /* A record without comment at the very end is it, whatever follows its
     * first four bytes. */
    p = file_nbytes < CIO_ZIP_END_NBYTES
            ? NULL
            : look(w, file_nbytes - CIO_ZIP_END_NBYTES, CIO_ZIP_END_NBYTES);
    if (p != NULL && cio_load_le32(p) == END_MAGIC
        && cio_load_le16(p + 20) == 0) {
        off = file_nbytes - CIO_ZIP_END_NBYTES;
    }
    if (off == NONE || look(w, off, CIO_ZIP_END_NBYTES) == NULL) {
        return fail(problem, CIO_ZIP_RULE_NO_END, file_nbytes);
    }
    return found_end(opener, w, off, comment, problem);
}

enum cio_status
cio_zip_opener_step(struct cio_zip_opener *opener, const uint8_t *got,
                    size_t got_nbytes, uint8_t *comment,
                    struct cio_zip_problem *problem)
{
    const struct window w = {got, opener->want_off, got_nbytes};

    switch ((enum phase)opener->phase) {
    case PHASE_TAIL:
        return step_tail(opener, &w, comment, problem);
    case PHASE_COMMENT:
        return step_comment(opener, &w, comment, problem);
    case PHASE_END64:
        if (is_end64(&w, opener->want_off, opener->end.locator_off, false)) {
            read_end64(&opener->end, got, opener->want_off);
        }
        return finish(opener, problem);
    }
    return fail(problem, CIO_ZIP_RULE_NO_END, 0);
}
