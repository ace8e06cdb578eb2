/* SPDX-License-Identifier: MIT
 * cio_directory.h - a ZIP archive's directory, kept as it is in the file, and
 * an index over it.
 *
 * Why      An object per member costs half a kilobyte and 4 µs; most are never
 *          asked for. So the raw directory stays, with 16 bytes per member and
 *          an open-addressed table of 8-byte slots over them (40 bytes per
 *          member at most, all together). Members are unpacked on demand.
 *          The verdicts are those of CPython 3.13.5's zipfile; what other
 *          profiles refuse is for cio_profile.h, from the facts kept here.
 * Owner    The opener owns nothing. The directory owns raw bytes, comment and
 *          index; unpacked members point into it.
 * Units    Bytes; offsets from the start of the file.
 * Errors   enum cio_status; CIO_ERR_DATA and CIO_ERR_LIMIT fill a
 *          cio_zip_problem.
 * Threads  Loading in one thread. A loaded directory is read-only, except for
 *          cio_directory_order, which its caller serializes.
 */
#ifndef CIO_DIRECTORY_H
#define CIO_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"

enum {
    CIO_ZIP_HEADER_NBYTES = 30,  /* local header without name and extra */
    CIO_ZIP_CENTRAL_NBYTES = 46, /* directory entry, likewise */
    CIO_ZIP_END_NBYTES = 22,
    CIO_ZIP_END64_NBYTES = 56,
    CIO_ZIP_LOCATOR_NBYTES = 20
};

enum { CIO_ZIP_STORED = 0, CIO_ZIP_DEFLATED = 8 };

enum cio_zip_flag {
    CIO_ZIP_FLAG_ENCRYPTED = 1 << 0,
    CIO_ZIP_FLAG_DESCRIPTOR = 1 << 3,
    CIO_ZIP_FLAG_PATCH = 1 << 5,
    CIO_ZIP_FLAG_STRONG = 1 << 6,
    CIO_ZIP_FLAG_UTF8 = 1 << 11
};

/* What is wrong. Each has its sentence in glue. */
enum cio_zip_rule {
    CIO_ZIP_RULE_NONE = 0,
    /* the archive */
    CIO_ZIP_RULE_NO_END,            /* not a ZIP file */
    CIO_ZIP_RULE_DISKS,             /* spans several disks */
    CIO_ZIP_RULE_DIRECTORY_OFFSET,  /* directory would begin before the file */
    CIO_ZIP_RULE_DIRECTORY_CUT,     /* ends inside an entry */
    CIO_ZIP_RULE_DIRECTORY_MAGIC,   /* no entry where one must be */
    CIO_ZIP_RULE_VERSION,           /* needs a newer reader: found */
    CIO_ZIP_RULE_EXTRA,             /* extra field longer than its room */
    CIO_ZIP_RULE_EXTRA_SIZE,        /* zip64 extra lacks the size */
    CIO_ZIP_RULE_EXTRA_COMPRESSED,  /* ... the compressed size */
    CIO_ZIP_RULE_EXTRA_OFFSET,      /* ... the header's offset */
    CIO_ZIP_RULE_NAME_UTF8,         /* name flagged UTF-8 isn't */
    CIO_ZIP_RULE_UNICODE_PATH,      /* 0x7075 extra cut */
    CIO_ZIP_RULE_UNICODE_PATH_UTF8, /* its name isn't UTF-8 */
    /* a member */
    CIO_ZIP_RULE_HEADER_CUT,   /* file ends inside the local header */
    CIO_ZIP_RULE_HEADER_MAGIC, /* no local header there */
    CIO_ZIP_RULE_HEADER_NAME,  /* its name differs from the directory's */
    CIO_ZIP_RULE_OVERLAP,      /* reaches into what lies behind it */
    CIO_ZIP_RULE_PATCH,        /* compressed patched data */
    CIO_ZIP_RULE_STRONG,       /* strong encryption */
    CIO_ZIP_RULE_ENCRYPTED,    /* needs a password */
    CIO_ZIP_RULE_PASSWORD,     /* the password is another one */
    CIO_ZIP_RULE_METHOD,       /* compressed by what C can't undo */
    CIO_ZIP_RULE_DATA_CUT,     /* file ends inside the data */
    CIO_ZIP_RULE_STREAM,       /* breaks DEFLATE's rules: text */
    CIO_ZIP_RULE_STREAM_CUT,   /* compressed bytes end before the stream */
    CIO_ZIP_RULE_SHORT,        /* fewer bytes than the directory says */
    CIO_ZIP_RULE_LONG,         /* more bytes than the directory says */
    CIO_ZIP_RULE_IMPOSSIBLE,   /* more than its compressed bytes can hold */
    CIO_ZIP_RULE_CRC,
    /* a bound that the caller set: LimitError */
    CIO_ZIP_RULE_LIMIT_DIRECTORY,
    CIO_ZIP_RULE_LIMIT_ENTRIES,
    CIO_ZIP_RULE_LIMIT_NAME,
    CIO_ZIP_RULE_LIMIT_ENTRY,
    CIO_ZIP_RULE_LIMIT_TOTAL,
    CIO_ZIP_RULE_LIMIT_RATIO,
    CIO_ZIP_RULE_PROFILE /* cio_profile.h: text is the rule's name */
};

