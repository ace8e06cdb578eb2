/* SPDX-License-Identifier: MIT
 * pyio_zip_member.c - a member read as a whole.
 *
 * The short path: a str's own UTF-8, a look-up, one pread that doesn't wait
 * and one inflate into the result, all with the GIL held; nothing is made but
 * the result.
 */
#include "glue/zip/pyio_zip_profile.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_prefault.h"
#include "base/cio_thresholds.h"
#include "io/cio_move.h"

/* ---------------------------------------------------------------- warnings */

/* Of entries at one offset zipfile (3.13.1 and later) reads all but warns of
 * those that aren't the last. */
static int
warn_shared(const struct pyio_member *member)
{
    const struct cio_entry *const entry = &member->entry;

    if (PYIO_LIKELY(entry->end_off != entry->header_off || entry->nowhere)) {
        return 0;
    }
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "Overlapped entries: %R (possible zip bomb)",
                            member->name);
}

/* ------------------------------------------------------------------- whole */

struct whole {
    struct cio_entry *entry;
    int fd;
    uint8_t *out;
    struct cio_zip_problem *problem;
};

static struct cio_done
read_whole_detached(void *argument)
{
    const struct whole *const w = argument;
    struct cio_prefault ready;
    struct cio_done done;
    bool refused;

    cio_prefault_start(&ready, w->out, (size_t)w->entry->nbytes,
                       (size_t)w->entry->nbytes);
    done =
        cio_entry_read(w->entry, w->fd, w->out, false, &refused, w->problem);
    cio_prefault_stop(&ready);
    return done;
}

static struct cio_done
read_by_descriptor(struct pyio_archive *archive, struct cio_entry *entry,
                   uint8_t *out, struct cio_zip_problem *problem)
{
    struct whole w = {entry, archive->fd, out, problem};
    struct pyio_slices slices = {.step = read_whole_detached, .argument = &w};

    if (entry->nbytes <= CIO_ZIP_ATTACHED_NBYTES
        && entry->compressed_nbytes <= CIO_ZIP_ATTACHED_NBYTES
        && archive->nowait) {
        bool refused = false;
        struct cio_done done;

        if (pyio_ahead_read(archive, entry, out, &done, problem)) {
            return done;
        }
        done =
            cio_entry_read(entry, archive->fd, out, true, &refused, problem);
        if (done.status != CIO_MORE) {
            return done;
        }
        archive->nowait = !refused;
    }
    return pyio_run_slices(&slices);
}

/* ------------------------------------------------------------------- alone */

/* Its compressed bytes are so many that a cold read is looked at for signals,
 * and goes on behind them. */
struct alone {
    struct cio_entry *entry;
    int fd;
    uint8_t *out, *data;
    size_t have; /* of data */
    struct cio_zip_problem *problem;
};

static struct cio_done
read_alone_on(struct alone *a)
{
    const size_t nbytes = (size_t)a->entry->compressed_nbytes;
    const int64_t begin = cio_clock_ns();
    enum cio_status status;

    while (a->have < nbytes) {
        const ssize_t got =
            cio_sys->pread(a->fd, a->data + a->have,
                           cio_min_size(nbytes - a->have, CIO_SLICE_NBYTES),
                           (off_t)(a->entry->data_off + a->have));

        if (got < 0) {
            return cio_done_sys(errno, 0);
        }
        if (got == 0) {
            *a->problem = (struct cio_zip_problem){CIO_ZIP_RULE_DATA_CUT,
                                                   a->entry->index,
                                                   a->entry->header_off,
                                                   nbytes,
                                                   a->have,
                                                   NULL};
            return cio_done_of(CIO_ERR_DATA, 0);
        }
        a->have += (size_t)got;
        if (cio_clock_ns() - begin > CIO_SLICE_MAX_NS / 2) {
            return cio_done_of(CIO_MORE, 0);
        }
    }
    status = cio_entry_decode(a->entry, a->data, a->out, a->problem);
    return cio_done_of(status, status == CIO_OK ? a->entry->nbytes : 0);
}

static struct cio_done
read_alone_detached(void *argument)
{
    struct alone *const a = argument;
    const size_t nbytes = (size_t)a->entry->nbytes;
    struct cio_prefault ready;
    struct cio_done done;

    cio_prefault_start(&ready, a->out, nbytes, nbytes);
    done = read_alone_on(a);
    cio_prefault_stop(&ready); /* a signal handler may fork */
    return done;
}

static int
read_alone(struct pyio_state *st, struct pyio_archive *archive,
           struct pyio_member *member, uint8_t *out)
{
    struct cio_entry *const entry = &member->entry;
    struct cio_zip_problem problem = {0};
    struct alone a = {entry, archive->fd, out, NULL, 0, &problem};
    struct pyio_slices slices = {.step = read_alone_detached, .argument = &a};
    struct cio_done done;

