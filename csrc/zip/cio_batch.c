/* SPDX-License-Identifier: MIT
 * cio_batch.c - claiming members, reading small ones whole and large ones a
 * slice at a time.
 */
#include "zip/cio_batch.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "zip/cio_window.h"

/* Signals go to other threads; a call that was interrupted all the same moved
 * nothing and is made again. */
static bool
interrupted(struct cio_done done)
{
    return done.status == CIO_ERR_SYS && done.sys_errno == EINTR;
}

/* Members claimed at once. */
struct run {
    struct cio_batch_item *items;
    size_t count;
    struct cio_window window;
};

/* Bytes to read from the run's first member on: as far as the others follow
 * it without a gap. */
static size_t
ahead_of(const struct run *run)
{
    const uint64_t off = run->items[0].entry.header_off;
    uint64_t end = off;

    for (size_t i = 0; i < run->count; i++) {
        const struct cio_entry *const entry = &run->items[i].entry;
        const uint64_t nbytes = cio_entry_window(entry);

        if (entry->header_off < off || entry->header_off > end
            || nbytes > CIO_ZIP_NEAR_NBYTES
            || nbytes > CIO_CHUNK_NBYTES - (entry->header_off - off)) {
            break;
        }
        end = cio_max_u64(end, entry->header_off + nbytes);
    }
    return (size_t)(end - off);
}

/* Half of what a member of 1 KiB costs beside inflating is its system call. */
static bool
read_near(struct run *run, int fd, uint8_t *out)
{
    struct cio_entry *const entry = &run->items[0].entry;
    const uint64_t nbytes = cio_entry_window(entry);
    size_t ahead = 0;

    if (nbytes > CIO_ZIP_NEAR_NBYTES) {
        return false;
    }
    if (!cio_window_has(&run->window, entry->header_off, (size_t)nbytes)) {
        ahead = ahead_of(run);
        if (ahead <= nbytes) { /* alone: the stack has room for it */
            return false;
        }
    }
    return cio_entry_read_near(entry, fd, &run->window, ahead, out,
                               &run->items[0].problem);
}

static struct cio_done
read_whole(struct cio_batch_item *item, int fd, struct run *run, uint8_t *out)
{
    struct cio_done done;
    bool refused;

    if (read_near(run, fd, out)) {
        return cio_done_of(CIO_OK, item->entry.nbytes);
    }
    do {
        done = cio_entry_read(&item->entry, fd, out, false, &refused,
                              &item->problem);
    } while (interrupted(done));
    return done;
}

/* Into memory that is thrown away. */
static struct cio_done
test_whole(struct cio_batch_item *item, int fd, struct run *run)
{
    struct cio_buffer *const buffer =
        cio_buffer_take((size_t)item->entry.nbytes);
    struct cio_done done;

    if (buffer == NULL) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    done = read_whole(item, fd, run, buffer->data);
    cio_buffer_give(buffer);
    return done;
}

static enum cio_status
begin_stream(struct cio_batch_item *item, int fd)
{
    struct cio_done done;
    bool refused;

    do {
        done = cio_entry_locate(&item->entry, fd, false, &refused,
                                &item->problem);
    } while (interrupted(done));
    if (done.status != CIO_OK) {
        item->done = done;
        return done.status;
    }
    item->stream = cio_sys->malloc(sizeof *item->stream);
    if (item->stream == NULL) {
        item->done = cio_done_of(CIO_ERR_NOMEM, 0);
        return CIO_ERR_NOMEM;
    }
    cio_entry_stream_init(item->stream, &item->entry);
    return CIO_OK;
}

static void
end_stream(struct cio_batch_item *item)
{
    if (item->stream != NULL) {
        cio_entry_stream_close(item->stream);
        cio_free(item->stream);
        item->stream = NULL;
    }
}

/* At most a slice into out, or into a buffer that is thrown away. */
static struct cio_done
stream_slice(struct cio_batch_item *item, int fd)
{
    struct cio_entry_stream *const s = item->stream;
    struct cio_buffer *buffer = NULL;
    struct cio_done done, total = {CIO_OK, 0, 0};
    size_t room = CIO_CHUNK_NBYTES;

    if (item->out != NULL) {
        return cio_entry_stream_read(
            s, fd, item->out + s->out_done,
            (size_t)cio_min_u64(item->entry.nbytes - s->out_done,
                                CIO_SLICE_NBYTES),
            &item->problem);
    }
    buffer = cio_buffer_take(room);
    if (buffer == NULL) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    do {
        done =
            cio_entry_stream_read(s, fd, buffer->data, room, &item->problem);
        total.nbytes += done.nbytes;
    } while (done.status == CIO_OK && total.nbytes < CIO_SLICE_NBYTES);
    cio_buffer_give(buffer);
    total.status = done.status;
    total.sys_errno = done.sys_errno;
    return total;
}

