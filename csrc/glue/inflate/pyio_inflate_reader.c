/* SPDX-License-Identifier: MIT
 * pyio_inflate_reader.c - the type InflateReader: construction, closing, and
 * what it says of itself.
 */
#include "glue/inflate/pyio_inflate.h"

#include <structmember.h>

#include "base/cio_bytes.h"

/* ---------------------------------------------------------------- the lock */

int
pyio_reader_enter(struct pyio_reader *r)
{
    return pyio_stream_enter(&r->head);
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
    if (r->kind != PYIO_STREAM_PATH || fd < 0) {
        return 0;
    }
    return r->local ? pyio_close_local(fd) : pyio_close(fd);
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
    pyio_stream_leave(&r->head);
}

int
pyio_reader_close(struct pyio_reader *r)
{
    int result;

    if (!pyio_stream_is_open(&r->head)) {
        return 0;
    }
    if (!pyio_lock_free(&r->head.lock)
        && r->head.lock.owner != PyThread_get_thread_ident()) {
        /* That call may wait for data for long; its thread closes. */
        r->head.state = PYIO_IS_CLOSED;
        r->closing = true;
        return 0;
    }
    if (pyio_lock_enter(&r->head.lock, (PyObject *)r) < 0) {
        return -1;
    }
    r->head.state = PYIO_IS_CLOSED;
    result = let_go(r);
    pyio_lock_leave(&r->head.lock);
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
    int result;

    if (pyio_reader_close(r) < 0) { /* a second __init__ */
        return -1;
    }
    if (!pyio_lock_free(&r->head.lock)) {
        return pyio_raise(PyExc_RuntimeError, "%R is in use", r);
    }
    /* The source is asked for its name and more, and could come here again. */
    if (pyio_lock_enter(&r->head.lock, (PyObject *)r) < 0) {
        return -1;
    }
    Py_CLEAR(r->source);
    Py_CLEAR(r->name);
    Py_CLEAR(r->saved);
    r->in_ended = r->ended = false;
    r->ahead_errno = 0;
    r->local = false;
    r->failed = CIO_OK;
    r->pos = 0;
    r->chunk_nbytes = options->chunk_nbytes;
    r->threads = options->threads;
    cio_decoder_init(&r->decoder, options->format);
    r->decoder.max_nbytes = options->max_nbytes;
    result = pyio_reader_attach(pyio_state_of(Py_TYPE(r)), r, options->source);
    if (result == 0) {
        r->head.state = PYIO_IS_OPEN;
    }
    pyio_lock_leave(&r->head.lock);
    return result;
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

    /* What was given is the giver's to close. */
    pyio_stream_finalize(op, r->kind == PYIO_STREAM_PATH || r->owns_source
                                 ? "unclosed file %R"
                                 : NULL);
}

static int
reader_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    Py_VISIT(r->source);
    Py_VISIT(r->name);
    Py_VISIT(r->view);
    return pyio_stream_traverse(op, visit, arg);
}

static int
reader_clear(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    pyio_stream_clear(op);
    Py_CLEAR(r->source);
    Py_CLEAR(r->name);
    Py_CLEAR(r->view);
    return 0;
}

static void
reader_dealloc(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (!pyio_stream_dealloc_begin(op)) {
        return;
    }
    if (pyio_stream_is_open(&r->head)) {
        /* A subclass's close closed nothing. */
        PyObject *const before = pyio_exception_take();

        (void)let_go(r);
        pyio_exception_give(before);
    }
    pyio_reader_release(r);
    Py_CLEAR(r->saved);
    (void)reader_clear(op);
    pyio_stream_dealloc_end(op);
}

static PyObject *
reader_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return pyio_reader_close((struct pyio_reader *)op) < 0
               ? NULL
               : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------- what it is */

static PyObject *
reader_repr(PyObject *op)
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    return pyio_stream_repr(op, r->name,
                            pyio_stream_is_open(&r->head) ? "" : " closed");
}

static PyObject *
reader_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (pyio_stream_check(&r->head) < 0) {
        return NULL;
    }
    return PyLong_FromLongLong(r->pos);
}

static PyObject *
reader_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    (void)pyio_stream_unsupported(
        (struct pyio_stream *)op,
        "fileno: the descriptor holds compressed bytes; "
        "source_fileno() gives it");
    return NULL;
}

