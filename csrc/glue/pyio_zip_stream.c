/* SPDX-License-Identifier: MIT
 * pyio_zip_stream.c - ZipMember: what ZipFile.open returns, a full
 * io.BufferedIOBase.
 */
#include "glue/pyio_zip_stream.h"

#include <structmember.h>

#include <string.h>

#include "base/cio_bytes.h"

int
zip_stream_closed_error(void)
{
    return pyio_raise(PyExc_ValueError, "I/O operation on closed file.");
}

int
zip_stream_enter(struct zip_stream *self)
{
    if (self->closed) {
        return zip_stream_closed_error();
    }
    if (pyio_lock_enter(&self->lock, (PyObject *)self) < 0) {
        return -1;
    }
    if (self->closed) { /* while we waited */
        pyio_lock_leave(&self->lock);
        return zip_stream_closed_error();
    }
    return 0;
}

void
zip_stream_leave(struct zip_stream *self)
{
    pyio_lock_leave(&self->lock);
}

/* ---------------------------------------------------------------- position */

static PyObject *
stream_seek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    long long offset, base = 0, target;
    long whence = 0;
    uint64_t size;

    if (nargs < 1 || nargs > 2) {
        (void)pyio_raise(PyExc_TypeError,
                         "seek expected 1 or 2 arguments, got %zd", nargs);
        return NULL;
    }
    offset = PyLong_AsLongLong(args[0]);
    if (offset == -1 && PyErr_Occurred()) {
        return NULL;
    }
    whence = nargs == 2 ? PyLong_AsLong(args[1]) : 0;
    if (whence == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (zip_stream_enter(self) < 0) {
        return NULL;
    }
    size = self->stream.entry.nbytes;
    if (whence < 0 || whence > 2) {
        (void)pyio_raise(PyExc_ValueError,
                         "whence must be os.SEEK_SET (0), os.SEEK_CUR (1), "
                         "or os.SEEK_END (2)");
        zip_stream_leave(self);
        return NULL;
    }
    if (whence == 1) {
        base = (long long)self->position;
    } else if (whence == 2) {
        base = size > INT64_MAX ? INT64_MAX : (long long)size;
    }
    /* Clipped to the member, as zipfile does. */
    if (__builtin_add_overflow(base, offset, &target)) {
        target = offset < 0 ? 0 : INT64_MAX;
    }
    self->position = target < 0 ? 0 : cio_min_u64((uint64_t)target, size);
    target = (long long)self->position;
    zip_stream_leave(self);
    return PyLong_FromLongLong(target);
}

static PyObject *
stream_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const struct zip_stream *const self = (struct zip_stream *)op;

    if (self->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(self->position);
}

static PyObject *
true_if_open(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *
none_if_open(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
stream_iter(PyObject *op)
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    return Py_NewRef(op);
}

static PyObject *
false_if_open(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    Py_RETURN_FALSE;
}

static PyObject *
unsupported(PyObject *op, const char *what)
{
    (void)pyio_raise(pyio_state_of(Py_TYPE(op))->unsupported,
                     "%s: the bytes of an archive member", what);
    return NULL;
}

static PyObject *
stream_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    return unsupported(op, "no descriptor leads to");
}

static PyObject *
stream_write(PyObject *op, PyObject *Py_UNUSED(data))
{
    return unsupported(op, "not writable");
}

/* ------------------------------------------------------------------- close */

static void
leave_archive(struct zip_stream *self)
{
    struct pyio_archive *const archive = self->archive;

    self->archive = NULL;
    pyio_archive_release(archive);
}

static PyObject *
stream_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct zip_stream *const self = (struct zip_stream *)op;

    if (self->closed) {
        Py_RETURN_NONE;
    }
    if (pyio_lock_enter(&self->lock, op) < 0) {
        return NULL;
    }
    self->closed = true;
    zip_stream_give_back(self);
    pyio_lock_leave(&self->lock);
    leave_archive(self);
    Py_RETURN_NONE;
}

