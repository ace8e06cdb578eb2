/* SPDX-License-Identifier: MIT
 * pyio_inflate_gzip.c - GzipFile: an InflateReader with gzip.GzipFile's
 * constructor and attributes.
 */
#include "glue/inflate/pyio_inflate.h"

#include <string.h>
#include <structmember.h>
#include <unistd.h>

#include "base/cio_workers.h"

/* 0 for a reading mode; gzip's own errors for the rest. mode: NULL, None, or
 * str. */
static int
check_mode(PyObject *mode, PyObject *fileobj)
{
    PyObject *from_file = NULL;
    const char *text;
    int result = 0;

    if (mode == NULL || mode == Py_None) {
        if (fileobj == NULL) {
            return 0;
        }
        from_file = PyObject_GetAttrString(fileobj, "mode");
        if (from_file == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
                return -1;
            }
            PyErr_Clear();
            return 0;
        }
        if (!PyUnicode_Check(from_file)) { /* gzip's own say 1 */
            Py_DECREF(from_file);
            return 0;
        }
        mode = from_file;
    }
    text = PyUnicode_AsUTF8(mode);
    if (text == NULL) {
        result = -1;
    } else if (strpbrk(text, "tU") != NULL || strchr("rwax", text[0]) == NULL
               || text[0] == '\0') {
        result = pyio_raise(PyExc_ValueError, "Invalid mode: %R", mode);
    } else if (text[0] != 'r') {
        result = pyio_raise(PyExc_ValueError,
                            "mode %R: this GzipFile only reads; gzip.GzipFile "
                            "writes",
                            mode);
    }
    Py_XDECREF(from_file);
    return result;
}

/* The name as gzip has it: filename, else the file object's if it is a path,
 * else ''. */
static PyObject *
gzip_name(PyObject *filename, PyObject *fileobj)
{
    PyObject *name;

    if (filename != NULL) {
        return PyOS_FSPath(filename);
    }
    name = PyObject_GetAttrString(fileobj, "name");
    if (name == NULL && !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return NULL;
    }
    if (name == NULL || (!PyUnicode_Check(name) && !PyBytes_Check(name))) {
        PyErr_Clear();
        Py_XDECREF(name);
        return PyUnicode_FromString("");
    }
    return name;
}

static int
parse_threads(PyObject *value, unsigned *threads)
{
    int64_t n = 0;

    *threads = 1;
    if (value == NULL) {
        return 0;
    }
    if (value != Py_None) {
        if (pyio_as_offset(value, "threads", &n) < 0) {
            return -1;
        }
        if (n == 0) {
            return pyio_raise(PyExc_ValueError, "threads must be at least 1");
        }
    }
    *threads =
        cio_workers_count(n > CIO_WORKERS_MAX ? CIO_WORKERS_MAX : (unsigned)n);
    return 0;
}

static int
gzip_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"filename", "mode",  "compresslevel",
                                        "fileobj",  "mtime", "threads",
                                        "max_size", NULL};
    static const struct pyio_signature signature = {"GzipFile", names, 5, 0};
    struct pyio_reader *r = (struct pyio_reader *)op;
    struct pyio_reader_options options = {.chunk_nbytes = CIO_CHUNK_NBYTES,
                                          .format = CIO_FORMAT_GZIP};
    PyObject *given[7], *filename, *fileobj, *name;

    if (pyio_arguments_tuple(&signature, args, kwargs, given) < 0) {
        return -1;
    }
    filename = given[0] == Py_None ? NULL : given[0];
    fileobj = given[3] == Py_None ? NULL : given[3];
    if (filename == NULL && fileobj == NULL) {
        return pyio_raise(PyExc_TypeError, "filename or fileobj is needed");
    }
    if (check_mode(given[1], fileobj) < 0
        || parse_threads(given[5], &options.threads) < 0
        || pyio_as_max_size(given[6], &options.max_nbytes) < 0) {
        return -1;
    }
    name = gzip_name(filename, fileobj);
    if (name == NULL) {
        return -1;
    }
    options.source = fileobj != NULL ? fileobj : name;
    if (pyio_reader_open(r, &options) < 0) {
        Py_DECREF(name);
        return -1;
    }
    Py_XSETREF(r->name, name);
    return 0;
}

