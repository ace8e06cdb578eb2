/* SPDX-License-Identifier: MIT
 * cio_profile.h - what a profile refuses beyond zipfile's own verdicts.
 *
 * Why      Two programs that read one archive may see two contents: that is
 *          how scanners are passed by. `safe` refuses what harms (names that
 *          lead out, bytes that count twice), `strict` all that can be read in
 *          two ways. One place knows the rules and their names.
 *          Whether members share bytes can only be told from the local
 *          headers, whose extra fields have lengths of their own: so the
 *          headers in front of a member are read, as far back as one could
 *          reach over it, each once.
 * Owner    A profile borrows its directory, which must have its order.
 * Units    Bytes; positions count members by their offset in the file.
 * Errors   Rules come as a set of bits, 0: nothing to refuse.
 * Threads  Making one: alone. Checks: any number, also of one member.
 */
#ifndef CIO_PROFILE_H
#define CIO_PROFILE_H

#include <stdint.h>

#include "base/cio_status.h"
#include "zip/cio_directory.h"
#include "zip/cio_names.h"

enum cio_profile_kind {
    CIO_PROFILE_COMPAT,
    CIO_PROFILE_SAFE,
    CIO_PROFILE_STRICT
};

/* The lowest bits are enum cio_name_rule. */
enum cio_profile_rule {
    /* a member */
    CIO_PROFILE_OVERLAP = 1 << 8, /* shares a byte with another, or with the
                                     directory */
    CIO_PROFILE_HEADER = 1 << 9,  /* no local header */
    CIO_PROFILE_HEADER_NAME = 1 << 10, /* local header and directory differ */
    CIO_PROFILE_HEADER_FLAGS = 1 << 11,
    CIO_PROFILE_HEADER_METHOD = 1 << 12,
    CIO_PROFILE_HEADER_TIME = 1 << 13,
    CIO_PROFILE_HEADER_CRC = 1 << 14,
    CIO_PROFILE_HEADER_SIZE = 1 << 15,
    CIO_PROFILE_HEADER_EXTRA = 1 << 16, /* broken, or another Unicode path */
    CIO_PROFILE_DESCRIPTOR = 1 << 17,   /* says other than the directory */
    CIO_PROFILE_GAP = 1 << 18,          /* bytes behind it are nobody's */
    /* the archive */
    CIO_PROFILE_BEFORE = 1 << 19, /* bytes before the first member */
    CIO_PROFILE_BEHIND = 1 << 20, /* bytes behind the end record's comment */
    CIO_PROFILE_SECOND_END = 1 << 21,
    CIO_PROFILE_COUNT = 1 << 22,
    CIO_PROFILE_OFFSET = 1 << 23, /* of the directory */
    CIO_PROFILE_LOCATOR = 1 << 24,
    CIO_PROFILE_ZIP64 = 1 << 25, /* plain and zip64 end record differ */
    CIO_PROFILE_DISK = 1 << 26,
    CIO_PROFILE_COMMENT = 1 << 27, /* shorter than its length */
    CIO_PROFILE_DUPLICATE = 1 << 28,
    CIO_PROFILE_DIRECTORY = 1 << 29 /* its size */
};

/* Names that lead out of a folder, or somewhere else on another system. */
#define CIO_PROFILE_SAFE_NAMES                                                \
    (CIO_NAME_TRAVERSAL | CIO_NAME_ABSOLUTE | CIO_NAME_DRIVE | CIO_NAME_UNC   \
     | CIO_NAME_BACKSLASH | CIO_NAME_NUL)

/* The word for the lowest rule in a set that isn't empty. */
const char *cio_profile_rule_text(uint32_t rules);

/* What strict refuses of the archive as a whole. end_record: the bytes of the
 * plain one. */
uint32_t
cio_profile_archive_rules(const struct cio_directory *directory,
                          const uint8_t end_record[CIO_ZIP_END_NBYTES]);

struct cio_profile;

/* NULL: out of memory. kind: SAFE or STRICT. */
struct cio_profile *cio_profile_new(enum cio_profile_kind kind,
                                    const struct cio_directory *directory);
void cio_profile_free(struct cio_profile *profile); /* NULL is fine */

/* A member that is about to be read. Step says which range of the file it
 * wants to see; got_nbytes may be less where the file ends. CIO_MORE: see
 * want_off, want_nbytes (never more than CIO_PROFILE_WANT_NBYTES). CIO_OK:
 * rules. */
enum { CIO_PROFILE_WANT_NBYTES = 30 + 2 * 65535 };

struct cio_profile_check {
    struct cio_profile *profile;
    struct cio_zip_info info;
    uint32_t rules;
    uint64_t want_off;
    size_t want_nbytes;
    /* below: its own */
    int phase;
    uint32_t position, looking_at;
    uint64_t data_off, reach;
};
void cio_profile_check_init(struct cio_profile_check *check,
                            struct cio_profile *profile, uint32_t index);
enum cio_status cio_profile_check_step(struct cio_profile_check *check,
                                       const uint8_t *got, size_t got_nbytes);

/* The same over a descriptor. Nothing is read for a member that was admitted
 * before. CIO_ERR_DATA: refused, problem says by which rule. */
struct cio_done cio_profile_admit(struct cio_profile *profile, int fd,
                                  uint32_t index,
                                  struct cio_zip_problem *problem);

/* The rules that a member's name breaks, of those that `kind` refuses. */
uint32_t cio_profile_name_rules(enum cio_profile_kind kind,
                                const struct cio_directory *directory,
                                const struct cio_zip_info *info);

#endif
