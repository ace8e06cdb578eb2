/* SPDX-License-Identifier: MIT
 * pyio_read.h - reads of any size out of a core file, with the interpreter
 * lock given up where a call may wait and signals looked at between slices.
 *
 * Errors   struct cio_done; CIO_MORE means that an exception is set (a signal
 *          handler raised). The file stands behind the nbytes reported.
 * Threads  With the GIL, and the file's lock where it has one.
 */
#ifndef PYIO_READ_H
#define PYIO_READ_H

#include "glue/base/pyio.h"
#include "io/cio_file.h"

/* The buffer argument of readinto and its kind, to be released. TypeError as
 * io raises it, whatever is wrong with the object. */
int pyio_target_buffer(PyObject *object, const char *function,
                       Py_buffer *view);
/* Fills memory, or up to the end (CIO_EOF). The chunk is empty. threads as
 * read_bytes takes it; 0: as many as the machine has, from the threshold on.
 */
struct cio_done pyio_read_memory(struct cio_file *file, uint8_t *buf,
                                 size_t nbytes, unsigned threads);
/* Up to limit bytes in a fresh result, which begins with the read-ahead. On
 * failure the result holds what arrived and is the caller's to give back or
 * drop; result->bytes NULL: nothing was taken. nbytes is result->nbytes. */
struct cio_done pyio_read_result(struct cio_file *file, size_t limit,
                                 unsigned threads, struct pyio_result *result);
/* Fills the file's empty chunk. CIO_OK: it holds bytes. */
struct cio_done pyio_fill(struct cio_file *file);

#endif
