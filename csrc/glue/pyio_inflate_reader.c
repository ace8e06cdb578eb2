/* SPDX-License-Identifier: MIT
 * pyio_inflate_reader.c - the type InflateReader: construction, closing, and
 * what it says of itself.
 */
#include "glue/pyio_inflate.h"

#include <structmember.h>

#include "base/cio_bytes.h"

/* ---------------------------------------------------------------- the lock */

static int
raise_closed(void)
{
    return pyio_raise(PyExc_ValueError, "I/O operation on closed file.");
}

int
pyio_reader_enter(struct pyio_reader *r)
{
    if (!r->ready || pyio_lock_enter(&r->lock, (PyObject *)r) < 0) {
        return r->ready ? -1 : raise_closed();
    }
    if (!r->ready) { /* closed while we waited */
        pyio_lock_leave(&r->lock);
        return raise_closed();
    }
    return 0;
}

/* It doesn't own the descriptor: it is only told that it is gone. */
static void
close_view(struct pyio_reader *r)
{
    PyObject *const exception = pyio_exception_take();
    PyObject *const closed = PyObject_CallMethod(r->view, "close", NULL);

    Py_XDECREF(closed);
    Py_CLEAR(r->view);
    pyio_exception_give(exception);
}

static int
let_go(struct pyio_reader *r)
{
    const int fd = r->fd;

    pyio_reader_release(r);
    Py_CLEAR(r->saved);
    r->closing = false;
    r->fd = -1;
    if (r->view != NULL) {
        close_view(r);
    }
    if (r->owns_source) {
        PyObject *const exception = pyio_exception_take();
        PyObject *const closed = PyObject_CallMethod(r->source, "close", NULL);

        r->owns_source = false;
        Py_XDECREF(closed);
        if (exception != NULL) {
            pyio_exception_give(exception);
            return 0;
        }
        return closed == NULL ? -1 : 0;
    }
    return r->kind == PYIO_STREAM_PATH && fd >= 0 ? pyio_close(fd) : 0;
}

PyObject *
pyio_reader_own_source(PyObject *mod, PyObject *op)
{
    struct pyio_state *st = pyio_state_of_module(mod);

    if (!PyObject_TypeCheck(op, st->inflate_reader_type)) {
        (void)pyio_raise(PyExc_TypeError, "%R is no InflateReader", op);
        return NULL;
    }
    ((struct pyio_reader *)op)->owns_source = true;
    Py_RETURN_NONE;
}

void
pyio_reader_leave(struct pyio_reader *r)
{
    if (r->closing) {
        (void)let_go(r); /* its own exception, if any, stays */
    }
    pyio_lock_leave(&r->lock);
}

int
pyio_reader_close(struct pyio_reader *r)
{
    int result;

    if (!r->ready) {
        return 0;
    }
    if (!pyio_lock_free(&r->lock)
        && r->lock.owner != PyThread_get_thread_ident()) {
        /* That call may wait for data for long; its thread closes. */
        r->ready = false;
        r->closing = true;
        return 0;
    }
    if (pyio_lock_enter(&r->lock, (PyObject *)r) < 0) {
        return -1;
    }
    r->ready = false;
    result = let_go(r);
    pyio_lock_leave(&r->lock);
    return result;
}

/* ------------------------------------------------------------ construction */

static PyObject *
reader_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
           PyObject *Py_UNUSED(kwargs))
{
    struct pyio_reader *r = (struct pyio_reader *)type->tp_alloc(type, 0);

    if (r != NULL) {
        r->fd = -1;
        cio_decoder_init(&r->decoder, CIO_FORMAT_AUTO);
    }
    return (PyObject *)r;
}

int
pyio_reader_open(struct pyio_reader *r,
                 const struct pyio_reader_options *options)
{
    if (pyio_reader_close(r) < 0) { /* a second __init__ */
        return -1;
    }
    if (!pyio_lock_free(&r->lock)) {
        return pyio_raise(PyExc_RuntimeError, "%R is in use", r);
    }
    Py_CLEAR(r->source);
    Py_CLEAR(r->name);
    Py_CLEAR(r->saved);
    r->in_ended = r->ended = r->blocks = false;
    r->failed = CIO_OK;
    r->pos = 0;
    r->chunk_nbytes = options->chunk_nbytes;
    r->threads = options->threads;
    cio_decoder_init(&r->decoder, options->format);
    r->decoder.max_nbytes = options->max_nbytes;
    if (pyio_reader_attach(pyio_state_of(Py_TYPE(r)), r, options->source)
        < 0) {
        return -1;
    }
    r->ready = true;
    return 0;
}

