/* SPDX-License-Identifier: MIT
 * pyio_file_open.c - modes, opening, and pickling as opening again.
 */
#include "glue/io/pyio_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_SIZE_MAX CIO_CALL_MAX_NBYTES

/* ----------------------------------------------------------------- modes */

struct mode {
    char kind; /* r w a x */
    bool update, text, binary;
};

static int
invalid_mode(PyObject *mode)
{
    return pyio_raise(PyExc_ValueError, "invalid mode: %R", mode);
}

static int
parse_mode(PyObject *object, struct mode *mode)
{
    const char *text;

    *mode = (struct mode){0};
    if (!PyUnicode_Check(object)) {
        return pyio_raise(PyExc_TypeError, "mode must be str, not %.200s",
                          Py_TYPE(object)->tp_name);
    }
    text = PyUnicode_AsUTF8(object);
    if (text == NULL) {
        return -1;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr(at + 1, *at) != NULL || strchr("rwaxbt+", *at) == NULL) {
            return invalid_mode(object);
        }
        if (*at == '+') {
            mode->update = true;
        } else if (*at == 't') {
            mode->text = true;
        } else if (*at == 'b') {
            mode->binary = true;
        } else if (mode->kind != 0) {
            mode->kind = '?';
        } else {
            mode->kind = *at;
        }
    }
    if (mode->text && mode->binary) {
        return pyio_raise(PyExc_ValueError,
                          "can't have text and binary mode at once");
    }
    if (mode->kind == 0 || mode->kind == '?') {
        return pyio_raise(PyExc_ValueError,
                          "must have exactly one of create/read/write/append "
                          "mode");
    }
    return 0;
}

static int
open_flags(const struct mode *mode)
{
    const int access = mode->update        ? O_RDWR
                       : mode->kind == 'r' ? O_RDONLY
                                           : O_WRONLY;

    switch (mode->kind) {
    case 'w':
        return access | O_CREAT | O_TRUNC | O_CLOEXEC;
    case 'a':
        return access | O_CREAT | O_APPEND | O_CLOEXEC;
    case 'x':
        return access | O_CREAT | O_EXCL | O_CLOEXEC;
    default:
        return access | O_CLOEXEC;
    }
}

/* --------------------------------------------------------------- opening */

static int
raise_os(int sys_errno, PyObject *name)
{
    const struct pyio_context context = {name, NULL, -1};

    return pyio_check(NULL, cio_done_sys(sys_errno, 0), &context);
}

int
pyio_open_stat(PyObject *path, PyObject *bytes, const char *mode, int flags,
               struct stat *st)
{
    struct cio_done done;
    int fd;

    if (PySys_Audit("open", "Osi", path, mode, flags) < 0) {
        return -1;
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_fd_open(PyBytes_AS_STRING(bytes), flags, 0666, &fd, st);
        Py_END_ALLOW_THREADS
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0);
    if (done.status == CIO_MORE) {
        return -1;
    }
    return done.status == CIO_OK ? fd : raise_os(done.sys_errno, path);
}

static int
open_path(struct pyio_file *self, PyObject *path, const struct mode *mode,
          struct stat *st)
{
    const char text[3] = {mode->kind, mode->update ? '+' : '\0', '\0'};
    PyObject *bytes;
    int fd;

    if (pyio_as_path(path, &bytes) < 0) {
        return -1;
    }
    fd = pyio_open_stat(path, bytes, text, open_flags(mode), st);
    Py_DECREF(bytes);
    if (fd < 0) {
        return -1;
    }
    self->core.fd = fd;
    self->path = Py_NewRef(path);
    return 0;
}

