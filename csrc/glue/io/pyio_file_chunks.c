/* SPDX-License-Identifier: MIT
 * pyio_file_chunks.c - a File handed out in pieces: the iterator of chunks(),
 * and read_buffer() on pooled memory.
 */
#include "glue/base/pyio_read.h"
#include "glue/io/pyio_file.h"

#include <errno.h>

/* ---------------------------------------------------------------- chunks */

struct chunks {
    PyObject_HEAD
    PyObject *file; /* NULL at the end */
    PyObject *size;
};

static int
chunks_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((struct chunks *)op)->file);
    return 0;
}

static int
chunks_clear(PyObject *op)
{
    Py_CLEAR(((struct chunks *)op)->file);
    Py_CLEAR(((struct chunks *)op)->size);
    return 0;
}

static void
chunks_dealloc(PyObject *op)
{
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    (void)chunks_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
chunks_next(PyObject *op)
{
    struct chunks *self = (struct chunks *)op;
    PyObject *piece;

    if (self->file == NULL) {
        return NULL;
    }
    piece = pyio_file_read(self->file, &self->size, 1);
    if (piece == NULL) {
        return NULL;
    }
    if (piece == Py_None) {
        Py_DECREF(piece);
        (void)pyio_file_check((struct pyio_file *)self->file,
                              cio_done_sys(EAGAIN, 0), 0);
        return NULL;
    }
    if (PyBytes_GET_SIZE(piece) == 0) {
        Py_DECREF(piece);
        Py_CLEAR(self->file);
        return NULL;
    }
    return piece;
}

static PyType_Slot chunks_slots[] = {
    {Py_tp_dealloc, chunks_dealloc}, {Py_tp_traverse, chunks_traverse},
    {Py_tp_clear, chunks_clear},     {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, chunks_next},   {0, NULL},
};

static PyType_Spec chunks_spec = {
    .name = "pyio_chunked._Chunks",
    .basicsize = sizeof(struct chunks),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = chunks_slots,
};

PyObject *
pyio_file_chunks(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                 PyObject *kwnames)
{
    static const char *const names[] = {"size", NULL};
    static const struct pyio_signature signature = {"chunks", names, 1, 0};
    struct pyio_file *self = (struct pyio_file *)op;
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct chunks *chunks;
    PyObject *size;
    int64_t nbytes = (int64_t)self->chunk_size;

    if (pyio_arguments(&signature, args, nargs, kwnames, &size) < 0
        || pyio_file_want_readable(self) < 0
        || (size != NULL && size != Py_None
            && pyio_as_offset(size, "size", &nbytes) < 0)) {
        return NULL;
    }
    if (nbytes < 1) {
        (void)pyio_raise(PyExc_ValueError, "size must be at least 1");
        return NULL;
    }
    size = PyLong_FromLongLong(nbytes);
    chunks =
        size == NULL ? NULL : PyObject_GC_New(struct chunks, st->chunks_type);
    if (chunks == NULL) {
        Py_XDECREF(size);
        return NULL;
    }
    chunks->file = Py_NewRef(op);
    chunks->size = size;
    PyObject_GC_Track((PyObject *)chunks);
    return (PyObject *)chunks;
}

/* ----------------------------------------------------------- read_buffer */

/* Owns a pooled buffer while a view of it lives. */
struct lease {
    PyObject_HEAD
    struct cio_chunk chunk;
};

static void
lease_dealloc(PyObject *op)
{
    PyTypeObject *const type = Py_TYPE(op);

    cio_chunk_give(&((struct lease *)op)->chunk);
    type->tp_free(op);
    Py_DECREF(type);
}

static int
lease_getbuffer(PyObject *op, Py_buffer *view, int flags)
{
    struct cio_chunk *chunk = &((struct lease *)op)->chunk;

    const int read_only = 1;

    return PyBuffer_FillInfo(view, op, chunk->data, (Py_ssize_t)chunk->end,
                             read_only, flags);
}

static PyType_Slot lease_slots[] = {
    {Py_tp_dealloc, lease_dealloc},
    {Py_bf_getbuffer, lease_getbuffer},
    {0, NULL},
};

static PyType_Spec lease_spec = {
    .name = "pyio_chunked._Lease",
    .basicsize = sizeof(struct lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = lease_slots,
};

/* A memoryview of `object`, which is let go here. */
static PyObject *
view_of(PyObject *object)
{
    PyObject *view;

    if (object == NULL || object == Py_None) {
        return object;
    }
    view = PyMemoryView_FromObject(object);
    Py_DECREF(object);
    return view;
}

static PyObject *
read_leased(PyObject *op, size_t size)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct lease *lease = PyObject_New(struct lease, st->lease_type);
    PyObject *memory, *count;

    if (lease == NULL) {
        return NULL;
    }
    memset(&lease->chunk, 0, sizeof lease->chunk);
    if (!cio_chunk_take(&lease->chunk, size)) {
        Py_DECREF(lease);
        return PyErr_NoMemory();
    }
    memory = PyMemoryView_FromMemory((char *)lease->chunk.data,
                                     (Py_ssize_t)size, PyBUF_WRITE);
    count = memory == NULL ? NULL : pyio_file_readinto(op, memory);
    Py_XDECREF(memory);
    if (count == NULL || count == Py_None) {
        Py_DECREF(lease);
        return count;
    }
    lease->chunk.end = (size_t)PyLong_AsSsize_t(count);
    Py_DECREF(count);
    return view_of((PyObject *)lease);
}

PyObject *
pyio_file_read_buffer(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    int64_t size;

    if (nargs > 1) {
        PyErr_Format(PyExc_TypeError,
                     "read_buffer() takes at most one argument (%zd given)",
                     nargs);
        return NULL;
    }
    if (pyio_as_size(nargs == 1 ? args[0] : NULL, &size) < 0) {
        return NULL;
    }
    if (size >= 0 && (size_t)size <= CIO_CHUNK_NBYTES) {
        return read_leased(op, (size_t)size);
    }
    return view_of(pyio_file_read(op, args, nargs));
}

int
pyio_add_chunks(PyObject *mod, struct pyio_state *st)
{
    PyObject *type = PyType_FromModuleAndSpec(mod, &chunks_spec, NULL);

    st->chunks_type = (PyTypeObject *)type;
    if (type == NULL) {
        return -1;
    }
    type = PyType_FromModuleAndSpec(mod, &lease_spec, NULL);
    st->lease_type = (PyTypeObject *)type;
    return type == NULL ? -1 : 0;
}
