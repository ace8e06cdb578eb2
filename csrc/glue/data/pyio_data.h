/* SPDX-License-Identifier: MIT
 * pyio_data.h - what the files of typed streams share: the two stream objects
 * and the few ways to put bytes in and get them out.
 *
 * Why      DataWriter and DataReader have many methods for a value each, in
 *          files by kind (scalars, text, arrays, records, Java's names). All
 *          of them rest on the calls below.
 * Owner    A stream owns its buffer, its reference to the target or source,
 *          and the descriptor of a path that it opened itself.
 * Threads  The GIL guards fast paths, which neither detach nor call Python;
 *          everything else enters the stream's lock. Functions that end in
 *          _locked are called with it held.
 */
#ifndef PYIO_DATA_H
#define PYIO_DATA_H

#include "glue/base/pyio_stream_type.h"

#include <structmember.h>

#include "data/cio_type.h"
#include "glue/data/pyio_data_record.h"

/* Where the bytes go to or come from; the first part of both streams. */
struct data_stream {
    struct pyio_stream head;
    /* The writer: from where to where there is room; the reader: the bytes at
     * hand. Equal while the stream is closed, so that a fast path need not
     * look. */
    uint8_t *next, *limit;
    bool swap; /* the stream's order is not this machine's */
    /* above: what fast paths touch */
    bool unbuffered; /* buffer_size=0 */
    bool owns_fd;    /* a path: we opened it */
    bool kept_gil;   /* this call read once without giving the GIL up */
    char order;      /* '<' or '>' */
    enum pyio_stream_kind kind;
    int fd;           /* PATH and FD; others are asked each time */
    PyObject *object; /* the target or source as given */
    uint8_t *buffer;  /* NULL: not needed yet */
    size_t capacity;
    struct data_records *records; /* struct formats in use; NULL: none */
};

struct pyio_data_writer {
    struct data_stream s;
    int64_t flushed; /* bytes that reached the target */
};

struct pyio_data_reader {
    struct data_stream s;
    Py_buffer view;     /* a Buffer as source; view.obj NULL otherwise */
    int64_t end_offset; /* position in the source of s.limit */
    bool memory;        /* the source is a Buffer: s.limit is its end */
    bool positional;    /* a path: pread at end_offset */
    bool seekable;
    bool cached; /* regular file: it can be asked what the page cache holds */
    bool lossy;  /* java.DataInput: a value cut by the end is gone */
};

static inline struct pyio_data_writer *
as_writer(PyObject *op)
{
    return (struct pyio_data_writer *)op;
}

static inline struct pyio_data_reader *
as_reader(PyObject *op)
{
    return (struct pyio_data_reader *)op;
}

/* Used by its descriptor, not by an object's methods. */
static inline bool
data_stream_by_fd(const struct data_stream *s)
{
    return s->kind == PYIO_STREAM_PATH || s->kind == PYIO_STREAM_FD
           || s->kind == PYIO_STREAM_RAW || s->kind == PYIO_STREAM_SOCKET;
}

static inline size_t
stream_room(const struct data_stream *s)
{
    return (size_t)(s->limit - s->next);
}

static inline size_t
writer_pending(const struct pyio_data_writer *w)
{
    return (size_t)(w->s.next - w->s.buffer);
}

/* A fast path may take, or store, nbytes. */
static inline bool
stream_is_quick(const struct data_stream *s, size_t nbytes)
{
    return PYIO_LIKELY(stream_room(s) >= nbytes)
           && pyio_lock_free(&s->head.lock);
}

/* A reader's method for a number: its bits `v`, and what they make. */
#define DATA_GET(function, what, bits, make)                                  \
    static PyObject *function(PyObject *op, PyObject *Py_UNUSED(ignored))     \
    {                                                                         \
        struct pyio_data_reader *const r = as_reader(op);                     \
        uint##bits##_t v;                                                     \
                                                                              \
        if (!stream_is_quick(&r->s, bits / 8)                                 \
            && reader_need(r, bits / 8, what) < 0) {                          \
            return NULL;                                                      \
        }                                                                     \
        v = cio_get##bits(r->s.next, r->s.swap);                              \
        r->s.next += bits / 8;                                                \
        return make;                                                          \
    }

