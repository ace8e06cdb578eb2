/* SPDX-License-Identifier: MIT
 * pyio_zip_reader.c - the C half of ZipFile: what is called once per member.
 *
 * pyio_chunked/_zip.py derives from it and adds what is policy: ZipInfo
 * objects, listing, printing, other methods than stored and deflated.
 */
#include "glue/zip/pyio_zip_reader.h"
#include "glue/base/pyio_read.h"

#include <string.h>

#include "base/cio_bytes.h"

static void
drop_archive(struct zip_reader *self)
{
    struct pyio_archive *const archive = self->archive;

    self->archive = NULL;
    if (archive != NULL) {
        archive->retired = false;
        Py_DECREF(archive);
    }
}

/* Other methods are for the Python half. */
static bool
is_special(const struct cio_entry *entry)
{
    return entry->method != CIO_ZIP_STORED
           && entry->method != CIO_ZIP_DEFLATED;
}

/* -------------------------------------------------------------------- load */

static int
as_bound(PyObject *value, uint64_t *bound)
{
    *bound = UINT64_MAX;
    if (value == Py_None) {
        return 0;
    }
    *bound = PyLong_AsUnsignedLongLong(value);
    return *bound == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(load_doc,
             "_load($self, file, encoding, whole_tail, directory_size, "
             "entries, name_length, /)\n--\n\n"
             "Open, find and index the directory. Bounds in bytes (entries: "
             "a count), or\nNone.");

static PyObject *
reader_load(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_reader *const self = (struct zip_reader *)op;
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *archive;
    struct cio_zip_bounds bounds;
    bool whole_tail = false;

    if (nargs != 6) {
        (void)pyio_raise(PyExc_TypeError, "_load takes 6 arguments");
        return NULL;
    }
    if (as_bound(args[3], &bounds.dir_nbytes) < 0
        || as_bound(args[4], &bounds.entries) < 0
        || as_bound(args[5], &bounds.name_nbytes) < 0
        || pyio_as_bool(args[2], &whole_tail) < 0) {
        return NULL;
    }
    archive = pyio_archive_new(st, args[0]);
    if (archive == NULL) {
        return NULL;
    }
    archive->whole_tail = whole_tail;
    if (args[1] != Py_None) {
        archive->encoding = Py_NewRef(args[1]);
    }
    if (pyio_archive_load(st, archive, &bounds) < 0) {
        Py_DECREF(archive);
        return NULL;
    }
    drop_archive(self);
    self->archive = archive;
    self->closed = false;
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------- read */

static PyObject *
call_special(PyObject *op, const char *method, PyObject *name, PyObject *pwd,
             bool verify)
{
    return PyObject_CallMethod(op, method, "OOO", name,
                               pwd != NULL ? pwd : Py_None,
                               verify ? Py_True : Py_False);
}

PyDoc_STRVAR(read_doc,
             "read($self, name, pwd=None, *, verify=True)\n--\n\n"
             "All bytes of a member, named or given as ZipInfo.\n\n"
             "verify=False skips the CRC alone. KeyError: no such member; "
             "BadZipFile names\nwhat is wrong. In place of zipfile's "
             "ZipFile.read.");

static PyObject *
reader_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
            PyObject *kwnames)
{
    static const char *const names[] = {"name", "pwd", "verify", NULL};
    static const struct pyio_signature signature = {"read", names, 2, 1};
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *archive;
    struct pyio_member member;
    PyObject *given[3] = {NULL, NULL, NULL}, *result = NULL;
    bool verify = true;

    if (PYIO_LIKELY(nargs == 1 && kwnames == NULL)) {
        given[0] = args[0];
    } else if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
               || pyio_as_bool(given[2], &verify) < 0) {
        return NULL;
    }
    archive = pyio_zip_reader_archive(op);
    if (archive == NULL) {
        return NULL;
    }
    if (pyio_member_find(st, archive, given[0], &member) == 0) {
        member.entry.verify = verify;
        if (PYIO_UNLIKELY(is_special(&member.entry))) {
            result =
                call_special(op, "_read_special", given[0], given[1], verify);
        } else if (pyio_zip_reader_unlock(op, &member.entry, given[1]) == 0) {
            result = pyio_member_read(st, archive, &member);
        }
        pyio_member_clear(&member);
    }
    pyio_archive_release(archive);
    return result;
}

