/* SPDX-License-Identifier: MIT
 * cio_bgzf.c - a queue of blocks: found by the caller, inflated by whoever is
 * free, taken in order.
 *
 * Input and output memory are rings. A piece never crosses a ring's end: where
 * it would, it begins at the front, so that every block lies in one piece.
 */
#include "inflate/cio_bgzf.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/cio_fork.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "base/cio_workers.h"
#include "inflate/cio_decoder_parts.h"

/* Reads of less than this cost more calls than they are worth. */
#define ROOM_LEAST_NBYTES CIO_BGZF_BLOCK_NBYTES

enum block_state { BLOCK_QUEUED, BLOCK_BEGUN, BLOCK_RIGHT, BLOCK_WRONG };

struct block {
    struct cio_whole whole;
    size_t in_at, nbytes; /* of the member */
    uint32_t crc, mtime;
    bool aimed; /* out is the caller's */
    enum block_state state;
};

struct cio_bgzf {
    struct cio_job job;
    pthread_mutex_t lock;
    pthread_cond_t inflated;
    unsigned fork_generation;
    unsigned threads;

    /* Under the lock, with the state of the blocks. Counted since the start.
     */
    uint64_t next, tail; /* [next, tail): nobody has begun them */
    bool waiting;

    /* The caller's own. */
    uint64_t head; /* [head, tail) are queued */
    bool full;     /* the last push left whole blocks in the input */
    unsigned aimed;
    size_t queued_in, queued_out;
    uint8_t *in;
    size_t in_nbytes;
    size_t in_turn; /* where the input goes on at the front */
    bool in_lost;   /* somebody else has that memory, too: never freed */
    uint8_t *out;
    size_t out_nbytes;
    size_t out_at, out_oldest;   /* [oldest, at) is in use, round the end */
    size_t view_start, view_end; /* equal: nobody looks */
    unsigned capacity;
    struct block blocks[];
};

/* ---------------------------------------------------------------- workers */

static struct block *
block_at(struct cio_bgzf *q, uint64_t k)
{
    return &q->blocks[k % q->capacity];
}

/* Inflates the first that nobody has begun; false: there is none. */
static bool
inflate_next(struct cio_job *job)
{
    struct cio_bgzf *const q = (struct cio_bgzf *)job;
    struct block *block = NULL;
    bool right;

    (void)pthread_mutex_lock(&q->lock);
    if (q->next != q->tail) {
        block = block_at(q, q->next++);
        block->state = BLOCK_BEGUN;
    }
    (void)pthread_mutex_unlock(&q->lock);
    if (block == NULL) {
        return false;
    }
    right = cio_inflate_whole(&block->whole) == CIO_OK
            && block->whole.in_used == block->whole.in_nbytes
            && block->whole.crc == block->crc;
    (void)pthread_mutex_lock(&q->lock);
    block->state = right ? BLOCK_RIGHT : BLOCK_WRONG;
    if (q->waiting) {
        (void)pthread_cond_signal(&q->inflated);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return true;
}

static void
make_locks(struct cio_bgzf *q)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&q->inflated, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&q->lock, NULL);
    q->job = (struct cio_job){.step = inflate_next};
    q->waiting = false;
    q->fork_generation = cio_fork_generation;
}

/* In a child of fork: the workers stayed behind, and what they wrote in that
 * moment may be here in part, whatever the states say. What the caller has not
 * taken is begun anew. */
static void
renew_after_fork(struct cio_bgzf *q)
{
    if (q->fork_generation == cio_fork_generation) {
        return;
    }
    make_locks(q);
    q->next = q->head;
    for (uint64_t k = q->head; k < q->tail; k++) {
        block_at(q, k)->state = BLOCK_QUEUED;
    }
}

/* No worker is at the memory any more, nor will be until the next push. */
static void
stop(struct cio_bgzf *q)
{
    cio_job_cancel(&q->job);
    while (!cio_job_join(&q->job, CIO_WAIT_MS)) {
    }
}

