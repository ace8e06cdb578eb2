/* SPDX-License-Identifier: MIT
 * cio_bgzf.h - blocks of a BGZF stream, inflated by several threads.
 *
 * Why      BGZF is gzip whose members say how long they are, packed and not,
 *          and hold 64 KiB at most: they can be found ahead and inflated side
 *          by side.
 * Owner    As cio_decoder.h.
 * Errors   None: what isn't right stays in the input for cio_decoder_step,
 *          which says what it is.
 * Threads  Comes back when no worker is at the windows any more.
 */
#ifndef CIO_BGZF_H
#define CIO_BGZF_H

#include "inflate/cio_decoder.h"

/* A BGZF block's header stands at the start. */
bool cio_bgzf_starts(const uint8_t *in, size_t nbytes);

/* Between members: inflates the blocks that lie whole in the input window and
 * fit into the output window. false: there was none. */
bool cio_bgzf_step(struct cio_decoder *decoder, struct cio_span *span,
                   unsigned threads);

#endif
