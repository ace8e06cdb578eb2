/* SPDX-License-Identifier: MIT
 * pyio_stream_type.c - the life of our stream types, and the methods that are
 * alike in all of them.
 */
#include "glue/base/pyio_stream_type.h"

#include <stdio.h>

static struct pyio_stream *
as_stream(PyObject *op)
{
    return (struct pyio_stream *)op;
}

int
pyio_stream_closed_error(const struct pyio_stream *stream)
{
    const char *text = "I/O operation on closed file.";

    switch (stream->state) {
    case PYIO_IS_NEW:
        text = "I/O operation on uninitialized object";
        break;
    case PYIO_IS_DETACHED:
        text = "raw stream has been detached";
        break;
    case PYIO_IS_OPEN:
    case PYIO_IS_CLOSED:
        break;
    }
    return pyio_raise(PyExc_ValueError, text);
}

int
pyio_stream_unsupported(struct pyio_stream *stream, const char *text)
{
    return pyio_raise(pyio_state_of(Py_TYPE(stream))->unsupported, text);
}

/* ----------------------------------------------------------------- methods */

static PyObject *
while_open(PyObject *op, PyObject *answer)
{
    return pyio_stream_check(as_stream(op)) < 0 ? NULL : Py_NewRef(answer);
}

PyObject *
pyio_stream_true(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return while_open(op, Py_True);
}

PyObject *
pyio_stream_false(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return while_open(op, Py_False);
}

PyObject *
pyio_stream_none(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return while_open(op, Py_None);
}

PyObject *
pyio_stream_self(PyObject *op)
{
    return while_open(op, op);
}

PyObject *
pyio_stream_enter_context(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return while_open(op, op);
}

PyObject *
pyio_stream_exit_context(PyObject *op, PyObject *const *Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(nargs))
{
    return PyObject_CallMethodNoArgs(op,
                                     pyio_state_of(Py_TYPE(op))->str_close);
}

PyObject *
pyio_stream_reduce(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    (void)pyio_raise(PyExc_TypeError, "cannot pickle '%s' object",
                     Py_TYPE(op)->tp_name);
    return NULL;
}

PyObject *
pyio_stream_get_closed(PyObject *op, void *Py_UNUSED(closure))
{
    const enum pyio_stream_state state = as_stream(op)->state;

    return state == PYIO_IS_CLOSED ? Py_NewRef(Py_True)
                                   : while_open(op, Py_False);
}

PyObject *
pyio_stream_get_rb(PyObject *Py_UNUSED(op), void *Py_UNUSED(closure))
{
    return PyUnicode_InternFromString("rb");
}

PyObject *
pyio_stream_repr(PyObject *op, PyObject *name, const char *more)
{
    const char *const type = Py_TYPE(op)->tp_name;
    PyObject *text;
    int entered;

    if (name == NULL) {
        return PyUnicode_FromFormat("<%s%s>", type, more);
    }
    entered = Py_ReprEnter(op);
    if (entered != 0) {
        return entered < 0 ? NULL : PyUnicode_FromFormat("<%s ...>", type);
    }
    text = PyUnicode_FromFormat("<%s name=%R%s>", type, name, more);
    Py_ReprLeave(op);
    return text;
}

/* --------------------------------------------------------------- arguments */

int
pyio_any_size_argument(const char *function, PyObject *const *args,
                       Py_ssize_t nargs, enum pyio_size_rule rule,
                       int64_t *size)
{
    Py_ssize_t n;

    *size = -1;
    if (nargs > 1) {
        return pyio_raise(PyExc_TypeError,
                          "%s() takes at most 1 argument (%zd given)",
                          function, nargs);
    }
    if (nargs == 0 || (args[0] == Py_None && rule != PYIO_SIZE_SOME)) {
        return 0;
    }
    if (rule == PYIO_SIZE_READ) {
        return pyio_as_size(args[0], size);
    }
    n = PyNumber_AsSsize_t(args[0], PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred()) {
        return -1;
    }
    *size = n < 0 ? -1 : (int64_t)n;
    return 0;
}

int
pyio_seek_arguments(PyObject *const *args, Py_ssize_t nargs, int last,
                    bool clip, int64_t *offset, int *whence)
{
    long how = SEEK_SET;

    if (nargs < 1 || nargs > 2) {
        return pyio_raise(PyExc_TypeError,
                          "seek() takes 1 or 2 arguments (%zd given)", nargs);
    }
    if (nargs == 2) {
        how = PyLong_AsLong(args[1]);
        if (how == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    *offset = PyNumber_AsSsize_t(args[0], clip ? NULL : PyExc_ValueError);
    if (*offset == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (how < 0 || how > last) {
        return pyio_raise(PyExc_ValueError, "whence value %ld unsupported",
                          how);
    }
    *whence = (int)how;
    return 0;
}

/* -------------------------------------------------------------- life's end */

void
pyio_stream_finalize(PyObject *op, const char *warning)
{
    PyObject *before, *closed;

    if (!pyio_stream_is_open(as_stream(op))) {
        return;
    }
    before = pyio_exception_take();
    if (warning != NULL && PyErr_ResourceWarning(op, 1, warning, op) < 0) {
        /* -W error: a finalizer can only report it. */
        PyErr_WriteUnraisable(op);
    }
    closed =
        PyObject_CallMethodNoArgs(op, pyio_state_of(Py_TYPE(op))->str_close);
    if (closed == NULL) {
        PyErr_WriteUnraisable(op);
    }
    Py_XDECREF(closed);
    pyio_exception_give(before);
}

int
pyio_stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(as_stream(op)->dict);
    return 0;
}