static PyObject *
stream_enter_context(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    if (((struct zip_stream *)op)->closed) {
        (void)zip_stream_closed_error();
        return NULL;
    }
    return Py_NewRef(op);
}

static PyObject *
stream_exit_context(PyObject *op, PyObject *const *Py_UNUSED(args),
                    Py_ssize_t Py_UNUSED(nargs))
{
    if (Py_IS_TYPE(op, pyio_state_of(Py_TYPE(op))->zip_stream_type)) {
        return stream_close(op, NULL);
    }
    return PyObject_CallMethod(op, "close", NULL);
}

static void
stream_finalize(PyObject *op)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyObject *before, *result;

    if (self->closed) {
        return;
    }
    before = pyio_exception_take();
    if (PyErr_ResourceWarning(op, 1, "unclosed archive member %R", op) < 0) {
        PyErr_WriteUnraisable(op); /* -W error: nobody to raise it to */
    }
    result = PyObject_CallMethod(op, "close", NULL);
    if (result == NULL) {
        PyErr_WriteUnraisable(op);
    }
    Py_XDECREF(result);
    pyio_exception_give(before);
}

static int
stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct zip_stream *const self = (struct zip_stream *)op;

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->dict);
    Py_VISIT(self->archive);
    Py_VISIT(self->name);
    return 0;
}

static int
stream_clear(PyObject *op)
{
    struct zip_stream *const self = (struct zip_stream *)op;

    self->closed = true; /* what is left has no archive to read from */
    Py_CLEAR(self->dict);
    leave_archive(self);
    Py_CLEAR(self->name);
    return 0;
}

static void
stream_dealloc(PyObject *op)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    PyTypeObject *const type = Py_TYPE(op);

    if (!self->closed && PyObject_CallFinalizerFromDealloc(op) < 0) {
        return; /* somebody took it back */
    }
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    zip_stream_give_back(self);
    (void)stream_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

PyObject *
pyio_member_open(struct pyio_state *st, struct pyio_archive *archive,
                 struct pyio_member *member)
{
    struct zip_stream *self;

