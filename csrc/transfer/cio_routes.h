/* SPDX-License-Identifier: MIT
 * cio_routes.h - the leaves of transfer/: each one way to move bytes, without
 * policy; and what they share.
 *
 * Why      A route is one call, or one read and one write, at the position
 *          that the transfer reached. Whether to use it, and what follows when
 *          it fails, is said in cio_plan.c alone.
 * Units    Bytes: want > 0 is what may be moved at most.
 * Errors   CIO_OK with nbytes > 0 moved; CIO_EOF: nothing came; CIO_ERR_SYS
 *          with nothing moved. Offsets are advanced by the caller.
 * Threads  As cio_transfer.h.
 */
#ifndef CIO_ROUTES_H
#define CIO_ROUTES_H

#include "transfer/cio_transfer.h"

struct cio_done cio_route_reflink(struct cio_transfer *t, uint64_t want);
struct cio_done cio_route_copy_file_range(struct cio_transfer *t,
                                          uint64_t want);
struct cio_done cio_route_sendfile(struct cio_transfer *t, uint64_t want);
struct cio_done cio_route_splice(struct cio_transfer *t, uint64_t want);
struct cio_done cio_route_mapped(struct cio_transfer *t, uint64_t want);
struct cio_done cio_route_chunked(struct cio_transfer *t, uint64_t want);

/* Whether `error` of this route means "not this way". */
bool cio_route_refuses(const struct cio_transfer *t, enum cio_route route,
                       int error);

/* One read at source.off (or where it stands), one write at target.off. */
struct cio_done cio_source_read(struct cio_transfer *t, void *data,
                                size_t nbytes);
struct cio_done cio_target_write(struct cio_transfer *t, const void *data,
                                 size_t nbytes);
/* One read into the empty buffer; one write of what is pending. */
struct cio_done cio_transfer_fill(struct cio_transfer *t);
struct cio_done cio_transfer_drain(struct cio_transfer *t);
/* The target's old bytes go, when that was asked for. */
struct cio_done cio_target_truncate(struct cio_transfer *t);

/* Bytes that are known to come. */
uint64_t cio_transfer_ahead(const struct cio_transfer *t);
/* Blocks for what comes next, and what is left of them given back. An answer
 * isn't needed: a full disk is the write's to find. */
void cio_target_reserve(struct cio_transfer *t);
void cio_target_release(struct cio_transfer *t);

/* The own offset of end is put to off, or noted before something moves it. */
struct cio_done cio_end_seek(struct cio_end *end, uint64_t off);
struct cio_done cio_end_note(struct cio_end *end);
/* CIO_OK: try again; CIO_MORE: a signal came; else the error to report. */
struct cio_done cio_transfer_wait(struct cio_transfer *t);

/* Makes the hole before the next data, sets data_end. nbytes: of the hole;
 * CIO_EOF: the source ends here. */
struct cio_done cio_sparse_next(struct cio_transfer *t);
/* One hole of nbytes at target.off. */
struct cio_done cio_sparse_hole(struct cio_transfer *t, uint64_t nbytes);
/* How many bytes of data are whole blocks of zeros (*zeros), else of others,
 * blocks counted in the target. */
size_t cio_sparse_run(const struct cio_transfer *t, const uint8_t *data,
                      size_t nbytes, bool *zeros);
/* Bytes of holes in [from, to) of a descriptor. */
uint64_t cio_sparse_count(struct cio_end *end, uint64_t from, uint64_t to);

#endif
