/* SPDX-License-Identifier: MIT
 * pyio_zip_run.h - a batch of members run by worker threads while the caller
 * looks at signals and progress.
 *
 * Owner    Items belong to the caller.
 * Threads  Call with the GIL; it is free while the batch runs.
 */
#ifndef PYIO_ZIP_RUN_H
#define PYIO_ZIP_RUN_H

#include "glue/zip/pyio_zip.h"
#include "zip/cio_batch.h"

/* Runs those items whose done.status is CIO_MORE. -1: a signal handler or
 * progress raised; what wasn't finished is CIO_MORE again. */
int pyio_zip_run(struct pyio_archive *archive, struct cio_batch_item *items,
                 size_t count, unsigned threads, struct pyio_slices *slices);

/* A workers argument: NULL and None mean 0 (as many as there are). */
int pyio_as_workers(PyObject *value, unsigned *workers);

/* Bytes of all members; -1: more than progress can say. */
int64_t pyio_zip_size(const struct cio_directory *directory);

#endif
