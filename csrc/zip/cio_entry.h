/* SPDX-License-Identifier: MIT
 * cio_entry.h - one member's bytes: from the file into memory, whole or piece
 * by piece, checked.
 *
 * Why      A small member costs one pread for header and data, one inflate
 *          straight into the result's memory, one checksum; nothing else. A
 *          large one streams in bounded memory. Batches go to worker threads.
 * Owner    The caller owns descriptors and result memory. Buffers and states
 *          come from the pool and go back on every path; what a stream leases
 *          it holds from its first read to its end.
 * Units    Bytes.
 * Errors   enum cio_status or struct cio_done; CIO_ERR_DATA fills a
 *          cio_zip_problem.
 * Threads  Entries are values. One stream in one thread at a time.
 */
#ifndef CIO_ENTRY_H
#define CIO_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"
#include "inflate/cio_engine.h"
#include "zip/cio_directory.h"
#include "zip/cio_window.h"
#include "zip/cio_zipcrypto.h"

/* What reading a member needs to know. */
struct cio_entry {
    uint64_t header_off;
    uint64_t end_off; /* cio_directory_end_of; UINT64_MAX: not checked */
    uint64_t compressed_nbytes, nbytes;
    uint64_t data_off;       /* 0 until the local header was seen */
    const uint8_t *raw_name; /* the header's must equal it; NULL: any */
    size_t raw_name_nbytes;
    size_t extra_nbytes; /* the directory's: a guess of the header's */
    uint32_t crc, index;
    uint16_t method, flags, time;
    bool verify;  /* compare the CRC */
    bool nowhere; /* header_off is where no file reaches */
    bool bare;    /* no directory: flags come from the local header */
    bool decrypt; /* keys are those of the password given */
    struct cio_zipcrypto keys;
};

/* Any part of the plain bytes lies as such in the file. */
static inline bool
cio_entry_is_plain(const struct cio_entry *entry)
{
    return entry->method == CIO_ZIP_STORED && !entry->decrypt;
}

/* From an unpacked member, with verify; order must have been made. */
void cio_entry_of(const struct cio_directory *directory,
                  const struct cio_zip_info *info, struct cio_entry *entry);

/* Refused before anything is read: flags, methods, sizes that can't be. */
enum cio_status cio_entry_check(const struct cio_entry *entry,
                                struct cio_zip_problem *problem);

/* Bytes from header_off on that hold header and data, as far as one can guess
 * before the header was seen; at most what may belong to the member. */
uint64_t cio_entry_window(const struct cio_entry *entry);

/* Reads the local header from got_nbytes bytes of the file from header_off
 * on. CIO_OK: data_off is set, and all that the profile asks of a member
 * holds. CIO_MORE: needs *need_nbytes from header_off. */
enum cio_status cio_entry_header(struct cio_entry *entry, const uint8_t *got,
                                 size_t got_nbytes, size_t *need_nbytes,
                                 struct cio_zip_problem *problem);

/* All compressed bytes are in memory, out has room for entry->nbytes: inflate
 * or copy (data may be out), compare size and CRC. */
enum cio_status cio_entry_decode(const struct cio_entry *entry,
                                 const uint8_t *data, uint8_t *out,
                                 struct cio_zip_problem *problem);

/* The compressed bytes of it may be read as a whole to be inflated at once;
 * beyond, and where much would come out of little, members stream. */
bool cio_entry_is_whole(const struct cio_entry *entry);
/* The same for a caller that waits for this member only: up to 50 ms in which
 * signals wait, and only where that is faster than to stream. */
bool cio_entry_is_whole_alone(const struct cio_entry *entry);

/* A whole or stored member from a descriptor into out (room for
 * entry->nbytes). With nowait CIO_MORE means that bytes aren't in the page
 * cache (or that the file can't say so: *refused) and nothing was done.
 * nbytes: of out. */
struct cio_done cio_entry_read(struct cio_entry *entry, int fd, uint8_t *out,
                               bool nowait, bool *refused,
                               struct cio_zip_problem *problem);

/* The same out of a window, which holds `ahead` bytes from the header on
 * afterwards, for the neighbours. false: it isn't small, or it is broken;
 * cio_entry_read says what is wrong with it. */
bool cio_entry_read_near(struct cio_entry *entry, int fd,
                         struct cio_window *window, size_t ahead, uint8_t *out,
                         struct cio_zip_problem *problem);

/* The header alone from a descriptor; same rules. */
struct cio_done cio_entry_locate(struct cio_entry *entry, int fd, bool nowait,
                                 bool *refused,
                                 struct cio_zip_problem *problem);

/* ----------------------------------------------------------------- stream */

/* A member piece by piece; its header has been seen (data_off). */
struct cio_entry_stream {
    struct cio_entry entry;
    uint64_t in_done;              /* compressed bytes consumed */
    uint64_t out_done;             /* plain bytes delivered */
    uint64_t reserved;             /* bytes of the streams' budget */
    struct cio_inflater *inflater; /* leased; NULL when stored or idle */
    struct cio_zipcrypto keys;     /* at in_done */
    uint32_t crc;
    bool unbroken; /* every byte so far went through crc */
    bool ended;
};
void cio_entry_stream_init(struct cio_entry_stream *stream,
                           const struct cio_entry *entry);
/* Takes the lease that the first step would take; nothing when it is there. */
enum cio_status cio_entry_stream_begin(struct cio_entry_stream *stream);
/* One step from a window of compressed bytes at in_done to a window of plain
 * ones at out_done. CIO_OK: one window is used up. CIO_EOF: the member is
 * complete and right. */
enum cio_status cio_entry_stream_step(struct cio_entry_stream *stream,
                                      struct cio_span *span,
                                      struct cio_zip_problem *problem);
/* Fills out from a descriptor. CIO_OK: filled; CIO_EOF: the member's end came;
 * CIO_MORE: call again (a slice is done). nbytes: what came. */
struct cio_done cio_entry_stream_read(struct cio_entry_stream *stream, int fd,
                                      uint8_t *out, size_t out_nbytes,
                                      struct cio_zip_problem *problem);
/* Moves on without reading: only plain members (cio_entry_is_plain); the CRC
 * can't be compared after that. */
void cio_entry_stream_skip(struct cio_entry_stream *stream, uint64_t nbytes);
/* Back to the start, as after init. */
void cio_entry_stream_rewind(struct cio_entry_stream *stream);
/* Gives everything back; may be called again. */
void cio_entry_stream_close(struct cio_entry_stream *stream);

/* Memory of open members counts against the pool's limit: true when nbytes
 * still fit; release gives them back. */
bool cio_entry_reserve(uint64_t nbytes);
/* The same within a quarter of it, for what one can do without. */
bool cio_entry_reserve_spare(uint64_t nbytes);
void cio_entry_release(uint64_t nbytes);

#endif
