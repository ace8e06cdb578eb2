/* SPDX-License-Identifier: MIT
 * cio_extract.h - many members into files below a folder, by several threads.
 *
 * Why      A file costs an open, a write and a close; what else there is per
 *          member has to be small beside them. Workers claim runs of members;
 *          each has a lane with open folders and buffers of its own. A large
 *          member is one lane's work, a slice at each step, so that the thread
 *          that waits can look at signals.
 * Owner    Items, paths and descriptors are the caller's until
 *          cio_extract_end, which removes what was only half written.
 * Units    Bytes.
 * Errors   Each item has its outcome. The first one, in the order of items,
 *          that failed stops what comes behind it.
 * Threads  step runs in many threads at once, between init and cio_job_join.
 */
#ifndef CIO_EXTRACT_H
#define CIO_EXTRACT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_limits.h"
#include "base/cio_workers.h"
#include "zip/cio_entry.h"
#include "zip/cio_profile.h"
#include "zip/cio_tree.h"

struct cio_extract_item {
    struct cio_entry entry;
    uint32_t index;   /* in the directory, for the profile */
    bool folder;      /* nothing is read of it */
    const char *path; /* of cio_name_clean */
    size_t path_nbytes;
    struct cio_attributes attributes;
    struct cio_done done; /* CIO_MORE: not begun, or stopped half-way */
    bool at_target;       /* a failed system call was about the file written */
    struct cio_zip_problem problem;
};

struct cio_extract_lane;

struct cio_extract {
    struct cio_job job; /* first */
    struct cio_extract_item *items;
    size_t count;
    size_t run; /* members claimed at once */
    int archive, target;
    struct cio_profile *profile;  /* NULL: everything is admitted */
    atomic_size_t next;           /* first that is not claimed */
    atomic_size_t failed;         /* first that failed; SIZE_MAX: none */
    _Atomic uint64_t done_nbytes; /* bytes written */
    _Atomic(struct cio_extract_lane *) lanes[CIO_WORKERS_MAX];
};

/* false: out of memory. Then cio_job_start with at most `threads`, job.step
 * until false, cio_job_join, cio_extract_end. Between two batches
 * cio_extract_next keeps lanes with their open folders. */
bool cio_extract_init(struct cio_extract *extract, unsigned threads,
                      int archive, int target, struct cio_profile *profile);
void cio_extract_next(struct cio_extract *extract,
                      struct cio_extract_item *items, size_t count,
                      unsigned threads);
/* After a batch that was cancelled or failed: half files are removed. */
void cio_extract_stop(struct cio_extract *extract);
void cio_extract_end(struct cio_extract *extract);

/* What the directory says of a member's mode and time. DOS times are local
 * ones, as zipfile reads them; the extended timestamp (0x5455) is UTC. */
void cio_extract_attributes(const struct cio_zip_info *info,
                            struct cio_attributes *attributes);
/* By its mode; only of archives made by Unix. */
bool cio_extract_is_link(const struct cio_zip_info *info);

#endif
