/* SPDX-License-Identifier: MIT
 * pyio_io.c - read_bytes and read_into, and the table of the functions of io.
 */
#include "glue/io/pyio_io.h"
#include "glue/base/pyio_read.h"
#include "glue/io/pyio_file.h"
#include "glue/pyio_parts.h"

#include <errno.h>
#include <fcntl.h>

/* ---------------------------------------------------------------- source */

/* A path that we open and close, or a descriptor that stays as it is: read by
 * position where it can seek, else from where it stands. */
struct source {
    PyObject *name; /* owned */
    struct cio_file core;
    bool ours, endless;
};

static void
source_close(struct source *source)
{
    if (source->ours && source->core.fd >= 0) {
        Py_BEGIN_ALLOW_THREADS(void)
        cio_sys->close(source->core.fd); /* read only: nothing is lost */
        Py_END_ALLOW_THREADS
    }
    Py_CLEAR(source->name);
}

static int
raise_os(int sys_errno, PyObject *name)
{
    const struct pyio_context context = {name, NULL, -1};

    return pyio_check(NULL, cio_done_sys(sys_errno, 0), &context);
}

static int
stat_number(PyObject *number, int *fd, struct stat *st)
{
    int result, sys_errno;

    *fd = PyObject_AsFileDescriptor(number);
    if (*fd < 0) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    result = cio_sys->fstat(*fd, st);
    sys_errno = errno;
    Py_END_ALLOW_THREADS
    return result < 0 ? raise_os(sys_errno, number) : 0;
}

static void
source_set_up(struct source *source, const struct stat *st, int64_t off)
{
    source->endless = cio_stat_is_endless(st);
    source->core.cached = cio_stat_is_seekable(st);
    /* There is one read of it in most cases: no trial that may be refused. */
    source->core.refused = !cio_stat_is_on_device(st);
    source->core.seekable = source->core.cached;
    source->core.size_seen = source->core.cached ? (int64_t)st->st_size : 0;
    source->core.off = source->core.cached || off > 0 ? off : CIO_OWN_OFFSET;
    source->core.chunk_nbytes = CIO_CHUNK_NBYTES;
}

/* Opens file, which is the caller's `bytes` for the kernel. With memory, a
 * small file is read into it and closed: *got is its size. */
static int
open_by_path(struct source *source, PyObject *bytes, struct stat *st,
             void *memory, size_t *got)
{
    const int flags = O_RDONLY | O_CLOEXEC;
    struct cio_done done;

    if (PySys_Audit("open", "Osi", source->name, "r", flags) < 0) {
        return -1;
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        done = memory == NULL
                   ? cio_fd_open(PyBytes_AS_STRING(bytes), flags, 0,
                                 &source->core.fd, st)
                   : cio_fd_read_small(PyBytes_AS_STRING(bytes), memory,
                                       CIO_SMALL_NBYTES, &source->core.fd, st);
        Py_END_ALLOW_THREADS
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0);
    if (done.status != CIO_OK) {
        return done.status == CIO_MORE
                   ? -1
                   : raise_os(done.sys_errno, source->name);
    }
    source->ours = true;
    if (got != NULL) {
        *got = (size_t)done.nbytes;
    }
    return 0;
}

/* memory and got as open_by_path takes them. */
static int
source_open(struct source *source, PyObject *file, int64_t off, void *memory,
            size_t *got)
{
    PyObject *bytes = NULL;
    struct stat st;
    int result;

    memset(source, 0, sizeof *source);
    source->core.fd = -1;
    if (PyLong_Check(file)) {
        source->name = Py_NewRef(file);
        result = stat_number(file, &source->core.fd, &st);
    } else {
        source->name = PyOS_FSPath(file);
        result =
            source->name == NULL ? -1 : pyio_as_path(source->name, &bytes);
        if (result == 0) {
            result = open_by_path(source, bytes, &st, memory, got);
            Py_DECREF(bytes);
        }
    }
    if (result == 0 && S_ISDIR(st.st_mode)) {
        result = raise_os(EISDIR, source->name);
    }
    if (result < 0) {
        source_close(source);
        return -1;
    }
    source_set_up(source, &st, off);
    return 0;
}

