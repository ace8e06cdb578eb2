/* SPDX-License-Identifier: MIT
 * pyio_inflate_blocks.c - turns of a reader whose BGZF blocks are inflated
 * ahead by several threads.
 *
 * The queue is fed before anything is taken from it, so that the workers have
 * blocks while this thread inflates one itself, copies, or is back in Python.
 * The source is read ahead only where that can't wait.
 */
#include "glue/inflate/pyio_inflate_turn.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "inflate/cio_bgzf.h"

/* ------------------------------------------------------------------ input */

static struct cio_bgzf_in
input_of(const struct pyio_reader *r)
{
    return (struct cio_bgzf_in){r->in.data, r->in.size, r->in.at, r->in.end};
}

static void
set_input(struct pyio_reader *r, const struct cio_bgzf_in *in)
{
    r->in.data = in->data;
    r->in.size = in->size;
    r->in.at = in->at;
    r->in.end = in->end;
}

bool
pyio_blocks_begin(struct pyio_reader *r)
{
    struct pyio_window *const in = &r->in;
    const size_t unread = in->end - in->at;
    struct cio_bgzf_in input;

    if (r->threads <= 1 || r->blocks != NULL || r->decoder.in_total != 0
        || !cio_bgzf_starts(in->data + in->at, unread)) {
        return false;
    }
    /* Where there is no memory for it: slower, but right. */
    r->blocks = cio_bgzf_open(r->threads);
    if (r->blocks == NULL) {
        return false;
    }
    if (!cio_bgzf_begin(r->blocks, &input, in->data + in->at, unread)) {
        pyio_blocks_end(r);
        return false;
    }
    pyio_window_drop(in);
    in->borrowed = true;
    set_input(r, &input);
    return true;
}

void
pyio_blocks_end(struct pyio_reader *r)
{
    if (r->blocks == NULL) {
        return;
    }
    cio_bgzf_close(r->blocks);
    r->blocks = NULL;
    if (r->in.borrowed) {
        pyio_window_drop(&r->in);
    }
    if (r->out.borrowed) {
        pyio_window_drop(&r->out);
    }
}

bool
pyio_blocks_room(struct pyio_reader *r)
{
    struct cio_bgzf_in in = input_of(r);
    const bool room = cio_bgzf_room(r->blocks, &in);

    set_input(r, &in);
    return room;
}

void
pyio_blocks_abandon(struct pyio_reader *r)
{
    struct cio_bgzf_in in = input_of(r);

    cio_bgzf_abandon(r->blocks, &in);
    set_input(r, &in);
}

static void
back(struct pyio_reader *r)
{
    struct cio_bgzf_in in = input_of(r);

    cio_bgzf_back(r->blocks, &in);
    set_input(r, &in);
}

void
pyio_blocks_settle(struct pyio_reader *r)
{
    if (r->blocks != NULL && cio_bgzf_aimed(r->blocks) > 0) {
        back(r);
    }
}

size_t
pyio_reader_unread(const struct pyio_reader *r)
{
    return r->in.end - r->in.at
           + (r->blocks == NULL ? 0 : cio_bgzf_queued(r->blocks));
}

static bool
can_read_ahead(const struct pyio_reader *r)
{
    struct pollfd one = {r->fd, POLLIN, 0};

    return r->fd >= 0 && !r->in_ended && r->ahead_errno == 0
           && (r->regular || cio_sys->poll(&one, 1, 0) == 1);
}

static void
push(struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    struct cio_bgzf_in in = input_of(r);
    const bool aim = !t->view && !t->any;

    (void)cio_bgzf_push(r->blocks, &r->decoder, &in,
                        aim ? t->dst + t->got : NULL,
                        aim ? t->nbytes - t->got : 0);
    set_input(r, &in);
}

/* Blocks for the workers, from what was read and what can be read now. */
static void
feed(struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;

    push(t);
    while (cio_decoder_between(&r->decoder) && cio_bgzf_hungry(r->blocks)
           && can_read_ahead(r)) {
        struct cio_done done;

        if (!pyio_blocks_room(r)) {
            return;
        }
        r->in.size = cio_min_size(r->in.size, r->in.end + CIO_CHUNK_NBYTES);
        done = pyio_reader_pull(r);
        if (done.status == CIO_EOF) {
            r->in_ended = true;
        } else if (done.status != CIO_OK) {
            /* Said when what was before it is read. */
            r->ahead_errno = done.sys_errno;
        }
        push(t);
    }
}