/* -------------------------------------------------- both (pyio_data.c) */

#define DATA_BUFFER_MIN_NBYTES 4096

/* byteorder and buffer_size of a constructor; both may be NULL. 0: the stream
 * is locked until data_stream_made, as the target or source may call the
 * constructor again. */
int data_stream_init(struct data_stream *s, PyObject *byteorder,
                     PyObject *buffer_size);
/* The constructor's end, open where result is 0; returns that. */
int data_stream_made(struct data_stream *s, int result);
/* Keeps the target or source; of a path what os.fspath says, as io does. */
int data_stream_hold(struct data_stream *s, PyObject *object);
/* Lock and check. -1: not entered. */
static inline int
data_stream_enter(struct data_stream *s)
{
    if (pyio_stream_enter(&s->head) < 0) {
        return -1;
    }
    s->kept_gil = false;
    return 0;
}
static inline void
data_stream_leave(struct data_stream *s)
{
    pyio_stream_leave(&s->head);
}
/* The descriptor to use now; -2: the object's methods are. */
int data_stream_fd(struct data_stream *s);
/* Calls object.name() where there is such a method. */
int data_stream_call(struct data_stream *s, const char *name);
/* Position of the object or descriptor; *seekable false: it has none. */
int data_stream_position(struct data_stream *s, int64_t *position,
                         bool *seekable);
/* OSError, or what a handler raised, with `transferred` and the name. */
int data_stream_failed(const struct data_stream *s, int sys_errno,
                       uint64_t transferred);
/* The memory of the buffer was kept by the callee: go on with another. */
void data_stream_abandon_buffer(struct data_stream *s);
int data_stream_traverse(PyObject *op, visitproc visit, void *arg);
int data_stream_clear(PyObject *op);
/* Behind pyio_stream_dealloc_begin: the rest of tp_dealloc. */
void data_stream_free(PyObject *op);
extern PyGetSetDef data_stream_getset[];
extern PyMemberDef data_stream_members[];
/* A socket with a timeout said EAGAIN: wait for `events` as it would. */
int data_stream_wait(struct data_stream *s, int fd, short events,
                     uint64_t transferred);

/* Index of the type that a name or a struct code means; ValueError. */
int data_type_of(PyObject *name, enum cio_type *type);
/* OverflowError. */
int data_range_error(PyObject *value, enum cio_type type);
/* *bits of a Python value by type: conversion, range. Any number of Python's
 * may be called on the way: no lock is held. */
int data_bits_of(PyObject *value, enum cio_type type, uint64_t *bits);
PyObject *data_value_of(uint64_t bits, enum cio_type type);
/* What stands in front of a text. */
enum data_prefix {
    DATA_PREFIX_UINT8,
    DATA_PREFIX_UINT16,
    DATA_PREFIX_UINT32,
    DATA_PREFIX_UINT64,
    DATA_PREFIX_UVARINT,
};
int data_prefix_of(PyObject *name, enum data_prefix *prefix);
/* (s, prefix="uint32"), or (prefix="uint32") with positional 0. */
int data_prefix_arguments(const char *function, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *kwnames, int positional,
                          PyObject **value, enum data_prefix *prefix);

/* A value that the source did not finish: what there was of its prefix and of
 * the rest. */
struct data_short {
    const char *name; /* of what was to be read */
    uint64_t expected;
    const void *head, *body;
    size_t head_nbytes, body_nbytes;
    int64_t offset;
    uint64_t found; /* 0: what head and body hold */
    /* Of a prefix in front of the value, which `expected` leaves out: a length
     * of 64 bits and its prefix need more than 64. */
    size_t prefix_nbytes;
};
/* Raises ShortReadError. */
int data_short_read(struct pyio_state *st, const struct data_short *what);