static PyObject *
gzip_rewind(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    PyObject *const at = PyObject_CallMethod(op, "seek", "i", 0);

    if (at == NULL) {
        return NULL;
    }
    Py_DECREF(at);
    Py_RETURN_NONE;
}

static PyObject *
gzip_get_mtime(PyObject *op, void *Py_UNUSED(closure))
{
    const struct pyio_reader *r = (struct pyio_reader *)op;

    if (!r->decoder.has_mtime) {
        Py_RETURN_NONE;
    }
    /* Further headers may have been read ahead. */
    return PyLong_FromUnsignedLong(
        r->out.at < r->out.end ? r->decoder.first_mtime : r->decoder.mtime);
}

/* gzip's is the file that it opened, and callers ask its tell() how far they
 * are: an io.FileIO, whose offset is put there whenever it is asked for. */
static PyObject *
opened_file(struct pyio_state *st, struct pyio_reader *r)
{
    if (r->positional
        && cio_sys->lseek(r->fd,
                          (off_t)(r->file_at - (int64_t)pyio_reader_unread(r)),
                          SEEK_SET)
               < 0) {
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, r->name);
    }
    if (r->view == NULL) {
        r->view = PyObject_CallFunction(st->file_io, "isi", r->fd, "rb", 0);
        if (r->view != NULL
            && PyObject_SetAttrString(r->view, "name", r->name) < 0) {
            Py_CLEAR(r->view);
        }
    }
    return Py_XNewRef(r->view);
}

static PyObject *
gzip_get_fileobj(PyObject *op, void *Py_UNUSED(closure))
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (!pyio_stream_is_open(&r->head)) {
        Py_RETURN_NONE;
    }
    return r->kind == PYIO_STREAM_PATH
               ? opened_file(pyio_state_of(Py_TYPE(op)), r)
               : Py_NewRef(r->source);
}

static PyMethodDef gzip_methods[] = {
    {"rewind", gzip_rewind, METH_NOARGS,
     PyDoc_STR("rewind($self, /)\n--\n\nAs seek(0).")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef gzip_getset[] = {
    {"mtime", gzip_get_mtime, NULL,
     PyDoc_STR("The time in the header read last, in seconds since 1970; None "
               "before the\nfirst read."),
     NULL},
    {"fileobj", gzip_get_fileobj, NULL,
     PyDoc_STR("The file object that was given, or an io.FileIO of the file "
               "that was opened;\nNone when closed."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(gzip_doc,
             "GzipFile(filename=None, mode=None, compresslevel=9, "
             "fileobj=None, mtime=None, *,\n         threads=1, "
             "max_size=None)\n--\n\n"
             "The reading half of gzip.GzipFile.\n\n"
             "All members, one after the other; zeros between and behind "
             "them are skipped.\nthreads: how many inflate a BGZF file's "
             "blocks (None: as many as the machine\nhas). More than max_size "
             "decoded bytes: LimitError. A writing mode is a\nValueError. "
             "Errors: gzip.BadGzipFile, EOFError where the file is cut, "
             "zlib.error.");

static PyType_Slot gzip_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)gzip_doc},
    {Py_tp_init, gzip_init},
    {Py_tp_methods, gzip_methods},
    {Py_tp_getset, gzip_getset},
    {0, NULL},
};

PyType_Spec pyio_gzip_file_spec = {
    .name = "pyio_chunked.GzipFile",
    .basicsize = sizeof(struct pyio_reader),
    /* GC comes from InflateReader, with its traverse and clear. */
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = gzip_slots,
};