/* Nothing is owned before it is known to be a descriptor. */
static int
open_number(struct pyio_file *self, PyObject *number, struct stat *st)
{
    const long fd = PyLong_AsLong(number);
    int result, sys_errno;

    if (fd == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (fd < 0) {
        return pyio_raise(PyExc_ValueError, "negative file descriptor");
    }
    if (fd > INT_MAX) {
        return pyio_raise(PyExc_OverflowError, "file descriptor is too large");
    }
    Py_BEGIN_ALLOW_THREADS
    result = cio_sys->fstat((int)fd, st);
    sys_errno = errno;
    Py_END_ALLOW_THREADS
    if (result < 0) {
        return raise_os(sys_errno, number);
    }
    self->core.fd = (int)fd;
    return 0;
}

/* What the mode and the kind of file mean for position and chunk. */
static int
set_up(struct pyio_file *self, const struct mode *mode, const struct stat *st)
{
    const bool regular = cio_stat_is_seekable(st);
    int64_t pos;

    if (S_ISDIR(st->st_mode)) {
        return raise_os(EISDIR, self->name);
    }
    self->readable = mode->kind == 'r' || mode->update;
    self->writable = mode->kind != 'r' || mode->update;
    self->append = mode->kind == 'a';
    self->created = mode->kind == 'x';
    self->endless = cio_stat_is_endless(st);
    self->core.cached = regular;
    self->core.seekable =
        regular
        || cio_fd_seek(self->core.fd, 0, SEEK_CUR, &pos).status == CIO_OK;
    self->core.size_seen = regular ? (int64_t)st->st_size : 0;
    self->core.off =
        regular && !self->writable && self->path != NULL ? 0 : CIO_OWN_OFFSET;
    if (mode->update && !self->core.seekable) {
        /* Read-ahead could not be given back before a write. builtins.open
         * has taken the descriptor by now, and closes it. */
        (void)pyio_stream_unsupported(&self->head,
                                      "File or stream is not seekable.");
        (void)pyio_close(self->core.fd);
        self->core.fd = -1;
        return -1;
    }
    if (self->append && self->core.seekable) {
        const struct cio_done done =
            cio_fd_seek(self->core.fd, 0, SEEK_END, &pos);

        return pyio_file_check(self, done, -1);
    }
    return 0;
}

static PyObject *
open_binary(PyTypeObject *type, PyObject *file, const struct mode *mode,
            Py_ssize_t chunk_size)
{
    struct pyio_file *self = (struct pyio_file *)type->tp_alloc(type, 0);
    struct stat st;
    int opened;

    if (self == NULL) {
        return NULL;
    }
    self->core.fd = -1;
    self->chunk_size = chunk_size;
    self->core.chunk_nbytes = (size_t)chunk_size;
    self->plain = type == pyio_state_of(type)->file_type;
    if (PyLong_Check(file)) {
        self->name = Py_NewRef(file);
        opened = open_number(self, file, &st);
    } else {
        self->name = PyOS_FSPath(file);
        opened =
            self->name == NULL ? -1 : open_path(self, self->name, mode, &st);
    }
    if (opened == 0 && set_up(self, mode, &st) < 0) {
        if (self->path != NULL && self->core.fd >= 0) { /* given: stays */
            (void)pyio_close(self->core.fd);
        }
        opened = -1;
    }
    if (opened < 0) {
        self->core.fd = -1;
        Py_DECREF(self);
        return NULL;
    }
    self->head.state = PYIO_IS_OPEN;
    return (PyObject *)self;
}

static int
as_chunk_size(PyObject *object, Py_ssize_t *size)
{
    *size = (Py_ssize_t)CIO_CHUNK_NBYTES;
    if (object == NULL) {
        return 0;
    }
    *size = PyNumber_AsSsize_t(object, NULL);
    if (*size == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (*size < 1 || (size_t)*size > CHUNK_SIZE_MAX) {
        return pyio_raise(PyExc_ValueError,
                          "chunk_size must be from 1 to 2**30, not %R",
                          object);
    }
    return 0;
}

static const struct mode reading = {.kind = 'r'};

PyObject *
pyio_file_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"file", "mode", "chunk_size", NULL};
    static const struct pyio_signature signature = {"File", names, 2, 1};
    PyObject *given[3];
    struct mode mode = reading;
    Py_ssize_t chunk_size;

    if (pyio_arguments_tuple(&signature, args, kwargs, given) < 0
        || (given[1] != NULL && parse_mode(given[1], &mode) < 0)
        || as_chunk_size(given[2], &chunk_size) < 0) {
        return NULL;
    }
    if (mode.text) {
        (void)pyio_raise(PyExc_ValueError,
                         "a File is binary: use open() for mode %R", given[1]);
        return NULL;
    }
    return open_binary(type, given[0], &mode, chunk_size);
}

/* ------------------------------------------------------------------ open */

enum {
    FILE_ARG,
    MODE,
    CHUNK_SIZE,
    ENCODING,
    ERRORS,
    NEWLINE,
    COMPRESSION,
    ARG_COUNT
};

#define OR_NONE(i) (given[i] != NULL ? given[i] : none)