    if (pyio_member_locate(st, archive, member) < 0) {
        return -1;
    }
    a.data = cio_sys->malloc((size_t)entry->compressed_nbytes + 1);
    if (a.data == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    cio_advise_huge(a.data, (size_t)entry->compressed_nbytes);
    done = pyio_run_slices(&slices);
    cio_free(a.data);
    return done.status == CIO_OK
               ? 0
               : pyio_zip_check(st, archive, member->name, done, &problem);
}

/* Header and data from a source without descriptor, then the same decoder. */
static int
read_by_source(struct pyio_state *st, struct pyio_archive *archive,
               struct pyio_member *member, uint8_t *out)
{
    struct cio_entry *const entry = &member->entry;
    struct cio_zip_problem problem = {0};
    uint8_t *data = NULL;
    size_t got, start;
    enum cio_status status;
    int result = -1;

    if (pyio_member_locate(st, archive, member) < 0) {
        return -1;
    }
    start = 0;
    data = cio_sys->malloc((size_t)entry->compressed_nbytes + 1);
    if (data == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (pyio_archive_fetch(st, archive, entry->data_off, data,
                           (size_t)entry->compressed_nbytes, &got)
        < 0) {
        goto out;
    }
    if (got < entry->compressed_nbytes) {
        problem = (struct cio_zip_problem){
            CIO_ZIP_RULE_DATA_CUT,    entry->index, entry->data_off,
            entry->compressed_nbytes, got,          NULL};
        status = CIO_ERR_DATA;
    } else if (entry->nbytes <= CIO_ZIP_ATTACHED_NBYTES) {
        status = cio_entry_decode(entry, data + start, out, &problem);
    } else {
        Py_BEGIN_ALLOW_THREADS
        status = cio_entry_decode(entry, data + start, out, &problem);
        Py_END_ALLOW_THREADS
    }
    result = pyio_zip_check(st, archive, member->name, cio_done_of(status, 0),
                            &problem);
out:
    cio_free(data);
    return result;
}

/* ------------------------------------------------------------------ stream */

struct piece {
    struct cio_entry_stream *stream;
    int fd;
    uint8_t *out;
    size_t nbytes, have;
    struct cio_zip_problem *problem;
};

/* While a slice is inflated a worker makes the next one's memory ready; no
 * more: memory follows what comes. Stored bytes come as fast as pages do. */
static struct cio_done
read_piece(void *argument)
{
    struct piece *const p = argument;
    const size_t left = p->nbytes - p->have;
    const size_t now = cio_min_size(left, CIO_SLICE_NBYTES);
    struct cio_prefault next;
    struct cio_done done;

    cio_prefault_start(&next, p->out + p->have + now,
                       cio_min_size(left - now, CIO_SLICE_NBYTES),
                       cio_entry_is_plain(&p->stream->entry) ? 0 : p->nbytes);
    done = cio_entry_stream_read(p->stream, p->fd, p->out + p->have, left,
                                 p->problem);
    cio_prefault_stop(&next);
    p->have += (size_t)done.nbytes;
    return done;
}

/* At most a window of input from a source, inflated detached. */
static struct cio_done
step_by_source(struct pyio_state *st, struct pyio_archive *archive,
               struct cio_entry_stream *stream, uint8_t *out, size_t nbytes,
               struct cio_zip_problem *problem)
{
    const uint64_t left = stream->entry.compressed_nbytes - stream->in_done;
    struct cio_buffer *const in = cio_buffer_take(CIO_ZIP_AHEAD_NBYTES);
    struct cio_span span = {.out = out, .out_nbytes = nbytes};
    struct cio_done done = {CIO_MORE, 0, 0};
    const size_t want = in == NULL ? 0 : (size_t)cio_min_u64(left, in->nbytes);
    size_t got;

    if (in == NULL) {
        (void)PyErr_NoMemory();
        return done;
    }
    if (pyio_archive_fetch(st, archive,
                           stream->entry.data_off + stream->in_done, in->data,
                           want, &got)
        < 0) {
        goto out;
    }
    if (got == 0 && want > 0) {
        *problem = (struct cio_zip_problem){
            CIO_ZIP_RULE_DATA_CUT,  stream->entry.index,
            stream->entry.data_off, stream->entry.compressed_nbytes,
            stream->in_done,        NULL};
        done.status = CIO_ERR_DATA;
        goto out;
    }
    span.in = in->data;
    span.in_nbytes = got;
    Py_BEGIN_ALLOW_THREADS
    done.status = cio_entry_stream_step(stream, &span, problem);
    Py_END_ALLOW_THREADS
    done.nbytes = span.out_used;
out:
    cio_buffer_give(in);
    return done;
}

struct cio_done
pyio_stream_fill(struct pyio_state *st, struct pyio_archive *archive,
                 struct cio_entry_stream *stream, uint8_t *out, size_t nbytes,
                 struct cio_zip_problem *problem)
{
    struct piece p = {stream, archive->fd, out, nbytes, 0, problem};
    struct pyio_slices slices = {.step = read_piece, .argument = &p};
    struct cio_done done = {CIO_OK, 0, 0};

