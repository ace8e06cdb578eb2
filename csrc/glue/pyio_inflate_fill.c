/* SPDX-License-Identifier: MIT
 * pyio_inflate_fill.c - the loop that fills memory with decoded data.
 *
 * One turn runs detached for as long as it can: decode, pull input from the
 * descriptor, decode. It comes back when the memory is full, when Python is
 * needed (input from an object, signals), or at an error.
 */
#include "glue/pyio_inflate.h"

#include <errno.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "inflate/cio_bgzf.h"

enum turn_end {
    TURN_DONE,    /* full, or enough, or the stream has ended */
    TURN_SIGNALS, /* a slice is done, or a call was interrupted */
    TURN_ASK,     /* input from a Python object */
    TURN_WAIT,    /* nothing there now, from a non-blocking descriptor */
    TURN_SYS,     /* errno */
    TURN_DATA,    /* the decoder's status */
};

struct turn {
    struct pyio_reader *r;
    uint8_t *dst;
    size_t nbytes, got;
    bool any;
    bool starved; /* BGZF: no whole block in the input window */
    enum cio_status status;
    int sys_errno;
};

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
    } else {
        cio_free(window->data);
    }
    memset(window, 0, sizeof *window);
}

/* Memory of our own in place of the pooled piece, with what is unread. Stays
 * as it is where there is none: slower, but right. */
static bool
window_enlarge(struct pyio_window *window, size_t nbytes)
{
    const size_t unread = window->end - window->at;
    uint8_t *data;

    if (window->size >= nbytes) {
        return true;
    }
    data = cio_sys->malloc(nbytes);
    if (data == NULL) {
        return false;
    }
    if (unread > 0) {
        memcpy(data, window->data + window->at, unread);
    }
    pyio_window_drop(window);
    window->data = data;
    window->size = nbytes;
    window->end = unread;
    return true;
}

void
pyio_reader_release(struct pyio_reader *r)
{
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

/* false: the turn ends as *end says. */
static bool
more_input(struct turn *t, enum turn_end *end)
{
    struct pyio_reader *const r = t->r;
    struct cio_done done;

    if (t->any && t->got > 0) {
        *end = TURN_DONE;
        return false;
    }
    compact(&r->in);
    if (r->fd < 0) {
        *end = TURN_ASK;
        return false;
    }
    done = pyio_reader_pull(r);
    if (done.status == CIO_EOF) {
        r->in_ended = true;
    } else if (done.status != CIO_OK) {
        t->sys_errno = done.sys_errno;
        *end = done.sys_errno == EINTR ? TURN_SIGNALS
               : done.sys_errno == EAGAIN || done.sys_errno == EWOULDBLOCK
                   ? TURN_WAIT
                   : TURN_SYS;
        return false;
    }
    return true;
}

/* Is it BGZF? Looked at once, when the first bytes are there. */
static void
look_for_blocks(struct pyio_reader *r)
{
    struct pyio_window *const in = &r->in;

    if (r->threads > 1 && !r->blocks && r->decoder.in_total == 0
        && cio_bgzf_starts(in->data + in->at, in->end - in->at)
        && window_enlarge(in, CIO_BGZF_IN_NBYTES)) {
        r->blocks = true;
    }
}

/* One step of the decoder over what is in the windows. */
static enum cio_status
decode(struct turn *t)
{
    struct pyio_reader *const r = t->r;
    struct cio_span span = {r->in.data, r->in.end, r->in.at,
                            t->dst,     t->nbytes, t->got};
    enum cio_status status = CIO_OK;

    if (!r->blocks || !cio_bgzf_step(&r->decoder, &span, r->threads)) {
        if (r->blocks && cio_decoder_between(&r->decoder) && !r->in_ended
            && span.in_nbytes - span.in_used < CIO_BGZF_BLOCK_NBYTES) {
            t->starved = true; /* a block is cut by the window: read on */
            return CIO_OK;
        }
        status = cio_decoder_step(&r->decoder, &span);
    }
    r->in.at = span.in_used;
    t->got = span.out_used;
    return status;
}

static bool
wants_input(const struct turn *t)
{
    const struct pyio_reader *const r = t->r;
    const size_t unread = r->in.end - r->in.at;

    if (t->got == t->nbytes || r->in_ended) {
        return false;
    }
    return t->starved || (unread == 0 && !cio_decoder_pending(&r->decoder));
}

static enum turn_end
run_turn(struct turn *t)
{
    struct pyio_reader *const r = t->r;
    uint64_t until =
        r->decoder.in_total + r->decoder.out_total + CIO_SLICE_NBYTES;
    enum turn_end end = TURN_DONE;

    for (;;) {
        if (wants_input(t) && !more_input(t, &end)) {
            return end;
        }
        t->starved = false;
        look_for_blocks(r);
        t->status = decode(t);
        if (t->status == CIO_OK && r->in_ended && r->in.at == r->in.end
            && t->got < t->nbytes && !cio_decoder_pending(&r->decoder)) {
            t->status = cio_decoder_finish(&r->decoder);
        }
        if (t->status == CIO_EOF) {
            r->ended = true;
            return TURN_DONE;
        }
        if (t->status != CIO_OK && t->status != CIO_MORE) {
            return TURN_DATA;
        }
        if (t->got == t->nbytes
            || (r->blocks && t->got > 0
                && t->nbytes - t->got < CIO_BGZF_BLOCK_NBYTES)) {
            return TURN_DONE;
        }
        if (r->decoder.in_total + r->decoder.out_total >= until) {
            return TURN_SIGNALS;
        }
    }
}

/* ------------------------------------------------------------------- fill */

static int
ask_for_input(struct pyio_state *st, struct turn *t)
{
    struct pyio_reader *const r = t->r;
    size_t got;

    t->starved = false;
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

static int
end_turn(struct pyio_state *st, struct turn *t, enum turn_end end)
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
    }
    Py_UNREACHABLE();
}

