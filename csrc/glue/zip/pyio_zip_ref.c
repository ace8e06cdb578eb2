/* SPDX-License-Identifier: MIT
 * pyio_zip_ref.c - EntryRef's read and open: a member by path and offset,
 * without its directory.
 */
#include "glue/zip/pyio_zip_profile.h"
#include "glue/zip/pyio_zip_reader.h"

#include <string.h>

/* (size, mtime in ns, inode). */
static PyObject *
fingerprint_of(const struct pyio_archive *archive)
{
    return Py_BuildValue("KLK", (unsigned long long)archive->file_nbytes,
                         (long long)archive->mtime_ns,
                         (unsigned long long)archive->inode);
}

/* The file must be the one that the reference was made for; of a portable one
 * only the size is known. */
static int
check_fingerprint(const struct pyio_archive *archive, PyObject *expected)
{
    PyObject *found = fingerprint_of(archive);
    int same;

    if (found != NULL && PyTuple_GET_SIZE(expected) < 3) {
        Py_SETREF(found,
                  PyTuple_GetSlice(found, 0, PyTuple_GET_SIZE(expected)));
    }
    if (found == NULL) {
        return -1;
    }
    same = PyObject_RichCompareBool(found, expected, Py_EQ);
    if (same == 0) {
        (void)pyio_raise(PyExc_OSError,
                         "%R changed since the reference was made: expected "
                         "%R, found %R (size, mtime, inode)",
                         archive->filename, expected, found);
    }
    Py_DECREF(found);
    return same > 0 ? 0 : -1;
}

PyObject *
pyio_zip_reader_fingerprint(const struct pyio_archive *archive)
{
    return archive->has_path ? fingerprint_of(archive) : Py_NewRef(Py_None);
}

static PyObject *
ref_fields_of(const struct pyio_archive *archive, uint32_t index)
{
    struct cio_zip_info info;

    cio_directory_info(&archive->directory, index, &info);
    return Py_BuildValue("NKKKIH", pyio_archive_name(archive, index),
                         (unsigned long long)info.header_off,
                         (unsigned long long)info.compressed_nbytes,
                         (unsigned long long)info.nbytes, info.crc,
                         info.method);
}

/* References are read without the archive's profile: what it refuses gets
 * none. */
static int
admit_all(PyObject *op)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *const archive = pyio_zip_reader_archive(op);
    int result = archive == NULL ? -1 : pyio_archive_order(archive);

    for (uint32_t i = 0; result == 0 && i < archive->directory.count; i++) {
        PyObject *const name = pyio_archive_name(archive, i);
        struct cio_zip_info info;
        struct cio_entry entry;

        cio_directory_info(&archive->directory, i, &info);
        cio_entry_of(&archive->directory, &info, &entry);
        result = name == NULL
                         || pyio_archive_admit(st, archive, archive->profile,
                                               &entry, name)
                                < 0
                         || (i % 4096 == 0 && PyErr_CheckSignals() < 0)
                     ? -1
                     : 0;
        Py_XDECREF(name);
    }
    pyio_archive_release(archive);
    return result;
}

PyObject *
pyio_zip_reader_ref_fields(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const struct zip_reader *const self = (struct zip_reader *)op;

    if (self->archive != NULL && self->archive->profile != NULL
        && admit_all(op) < 0) {
        return NULL;
    }
    return pyio_zip_reader_list(op, ref_fields_of);
}

static struct pyio_archive *
open_ref(struct pyio_state *st, PyObject *const *args, Py_ssize_t nargs,
         struct pyio_member *member)
{
    struct cio_entry *const entry = &member->entry;
    struct pyio_archive *archive;
    unsigned long long values[5];

    memset(member, 0, sizeof *member);
    if (nargs != 9 || !PyTuple_Check(args[1])) {
        (void)pyio_raise(PyExc_TypeError, "not the fields of an EntryRef");
        return NULL;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(values); i++) {
        values[i] = PyLong_AsUnsignedLongLong(args[3 + i]);
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    entry->header_off = values[0];
    entry->compressed_nbytes = values[1];
    entry->nbytes = values[2];
    entry->crc = (uint32_t)values[3];
    entry->method = (uint16_t)values[4];
    entry->end_off = UINT64_MAX;
    entry->index = UINT32_MAX;
    entry->bare = true;
    entry->nowhere = entry->header_off > INT64_MAX;
    entry->verify = true;
    if (pyio_as_bool(args[8], &entry->verify) < 0) {
        return NULL;
    }
    if (!PyUnicode_Check(args[2])) {
        (void)pyio_raise(PyExc_TypeError, "a name must be str");
        return NULL;
    }
    archive = pyio_archive_new(st, args[0]);
    if (archive == NULL) {
        return NULL;
    }
    member->name = Py_NewRef(args[2]);
    /* How long the local header's name may be, so that one read suffices. */
    entry->raw_name_nbytes = (size_t)PyUnicode_GET_LENGTH(args[2]);
    if (archive->source == NULL && check_fingerprint(archive, args[1]) < 0) {
        Py_DECREF(archive);
        return NULL;
    }
    return archive;
}

static PyObject *
use_ref(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
        PyObject *(*use)(struct pyio_state *, struct pyio_archive *,
                         struct pyio_member *))
{
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_member member;
    struct pyio_archive *const archive = open_ref(st, args, nargs, &member);
    PyObject *result = NULL;

    if (archive != NULL) {
        result = use(st, archive, &member);
        Py_DECREF(archive);
    }
    pyio_member_clear(&member);
    return result;
}

PyDoc_STRVAR(ref_read_doc,
             "_zip_ref_read($module, file, fingerprint, name, offset, "
             "compressed_size, size, crc, method, verify, /)\n--\n\n"
             "A member's bytes, without its archive's directory.");

static PyObject *
ref_read(PyObject *mod, PyObject *const *args, Py_ssize_t nargs)
{
    return use_ref(mod, args, nargs, pyio_member_read);
}

PyDoc_STRVAR(ref_open_doc,
             "_zip_ref_open($module, file, fingerprint, name, offset, "
             "compressed_size, size, crc, method, verify, /)\n--\n\n"
             "A stream over a member, without its archive's directory.");

static PyObject *
ref_open(PyObject *mod, PyObject *const *args, Py_ssize_t nargs)
{
    return use_ref(mod, args, nargs, pyio_member_open);
}

static PyMethodDef functions[] = {
    {"_zip_ref_read", (PyCFunction)(void (*)(void))ref_read, METH_FASTCALL,
     ref_read_doc},
    {"_zip_ref_open", (PyCFunction)(void (*)(void))ref_open, METH_FASTCALL,
     ref_open_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_zip_ref(PyObject *mod, struct pyio_state *st)
{
    (void)st;
    return pyio_add_functions(mod, functions);
}
