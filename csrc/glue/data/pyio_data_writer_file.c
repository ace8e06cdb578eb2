/* SPDX-License-Identifier: MIT
 * pyio_data_writer_file.c - DataWriter as a file object: its type, its life,
 * write, flush, tell and the like.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "base/cio_bytes.h"

static int
data_writer_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"target", "byteorder", "buffer_size",
                                        NULL};
    static const struct pyio_signature signature = {"DataWriter", names, 2, 1};
    PyObject *given[3];

    return pyio_arguments_tuple(&signature, args, kwargs, given) < 0
               ? -1
               : writer_init(as_writer(op), given[0], given[1], given[2]);
}

/* The writer's own buffer, then the target's, as io.TextIOWrapper does. */
static int
flush_locked(struct pyio_data_writer *w)
{
    if (writer_drain_locked(w) < 0) {
        return -1;
    }
    return data_stream_by_fd(&w->s) ? 0 : data_stream_call(&w->s, "flush");
}

PyObject *
writer_flush(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_writer *const w = as_writer(op);
    int result;

    if (data_stream_enter(&w->s) < 0) {
        return NULL;
    }
    result = flush_locked(w);
    data_stream_leave(&w->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

/* Nothing is left for a target that was closed before us, which is no error
 * then, as with io.TextIOWrapper. 1: so it is, -1. */
static int
all_is_out(struct pyio_data_writer *w)
{
    PyObject *closed;
    int is = 0;

    if (writer_pending(w) != 0 || data_stream_by_fd(&w->s)) {
        return 0;
    }
    closed = PyObject_GetAttrString(w->s.object, "closed");
    if (closed != NULL) {
        is = PyObject_IsTrue(closed);
        Py_DECREF(closed);
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    } else {
        is = -1;
    }
    return is;
}

/* No call works from here on. */
static void
shut(struct data_stream *s)
{
    s->head.state = PYIO_IS_CLOSED;
    s->next = s->limit = s->buffer;
}

PyObject *
writer_close(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_writer *const w = as_writer(op);
    int result;

    if (!pyio_stream_is_open(&w->s.head)) {
        Py_RETURN_NONE;
    }
    if (pyio_lock_enter(&w->s.head.lock, op) < 0) {
        return NULL;
    }
    result = 0;
    if (pyio_stream_is_open(&w->s.head)) { /* else a thread came first */
        result = all_is_out(w);
        result = result == 0 ? flush_locked(w) : result;
        shut(&w->s);
        if (w->s.owns_fd && pyio_close(w->s.fd) < 0) {
            result = -1;
        }
        w->s.owns_fd = false;
        w->s.fd = -1;
    }
    data_stream_leave(&w->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *
writer_detach(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_writer *const w = as_writer(op);
    PyObject *result = NULL;

    if (data_stream_enter(&w->s) < 0) {
        return NULL;
    }
    if (flush_locked(w) == 0) {
        /* A path's descriptor has no other owner: it becomes the caller's. */
        result = w->s.kind == PYIO_STREAM_PATH ? PyLong_FromLong(w->s.fd)
                                               : Py_NewRef(w->s.object);
        if (result != NULL) {
            shut(&w->s);
            w->s.head.state = PYIO_IS_DETACHED;
            w->s.owns_fd = false;
        }
    }
    data_stream_leave(&w->s);
    return result;
}

void
writer_finalize(PyObject *op)
{
    const struct pyio_data_writer *const w = as_writer(op);

    pyio_stream_finalize(op, w->s.owns_fd || writer_pending(w) != 0
                                 ? "unclosed data writer %R"
                                 : NULL);
}

void
writer_dealloc(PyObject *op)
{
    if (pyio_stream_dealloc_begin(op)) {
        data_stream_free(op);
    }
}

/* -------------------------------------------------- as a file object */

static PyObject *
writer_write(PyObject *op, PyObject *data)
{
    const Py_ssize_t nbytes = writer_put_buffer(as_writer(op), data);

    return nbytes < 0 ? NULL : PyLong_FromSsize_t(nbytes);
}

static PyObject *
writer_tell(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_writer *const w = as_writer(op);
    int64_t position;
    int result;

    if (data_stream_enter(&w->s) < 0) {
        return NULL;
    }
    result = writer_tell_locked(w, &position);
    data_stream_leave(&w->s);
    return result < 0 ? NULL : PyLong_FromLongLong(position);
}

/* Unbuffered: in one write, of a slice at most. */
static int
send_zeros_locked(struct pyio_data_writer *w, size_t nbytes)
{
    uint8_t *const zeros = cio_sys->calloc(1, nbytes);
    int result;

    if (zeros == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    result = writer_send_locked(w, zeros, nbytes);
    if (result != PYIO_KEPT) {
        cio_free(zeros);
    }
    return result;
}

/* Zeros, a buffer's worth at a time. */
static int
put_zeros_locked(struct pyio_data_writer *w, size_t nbytes)
{
    while (w->s.unbuffered && nbytes > 0) {
        const size_t piece = cio_min_size(nbytes, CIO_SLICE_NBYTES);

        if (send_zeros_locked(w, piece) < 0) {
            return -1;
        }
        nbytes -= piece;
        if (nbytes > 0 && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    while (nbytes > 0) {
        size_t piece = w->s.capacity - writer_pending(w);

        if (piece == 0
            && (writer_drain_locked(w) < 0 || PyErr_CheckSignals() < 0)) {
            return -1;
        }
        piece = cio_min_size(nbytes, w->s.capacity - writer_pending(w));
        memset(w->s.next, 0, piece);
        w->s.next += piece;
        nbytes -= piece;
    }
    return 0;
}

static PyObject *
writer_align(PyObject *op, PyObject *count)
{
    struct pyio_data_writer *const w = as_writer(op);
    int64_t n, position;
    int result;

    if (pyio_as_offset(count, "n", &n) < 0) {
        return NULL;
    }
    if (n == 0) {
        return PyErr_Format(PyExc_ValueError, "n must be at least 1");
    }
    if (data_stream_enter(&w->s) < 0) {
        return NULL;
    }
    result = writer_tell_locked(w, &position);
    if (result == 0 && position % n != 0) {
        result = put_zeros_locked(w, (size_t)(n - position % n));
    }
    data_stream_leave(&w->s);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
writer_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_data_writer *const w = as_writer(op);
    PyObject *result = NULL;
    int fd;

    if (data_stream_enter(&w->s) < 0) {
        return NULL;
    }
    if (w->s.kind == PYIO_STREAM_OBJECT) {
        PyErr_SetString(pyio_state_of(Py_TYPE(op))->unsupported, "fileno");
    } else if (flush_locked(w) == 0) {
        fd = data_stream_fd(&w->s);
        fd = fd == -2 ? PyObject_AsFileDescriptor(w->s.object) : fd;
        result = fd < 0 ? NULL : PyLong_FromLong(fd);
    }
    data_stream_leave(&w->s);
    return result;
}

static PyMethodDef file_methods[] = {
    {"write", writer_write, METH_O,
     PyDoc_STR("write($self, data, /)\n--\n\n"
               "Bytes as they are; returns their number.")},
    {"flush", writer_flush, METH_NOARGS,
     PyDoc_STR("flush($self, /)\n--\n\n"
               "Hand what is buffered to the target, and flush that.\n"
               "OSError: what the target did not take stays for the next "
               "flush.")},
    {"close", writer_close, METH_NOARGS,
     PyDoc_STR("close($self, /)\n--\n\n"
               "Flush; close what was opened from a path. A target that was "
               "given stays open.")},
    {"detach", writer_detach, METH_NOARGS,
     PyDoc_STR("detach($self, /)\n--\n\n"
               "Flush and return the target (of a path: its descriptor, now "
               "the caller's).")},
    {"tell", writer_tell, METH_NOARGS,
     PyDoc_STR("tell($self, /)\n--\n\n"
               "Position in the target where it is seekable, else bytes since "
               "construction.")},
    {"align", writer_align, METH_O,
     PyDoc_STR("align($self, n, /)\n--\n\n"
               "Zeros up to a multiple of n of tell().")},
    {"fileno", writer_fileno, METH_NOARGS,
     PyDoc_STR("fileno($self, /)\n--\n\n"
               "Flush and return the target's descriptor.")},
    {"writable", pyio_stream_true, METH_NOARGS,
     PyDoc_STR("writable($self, /)\n--\n\nTrue.")},
    {"readable", pyio_stream_false, METH_NOARGS,
     PyDoc_STR("readable($self, /)\n--\n\nFalse.")},
    {"seekable", pyio_stream_false, METH_NOARGS,
     PyDoc_STR("seekable($self, /)\n--\n\nFalse.")},
    {"__enter__", pyio_stream_enter_context, METH_NOARGS, NULL},
    PYIO_FAST("__exit__", pyio_stream_exit_context, 0, NULL),
    PYIO_PLAIN("__reduce__", pyio_stream_reduce, METH_NOARGS, NULL),
    {NULL, NULL, 0, NULL},
};

static PyType_Slot writer_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "DataWriter(target, byteorder='big', *, buffer_size=65536)\n--\n\n"
         "Typed values into a path, descriptor or file object.\n\n"
         "Each value is composed in memory; the target gets one write per "
         "full buffer,\nor, with buffer_size=0, exactly one per value. A "
         "value out of range is an\nOverflowError and writes nothing. Each "
         "call is atomic among threads; a sequence\nof calls needs the "
         "caller's own lock. What was given stays open at close.")},
    {Py_tp_init, data_writer_init},
    {Py_tp_methods, file_methods},
    {Py_tp_getset, data_stream_getset},
    {Py_tp_members, data_stream_members},
    {Py_tp_traverse, data_stream_traverse},
    {Py_tp_clear, data_stream_clear},
    {Py_tp_finalize, writer_finalize},
    {Py_tp_dealloc, writer_dealloc},
    {0, NULL},
};

PyType_Spec pyio_data_writer_spec = {
    .name = "pyio_chunked.DataWriter",
    .basicsize = sizeof(struct pyio_data_writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = writer_slots,
};
