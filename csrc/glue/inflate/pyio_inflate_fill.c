/* SPDX-License-Identifier: MIT
 * pyio_inflate_fill.c - the loop that fills memory with decoded data.
 *
 * One turn runs detached for as long as it can: decode, pull input from the
 * descriptor, decode. It comes back when the memory is full, when Python is
 * needed (input from an object, signals), or at an error.
 */
#include "glue/inflate/pyio_inflate_turn.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"

/* ----------------------------------------------------------------- windows */

static int
window_take(struct pyio_window *window, size_t nbytes)
{
    if (window->data != NULL) {
        return 0;
    }
    window->lease = cio_buffer_take(nbytes);
    if (window->lease == NULL) {
        return -1;
    }
    window->data = window->lease->data;
    window->size = window->lease->nbytes;
    window->at = window->end = 0;
    return 0;
}

void
pyio_window_drop(struct pyio_window *window)
{
    if (window->lease != NULL) {
        cio_buffer_give(window->lease);
    } else if (!window->borrowed) {
        cio_free(window->data);
    }
    memset(window, 0, sizeof *window);
}

void
pyio_reader_release(struct pyio_reader *r)
{
    pyio_blocks_end(r);
    cio_decoder_release(&r->decoder);
    pyio_window_drop(&r->in);
    pyio_window_drop(&r->out);
}

/* ------------------------------------------------------------- a turn */

/* The unread input to the front of the window. */
static void
compact(struct pyio_window *in)
{
    const size_t unread = in->end - in->at;

    if (in->at > 0) {
        memmove(in->data, in->data + in->at, unread);
        in->at = 0;
        in->end = unread;
    }
}

static enum pyio_turn_end
input_failed(struct pyio_turn *t, int error)
{
    t->sys_errno = error;
    return error == EINTR                            ? TURN_SIGNALS
           : error == EAGAIN || error == EWOULDBLOCK ? TURN_WAIT
                                                     : TURN_SYS;
}

bool
pyio_turn_input(struct pyio_turn *t, enum pyio_turn_end *end)
{
    struct pyio_reader *const r = t->r;
    struct cio_done done;

    if (t->any && t->got > 0) {
        *end = TURN_DONE;
        return false;
    }
    if (r->ahead_errno != 0) {
        *end = input_failed(t, r->ahead_errno);
        r->ahead_errno = 0;
        return false;
    }
    if (r->blocks != NULL) {
        (void)pyio_blocks_room(r);
    } else {
        compact(&r->in);
    }
    if (r->fd < 0) {
        *end = TURN_ASK;
        return false;
    }
    done = t->attached ? pyio_reader_pull_nowait(r) : pyio_reader_pull(r);
    if (done.status == CIO_EOF) {
        r->in_ended = true;
    } else if (done.status != CIO_OK) {
        if (t->attached) { /* not in the page cache, or never so asked */
            r->small = false;
            *end = TURN_DETACH;
            return false;
        }
        *end = input_failed(t, done.sys_errno);
        return false;
    }
    r->local |= t->attached;
    return true;
}

enum pyio_turn_end
pyio_turn_finish(struct pyio_turn *t)
{
    t->status = cio_decoder_finish(&t->r->decoder);
    if (t->status == CIO_EOF) {
        t->r->ended = true;
        return TURN_DONE;
    }
    return TURN_DATA;
}

bool
pyio_turn_decode(struct pyio_turn *t, enum pyio_turn_end *end)
{
    struct pyio_reader *const r = t->r;
    const size_t room =
        t->attached ? cio_min_size(t->nbytes, CIO_INFLATE_SMALL_OUT_NBYTES)
                    : t->nbytes;
    struct cio_span span = {r->in.data, r->in.end, r->in.at,
                            t->dst,     room,      t->got};

    t->status = cio_decoder_step(&r->decoder, &span);
    r->in.at = span.in_used;
    t->got = span.out_used;
    if (t->status == CIO_OK && r->in_ended && r->in.at == r->in.end
        && t->got < room && !cio_decoder_pending(&r->decoder)) {
        *end = pyio_turn_finish(t);
        return false;
    }
    if (t->status == CIO_OK || t->status == CIO_MORE) {
        *end = TURN_DETACH;
        return t->got < room || room == t->nbytes;
    }
    r->ended = t->status == CIO_EOF;
    *end = r->ended ? TURN_DONE : TURN_DATA;
    return false;
}

static bool
wants_input(const struct pyio_turn *t)
{
    const struct pyio_reader *const r = t->r;

    return t->got < t->nbytes && !r->in_ended && r->in.at == r->in.end
           && !cio_decoder_pending(&r->decoder);
}

static enum pyio_turn_end
run_turn(struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    const uint64_t until =
        r->decoder.in_total + r->decoder.out_total + CIO_SLICE_NBYTES;
    enum pyio_turn_end end = TURN_DONE;

    for (;;) {
        if (wants_input(t) && !pyio_turn_input(t, &end)) {
            return end;
        }
        /* Looked at once, when the first bytes are there. */
        if (!t->attached && pyio_blocks_begin(r)) {
            return pyio_blocks_turn(t);
        }
        if (!pyio_turn_decode(t, &end)) {
            return end;
        }
        if (t->got == t->nbytes) {
            return TURN_DONE;
        }
        if (r->decoder.in_total + r->decoder.out_total >= until) {
            return TURN_SIGNALS;
        }
    }
}

/* ------------------------------------------------------------------- fill */

static int
ask_for_input(struct pyio_state *st, struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    size_t got;

    if (pyio_reader_ask(st, r, &got) < 0) {
        return -1;
    }
    r->in_ended = got == 0;
    return 0;
}

