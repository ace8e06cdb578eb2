/* SPDX-License-Identifier: MIT
 * cio_extract.c - lanes that take members from the archive into the tree.
 */
#include "zip/cio_extract.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cio_bytes.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "zip/cio_window.h"

struct cio_extract_lane {
    struct cio_tree *tree;
    size_t next, end; /* claimed, and not begun */
    struct cio_window window;
    /* a large member under way; NULL: none */
    struct cio_extract_item *item;
    struct cio_sink sink;
    struct cio_entry_stream stream;
};

/* ------------------------------------------------------------------ lanes */

static void
lane_free(struct cio_extract_lane *lane)
{
    if (lane != NULL) {
        cio_tree_free(lane->tree);
        cio_window_end(&lane->window);
        cio_free(lane);
    }
}

static void
lane_drop(struct cio_extract_lane *lane)
{
    lane->next = lane->end = 0;
    if (lane->item != NULL) {
        cio_entry_stream_close(&lane->stream);
        cio_sink_drop(&lane->sink);
        lane->item = NULL;
    }
}

bool
cio_extract_init(struct cio_extract *extract, unsigned threads, int archive,
                 int target, struct cio_profile *profile)
{
    memset(extract, 0, sizeof *extract);
    extract->archive = archive;
    extract->target = target;
    extract->profile = profile;
    for (unsigned i = 0; i < threads && i < CIO_WORKERS_MAX; i++) {
        struct cio_extract_lane *lane = cio_sys->calloc(1, sizeof *lane);

        if (lane != NULL) {
            lane->tree = cio_tree_new(target);
        }
        if (lane == NULL || lane->tree == NULL) {
            lane_free(lane);
            /* fewer lanes are fewer threads; one is needed */
            return i > 0;
        }
        atomic_init(&extract->lanes[i], lane);
    }
    return true;
}

void
cio_extract_stop(struct cio_extract *extract)
{
    for (size_t i = 0; i < CIO_WORKERS_MAX; i++) {
        struct cio_extract_lane *lane = atomic_load(&extract->lanes[i]);

        if (lane != NULL) {
            lane_drop(lane);
        }
    }
}

void
cio_extract_end(struct cio_extract *extract)
{
    cio_extract_stop(extract);
    for (size_t i = 0; i < CIO_WORKERS_MAX; i++) {
        lane_free(atomic_exchange(&extract->lanes[i], NULL));
    }
}

static bool
lane_has_work(const struct cio_extract_lane *lane)
{
    return lane->item != NULL || lane->next < lane->end;
}

/* A lane that nobody is in: one that has work before all others. The caller
 * puts it back to *place. NULL: every lane is in use. */
static struct cio_extract_lane *
lane_take(struct cio_extract *extract, size_t *place)
{
    struct cio_extract_lane *idle = NULL;

    for (size_t i = 0; i < CIO_WORKERS_MAX; i++) {
        struct cio_extract_lane *lane =
            atomic_exchange(&extract->lanes[i], NULL);

        if (lane != NULL && lane_has_work(lane)) {
            if (idle != NULL) {
                atomic_store(&extract->lanes[*place], idle);
            }
            *place = i;
            return lane;
        }
        if (lane != NULL && idle == NULL) {
            idle = lane;
            *place = i;
        } else if (lane != NULL) {
            atomic_store(&extract->lanes[i], lane);
        }
    }
    return idle;
}

/* --------------------------------------------------------------- outcomes */

static void
fail(struct cio_extract *extract, struct cio_extract_item *item,
     struct cio_done done, bool at_target)
{
    const size_t index = (size_t)(item - extract->items);
    size_t first = atomic_load(&extract->failed);

    item->done = done;
    item->at_target = at_target;
    while (index < first
           && !atomic_compare_exchange_weak(&extract->failed, &first, index)) {
    }
}

/* ---------------------------------------------------------------- members */

static bool
interrupted(struct cio_done done)
{
    return done.status == CIO_ERR_SYS && done.sys_errno == EINTR;
}

/* How far to read from off on: to the end of what was claimed, as far as it
 * lies near. */