struct cio_zip_problem {
    enum cio_zip_rule rule;
    uint32_t index;  /* of the member; UINT32_MAX: none */
    uint64_t offset; /* in the file */
    uint64_t expected, found;
    const char *text; /* static; NULL: none */
};

/* ------------------------------------------------------------ end records */

/* What the end of the file says, and where it says it. */
struct cio_zip_end {
    uint64_t file_nbytes;
    uint64_t end_off;      /* end record */
    uint64_t locator_off;  /* zip64 locator; UINT64_MAX: none */
    uint64_t end64_off;    /* zip64 end record; UINT64_MAX: none */
    uint64_t locator_said; /* where the locator puts it */
    uint64_t end64_nbytes; /* with its extensible data */
    uint64_t dir_off;      /* where the directory lies */
    uint64_t dir_nbytes;
    uint64_t dir_said;     /* where the end record puts it */
    uint64_t entries_said; /* on all disks */
    uint64_t entries_disk; /* on this disk */
    uint32_t disk, dir_disk, disks;
    uint16_t comment_said;   /* its length by the end record */
    uint32_t comment_nbytes; /* what there is of it */
    uint32_t ends_seen;      /* end record signatures in the tail */
};

struct cio_zip_bounds { /* UINT64_MAX: none */
    uint64_t dir_nbytes, entries, name_nbytes;
};

/* Finds the directory: step says which range it wants to see next. */
struct cio_zip_opener {
    struct cio_zip_end end; /* filled when step returns CIO_OK */
    struct cio_zip_bounds bounds;
    uint64_t want_off;
    size_t want_nbytes;
    bool whole_tail; /* set before init: look at all the tail (ends_seen) */
    int phase;       /* its own */
};
void cio_zip_opener_init(struct cio_zip_opener *opener, uint64_t file_nbytes,
                         const struct cio_zip_bounds *bounds);
/* `got`: the bytes of the range wanted (fewer only when the file is shorter
 * than it was). CIO_MORE: see want_off, want_nbytes. CIO_OK: end is known:
 * read its directory and init a cio_directory with it. The archive's comment
 * is copied to `comment` (room for 65,535) by then. */
enum cio_status cio_zip_opener_step(struct cio_zip_opener *opener,
                                    const uint8_t *got, size_t got_nbytes,
                                    uint8_t *comment,
                                    struct cio_zip_problem *problem);

/* -------------------------------------------------------------- directory */

struct cio_zip_member {      /* one per entry, in the directory's order */
    uint64_t header_off;     /* of the local header in the file */
    uint64_t entry_off : 48; /* of its entry in raw */
    uint64_t flags : 16;     /* enum cio_zip_member_flag */
};
enum cio_zip_member_flag {
    CIO_ZIP_MEMBER_RENAMED = 1,  /* its name isn't the raw one */
    CIO_ZIP_MEMBER_SHADOWED = 2, /* a later one has the same name */
    CIO_ZIP_MEMBER_NOWHERE = 4   /* header_off is where no file reaches */
};

