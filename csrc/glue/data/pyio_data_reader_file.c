/* SPDX-License-Identifier: MIT
 * pyio_data_reader_file.c - DataReader as a file object: its type, its life,
 * read, peek and the like.
 */
#include "glue/data/pyio_data.h"

#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "glue/base/pyio_read.h"

/* ----------------------------------------------------------------- life */

static int
data_reader_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"source", "byteorder", "buffer_size",
                                        NULL};
    static const struct pyio_signature signature = {"DataReader", names, 2, 1};
    PyObject *given[3];

    return pyio_arguments_tuple(&signature, args, kwargs, given) < 0
               ? -1
               : reader_init(as_reader(op), given[0], given[1], given[2]);
}

int
reader_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(as_reader(op)->view.obj);
    return data_stream_traverse(op, visit, arg);
}

int
reader_clear(PyObject *op)
{
    (void)data_stream_clear(op);
    PyBuffer_Release(&as_reader(op)->view);
    return 0;
}

void
reader_dealloc(PyObject *op)
{
    if (pyio_stream_dealloc_begin(op)) {
        PyBuffer_Release(&as_reader(op)->view);
        data_stream_free(op);
    }
}

static int
shut(struct pyio_data_reader *r, bool close_fd)
{
    int result = 0;

    r->s.head.state = PYIO_IS_CLOSED;
    reader_drop(r);
    PyBuffer_Release(&r->view);
    if (close_fd && r->s.owns_fd) {
        result = pyio_close(r->s.fd);
        r->s.fd = -1;
    }
    r->s.owns_fd = false;
    return result;
}

