/* SPDX-License-Identifier: MIT
 * pyio_data.c - what DataWriter and DataReader have in common: order, buffer,
 * state, the descriptor or object behind; and the list of their parts.
 */
#include "glue/data/pyio_data.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "glue/pyio_parts.h"

/* --------------------------------------------------------- construction */

static int
parse_order(struct data_stream *s, PyObject *byteorder)
{
    static const char *const choices[] = {"big", "little", ">",
                                          "<",   "=",      NULL};
    const char host = CIO_BIG_ENDIAN_HOST ? '>' : '<';
    int which = 0;

    if (byteorder != NULL
        && pyio_as_choice(byteorder, "byteorder", choices, &which) < 0) {
        return -1;
    }
    s->order = which == 4 ? host : which == 1 || which == 3 ? '<' : '>';
    s->swap = s->order != host;
    return 0;
}

/* An __init__ that failed may have left a buffer of another size and an open
 * descriptor. Conversions of arguments, which may initialise the stream, come
 * before. */
static int
forget_attempt(struct data_stream *s)
{
    if (pyio_lock_enter(&s->head.lock, (PyObject *)s) < 0) {
        return -1;
    }
    if (s->head.state != PYIO_IS_NEW) {
        pyio_lock_leave(&s->head.lock);
        return pyio_raise(PyExc_ValueError, "%R is initialised already", s);
    }
    if (s->owns_fd) {
        (void)pyio_close(s->fd);
        PyErr_Clear();
    }
    s->owns_fd = false;
    s->fd = -1;
    cio_free(s->buffer);
    s->buffer = s->next = s->limit = NULL;
    return 0;
}

int
data_stream_init(struct data_stream *s, PyObject *byteorder,
                 PyObject *buffer_size)
{
    int64_t nbytes = CIO_DATA_BUFFER_NBYTES;

    if ((buffer_size != NULL
         && pyio_as_offset(buffer_size, "buffer_size", &nbytes) < 0)
        || forget_attempt(s) < 0) {
        return -1;
    }
    if (parse_order(s, byteorder) < 0) {
        return data_stream_made(s, -1);
    }
    s->unbuffered = nbytes == 0;
    s->capacity = (size_t)nbytes < DATA_BUFFER_MIN_NBYTES && s->unbuffered
                      ? DATA_BUFFER_MIN_NBYTES
                      : (size_t)nbytes;
    if (s->capacity < CIO_DATA_BUFFER_LEAST_NBYTES) {
        s->capacity = CIO_DATA_BUFFER_LEAST_NBYTES;
    }
    return 0;
}

int
data_stream_made(struct data_stream *s, int result)
{
    if (result == 0) {
        s->head.state = PYIO_IS_OPEN;
    }
    pyio_lock_leave(&s->head.lock);
    return result;
}

int
data_stream_hold(struct data_stream *s, PyObject *object)
{
    PyObject *const held =
        s->kind == PYIO_STREAM_PATH ? PyOS_FSPath(object) : Py_NewRef(object);

    if (held == NULL) {
        return -1;
    }
    Py_XSETREF(s->object, held);
    return 0;
}

/* ---------------------------------------------------------------- state */

int
data_stream_fd(struct data_stream *s)
{
    switch (s->kind) {
    case PYIO_STREAM_PATH:
    case PYIO_STREAM_FD:
        return s->fd;
    case PYIO_STREAM_RAW:
    case PYIO_STREAM_SOCKET:
        /* Asked each time: closed behind our back, its number may be another
         * file's by now. */
        return PyObject_AsFileDescriptor(s->object);
    case PYIO_STREAM_BUFFERED:
    case PYIO_STREAM_FILE:
    case PYIO_STREAM_OBJECT:
        break;
    }
    return -2;
}

int
data_stream_call(struct data_stream *s, const char *name)
{
    PyObject *const method = PyObject_GetAttrString(s->object, name);
    PyObject *result;

    if (method == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        return 0;
    }
    result = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static int
object_position(struct data_stream *s, int64_t *position, bool *seekable)
{
    PyObject *answer = PyObject_CallMethod(s->object, "seekable", NULL);
    int is;

    if (answer != NULL) {
        is = PyObject_IsTrue(answer);
        Py_DECREF(answer);
        if (is <= 0) {
            return is;
        }
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    } else {
        return -1;
    }
    answer = PyObject_CallMethod(s->object, "tell", NULL);
    if (answer == NULL) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)
            || PyErr_ExceptionMatches(PyExc_OSError)) {
            PyErr_Clear();
            return 0;
        }
        return -1;
    }
    is = pyio_as_offset(answer, "tell()", position);
    Py_DECREF(answer);
    *seekable = is == 0;
    return is;
}