static size_t
ahead_of(const struct cio_extract *extract,
         const struct cio_extract_lane *lane, uint64_t off)
{
    uint64_t end = off;

    for (size_t i = lane->next; i < lane->end; i++) {
        const struct cio_entry *const entry = &extract->items[i].entry;
        const uint64_t nbytes = cio_entry_window(entry);
        const uint64_t its_end = entry->header_off + nbytes;

        if (entry->header_off >= off && nbytes <= CIO_ZIP_NEAR_NBYTES
            && its_end - off <= CIO_CHUNK_NBYTES) {
            end = cio_max_u64(end, its_end);
        }
    }
    return (size_t)(end - off);
}

static const uint8_t *
look(struct cio_extract *extract, struct cio_extract_lane *lane, uint64_t off,
     size_t nbytes, size_t *got)
{
    size_t ahead = 0;

    if (!cio_window_has(&lane->window, off, nbytes)) {
        ahead = ahead_of(extract, lane, off);
    }
    return cio_window_look(&lane->window, extract->archive, off, nbytes, ahead,
                           got);
}

/* As cio_profile_admit, mostly out of the window. */
static struct cio_done
admit(struct cio_extract *extract, struct cio_extract_lane *lane,
      struct cio_extract_item *item)
{
    struct cio_profile_check check;
    const uint8_t *data = NULL;
    size_t got = 0;

    cio_profile_check_init(&check, extract->profile, item->index);
    while (cio_profile_check_step(&check, data, got) == CIO_MORE) {
        /* Headers far in front don't replace what lies ahead. */
        data =
            check.want_off < item->entry.header_off
                    && !cio_window_has(&lane->window, check.want_off,
                                       check.want_nbytes)
                ? NULL
                : look(extract, lane, check.want_off, check.want_nbytes, &got);
        if (data == NULL) {
            return cio_profile_admit(extract->profile, extract->archive,
                                     item->index, &item->problem);
        }
    }
    if (check.rules == 0) {
        return cio_done_of(CIO_OK, 0);
    }
    return cio_profile_admit(extract->profile, extract->archive, item->index,
                             &item->problem);
}

/* The whole member in a pooled buffer, checked; NULL: it failed. */
static struct cio_buffer *
read_whole(struct cio_extract *extract, struct cio_extract_lane *lane,
           struct cio_extract_item *item)
{
    struct cio_entry *const entry = &item->entry;
    struct cio_buffer *buffer;
    struct cio_done done;
    size_t ahead = 0;
    bool refused = false;

    buffer = cio_buffer_take((size_t)entry->nbytes);
    if (buffer == NULL) {
        fail(extract, item, cio_done_of(CIO_ERR_NOMEM, 0), false);
        return NULL;
    }
    if (!cio_window_has(&lane->window, entry->header_off,
                        (size_t)cio_entry_window(entry))) {
        ahead = ahead_of(extract, lane, entry->header_off);
    }
    if (cio_entry_read_near(entry, extract->archive, &lane->window, ahead,
                            buffer->data, &item->problem)) {
        return buffer;
    }
    do { /* signals go to Python's threads: only FUSE comes back early */
        done = cio_entry_read(entry, extract->archive, buffer->data, false,
                              &refused, &item->problem);
    } while (interrupted(done));
    if (done.status != CIO_OK) {
        fail(extract, item, done, false);
        cio_buffer_give(buffer);
        return NULL;
    }
    return buffer;
}

static void
extract_small(struct cio_extract *extract, struct cio_extract_lane *lane,
              struct cio_extract_item *item)
{
    struct cio_buffer *buffer;
    struct cio_sink sink;
    struct cio_done done;

    /* Read first: what is wrong with a member shows before a file is made. */
    buffer = read_whole(extract, lane, item);
    if (buffer == NULL) {
        return;
    }
    done = cio_sink_open(&sink, lane->tree, item->path, item->path_nbytes);
    if (done.status == CIO_OK) {
        done = cio_sink_write(&sink, buffer->data, (size_t)item->entry.nbytes);
        atomic_fetch_add_explicit(&extract->done_nbytes, done.nbytes,
                                  memory_order_relaxed);
        if (done.status == CIO_OK) {
            done = cio_sink_finish(&sink, &item->attributes);
        } else {
            cio_sink_drop(&sink);
        }
    }
    cio_buffer_give(buffer);
    if (done.status == CIO_OK) {
        item->done = cio_done_of(CIO_OK, item->entry.nbytes);
    } else {
        fail(extract, item, done, true);
    }
}