    if (pyio_member_check(st, archive, member) < 0
        || pyio_member_locate(st, archive, member) < 0) {
        return NULL;
    }
    self = (struct zip_stream *)st->zip_stream_type->tp_alloc(
        st->zip_stream_type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->archive = (struct pyio_archive *)Py_NewRef((PyObject *)archive);
    self->name = Py_NewRef(member->name);
    cio_entry_stream_init(&self->stream, &member->entry);
    /* The header was compared; the name may belong to a ZipInfo. */
    self->stream.entry.raw_name = NULL;
    return (PyObject *)self;
}

/* -------------------------------------------------------------------- type */

static PyObject *
stream_repr(PyObject *op)
{
    const struct zip_stream *const self = (struct zip_stream *)op;
    const char *const type = Py_TYPE(op)->tp_name;

    if (self->closed) {
        return PyUnicode_FromFormat("<%s [closed]>", type);
    }
    return PyUnicode_FromFormat("<%s name=%R%s>", type,
                                self->name != NULL ? self->name : Py_None,
                                self->stream.entry.method == CIO_ZIP_DEFLATED
                                    ? " compress_type=deflate"
                                    : "");
}

static PyObject *
get_mode(PyObject *Py_UNUSED(op), void *Py_UNUSED(closure))
{
    return PyUnicode_InternFromString("rb");
}

#define FAST(name, function, doc)                                             \
    {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL,            \
     PyDoc_STR(doc)}
#define PLAIN(name, function, flags, doc)                                     \
    {name, (function), (flags), PyDoc_STR(doc)}

static PyMethodDef stream_methods[] = {
    FAST("read", zip_stream_read,
         "read($self, size=-1, /)\n--\n\n"
         "size bytes, or fewer only at the member's end; all when size is -1 "
         "or\nNone. BadZipFile where the end is reached and size or CRC are "
         "wrong."),
    FAST("read1", zip_stream_read1,
         "read1($self, size=-1, /)\n--\n\n"
         "Up to size bytes by at most one step of inflating."),
    PLAIN("readinto", zip_stream_readinto, METH_O,
          "readinto($self, buffer, /)\n--\n\n"
          "Fill the buffer, or up to the member's end; the number of bytes."),
    PLAIN("readinto1", zip_stream_readinto1, METH_O,
          "readinto1($self, buffer, /)\n--\n\n"
          "As readinto, by at most one step."),
    FAST("peek", zip_stream_peek,
         "peek($self, size=1, /)\n--\n\n"
         "Bytes at the position without moving it; none only at the end."),
    FAST("readline", zip_stream_readline,
         "readline($self, size=-1, /)\n--\n\n"
         "Up to and with the next newline, at most size bytes."),
    FAST("seek", stream_seek,
         "seek($self, offset, whence=0, /)\n--\n\n"
         "Move the position, within the member; returns it. Backwards, a "
         "large\ndeflated member is read again from its start."),
    PLAIN("tell", stream_tell, METH_NOARGS,
          "tell($self, /)\n--\n\nThe position in bytes from the start."),
    PLAIN("readable", true_if_open, METH_NOARGS,
          "readable($self, /)\n--\n\nTrue."),
    PLAIN("seekable", true_if_open, METH_NOARGS,
          "seekable($self, /)\n--\n\nTrue."),
    PLAIN("writable", false_if_open, METH_NOARGS,
          "writable($self, /)\n--\n\nFalse."),
    PLAIN("isatty", false_if_open, METH_NOARGS,
          "isatty($self, /)\n--\n\nFalse."),
    PLAIN("flush", none_if_open, METH_NOARGS,
          "flush($self, /)\n--\n\nNothing, while it is open."),
    PLAIN("fileno", stream_fileno, METH_NOARGS,
          "fileno($self, /)\n--\n\n"
          "io.UnsupportedOperation: the archive's descriptor is not where "
          "the\nmember's bytes are."),
    PLAIN("write", stream_write, METH_O,
          "write($self, data, /)\n--\n\nio.UnsupportedOperation."),
    PLAIN("close", stream_close, METH_NOARGS,
          "close($self, /)\n--\n\nGive everything back."),
    PLAIN("__enter__", stream_enter_context, METH_NOARGS, NULL),
    {"__exit__", (PyCFunction)(void (*)(void))stream_exit_context,
     METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stream_members[] = {
    {"closed", T_BOOL, offsetof(struct zip_stream, closed), READONLY,
     PyDoc_STR("True after close().")},
    {"name", T_OBJECT, offsetof(struct zip_stream, name), 0,
     PyDoc_STR("The member's name.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef stream_getset[] = {
    {"mode", get_mode, NULL, PyDoc_STR("\"rb\"."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(stream_doc,
             "A member of a ZIP archive, opened by ZipFile.open: a binary, "
             "seekable,\nbuffered stream to read. Keeps the archive's file "
             "open. Errors are\nzipfile's; sizes are bytes.");

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)stream_doc},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_finalize, stream_finalize},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_clear, stream_clear},
    {Py_tp_repr, stream_repr},
    {Py_tp_iter, stream_iter},
    {Py_tp_iternext, zip_stream_next},
    {Py_tp_methods, stream_methods},
    {Py_tp_members, stream_members},
    {Py_tp_getset, stream_getset},
    {0, NULL},
};

static PyType_Spec stream_spec = {
    .name = "pyio_chunked.ZipMember",
    .basicsize = sizeof(struct zip_stream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = stream_slots,
};

int
pyio_add_zip_stream(PyObject *mod, struct pyio_state *st)
{
    return pyio_add_stream_type(mod, &stream_spec, &st->zip_stream_type);
}
