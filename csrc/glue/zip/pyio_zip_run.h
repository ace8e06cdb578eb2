/* SPDX-License-Identifier: MIT
 * pyio_zip_run.h - a batch of members run by worker threads while the caller
 * looks at signals and progress, or does something else.
 *
 * Owner    Items belong to the caller, until finish or stop.
 * Threads  Call with the GIL; it is free while finish waits.
 */
#ifndef PYIO_ZIP_RUN_H
#define PYIO_ZIP_RUN_H

#include "glue/zip/pyio_zip.h"
#include "zip/cio_batch.h"

struct pyio_zip_run {
    struct cio_batch batch;
    struct pyio_archive *archive; /* borrowed */
    uint64_t done_before; /* bytes of items that had been read already */
    unsigned threads;
    unsigned generation; /* of forks, when it started */
    bool started;
};
/* Has threads - 1 workers read those items whose done.status is CIO_MORE; a
 * little work waits for finish. */
void pyio_zip_start(struct pyio_zip_run *run, struct pyio_archive *archive,
                    struct cio_batch_item *items, size_t count,
                    unsigned threads);
/* Reads what they haven't, and waits for them. -1: a signal handler or
 * progress raised, and nothing runs any more; what wasn't finished is CIO_MORE
 * again. */
int pyio_zip_finish(struct pyio_zip_run *run, struct pyio_slices *slices);
/* Nobody is at the items any more. In a child of fork nobody was, and all are
 * CIO_MORE again. Nothing where it isn't started. */
void pyio_zip_stop(struct pyio_zip_run *run);

/* A workers argument: NULL and None mean 0 (as many as there are). */
int pyio_as_workers(PyObject *value, unsigned *workers);

/* Bytes of all members; -1: more than progress can say. */
int64_t pyio_zip_size(const struct cio_directory *directory);

#endif
