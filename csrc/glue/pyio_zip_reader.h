/* SPDX-License-Identifier: MIT
 * pyio_zip_reader.h - the C half of ZipFile: its state, and the methods that
 * stand in other files.
 *
 * Owner    The reader owns a reference to its archive until it is closed.
 * Threads  With the GIL.
 */
#ifndef PYIO_ZIP_READER_H
#define PYIO_ZIP_READER_H

#include "glue/pyio_zip.h"

struct zip_reader {
    PyObject_HEAD
    struct pyio_archive *archive; /* owned; NULL once closed */
};

/* A new reference for the length of a call; ValueError when closed. */
struct pyio_archive *pyio_reader_archive(PyObject *op);

PyObject *pyio_reader_read_many(PyObject *op, PyObject *const *args,
                                Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_reader_testzip(PyObject *op, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_reader_ref_fields(PyObject *op, PyObject *ignored);
/* (size, mtime in ns, inode), or None where the archive has no path. */
PyObject *pyio_reader_fingerprint(const struct pyio_archive *archive);
extern const char pyio_reader_read_many_doc[], pyio_reader_testzip_doc[];

#endif
