/* SPDX-License-Identifier: MIT
 * cio_file.c - what reading ahead and writing behind mean for a position.
 */
#include "io/cio_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "io/cio_move.h"

static void
advance(struct cio_file *file, uint64_t nbytes)
{
    if (file->off != CIO_OWN_OFFSET) {
        file->off += (int64_t)nbytes;
    }
}

/* --------------------------------------------------------------- reading */

struct cio_done
cio_file_read(struct cio_file *file, void *target, size_t nbytes)
{
    struct cio_done done = cio_fd_read(file->fd, target, nbytes, file->off);

    if (done.status == CIO_ERR_SYS && done.sys_errno == ESPIPE && file->cached
        && file->off == 0) {
        /* A regular file that can't seek, as /proc has some. */
        file->off = CIO_OWN_OFFSET;
        file->seekable = false;
        file->cached = false;
        done = cio_fd_read(file->fd, target, nbytes, CIO_OWN_OFFSET);
    }
    advance(file, done.nbytes);
    return done;
}

struct cio_done
cio_file_read_now(struct cio_file *file, void *target, size_t nbytes)
{
    struct cio_done done;

    if (!file->cached || file->refused) {
        return cio_done_of(CIO_MORE, 0);
    }
    done = cio_fd_read_nowait(file->fd, target, nbytes, file->off,
                              &file->refused);
    file->local |= done.nbytes > 0;
    advance(file, done.nbytes);
    return done;
}

struct cio_done
cio_file_fill(struct cio_file *file)
{
    struct cio_done done;

    if (!cio_chunk_take(&file->chunk, file->chunk_nbytes)) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    done = cio_file_read(file, file->chunk.data, file->chunk_nbytes);
    file->chunk.end = (size_t)done.nbytes;
    if (done.nbytes == 0) {
        cio_chunk_give(&file->chunk);
    }
    return done;
}

bool
cio_file_fill_now(struct cio_file *file)
{
    struct cio_done done;

    if (!file->cached || file->refused
        || !cio_chunk_take(&file->chunk, file->chunk_nbytes)) {
        return false;
    }
    done = cio_file_read_now(file, file->chunk.data, file->chunk_nbytes);
    file->chunk.end = (size_t)done.nbytes;
    if (done.nbytes == 0) {
        cio_chunk_give(&file->chunk);
        return false;
    }
    return true;
}

size_t
cio_file_take(struct cio_file *file, uint8_t *target, size_t nbytes)
{
    const size_t n = cio_min_size(nbytes, cio_file_ahead(file));

    if (n > 0) {
        memcpy(target, file->chunk.data + file->chunk.begin, n);
        cio_chunk_used(&file->chunk, n);
    }
    return n;
}

/* A regular file that gave less than asked, and just what it has. */
static bool
at_end_seen(const struct cio_file *file)
{
    return file->cached && file->off == file->size_seen;
}

static struct cio_done
moved(struct cio_file_move *move, struct cio_done done)
{
    move->buf += done.nbytes;
    move->left -= done.nbytes;
    if (done.status == CIO_OK && move->left > 0) {
        done.status = at_end_seen(move->file) ? CIO_EOF : CIO_MORE;
    }
    return done;
}

struct cio_done
cio_file_read_step(struct cio_file_move *move)
{
    const size_t want =
        (size_t)cio_min_u64(move->left, cio_slice_next(&move->slice_nbytes));
    const int64_t before = want > CIO_SLICE_MIN_NBYTES ? cio_clock_ns() : 0;
    const struct cio_done done = cio_file_read(move->file, move->buf, want);

    if (before != 0) {
        cio_slice_took(&move->slice_nbytes, cio_clock_ns() - before);
    }
    return moved(move, done);
}

struct cio_done
cio_file_read_step_now(struct cio_file_move *move)
{
    return moved(move,
                 cio_file_read_now(move->file, move->buf, (size_t)move->left));
}

bool
cio_file_unread(struct cio_file *file, uint64_t nbytes)
{
    int64_t pos;

    if (file->off != CIO_OWN_OFFSET) {
        file->off -= (int64_t)nbytes;
        return true;
    }
    return file->seekable
           && cio_fd_seek(file->fd, -(int64_t)nbytes, SEEK_CUR, &pos).status
                  == CIO_OK;
}

struct cio_done
cio_file_drop_ahead(struct cio_file *file)
{
    const size_t ahead = cio_file_ahead(file);
    int64_t pos;

    if (ahead == 0 || !file->seekable) {
        return cio_done_of(CIO_OK, 0);
    }
    if (file->off != CIO_OWN_OFFSET) {
        file->off -= (int64_t)ahead;
    } else {
        const struct cio_done done =
            cio_fd_seek(file->fd, -(int64_t)ahead, SEEK_CUR, &pos);

        if (done.status != CIO_OK) {
            return done;
        }
    }
    cio_chunk_give(&file->chunk);
    return cio_done_of(CIO_OK, 0);
}

uint64_t
cio_file_rest_seen(const struct cio_file *file)
{
    if (file->off == CIO_OWN_OFFSET || file->size_seen <= file->off) {
        return 0;
    }
    return (uint64_t)(file->size_seen - file->off);
}