/* ------------------------------------------- writer (pyio_data_writer.c) */

extern PyType_Spec pyio_data_writer_spec;
/* head and body as one value: all of it or nothing of it is accepted, as far
 * as it fits the buffer. No lock held. */
int writer_put(struct pyio_data_writer *w, const void *head,
               size_t head_nbytes, const void *body, size_t body_nbytes);
/* The bytes of a Buffer, which stays exported where the target kept a view;
 * their number. */
Py_ssize_t writer_put_buffer(struct pyio_data_writer *w, PyObject *data);
/* error: what is raised for a text that is too long. */
int writer_put_mutf8(struct pyio_data_writer *w, PyObject *text,
                     PyObject *error);
/* Everything that is buffered to the target. */
int writer_drain_locked(struct pyio_data_writer *w);
/* Bytes to the target, in front of which nothing is buffered. *put is right on
 * failure too. PYIO_KEPT: the memory may not be freed. */
int writer_emit_locked(struct pyio_data_writer *w, const uint8_t *data,
                       size_t nbytes, size_t *put);
/* Room for nbytes <= capacity; drains as needed. */
int writer_room_locked(struct pyio_data_writer *w, size_t nbytes);
/* Composed memory to the target of an unbuffered writer. */
int writer_send_locked(struct pyio_data_writer *w, const uint8_t *data,
                       size_t nbytes);
int writer_tell_locked(struct pyio_data_writer *w, int64_t *position);
int writer_init(struct pyio_data_writer *w, PyObject *target,
                PyObject *byteorder, PyObject *buffer_size);
extern PyMethodDef pyio_data_put_methods[], pyio_data_text_methods[],
    pyio_data_array_methods[], pyio_data_record_methods[];
/* As methods, shared with java.DataOutput (pyio_data_writer_file.c). */
PyObject *writer_flush(PyObject *op, PyObject *ignored);
PyObject *writer_close(PyObject *op, PyObject *ignored);
PyObject *writer_detach(PyObject *op, PyObject *ignored);
void writer_dealloc(PyObject *op);
void writer_finalize(PyObject *op);

/* ------------------------------------------- reader (pyio_data_reader.c) */

extern PyType_Spec pyio_data_reader_spec, pyio_data_iterator_spec;
/* pyio_data_source.c: one read of the source; *got 0 is its end. */
int reader_source_read(struct pyio_data_reader *r, uint8_t *data,
                       size_t nbytes, size_t *got);
/* The same for a refill: a file's page cache is asked first, once a call, with
 * the GIL kept (giving it up for microseconds is dear beside a busy thread).
 */
int reader_source_refill(struct pyio_data_reader *r, uint8_t *data,
                         size_t nbytes, size_t *got);
static inline bool
reader_by_descriptor(const struct pyio_data_reader *r)
{
    return data_stream_by_fd(&r->s);
}
/* No bytes at hand. After a read straight to other memory also those that were
 * are void: the buffer always holds what precedes end_offset. */
static inline void
reader_drop(struct pyio_data_reader *r)
{
    r->s.next = r->s.limit = r->s.buffer;
}
int64_t reader_tell_locked(const struct pyio_data_reader *r);
/* At least nbytes at s.next, or all there are before the end: look at
 * stream_room. The buffer grows with what arrives. */
int reader_fill_locked(struct pyio_data_reader *r, size_t nbytes);
/* Fill or raise ShortReadError, with the position where it was. */
int reader_need_locked(struct pyio_data_reader *r, size_t nbytes,
                       const char *what);
/* Out of line part of a scalar read: enters, fills, and leaves with nbytes at
 * s.next. Nothing of Python runs between its return and the caller's use. */
int reader_need(struct pyio_data_reader *r, size_t nbytes, const char *what);
/* A whole value: nbytes behind skip bytes of prefix, at data: in the buffer,
 * or, where it is larger, gathered. The position moves with done. */
