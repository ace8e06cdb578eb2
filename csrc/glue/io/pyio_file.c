/* SPDX-License-Identifier: MIT
 * pyio_file.c - the type File: calls one at a time, closing, and the table of
 * its methods.
 */
#include "glue/io/pyio_file.h"

#include <errno.h>
#include <structmember.h>

#include "base/cio_fork.h"

/* ----------------------------------------------------------- exceptions */

int
pyio_file_raise(struct pyio_file *self, struct cio_done done,
                int64_t transferred)
{
    const struct pyio_context context = {self->name, NULL, transferred};

    return pyio_check(NULL, done, &context);
}

int
pyio_file_want_readable(struct pyio_file *self)
{
    if (pyio_stream_check(&self->head) < 0) {
        return -1;
    }
    return self->readable ? 0
                          : pyio_stream_unsupported(
                                &self->head, "File not open for reading");
}

int
pyio_file_want_writable(struct pyio_file *self)
{
    if (pyio_stream_check(&self->head) < 0) {
        return -1;
    }
    return self->writable ? 0
                          : pyio_stream_unsupported(
                                &self->head, "File not open for writing");
}

/* ------------------------------------------------------ calls under way */

/* In a child of fork no call of the parent is under way. A reader by position
 * has its whole state here, so it goes on; others raise in enter. */
static void
notice_fork(struct pyio_file *self)
{
    if (PYIO_LIKELY(self->generation == cio_fork_generation)) {
        return;
    }
    self->generation = cio_fork_generation;
    self->users = 0;
    if (self->head.lock.busy && self->core.off != CIO_OWN_OFFSET) {
        if (self->core.chunk.end == 0) {
            cio_chunk_give(&self->core.chunk); /* it was being filled */
        }
        self->head.lock = (struct pyio_lock){0};
    }
}

int
pyio_file_hold(struct pyio_file *self)
{
    if (pyio_stream_check(&self->head) < 0) {
        return -1;
    }
    notice_fork(self);
    self->users++;
    return 0;
}

/* Frees what the object holds; the descriptor, where it owns it, is closed.
 * Between the change of state and here nothing new can begin. */
static int
let_go(struct pyio_file *self)
{
    const int fd = self->core.fd;
    int sys_errno;

    cio_chunk_give(&self->core.chunk);
    Py_CLEAR(self->stash);
    self->core.fd = -1;
    if (fd < 0 || self->head.state == PYIO_IS_DETACHED) {
        return 0;
    }
    if (self->core.local && !self->writable) {
        /* A local file that was only read: there is nothing to wait for. */
        sys_errno = cio_sys->close(fd) < 0 ? errno : 0;
    } else {
        Py_BEGIN_ALLOW_THREADS
        sys_errno = cio_sys->close(fd) < 0 ? errno : 0;
        Py_END_ALLOW_THREADS
    }
    if (sys_errno != 0 && sys_errno != EINTR) { /* closed all the same */
        return pyio_file_check(self, cio_done_sys(sys_errno, 0), -1);
    }
    return 0;
}