int
pyio_reader_fill(struct pyio_state *st, struct pyio_reader *r, uint8_t *dst,
                 size_t nbytes, bool any, size_t *got)
{
    struct turn t = {.r = r, .dst = dst, .nbytes = nbytes, .any = any};
    int64_t left;
    int result = 1;

    *got = 0;
    if (r->ended || nbytes == 0) {
        return 0;
    }
    if (r->failed != CIO_OK) {
        return pyio_inflate_raise(&r->decoder, r->failed, style_of(r),
                                  r->name);
    }
    left = r->in.data == NULL ? pyio_reader_left(r) : -1;
    if (window_take(&r->in, left >= 0 ? (size_t)cio_min_u64((uint64_t)left + 1,
                                                            r->chunk_nbytes)
                                      : r->chunk_nbytes)
        < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    while (result > 0) {
        enum turn_end end;

        Py_BEGIN_ALLOW_THREADS
        end = run_turn(&t);
        Py_END_ALLOW_THREADS
        result = end_turn(st, &t, end);
    }
    *got = t.got;
    if (r->ended || r->failed != CIO_OK) {
        /* What is at its end holds nothing but what is still to be read. */
        cio_decoder_release(&r->decoder);
        pyio_window_drop(&r->in);
    }
    return result;
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
    out->at = out->end = 0;
    if (r->blocks) {
        (void)window_enlarge(out, CIO_BGZF_OUT_NBYTES);
    }
    if (window_take(out, r->chunk_nbytes) < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    room = out->size;
    if (r->threads > 1 && r->decoder.in_total == 0) {
        /* The first bytes may tell that a larger window is of use. */
        room = cio_min_size(room, CIO_BGZF_BLOCK_NBYTES);
    }
    r->decoder.first_came = false;
    result = pyio_reader_fill(st, r, out->data, room, true, &got);
    out->end = got; /* with an exception, too: it comes at the next read */
    return result < 0 ? -1 : got > 0;
}