static enum pyio_inflate_style
style_of(const struct pyio_reader *r)
{
    return r->decoder.format == CIO_FORMAT_GZIP ? PYIO_INFLATE_GZIP
                                                : PYIO_INFLATE_STREAM;
}

/* A window of our own for what the decoder writes. */
static int
leave_view(struct pyio_turn *t)
{
    struct pyio_window *const out = &t->r->out;

    pyio_window_drop(out);
    if (window_take(out, t->r->chunk_nbytes) < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    t->view = false;
    t->dst = out->data;
    t->nbytes = out->size;
    return 1;
}

int
pyio_turn_ended(struct pyio_state *st, struct pyio_turn *t,
                enum pyio_turn_end end)
{
    struct pyio_reader *const r = t->r;

    switch (end) {
    case TURN_DONE:
        return 0;
    case TURN_SIGNALS:
        return PyErr_CheckSignals() < 0 ? -1 : 1;
    case TURN_ASK:
        return ask_for_input(st, t) < 0 ? -1 : 1;
    case TURN_WAIT:
        if (t->got > 0) {
            return 0;
        }
        return pyio_reader_wait(r) < 0 ? -1 : 1;
    case TURN_SYS:
        errno = t->sys_errno;
        (void)PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, r->name);
        return -1;
    case TURN_DATA:
        if (t->status != CIO_ERR_NOMEM) {
            r->failed = t->status;
        }
        if (t->got > 0) {
            return 0; /* it comes again, when what was before it is read */
        }
        return pyio_inflate_raise(&r->decoder, t->status, style_of(r),
                                  r->name);
    case TURN_DETACH:
        return 1;
    case TURN_PLAIN:
        return leave_view(t);
    }
    Py_UNREACHABLE();
}

/* Giving the GIL up for little work costs more than the work, and much more
 * beside a busy thread. */
static bool
takes_no_time(const struct pyio_turn *t)
{
    const struct pyio_reader *const r = t->r;

    return r->blocks == NULL && t->got < CIO_INFLATE_SMALL_OUT_NBYTES
           && (r->small
               || (r->fd < 0
                   && r->in.end - r->in.at <= CIO_INFLATE_AT_HAND_NBYTES));
}

/* Turns until the call is served. */
static int
run(struct pyio_state *st, struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    int result = 1;

    while (result > 0) {
        enum pyio_turn_end end;

        t->attached = takes_no_time(t);
        if (t->attached) {
            end = run_turn(t);
        } else {
            Py_BEGIN_ALLOW_THREADS
            end = r->blocks != NULL ? pyio_blocks_turn(t) : run_turn(t);
            Py_END_ALLOW_THREADS
        }
        result = pyio_turn_ended(st, t, end);
    }
    pyio_blocks_settle(r);
    if (r->ended || r->failed != CIO_OK) {
        /* What is at its end holds nothing but what is still to be read. */
        cio_decoder_release(&r->decoder);
        pyio_blocks_end(r);
        pyio_window_drop(&r->in);
    }
    return result;
}

int
pyio_reader_fill(struct pyio_state *st, struct pyio_reader *r, uint8_t *dst,
                 size_t nbytes, bool any, size_t *got)
{
    struct pyio_turn t = {.r = r, .dst = dst, .nbytes = nbytes, .any = any};
    int64_t left;
    int result;

    *got = 0;
    if (r->ended || nbytes == 0) {
        return 0;
    }
    if (r->failed != CIO_OK) {
        return pyio_inflate_raise(&r->decoder, r->failed, style_of(r),
                                  r->name);
    }
    left = r->in.data == NULL ? pyio_reader_left(r) : -1;
    if (r->in.data == NULL) {
        r->small = left >= 0 && left <= (int64_t)CIO_INFLATE_AT_HAND_NBYTES;
    }
    if (window_take(&r->in, left >= 0 ? (size_t)cio_min_u64((uint64_t)left + 1,
                                                            r->chunk_nbytes)
                                      : r->chunk_nbytes)
        < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    result = run(st, &t);
    *got = t.got;
    return result;
}

static int
fill_view(struct pyio_state *st, struct pyio_reader *r)
{
    struct pyio_turn t = {.r = r, .any = true, .view = true};
    int result;

    if (r->failed != CIO_OK) {
        return pyio_inflate_raise(&r->decoder, r->failed, style_of(r),
                                  r->name);
    }
    r->decoder.first_came = false;
    if (pyio_blocks_view_ready(r)) {
        return 1;
    }
    result = run(st, &t);
    if (!t.view) {
        r->out.end = t.got; /* with an exception, too */
    }
    return result < 0 ? -1 : t.got > 0;
}

int
pyio_reader_fill_out(struct pyio_state *st, struct pyio_reader *r)
{
    struct pyio_window *const out = &r->out;
    size_t room, got;
    int result;

    if (out->at < out->end) {
        return 1;
    }
    if (r->ended) {
        pyio_window_drop(out);
        return 0;
    }
    if (r->blocks != NULL) {
        return fill_view(st, r);
    }
    if (out->lease == NULL) {
        /* The queue's memory, or what a failed call had saved: of that size,
         * and no block may fit there. */
        pyio_window_drop(out);
    }
    out->at = out->end = 0;
    if (window_take(out, r->chunk_nbytes) < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    room = out->size;
    if (r->threads > 1 && r->decoder.in_total == 0) {
        /* The first bytes may tell that others inflate, elsewhere. */
        room = cio_min_size(room, CIO_BGZF_BLOCK_NBYTES);
    }
    r->decoder.first_came = false;
    result = pyio_reader_fill(st, r, out->data, room, true, &got);
    out->end = got; /* with an exception, too: it comes at the next read */
    return result < 0 ? -1 : got > 0;
}
