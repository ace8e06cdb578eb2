/* SPDX-License-Identifier: MIT
 * pyio.h - what every glue file rests on: module state, outcomes to
 * exceptions, arguments, locks, the loop between slices, Python streams.
 *
 * Why      The core knows nothing of Python. Here are the few bridges, each
 *          once; a file of glue reads arguments, makes core calls detached,
 *          and translates.
 * Owner    References as the C API says: a returned PyObject * is new.
 * Errors   -1 or NULL with an exception set, as the C API does.
 * Threads  All of it needs the GIL, except where it says detached.
 */
#ifndef PYIO_H
#define PYIO_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_status.h"
#include "base/cio_sys.h"
#include "glue/base/pyio_compat.h"
#include "glue/base/pyio_state.h"

#define PYIO_LIKELY(x) __builtin_expect(!!(x), 1)
#define PYIO_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---------------------------------------------------------------- state */

/* From a module (functions), or from an instance of any of our types or of a
 * subclass of one (methods). Never NULL. */
struct pyio_state *pyio_state_of_module(PyObject *mod);
struct pyio_state *pyio_state_of(PyTypeObject *type);

/* Makes a heap type from spec with `base` (NULL: object), adds it to the
 * module as its short name, and stores a new reference in *slot. */
int pyio_add_type(PyObject *mod, PyType_Spec *spec, PyObject *base,
                  PyTypeObject **slot);
/* The same for a stream: derives from _io._BufferedIOBase, is registered with
 * io.BufferedIOBase (deriving from that itself fails on 3.14). */
int pyio_add_stream_type(PyObject *mod, PyType_Spec *spec,
                         PyTypeObject **slot);
/* Adds functions whose __module__ says "pyio_chunked". */
int pyio_add_functions(PyObject *mod, PyMethodDef *methods);

/* For tables of methods. */
#define PYIO_AS_METHOD(function) ((PyCFunction)(void (*)(void))(function))
#define PYIO_FAST(name, function, flags, doc)                                 \
    {name, PYIO_AS_METHOD(function), METH_FASTCALL | (flags), PyDoc_STR(doc)}
#define PYIO_PLAIN(name, function, flags, doc)                                \
    {name, (function), (flags), PyDoc_STR(doc)}

/* ------------------------------------------------------------ arguments */

/* A signature for METH_FASTCALL | METH_KEYWORDS: names in order, of which the
 * first `positional` may be given by position, the first `required` must be
 * given. Names are compared by pointer first (interned on first use). */
struct pyio_signature {
    const char *function;
    const char *const *names; /* NULL-terminated */
    int positional, required;
};
/* Fills out[] (borrowed; NULL where not given), one for each name. */
int pyio_arguments(const struct pyio_signature *signature,
                   PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                   PyObject **out);
/* The same for tp_new and tp_init. */
int pyio_arguments_tuple(const struct pyio_signature *signature,
                         PyObject *args, PyObject *kwargs, PyObject **out);

/* A size as io takes it: None and -1 mean all (-1); ValueError below,
 * OverflowError from 2**63. */
int pyio_as_size(PyObject *value, int64_t *size);
/* An offset or count: ValueError below 0, OverflowError from 2**63. */
int pyio_as_offset(PyObject *value, const char *name, int64_t *offset);
/* OverflowError where off + nbytes is 2**63 or more. */
int pyio_end_fits(int64_t off, int64_t nbytes);
/* bool by truth; keeps *value when object is NULL. */
int pyio_as_bool(PyObject *object, bool *value);
/* Index of the str `value` in the NULL-terminated choices; ValueError names
 * the argument and the choices. */
int pyio_as_choice(PyObject *value, const char *name,
                   const char *const *choices, int *index);
/* A progress argument: NULL and None -> *progress = NULL; True -> the tqdm
 * adapter of pyio_chunked._progress (ImportError names the extra); a callable
 * -> itself. New reference. */
int pyio_as_progress(PyObject *value, int64_t total, PyObject **progress);

/* A path as the kernel takes it: str, bytes, PathLike. NUL inside: ValueError.
 * *bytes is a new bytes object that owns the text. */
int pyio_as_path(PyObject *path, PyObject **bytes);
/* Raises the audit event "open" as builtins.open does, then opens with
 * close-on-exec, detached, retried after EINTR with signals checked. -1 with
 * OSError naming os.fspath(path). */
int pyio_open(PyObject *path, const char *mode, int flags, int create_mode);
/* Closes detached; an error is raised only where no exception is set. */
int pyio_close(int fd);
/* The same with the GIL: for a local file that was only read. */
int pyio_close_local(int fd);

/* ----------------------------------------------------------- exceptions */

/* What was going on, for the text of an exception. All may be 0 / NULL. */
struct pyio_context {
    PyObject *filename;  /* borrowed; as OSError.filename */
    PyObject *filename2; /* borrowed */
    int64_t transferred; /* bytes moved; -1: no such attribute */
};

