/* SPDX-License-Identifier: MIT
 * cio_tree.h - a folder that is written into and never left.
 *
 * Why      A path string is resolved anew by each call, through whatever links
 *          lie there by then. Here every folder below the target is opened by
 *          its one name in its parent, not following links, and what is made
 *          is made in the folder that was opened: nobody who swaps names can
 *          lead a write outside. Open folders are cached, so that thousands of
 *          files cost one open, one write and one close each.
 * Owner    The tree borrows the target's descriptor and owns the cached ones.
 *          One sink at a time; its folder stays open by the tree.
 * Units    Paths are those of cio_name_clean: relative, no empty, "." or ".."
 *          component, NUL behind nbytes.
 * Errors   struct cio_done. A link where a folder must be: ELOOP; anything
 *          else that is no folder: ENOTDIR; a path of CIO_PATH_NBYTES or more:
 *          ENAMETOOLONG, as the kernel says of such a string.
 * Threads  A tree in one thread at a time. Several trees may share a target.
 */
#ifndef CIO_TREE_H
#define CIO_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cio_status.h"

struct cio_tree;

/* NULL: out of memory. */
struct cio_tree *cio_tree_new(int target);
void cio_tree_free(struct cio_tree *tree); /* NULL is fine */

/* What a file or folder gets when it is done. */
struct cio_attributes {
    bool has_mode, has_mtime;
    mode_t mode;   /* only the nine permission bits are used */
    int64_t mtime; /* seconds since 1970, UTC */
};

/* Makes the folder and all above it that aren't there. */
struct cio_done cio_tree_make_folder(struct cio_tree *tree, const char *path,
                                     size_t nbytes);
/* Gives attributes to a folder that is there. */
struct cio_done cio_tree_set_folder(struct cio_tree *tree, const char *path,
                                    size_t nbytes,
                                    const struct cio_attributes *attributes);
/* Makes a symbolic link in place of whatever file or link has the name. */
struct cio_done cio_tree_link(struct cio_tree *tree, const char *path,
                              size_t nbytes, const char *text);

/* A file on its way into the tree. Where the name is free it is created under
 * it (O_EXCL); where a file or a link lies there, a temporary one is written
 * that takes its place in the end: what lay there is never written to, and is
 * whole until then. */
struct cio_sink {
    int fd; /* -1: closed */
    int folder;
    const char *name;   /* in the caller's path, which must live on */
    char temporary[32]; /* "": written under its name */
    mode_t kept_mode;   /* of the file that is replaced; 0: none */
};

struct cio_done cio_sink_open(struct cio_sink *sink, struct cio_tree *tree,
                              const char *path, size_t nbytes);
/* All of it, unless an error stops it. */
struct cio_done cio_sink_write(struct cio_sink *sink, const void *data,
                               size_t nbytes);
/* Attributes (NULL: none), close, rename. Failing, it drops the file. */
struct cio_done cio_sink_finish(struct cio_sink *sink,
                                const struct cio_attributes *attributes);
/* Closes and removes what was written; nothing where it is closed. */
void cio_sink_drop(struct cio_sink *sink);

#endif