/* ------------------------------------------------------------------- take */

static enum cio_bgzf_next
take_view(struct pyio_turn *t)
{
    struct pyio_window *const out = &t->r->out;
    struct cio_bgzf_view view;
    const enum cio_bgzf_next next =
        cio_bgzf_view(t->r->blocks, &t->r->decoder, &view);

    if (next != CIO_BGZF_TAKEN || view.nbytes == 0) {
        return next;
    }
    if (out->borrowed && view.joins && out->data + out->end == view.data) {
        out->end += view.nbytes; /* what is before it can be gone back to */
    } else {
        pyio_window_drop(out);
        *out = (struct pyio_window){.data = view.data,
                                    .size = view.nbytes,
                                    .end = view.nbytes,
                                    .borrowed = true};
    }
    t->got += view.nbytes;
    return next;
}

static enum cio_bgzf_next
take(struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    enum cio_bgzf_next next;
    size_t nbytes = 0;

    if (t->view) {
        return take_view(t);
    }
    next = cio_bgzf_copy(r->blocks, &r->decoder, t->dst + t->got,
                         t->nbytes - t->got, &nbytes);
    t->got += nbytes;
    return next;
}

/* Nothing is queued: more input, or the decoder's turn, or the end. */
static bool
refill(struct pyio_turn *t, enum pyio_turn_end *end)
{
    struct pyio_reader *const r = t->r;
    const size_t unread = r->in.end - r->in.at;
    struct cio_bgzf_member member;

    if (!r->in_ended
        && (cio_decoder_between(&r->decoder)
                ? cio_bgzf_look(r->in.data + r->in.at, unread, &member)
                      == CIO_BGZF_CUT
                : unread == 0 && !cio_decoder_pending(&r->decoder))) {
        return pyio_turn_input(t, end);
    }
    if (r->in_ended && unread == 0 && !cio_decoder_pending(&r->decoder)) {
        *end = pyio_turn_finish(t);
        return false;
    }
    t->plain = true;
    return true;
}

/* For a call that needs more than is queued, however long that takes. */
static bool
should_ask(const struct pyio_turn *t)
{
    const struct pyio_reader *const r = t->r;

    return r->fd < 0 && !t->any && !r->in_ended && cio_bgzf_hungry(r->blocks)
           && cio_bgzf_wanting(r->blocks, t->nbytes - t->got);
}

enum pyio_turn_end
pyio_blocks_turn(struct pyio_turn *t)
{
    struct pyio_reader *const r = t->r;
    const uint64_t until =
        r->decoder.in_total + r->decoder.out_total + CIO_SLICE_NBYTES;
    enum pyio_turn_end end = TURN_DONE;

    for (;;) {
        if (t->plain) {
            if (t->view) {
                return TURN_PLAIN;
            }
            t->plain = false;
            if (!pyio_turn_decode(t, &end)) {
                return end;
            }
        } else {
            feed(t);
            if (should_ask(t) && pyio_blocks_room(r)) {
                return TURN_ASK;
            }
            switch (take(t)) {
            case CIO_BGZF_TAKEN:
                break;
            case CIO_BGZF_LARGE:
                return TURN_DONE;
            case CIO_BGZF_BUSY:
                if (!cio_bgzf_help(r->blocks)
                    && !cio_bgzf_wait(r->blocks, CIO_WAIT_MS)) {
                    return TURN_SIGNALS;
                }
                continue;
            case CIO_BGZF_WRONG:
                back(r);
                t->plain = true;
                continue;
            case CIO_BGZF_NONE:
                if (!refill(t, &end)) {
                    return end;
                }
                continue;
            }
        }
        if ((t->any && t->got > 0) || (!t->view && t->got == t->nbytes)) {
            return TURN_DONE;
        }
        if (r->decoder.in_total + r->decoder.out_total >= until) {
            return TURN_SIGNALS;
        }
    }
}

bool
pyio_blocks_view_ready(struct pyio_reader *r)
{
    struct pyio_turn t = {.r = r, .any = true, .view = true};

    if (!cio_bgzf_ready(r->blocks)
        || (cio_bgzf_hungry(r->blocks) && r->fd >= 0 && !r->in_ended)) {
        return false;
    }
    (void)take_view(&t);
    return t.got > 0;
}
