/* SPDX-License-Identifier: MIT
 * cio_copyfile.h - a file copied by path, and a list of files by many threads.
 *
 * Why      Copying a small file is its system calls: eight of them, made in
 *          one go without the GIL. A folder is a list of such files, and that
 *          loop must not come back to Python for each.
 * Owner    Paths are borrowed until the copy has ended. Descriptors are the
 *          copy's own; it ends by itself, or by cio_copyfile_abandon.
 * Units    Bytes.
 * Errors   struct cio_done, with where and fault saying what it was about. A
 *          target that got nothing is removed, where it is a regular file that
 *          was made or emptied here.
 * Threads  One thread at a time in a copy. cio_copy_list runs its own.
 */
#ifndef CIO_COPYFILE_H
#define CIO_COPYFILE_H

#include "base/cio_workers.h"
#include "io/cio_atomic.h"
#include "transfer/cio_transfer.h"

/* What an error is about. */
enum cio_where { CIO_AT_SOURCE, CIO_AT_TARGET, CIO_AT_BOTH };

/* Refused by rule, before anything is truncated; status is CIO_ERR_DATA. */
enum cio_copy_fault {
    CIO_COPY_NO_FAULT,
    CIO_COPY_SAME,           /* both paths are one file */
    CIO_COPY_SOURCE_SPECIAL, /* a FIFO */
    CIO_COPY_TARGET_SPECIAL,
    CIO_COPY_ENDLESS,   /* /dev/zero and the like */
    CIO_COPY_NO_METHOD, /* the method asked for can't serve these files */
};

struct cio_copy_options {
    enum cio_route method;
    enum cio_reflink reflink;
    enum cio_sparse sparse;
    size_t call_max_nbytes; /* 0: as large as may be */
    bool metadata;          /* mode, times, extended attributes too */
    bool sync;              /* fsync of the target, then of its folder */
    bool atomic;            /* a temporary file, then rename */
    bool waits; /* CIO_MORE once more, at CIO_COPY_MOVED: before the end */
};

struct cio_copyfile {
    const char *source, *target;
    struct cio_copy_options options;
    /* the outcome */
    enum cio_where where;
    enum cio_copy_fault fault;
    struct cio_transfer transfer;
    /* its own */
    enum { CIO_COPY_OPEN, CIO_COPY_MOVE, CIO_COPY_MOVED, CIO_COPY_DONE } stage;
    int source_fd, target_fd;
    bool made;   /* the target was created here */
    bool atomic; /* target_fd is the temporary's */
    struct cio_atomic temporary;
    bool planned; /* transfer has to be ended */
    struct stat st;
};

void cio_copyfile_init(struct cio_copyfile *copy, const char *source,
                       const char *target,
                       const struct cio_copy_options *options);
/* Opens, moves a slice, closes at the end. CIO_MORE: call again; CIO_OK: done;
 * anything else: failed and cleaned up. */
struct cio_done cio_copyfile_step(struct cio_copyfile *copy);
/* Ends a copy that will not be stepped again. */
void cio_copyfile_abandon(struct cio_copyfile *copy);

struct cio_copy_item {
    const char *source, *target;
    struct cio_done done;
    enum cio_where where;
    enum cio_copy_fault fault;
};

struct cio_copy_list {
    struct cio_job job; /* first: the job is the list */
    struct cio_copy_item *items;
    size_t item_count;
    struct cio_copy_options options;
    _Atomic size_t next;
    _Atomic uint64_t nbytes;     /* moved so far, by all threads */
    struct cio_copyfile current; /* of the thread that waits */
    struct cio_copy_item *current_item;
};

void cio_copy_list_start(struct cio_copy_list *list, unsigned threads);
/* The calling thread's part, about 20 ms of it. CIO_MORE: call again; CIO_OK:
 * all is done, no worker is left inside. */
struct cio_done cio_copy_list_step(struct cio_copy_list *list);
/* Stops: items not begun are left alone, those under way are abandoned. */
void cio_copy_list_cancel(struct cio_copy_list *list);

#endif