/* True when the member isn't at its end. */
static bool
go_on(struct cio_batch *batch, struct cio_batch_item *item)
{
    const struct cio_done done = stream_slice(item, batch->fd);

    item->done.nbytes += done.nbytes;
    atomic_fetch_add_explicit(&batch->done_nbytes, done.nbytes,
                              memory_order_relaxed);
    if (done.status == CIO_OK || done.status == CIO_MORE
        || interrupted(done)) {
        return true;
    }
    item->done.status = done.status == CIO_EOF ? CIO_OK : done.status;
    item->done.sys_errno = done.sys_errno;
    end_stream(item);
    return false;
}

static void
park(struct cio_batch *batch, struct cio_batch_item *item)
{
    /* A place for each thread, and one item in each thread's hands. */
    for (size_t i = 0;; i = (i + 1) % (CIO_WORKERS_MAX + 1)) {
        struct cio_batch_item *empty = NULL;

        if (atomic_compare_exchange_strong(&batch->waiting[i], &empty, item)) {
            return;
        }
    }
}

static struct cio_batch_item *
unpark(struct cio_batch *batch)
{
    for (size_t i = 0; i <= CIO_WORKERS_MAX; i++) {
        struct cio_batch_item *item =
            atomic_load_explicit(&batch->waiting[i], memory_order_relaxed);

        if (item != NULL) {
            item = atomic_exchange(&batch->waiting[i], NULL);
        }
        if (item != NULL) {
            return item;
        }
    }
    return NULL;
}

static void
start(struct cio_batch *batch, struct run *run)
{
    struct cio_batch_item *const item = &run->items[0];
    const struct cio_entry *const entry = &item->entry;
    enum cio_status status;

    if (item->done.status != CIO_MORE) {
        return;
    }
    if (batch->profile != NULL && entry->index != UINT32_MAX) {
        const struct cio_done done = cio_profile_admit(
            batch->profile, batch->fd, entry->index, &item->problem);

        if (done.status != CIO_OK) {
            item->done = done;
            return;
        }
    }
    status = cio_entry_check(entry, &item->problem);
    if (status != CIO_OK) {
        item->done = cio_done_of(status, 0);
        return;
    }
    if (cio_entry_is_whole(entry)
        && (item->out != NULL || entry->nbytes <= CIO_CHUNK_NBYTES)) {
        item->done = item->out != NULL
                         ? read_whole(item, batch->fd, run, item->out)
                         : test_whole(item, batch->fd, run);
        atomic_fetch_add_explicit(&batch->done_nbytes, item->done.nbytes,
                                  memory_order_relaxed);
        return;
    }
    if (begin_stream(item, batch->fd) == CIO_OK && go_on(batch, item)) {
        park(batch, item);
    }
}

static bool
batch_step(struct cio_job *job)
{
    struct cio_batch *const batch = (struct cio_batch *)job;
    struct cio_batch_item *const item = unpark(batch);
    struct run run = {0};
    size_t first;

    if (item != NULL) {
        if (go_on(batch, item)) {
            park(batch, item);
        }
        return true;
    }
    first = atomic_fetch_add_explicit(&batch->next, batch->run,
                                      memory_order_relaxed);
    if (first >= batch->count) {
        return false;
    }
    run.items = &batch->items[first];
    run.count = cio_min_size(batch->run, batch->count - first);
    for (; run.count > 0; run.items++, run.count--) {
        start(batch, &run);
    }
    cio_window_end(&run.window);
    return true;
}

void
cio_batch_init(struct cio_batch *batch, struct cio_batch_item *items,
               size_t count, int fd)
{
    memset(batch, 0, sizeof *batch);
    batch->job.step = batch_step;
    batch->items = items;
    batch->count = count;
    batch->fd = fd;
    batch->run = 1;
}

void
cio_batch_clear(struct cio_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct cio_batch_item *const item = &batch->items[i];

        if (item->stream != NULL) { /* in the middle: from its start again */
            end_stream(item);
            item->done = cio_done_of(CIO_MORE, 0);
        }
    }
}