struct cio_bgzf *
cio_bgzf_open(unsigned threads)
{
    const unsigned capacity = threads * CIO_BGZF_QUEUE_BLOCKS;
    struct cio_bgzf *const q =
        cio_sys->calloc(1, sizeof *q + capacity * sizeof(struct block));

    if (q == NULL) {
        return NULL;
    }
    q->threads = threads;
    q->capacity = capacity;
    q->in_nbytes = threads * CIO_BGZF_IN_NBYTES;
    q->out_nbytes = CIO_BGZF_VIEW_NBYTES + threads * CIO_BGZF_OUT_NBYTES;
    make_locks(q);
    q->in = cio_sys->malloc(q->in_nbytes);
    q->out = cio_sys->malloc(q->out_nbytes);
    if (q->in == NULL || q->out == NULL) {
        cio_bgzf_close(q);
        return NULL;
    }
    return q;
}

void
cio_bgzf_close(struct cio_bgzf *q)
{
    if (q == NULL) {
        return;
    }
    renew_after_fork(q);
    stop(q);
    (void)pthread_cond_destroy(&q->inflated);
    (void)pthread_mutex_destroy(&q->lock);
    if (!q->in_lost) {
        cio_free(q->in);
    }
    cio_free(q->out);
    cio_free(q);
}

void
cio_bgzf_abandon(struct cio_bgzf *q, struct cio_bgzf_in *in)
{
    uint8_t *const data = cio_sys->malloc(q->in_nbytes);

    renew_after_fork(q);
    stop(q);
    if (data == NULL) { /* checksums tell if somebody does write there */
        q->in_lost = true;
        return;
    }
    memcpy(data, q->in, q->in_nbytes);
    for (uint64_t k = q->head; k < q->tail; k++) {
        struct block *const block = block_at(q, k);

        block->whole.in = data + (block->whole.in - q->in);
    }
    q->in = in->data = data;
    q->in_lost = false;
}

/* ------------------------------------------------------------------ input */

bool
cio_bgzf_begin(struct cio_bgzf *q, struct cio_bgzf_in *in, const uint8_t *data,
               size_t nbytes)
{
    if (nbytes > q->in_nbytes) {
        return false;
    }
    if (nbytes > 0) {
        memcpy(q->in, data, nbytes);
    }
    *in = (struct cio_bgzf_in){q->in, q->in_nbytes, 0, nbytes};
    return true;
}

bool
cio_bgzf_room(struct cio_bgzf *q, struct cio_bgzf_in *in)
{
    const size_t unread = in->end - in->at;
    size_t oldest;

    if (q->head == q->tail) {
        memmove(in->data, in->data + in->at, unread);
        in->at = 0;
        in->end = unread;
        in->size = q->in_nbytes;
        return in->size - in->end >= ROOM_LEAST_NBYTES;
    }
    oldest = block_at(q, q->head)->in_at;
    if (oldest > in->at) { /* gone round; one byte keeps the ends apart */
        in->size = oldest - 1;
        return in->size >= in->end + ROOM_LEAST_NBYTES;
    }
    if (q->in_nbytes - in->end >= ROOM_LEAST_NBYTES) {
        in->size = q->in_nbytes;
        return true;
    }
    if (oldest < unread + 1 + ROOM_LEAST_NBYTES) {
        return false;
    }
    memcpy(in->data, in->data + in->at, unread);
    q->in_turn = in->at;
    in->at = 0;
    in->end = unread;
    in->size = oldest - 1;
    return true;
}

static void
reverse(uint8_t *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes / 2; i++) {
        const uint8_t byte = data[i];

        data[i] = data[nbytes - 1 - i];
        data[nbytes - 1 - i] = byte;
    }
}

void
cio_bgzf_back(struct cio_bgzf *q, struct cio_bgzf_in *in)
{
    size_t oldest;

    renew_after_fork(q);
    stop(q);
    if (q->head == q->tail) {
        return;
    }
    oldest = block_at(q, q->head)->in_at;
    if (oldest > in->at) {
        /* The older part to the end of the ring; then all of it is turned
         * until that part stands at the front: rare, and needs no memory. */
        const size_t part = q->in_turn - oldest;
        const size_t rest = q->in_nbytes - part;

        memmove(in->data + rest, in->data + oldest, part);
        reverse(in->data, rest);
        reverse(in->data + rest, part);
        reverse(in->data, q->in_nbytes);
        in->at = 0;
        in->end += part;
    } else {
        in->at = oldest;
    }
    in->size = q->in_nbytes;
    q->next = q->head = q->tail;
    q->queued_in = q->queued_out = 0;
    q->aimed = 0;
    q->out_oldest = q->view_start;
    q->out_at = q->view_end;
}