    if (archive->source == NULL) {
        return pyio_run_slices(&slices);
    }
    while (
        done.status == CIO_OK
        && (p.have < nbytes
            || (stream->out_done == stream->entry.nbytes && !stream->ended))) {
        done = step_by_source(st, archive, stream, out + p.have,
                              nbytes - p.have, problem);
        p.have += (size_t)done.nbytes;
        if (done.status == CIO_OK && PyErr_CheckSignals() < 0) {
            done.status = CIO_MORE;
        }
    }
    done.nbytes = p.have;
    return done;
}

/* ---------------------------------------------------------------- the whole
 */

static struct cio_done
locate_detached(void *argument)
{
    const struct whole *const w = argument;
    bool refused;

    return cio_entry_locate(w->entry, w->fd, false, &refused, w->problem);
}

static int
locate_in_source(struct pyio_state *st, struct pyio_archive *archive,
                 struct pyio_member *member)
{
    struct cio_entry *const entry = &member->entry;
    struct cio_zip_problem problem = {0};
    size_t need = CIO_ZIP_HEADER_NBYTES + entry->raw_name_nbytes, got = 0;
    enum cio_status status = CIO_MORE;
    struct cio_buffer *buffer = NULL;
    int result = -1;

    while (status == CIO_MORE) {
        cio_buffer_give(buffer);
        buffer = cio_buffer_take(need);
        if (buffer == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
        if (pyio_archive_fetch(st, archive, entry->header_off, buffer->data,
                               need, &got)
            < 0) {
            goto out;
        }
        if (got < need) {
            size_t ignored;

            status =
                cio_entry_header(entry, buffer->data, got, &ignored, &problem);
            if (status == CIO_MORE) {
                problem = (struct cio_zip_problem){CIO_ZIP_RULE_HEADER_CUT,
                                                   entry->index,
                                                   entry->header_off,
                                                   need,
                                                   got,
                                                   NULL};
                status = CIO_ERR_DATA;
            }
        } else {
            status =
                cio_entry_header(entry, buffer->data, got, &need, &problem);
        }
    }
    result = pyio_zip_check(st, archive, member->name, cio_done_of(status, 0),
                            &problem);
out:
    cio_buffer_give(buffer);
    return result;
}

int
pyio_member_locate(struct pyio_state *st, struct pyio_archive *archive,
                   struct pyio_member *member)
{
    struct cio_zip_problem problem = {0};
    struct whole w = {&member->entry, archive->fd, NULL, &problem};
    struct pyio_slices slices = {.step = locate_detached, .argument = &w};
    struct cio_done done = {CIO_MORE, 0, 0};

    if (archive->source != NULL) {
        return locate_in_source(st, archive, member);
    }
    if (archive->nowait
        && !pyio_ahead_locate(archive, &member->entry, &done.status,
                              &problem)) {
        bool refused = false;

        done = cio_entry_locate(&member->entry, archive->fd, true, &refused,
                                &problem);
        archive->nowait = !refused;
    }
    if (done.status == CIO_MORE) {
        done = pyio_run_slices(&slices);
    }
    return pyio_zip_check(st, archive, member->name, done, &problem);
}

/* More than the file has behind the header: nothing is allocated for that. */
static bool
is_beyond(const struct pyio_archive *archive, const struct cio_entry *entry,
          struct cio_zip_problem *problem)
{
    if (PYIO_LIKELY(entry->header_off >= archive->file_nbytes
                    || entry->compressed_nbytes
                           <= archive->file_nbytes - entry->header_off)) {
        return false;
    }
    *problem = (struct cio_zip_problem){
        .rule = CIO_ZIP_RULE_DATA_CUT,
        .index = entry->index,
        .offset = entry->header_off,
        .expected = entry->compressed_nbytes,
        .found = archive->file_nbytes - entry->header_off,
    };
    return true;
}

int
pyio_member_check(struct pyio_state *st, struct pyio_archive *archive,
                  struct pyio_member *member)
{
    struct cio_zip_problem problem;

