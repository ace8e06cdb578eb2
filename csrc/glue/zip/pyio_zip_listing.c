/* SPDX-License-Identifier: MIT
 * pyio_zip_listing.c - the C half of ZipFile: what needs the directory alone,
 * and goes on behind close().
 */
#include "glue/zip/pyio_zip_reader.h"

PyObject *
pyio_zip_reader_find(PyObject *op, PyObject *name)
{
    struct pyio_archive *const archive = pyio_zip_reader_directory(op);
    uint32_t index;
    int found;

    if (archive == NULL) {
        return NULL;
    }
    found = pyio_name_index(archive, name, &index);
    pyio_archive_release(archive);
    if (found < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(index == UINT32_MAX ? -1 : (long long)index);
}

PyObject *
pyio_zip_reader_list(PyObject *op,
                     PyObject *(*make)(const struct pyio_archive *, uint32_t))
{
    struct pyio_archive *const archive = pyio_zip_reader_directory(op);
    PyObject *list;

    if (archive == NULL) {
        return NULL;
    }
    list = PyList_New((Py_ssize_t)archive->directory.count);
    for (uint32_t i = 0; list != NULL && i < archive->directory.count; i++) {
        PyObject *const item = make(archive, i);

        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    pyio_archive_release(archive);
    return list;
}

PyObject *
pyio_zip_reader_names(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return pyio_zip_reader_list(op, pyio_archive_name);
}

/* header_offset as zipfile computes it: any integer. */
static PyObject *
header_offset(const struct cio_directory *directory,
              const struct cio_zip_info *info)
{
    PyObject *said, *where, *placed, *sum = NULL;

    if (!(info->member_flags & CIO_ZIP_MEMBER_NOWHERE)) {
        return PyLong_FromUnsignedLongLong(info->header_off);
    }
    said = PyLong_FromUnsignedLongLong(info->header_said);
    where = PyLong_FromUnsignedLongLong(directory->end.dir_off);
    placed = PyLong_FromUnsignedLongLong(directory->end.dir_said);
    if (said != NULL && where != NULL && placed != NULL) {
        PyObject *const prefix = PyNumber_Subtract(where, placed);

        sum = prefix == NULL ? NULL : PyNumber_Add(said, prefix);
        Py_XDECREF(prefix);
    }
    Py_XDECREF(said);
    Py_XDECREF(where);
    Py_XDECREF(placed);
    return sum;
}

static PyObject *
record_of(const struct pyio_archive *archive, uint32_t index)
{
    const struct cio_directory *const directory = &archive->directory;
    struct cio_zip_info i;
    PyObject *orig, *name, *offset;

    cio_directory_info(directory, index, &i);
    orig = pyio_archive_orig_name(archive, &i);
    offset = header_offset(directory, &i);
    name = (i.member_flags & CIO_ZIP_MEMBER_RENAMED)
                   && (const uint8_t *)i.name != i.raw_name
               ? pyio_archive_name(archive, index)
               : Py_XNewRef(orig);
    if (orig == NULL || name == NULL || offset == NULL) {
        Py_XDECREF(orig);
        Py_XDECREF(name);
        Py_XDECREF(offset);
        return NULL;
    }
    return Py_BuildValue(
        "NN(iiiiii)Hy#y#BBBBHHHINIKKHK", orig, name, (i.date >> 9) + 1980,
        (i.date >> 5) & 15, i.date & 31, i.time >> 11, (i.time >> 5) & 63,
        (i.time & 31) * 2, i.method, (const char *)i.comment,
        (Py_ssize_t)i.comment_nbytes, (const char *)i.extra,
        (Py_ssize_t)i.extra_nbytes, i.create_system, i.create_version,
        i.extract_version, i.reserved, i.flags, i.disk, i.internal_attr,
        i.external_attr, offset, i.crc,
        (unsigned long long)i.compressed_nbytes, (unsigned long long)i.nbytes,
        i.time, (unsigned long long)cio_directory_end_of(directory, index));
}

PyObject *
pyio_zip_reader_record(PyObject *op, PyObject *number)
{
    struct pyio_archive *const archive = pyio_zip_reader_directory(op);
    const long long index = PyLong_AsLongLong(number);
    PyObject *result = NULL;

    if (archive == NULL) {
        return NULL;
    }
    if (index < 0 || index >= archive->directory.count) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_IndexError, "no such member");
        }
    } else if (pyio_archive_order(archive) == 0) {
        result = record_of(archive, (uint32_t)index);
    }
    pyio_archive_release(archive);
    return result;
}

Py_ssize_t
pyio_zip_reader_length(PyObject *op)
{
    const struct zip_reader *const self = (struct zip_reader *)op;

    return self->archive == NULL ? 0
                                 : (Py_ssize_t)self->archive->directory.count;
}

int
pyio_zip_reader_contains(PyObject *op, PyObject *name)
{
    PyObject *const index = pyio_zip_reader_find(op, name);
    long value;

    if (index == NULL) {
        return -1;
    }
    value = PyLong_AsLong(index);
    Py_DECREF(index);
    return value >= 0;
}

/* Facts of the directory as a whole, for the Python half. */
PyObject *
pyio_zip_reader_facts(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_archive *const archive = pyio_zip_reader_directory(op);
    const struct cio_directory *d;
    PyObject *result;

    if (archive == NULL) {
        return NULL;
    }
    d = &archive->directory;
    result = Py_BuildValue(
        "{s:y#,s:K,s:N,s:O,s:O,s:O,s:O}", "comment", (const char *)d->comment,
        (Py_ssize_t)d->end.comment_nbytes, "start_dir",
        (unsigned long long)d->end.dir_off, "fingerprint",
        pyio_zip_reader_fingerprint(archive), "duplicates",
        d->duplicates ? Py_True : Py_False, "positional",
        archive->source == NULL ? Py_True : Py_False, "filename",
        archive->filename, "source",
        archive->source != NULL ? archive->source : Py_None);
    pyio_archive_release(archive);
    return result;
}