int
data_stream_position(struct data_stream *s, int64_t *position, bool *seekable)
{
    const int fd = data_stream_fd(s);
    off_t at;

    *seekable = false;
    if (fd == -2) {
        return object_position(s, position, seekable);
    }
    if (fd < 0) {
        return -1;
    }
    at = cio_sys->lseek(fd, 0, SEEK_CUR);
    if (at < 0) {
        return errno == ESPIPE ? 0 : data_stream_failed(s, errno, 0);
    }
    *position = at;
    *seekable = true;
    return 0;
}

int
data_stream_failed(const struct data_stream *s, int sys_errno,
                   uint64_t transferred)
{
    struct pyio_context context = {NULL, NULL, (int64_t)transferred};
    struct cio_done done = cio_done_sys(sys_errno, transferred);
    PyObject *name = NULL;
    int result;

    if (sys_errno == EINTR) { /* a signal handler raised */
        done.status = CIO_MORE;
    } else if (s->kind == PYIO_STREAM_PATH) {
        context.filename = s->object;
    } else if (s->kind == PYIO_STREAM_RAW) {
        name = PyObject_GetAttrString(s->object, "name");
        if (name == NULL) {
            PyErr_Clear();
        }
        context.filename = name;
    }
    result = pyio_check(NULL, done, &context);
    if (sys_errno == EAGAIN) {
        pyio_exception_attribute("characters_written",
                                 PyLong_FromUnsignedLongLong(transferred));
    }
    Py_XDECREF(name);
    return result;
}

/* Waits detached, in pieces, for signals' sake. 0: ready. */
static int
poll_until(struct data_stream *s, int fd, short events, int64_t until_ns,
           uint64_t transferred)
{
    struct pollfd poll_fd = {fd, events, 0};
    int ready;

    for (;;) {
        const int64_t left_ns =
            until_ns < 0 ? INT64_MAX : until_ns - pyio_now_ns();
        const int piece_ms =
            left_ns > 1000000000 ? 1000 : (int)(left_ns / 1000000) + 1;

        if (left_ns <= 0) {
            PyErr_SetString(PyExc_TimeoutError, "timed out");
            pyio_exception_attribute("transferred",
                                     PyLong_FromUnsignedLongLong(transferred));
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS
        ready = cio_sys->poll(&poll_fd, 1, piece_ms);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0) {
            return data_stream_failed(s, EINTR, transferred);
        }
        if (ready > 0) {
            return 0;
        }
    }
}

int
data_stream_wait(struct data_stream *s, int fd, short events,
                 uint64_t transferred)
{
    PyObject *const timeout =
        PyObject_CallMethod(s->object, "gettimeout", NULL);
    double seconds = -1;

    if (timeout != NULL && timeout != Py_None) {
        seconds = PyFloat_AsDouble(timeout);
    }
    Py_XDECREF(timeout);
    if (PyErr_Occurred()) {
        return -1;
    }
    if (seconds == 0) {
        return data_stream_failed(s, EAGAIN, transferred);
    }
    return poll_until(s, fd, events,
                      seconds < 0 ? -1
                                  : pyio_now_ns() + (int64_t)(seconds * 1e9),
                      transferred);
}

void
data_stream_abandon_buffer(struct data_stream *s)
{
    PyObject *const exception = pyio_exception_take();
    uint8_t *const fresh = cio_sys->malloc(s->capacity);

    if (fresh == NULL) {
        /* Nothing can be saved without memory; the exception says so. */
        s->next = s->limit = s->buffer = NULL;
        s->head.state = PYIO_IS_CLOSED;
    } else {
        memcpy(fresh, s->buffer, s->capacity);
        s->next = fresh + (s->next - s->buffer);
        s->limit = fresh + (s->limit - s->buffer);
        s->buffer = fresh;
    }
    pyio_exception_give(exception);
}

int
data_stream_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct data_stream *s = (struct data_stream *)op;

    Py_VISIT(s->object);
    return pyio_stream_traverse(op, visit, arg);
}

int
data_stream_clear(PyObject *op)
{
    struct data_stream *s = (struct data_stream *)op;

    pyio_stream_clear(op);
    Py_CLEAR(s->object);
    s->head.state = PYIO_IS_CLOSED;
    s->next = s->limit = s->buffer;
    return 0;
}

void
data_stream_free(PyObject *op)
{
    struct data_stream *s = (struct data_stream *)op;

    if (s->owns_fd && s->fd >= 0) { /* the finalizer could not */
        PyObject *const before = pyio_exception_take();

        (void)pyio_close(s->fd);
        pyio_exception_give(before);
    }
    (void)data_stream_clear(op);
    cio_free(s->buffer);
    data_records_free(s->records);
    pyio_stream_dealloc_end(op);
}

/* ----------------------------------------------------------- attributes */