void
pyio_file_release(struct pyio_file *self)
{
    self->users--;
    if (!pyio_stream_is_open(&self->head) && self->users == 0
        && self->core.fd >= 0) {
        PyObject *const before = pyio_exception_take();

        if (let_go(self) < 0) {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        pyio_exception_give(before);
    }
}

int
pyio_file_enter(struct pyio_file *self)
{
    notice_fork(self);
    if (pyio_stream_enter(&self->head) < 0) {
        return -1;
    }
    self->users++;
    return 0;
}

void
pyio_file_leave(struct pyio_file *self)
{
    pyio_file_drop_stash(self);
    pyio_lock_leave(&self->head.lock);
    pyio_file_release(self);
}

int
pyio_file_start_reading(struct pyio_file *self)
{
    return self->core.dirty ? pyio_file_flush(self) : 0;
}

void
pyio_file_give_back(struct pyio_file *self, struct pyio_result *result)
{
    if (result->bytes == NULL) {
        return;
    }
    if (result->nbytes != 0 && !cio_file_unread(&self->core, result->nbytes)) {
        cio_chunk_adopt(&self->core.chunk, result->data, result->nbytes);
        Py_XSETREF(self->stash, result->bytes);
        result->bytes = NULL;
    }
    pyio_result_drop(result);
}

/* -------------------------------------------------------------- closing */

static int
close_file(struct pyio_file *self)
{
    int result = 0;
    PyObject *failure;

    if (!pyio_stream_is_open(&self->head)) {
        return 0;
    }
    notice_fork(self);
    if (!self->writable) {
        /* A read under way goes on with its descriptor; the last one out
         * closes it. */
        self->head.state = PYIO_IS_CLOSED;
        return self->users == 0 ? let_go(self) : 0;
    }
    if (pyio_lock_enter(&self->head.lock, (PyObject *)self) < 0) {
        return -1;
    }
    if (!pyio_stream_is_open(&self->head)) {
        pyio_lock_leave(&self->head.lock);
        return 0;
    }
    self->users++;
    result = pyio_file_flush(self);
    self->users--;
    self->head.state = PYIO_IS_CLOSED;
    pyio_lock_leave(&self->head.lock);
    /* Closed even where the flush failed: as the io module does. */
    failure = pyio_exception_take();
    if (self->users == 0 && let_go(self) < 0) {
        result = -1;
    }
    if (failure != NULL) {
        PyErr_Clear();
        pyio_exception_give(failure);
    }
    return result;
}

static PyObject *
file_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    struct pyio_state *st;
    PyObject *flushed;
    int result;

    if (!pyio_stream_is_open(&self->head)) {
        Py_RETURN_NONE;
    }
    st = pyio_state_of(Py_TYPE(op));
    if (Py_IS_TYPE(op, st->file_type) || !self->writable) {
        return close_file(self) < 0 ? NULL : Py_NewRef(Py_None);
    }
    /* A subclass may have a flush of its own. */
    flushed = PyObject_CallMethod(op, "flush", NULL);
    if (flushed == NULL) {
        PyObject *const failure = pyio_exception_take();

        (void)close_file(self);
        PyErr_Clear();
        pyio_exception_give(failure);
        return NULL;
    }
    Py_DECREF(flushed);
    result = close_file(self);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
file_exit(PyObject *op, PyObject *const *Py_UNUSED(args),
          Py_ssize_t Py_UNUSED(nargs))
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));

    if (Py_IS_TYPE(op, st->file_type)) {
        return close_file((struct pyio_file *)op) < 0 ? NULL
                                                      : Py_NewRef(Py_None);
    }
    return PyObject_CallMethod(op, "close", NULL);
}

static void
file_finalize(PyObject *op)
{
    pyio_stream_finalize(op, "unclosed file %R");
}

static int
file_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct pyio_file *self = (struct pyio_file *)op;

    Py_VISIT(self->name);
    Py_VISIT(self->path);
    return pyio_stream_traverse(op, visit, arg);
}

static int
file_clear(PyObject *op)
{
    struct pyio_file *self = (struct pyio_file *)op;

    pyio_stream_clear(op);
    Py_CLEAR(self->name);
    Py_CLEAR(self->path);
    return 0;
}

static void
file_dealloc(PyObject *op)
{
    struct pyio_file *self = (struct pyio_file *)op;

    if (!pyio_stream_dealloc_begin(op)) {
        return;
    }
    if (self->core.fd >= 0) { /* a subclass's close closed nothing */
        PyObject *const before = pyio_exception_take();

        (void)let_go(self);
        pyio_exception_give(before);
    }
    (void)file_clear(op);
    cio_chunk_give(&self->core.chunk);
    Py_CLEAR(self->stash);
    pyio_stream_dealloc_end(op);
}

