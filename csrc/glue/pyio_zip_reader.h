/* SPDX-License-Identifier: MIT
 * pyio_zip_reader.h - the C half of ZipFile: its state, and the methods that
 * stand in other files.
 *
 * Owner    The reader owns a reference to its archive; close() closes the
 *          file when the last member that reads from it is closed too.
 * Threads  With the GIL.
 */
#ifndef PYIO_ZIP_READER_H
#define PYIO_ZIP_READER_H

#include "glue/pyio_zip.h"

struct zip_reader {
    PyObject_HEAD
    struct pyio_archive *archive; /* owned; NULL: never loaded */
    bool closed;                  /* the archive is there to be listed */
};

/* A new reference for the length of a call, to be released; ValueError when
 * closed. */
struct pyio_archive *pyio_reader_archive(PyObject *op);
/* The same for calls that need the directory alone: closed or not. */
struct pyio_archive *pyio_reader_directory(PyObject *op);

/* In pyio_zip_listing.c. */
PyObject *pyio_reader_find(PyObject *op, PyObject *name);
/* make() of each member, in the directory's order. */
PyObject *pyio_reader_list(PyObject *op,
                           PyObject *(*make)(const struct pyio_archive *,
                                             uint32_t));
PyObject *pyio_reader_names(PyObject *op, PyObject *ignored);
PyObject *pyio_reader_record(PyObject *op, PyObject *number);
Py_ssize_t pyio_reader_length(PyObject *op);
int pyio_reader_contains(PyObject *op, PyObject *name);
PyObject *pyio_reader_facts(PyObject *op, PyObject *ignored);

PyObject *pyio_reader_read_many(PyObject *op, PyObject *const *args,
                                Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_reader_testzip(PyObject *op, PyObject *const *args,
                              Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_reader_ref_fields(PyObject *op, PyObject *ignored);
/* (size, mtime in ns, inode), or None where the archive has no path. */
PyObject *pyio_reader_fingerprint(const struct pyio_archive *archive);

/* In pyio_zip_profile.c, _bounds.c, _extract.c, _password.c. */
PyObject *pyio_reader_set_profile(PyObject *op, PyObject *kind);
PyObject *pyio_reader_set_limits(PyObject *op, PyObject *limits);
PyObject *pyio_reader_check(PyObject *op, PyObject *unused);
PyObject *pyio_reader_extract(PyObject *op, PyObject *args);
PyObject *pyio_reader_open_raw(PyObject *op, PyObject *const *args,
                               Py_ssize_t nargs);
/* Takes the password for an encrypted member: the call's, or the archive's.
 * Without one the member is refused later, as zipfile does it. */
int pyio_reader_unlock(PyObject *op, struct cio_entry *entry, PyObject *pwd);
/* TypeError as zipfile where pwd is no bytes. */
int pyio_zip_keys(PyObject *pwd, struct cio_zipcrypto *keys);

extern const char pyio_reader_check_doc[];
extern const char pyio_reader_read_many_doc[], pyio_reader_testzip_doc[];

#endif