static PyObject *
get_name(PyObject *op, void *Py_UNUSED(ignored))
{
    const struct data_stream *s = (struct data_stream *)op;

    if (s->object == NULL) {
        (void)pyio_stream_closed_error(&s->head);
        return NULL;
    }
    if (s->kind == PYIO_STREAM_PATH || s->kind == PYIO_STREAM_FD) {
        return Py_NewRef(s->object);
    }
    return PyObject_GetAttrString(s->object, "name");
}

static PyObject *
get_byteorder(PyObject *op, void *Py_UNUSED(ignored))
{
    const struct data_stream *s = (struct data_stream *)op;

    return PyUnicode_FromString(s->order == '<' ? "little" : "big");
}

PyGetSetDef data_stream_getset[] = {
    {"closed", pyio_stream_get_closed, NULL, NULL, NULL},
    {"name", get_name, NULL, PyDoc_STR("The path, or the object's name."),
     NULL},
    {"byteorder", get_byteorder, NULL, PyDoc_STR("\"big\" or \"little\"."),
     NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyMemberDef data_stream_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(struct pyio_stream, dict),
     READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct pyio_stream, weakrefs),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* ---------------------------------------------------------------- parts */

PyDoc_STRVAR(short_read_doc,
             "The source ended inside a value.\n\n"
             "expected: bytes of the value, its length prefix included;\n"
             "partial: what there was of them, 64 KiB at most;\n"
             "offset: where the value begins, and where the stream stands.");

static PyObject *
make_short_read_error(void)
{
    PyObject *const defaults = Py_BuildValue("{s:i,s:y,s:i}", "expected", 0,
                                             "partial", "", "offset", 0);
    PyObject *type;

    if (defaults == NULL) {
        return NULL;
    }
    type = PyErr_NewExceptionWithDoc("pyio_chunked.ShortReadError",
                                     short_read_doc, PyExc_EOFError, defaults);
    Py_DECREF(defaults);
    return type;
}

/* More methods for a type whose own table is in another file. */
static int
add_methods(PyTypeObject *type, PyMethodDef *methods)
{
    for (; methods->ml_name != NULL; methods++) {
        PyObject *const method = PyDescr_NewMethod(type, methods);
        int set;

        if (method == NULL) {
            return -1;
        }
        set =
            PyObject_SetAttrString((PyObject *)type, methods->ml_name, method);
        Py_DECREF(method);
        if (set < 0) {
            return -1;
        }
    }
    return 0;
}

PyDoc_STRVAR(utf_error_doc,
             "Modified UTF-8 that Java refuses, or a text too long for it: "
             "java.io.UTFDataFormatException.");

static int
add_java(PyObject *mod, struct pyio_state *st)
{
    PyObject *bases;

    st->utf_error =
        PyErr_NewExceptionWithDoc("pyio_chunked.java.UTFDataFormatError",
                                  utf_error_doc, PyExc_ValueError, NULL);
    if (st->utf_error == NULL
        || PyModule_AddObjectRef(mod, "UTFDataFormatError", st->utf_error)
               < 0) {
        return -1;
    }
    bases = PyTuple_Pack(2, st->utf_error, PyExc_OverflowError);
    if (bases == NULL) {
        return -1;
    }
    st->utf_length_error = PyErr_NewExceptionWithDoc(
        "pyio_chunked.java.UTFLengthError", utf_error_doc, bases, NULL);
    Py_DECREF(bases);
    if (st->utf_length_error == NULL
        || PyModule_AddObjectRef(mod, "UTFLengthError", st->utf_length_error)
               < 0) {
        return -1;
    }
    return pyio_add_type(mod, &pyio_java_output_spec, NULL,
                         &st->java_output_type)
                       < 0
                   || pyio_add_type(mod, &pyio_java_input_spec, NULL,
                                    &st->java_input_type)
                          < 0
               ? -1
               : 0;
}

int
pyio_add_data(PyObject *mod, struct pyio_state *st)
{
    static PyMethodDef *const put[] = {
        pyio_data_put_methods, pyio_data_text_methods, pyio_data_array_methods,
        pyio_data_record_methods};
    static PyMethodDef *const get[] = {
        pyio_data_get_methods, pyio_data_text_get_methods,
        pyio_data_array_get_methods, pyio_data_record_get_methods};

    st->short_read_error = make_short_read_error();
    if (st->short_read_error == NULL
        || PyModule_AddObjectRef(mod, "ShortReadError", st->short_read_error)
               < 0
        || pyio_add_stream_type(mod, &pyio_data_writer_spec,
                                &st->data_writer_type)
               < 0
        || pyio_add_stream_type(mod, &pyio_data_reader_spec,
                                &st->data_reader_type)
               < 0
        || pyio_add_type(mod, &pyio_data_iterator_spec, NULL,
                         &st->data_iterator_type)
               < 0) {
        return -1;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(put); i++) {
        if (add_methods(st->data_writer_type, put[i]) < 0
            || add_methods(st->data_reader_type, get[i]) < 0) {
            return -1;
        }
    }
    return add_java(mod, st);
}