/* ----------------------------------------------------------------- type */

PyDoc_STRVAR(file_doc,
             "File(file, mode='rb', *, chunk_size=262144)\n--\n\n"
             "Binary file whose memory is one chunk, whatever is asked of "
             "it.\n\nMakes what open() makes for a binary mode. Every read "
             "allocates in step\nwith the bytes that arrive. Positions and "
             "sizes are in bytes; errors are\nOSError with the file's name "
             "and, where bytes moved, `transferred`.");

static PyMethodDef file_methods[] = {
    PYIO_FAST(
        "read", pyio_file_read, 0,
        "read($self, size=-1, /)\n--\n\n"
        "size bytes, or fewer only at the end of the file; all when size is "
        "-1\nor None. None when nothing is there and it would block."),
    PYIO_FAST(
        "read1", pyio_file_read1, 0,
        "read1($self, size=-1, /)\n--\n\n"
        "Up to size bytes (chunk_size for -1) with at most one system call; "
        "None\nwhen it would block."),
    PYIO_PLAIN(
        "readinto", pyio_file_readinto, METH_O,
        "readinto($self, buffer, /)\n--\n\n"
        "Fill the buffer, or up to the end; the number of bytes. None when "
        "it\nwould block."),
    PYIO_PLAIN("readinto1", pyio_file_readinto1, METH_O,
               "readinto1($self, buffer, /)\n--\n\n"
               "As readinto, with at most one system call."),
    PYIO_FAST("peek", pyio_file_peek, 0,
              "peek($self, size=0, /)\n--\n\n"
              "The bytes read ahead, at least one except at the end, without "
              "moving;\nsize is not looked at."),
    PYIO_FAST("readline", pyio_file_readline, 0,
              "readline($self, size=-1, /)\n--\n\n"
              "Up to and with the next newline, at most size bytes."),
    PYIO_FAST("readlines", pyio_file_readlines, 0,
              "readlines($self, hint=-1, /)\n--\n\n"
              "A list of lines, up to the end or the first above hint bytes."),
    PYIO_FAST(
        "read_buffer", pyio_file_read_buffer, 0,
        "read_buffer($self, size=-1, /)\n--\n\n"
        "As read, as a memoryview; up to chunk_size the memory is pooled and "
        "goes\nback when the last view does."),
    PYIO_FAST(
        "pread", pyio_file_pread, 0,
        "pread($self, size, offset, /)\n--\n\n"
        "size bytes from offset (to the end for -1), whatever the position; "
        "safe\nfrom many threads."),
    PYIO_FAST("preadinto", pyio_file_preadinto, 0,
              "preadinto($self, buffer, offset, /)\n--\n\n"
              "Fill the buffer from offset, or up to the end; the number of "
              "bytes."),
    PYIO_FAST(
        "pwrite", pyio_file_pwrite, 0,
        "pwrite($self, data, offset, /)\n--\n\n"
        "Write all of data at offset, whatever the position; the number of "
        "bytes."),
    PYIO_FAST(
        "chunks", pyio_file_chunks, METH_KEYWORDS,
        "chunks($self, size=None)\n--\n\n"
        "Iterator of bytes of size each (None: chunk_size); the last may be "
        "shorter."),
    PYIO_FAST(
        "write", pyio_file_write, 0,
        "write($self, data, /)\n--\n\n"
        "All of data, gathered in the chunk or, from chunk_size on, straight "
        "to\nthe file. OSError has `transferred`, BlockingIOError "
        "characters_written."),
    PYIO_PLAIN(
        "writelines", pyio_file_writelines, METH_O,
        "writelines($self, lines, /)\n--\n\nWrite each of the buffers."),
    PYIO_PLAIN("flush", pyio_file_flush_method, METH_NOARGS,
               "flush($self, /)\n--\n\nWrite what the chunk gathered."),
    PYIO_FAST("truncate", pyio_file_truncate, 0,
              "truncate($self, size=None, /)\n--\n\n"
              "Make the file size bytes long (None: up to the position)."),
    PYIO_FAST("sync", pyio_file_sync, METH_KEYWORDS,
              "sync($self, *, data_only=False)\n--\n\n"
              "Flush, and wait until the device has it: fsync, or fdatasync."),
    PYIO_FAST("seek", pyio_file_seek, 0,
              "seek($self, offset, whence=0, /)\n--\n\n"
              "Move the position; returns it, in bytes from the start."),
    PYIO_PLAIN("tell", pyio_file_tell_method, METH_NOARGS,
               "tell($self, /)\n--\n\nThe position in bytes from the start."),
    PYIO_PLAIN("fileno", pyio_file_fileno, METH_NOARGS,
               "fileno($self, /)\n--\n\n"
               "The descriptor, its offset put at the position for a reader."),
    PYIO_PLAIN("detach", pyio_file_detach, METH_NOARGS,
               "detach($self, /)\n--\n\n"
               "Flush, and give the descriptor away as an io.FileIO."),
    PYIO_PLAIN("readable", pyio_file_readable, METH_NOARGS,
               "readable($self, /)\n--\n\nTrue if it was opened for reading."),
    PYIO_PLAIN("writable", pyio_file_writable, METH_NOARGS,
               "writable($self, /)\n--\n\nTrue if it was opened for writing."),
    PYIO_PLAIN("seekable", pyio_file_seekable, METH_NOARGS,
               "seekable($self, /)\n--\n\nTrue if the position can be moved."),
    PYIO_PLAIN("isatty", pyio_file_isatty, METH_NOARGS,
               "isatty($self, /)\n--\n\nTrue if it is a terminal."),
    PYIO_PLAIN("close", file_close, METH_NOARGS,
               "close($self, /)\n--\n\n"
               "Flush and close; the descriptor goes when no call uses it any "
               "more."),
    PYIO_PLAIN("__enter__", pyio_stream_enter_context, METH_NOARGS, NULL),
    PYIO_FAST("__exit__", file_exit, 0, NULL),
    PYIO_PLAIN("_unread", pyio_file_unread, METH_O,
               "_unread($self, data, /)\n--\n\n"
               "Put bytes that were just read back in front."),
    PYIO_PLAIN("__reduce_ex__", pyio_file_reduce, METH_O, NULL),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef file_members[] = {
    {"name", T_OBJECT, offsetof(struct pyio_file, name), 0,
     PyDoc_STR("The path or descriptor as it was given.")},
    {"chunk_size", T_PYSSIZET, offsetof(struct pyio_file, chunk_size),
     READONLY, PyDoc_STR("Bytes of the chunk.")},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef file_getset[] = {
    {"closed", pyio_stream_get_closed, NULL, PyDoc_STR("True after close()."),
     NULL},
    {"mode", pyio_file_get_mode, NULL,
     PyDoc_STR("The mode, as io.FileIO says it."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot file_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)file_doc},
    {Py_tp_new, pyio_file_new},
    {Py_tp_dealloc, file_dealloc},
    {Py_tp_finalize, file_finalize},
    {Py_tp_traverse, file_traverse},
    {Py_tp_clear, file_clear},
    {Py_tp_repr, pyio_file_repr},
    {Py_tp_iter, pyio_stream_self},
    {Py_tp_iternext, pyio_file_next},
    {Py_tp_methods, file_methods},
    {Py_tp_members, file_members},
    {Py_tp_getset, file_getset},
    {0, NULL},
};

static PyType_Spec file_spec = {
    .name = "pyio_chunked.File",
    .basicsize = sizeof(struct pyio_file),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = file_slots,
};

int
pyio_add_file(PyObject *mod, struct pyio_state *st)
{
    return pyio_add_stream_type(mod, &file_spec, &st->file_type);
}