/* The one table from outcome to exception. 0 for CIO_OK and CIO_EOF. CIO_MORE:
 * an exception is set already (a signal handler or progress raised): gets
 * `transferred`. -1 otherwise. CIO_ERR_DATA and CIO_ERR_LIMIT need a sentence
 * of the caller's own format: use pyio_raise_data for them. */
int pyio_check(struct pyio_state *st, struct cio_done done,
               const struct pyio_context *context);
/* Sets `type` with the formatted text (PyUnicode_FromFormat); always -1. */
int pyio_raise(PyObject *type, const char *format, ...);
/* Puts an attribute on the exception that is set; steals value. */
void pyio_exception_attribute(const char *name, PyObject *value);
/* ---------------------------------------------------------------- slices */

/* The loop between slices (rule 2). `step` runs detached, does a bounded piece
 * of work and returns CIO_MORE with the bytes of this step while there is
 * more. Between steps: signals, and progress at most every 50 ms and once at
 * the end.
 */
struct pyio_slices {
    struct cio_done (*step)(void *argument);
    void *argument;
    PyObject *progress; /* borrowed; NULL: none */
    int64_t total;      /* for progress; -1: unknown */
    int64_t done;       /* bytes so far, over all steps; may start above 0 */
    int64_t next_ns;    /* progress not before; 0 at first */
};
/* The outcome of the last step with nbytes of all steps of this call; CIO_MORE
 * means that an exception is set. An EINTR from a step counts as CIO_MORE. */
struct cio_done pyio_run_slices(struct pyio_slices *slices);
/* Calls progress(done, total) when due (or `last`); -1 when it raised. */
int pyio_report(struct pyio_slices *slices, bool last);
/* Monotonic clock. */
int64_t pyio_now_ns(void);

/* ----------------------------------------------------------------- locks */

/* One call at a time in an object (rule 8). With the GIL a busy flag is
 * enough; only who meets it set waits, detached, looking at signals. `owner`
 * makes re-entry by the same thread a RuntimeError "reentrant call". A lock
 * that a fork caught busy raises in the child.
 *
 * A fast path that neither detaches nor calls Python need not enter: it is
 * enough that pyio_lock_free() says true. */
struct pyio_lock {
    unsigned long owner;
    unsigned generation;
    bool busy;
};
static inline bool
pyio_lock_free(const struct pyio_lock *lock)
{
    return PYIO_LIKELY(!lock->busy);
}
int pyio_lock_enter(struct pyio_lock *lock, PyObject *object);
void pyio_lock_leave(struct pyio_lock *lock);

/* --------------------------------------------------------------- results */

/* A bytes object that is filled in place and grows with what arrives: double,
 * 1.5x from CIO_GROW_SLOW_NBYTES, trimmed at the end; huge pages asked for
 * from the threshold on. */
struct pyio_result {
    PyObject *bytes; /* owned; NULL before init and after finish */
    uint8_t *data;
    size_t nbytes; /* filled */
    size_t capacity;
};
int pyio_result_init(struct pyio_result *result, size_t capacity);
/* More room, at least one byte, at most up to limit bytes in all. MemoryError
 * leaves the result as it was. */
int pyio_result_grow(struct pyio_result *result, size_t limit);
/* The trimmed bytes object; ownership goes to the caller. */
PyObject *pyio_result_finish(struct pyio_result *result);
void pyio_result_drop(struct pyio_result *result);

/* ---------------------------------------------------------- Python streams */

/* What an object is, by api.pyi "Descriptors and file objects". */
enum pyio_stream_kind {
    PYIO_STREAM_PATH,     /* str, bytes, PathLike */
    PYIO_STREAM_FD,       /* int */
    PYIO_STREAM_RAW,      /* exact io.FileIO */
    PYIO_STREAM_BUFFERED, /* exact Buffered* over an exact FileIO */
    PYIO_STREAM_FILE,     /* our File */
    PYIO_STREAM_SOCKET,   /* socket.socket */
    PYIO_STREAM_OBJECT,   /* anything else: readinto, read, write */
};
/* Kind and, except for PATH and OBJECT, the descriptor. Nothing is flushed. An
 * object that has only fileno() counts as RAW. A text file: TypeError. */
int pyio_stream_classify(struct pyio_state *st, PyObject *object,
                         enum pyio_stream_kind *kind, int *fd);

/* Fill at most nbytes of memory from object.readinto, else object.read. *got 0
 * is the end. A count beyond the buffer or negative, or no int, is the OSError
 * that io raises. None: *would_block when given, else BlockingIOError.
 * PYIO_KEPT: the callee kept a view of the memory (BufferError is set): it
 * must neither be freed nor used again. */
#define PYIO_KEPT (-2)
int pyio_object_read(struct pyio_state *st, PyObject *object, void *data,
                     size_t nbytes, size_t *got, bool *would_block);
/* One object.write(memoryview of data). None: all of it, or, from a RawIOBase,
 * nothing (*would_block, else BlockingIOError). A count out of range is the
 * OSError that io raises. PYIO_KEPT as above. */
int pyio_object_write(struct pyio_state *st, PyObject *object,
                      const void *data, size_t nbytes, size_t *put,
                      bool *would_block);

#endif
