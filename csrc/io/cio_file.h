/* SPDX-License-Identifier: MIT
 * cio_file.h - a descriptor with a position and a chunk in front of it.
 *
 * Why      The chunk holds bytes read ahead or bytes not yet written, never
 *          both; what either means for the position is decided here once.
 * Owner    The struct owns its chunk. The descriptor is the caller's.
 * Units    Bytes; positions from the start of the file.
 * Errors   struct cio_done; a step that fails leaves chunk and position as
 *          they were, but for the nbytes that it reports.
 * Threads  One call at a time; none needs Python.
 */
#ifndef CIO_FILE_H
#define CIO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"
#include "io/cio_chunk.h"
#include "io/cio_fd.h"

struct cio_file {
    int fd;
    bool seekable;
    bool cached;  /* regular file or block device: RWF_NOWAIT is of use */
    bool refused; /* the file system doesn't know RWF_NOWAIT */
    bool local;   /* it answered it: no call to it waits for a network */
    bool dirty;   /* the chunk holds bytes to be written */
    /* Where the next read comes from, behind the read-ahead; CIO_OWN_OFFSET:
     * the descriptor's own offset (writers, and descriptors given to us, so
     * that other users of the descriptor see what was moved). */
    int64_t off;
    int64_t size_seen; /* st_size at open, a hint; 0: not known */
    size_t chunk_nbytes;
    struct cio_chunk chunk;
};

static inline size_t
cio_file_ahead(const struct cio_file *file)
{
    return file->dirty ? 0 : cio_chunk_held(&file->chunk);
}

static inline size_t
cio_file_pending(const struct cio_file *file)
{
    return file->dirty ? cio_chunk_held(&file->chunk) : 0;
}

/* ---- reading; nothing may be pending */

/* Fills the empty chunk by one read; CIO_OK: it holds bytes now. */
struct cio_done cio_file_fill(struct cio_file *file);
/* The same without waiting; false: use cio_file_fill. */
bool cio_file_fill_now(struct cio_file *file);
/* Up to nbytes out of the read-ahead. */
size_t cio_file_take(struct cio_file *file, uint8_t *target, size_t nbytes);
/* One read past the chunk, which is empty, straight to the target. */
struct cio_done cio_file_read(struct cio_file *file, void *target,
                              size_t nbytes);
/* The same without waiting; CIO_MORE: use cio_file_read. */
struct cio_done cio_file_read_now(struct cio_file *file, void *target,
                                  size_t nbytes);
/* A read of any size past the chunk, a slice a step, as cio_read_step; a short
 * read that ends at the size seen is the end without a second one. */
struct cio_file_move {
    struct cio_file *file;
    uint8_t *buf;
    uint64_t left;
    size_t slice_nbytes; /* 0 at first */
};
struct cio_done cio_file_read_step(struct cio_file_move *move);
/* The same without waiting; CIO_MORE: go on with cio_file_read_step. */
struct cio_done cio_file_read_step_now(struct cio_file_move *move);
/* Puts the position back by nbytes that were read past the chunk, which is
 * empty. False: the descriptor can't; the bytes must be adopted. */
bool cio_file_unread(struct cio_file *file, uint64_t nbytes);
/* Forgets the read-ahead; the position stays. A file that can't seek keeps
 * it: it has no other place. */
struct cio_done cio_file_drop_ahead(struct cio_file *file);
/* The bytes from the position to the end by the size seen at open; 0 when
 * that isn't known or was wrong. */
uint64_t cio_file_rest_seen(const struct cio_file *file);
/* The same, asked anew. */
uint64_t cio_file_rest_now(const struct cio_file *file);

/* ---- writing; no read-ahead may be held */

/* Room in the chunk; 0 where a take failed. */
size_t cio_file_room(struct cio_file *file);
void cio_file_put(struct cio_file *file, const void *data, size_t nbytes);
/* Instead of a copy: memory of the caller's is what is pending, fewer than
 * chunk_nbytes, and stays as it is until the chunk no longer holds it
 * (data == NULL, or cio_file_own). The chunk is empty. */
void cio_file_adopt(struct cio_file *file, const void *data, size_t nbytes);
/* Copies what was adopted, so that more may be put behind it; false: no
 * memory. Fine where nothing was. */
bool cio_file_own(struct cio_file *file);
/* One write of what is pending; CIO_MORE while bytes are left, CIO_OK when
 * none are. */
struct cio_done cio_file_flush(struct cio_file *file);

/* ---- position */

struct cio_done cio_file_tell(const struct cio_file *file, int64_t *pos);
/* Nothing may be pending. A target inside the read-ahead only moves in it. */
struct cio_done cio_file_seek(struct cio_file *file, int64_t off, int whence,
                              int64_t *pos);
/* Puts the descriptor's own offset where the position is. */
struct cio_done cio_file_expose(struct cio_file *file);

#endif