static int
as_threads(PyObject *object, unsigned *threads)
{
    Py_ssize_t n;

    *threads = 0;
    if (object == NULL || object == Py_None) {
        return 0;
    }
    n = PyNumber_AsSsize_t(object, NULL);
    if (n == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (n < 1) {
        return pyio_raise(PyExc_ValueError,
                          "threads must be at least 1, not %R", object);
    }
    *threads = n > CIO_THREADS_MAX ? CIO_THREADS_MAX : (unsigned)n;
    return 0;
}

/* ------------------------------------------------------------ read_bytes */

PyDoc_STRVAR(
    read_bytes_doc,
    "read_bytes($module, file, *, offset=0, size=-1, threads=None)\n--\n\n"
    "The whole file, or size bytes of it from offset, in one call.\n\n"
    "file is a path, or a descriptor, which stays open and where it is if it "
    "can\nseek. Right for files that grow, shrink or say size 0 (/proc). "
    "Large "
    "results\nuse huge pages and several threads; threads=1 forbids them. "
    "OSError names\nthe file and has `transferred`; an interrupted read of "
    "what can't seek leaves\nwhat came as `partial` on the exception.");

static PyObject *
read_source(struct source *source, int64_t size, unsigned threads)
{
    struct pyio_result result;
    struct cio_done done;

    if (size < 0 && source->endless) {
        (void)pyio_raise(PyExc_ValueError, "%R never ends: give a size",
                         source->name);
        return NULL;
    }
    done = pyio_read_result(&source->core, size < 0 ? SIZE_MAX : (size_t)size,
                            threads, &result);
    if (done.status != CIO_OK && done.status != CIO_EOF) {
        const struct pyio_context context = {source->name, NULL,
                                             (int64_t)done.nbytes};

        (void)pyio_check(NULL, done, &context);
        if (result.bytes != NULL && source->core.off == CIO_OWN_OFFSET) {
            PyObject *const failure = pyio_exception_take();
            PyObject *const partial = pyio_result_finish(&result);

            PyErr_Clear();
            pyio_exception_give(failure);
            pyio_exception_attribute("partial", partial);
        }
        pyio_result_drop(&result);
        return NULL;
    }
    return pyio_result_finish(&result);
}

static PyObject *
read_bytes(PyObject *Py_UNUSED(mod), PyObject *const *args, Py_ssize_t nargs,
           PyObject *kwnames)
{
    static const char *const names[] = {"file", "offset", "size", "threads",
                                        NULL};
    static const struct pyio_signature signature = {"read_bytes", names, 1, 1};
    PyObject *given[4], *bytes;
    struct source source;
    int64_t off = 0, size = -1;
    unsigned threads = 0;
    char small[CIO_SMALL_NBYTES];
    size_t got = 0;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || (given[1] != NULL && pyio_as_offset(given[1], "offset", &off) < 0)
        || (given[2] != NULL && pyio_as_size(given[2], &size) < 0)
        || pyio_end_fits(off, size < 0 ? 0 : size) < 0
        || as_threads(given[3], &threads) < 0
        || source_open(&source, given[0], off,
                       off == 0 && size < 0 ? small : NULL, &got)
               < 0) {
        return NULL;
    }
    bytes = got > 0 ? PyBytes_FromStringAndSize(small, (Py_ssize_t)got)
                    : read_source(&source, size, threads);
    source_close(&source);
    return bytes;
}

/* ------------------------------------------------------------- read_into */

PyDoc_STRVAR(
    read_into_doc,
    "read_into($module, file, buffer, *, offset=0, threads=None)\n--\n\n"
    "Fill a writable buffer from offset of the file, or up to its end; the "
    "number\nof bytes. file and threads as read_bytes takes them. OSError "
    "names the file\nand has `transferred`.");

static PyObject *
read_into(PyObject *Py_UNUSED(mod), PyObject *const *args, Py_ssize_t nargs,
          PyObject *kwnames)
{
    static const char *const names[] = {"file", "buffer", "offset", "threads",
                                        NULL};
    static const struct pyio_signature signature = {"read_into", names, 2, 2};
    PyObject *given[4], *count = NULL;
    struct source source;
    struct cio_done done;
    Py_buffer view;
    int64_t off = 0;
    unsigned threads;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || (given[2] != NULL && pyio_as_offset(given[2], "offset", &off) < 0)
        || as_threads(given[3], &threads) < 0
        || pyio_target_buffer(given[1], "read_into", &view) < 0) {
        return NULL;
    }
    if (pyio_end_fits(off, view.len) == 0
        && source_open(&source, given[0], off, NULL, NULL) == 0) {
        struct pyio_context context = {source.name, NULL, 0};

        done = pyio_read_memory(&source.core, view.buf, (size_t)view.len,
                                threads);
        context.transferred = (int64_t)done.nbytes;
        if (pyio_check(NULL, done, &context) == 0) {
            count = PyLong_FromUnsignedLongLong(done.nbytes);
        }
        source_close(&source);
    }
    PyBuffer_Release(&view);
    return count;
}

/* ------------------------------------------------------------ the module */

static PyMethodDef methods[] = {
    {"open", (PyCFunction)(void (*)(void))pyio_open_function,
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "open($module, file, mode='rb', *, chunk_size=262144, encoding=None, "
         "errors=None, newline=None, compression=None)\n--\n\n"
         "Open a path, or take a descriptor over, as builtins.open does.\n\n"
         "Without \"t\" a mode is binary and gives a File; with it the file "
         "is wrapped\nin io.TextIOWrapper. chunk_size is in bytes. "
         "compression is for reading: 'gzip',\n'zlib', or 'infer', which "
         "looks at the first bytes (gzip, or a zip of one\nmember; else "
         "the file as it is). Errors are those of builtins.open.")},
    {"read_bytes", (PyCFunction)(void (*)(void))read_bytes,
     METH_FASTCALL | METH_KEYWORDS, read_bytes_doc},
    {"read_into", (PyCFunction)(void (*)(void))read_into,
     METH_FASTCALL | METH_KEYWORDS, read_into_doc},
    {"write_bytes", (PyCFunction)(void (*)(void))pyio_write_bytes,
     METH_FASTCALL | METH_KEYWORDS, pyio_write_bytes_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_io(PyObject *mod, struct pyio_state *st)
{
    if (pyio_add_file(mod, st) < 0 || pyio_add_chunks(mod, st) < 0) {
        return -1;
    }
    return pyio_add_functions(mod, methods);
}
