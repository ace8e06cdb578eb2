/* SPDX-License-Identifier: MIT
 * pyio_file_state.c - where a File is, and what it says of itself.
 */
#include "glue/io/pyio_file.h"

#include <errno.h>
#include <unistd.h>

/* ------------------------------------------------------------- position */

int
pyio_file_settle(struct pyio_file *self)
{
    if (pyio_file_flush(self) < 0) {
        return -1;
    }
    return pyio_file_check(self, cio_file_drop_ahead(&self->core), -1);
}

int
pyio_file_tell(struct pyio_file *self, int64_t *pos)
{
    return pyio_file_check(self, cio_file_tell(&self->core, pos), -1);
}

int
pyio_file_seek_to(struct pyio_file *self, int64_t pos)
{
    if (pyio_file_flush(self) < 0) {
        return -1;
    }
    return pyio_file_check(
        self, cio_file_seek(&self->core, pos, SEEK_SET, &pos), -1);
}

int
pyio_file_expose(struct pyio_file *self)
{
    if (pyio_file_flush(self) < 0) {
        return -1;
    }
    return pyio_file_check(self, cio_file_expose(&self->core), -1);
}

PyObject *
pyio_file_seek(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_file *self = (struct pyio_file *)op;
    int64_t off;
    int64_t pos;
    int whence, result;

    if (pyio_stream_check(&self->head) < 0
        || pyio_seek_arguments(args, nargs, 4, false, &off, &whence) < 0) {
        return NULL;
    }
    if (pyio_file_is_quick(self) && self->core.seekable) {
        return pyio_file_check(
                   self, cio_file_seek(&self->core, off, whence, &pos), -1)
                       < 0
                   ? NULL
                   : PyLong_FromLongLong(pos);
    }
    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    if (!self->core.seekable) {
        result = pyio_stream_unsupported(&self->head,
                                         "File or stream is not seekable.");
    } else {
        result = pyio_file_flush(self);
        if (result == 0) {
            result = pyio_file_check(
                self, cio_file_seek(&self->core, off, whence, &pos), -1);
        }
    }
    pyio_file_leave(self);
    return result < 0 ? NULL : PyLong_FromLongLong(pos);
}

PyObject *
pyio_file_tell_method(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    int64_t pos;
    int result;

    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    result = pyio_file_tell(self, &pos);
    pyio_file_leave(self);
    return result < 0 ? NULL : PyLong_FromLongLong(pos);
}

PyObject *
pyio_file_fileno(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    int fd, result;

    if (pyio_stream_check(&self->head) < 0) {
        return NULL;
    }
    fd = self->core.fd;
    if (pyio_file_is_positional(self)) {
        if (pyio_file_enter(self) < 0) {
            return NULL;
        }
        result = pyio_file_check(self, cio_file_expose(&self->core), -1);
        pyio_file_leave(self);
        if (result < 0) {
            return NULL;
        }
    }
    return PyLong_FromLong(fd);
}

static PyObject *
mode_of(struct pyio_file *self)
{
    /* As io.FileIO says it. */
    static const char *const texts[] = {"rb",  "wb",  "xb",  "ab",
                                        "rb+", "rb+", "xb+", "ab+"};
    int index = self->readable && self->writable ? 4 : 0;

    if (self->created) {
        index += 2;
    } else if (self->append) {
        index += 3;
    } else if (!self->readable) {
        index += 1;
    }
    return PyUnicode_InternFromString(texts[index]);
}

/* The io.FileIO that takes the descriptor over. */
static PyObject *
raw_of(struct pyio_file *self, PyObject *mode)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));
    PyObject *const raw =
        PyObject_CallFunction(st->file_io, "iO", self->core.fd, mode);

    if (raw != NULL && PyObject_SetAttrString(raw, "name", self->name) < 0) {
        /* The descriptor stays ours. */
        PyErr_Clear();
    }
    return raw;
}

PyObject *
pyio_file_detach(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *raw = NULL, *mode = NULL;

    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    if (self->users > 1) {
        (void)pyio_raise(PyExc_RuntimeError,
                         "detach() while other threads use %R", op);
    } else if (pyio_file_flush(self) == 0
               && (pyio_file_is_positional(self) || !self->core.seekable
                       ? pyio_file_expose(self)
                       : pyio_file_settle(self))
                      == 0
               && (mode = mode_of(self)) != NULL) {
        raw = raw_of(self, mode);
        if (raw != NULL) {
            self->head.state = PYIO_IS_DETACHED;
        }
    }
    Py_XDECREF(mode);
    pyio_file_leave(self);
    return raw;
}

/* ----------------------------------------------------------- properties */

PyObject *
pyio_file_get_mode(PyObject *op, void *Py_UNUSED(closure))
{
    return mode_of((struct pyio_file *)op);
}

static PyObject *
answer(PyObject *op, bool value)
{
    return value ? pyio_stream_true(op, NULL) : pyio_stream_false(op, NULL);
}

PyObject *
pyio_file_readable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return answer(op, ((struct pyio_file *)op)->readable);
}

PyObject *
pyio_file_writable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return answer(op, ((struct pyio_file *)op)->writable);
}

PyObject *
pyio_file_seekable(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return answer(op, ((struct pyio_file *)op)->core.seekable);
}

PyObject *
pyio_file_isatty(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct pyio_file *self = (struct pyio_file *)op;
    int is = 0;

    if (pyio_file_hold(self) < 0) {
        return NULL;
    }
    if (!self->core.seekable) {
        Py_BEGIN_ALLOW_THREADS
        is = cio_sys->isatty(self->core.fd);
        Py_END_ALLOW_THREADS
    }
    pyio_file_release(self);
    return PyBool_FromLong(is);
}

PyObject *
pyio_file_repr(PyObject *op)
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *const mode = mode_of(self);
    char more[] = " mode='xb+'";

    if (mode == NULL) {
        return NULL;
    }
    (void)snprintf(more, sizeof more, " mode='%s'", PyUnicode_AsUTF8(mode));
    Py_DECREF(mode);
    return pyio_stream_repr(op, self->name, more);
}
