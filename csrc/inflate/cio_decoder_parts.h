/* SPDX-License-Identifier: MIT
 * cio_decoder_parts.h - what the files of the decoder say to each other.
 */
#ifndef CIO_DECODER_PARTS_H
#define CIO_DECODER_PARTS_H

#include "inflate/cio_decoder.h"

/* What comes next in the input. */
enum cio_phase {
    CIO_PHASE_FORMAT,
    CIO_PHASE_ZLIB,
    CIO_PHASE_ZLIB_ID,
    CIO_PHASE_GZIP, /* the fixed ten bytes */
    CIO_PHASE_GZIP_EXTRA_SIZE,
    CIO_PHASE_GZIP_EXTRA,
    CIO_PHASE_GZIP_NAME,
    CIO_PHASE_GZIP_COMMENT,
    CIO_PHASE_GZIP_CRC,
    CIO_PHASE_DATA,
    CIO_PHASE_TRAILER,
    CIO_PHASE_PADDING,
    CIO_PHASE_END,
    CIO_PHASE_FAILED,
};

/* Each phase's function: CIO_MORE: go on with the phase that is set now;
 * CIO_OK: a window is used up. */
enum cio_status cio_gzip_header(struct cio_decoder *d, struct cio_span *span);

/* Until `want` bytes are held: true when they are. */
bool cio_decoder_gather(struct cio_decoder *d, struct cio_span *span,
                        size_t want);
enum cio_status cio_decoder_fail(struct cio_decoder *d,
                                 enum cio_problem problem, const char *text);

#endif