/* ------------------------------------------------------------------- push */

/* Where nbytes can stand in the output ring, or NULL. */
static uint8_t *
place(struct cio_bgzf *q, size_t nbytes)
{
    uint8_t *out;

    if (q->out_oldest == q->out_at) { /* nothing is in use */
        q->out_oldest = q->out_at = 0;
    }
    if (q->out_oldest > q->out_at) {
        if (q->out_oldest - q->out_at <= nbytes) {
            return NULL;
        }
    } else if (q->out_nbytes - q->out_at < nbytes) {
        if (q->out_oldest <= nbytes) {
            return NULL;
        }
        q->out_at = 0;
    }
    out = q->out + q->out_at;
    q->out_at += nbytes;
    return out;
}

/* The block behind the others; false: there is no room for its data. */
static bool
queue_block(struct cio_bgzf *q, struct block *block, uint8_t *dst,
            size_t nbytes)
{
    const size_t size = block->whole.out_nbytes;

    block->aimed = size > 0 && q->queued_out + size <= nbytes;
    if (block->aimed) {
        block->whole.out = dst + q->queued_out;
    } else if (size > 0) {
        block->whole.out = place(q, size);
        if (block->whole.out == NULL) {
            return false;
        }
    } /* else it needs no place, and must not hold one */
    block->state = BLOCK_QUEUED;
    q->aimed += block->aimed;
    q->queued_out += size;
    q->queued_in += block->nbytes;
    return true;
}

unsigned
cio_bgzf_push(struct cio_bgzf *q, const struct cio_decoder *d,
              struct cio_bgzf_in *in, uint8_t *dst, size_t nbytes)
{
    unsigned count = 0;

    renew_after_fork(q);
    q->full = false;
    if (d->phase != CIO_PHASE_PADDING
        && !(d->phase == CIO_PHASE_GZIP && d->held_nbytes == 0)) {
        return 0;
    }
    for (;;) {
        struct cio_bgzf_member member;
        struct block *const block = block_at(q, q->tail + count);

        q->full = q->tail + count - q->head == q->capacity;
        if (q->full
            || cio_bgzf_look(in->data + in->at, in->end - in->at, &member)
                   != CIO_BGZF_BLOCK
            || member.out_nbytes
                   > d->max_nbytes - d->out_total - q->queued_out) {
            break;
        }
        *block = (struct block){
            .whole = {.in = in->data + in->at + member.header_nbytes,
                      .in_nbytes = member.data_nbytes,
                      .out_nbytes = member.out_nbytes,
                      .checked = true},
            .in_at = in->at,
            .nbytes = member.nbytes,
            .crc = member.crc,
            .mtime = member.mtime,
        };
        if (!queue_block(q, block, dst, nbytes)) {
            q->full = true;
            break;
        }
        in->at += block->nbytes;
        count++;
    }
    if (count > 0) {
        uint64_t left;

        (void)pthread_mutex_lock(&q->lock);
        q->tail += count;
        left = q->tail - q->next;
        (void)pthread_mutex_unlock(&q->lock);
        if (left > 1) { /* the caller may do the only one */
            cio_job_offer(&q->job, q->threads);
        }
    }
    return count;
}

bool
cio_bgzf_hungry(const struct cio_bgzf *q)
{
    return !q->full
           && q->tail - q->head
                  < (uint64_t)q->threads * CIO_BGZF_QUEUE_BLOCKS / 4;
}

bool
cio_bgzf_wanting(const struct cio_bgzf *q, size_t nbytes)
{
    return q->queued_out < nbytes;
}

size_t
cio_bgzf_queued(const struct cio_bgzf *q)
{
    return q->queued_in;
}

unsigned
cio_bgzf_aimed(const struct cio_bgzf *q)
{
    return q->aimed;
}

/* ------------------------------------------------------------------- take */

