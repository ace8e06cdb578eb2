/* SPDX-License-Identifier: MIT
 * pyio_zip_ref.c - EntryRef's read and open: a member by path and offset,
 * without its directory.
 */
#include "glue/pyio_zip.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cio_bytes.h"

/* (size, mtime in ns, inode) of an open file. */
static PyObject *
fingerprint_of(int fd, PyObject *path)
{
    const struct pyio_context context = {path, NULL, -1};
    struct stat s;

    if (cio_sys->fstat(fd, &s) < 0) {
        (void)pyio_check(NULL, cio_done_sys(errno, 0), &context);
        return NULL;
    }
    return Py_BuildValue("LLK", (long long)s.st_size,
                         (long long)s.st_mtim.tv_sec * 1000000000
                             + s.st_mtim.tv_nsec,
                         (unsigned long long)s.st_ino);
}

/* The file must be the one that the reference was made for; of a portable one
 * only the size is known. */
static int
check_fingerprint(const struct pyio_archive *archive, PyObject *expected)
{
    PyObject *found = fingerprint_of(archive->fd, archive->filename);
    int same;

    if (found == NULL) {
        return -1;
    }
    if (PyTuple_GET_SIZE(expected) < 3) {
        Py_SETREF(found,
                  PyTuple_GetSlice(found, 0, PyTuple_GET_SIZE(expected)));
        if (found == NULL) {
            return -1;
        }
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

/* Flags and raw name stand in the local header only; the name is compared by
 * its decoded form. */
static int
read_flags(struct pyio_state *st, struct pyio_archive *archive,
           struct pyio_member *member, PyObject *name)
{
    uint8_t header[CIO_ZIP_HEADER_NBYTES];
    size_t got;

    if (pyio_archive_fetch(st, archive, member->entry.header_off, header,
                           sizeof header, &got)
        < 0) {
        return -1;
    }
    if (got == sizeof header) {
        member->entry.flags = cio_load_le16(header + 6);
        member->entry.time = cio_load_le16(header + 10);
    }
    member->name = Py_NewRef(name);
    return 0;
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
    entry->nowhere = entry->header_off > INT64_MAX;
    entry->verify = true;
    if (pyio_as_bool(args[8], &entry->verify) < 0) {
        return NULL;
    }
    archive = pyio_archive_new(st, args[0]);
    if (archive == NULL) {
        return NULL;
    }
    if ((archive->source == NULL && check_fingerprint(archive, args[1]) < 0)
        || read_flags(st, archive, member, args[2]) < 0) {
        Py_DECREF(archive);
        return NULL;
    }
    return archive;
}

PyDoc_STRVAR(ref_read_doc,
             "_zip_ref_read($module, file, fingerprint, name, offset, "
             "compressed_size, size, crc, method, verify, /)\n--\n\n"
             "A member's bytes, without its archive's directory.");

static PyObject *
ref_read(PyObject *mod, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_member member;
    struct pyio_archive *const archive = open_ref(st, args, nargs, &member);
    PyObject *result = NULL;

    if (archive != NULL) {
        result = pyio_member_read(st, archive, &member);
        Py_DECREF(archive);
    }
    pyio_member_clear(&member);
    return result;
}

PyDoc_STRVAR(ref_open_doc,
             "_zip_ref_open($module, file, fingerprint, name, offset, "
             "compressed_size, size, crc, method, verify, /)\n--\n\n"
             "A stream over a member, without its archive's directory.");

static PyObject *
ref_open(PyObject *mod, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_member member;
    struct pyio_archive *const archive = open_ref(st, args, nargs, &member);
    PyObject *result = NULL;

    if (archive != NULL) {
        result = pyio_member_open(st, archive, &member);
        Py_DECREF(archive);
    }
    pyio_member_clear(&member);
    return result;
}

PyDoc_STRVAR(fingerprint_doc, "_zip_fingerprint($module, fd, path, /)\n--\n\n"
                              "(size, mtime in ns, inode) of an open file.");

static PyObject *
fingerprint(PyObject *Py_UNUSED(mod), PyObject *const *args, Py_ssize_t nargs)
{
    int fd;

    if (nargs != 2) {
        (void)pyio_raise(PyExc_TypeError,
                         "_zip_fingerprint takes 2 arguments");
        return NULL;
    }
    fd = PyObject_AsFileDescriptor(args[0]);
    return fd < 0 ? NULL : fingerprint_of(fd, args[1]);
}

static PyMethodDef functions[] = {
    {"_zip_ref_read", (PyCFunction)(void (*)(void))ref_read, METH_FASTCALL,
     ref_read_doc},
    {"_zip_ref_open", (PyCFunction)(void (*)(void))ref_open, METH_FASTCALL,
     ref_open_doc},
    {"_zip_fingerprint", (PyCFunction)(void (*)(void))fingerprint,
     METH_FASTCALL, fingerprint_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_zip_ref(PyObject *mod, struct pyio_state *st)
{
    (void)st;
    return pyio_add_functions(mod, functions);
}
