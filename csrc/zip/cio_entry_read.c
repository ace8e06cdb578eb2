/* SPDX-License-Identifier: MIT
 * cio_entry_read.c - members read as a whole: one pread for header and data
 * where both are small.
 */
#include "zip/cio_entry.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "base/cio_thresholds.h"
#include "zip/cio_entry_parts.h"

/* A window of the file from header_off on: a tiny one on the stack (a pooled
 * buffer costs ten atomic operations, 60 ns), else in pooled or own memory. */
struct window {
    struct cio_buffer *pooled;
    uint8_t *own;
    uint8_t *data;
    size_t nbytes, capacity;
};

static struct window
window_over(uint8_t *tiny, size_t capacity)
{
    return (struct window){.data = tiny, .capacity = capacity};
}

static void
drop(struct window *w)
{
    cio_buffer_give(w->pooled);
    cio_free(w->own);
    memset(w, 0, sizeof *w);
}

/* Room for nbytes; what is there is kept. */
static enum cio_status
make_room(struct window *w, size_t nbytes)
{
    struct window wider = {0};

    if (nbytes <= w->capacity) {
        return CIO_OK;
    }
    if (nbytes <= CIO_CHUNK_NBYTES) {
        wider.pooled = cio_buffer_take(nbytes);
        if (wider.pooled == NULL) {
            return CIO_ERR_NOMEM;
        }
        wider.data = wider.pooled->data;
        wider.capacity = wider.pooled->nbytes;
    } else {
        wider.own = cio_sys->malloc(nbytes);
        if (wider.own == NULL) {
            return CIO_ERR_NOMEM;
        }
        wider.data = wider.own;
        wider.capacity = nbytes;
        cio_advise_huge(wider.own, nbytes);
    }
    if (w->nbytes > 0) {
        memcpy(wider.data, w->data, w->nbytes);
    }
    wider.nbytes = w->nbytes;
    drop(w);
    *w = wider;
    return CIO_OK;
}

/* Reads until nbytes are there or the file ends; nbytes of the result counts
 * what came. With nowait CIO_MORE as cio_entry_read says. */
static struct cio_done
read_at(int fd, uint8_t *data, size_t nbytes, uint64_t off, bool nowait,
        bool *refused)
{
    size_t have = 0;

    while (have < nbytes) {
        const size_t want = cio_min_size(nbytes - have, CIO_SLICE_NBYTES);
        const ssize_t got =
            nowait
                ? cio_sys->pread_nowait(fd, data + have, want,
                                        (off_t)(off + have))
                : cio_sys->pread(fd, data + have, want, (off_t)(off + have));

        if (got == 0) {
            break;
        }
        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        if (!nowait) {
            return cio_done_sys(errno, have);
        }
        if (errno != EAGAIN) { /* EOPNOTSUPP (tmpfs), ENOSYS */
            *refused = true;
        }
        return cio_done_of(CIO_MORE, have);
    }
    return cio_done_of(have < nbytes ? CIO_EOF : CIO_OK, have);
}

struct source {
    int fd;
    bool nowait;
    bool *refused;
};

/* The window grows to nbytes. CIO_EOF: the file ended first. */
static struct cio_done
fill(struct window *w, size_t nbytes, const struct cio_entry *entry,
     const struct source *source)
{
    const enum cio_status status = make_room(w, nbytes);
    struct cio_done done;

    if (status != CIO_OK) {
        return cio_done_of(status, 0);
    }
    if (w->nbytes >= nbytes) {
        return cio_done_of(CIO_OK, 0);
    }
    done = read_at(source->fd, w->data + w->nbytes, nbytes - w->nbytes,
                   entry->header_off + w->nbytes, source->nowait,
                   source->refused);
    w->nbytes += (size_t)done.nbytes;
    done.nbytes = 0;
    return done;
}

/* Reads at least the header, `nbytes` when that is more. */
static struct cio_done
read_header(struct window *w, size_t nbytes, struct cio_entry *entry,
            const struct source *source, struct cio_zip_problem *problem)
{
    size_t need = nbytes;
    enum cio_status status;

    do {
        const struct cio_done done = fill(w, need, entry, source);

        if (done.status != CIO_OK && done.status != CIO_EOF) {
            return done;
        }
        status = cio_entry_header(entry, w->data, w->nbytes, &need, problem);
        if (status == CIO_MORE && done.status == CIO_EOF) {
            status = cio_entry_bad(entry, problem, CIO_ZIP_RULE_HEADER_CUT,
                                   need, w->nbytes);
        }
    } while (status == CIO_MORE);
    return cio_done_of(status, 0);
}

