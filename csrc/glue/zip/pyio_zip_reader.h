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

#include "glue/zip/pyio_zip.h"

struct zip_reader {
    PyObject_HEAD
    struct pyio_archive *archive; /* owned; NULL: never loaded */
    bool closed;                  /* the archive is there to be listed */
};

/* For calls that need the directory alone, closed or not: a new reference for
 * the length of the call, whoever closes meanwhile; to be released. */
static inline struct pyio_archive *
pyio_zip_reader_directory(PyObject *op)
{
    struct zip_reader *const self = (struct zip_reader *)op;

    if (PYIO_UNLIKELY(self->archive == NULL)) {
        (void)pyio_raise(PyExc_ValueError, "ZIP archive that was not opened");
        return NULL;
    }
    return (struct pyio_archive *)Py_NewRef((PyObject *)self->archive);
}
/* The same for all others: ValueError when closed. */
static inline struct pyio_archive *
pyio_zip_reader_archive(PyObject *op)
{
    if (PYIO_UNLIKELY(((struct zip_reader *)op)->closed)) {
        (void)pyio_raise(PyExc_ValueError, "Attempt to use ZIP archive that "
                                           "was already closed");
        return NULL;
    }
    return pyio_zip_reader_directory(op);
}

/* In pyio_zip_listing.c. */
PyObject *pyio_zip_reader_find(PyObject *op, PyObject *name);
/* make() of each member, in the directory's order. */
PyObject *pyio_zip_reader_list(PyObject *op,
                               PyObject *(*make)(const struct pyio_archive *,
                                                 uint32_t));
PyObject *pyio_zip_reader_names(PyObject *op, PyObject *ignored);
PyObject *pyio_zip_reader_record(PyObject *op, PyObject *number);
Py_ssize_t pyio_zip_reader_length(PyObject *op);
int pyio_zip_reader_contains(PyObject *op, PyObject *name);
PyObject *pyio_zip_reader_facts(PyObject *op, PyObject *ignored);

PyObject *pyio_zip_reader_read_many(PyObject *op, PyObject *const *args,
                                    Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_zip_reader_testzip(PyObject *op, PyObject *const *args,
                                  Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_zip_reader_ref_fields(PyObject *op, PyObject *ignored);
/* (size, mtime in ns, inode), or None where the archive has no path. */
PyObject *pyio_zip_reader_fingerprint(const struct pyio_archive *archive);

/* In pyio_zip_profile.c, _bounds.c, _extract.c, _password.c. */
PyObject *pyio_zip_reader_set_profile(PyObject *op, PyObject *kind);
PyObject *pyio_zip_reader_set_limits(PyObject *op, PyObject *limits);
PyObject *pyio_zip_reader_check(PyObject *op, PyObject *unused);
PyObject *pyio_zip_reader_extract(PyObject *op, PyObject *args);
PyObject *pyio_zip_reader_open_raw(PyObject *op, PyObject *const *args,
                                   Py_ssize_t nargs);
/* Takes the password for an encrypted member: the call's, or the archive's.
 * Without one the member is refused later, as zipfile does it. */
int pyio_zip_reader_unlock(PyObject *op, struct cio_entry *entry,
                           PyObject *pwd);
/* TypeError as zipfile where pwd is no bytes. */
int pyio_zip_keys(PyObject *pwd, struct cio_zipcrypto *keys);

extern const char pyio_zip_reader_check_doc[];
extern const char pyio_zip_reader_read_many_doc[],
    pyio_zip_reader_testzip_doc[];

#endif
