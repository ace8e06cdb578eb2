/* SPDX-License-Identifier: MIT
 * pyio_zip_stream.c - ZipMember: what ZipFile.open returns, a full
 * io.BufferedIOBase.
 */
#include "glue/zip/pyio_zip_stream.h"

#include <structmember.h>

#include <string.h>

#include "base/cio_bytes.h"

/* ---------------------------------------------------------------- position */

static PyObject *
stream_seek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct zip_stream *const self = (struct zip_stream *)op;
    int64_t offset, base = 0, target;
    uint64_t size;
    int whence;

    if (pyio_seek_arguments(args, nargs, 2, true, &offset, &whence) < 0
        || pyio_stream_enter(&self->head) < 0) {
        return NULL;
    }
    size = self->stream.entry.nbytes;
    if (whence == 1) {
        base = (int64_t)self->position;
    } else if (whence == 2) {
        base = size > INT64_MAX ? INT64_MAX : (long long)size;
    }
    /* Clipped to the member, as zipfile does. */
    if (__builtin_add_overflow(base, offset, &target)) {
        target = offset < 0 ? 0 : INT64_MAX;
    }
    self->position = target < 0 ? 0 : cio_min_u64((uint64_t)target, size);
    target = (long long)self->position;
    pyio_stream_leave(&self->head);
    return PyLong_FromLongLong(target);
}

static PyObject *
stream_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    const struct zip_stream *const self = (struct zip_stream *)op;

    if (pyio_stream_check(&self->head) < 0) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(self->position);
}

static PyObject *
stream_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_stream *const head = (struct pyio_stream *)op;

    if (pyio_stream_check(head) == 0) {
        (void)pyio_stream_unsupported(
            head, "no descriptor leads to the bytes of an archive member");
    }
    return NULL;
}

static PyObject *
stream_write(PyObject *op, PyObject *Py_UNUSED(data))
{
    (void)pyio_stream_unsupported((struct pyio_stream *)op,
                                  "an archive member is not writable");
    return NULL;
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

    if (!pyio_stream_is_open(&self->head)) {
        Py_RETURN_NONE;
    }
    if (pyio_lock_enter(&self->head.lock, op) < 0) {
        return NULL;
    }
    self->head.state = PYIO_IS_CLOSED;
    zip_stream_give_back(self);
    pyio_lock_leave(&self->head.lock);
    leave_archive(self);
    Py_RETURN_NONE;
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
    pyio_stream_finalize(op, "unclosed archive member %R");
}

static int
stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct zip_stream *const self = (struct zip_stream *)op;

    Py_VISIT(self->archive);
    Py_VISIT(self->name);
    return pyio_stream_traverse(op, visit, arg);
}

static int
stream_clear(PyObject *op)
{
    struct zip_stream *const self = (struct zip_stream *)op;

    /* What is left has no archive to read from. */
    self->head.state = PYIO_IS_CLOSED;
    pyio_stream_clear(op);
    leave_archive(self);
    Py_CLEAR(self->name);
    return 0;
}

static void
stream_dealloc(PyObject *op)
{
    if (!pyio_stream_dealloc_begin(op)) {
        return;
    }
    zip_stream_give_back((struct zip_stream *)op);
    (void)stream_clear(op);
    pyio_stream_dealloc_end(op);
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
    self->head.state = PYIO_IS_OPEN;
    return (PyObject *)self;
}

/* -------------------------------------------------------------------- type */

static PyObject *
stream_repr(PyObject *op)
{
    const struct zip_stream *const self = (struct zip_stream *)op;

    if (!pyio_stream_is_open(&self->head)) { /* as zipfile's */
        return pyio_stream_repr(op, NULL, " [closed]");
    }
    return pyio_stream_repr(op, self->name != NULL ? self->name : Py_None,
                            self->stream.entry.method == CIO_ZIP_DEFLATED
                                ? " compress_type=deflate"
                                : "");
}

static PyMethodDef stream_methods[] = {
    PYIO_FAST(
        "read", zip_stream_read, 0,
        "read($self, size=-1, /)\n--\n\n"
        "size bytes, or fewer only at the member's end; all when size is -1 "
        "or\nNone. BadZipFile where the end is reached and size or CRC are "
        "wrong."),
    PYIO_FAST("read1", zip_stream_read1, 0,
              "read1($self, size=-1, /)\n--\n\n"
              "Up to size bytes by at most one step of inflating."),
    PYIO_PLAIN(
        "readinto", zip_stream_readinto, METH_O,
        "readinto($self, buffer, /)\n--\n\n"
        "Fill the buffer, or up to the member's end; the number of bytes."),
    PYIO_PLAIN("readinto1", zip_stream_readinto1, METH_O,
               "readinto1($self, buffer, /)\n--\n\n"
               "As readinto, by at most one step."),
    PYIO_FAST(
        "peek", zip_stream_peek, 0,
        "peek($self, size=1, /)\n--\n\n"
        "Bytes at the position without moving it; none only at the end."),
    PYIO_FAST("readline", zip_stream_readline, 0,
              "readline($self, size=-1, /)\n--\n\n"
              "Up to and with the next newline, at most size bytes."),
    PYIO_FAST("seek", stream_seek, 0,
              "seek($self, offset, whence=0, /)\n--\n\n"
              "Move the position, within the member; returns it. Backwards, a "
              "large\ndeflated member is read again from its start."),
    PYIO_PLAIN("tell", stream_tell, METH_NOARGS,
               "tell($self, /)\n--\n\nThe position in bytes from the start."),
    PYIO_PLAIN("readable", pyio_stream_true, METH_NOARGS,
               "readable($self, /)\n--\n\nTrue."),
    PYIO_PLAIN("seekable", pyio_stream_true, METH_NOARGS,
               "seekable($self, /)\n--\n\nTrue."),
    PYIO_PLAIN("writable", pyio_stream_false, METH_NOARGS,
               "writable($self, /)\n--\n\nFalse."),
    PYIO_PLAIN("isatty", pyio_stream_false, METH_NOARGS,
               "isatty($self, /)\n--\n\nFalse."),
    PYIO_PLAIN("flush", pyio_stream_none, METH_NOARGS,
               "flush($self, /)\n--\n\nNothing, while it is open."),
    PYIO_PLAIN(
        "fileno", stream_fileno, METH_NOARGS,
        "fileno($self, /)\n--\n\n"
        "io.UnsupportedOperation: the archive's descriptor is not where "
        "the\nmember's bytes are."),
    PYIO_PLAIN("write", stream_write, METH_O,
               "write($self, data, /)\n--\n\nio.UnsupportedOperation."),
    PYIO_PLAIN("close", stream_close, METH_NOARGS,
               "close($self, /)\n--\n\nGive everything back."),
    PYIO_PLAIN("__enter__", pyio_stream_enter_context, METH_NOARGS, NULL),
    PYIO_FAST("__exit__", stream_exit_context, 0, NULL),
    PYIO_PLAIN("__reduce__", pyio_stream_reduce, METH_NOARGS, NULL),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stream_members[] = {
    {"name", T_OBJECT, offsetof(struct zip_stream, name), 0,
     PyDoc_STR("The member's name.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef stream_getset[] = {
    {"closed", pyio_stream_get_closed, NULL, PyDoc_STR("True after close()."),
     NULL},
    {"mode", pyio_stream_get_rb, NULL, PyDoc_STR("\"rb\"."), NULL},
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
    {Py_tp_iter, pyio_stream_self},
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