/* Text is policy: pyio_chunked._io puts the layers together. */
static PyObject *
open_text(PyObject *const *given, Py_ssize_t chunk_size)
{
    PyObject *const module = PyImport_ImportModule("pyio_chunked._io");
    PyObject *const none = Py_None;
    PyObject *result;

    if (module == NULL) {
        return NULL;
    }
    result = PyObject_CallMethod(
        module, "open_text", "OOnOOO", given[FILE_ARG], given[MODE],
        chunk_size, OR_NONE(ENCODING), OR_NONE(ERRORS), OR_NONE(NEWLINE));
    Py_DECREF(module);
    return result;
}

/* So is what a file's first bytes mean: pyio_chunked._inflate. */
static PyObject *
open_compressed(PyObject *const *given, Py_ssize_t chunk_size)
{
    PyObject *const module = PyImport_ImportModule("pyio_chunked._inflate");
    PyObject *const none = Py_None;
    PyObject *result;

    if (module == NULL) {
        return NULL;
    }
    result = PyObject_CallMethod(
        module, "open_compressed", "OOOnOOO", given[FILE_ARG], OR_NONE(MODE),
        given[COMPRESSION], chunk_size, OR_NONE(ENCODING), OR_NONE(ERRORS),
        OR_NONE(NEWLINE));
    Py_DECREF(module);
    return result;
}
#undef OR_NONE

/* What only text takes is refused, as io.open does. */
static int
refuse_text_options(PyObject *const *given)
{
    static const struct {
        int index;
        const char *text;
    } options[] = {
        {ENCODING, "binary mode doesn't take an encoding argument"},
        {ERRORS, "binary mode doesn't take an errors argument"},
        {NEWLINE, "binary mode doesn't take a newline argument"},
    };

    for (size_t i = 0; i < Py_ARRAY_LENGTH(options); i++) {
        PyObject *const value = given[options[i].index];

        if (value != NULL && value != Py_None) {
            return pyio_raise(PyExc_ValueError, options[i].text);
        }
    }
    return 0;
}

PyObject *
pyio_open_function(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames)
{
    static const char *const names[] = {"file",        "mode",   "chunk_size",
                                        "encoding",    "errors", "newline",
                                        "compression", NULL};
    static const struct pyio_signature signature = {"open", names, 2, 1};
    struct pyio_state *st = pyio_state_of_module(mod);
    PyObject *given[ARG_COUNT];
    struct mode mode = reading;
    Py_ssize_t chunk_size;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || (given[MODE] != NULL && parse_mode(given[MODE], &mode) < 0)
        || as_chunk_size(given[CHUNK_SIZE], &chunk_size) < 0) {
        return NULL;
    }
    if (!mode.text && refuse_text_options(given) < 0) {
        return NULL;
    }
    if (given[COMPRESSION] != NULL && given[COMPRESSION] != Py_None) {
        return open_compressed(given, chunk_size);
    }
    if (mode.text) {
        return open_text(given, chunk_size);
    }
    return open_binary(st->file_type, given[FILE_ARG], &mode, chunk_size);
}

/* -------------------------------------------------------------- pickling */

PyObject *
pyio_file_reduce(PyObject *op, PyObject *Py_UNUSED(protocol))
{
    struct pyio_file *self = (struct pyio_file *)op;
    PyObject *module, *result;
    struct stat st;
    int64_t pos;
    int failed;

    if (!pyio_stream_is_open(&self->head) || self->writable
        || self->path == NULL || !self->core.cached) {
        PyErr_Format(PyExc_TypeError,
                     "cannot pickle %R: only a File that reads a regular file "
                     "opened by its path can be; send the path, or the bytes",
                     op);
        return NULL;
    }
    if (pyio_file_enter(self) < 0) {
        return NULL;
    }
    failed = pyio_file_tell(self, &pos);
    if (failed == 0 && cio_sys->fstat(self->core.fd, &st) < 0) {
        failed = raise_os(errno, self->name);
    }
    pyio_file_leave(self);
    module = failed < 0 ? NULL : PyImport_ImportModule("pyio_chunked._io");
    if (module == NULL) {
        return NULL;
    }
    result = PyObject_CallMethod(
        module, "reduce_file", "OOLLLLL", op, self->path, (long long)pos,
        (long long)st.st_size, (long long)st.st_mtim.tv_sec,
        (long long)st.st_mtim.tv_nsec, (long long)st.st_ino);
    Py_DECREF(module);
    return result;
}