static PyObject *
copy_special(PyObject *op, PyObject *name, const Py_buffer *view, bool verify)
{
    PyObject *const data =
        call_special(op, "_read_special", name, NULL, verify);
    Py_ssize_t nbytes;

    if (data == NULL) {
        return NULL;
    }
    nbytes = PyBytes_GET_SIZE(data);
    if (nbytes > view->len) {
        Py_DECREF(data);
        (void)pyio_raise(PyExc_ValueError, "the buffer is too small for %R",
                         name);
        return NULL;
    }
    memcpy(view->buf, PyBytes_AS_STRING(data), (size_t)nbytes);
    Py_DECREF(data);
    return PyLong_FromSsize_t(nbytes);
}

static PyObject *
read_into_view(PyObject *op, struct pyio_archive *archive, PyObject *name,
               const Py_buffer *view, bool verify)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_member member;
    PyObject *result = NULL;

    if (pyio_member_find(st, archive, name, &member) < 0) {
        return NULL;
    }
    member.entry.verify = verify;
    if (is_special(&member.entry)) {
        result = copy_special(op, name, view, verify);
    } else if (member.entry.nbytes > (uint64_t)view->len) {
        (void)pyio_raise(PyExc_ValueError,
                         "%R has %llu bytes, the buffer only %zd", name,
                         (unsigned long long)member.entry.nbytes, view->len);
    } else if (pyio_zip_reader_unlock(op, &member.entry, NULL) == 0
               && pyio_member_check(st, archive, &member) == 0
               && pyio_member_read_into(st, archive, &member, view->buf)
                      == 0) {
        result = PyLong_FromUnsignedLongLong(member.entry.nbytes);
    }
    pyio_member_clear(&member);
    return result;
}

PyDoc_STRVAR(readinto_doc,
             "readinto($self, name, buffer, *, verify=True)\n--\n\n"
             "Read a member into writable memory; the number of bytes.\n\n"
             "ValueError where the buffer is too small; otherwise as read.");

static PyObject *
reader_readinto(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                PyObject *kwnames)
{
    static const char *const names[] = {"name", "buffer", "verify", NULL};
    static const struct pyio_signature signature = {"readinto", names, 2, 2};
    struct pyio_archive *archive;
    PyObject *given[3], *result = NULL;
    bool verify = true;
    Py_buffer view;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || pyio_as_bool(given[2], &verify) < 0
        || (archive = pyio_zip_reader_archive(op)) == NULL) {
        return NULL;
    }
    if (pyio_target_buffer(given[1], "readinto", &view) == 0) {
        result = read_into_view(op, archive, given[0], &view, verify);
        PyBuffer_Release(&view);
    }
    pyio_archive_release(archive);
    return result;
}

/* -------------------------------------------------------------------- open */

/* mode as zipfile checks it; writing is zipfile's business. */
static int
check_mode(PyObject *mode)
{
    if (mode == NULL
        || (PyUnicode_Check(mode)
            && PyUnicode_CompareWithASCIIString(mode, "r") == 0)) {
        return 0;
    }
    if (PyUnicode_Check(mode)
        && PyUnicode_CompareWithASCIIString(mode, "w") == 0) {
        return pyio_raise(PyExc_ValueError,
                          "this ZipFile only reads: zipfile.ZipFile writes");
    }
    return pyio_raise(PyExc_ValueError, "open() requires mode \"r\"");
}

PyDoc_STRVAR(open_doc,
             "open($self, name, mode='r', pwd=None, *, force_zip64=False)\n"
             "--\n\n"
             "A member as a binary, seekable io.BufferedIOBase.\n\n"
             "It stays readable after close(). Errors as zipfile's. In place "
             "of\nzipfile's ZipFile.open, for reading.");

