/* SPDX-License-Identifier: MIT
 * pyio_stream_type.h - what all stream types of ours are: open or not, one
 * call at a time, with a dict and weak references, loud when dropped open.
 *
 * Why      File, InflateReader, GzipFile, ZipMember, DataWriter, DataReader
 *          and Java's two have one life; its rules stand here once.
 * Owner    The object owns its dict; what a type adds, the type frees between
 *          dealloc_begin and dealloc_end.
 * Errors   -1 or NULL with an exception. What is not open is io's ValueError.
 * Threads  The GIL; between enter and leave one call at a time.
 */
#ifndef PYIO_STREAM_TYPE_H
#define PYIO_STREAM_TYPE_H

#include "glue/base/pyio.h"

enum pyio_stream_state {
    PYIO_IS_NEW, /* __init__ has not come to its end */
    PYIO_IS_OPEN,
    PYIO_IS_CLOSED,
    PYIO_IS_DETACHED,
};

/* The first member of each. */
struct pyio_stream {
    PyObject_HEAD
    PyObject *dict, *weakrefs; /* where _io._IOBase has them */
    struct pyio_lock lock;
    enum pyio_stream_state state;
};

static inline bool
pyio_stream_is_open(const struct pyio_stream *stream)
{
    return PYIO_LIKELY(stream->state == PYIO_IS_OPEN);
}
/* ValueError that says why it isn't open; always -1. */
int pyio_stream_closed_error(const struct pyio_stream *stream);
static inline int
pyio_stream_check(const struct pyio_stream *stream)
{
    return pyio_stream_is_open(stream) ? 0 : pyio_stream_closed_error(stream);
}

/* Lock and check. -1: not entered. */
static inline int
pyio_stream_enter(struct pyio_stream *stream)
{
    if (pyio_stream_check(stream) < 0
        || pyio_lock_enter(&stream->lock, (PyObject *)stream) < 0) {
        return -1;
    }
    if (!pyio_stream_is_open(stream)) { /* closed while we waited */
        pyio_lock_leave(&stream->lock);
        return pyio_stream_closed_error(stream);
    }
    return 0;
}
static inline void
pyio_stream_leave(struct pyio_stream *stream)
{
    pyio_lock_leave(&stream->lock);
}

/* io.UnsupportedOperation; always -1. */
int pyio_stream_unsupported(struct pyio_stream *stream, const char *text);

/* ----------------------------------------------------------------- methods */

/* METH_NOARGS, tp_iter: the answer while it is open. */
PyObject *pyio_stream_true(PyObject *op, PyObject *ignored);
PyObject *pyio_stream_false(PyObject *op, PyObject *ignored);
PyObject *pyio_stream_none(PyObject *op, PyObject *ignored);
PyObject *pyio_stream_self(PyObject *op);
PyObject *pyio_stream_enter_context(PyObject *op, PyObject *ignored);
/* METH_FASTCALL. */
PyObject *pyio_stream_exit_context(PyObject *op, PyObject *const *args,
                                   Py_ssize_t nargs);
/* __reduce__ of what can be neither pickled nor copied: TypeError. */
PyObject *pyio_stream_reduce(PyObject *op, PyObject *ignored);
PyObject *pyio_stream_get_closed(PyObject *op, void *closure);
PyObject *pyio_stream_get_rb(PyObject *op, void *closure);
/* "<type name='...'more>"; name NULL: without. */
PyObject *pyio_stream_repr(PyObject *op, PyObject *name, const char *more);

/* --------------------------------------------------------------- arguments */

/* What io takes as a size; all of them refuse 2**63. */
enum pyio_size_rule {
    PYIO_SIZE_READ, /* read: None and -1 mean all, below -1 is refused */
    PYIO_SIZE_LINE, /* readline, zipfile's read: None and all below 0 */
    PYIO_SIZE_SOME, /* read1, peek: all below 0, None is refused */
};
int pyio_any_size_argument(const char *function, PyObject *const *args,
                           Py_ssize_t nargs, enum pyio_size_rule rule,
                           int64_t *size);
/* At most one argument, a size; -1 where it is not given, or means all. */
static inline int
pyio_size_argument(const char *function, PyObject *const *args,
                   Py_ssize_t nargs, enum pyio_size_rule rule, int64_t *size)
{
    return nargs == 1 && rule == PYIO_SIZE_READ
               ? pyio_as_size(args[0], size)
               : pyio_any_size_argument(function, args, nargs, rule, size);
}
/* (offset, whence=0) of seek, whence from 0 to `last`. An offset that does not
 * fit: ValueError, as io, or, with `clip`, the nearest that does, as zipfile.
 */
int pyio_seek_arguments(PyObject *const *args, Py_ssize_t nargs, int last,
                        bool clip, int64_t *offset, int *whence);

/* -------------------------------------------------------------- life's end */

/* tp_finalize: where the stream is open, calls close(), a subclass's if it has
 * one. warning: "... %R" of a ResourceWarning; NULL: none. */
void pyio_stream_finalize(PyObject *op, const char *warning);
/* The common part of tp_traverse and tp_clear. */
int pyio_stream_traverse(PyObject *op, visitproc visit, void *arg);
static inline void
pyio_stream_clear(PyObject *op)
{
    Py_CLEAR(((struct pyio_stream *)op)->dict);
}

/* tp_dealloc begins and ends with these. false: somebody took the object back,
 * and nothing may be freed. */
static inline bool
pyio_stream_dealloc_begin(PyObject *op)
{
    struct pyio_stream *const stream = (struct pyio_stream *)op;

    if (stream->state == PYIO_IS_OPEN
        && PyObject_CallFinalizerFromDealloc(op) < 0) {
        return false;
    }
    PyObject_GC_UnTrack(op);
    if (stream->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    return true;
}
static inline void
pyio_stream_dealloc_end(PyObject *op)
{
    PyTypeObject *const type = Py_TYPE(op);

    pyio_stream_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

#endif