static enum cio_bgzf_next
look_at_head(struct cio_bgzf *q)
{
    enum block_state state;

    renew_after_fork(q);
    if (q->head == q->tail) {
        return CIO_BGZF_NONE;
    }
    (void)pthread_mutex_lock(&q->lock);
    state = block_at(q, q->head)->state;
    (void)pthread_mutex_unlock(&q->lock);
    switch (state) {
    case BLOCK_RIGHT:
        return CIO_BGZF_TAKEN;
    case BLOCK_WRONG:
        return CIO_BGZF_WRONG;
    case BLOCK_QUEUED:
    case BLOCK_BEGUN:
        break;
    }
    return CIO_BGZF_BUSY;
}

/* The head is the caller's, as if the decoder had made it. */
static void
take_head(struct cio_bgzf *q, struct cio_decoder *d)
{
    const struct block *const block = block_at(q, q->head++);

    q->aimed -= block->aimed;
    q->queued_in -= block->nbytes;
    q->queued_out -= block->whole.out_nbytes;
    d->in_total += block->nbytes;
    d->out_total += block->whole.out_nbytes;
    d->members++;
    d->mtime = block->mtime;
    if (!d->first_came && block->whole.out_nbytes > 0) {
        d->first_came = true;
        d->first_mtime = d->mtime;
    }
    d->has_mtime = d->bgzf = true;
    d->phase = CIO_PHASE_PADDING;
}

enum cio_bgzf_next
cio_bgzf_copy(struct cio_bgzf *q, struct cio_decoder *d, uint8_t *dst,
              size_t room, size_t *nbytes)
{
    const enum cio_bgzf_next next = look_at_head(q);
    const struct block *block;

    if (next == CIO_BGZF_NONE) {
        return next;
    }
    block = block_at(q, q->head);
    if (block->whole.out_nbytes > room) {
        return CIO_BGZF_LARGE;
    }
    if (next != CIO_BGZF_TAKEN) {
        return next;
    }
    *nbytes = block->whole.out_nbytes;
    if (*nbytes > 0 && !block->aimed) {
        memcpy(dst, block->whole.out, *nbytes);
        q->view_start = q->view_end = q->out_oldest =
            (size_t)(block->whole.out - q->out) + *nbytes;
    }
    take_head(q, d);
    return next;
}

enum cio_bgzf_next
cio_bgzf_view(struct cio_bgzf *q, struct cio_decoder *d,
              struct cio_bgzf_view *view)
{
    const enum cio_bgzf_next next = look_at_head(q);
    const struct block *block;
    size_t at;

    if (next != CIO_BGZF_TAKEN) {
        return next;
    }
    block = block_at(q, q->head);
    if (block->whole.out_nbytes == 0) {
        *view = (struct cio_bgzf_view){NULL, 0, true};
        take_head(q, d);
        return next;
    }
    at = (size_t)(block->whole.out - q->out);
    *view = (struct cio_bgzf_view){
        .data = block->whole.out,
        .nbytes = block->whole.out_nbytes,
        .joins = q->view_start != q->view_end && q->view_end == at
                 && at + block->whole.out_nbytes - q->view_start
                        <= CIO_BGZF_VIEW_NBYTES,
    };
    if (!view->joins) {
        q->view_start = at;
    }
    q->view_end = at + view->nbytes;
    q->out_oldest = q->view_start;
    take_head(q, d);
    return next;
}

bool
cio_bgzf_ready(struct cio_bgzf *q)
{
    return look_at_head(q) == CIO_BGZF_TAKEN;
}

bool
cio_bgzf_help(struct cio_bgzf *q)
{
    renew_after_fork(q);
    return inflate_next(&q->job);
}

bool
cio_bgzf_wait(struct cio_bgzf *q, int timeout_ms)
{
    struct timespec until;
    const struct block *block;
    int error = 0;
    bool begun;

    renew_after_fork(q);
    if (q->head == q->tail) {
        return true;
    }
    block = block_at(q, q->head);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&q->lock);
    q->waiting = true;
    while (block->state == BLOCK_BEGUN && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&q->inflated, &q->lock, &until);
    }
    q->waiting = false;
    begun = block->state == BLOCK_BEGUN;
    (void)pthread_mutex_unlock(&q->lock);
    return !begun;
}
