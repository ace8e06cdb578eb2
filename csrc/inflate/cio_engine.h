/* SPDX-License-Identifier: MIT
 * cio_engine.h - DEFLATE by whichever library does the job at hand best.
 *
 * Why      Which engine serves which job is decided here and nowhere else:
 *
 *          job                               first choice   otherwise
 *          whole member under a checksum     libdeflate     ISA-L, zlib
 *          stream under a checksum           ISA-L          zlib
 *          data without a checksum           zlib
 *
 *          zlib is the judge. Valid input gives zlib's bytes by every engine.
 *          Some invalid streams pass ISA-L and libdeflate before 1.16, so what
 *          no checksum protects goes through zlib; what an engine refuses as
 *          a whole, zlib judges again, and its verdict and text count.
 * Owner    The caller owns the windows. An inflater is leased: take, step,
 *          give. Take it at the first byte, give it back at the end, at an
 *          error, at close.
 * Units    Bytes.
 * Errors   enum cio_status; CIO_ERR_DATA comes with a fault and zlib's words.
 * Threads  Any; one inflater in one thread at a time. cio_engine_init once,
 *          before all else.
 */
#ifndef CIO_ENGINE_H
#define CIO_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"

/* What was wrong with the data. */
enum cio_fault_kind {
    CIO_FAULT_NONE = 0,
    CIO_FAULT_STREAM, /* breaks DEFLATE's rules */
    CIO_FAULT_CUT,    /* the input ends before the stream does */
    CIO_FAULT_SHORT,  /* the stream ends before out_nbytes bytes came */
    CIO_FAULT_LONG,   /* the stream holds more than out_nbytes bytes */
};

/* ----------------------------------------------------------- whole members */

/* A raw DEFLATE stream whose bytes are all here and whose size is known. */
struct cio_whole {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_nbytes; /* exactly what must come out */
    /* A checksum of the plain data will be compared by the caller. false (zip
     * read with verify=False): zlib inflates, whatever is built in. */
    bool checked;
    /* Results, set on every path. */
    size_t in_used;  /* to the byte behind the stream; bytes may follow */
    size_t out_used; /* bytes of out that hold data */
    uint32_t crc;    /* CRC-32 of out[0, out_used); only if `checked` */
    enum cio_fault_kind fault; /* with CIO_ERR_DATA */
    const char *text;          /* zlib's words for it, static; NULL: none */
};
/* CIO_OK: out is full and the stream ended there. CIO_ERR_DATA: see fault.
 * CIO_ERR_NOMEM. The state comes from the pool and goes back. */
enum cio_status cio_inflate_whole(struct cio_whole *whole);

/* The same where only a bound of the size is known: out_nbytes is room, the
 * stream may end sooner (CIO_OK, out_used says where). CIO_FAULT_LONG: more
 * room is needed; nothing in out counts then. */
enum cio_status cio_inflate_within(struct cio_whole *whole);

/* A guess: as within, checked, but nobody judges, no CRC is made, and where
 * zlib is the only engine nothing is tried (CIO_ERR_LIMIT). Only CIO_OK means
 * something; anything else: go the safe way. */
enum cio_status cio_inflate_try(struct cio_whole *whole);

/* It outruns streams where it serves: libdeflate does, others are the same
 * engine twice. */
bool cio_whole_is_faster(void);

/* ------------------------------------------------------------------ streams
 */

struct cio_inflater; /* a pooled piece */

/* `checked` as above. NULL: out of memory. Ready for a raw stream's start. */
struct cio_inflater *cio_inflater_take(bool checked);
/* Whether that would be zlib's. */
bool cio_inflater_is_zlib(bool checked);
/* zlib's, for raw data whose distances may be at most 1 << window_bits. */
struct cio_inflater *cio_inflater_take_window(int window_bits);
/* Gives it back, in whatever state; NULL is fine. */
void cio_inflater_give(struct cio_inflater *inflater);
/* Ready for another stream's start; the lease goes on. */
void cio_inflater_reset(struct cio_inflater *inflater);

/* Moves in_used and out_used as far as both windows allow.
 * CIO_OK: one window is used up; call again when it isn't. A call that can do
 * nothing (no input, no output held back) makes no native call.
 * CIO_EOF: the stream ended; in_used is exactly behind it.
 * CIO_ERR_DATA: cio_inflater_text says why; out_used bytes before it are right
 * as far as the engine knows. The windows may be at other places at each call.
 * Output windows up to 32 KiB cost a copy of the window for each call: use
 * 128 KiB and more. */
enum cio_status cio_inflater_step(struct cio_inflater *inflater,
                                  struct cio_span *span);
/* One native call, even without room: the end of a stream may be in sight. */
enum cio_status cio_inflater_poke(struct cio_inflater *inflater,
                                  struct cio_span *span);
/* zlib's words, or the like; static. */
const char *cio_inflater_text(const struct cio_inflater *inflater);
/* Output is held back, which a step without input would bring. */
bool cio_inflater_pending(const struct cio_inflater *inflater);
/* A second one in the same state; NULL: out of memory. */
struct cio_inflater *cio_inflater_copy(const struct cio_inflater *inflater);
/* A preset dictionary, before the first byte. */
enum cio_status cio_inflater_dictionary(struct cio_inflater *inflater,
                                        const uint8_t *data, size_t nbytes);
/* Bytes of pool memory that one lease means. */
size_t cio_inflater_nbytes(bool checked);

/* ------------------------------------------------------------------ choice */

enum cio_engine_kind {
    CIO_ENGINE_ZLIB,
    CIO_ENGINE_ISAL,
    CIO_ENGINE_LIBDEFLATE
};

/* Tests ISA-L on a known stream with bytes behind it, and doesn't use it when
 * that fails; measures which CRC-32 is fastest. `forced`: NULL, or "zlib",
 * "isal", "libdeflate" (PYIO_CHUNKED_ENGINE; that engine for each job it can
 * do, zlib for the rest). false: unknown, or not built in. */
bool cio_engine_init(const char *forced);

struct cio_engine_info {
    const char *whole, *stream, *crc32; /* names of the engines in use */
    const char *zlib;                   /* versions; NULL: not built in */
    const char *libdeflate, *isal;
    bool isal_refused; /* built in, but failed its test */
};
void cio_engine_info(struct cio_engine_info *info);

/* Native inflate calls since the start, for tests: those that had input, and
 * those that had none (only ever for output held back). */
struct cio_engine_counts {
    uint64_t with_input, without_input;
};
void cio_engine_counts(struct cio_engine_counts *counts);

#endif