struct data_whole {
    const uint8_t *data;
    size_t skip;
    uint64_t nbytes;
    struct pyio_result gathered; /* bytes NULL: in the buffer */
};
/* -1: ShortReadError and others, the position where it was; no done then. */
int reader_whole_locked(struct pyio_data_reader *r, size_t skip,
                        uint64_t nbytes, const char *what,
                        struct data_whole *whole);
/* taken false: the position stays at the value's start. */
void reader_whole_done_locked(struct pyio_data_reader *r,
                              struct data_whole *whole, bool taken);
/* Bytes that a caller took come first again; the data is copied. */
int reader_unread_locked(struct pyio_data_reader *r, const uint8_t *data,
                         size_t nbytes);
/* ShortReadError of nbytes at the position, of which too few are at hand or,
 * unread, in the file. */
int reader_short_locked(struct pyio_data_reader *r, uint64_t nbytes,
                        const char *what);
/* Exactly nbytes that begin `skip` bytes behind the position (a prefix) to
 * memory; skip bytes are at hand. Moves the position behind them. A short
 * source: ShortReadError. After any failure the position is where it was. */
int reader_copy_locked(struct pyio_data_reader *r, size_t skip, uint8_t *data,
                       size_t nbytes, const char *what);
/* The same as a new bytes object that grows with what arrives. */
PyObject *reader_bytes_locked(struct pyio_data_reader *r, size_t skip,
                              uint64_t nbytes, const char *what);
/* Bytes from here to the end where that is known: 1; 0 where not; -1. */
int reader_remaining_locked(struct pyio_data_reader *r, uint64_t *nbytes);
int reader_init(struct pyio_data_reader *r, PyObject *source,
                PyObject *byteorder, PyObject *buffer_size);
/* Bytes at most nbytes, fewer at the end. */
PyObject *reader_upto_locked(struct pyio_data_reader *r, uint64_t nbytes);
int reader_upto_into_locked(struct pyio_data_reader *r, uint8_t *data,
                            size_t nbytes, size_t *filled);
/* pyio_data_reader_seek.c: forward by nbytes; ShortReadError where the source
 * ends before. */
int reader_skip_locked(struct pyio_data_reader *r, uint64_t nbytes,
                       const char *what);
/* The source stands where the stream does, as far as it can be moved. */
int reader_sync_locked(struct pyio_data_reader *r);
int reader_seek_locked(struct pyio_data_reader *r, int64_t offset, int whence);
/* One read of the source straight to the buffer's end. */
int reader_fetch_locked(struct pyio_data_reader *r, size_t nbytes);
/* As methods, shared with java.DataInput (pyio_data_reader_file.c). */
PyObject *reader_close(PyObject *op, PyObject *ignored);
PyObject *reader_detach(PyObject *op, PyObject *ignored);
PyObject *reader_tell(PyObject *op, PyObject *ignored);
int reader_traverse(PyObject *op, visitproc visit, void *arg);
int reader_clear(PyObject *op);
void reader_dealloc(PyObject *op);
void reader_finalize(PyObject *op);
PyObject *reader_get_bytes(struct pyio_data_reader *r, PyObject *count,
                           const char *what);
PyObject *reader_get_mutf8(struct pyio_data_reader *r, PyObject *error);
PyObject *data_decode_mutf8(const uint8_t *data, size_t nbytes,
                            PyObject *error);
extern PyMethodDef pyio_data_get_methods[], pyio_data_text_get_methods[],
    pyio_data_array_get_methods[], pyio_data_record_get_methods[];

/* ------------------------------------------- java (pyio_data_java_*.c) */

extern PyType_Spec pyio_java_output_spec, pyio_java_input_spec;
/* (b, off, len) of Java: the part of a Buffer; IndexError. */
int data_java_part(const Py_buffer *view, PyObject *const *args,
                   Py_ssize_t nargs, uint8_t **data, size_t *nbytes);

#endif
