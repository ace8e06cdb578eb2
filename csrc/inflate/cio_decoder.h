/* SPDX-License-Identifier: MIT
 * cio_decoder.h - raw, zlib and gzip streams: framing and data as one stage.
 *
 * Why      Headers, members, checks and trailers are bytes like the rest: here
 *          they are crossed inside one call, at any cut, without Python, so
 *          that thousands of tiny members cost no calls and all of it can be
 *          fuzzed with plain memory.
 * Owner    The caller owns the struct, the windows and the dictionary. The
 *          inflate state is leased at the first byte that needs it, and given
 *          back at the end, at an error, and by cio_decoder_release.
 * Units    Bytes.
 * Errors   CIO_ERR_DATA: problem and the fields behind it say what and where.
 *          After an error every step says the same again.
 * Threads  One decoder in one thread at a time.
 */
#ifndef CIO_DECODER_H
#define CIO_DECODER_H

#include "inflate/cio_engine.h"

enum cio_format {
    CIO_FORMAT_AUTO, /* gzip or zlib by their first two bytes, else raw */
    CIO_FORMAT_RAW,
    CIO_FORMAT_ZLIB,
    CIO_FORMAT_GZIP,
    CIO_FORMAT_WRAPPED, /* gzip or zlib, not raw */
};

enum cio_problem {
    CIO_PROBLEM_NONE = 0,
    CIO_PROBLEM_MAGIC,      /* not the first bytes of the format */
    CIO_PROBLEM_METHOD,     /* another method than DEFLATE */
    CIO_PROBLEM_WINDOW,     /* zlib: a larger window than allowed */
    CIO_PROBLEM_FLAGS,      /* gzip: reserved flags */
    CIO_PROBLEM_HEADER_CRC, /* gzip: FHCRC */
    CIO_PROBLEM_NEED_DICTIONARY,
    CIO_PROBLEM_DICTIONARY, /* not the one that the stream was made with */
    CIO_PROBLEM_DATA,       /* breaks DEFLATE's rules */
    CIO_PROBLEM_CHECK,      /* CRC-32 or Adler-32 */
    CIO_PROBLEM_SIZE,       /* gzip: ISIZE */
    CIO_PROBLEM_CUT,        /* the input ends inside the stream */
};

/* gzip: gathered of FEXTRA, where BGZF has its block size. */
#define CIO_GZIP_EXTRA_NBYTES 64

struct cio_decoder {
    /* Set by the caller before the first step, kept by a rewind. */
    enum cio_format wanted;
    bool one_member; /* gzip: end behind the first member */
    bool eager;      /* go on with a full output window: end and trailer, as
                        zlib's own streams do */
    bool all_input;  /* each window holds the input to its end */
    bool zlib_only;
    int window_bits;     /* 8..15 */
    uint64_t max_nbytes; /* output allowed; more is CIO_ERR_LIMIT */
    const uint8_t *dictionary;
    size_t dictionary_nbytes;

    /* For the caller to read. */
    enum cio_format format; /* found; AUTO or WRAPPED: not known yet */
    uint64_t in_total, out_total;
    uint64_t members; /* ended */
    uint32_t mtime;   /* of the last gzip header */
    bool has_mtime;
    uint32_t
        first_mtime; /* that of the member where the first byte came from */
    bool first_came; /* since the caller last set this to false */
    bool bgzf;       /* the last header had a block size */
    size_t block_nbytes;  /* BGZF: the whole member; else 0 */
    size_t header_nbytes; /* of this member */
    enum cio_problem problem;
    const char *text; /* zlib's words, static */
    uint32_t expected, found;
    uint8_t first[2]; /* with CIO_PROBLEM_MAGIC: as many as came */
    uint8_t first_nbytes;

    /* The stage's own. */
    int phase;
    bool fresh; /* no byte of the member's data was read */
    bool tried; /* to inflate it at once */
    enum cio_status failure;
    struct cio_inflater *inflater;
    uint32_t check;
    uint64_t member_out, member_in;
    size_t last_in, last_out; /* of the member before; SIZE_MAX: no guess */
    uint8_t flags;
    uint32_t header_crc;
    size_t left; /* bytes of a field still to come */
    uint8_t held[10];
    uint8_t held_nbytes;
    uint8_t extra[CIO_GZIP_EXTRA_NBYTES];
    uint8_t extra_nbytes;
};

/* Defaults: all members, any size, a 32 KiB window. Nothing is leased. */
void cio_decoder_init(struct cio_decoder *decoder, enum cio_format format);
/* To the start of a stream, with the same settings. */
void cio_decoder_rewind(struct cio_decoder *decoder);
/* Gives back what is leased; needed where a stream is left before its end. */
void cio_decoder_release(struct cio_decoder *decoder);
/* A second one in the same state; CIO_ERR_NOMEM. */
enum cio_status cio_decoder_copy(struct cio_decoder *target,
                                 const struct cio_decoder *source);

/* Moves in_used and out_used as far as both windows allow.
 * CIO_OK: one window is used up. CIO_MORE: a slice is done, look at signals
 * and call again. CIO_EOF: the stream ended (gzip with all members never says
 * so: cio_decoder_finish does). CIO_ERR_DATA; CIO_ERR_LIMIT; CIO_ERR_NOMEM:
 * call again later. */
enum cio_status cio_decoder_step(struct cio_decoder *decoder,
                                 struct cio_span *span);
/* The input has ended, and all of it was stepped through with room left:
 * CIO_EOF where a stream may end, else CIO_ERR_DATA. */
enum cio_status cio_decoder_finish(struct cio_decoder *decoder);
/* Output is held back, which a step without input would bring. */
bool cio_decoder_pending(const struct cio_decoder *decoder);
/* No stream's first byte was read, or the last member ended. */
bool cio_decoder_between(const struct cio_decoder *decoder);

#endif
