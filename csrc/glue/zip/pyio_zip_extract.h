/* SPDX-License-Identifier: MIT
 * pyio_zip_extract.h - an extraction: what is asked for, and the batch.
 *
 * Owner    The extraction, all that isn't marked as borrowed.
 * Errors   -1 or NULL with an exception set.
 * Threads  With the GIL; C threads see items and the core alone.
 */
#ifndef PYIO_ZIP_EXTRACT_H
#define PYIO_ZIP_EXTRACT_H

#include "glue/zip/pyio_zip_profile.h"
#include "zip/cio_extract.h"

/* Two bits of a hash table per member of a batch. */
#define SEEN_SLOTS (4 * (size_t)CIO_EXTRACT_BATCH)

/* A member that was asked for. */
struct wanted {
    struct pyio_member member;
    PyObject *what; /* borrowed from the caller's sequence */
};

struct extraction {
    struct pyio_state *st;
    struct pyio_archive *archive;
    struct cio_profile *profile;
    PyObject *target; /* borrowed str */
    int target_fd;
    bool preserve, symlinks;
    bool has_keys;
    struct cio_zipcrypto keys;
    /* what is asked for; wanted NULL: every member that isn't shadowed */
    struct wanted *wanted;
    uint32_t count, position;
    uint64_t total;
    unsigned threads;
    PyObject *leftovers, *folders; /* owned lists */
    PyObject *failure; /* owned; raised behind the leftovers; NULL: none */
    struct pyio_slices slices;
    struct cio_extract core;
    /* the batch */
    struct cio_extract_item items[CIO_EXTRACT_BATCH];
    PyObject *names[CIO_EXTRACT_BATCH]; /* owned; NULL: by index */
    size_t offsets[CIO_EXTRACT_BATCH];  /* of paths in text */
    size_t item_count;
    char *text;
    size_t text_nbytes, text_capacity;
    uint16_t seen[SEEN_SLOTS]; /* number of an item, + 1 */
};

/* The next member's entry; false: none is left. Its name is in *name (new), or
 * NULL where it is the directory's, in info. */
bool pyio_extraction_next(struct extraction *x, struct cio_entry *entry,
                          uint32_t *index, struct cio_zip_info *info,
                          PyObject **name, PyObject **what);

enum filled { FILLED, FULL, NONE_LEFT, FAILED };

/* Takes members into an empty batch; FULL: the next one has to wait for it.
 * FAILED: an exception is set, about the one behind the batch. */
enum filled pyio_extraction_fill(struct extraction *x);

#endif