static struct cio_done
cut(const struct cio_entry *entry, struct cio_zip_problem *problem,
    uint64_t found)
{
    (void)cio_entry_bad(entry, problem, CIO_ZIP_RULE_DATA_CUT,
                        entry->compressed_nbytes, found);
    return cio_done_of(CIO_ERR_DATA, 0);
}

static struct cio_done
read_together(struct window *w, struct cio_entry *entry, uint8_t *out,
              const struct source *source, struct cio_zip_problem *problem)
{
    struct cio_done done = read_header(w, (size_t)cio_entry_window(entry),
                                       entry, source, problem);
    uint64_t start;
    enum cio_status status;

    if (done.status != CIO_OK) {
        return done;
    }
    start = entry->data_off - entry->header_off;
    done = fill(w, (size_t)(start + entry->compressed_nbytes), entry, source);
    if (done.status == CIO_EOF) {
        return cut(entry, problem, w->nbytes > start ? w->nbytes - start : 0);
    }
    if (done.status != CIO_OK) {
        return done;
    }
    status = cio_entry_decode(entry, w->data + start, out, problem);
    return cio_done_of(status, status == CIO_OK ? entry->nbytes : 0);
}

/* A stored member of size: its data never passes through a buffer. */
static struct cio_done
read_apart(struct window *w, struct cio_entry *entry, uint8_t *out,
           const struct source *source, struct cio_zip_problem *problem)
{
    struct cio_done done;
    enum cio_status status;

    if (entry->data_off == 0) {
        done = read_header(
            w, (size_t)cio_entry_cap(entry, cio_entry_header_guess(entry)),
            entry, source, problem);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    done = read_at(source->fd, out, (size_t)entry->nbytes, entry->data_off,
                   source->nowait, source->refused);
    if (done.status == CIO_EOF) {
        return cut(entry, problem, done.nbytes);
    }
    if (done.status != CIO_OK) {
        done.nbytes = 0;
        return done;
    }
    status = cio_entry_decode(entry, out, out, problem);
    return cio_done_of(status, status == CIO_OK ? entry->nbytes : 0);
}

struct cio_done
cio_entry_read(struct cio_entry *entry, int fd, uint8_t *out, bool nowait,
               bool *refused, struct cio_zip_problem *problem)
{
    const struct source source = {fd, nowait, refused};
    const uint64_t header_seen = entry->data_off;
    uint8_t tiny[CIO_ZIP_TINY_NBYTES];
    struct window w = window_over(tiny, sizeof tiny);
    struct cio_done done;

    if (cio_entry_is_plain(entry) && entry->nbytes > CIO_ZIP_COPY_NBYTES) {
        done = read_apart(&w, entry, out, &source, problem);
    } else {
        done = read_together(&w, entry, out, &source, problem);
    }
    if (done.status == CIO_MORE) {
        entry->data_off = header_seen;
    }
    drop(&w);
    return done;
}

bool
cio_entry_read_near(struct cio_entry *entry, int fd, struct cio_window *window,
                    size_t ahead, uint8_t *out,
                    struct cio_zip_problem *problem)
{
    const uint64_t guess = cio_entry_window(entry), seen = entry->data_off;
    const uint8_t *data;
    uint64_t nbytes;
    size_t got, need;

    if (guess > CIO_ZIP_NEAR_NBYTES) {
        return false;
    }
    data = cio_window_look(window, fd, entry->header_off, (size_t)guess, ahead,
                           &got);
    if (data == NULL
        || cio_entry_header(entry, data, got, &need, problem) != CIO_OK) {
        return false;
    }
    nbytes = entry->data_off - entry->header_off + entry->compressed_nbytes;
    if (nbytes > got) {
        data = nbytes > CIO_CHUNK_NBYTES
                   ? NULL
                   : cio_window_look(window, fd, entry->header_off,
                                     (size_t)nbytes, ahead, &got);
    }
    if (data != NULL && got >= nbytes
        && cio_entry_decode(entry,
                            data + (entry->data_off - entry->header_off), out,
                            problem)
               == CIO_OK) {
        return true;
    }
    entry->data_off = seen;
    return false;
}

struct cio_done
cio_entry_locate(struct cio_entry *entry, int fd, bool nowait, bool *refused,
                 struct cio_zip_problem *problem)
{
    const struct source source = {fd, nowait, refused};
    uint8_t tiny[CIO_ZIP_TINY_NBYTES];
    struct window w = window_over(tiny, sizeof tiny);
    struct cio_done done;

    done = read_header(
        &w, (size_t)cio_entry_cap(entry, cio_entry_header_guess(entry)), entry,
        &source, problem);
    drop(&w);
    return done;
}