static void
begin_large(struct cio_extract *extract, struct cio_extract_lane *lane,
            struct cio_extract_item *item)
{
    struct cio_done done;
    bool refused = false;

    do {
        done = cio_entry_locate(&item->entry, extract->archive, false,
                                &refused, &item->problem);
    } while (interrupted(done));
    if (done.status != CIO_OK) {
        fail(extract, item, done, false);
        return;
    }
    done =
        cio_sink_open(&lane->sink, lane->tree, item->path, item->path_nbytes);
    if (done.status != CIO_OK) {
        fail(extract, item, done, true);
        return;
    }
    cio_entry_stream_init(&lane->stream, &item->entry);
    lane->item = item;
}

/* Some pieces of a large member; its lane stays with it until it ends. Stored
 * ones too: the checksum has to see the bytes, and copy_file_range with a read
 * beside it takes 1.1 (ext4) to 1.2 (tmpfs) times as long as this loop. */
static void
go_on_large(struct cio_extract *extract, struct cio_extract_lane *lane)
{
    struct cio_extract_item *item = lane->item;
    struct cio_buffer *buffer = cio_buffer_take(CIO_CHUNK_NBYTES);
    struct cio_done got = {CIO_OK, 0, 0}, put = {CIO_OK, 0, 0};
    size_t moved = 0;

    if (buffer == NULL) {
        fail(extract, item, cio_done_of(CIO_ERR_NOMEM, 0), false);
        lane_drop(lane);
        return;
    }
    do {
        got = cio_entry_stream_read(&lane->stream, extract->archive,
                                    buffer->data, buffer->nbytes,
                                    &item->problem);
        if (interrupted(got)) {
            got.status = CIO_MORE;
        }
        if (got.nbytes > 0
            && (got.status == CIO_OK || got.status == CIO_EOF
                || got.status == CIO_MORE)) {
            put =
                cio_sink_write(&lane->sink, buffer->data, (size_t)got.nbytes);
            atomic_fetch_add_explicit(&extract->done_nbytes, put.nbytes,
                                      memory_order_relaxed);
        }
        moved += (size_t)got.nbytes;
    } while ((got.status == CIO_OK || got.status == CIO_MORE)
             && put.status == CIO_OK && moved < CIO_EXTRACT_SLICE_NBYTES);
    cio_buffer_give(buffer);

    if (put.status == CIO_OK
        && (got.status == CIO_OK || got.status == CIO_MORE)) {
        return; /* a slice is done */
    }
    cio_entry_stream_close(&lane->stream);
    lane->item = NULL;
    if (put.status == CIO_OK && got.status == CIO_EOF) {
        put = cio_sink_finish(&lane->sink, &item->attributes);
        if (put.status == CIO_OK) {
            item->done = cio_done_of(CIO_OK, item->entry.nbytes);
            return;
        }
    }
    cio_sink_drop(&lane->sink);
    if (put.status != CIO_OK) {
        fail(extract, item, put, true);
    } else {
        fail(extract, item, got, false);
    }
}

static void
extract_one(struct cio_extract *extract, struct cio_extract_lane *lane,
            struct cio_extract_item *item)
{
    struct cio_done done = {CIO_OK, 0, 0};
    enum cio_status status;

    item->problem = (struct cio_zip_problem){.index = item->entry.index};
    if (extract->profile != NULL) {
        done = admit(extract, lane, item);
        if (done.status != CIO_OK) {
            fail(extract, item, done, false);
            return;
        }
    }
    if (item->folder) {
        done = cio_tree_make_folder(lane->tree, item->path, item->path_nbytes);
        if (done.status == CIO_OK) {
            item->done = done;
        } else {
            fail(extract, item, done, true);
        }
        return;
    }
    status = cio_entry_check(&item->entry, &item->problem);
    if (status != CIO_OK) {
        fail(extract, item, cio_done_of(status, 0), false);
    } else if (item->entry.nbytes <= CIO_CHUNK_NBYTES
               && cio_entry_is_whole(&item->entry)) {
        extract_small(extract, lane, item);
    } else {
        begin_large(extract, lane, item);
    }
}

/* ------------------------------------------------------------------- step */

/* The lane's own work: a slice of a large member, or the claimed ones up to
 * the next large one. */
