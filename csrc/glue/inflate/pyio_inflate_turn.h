/* SPDX-License-Identifier: MIT
 * pyio_inflate_turn.h - one turn of filling memory, for the files that take
 * part in it.
 *
 * Threads  What a turn calls runs without the GIL unless it is attached, and
 *          under the reader's lock.
 */
#ifndef PYIO_INFLATE_TURN_H
#define PYIO_INFLATE_TURN_H

#include "glue/inflate/pyio_inflate.h"

enum pyio_turn_end {
    TURN_DONE,    /* full, or enough, or the stream has ended */
    TURN_SIGNALS, /* a slice is done, or a call was interrupted */
    TURN_ASK,     /* input from a Python object */
    TURN_WAIT,    /* nothing there now, from a non-blocking descriptor */
    TURN_SYS,     /* errno */
    TURN_DATA,    /* the decoder's status */
    TURN_DETACH,  /* more than may be done with the GIL held */
    TURN_PLAIN,   /* a view was wanted, but the decoder needs memory */
};

struct pyio_turn {
    struct pyio_reader *r;
    uint8_t *dst;
    size_t nbytes, got;
    bool any;
    bool attached; /* with the GIL: little work, and nothing that waits */
    bool view;  /* BGZF: r->out looks at the queue's memory; dst is unused */
    bool plain; /* BGZF: the decoder's turn */
    enum cio_status status;
    int sys_errno;
};

/* Reads from the descriptor. false: the turn ends as *end says. */
bool pyio_turn_input(struct pyio_turn *turn, enum pyio_turn_end *end);
/* One step of the decoder over the windows; false: as above. */
bool pyio_turn_decode(struct pyio_turn *turn, enum pyio_turn_end *end);
/* The input has ended and the decoder has had all of it. */
enum pyio_turn_end pyio_turn_finish(struct pyio_turn *turn);
/* What a turn's end asks for, attached: 1 (another turn), 0 or -1. */
int pyio_turn_ended(struct pyio_state *st, struct pyio_turn *turn,
                    enum pyio_turn_end end);

/* ------------------------------------------------------------------- BGZF */

/* A turn of a reader with r->blocks. */
enum pyio_turn_end pyio_blocks_turn(struct pyio_turn *turn);
/* The first bytes are a block's, and threads are wanted: r->blocks begins. */
bool pyio_blocks_begin(struct pyio_reader *r);
/* Room for input; always where a block is cut or nothing is unread. */
bool pyio_blocks_room(struct pyio_reader *r);
/* Nothing is inflated into the memory of the call that ends. */
void pyio_blocks_settle(struct pyio_reader *r);
/* r->out as a view of the next block if that takes no time: true. */
bool pyio_blocks_view_ready(struct pyio_reader *r);

#endif
