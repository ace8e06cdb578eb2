/* SPDX-License-Identifier: MIT
 * cio_bgzf_header.c - what a block says of itself: SAM/BAM format
 * specification, chapter 4.1.
 */
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "inflate/cio_bgzf.h"

#define HEADER_NBYTES 12 /* up to the extra field */
#define TRAILER_NBYTES 8

/* Size of the member at the start. 0: it isn't a block's, or (*cut) the header
 * isn't all there. */
static size_t
block_nbytes(const uint8_t *in, size_t in_nbytes, size_t *header_nbytes,
             bool *cut)
{
    static const uint8_t first[] = {0x1f, 0x8b, 8, 4};
    size_t extra, at = HEADER_NBYTES;

    *cut = false;
    if (in_nbytes > 0
        && memcmp(in, first, cio_min_size(in_nbytes, sizeof first)) != 0) {
        return 0;
    }
    *cut = true;
    if (in_nbytes < HEADER_NBYTES) {
        return 0;
    }
    extra = cio_load_le16(in + 10);
    if (extra > in_nbytes - HEADER_NBYTES) {
        return 0;
    }
    *cut = false;
    *header_nbytes = HEADER_NBYTES + extra;
    while (at + 6 <= HEADER_NBYTES + extra) {
        const size_t size = cio_load_le16(in + at + 2);

        if (in[at] == 'B' && in[at + 1] == 'C' && size == 2) {
            return (size_t)cio_load_le16(in + at + 4) + 1;
        }
        at += 4 + size;
    }
    return 0;
}

bool
cio_bgzf_starts(const uint8_t *in, size_t nbytes)
{
    size_t header_nbytes;
    bool cut;

    return block_nbytes(in, nbytes, &header_nbytes, &cut) != 0;
}

enum cio_bgzf_start
cio_bgzf_look(const uint8_t *in, size_t in_nbytes,
              struct cio_bgzf_member *member)
{
    size_t header_nbytes;
    bool cut;
    const size_t nbytes = block_nbytes(in, in_nbytes, &header_nbytes, &cut);

    if (nbytes == 0) {
        return cut ? CIO_BGZF_CUT : CIO_BGZF_NO;
    }
    if (nbytes < header_nbytes + TRAILER_NBYTES) {
        return CIO_BGZF_NO;
    }
    if (nbytes > in_nbytes) {
        return CIO_BGZF_CUT;
    }
    *member = (struct cio_bgzf_member){
        .nbytes = nbytes,
        .header_nbytes = header_nbytes,
        .data_nbytes = nbytes - header_nbytes - TRAILER_NBYTES,
        .out_nbytes = cio_load_le32(in + nbytes - 4),
        .crc = cio_load_le32(in + nbytes - 8),
        .mtime = cio_load_le32(in + 4),
    };
    return member->out_nbytes <= CIO_BGZF_BLOCK_NBYTES ? CIO_BGZF_BLOCK
                                                       : CIO_BGZF_NO;
}
