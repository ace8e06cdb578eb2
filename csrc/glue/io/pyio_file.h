/* SPDX-License-Identifier: MIT
 * pyio_file.h - the type File, as its own files and the other parts see it.
 *
 * Why      A core file (io/cio_file.h) does the work; the object around it
 *          has the rules of Python: modes, closing, threads, fork.
 * Owner    A File owns its descriptor unless it was opened with closefd
 *          false, and closes it behind the last call under way.
 * Threads  pyio_file_enter .. leave is one call at a time; hold .. release
 *          only keeps the descriptor open (positional calls).
 */
#ifndef PYIO_FILE_H
#define PYIO_FILE_H

#include "glue/base/pyio_stream_type.h"
#include "io/cio_file.h"

struct pyio_file {
    struct pyio_stream head;
    PyObject *name;  /* as open() got it */
    PyObject *path;  /* str or bytes; NULL: opened by descriptor */
    PyObject *stash; /* owns what the chunk has adopted */
    struct cio_file core;
    unsigned users;      /* calls under way */
    unsigned generation; /* of fork, that users belongs to */
    Py_ssize_t chunk_size;
    bool readable, writable, append, created;
    bool endless; /* /dev/zero and its kind */
    bool plain;   /* exactly File: no method is overridden */
};

/* ---- for all parts; self is a File or of a subclass */

/* One call at a time; ValueError when closed. leave always follows. */
int pyio_file_enter(struct pyio_file *self);
void pyio_file_leave(struct pyio_file *self);
/* The descriptor stays open until release; ValueError when closed. */
int pyio_file_hold(struct pyio_file *self);
void pyio_file_release(struct pyio_file *self);

/* Between enter and leave:
 * Writes out what is pending; read-ahead stays. */
int pyio_file_flush(struct pyio_file *self);
/* Flushes and forgets the read-ahead: what moves the descriptor or the file
 * behind the object's back begins here. */
int pyio_file_settle(struct pyio_file *self);
/* The logical position, read-ahead and pending bytes counted. */
int pyio_file_tell(struct pyio_file *self, int64_t *pos);
/* Sets it; settled. */
int pyio_file_seek_to(struct pyio_file *self, int64_t pos);
/* True: reads go by a position of the object's own, not the descriptor's
 * offset, so a kernel call needs an explicit offset or pyio_file_expose. */
static inline bool
pyio_file_is_positional(const struct pyio_file *self)
{
    return self->core.off != CIO_OWN_OFFSET;
}
/* Puts the descriptor's own offset at the logical position. */
int pyio_file_expose(struct pyio_file *self);
static inline int
pyio_file_fd(const struct pyio_file *self)
{
    return self->core.fd;
}

/* ---- among the files of the type */

int pyio_file_want_readable(struct pyio_file *self);
int pyio_file_want_writable(struct pyio_file *self);
/* The exception of an outcome, with the file's name; 0 where it is none. */
int pyio_file_raise(struct pyio_file *self, struct cio_done done,
                    int64_t transferred);
static inline int
pyio_file_check(struct pyio_file *self, struct cio_done done,
                int64_t transferred)
{
    return PYIO_LIKELY(done.status == CIO_OK)
               ? 0
               : pyio_file_raise(self, done, transferred);
}
/* After enter: nothing pending, so reading may begin. */
int pyio_file_start_reading(struct pyio_file *self);
/* After a read that took bytes into result: the object, or NULL with what
 * arrived given back. A would-be block after some bytes is their end; before
 * any, None. */
PyObject *pyio_file_result(struct pyio_file *self, struct cio_done done,
                           struct pyio_result *result);
/* Gives back what a failed read took: to the position, or into the chunk. */
void pyio_file_give_back(struct pyio_file *self, struct pyio_result *result);
/* What the chunk had adopted and used up is let go. */
static inline void
pyio_file_drop_stash(struct pyio_file *self)
{
    if (PYIO_UNLIKELY(self->stash != NULL) && self->core.chunk.data == NULL) {
        Py_CLEAR(self->stash);
    }
}
/* No call under way, open, nothing pending: what neither waits nor calls
 * Python may be done at once. */
static inline bool
pyio_file_is_quick(const struct pyio_file *self)
{
    return PYIO_LIKELY(pyio_lock_free(&self->head.lock)
                       && pyio_stream_is_open(&self->head) && !self->core.dirty
                       && self->stash == NULL);
}

/* The type's methods, by file. */
#define PYIO_FILE_METHOD(name)                                                \
    PyObject *pyio_file_##name(PyObject *op, PyObject *const *args,           \
                               Py_ssize_t nargs)
/* pyio_file_read.c */
PYIO_FILE_METHOD(read);
PYIO_FILE_METHOD(read1);
PyObject *pyio_file_readinto(PyObject *op, PyObject *buffer);
PyObject *pyio_file_readinto1(PyObject *op, PyObject *buffer);
PYIO_FILE_METHOD(peek);
/* pyio_file_at.c */
PYIO_FILE_METHOD(pread);
PYIO_FILE_METHOD(preadinto);
PYIO_FILE_METHOD(pwrite);
/* pyio_file_chunks.c */
PYIO_FILE_METHOD(read_buffer);
PyObject *pyio_file_chunks(PyObject *op, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *kwnames);
/* pyio_file_lines.c */
PYIO_FILE_METHOD(readline);
PYIO_FILE_METHOD(readlines);
PyObject *pyio_file_unread(PyObject *op, PyObject *front);
PyObject *pyio_file_next(PyObject *op);
/* pyio_file_write.c */
PYIO_FILE_METHOD(write);
PyObject *pyio_file_writelines(PyObject *op, PyObject *lines);
PyObject *pyio_file_flush_method(PyObject *op, PyObject *ignored);
PYIO_FILE_METHOD(truncate);
PyObject *pyio_file_sync(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames);
/* pyio_file_state.c */
PYIO_FILE_METHOD(seek);
PyObject *pyio_file_tell_method(PyObject *op, PyObject *ignored);
PyObject *pyio_file_fileno(PyObject *op, PyObject *ignored);
PyObject *pyio_file_detach(PyObject *op, PyObject *ignored);
PyObject *pyio_file_readable(PyObject *op, PyObject *ignored);
PyObject *pyio_file_writable(PyObject *op, PyObject *ignored);
PyObject *pyio_file_seekable(PyObject *op, PyObject *ignored);
PyObject *pyio_file_isatty(PyObject *op, PyObject *ignored);
PyObject *pyio_file_get_mode(PyObject *op, void *closure);
PyObject *pyio_file_repr(PyObject *op);
/* pyio_file_open.c */
PyObject *pyio_file_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
PyObject *pyio_open_function(PyObject *mod, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_file_reduce(PyObject *op, PyObject *protocol);

/* Raises the audit event "open" as builtins.open does, then opens and stats in
 * one go, detached. `bytes` is the path for the kernel, `path` the user's own
 * object. -1 with an exception. */
int pyio_open_stat(PyObject *path, PyObject *bytes, const char *mode,
                   int flags, struct stat *st);

/* pyio_file.c */
int pyio_add_file(PyObject *mod, struct pyio_state *st);
/* pyio_file_chunks.c */
int pyio_add_chunks(PyObject *mod, struct pyio_state *st);

#endif