    if (PYIO_UNLIKELY(archive->bounded)
        && pyio_bounds_check(st, archive, &archive->bounds, &member->entry,
                             member->name)
               < 0) {
        return -1;
    }
    if (PYIO_UNLIKELY(archive->profile != NULL)
        && pyio_archive_admit(st, archive, archive->profile, &member->entry,
                              member->name)
               < 0) {
        return -1;
    }
    if (PYIO_UNLIKELY(cio_entry_check(&member->entry, &problem) != CIO_OK
                      || is_beyond(archive, &member->entry, &problem))) {
        return pyio_zip_raise(st, archive, member->name, &problem);
    }
    return warn_shared(member);
}

static int
read_streamed(struct pyio_state *st, struct pyio_archive *archive,
              struct pyio_member *member, uint8_t *out)
{
    struct cio_entry_stream stream;
    struct cio_zip_problem problem = {0};
    struct cio_done done;

    if (pyio_member_locate(st, archive, member) < 0) {
        return -1;
    }
    cio_entry_stream_init(&stream, &member->entry);
    done = pyio_stream_fill(st, archive, &stream, out,
                            (size_t)member->entry.nbytes, &problem);
    cio_entry_stream_close(&stream);
    return pyio_zip_check(st, archive, member->name, done, &problem);
}

int
pyio_member_read_into(struct pyio_state *st, struct pyio_archive *archive,
                      struct pyio_member *member, uint8_t *out)
{
    struct cio_zip_problem problem = {0};
    struct cio_done done;

    if (!(archive->source == NULL ? cio_entry_is_whole_alone(&member->entry)
                                  : cio_entry_is_whole(&member->entry))) {
        return read_streamed(st, archive, member, out);
    }
    if (archive->source != NULL) {
        return read_by_source(st, archive, member, out);
    }
    if (!cio_entry_is_whole(&member->entry)) {
        return read_alone(st, archive, member, out);
    }
    done = read_by_descriptor(archive, &member->entry, out, &problem);
    if (PYIO_LIKELY(done.status == CIO_OK)) {
        return 0;
    }
    return pyio_zip_check(st, archive, member->name, done, &problem);
}

/* A size that a few compressed bytes claim: memory follows what comes. */
static PyObject *
read_growing(struct pyio_state *st, struct pyio_archive *archive,
             struct pyio_member *member)
{
    const struct cio_entry *const entry = &member->entry;
    struct cio_entry_stream stream;
    struct cio_zip_problem problem = {0};
    struct pyio_result result = {0};
    struct cio_done done = {CIO_OK, 0, 0};
    PyObject *bytes = NULL;

    if (pyio_member_locate(st, archive, member) < 0
        || pyio_result_init(&result, (size_t)(entry->compressed_nbytes
                                              * CIO_ZIP_TRUST_RATIO))
               < 0) {
        return NULL;
    }
    cio_entry_stream_init(&stream, entry);
    while (done.status == CIO_OK) {
        if (result.nbytes == result.capacity
            && pyio_result_grow(&result, (size_t)entry->nbytes) < 0) {
            goto out;
        }
        done =
            pyio_stream_fill(st, archive, &stream, result.data + result.nbytes,
                             result.capacity - result.nbytes, &problem);
        result.nbytes += (size_t)done.nbytes;
    }
    if (pyio_zip_check(st, archive, member->name, done, &problem) == 0) {
        bytes = pyio_result_finish(&result);
    }
out:
    cio_entry_stream_close(&stream);
    pyio_result_drop(&result);
    return bytes;
}

PyObject *
pyio_member_read(struct pyio_state *st, struct pyio_archive *archive,
                 struct pyio_member *member)
{
    const struct cio_entry *const entry = &member->entry;
    PyObject *result;

    if (pyio_member_check(st, archive, member) < 0) {
        return NULL;
    }
    if (PYIO_UNLIKELY(!cio_entry_is_whole(entry)
                      && entry->method == CIO_ZIP_DEFLATED
                      && entry->nbytes / CIO_ZIP_TRUST_RATIO
                             >= entry->compressed_nbytes)) {
        return read_growing(st, archive, member);
    }
    if (entry->nbytes > (size_t)PY_SSIZE_T_MAX - sizeof(PyBytesObject)
        || cio_sys->allow_result((size_t)entry->nbytes) < 0) {
        return PyErr_NoMemory();
    }
    result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)entry->nbytes);
    if (result == NULL) {
        return NULL;
    }
    cio_advise_huge(PyBytes_AS_STRING(result), (size_t)entry->nbytes);
    if (PYIO_UNLIKELY(
            pyio_member_read_into(st, archive, member,
                                  (uint8_t *)PyBytes_AS_STRING(result))
            < 0)) {
        Py_DECREF(result);
        return NULL;
    }
    return result;
}