static int
reader_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"source", "format", "max_size",
                                        "chunk_size", NULL};
    static const struct pyio_signature signature = {"InflateReader", names, 2,
                                                    1};
    static const char *const formats[] = {"auto", "raw", "zlib", "gzip", NULL};
    struct pyio_reader_options options = {.chunk_nbytes = CIO_CHUNK_NBYTES,
                                          .threads = 1};
    PyObject *given[4];
    int format = 0;
    int64_t chunk;

    if (pyio_arguments_tuple(&signature, args, kwargs, given) < 0
        || (given[1] != NULL
            && pyio_as_choice(given[1], "format", formats, &format) < 0)
        || pyio_as_max_size(given[2], &options.max_nbytes) < 0) {
        return -1;
    }
    if (given[3] != NULL && given[3] != Py_None) {
        if (pyio_as_offset(given[3], "chunk_size", &chunk) < 0) {
            return -1;
        }
        if (chunk == 0) {
            return pyio_raise(PyExc_ValueError,
                              "chunk_size must be at least 1");
        }
        options.chunk_nbytes =
            (size_t)cio_min_u64((uint64_t)chunk, CIO_CHUNK_NBYTES);
    }
    options.source = given[0];
    options.format = (enum cio_format)format;
    return pyio_reader_open((struct pyio_reader *)op, &options);
}

/* -------------------------------------------------------------- life's end */

static void
reader_finalize(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyObject *before, *closed;

    if (!r->ready) {
        return;
    }
    before = pyio_exception_take();
    /* What was given is the giver's to close. */
    if ((r->kind == PYIO_STREAM_PATH || r->owns_source)
        && PyErr_ResourceWarning(op, 1, "unclosed file %R", op) < 0) {
        PyErr_WriteUnraisable(op);
    }
    closed = PyObject_CallMethod(op, "close", NULL);
    if (closed == NULL) {
        PyErr_WriteUnraisable(op);
    }
    Py_XDECREF(closed);
    pyio_exception_give(before);
}

static int
reader_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(r->dict);
    Py_VISIT(r->source);
    Py_VISIT(r->name);
    Py_VISIT(r->view);
    return 0;
}

static int
reader_clear(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    Py_CLEAR(r->dict);
    Py_CLEAR(r->source);
    Py_CLEAR(r->name);
    Py_CLEAR(r->view);
    return 0;
}

static void
reader_dealloc(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    PyTypeObject *const type = Py_TYPE(op);

    if (r->ready && PyObject_CallFinalizerFromDealloc(op) < 0) {
        return; /* somebody took it back */
    }
    PyObject_GC_UnTrack(op);
    if (r->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    if (r->ready) {
        (void)let_go(r); /* a close of a subclass that closed nothing */
    }
    pyio_reader_release(r);
    Py_CLEAR(r->saved);
    (void)reader_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
reader_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return pyio_reader_close((struct pyio_reader *)op) < 0
               ? NULL
               : Py_NewRef(Py_None);
}

static PyObject *
reader_enter(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (!((struct pyio_reader *)op)->ready) {
        (void)raise_closed();
        return NULL;
    }
    return Py_NewRef(op);
}

static PyObject *
reader_exit(PyObject *op, PyObject *const *Py_UNUSED(args),
            Py_ssize_t Py_UNUSED(nargs))
{
    return PyObject_CallMethod(op, "close", NULL);
}

/* ---------------------------------------------------------- what it is */

static PyObject *
reader_repr(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    const char *const name = Py_TYPE(op)->tp_name;

    if (r->name == NULL || Py_ReprEnter(op) != 0) {
        return PyUnicode_FromFormat("<%s at %p>", name, op);
    }
    {
        PyObject *const text = PyUnicode_FromFormat(
            "<%s name=%R%s>", name, r->name, r->ready ? "" : " closed");
        Py_ReprLeave(op);
        return text;
    }
}

static PyObject *
reader_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (!r->ready) {
        (void)raise_closed();
        return NULL;
    }
    return PyLong_FromLongLong(r->pos);
}

static PyObject *
reader_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    (void)pyio_raise(pyio_state_of(Py_TYPE(op))->unsupported,
                     "fileno: the descriptor holds compressed bytes; "
                     "source_fileno() gives it");
    return NULL;
}

static PyObject *
reader_source_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (!r->ready) {
        (void)raise_closed();
        return NULL;
    }
    return r->fd >= 0 ? PyLong_FromLong(r->fd)
                      : PyObject_CallMethod(r->source, "fileno", NULL);
}

static PyObject *
reader_readable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (!((struct pyio_reader *)op)->ready) {
        (void)raise_closed();
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *
reader_writable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (!((struct pyio_reader *)op)->ready) {
        (void)raise_closed();
        return NULL;
    }
    Py_RETURN_FALSE;
}

static PyObject *
reader_seekable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    int result;

    if (!r->ready) {
        (void)raise_closed();
        return NULL;
    }
    result = pyio_reader_seekable(r);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