PyObject *
reader_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    int result = 0;

    if (!pyio_stream_is_open(&r->s.head)) {
        Py_RETURN_NONE;
    }
    if (pyio_lock_enter(&r->s.head.lock, op) < 0) {
        return NULL;
    }
    if (pyio_stream_is_open(&r->s.head)) { /* else a thread came first */
        result = shut(r, true);
    }
    data_stream_leave(&r->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *
reader_detach(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result = NULL;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    if (!r->seekable && stream_room(&r->s) != 0) {
        (void)pyio_raise(pyio_state_of(Py_TYPE(op))->unsupported,
                         "%zu bytes were read ahead and the source can't "
                         "seek back: read them first, or use buffer_size=0",
                         stream_room(&r->s));
    } else if (reader_sync_locked(r) == 0) {
        /* A path's descriptor has no other owner: it becomes the caller's. */
        result = r->s.kind == PYIO_STREAM_PATH ? PyLong_FromLong(r->s.fd)
                                               : Py_NewRef(r->s.object);
        if (result != NULL) {
            (void)shut(r, false);
            r->s.head.state = PYIO_IS_DETACHED;
        }
    }
    data_stream_leave(&r->s);
    return result;
}

void
reader_finalize(PyObject *op)
{
    pyio_stream_finalize(
        op, as_reader(op)->s.owns_fd ? "unclosed data reader %R" : NULL);
}

/* -------------------------------------------------- as a file object */

static PyObject *
reader_read(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result;
    int64_t size = -1;

    if (pyio_size_argument("read", args, nargs, PYIO_SIZE_READ, &size) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_upto_locked(r, size < 0 ? UINT64_MAX : (uint64_t)size);
    data_stream_leave(&r->s);
    return result;
}

/* Something at hand, by one read of the source at most. */
static int
have_some_locked(struct pyio_data_reader *r, size_t nbytes)
{
    if (stream_room(&r->s) != 0 || r->memory || nbytes == 0) {
        return 0;
    }
    return reader_fetch_locked(r, cio_min_size(nbytes, r->s.capacity)) < 0 ? -1
                                                                           : 0;
}

static PyObject *
reader_read1(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result = NULL;
    int64_t size = -1;
    size_t want;

    if (pyio_size_argument("read1", args, nargs, PYIO_SIZE_SOME, &size) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    want = size < 0 ? SIZE_MAX : (size_t)size;
    if (have_some_locked(r, want) == 0) {
        result = reader_bytes_locked(
            r, 0, cio_min_size(want, stream_room(&r->s)), "read1");
    }
    data_stream_leave(&r->s);
    return result;
}

static PyObject *
read_into(struct pyio_data_reader *r, PyObject *buffer, bool once)
{
    Py_buffer view;
    size_t filled = 0;
    int result;

    if (pyio_target_buffer(buffer, once ? "readinto1" : "readinto", &view)
        < 0) {
        return NULL;
    }
    result = data_stream_enter(&r->s);
    if (result == 0) {
        size_t want = (size_t)view.len;

        if (once) {
            result = have_some_locked(r, want);
            want = cio_min_size(want, stream_room(&r->s));
        }
        if (result == 0) {
            result = reader_upto_into_locked(r, view.buf, want, &filled);
        }
        data_stream_leave(&r->s);
    }
    PyBuffer_Release(&view);
    return result < 0 ? NULL : PyLong_FromSize_t(filled);
}

static PyObject *
reader_readinto(PyObject *op, PyObject *buffer)
{
    return read_into(as_reader(op), buffer, false);
}

static PyObject *
reader_readinto1(PyObject *op, PyObject *buffer)
{
    return read_into(as_reader(op), buffer, true);
}

static PyObject *
reader_peek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result = NULL;
    int64_t size = 0;
    size_t want;
    int filled;

    if (pyio_size_argument("peek", args, nargs, PYIO_SIZE_SOME, &size) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    /* Without a number, as io.BufferedReader: what is at hand. */
    want = size <= 0 ? SIZE_MAX : (size_t)size;
    filled = size <= 0 ? have_some_locked(r, SIZE_MAX)
                       : reader_fill_locked(r, want);
    if (filled == 0) {
        result = PyBytes_FromStringAndSize(
            (char *)r->s.next,
            (Py_ssize_t)cio_min_size(want, stream_room(&r->s)));
    }
    data_stream_leave(&r->s);
    return result;
}

/* Bytes of the line at s.next, at most `most`; -1. */
static Py_ssize_t
line_length_locked(struct pyio_data_reader *r, size_t most)
{
    size_t searched = 0;

    for (;;) {
        const size_t n = cio_min_size(stream_room(&r->s), most);
        const uint8_t *const newline =
            n == searched ? NULL
                          : memchr(r->s.next + searched, '\n', n - searched);

        if (newline != NULL) {
            return newline + 1 - r->s.next;
        }
        if (n == most) {
            return (Py_ssize_t)n;
        }
        if (reader_fill_locked(r, n + 1) < 0) {
            return -1;
        }
        if (stream_room(&r->s) == n) {
            return (Py_ssize_t)n; /* the end */
        }
        searched = n;
    }
}

static PyObject *
reader_readline(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *line = NULL;
    Py_ssize_t length;
    int64_t size;

    if (pyio_size_argument("readline", args, nargs, PYIO_SIZE_LINE, &size) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    length = line_length_locked(r, size < 0 ? (size_t)PY_SSIZE_T_MAX
                                            : (size_t)size);
    if (length >= 0) {
        line = PyBytes_FromStringAndSize((const char *)r->s.next, length);
        r->s.next += line == NULL ? 0 : length;
    }
    data_stream_leave(&r->s);
    return line;
}

PyObject *
reader_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    int64_t position;
    bool seekable = false;
    int result = 0;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    /* With nothing at hand the source is the judge: its owner may have moved
     * it, which is what buffer_size=0 is for. */
    if (stream_room(&r->s) == 0 && !r->memory && !r->positional
        && r->seekable) {
        result = data_stream_position(&r->s, &position, &seekable);
    }
    if (seekable) {
        r->end_offset = position;
        reader_drop(r);
    }
    position = reader_tell_locked(r);
    data_stream_leave(&r->s);
    return result < 0 ? NULL : PyLong_FromLongLong(position);
}

static PyObject *
reader_seek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_reader *const r = as_reader(op);
    int64_t position = 0;
    int64_t offset;
    int whence, result;

    if (pyio_seek_arguments(args, nargs, 2, false, &offset, &whence) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_seek_locked(r, offset, whence);
    position = reader_tell_locked(r);
    data_stream_leave(&r->s);
    return result < 0 ? NULL : PyLong_FromLongLong(position);
}

static PyObject *
reader_skip(PyObject *op, PyObject *count)
{
    struct pyio_data_reader *const r = as_reader(op);
    int64_t nbytes;
    int result;

    if (pyio_as_offset(count, "n", &nbytes) < 0
        || data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_skip_locked(r, (uint64_t)nbytes, "skip");
    data_stream_leave(&r->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
reader_align(PyObject *op, PyObject *count)
{
    struct pyio_data_reader *const r = as_reader(op);
    int64_t n, over;
    int result;

    if (pyio_as_offset(count, "n", &n) < 0) {
        return NULL;
    }
    if (n == 0) {
        return PyErr_Format(PyExc_ValueError, "n must be at least 1");
    }
    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    over = reader_tell_locked(r) % n;
    result =
        reader_skip_locked(r, over == 0 ? 0 : (uint64_t)(n - over), "padding");
    data_stream_leave(&r->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
reader_at_eof(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    bool at_end;
    int result;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    result = reader_fill_locked(r, 1);
    at_end = stream_room(&r->s) == 0;
    data_stream_leave(&r->s);
    return result < 0 ? NULL : PyBool_FromLong(at_end);
}

static PyObject *
reader_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *result = NULL;
    int fd;

    if (data_stream_enter(&r->s) < 0) {
        return NULL;
    }
    if (r->memory || r->s.kind == PYIO_STREAM_OBJECT) {
        PyErr_SetString(pyio_state_of(Py_TYPE(op))->unsupported, "fileno");
    } else if (reader_sync_locked(r) == 0) {
        fd = data_stream_fd(&r->s);
        fd = fd == -2 ? PyObject_AsFileDescriptor(r->s.object) : fd;
        result = fd < 0 ? NULL : PyLong_FromLong(fd);
    }
    data_stream_leave(&r->s);
    return result;
}

static PyObject *
reader_seekable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return as_reader(op)->seekable ? pyio_stream_true(op, NULL)
                                   : pyio_stream_false(op, NULL);
}

static PyMethodDef file_methods[] = {
    {"read", PYIO_AS_METHOD(reader_read), METH_FASTCALL,
     PyDoc_STR("read($self, size=-1, /)\n--\n\n"
               "Bytes, size of them or up to the end.")},
    {"read1", PYIO_AS_METHOD(reader_read1), METH_FASTCALL,
     PyDoc_STR("read1($self, size=-1, /)\n--\n\n"
               "Bytes from at most one read of the source.")},
    {"readinto", reader_readinto, METH_O,
     PyDoc_STR("readinto($self, buffer, /)\n--\n\n"
               "Fill the buffer, or up to the end; returns the number of "
               "bytes.")},
    {"readinto1", reader_readinto1, METH_O,
     PyDoc_STR("readinto1($self, buffer, /)\n--\n\n"
               "As readinto, by at most one read of the source.")},
    {"peek", PYIO_AS_METHOD(reader_peek), METH_FASTCALL,
     PyDoc_STR("peek($self, n=0, /)\n--\n\n"
               "Up to n bytes without moving, fewer only at the end; with 0 "
               "what is at hand.")},
    {"readline", PYIO_AS_METHOD(reader_readline), METH_FASTCALL,
     PyDoc_STR("readline($self, size=-1, /)\n--\n\n"
               "Up to and with the next newline, at most size bytes.")},
    {"tell", reader_tell, METH_NOARGS,
     PyDoc_STR("tell($self, /)\n--\n\n"
               "Position of the next value: in the source where it is "
               "seekable,\nelse bytes since construction.")},
    {"seek", PYIO_AS_METHOD(reader_seek), METH_FASTCALL,
     PyDoc_STR("seek($self, offset, whence=0, /)\n--\n\n"
               "Move to a position; returns it.")},
    {"skip", reader_skip, METH_O,
     PyDoc_STR(
         "skip($self, n, /)\n--\n\n"
         "Move n bytes forward. ShortReadError where the source ends "
         "before; the position\nstays, unless n is above buffer_size and "
         "the source can't seek: then it is at the end\n(after any other "
         "exception `transferred` bytes on).")},
    {"align", reader_align, METH_O,
     PyDoc_STR("align($self, n, /)\n--\n\n"
               "Move to the next multiple of n of tell().")},
    {"at_eof", reader_at_eof, METH_NOARGS,
     PyDoc_STR("at_eof($self, /)\n--\n\nTrue where no byte is left.")},
    {"close", reader_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\n"
               "Close what was opened from a path. A source that was given "
               "stays open.")},
    {"detach", reader_detach, METH_NOARGS,
     PyDoc_STR("detach($self, /)\n--\n\n"
               "Seek the source to tell() and return it (of a path: its "
               "descriptor, now the caller's).")},
    {"fileno", reader_fileno, METH_NOARGS,
     PyDoc_STR("fileno($self, /)\n--\n\n"
               "The source's descriptor, its offset at tell().")},
    {"flush", pyio_stream_none, METH_NOARGS,
     PyDoc_STR("flush($self, /)\n--\n\nNothing: there is nothing to flush.")},
    {"readable", pyio_stream_true, METH_NOARGS,
     PyDoc_STR("readable($self, /)\n--\n\nTrue.")},
    {"writable", pyio_stream_false, METH_NOARGS,
     PyDoc_STR("writable($self, /)\n--\n\nFalse.")},
    {"seekable", reader_seekable, METH_NOARGS,
     PyDoc_STR("seekable($self, /)\n--\n\nWhether the source can seek.")},
    {"__enter__", pyio_stream_enter_context, METH_NOARGS, NULL},
    PYIO_FAST("__exit__", pyio_stream_exit_context, 0, NULL),
    PYIO_PLAIN("__reduce__", pyio_stream_reduce, METH_NOARGS, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "DataReader(source, byteorder='big', *, buffer_size=65536)\n--\n\n"
         "Typed values out of a path, descriptor, file object or Buffer.\n\n"
         "Where the source ends inside a value: ShortReadError, and the "
         "position stays\nwhere the value began. Memory follows the bytes "
         "that arrive, never a length\nthat was read. buffer_size=0: no "
         "read-ahead. What was given stays open at close.")},
    {Py_tp_init, data_reader_init},
    {Py_tp_methods, file_methods},
    {Py_tp_getset, data_stream_getset},
    {Py_tp_members, data_stream_members},
    {Py_tp_traverse, reader_traverse},
    {Py_tp_clear, reader_clear},
    {Py_tp_finalize, reader_finalize},
    {Py_tp_dealloc, reader_dealloc},
    {0, NULL},
};

PyType_Spec pyio_data_reader_spec = {
    .name = "pyio_chunked.DataReader",
    .basicsize = sizeof(struct pyio_data_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = reader_slots,
};