static PyObject *
reader_open(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
            PyObject *kwnames)
{
    static const char *const names[] = {"name", "mode", "pwd", "force_zip64",
                                        NULL};
    static const struct pyio_signature signature = {"open", names, 3, 1};
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *archive;
    struct pyio_member member;
    PyObject *given[4], *result = NULL;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || check_mode(given[1]) < 0
        || (archive = pyio_zip_reader_archive(op)) == NULL) {
        return NULL;
    }
    if (pyio_member_find(st, archive, given[0], &member) == 0) {
        if (is_special(&member.entry)) {
            result =
                call_special(op, "_open_special", given[0], given[2], true);
        } else if (pyio_zip_reader_unlock(op, &member.entry, given[2]) == 0) {
            result = pyio_member_open(st, archive, &member);
        }
        pyio_member_clear(&member);
    }
    pyio_archive_release(archive);
    return result;
}

static PyObject *
reader_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const struct zip_reader *const self = (struct zip_reader *)op;

    return PyLong_FromLong(
        self->archive == NULL || self->closed ? -1 : self->archive->fd);
}

static PyObject *
reader_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct zip_reader *const self = (struct zip_reader *)op;

    if (self->archive != NULL && !self->closed) {
        self->closed = true;
        pyio_archive_retire(self->archive);
    }
    Py_RETURN_NONE;
}

/* -------------------------------------------------------------------- type */

static int
reader_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((struct zip_reader *)op)->archive);
    return 0;
}

static int
reader_clear(PyObject *op)
{
    drop_archive((struct zip_reader *)op);
    return 0;
}

static void
reader_dealloc(PyObject *op)
{
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    (void)reader_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef reader_methods[] = {
    PYIO_FAST("read", reader_read, METH_KEYWORDS, read_doc),
    PYIO_FAST("readinto", reader_readinto, METH_KEYWORDS, readinto_doc),
    PYIO_FAST("open", reader_open, METH_KEYWORDS, open_doc),
    PYIO_FAST("read_many", pyio_zip_reader_read_many, METH_KEYWORDS,
              pyio_zip_reader_read_many_doc),
    PYIO_FAST("testzip", pyio_zip_reader_testzip, METH_KEYWORDS,
              pyio_zip_reader_testzip_doc),
    PYIO_FAST("_load", reader_load, 0, load_doc),
    PYIO_FAST("_open_raw", pyio_zip_reader_open_raw, 0, NULL),
    {"check", pyio_zip_reader_check, METH_NOARGS, pyio_zip_reader_check_doc},
    {"_set_profile", pyio_zip_reader_set_profile, METH_O, NULL},
    {"_set_limits", pyio_zip_reader_set_limits, METH_O, NULL},
    {"_extract", pyio_zip_reader_extract, METH_VARARGS, NULL},
    {"_find", pyio_zip_reader_find, METH_O, NULL},
    {"_names", pyio_zip_reader_names, METH_NOARGS, NULL},
    {"_record", pyio_zip_reader_record, METH_O, NULL},
    {"_ref_fields", pyio_zip_reader_ref_fields, METH_NOARGS, NULL},
    {"_facts", pyio_zip_reader_facts, METH_NOARGS, NULL},
    {"_fileno", reader_fileno, METH_NOARGS, NULL},
    {"_close", reader_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("The C half of ZipFile. Private.")},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_methods, reader_methods},
    {Py_sq_length, pyio_zip_reader_length},
    {Py_sq_contains, pyio_zip_reader_contains},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "pyio_chunked._core._ZipReader",
    .basicsize = sizeof(struct zip_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};

/* The class whose instances read() takes beside names. */
static PyObject *
set_zip_info(PyObject *mod, PyObject *type)
{
    Py_XSETREF(pyio_state_of_module(mod)->zip_info, Py_NewRef(type));
    Py_RETURN_NONE;
}

/* True when the file has an end record; the exception says why not. */
static PyObject *
has_end(PyObject *mod, PyObject *file)
{
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_archive *const archive = pyio_archive_new(st, file);
    int result;

    if (archive == NULL) {
        return NULL;
    }
    result = pyio_archive_find_end(st, archive);
    Py_DECREF(archive);
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyMethodDef functions[] = {
    {"_has_end", has_end, METH_O, NULL},
    {"_set_zip_info", set_zip_info, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_zip_reader(PyObject *mod, struct pyio_state *st)
{
    if (pyio_add_functions(mod, functions) < 0) {
        return -1;
    }
    return pyio_add_type(mod, &reader_spec, NULL, &st->zip_reader_type);
}