struct cio_zip_slot;
struct cio_zip_alias;

struct cio_directory {
    struct cio_zip_end end;
    struct cio_zip_bounds bounds;
    uint8_t *raw; /* end.dir_nbytes bytes; fewer when the file was cut */
    size_t raw_nbytes;
    uint8_t *comment; /* end.comment_nbytes */
    struct cio_zip_member *members;
    uint32_t count, capacity;
    bool ascending;  /* header_off never falls, in the directory's order */
    bool foreign;    /* names without the UTF-8 flag come from the caller */
    bool duplicates; /* some member is shadowed */
    uint32_t *order; /* by header_off, then index; NULL until asked for */
    /* below: its own */
    struct cio_zip_slot *slots;
    uint32_t slot_mask, used;
    struct cio_zip_alias *aliases;
    size_t alias_count, alias_capacity;
    uint8_t *names; /* of the aliases */
    size_t names_nbytes, names_capacity;
    size_t walked; /* bytes of raw */
    uint64_t seed[4];
};

/* One entry, unpacked. Pointers go into the directory. */
struct cio_zip_info {
    uint32_t index;
    uint16_t flags, method, time, date;
    uint8_t create_version, create_system, extract_version, reserved;
    uint16_t disk, internal_attr;
    uint32_t external_attr, crc;
    uint64_t compressed_nbytes, nbytes;
    uint64_t header_said; /* as the entry (or its zip64 extra) says */
    uint64_t header_off;  /* in the file; valid unless NOWHERE */
    unsigned member_flags;
    const uint8_t *raw_name; /* as in the directory */
    const char *name;        /* UTF-8, as zipfile has it; not terminated */
    const uint8_t *extra, *comment;
    size_t raw_name_nbytes, name_nbytes, extra_nbytes, comment_nbytes;
};

/* Takes raw and comment over (both from cio_sys->malloc, or NULL when empty),
 * also on failure. foreign: names without the UTF-8 flag are the caller's to
 * decode, unless the walk marked them RENAMED: cio_directory_rename for each
 * whose UTF-8 isn't its raw name, then cio_directory_index. */
enum cio_status cio_directory_init(struct cio_directory *directory,
                                   const struct cio_zip_opener *opener,
                                   uint8_t *raw, size_t raw_nbytes,
                                   uint8_t *comment, bool foreign);
/* The next members, a few ms of work: CIO_MORE while there are more. */
enum cio_status cio_directory_walk(struct cio_directory *directory,
                                   struct cio_zip_problem *problem);
enum cio_status cio_directory_rename(struct cio_directory *directory,
                                     uint32_t index, const char *name,
                                     size_t nbytes);
enum cio_status cio_directory_index(struct cio_directory *directory);
void cio_directory_clear(struct cio_directory *directory);

void cio_directory_info(const struct cio_directory *directory, uint32_t index,
                        struct cio_zip_info *info);
/* The last member of that name; UINT32_MAX: none. */
uint32_t cio_directory_find(const struct cio_directory *directory,
                            const char *name, size_t nbytes);
/* Makes `order` where it is missing and the directory not ascending. */
enum cio_status cio_directory_order(struct cio_directory *directory);
/* Where the bytes behind a member's header begin to belong to another: the
 * next header in the file, or the directory. As zipfile: of several members
 * at one offset, all but the last get that offset. Order must have been made.
 */
uint64_t cio_directory_end_of(const struct cio_directory *directory,
                              uint32_t index);
/* The same for any offset: of the first header behind it. */
uint64_t cio_directory_end_behind(const struct cio_directory *directory,
                                  uint64_t header_off);

/* The keys of the names' hash, drawn once a process from the kernel. Tests
 * set them. */
void cio_directory_seed(const uint64_t seed[4]);

#endif