#define FAST(name, function, doc)                                             \
    {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL,            \
     PyDoc_STR(doc)}
#define PLAIN(name, function, flags, doc)                                     \
    {name, (function), (flags), PyDoc_STR(doc)}

static PyMethodDef reader_methods[] = {
    FAST("read", pyio_reader_read,
         "read($self, size=-1, /)\n--\n\n"
         "size decoded bytes, fewer only at the end; all of them with -1 or "
         "None."),
    FAST("read1", pyio_reader_read1,
         "read1($self, size=-1, /)\n--\n\n"
         "At least one decoded byte and at most size, or none at the end, "
         "asking the\nsource only when nothing is decoded yet."),
    PLAIN("readinto", pyio_reader_readinto, METH_O,
          "readinto($self, buffer, /)\n--\n\n"
          "Fill buffer with decoded bytes, or up to the end; their number."),
    PLAIN("readinto1", pyio_reader_readinto1, METH_O,
          "readinto1($self, buffer, /)\n--\n\nAs read1, into buffer."),
    FAST("peek", pyio_reader_peek,
         "peek($self, size=0, /)\n--\n\n"
         "Decoded bytes that the next read will give, at least one except at "
         "the end;\nsize is not looked at."),
    FAST("readline", pyio_reader_readline,
         "readline($self, size=-1, /)\n--\n\n"
         "Up to and with the next newline, at most size bytes."),
    {"seek", (PyCFunction)(void (*)(void))pyio_reader_seek,
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("seek($self, offset, whence=0)\n--\n\n"
               "Go to a position of the decoded data; returns it. Forwards by "
               "decoding,\nbackwards from the start again, where the source "
               "can seek.")},
    PLAIN("tell", reader_tell, METH_NOARGS,
          "tell($self, /)\n--\n\nThe position in the decoded data."),
    PLAIN("fileno", reader_fileno, METH_NOARGS,
          "fileno($self, /)\n--\n\n"
          "io.UnsupportedOperation: no descriptor has the decoded data."),
    PLAIN("source_fileno", reader_source_fileno, METH_NOARGS,
          "source_fileno($self, /)\n--\n\n"
          "The descriptor of the compressed bytes."),
    PLAIN("readable", reader_readable, METH_NOARGS,
          "readable($self, /)\n--\n\nTrue."),
    PLAIN("writable", reader_writable, METH_NOARGS,
          "writable($self, /)\n--\n\nFalse."),
    PLAIN("seekable", reader_seekable, METH_NOARGS,
          "seekable($self, /)\n--\n\nTrue if the source can go back."),
    PLAIN("close", reader_close, METH_NOARGS,
          "close($self, /)\n--\n\n"
          "Give everything back; closes the source only if it was a path."),
    PLAIN("__enter__", reader_enter, METH_NOARGS, NULL),
    FAST("__exit__", reader_exit, NULL),
    {NULL, NULL, 0, NULL},
};

static PyObject *
reader_get_closed(PyObject *op, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(!((struct pyio_reader *)op)->ready);
}

static PyObject *
reader_get_mode(PyObject *Py_UNUSED(op), void *Py_UNUSED(closure))
{
    return PyUnicode_FromString("rb");
}

static PyMemberDef reader_members[] = {
    {"name", T_OBJECT_EX, offsetof(struct pyio_reader, name), 0,
     PyDoc_STR("The path or descriptor as it was given, or the name of the "
               "source.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef reader_getset[] = {
    {"closed", reader_get_closed, NULL, PyDoc_STR("True after close()."),
     NULL},
    {"mode", reader_get_mode, NULL, PyDoc_STR("'rb'"), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(reader_doc,
             "InflateReader(source, format='auto', *, max_size=None, "
             "chunk_size=None)\n--\n\n"
             "Binary stream of what a source's compressed bytes hold.\n\n"
             "source: path, descriptor, socket or binary file object, which "
             "is read ahead in\npieces of chunk_size (256 KiB). format: "
             "'raw', 'zlib', 'gzip' (all members) or\n'auto', by the first "
             "two bytes. More than max_size decoded bytes: LimitError.\n"
             "Errors of the data: EOFError where it is cut, "
             "gzip.BadGzipFile, zlib.error.");

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)reader_doc},
    {Py_tp_new, reader_new},
    {Py_tp_init, reader_init},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_finalize, reader_finalize},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_repr, reader_repr},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, pyio_reader_next},
    {Py_tp_methods, reader_methods},
    {Py_tp_members, reader_members},
    {Py_tp_getset, reader_getset},
    {0, NULL},
};

PyType_Spec pyio_inflate_reader_spec = {
    .name = "pyio_chunked.InflateReader",
    .basicsize = sizeof(struct pyio_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};
