/* SPDX-License-Identifier: MIT
 * cio_bgzf.h - blocks of a BGZF stream, inflated ahead by several threads.
 *
 * Why      BGZF is gzip whose members say how long they are, packed and not,
 *          and hold 64 KiB at most: they can be found ahead and inflated side
 *          by side. A queue of them is kept filled, so that the workers go on
 *          while the caller reads the source, copies, or is away.
 * Owner    The queue owns the memory that input is read to, and that blocks
 *          are inflated to unless they are aimed at the caller's. Between
 *          calls workers may be at both; cio_bgzf_back and cio_bgzf_close wait
 *          for them.
 * Units    Bytes.
 * Errors   None: a block that isn't right goes back to the input, and so does
 *          all behind it, for cio_decoder_step, which says what it is.
 * Threads  One caller at a time. A child of fork goes on without the workers:
 *          what they had under way is inflated again.
 */
#ifndef CIO_BGZF_H
#define CIO_BGZF_H

#include "inflate/cio_decoder.h"

struct cio_bgzf;

enum cio_bgzf_start {
    CIO_BGZF_NO,
    CIO_BGZF_CUT,   /* so far it may be a block: more input is needed */
    CIO_BGZF_BLOCK, /* a whole one */
};
struct cio_bgzf_member {
    size_t nbytes, header_nbytes, data_nbytes;
    uint32_t out_nbytes, crc, mtime;
};
/* member is filled in for a whole block. */
enum cio_bgzf_start cio_bgzf_look(const uint8_t *in, size_t nbytes,
                                  struct cio_bgzf_member *member);
/* The header of a block, with or without the rest of it. */
bool cio_bgzf_starts(const uint8_t *in, size_t nbytes);

/* threads: with the caller. NULL: out of memory. */
struct cio_bgzf *cio_bgzf_open(unsigned threads);
/* NULL is fine. */
void cio_bgzf_close(struct cio_bgzf *queue);

/* The caller's view of the memory for input: bytes come in at `end`, below
 * `size`; what is unread begins at `at`. */
struct cio_bgzf_in {
    uint8_t *data;
    size_t size, at, end;
};
/* Starts with what the caller has read already; more than fits: false. */
bool cio_bgzf_begin(struct cio_bgzf *queue, struct cio_bgzf_in *in,
                    const uint8_t *data, size_t nbytes);
/* Room for more input behind in->end. false: none until blocks are taken, or
 * what is unread is; there is always some behind a block that is cut. */
bool cio_bgzf_room(struct cio_bgzf *queue, struct cio_bgzf_in *in);

/* Somebody keeps the memory that he was to read to: the input moves to new
 * memory, and the old is never freed. */
void cio_bgzf_abandon(struct cio_bgzf *queue, struct cio_bgzf_in *in);

/* Queues the whole blocks that stand at in->at, unless the decoder is inside a
 * member; their number. Those whose data would fit wholly into dst, behind
 * what is queued already, are inflated there: it must stay until they are
 * taken or back. */
unsigned cio_bgzf_push(struct cio_bgzf *queue,
                       const struct cio_decoder *decoder,
                       struct cio_bgzf_in *in, uint8_t *dst, size_t nbytes);
/* Few blocks are waiting, and there is room for more. */
bool cio_bgzf_hungry(const struct cio_bgzf *queue);
/* Less is queued than nbytes of data. */
bool cio_bgzf_wanting(const struct cio_bgzf *queue, size_t nbytes);
/* Of blocks that are queued: packed bytes; and how many are aimed at dst. */
size_t cio_bgzf_queued(const struct cio_bgzf *queue);
unsigned cio_bgzf_aimed(const struct cio_bgzf *queue);

enum cio_bgzf_next {
    CIO_BGZF_NONE,  /* nothing is queued */
    CIO_BGZF_BUSY,  /* not inflated yet: help, or wait */
    CIO_BGZF_LARGE, /* it doesn't fit into dst */
    CIO_BGZF_WRONG, /* cio_bgzf_back, and the decoder's turn */
    CIO_BGZF_TAKEN,
};
/* The next block in order, which the decoder then counts as its own. Its data
 * are at dst afterwards. */
enum cio_bgzf_next cio_bgzf_copy(struct cio_bgzf *queue,
                                 struct cio_decoder *decoder, uint8_t *dst,
                                 size_t room, size_t *nbytes);
/* The same without a copy: the data stay where they are until a view that
 * doesn't join it is taken, or a copy. */
struct cio_bgzf_view {
    uint8_t *data;
    size_t nbytes;
    bool joins; /* the view before: the two are one piece */
};
enum cio_bgzf_next cio_bgzf_view(struct cio_bgzf *queue,
                                 struct cio_decoder *decoder,
                                 struct cio_bgzf_view *view);
/* The next block can be taken at once. */
bool cio_bgzf_ready(struct cio_bgzf *queue);
/* Inflates a block that nobody has begun; false: there is none. */
bool cio_bgzf_help(struct cio_bgzf *queue);
/* Until the next block is inflated; false: it took longer. */
bool cio_bgzf_wait(struct cio_bgzf *queue, int timeout_ms);

/* Everything that is queued is input again. */
void cio_bgzf_back(struct cio_bgzf *queue, struct cio_bgzf_in *in);

#endif