static PyObject *
reader_source_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;

    if (pyio_stream_check(&r->head) < 0) {
        return NULL;
    }
    return r->fd >= 0 ? PyLong_FromLong(r->fd)
                      : PyObject_CallMethod(r->source, "fileno", NULL);
}

static PyObject *
reader_seekable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_reader *r = (struct pyio_reader *)op;
    int result;

    if (pyio_stream_check(&r->head) < 0) {
        return NULL;
    }
    result = pyio_reader_seekable(r);
    return result < 0 ? NULL : PyBool_FromLong(result);
}

static PyMethodDef reader_methods[] = {
    PYIO_FAST(
        "read", pyio_reader_read, 0,
        "read($self, size=-1, /)\n--\n\n"
        "size decoded bytes, fewer only at the end; all of them with -1 or "
        "None."),
    PYIO_FAST(
        "read1", pyio_reader_read1, 0,
        "read1($self, size=-1, /)\n--\n\n"
        "At least one decoded byte and at most size, or none at the end, "
        "asking the\nsource only when nothing is decoded yet."),
    PYIO_PLAIN(
        "readinto", pyio_reader_readinto, METH_O,
        "readinto($self, buffer, /)\n--\n\n"
        "Fill buffer with decoded bytes, or up to the end; their number."),
    PYIO_PLAIN("readinto1", pyio_reader_readinto1, METH_O,
               "readinto1($self, buffer, /)\n--\n\nAs read1, into buffer."),
    PYIO_FAST(
        "peek", pyio_reader_peek, 0,
        "peek($self, size=0, /)\n--\n\n"
        "Decoded bytes that the next read will give, at least one except at "
        "the end;\nsize is not looked at."),
    PYIO_FAST("readline", pyio_reader_readline, 0,
              "readline($self, size=-1, /)\n--\n\n"
              "Up to and with the next newline, at most size bytes."),
    {"seek", (PyCFunction)(void (*)(void))pyio_reader_seek,
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("seek($self, offset, whence=0)\n--\n\n"
               "Go to a position of the decoded data; returns it. Forwards by "
               "decoding,\nbackwards from the start again, where the source "
               "can seek.")},
    PYIO_PLAIN("tell", reader_tell, METH_NOARGS,
               "tell($self, /)\n--\n\nThe position in the decoded data."),
    PYIO_PLAIN("fileno", reader_fileno, METH_NOARGS,
               "fileno($self, /)\n--\n\n"
               "io.UnsupportedOperation: no descriptor has the decoded data."),
    PYIO_PLAIN("source_fileno", reader_source_fileno, METH_NOARGS,
               "source_fileno($self, /)\n--\n\n"
               "The descriptor of the compressed bytes."),
    PYIO_PLAIN("flush", pyio_stream_none, METH_NOARGS,
               "flush($self, /)\n--\n\nNothing, while it is open."),
    PYIO_PLAIN("readable", pyio_stream_true, METH_NOARGS,
               "readable($self, /)\n--\n\nTrue."),
    PYIO_PLAIN("writable", pyio_stream_false, METH_NOARGS,
               "writable($self, /)\n--\n\nFalse."),
    PYIO_PLAIN("seekable", reader_seekable, METH_NOARGS,
               "seekable($self, /)\n--\n\nTrue if the source can go back."),
    PYIO_PLAIN(
        "close", reader_close, METH_NOARGS,
        "close($self, /)\n--\n\n"
        "Give everything back; closes the source only if it was a path."),
    PYIO_PLAIN("__enter__", pyio_stream_enter_context, METH_NOARGS, NULL),
    PYIO_FAST("__exit__", pyio_stream_exit_context, 0, NULL),
    PYIO_PLAIN("__reduce__", pyio_stream_reduce, METH_NOARGS, NULL),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef reader_members[] = {
    {"name", T_OBJECT_EX, offsetof(struct pyio_reader, name), 0,
     PyDoc_STR("The path or descriptor as it was given, or the name of the "
               "source.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef reader_getset[] = {
    {"closed", pyio_stream_get_closed, NULL, PyDoc_STR("True after close()."),
     NULL},
    {"mode", pyio_stream_get_rb, NULL, PyDoc_STR("'rb'"), NULL},
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
    {Py_tp_iter, pyio_stream_self},
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
