/* SPDX-License-Identifier: MIT
 * pyio_transfer.h - what the files of the transfer glue say only to each
 * other.
 *
 * Owner    A pyio_end borrows the user's object; it owns the descriptor of a
 *          path and the view of a BytesIO until pyio_end_close.
 * Errors   -1 or NULL with an exception set.
 */
#ifndef PYIO_TRANSFER_H
#define PYIO_TRANSFER_H

#include "glue/base/pyio.h"
#include "transfer/cio_copyfile.h"
#include "transfer/cio_transfer.h"

/* How a Python object of the caller's is read. */
enum pyio_pull {
    PYIO_PULL_NONE,   /* not at all: it has a descriptor */
    PYIO_PULL_OBJECT, /* readinto, else read */
    PYIO_PULL_ONE,    /* read1: what is there, without waiting for more */
    PYIO_PULL_MEMORY, /* a BytesIO: its own memory */
};

struct pyio_end {
    PyObject *object;
    PyObject *path; /* owned: os.fspath(object) of a path */
    enum pyio_stream_kind kind;
    int fd;
    bool opened;    /* from a path; closed by us */
    bool held;      /* a File's descriptor, kept open until pyio_end_close */
    bool made;      /* a target path that didn't exist before */
    bool seeks;     /* the object's own seek() says where it ends */
    int64_t given;  /* the offset argument; -1: none */
    int64_t before; /* where a seekable object stood; -1: not asked */
    enum pyio_pull pull;
    Py_buffer memory;
    int64_t memory_at; /* in memory, of the first byte */
};

void pyio_end_init(struct pyio_end *end, PyObject *object);
/* Text is a TypeError; nothing is opened yet. pyio_end_close has to follow. */
int pyio_end_classify(struct pyio_state *st, struct pyio_end *end);
int pyio_source_open(struct pyio_state *st, struct pyio_end *end,
                     struct cio_end *core);
int pyio_target_open(struct pyio_state *st, struct pyio_end *end,
                     struct cio_transfer *t);
/* object.name() as a truth value; -1 with an exception. */
int pyio_end_ask(PyObject *object, const char *name);
/* 1: an exact BytesIO. */
int pyio_is_bytes_io(PyObject *object);
/* Puts a Python object's position where the transfer left it. With an
 * exception set it is kept, and errors of the seek are not. */
int pyio_end_settle(struct pyio_end *end, const struct cio_end *core);
int pyio_end_close(struct pyio_end *end);
/* A target path that was made or emptied here and got nothing. */
void pyio_target_remove(struct pyio_end *end);
/* What an error calls it: the path, the number, .name, or None. */
PyObject *pyio_end_name(const struct pyio_end *end);

/* Transfer(count, method, holes, fallbacks). */
PyObject *pyio_transfer_result(struct pyio_state *st,
                               const struct cio_transfer *t);
/* transferred, source_offset, target_offset, partial on the exception. */
void pyio_transfer_attributes(const struct cio_transfer *t);
/* An exception class of shutil with formatted text; always -1. */
int pyio_raise_shutil(const char *name, const char *format, ...);

extern const char *const pyio_sparse_names[];

/* None and NULL: -1. */
int pyio_as_optional_offset(PyObject *value, const char *name,
                            int64_t *offset);

int pyio_add_copyfile(PyObject *mod);
int pyio_add_probe(PyObject *mod);

#endif