static void
work(struct cio_extract *extract, struct cio_extract_lane *lane)
{
    if (lane->item != NULL) {
        if ((size_t)(lane->item - extract->items)
            > atomic_load(&extract->failed)) {
            lane_drop(lane); /* something in front of it failed */
        } else {
            go_on_large(extract, lane);
        }
        return;
    }
    while (lane->next < lane->end && lane->item == NULL) {
        if (lane->next > atomic_load(&extract->failed)) {
            lane->next = lane->end;
            return;
        }
        extract_one(extract, lane, &extract->items[lane->next++]);
    }
}

static bool
step(struct cio_job *job)
{
    struct cio_extract *extract = (struct cio_extract *)job;
    struct cio_extract_lane *lane;
    size_t place = 0;
    bool worked;

    lane = lane_take(extract, &place);
    if (lane == NULL) {
        /* All in use, or just looked at by others: then try again. */
        return atomic_load(&extract->next) < extract->count
               && atomic_load(&extract->failed) == SIZE_MAX;
    }
    if (!lane_has_work(lane) && atomic_load(&extract->failed) == SIZE_MAX
        && atomic_load(&extract->next) < extract->count) {
        lane->next = atomic_fetch_add(&extract->next, extract->run);
        lane->end = cio_min_size(extract->count, lane->next + extract->run);
    }
    worked = lane_has_work(lane);
    if (worked) {
        work(extract, lane);
    }
    atomic_store(&extract->lanes[place], lane);
    return worked;
}

void
cio_extract_next(struct cio_extract *extract, struct cio_extract_item *items,
                 size_t count, unsigned threads)
{
    uint64_t nbytes = 0;

    memset(&extract->job, 0, sizeof extract->job);
    extract->job.step = step;
    extract->items = items;
    extract->count = count;
    for (size_t i = 0; i < count; i++) {
        items[i].done = cio_done_of(CIO_MORE, 0);
        if (!items[i].folder) {
            nbytes += cio_min_u64(items[i].entry.nbytes, CIO_CHUNK_NBYTES);
        }
    }
    /* Runs of a few: the claim costs nothing then, and neighbours lie in one
     * folder; shorter where members are large, or too few for all threads. */
    extract->run = CIO_EXTRACT_RUN;
    while (extract->run > 1
           && (count / extract->run < 4 * (size_t)threads
               || nbytes / (count + 1) * extract->run
                      > CIO_EXTRACT_SLICE_NBYTES)) {
        extract->run /= 2;
    }
    atomic_store(&extract->next, 0);
    atomic_store(&extract->failed, SIZE_MAX);
}

/* ------------------------------------------------------------- attributes */

bool
cio_extract_is_link(const struct cio_zip_info *info)
{
    return info->create_system == 3 && S_ISLNK(info->external_attr >> 16);
}

static bool
extended_time(const struct cio_zip_info *info, int64_t *mtime)
{
    const uint8_t *extra = info->extra;
    size_t nbytes = info->extra_nbytes;

    while (nbytes >= 4) {
        const size_t length = cio_load_le16(extra + 2);

        if (length > nbytes - 4) {
            return false;
        }
        if (cio_load_le16(extra) == 0x5455 && length >= 5
            && (extra[4] & 1) != 0) {
            *mtime = (int32_t)cio_load_le32(extra + 5);
            return true;
        }
        extra += 4 + length;
        nbytes -= 4 + length;
    }
    return false;
}

static bool
dos_time(const struct cio_zip_info *info, int64_t *mtime)
{
    struct tm tm = {
        .tm_year = (info->date >> 9) + 80,
        .tm_mon = ((info->date >> 5) & 15) - 1,
        .tm_mday = info->date & 31,
        .tm_hour = info->time >> 11,
        .tm_min = (info->time >> 5) & 63,
        .tm_sec = (info->time & 31) * 2,
        .tm_isdst = -1,
    };
    time_t seconds;

    if (tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday == 0) {
        return false;
    }
    seconds = mktime(&tm);
    *mtime = seconds;
    return seconds != (time_t)-1;
}

void
cio_extract_attributes(const struct cio_zip_info *info,
                       struct cio_attributes *attributes)
{
    const uint32_t mode = info->external_attr >> 16;

    attributes->has_mode = info->create_system == 3 && mode != 0;
    attributes->mode = mode & 0777;
    attributes->has_mtime = extended_time(info, &attributes->mtime)
                            || dos_time(info, &attributes->mtime);
}