uint64_t
cio_file_rest_now(const struct cio_file *file)
{
    int64_t pos = file->off;
    struct stat st;

    if (cio_sys->fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return 0;
    }
    if (pos == CIO_OWN_OFFSET
        && cio_fd_seek(file->fd, 0, SEEK_CUR, &pos).status != CIO_OK) {
        return 0;
    }
    return st.st_size > pos ? (uint64_t)(st.st_size - pos) : 0;
}

/* --------------------------------------------------------------- writing */

size_t
cio_file_room(struct cio_file *file)
{
    if (file->chunk.data == NULL
        && !cio_chunk_take(&file->chunk, file->chunk_nbytes)) {
        return 0;
    }
    return file->chunk.capacity - file->chunk.end;
}

void
cio_file_put(struct cio_file *file, const void *data, size_t nbytes)
{
    memcpy(file->chunk.data + file->chunk.end, data, nbytes);
    file->chunk.end += nbytes;
    file->dirty = true;
}

void
cio_file_adopt(struct cio_file *file, const void *data, size_t nbytes)
{
    cio_chunk_adopt(&file->chunk, (uint8_t *)(uintptr_t)data, nbytes);
    file->dirty = true;
}

bool
cio_file_own(struct cio_file *file)
{
    const struct cio_chunk kept = file->chunk;
    const size_t held = cio_chunk_held(&kept);
    struct cio_chunk own;

    if (!kept.adopted) {
        return true;
    }
    if (!cio_chunk_take(&own, file->chunk_nbytes)) {
        return false;
    }
    memcpy(own.data, kept.data + kept.begin, held);
    own.end = held;
    file->chunk = own;
    return true;
}

struct cio_done
cio_file_flush(struct cio_file *file)
{
    struct cio_chunk *chunk = &file->chunk;
    struct cio_done done = cio_done_of(CIO_OK, 0);

    if (file->dirty && cio_chunk_held(chunk) > 0) {
        done =
            cio_fd_write(file->fd, chunk->data + chunk->begin,
                         cio_min_size(cio_chunk_held(chunk), CIO_SLICE_NBYTES),
                         CIO_OWN_OFFSET);
        cio_chunk_used(chunk, (size_t)done.nbytes);
        if (done.status == CIO_OK && cio_chunk_held(chunk) > 0) {
            done.status = CIO_MORE;
        }
    }
    if (cio_chunk_held(chunk) == 0) {
        file->dirty = false;
    }
    return done;
}

/* -------------------------------------------------------------- position */

struct cio_done
cio_file_tell(const struct cio_file *file, int64_t *pos)
{
    int64_t at = file->off;

    if (at == CIO_OWN_OFFSET) {
        const struct cio_done done = cio_fd_seek(file->fd, 0, SEEK_CUR, &at);

        if (done.status != CIO_OK) {
            return done;
        }
    }
    *pos =
        at - (int64_t)cio_file_ahead(file) + (int64_t)cio_file_pending(file);
    return cio_done_of(CIO_OK, 0);
}

/* Inside what is read ahead: no system call. */
static bool
seek_in_chunk(struct cio_file *file, int64_t from, int64_t to)
{
    struct cio_chunk *chunk = &file->chunk;

    if (cio_file_ahead(file) == 0 || to < from - (int64_t)chunk->begin
        || to >= from + (int64_t)cio_file_ahead(file)) {
        return false;
    }
    chunk->begin = (size_t)((int64_t)chunk->begin + (to - from));
    return true;
}

struct cio_done
cio_file_seek(struct cio_file *file, int64_t off, int whence, int64_t *pos)
{
    struct cio_done done;
    int64_t from, to = off;

    /* With nothing read ahead the kernel's answer is the whole of it. */
    if ((whence == SEEK_SET || whence == SEEK_CUR)
        && (file->off != CIO_OWN_OFFSET || cio_file_ahead(file) > 0)) {
        done = cio_file_tell(file, &from);
        if (done.status != CIO_OK) {
            return done;
        }
        if (whence == SEEK_CUR && __builtin_add_overflow(from, off, &to)) {
            return cio_done_sys(EOVERFLOW, 0);
        }
        if (to < 0) {
            return cio_done_sys(EINVAL, 0);
        }
        if (seek_in_chunk(file, from, to)) {
            *pos = to;
            return done;
        }
        whence = SEEK_SET;
    }
    if (file->off != CIO_OWN_OFFSET && whence == SEEK_SET
        && to <= file->size_seen) {
        *pos = file->off = to;
        cio_chunk_drop(&file->chunk);
        return cio_done_of(CIO_OK, 0);
    }
    /* The kernel knows where the file ends, and which positions are too
     * large. */
    done = cio_fd_seek(file->fd, to, whence, pos);
    if (done.status == CIO_OK) {
        if (file->off != CIO_OWN_OFFSET) {
            file->off = *pos;
        }
        cio_chunk_drop(&file->chunk);
    }
    return done;
}

struct cio_done
cio_file_expose(struct cio_file *file)
{
    struct cio_done done;
    int64_t pos;

    if (file->off == CIO_OWN_OFFSET) {
        return cio_done_of(CIO_OK, 0);
    }
    done = cio_file_tell(file, &pos);
    if (done.status == CIO_OK) {
        done = cio_fd_seek(file->fd, pos, SEEK_SET, &pos);
    }
    return done;
}
