/* SPDX-License-Identifier: MIT
 * pyio_inflate.h - what the glue files of compressed streams share.
 *
 * Why      One reader serves InflateReader and GzipFile; its source, its
 *          filling and its methods have a file each.
 * Owner    The reader owns its descriptor (only of a path), its leases and its
 *          decoder.
 * Threads  All functions need the GIL and, where they take a reader, its lock.
 */
#ifndef PYIO_INFLATE_H
#define PYIO_INFLATE_H

#include "glue/base/pyio_stream_type.h"
#include "inflate/cio_decoder.h"

struct cio_bgzf;

/* ------------------------------------------------------------ exceptions */

/* Whose exceptions are raised. */
enum pyio_inflate_style {
    PYIO_INFLATE_ZLIB,   /* zlib.error for all, as decompressobj */
    PYIO_INFLATE_STREAM, /* EOFError where the input is cut, else zlib.error */
    PYIO_INFLATE_GZIP,   /* gzip.BadGzipFile for the framing, too */
};

/* The exception for a decoder's CIO_ERR_DATA, CIO_ERR_LIMIT or CIO_ERR_NOMEM;
 * -1. name: of the file, or NULL. */
int pyio_inflate_raise(const struct cio_decoder *decoder,
                       enum cio_status status, enum pyio_inflate_style style,
                       PyObject *name);

/* A max_size argument: NULL and None mean no bound. */
int pyio_as_max_size(PyObject *value, uint64_t *max_nbytes);

/* ---------------------------------------------------------------- reader */

/* A window that is read into: pooled, of our own (what was saved), or a part
 * of the blocks' memory. */
struct pyio_window {
    uint8_t *data; /* NULL: nothing is held */
    size_t size;
    size_t at, end; /* what is unread */
    struct cio_buffer *lease;
    bool borrowed; /* data are another's */
};

struct pyio_reader {
    struct pyio_stream head;
    bool closing;     /* another thread is in a call: it will close */
    bool owns_source; /* an object that we opened: closed with the reader */

    PyObject *source; /* owned; the user's, or the path */
    PyObject *name;   /* owned */
    PyObject *view;   /* owned; an io.FileIO over fd that somebody asked for */
    enum pyio_stream_kind kind;
    int fd;          /* PATH (ours), FD and SOCKET; else -1 */
    bool positional; /* reads at file_at, not at the descriptor's offset */
    int64_t file_at;
    int64_t start; /* where the stream began; -1: not seekable or not known */
    size_t chunk_nbytes;
    unsigned threads;
    bool regular;    /* reading fd never waits for others */
    bool small;      /* a whole file that may be read with the GIL held */
    bool local;      /* and was: no call to it waits for a network */
    int ahead_errno; /* of a read that nobody has asked for yet */
    struct cio_bgzf *blocks; /* BGZF, read by several threads; or NULL */

    struct cio_decoder decoder;
    struct pyio_window in, out;
    bool in_ended, ended;
    enum cio_status failed; /* the data were bad: said again at each read */
    PyObject *saved; /* owned bytes that a failed call had already; or NULL */
    size_t saved_at;
    int64_t pos;
};

/* Opens or takes the source. */
int pyio_reader_attach(struct pyio_state *st, struct pyio_reader *r,
                       PyObject *source);
/* One piece of input from the source: *got 0 at its end. The caller has seen
 * to room in r->in. For sources that need Python; others: pyio_reader_pull. */
int pyio_reader_ask(struct pyio_state *st, struct pyio_reader *r, size_t *got);
/* The same, detached, for r->fd. CIO_OK with nbytes, CIO_EOF, CIO_ERR_SYS. */
struct cio_done pyio_reader_pull(struct pyio_reader *r);
/* The same with the GIL, by position and only what the page cache has. */
struct cio_done pyio_reader_pull_nowait(struct pyio_reader *r);
/* Waits until a socket with a timeout has something. */
int pyio_reader_wait(struct pyio_reader *r);
/* 1, 0 or -1. */
int pyio_reader_seekable(struct pyio_reader *r);
/* Back to where the stream began. */
int pyio_reader_rewind(struct pyio_reader *r);
/* Compressed bytes that are still to be read, where the source is a regular
 * file of ours; else -1. */
int64_t pyio_reader_left(const struct pyio_reader *r);

/* Fill dst up to nbytes; *got is right on every path. any: come back with what
 * is there before asking for more input. 0: full, or something is there, or
 * (*got 0) the stream has ended. -1: an exception is set. */
int pyio_reader_fill(struct pyio_state *st, struct pyio_reader *r,
                     uint8_t *dst, size_t nbytes, bool any, size_t *got);
/* Something in r->out, unless the stream has ended: 1, 0 (ended) or -1. */
int pyio_reader_fill_out(struct pyio_state *st, struct pyio_reader *r);
/* Gives back all that is leased. */
void pyio_reader_release(struct pyio_reader *r);
void pyio_window_drop(struct pyio_window *window);
/* No thread is at the blocks any more; borrowed windows are dropped. */
void pyio_blocks_end(struct pyio_reader *r);
/* The source keeps the memory that it was to read to. */
void pyio_blocks_abandon(struct pyio_reader *r);
/* Packed bytes that were read and are not decoded yet. */
size_t pyio_reader_unread(const struct pyio_reader *r);

/* Lock and checks around a method: ValueError when closed. */
int pyio_reader_enter(struct pyio_reader *r);
void pyio_reader_leave(struct pyio_reader *r);
/* Closes, or leaves it to the call of another thread that is under way. */
int pyio_reader_close(struct pyio_reader *r);
/* The rest of every constructor. */
struct pyio_reader_options {
    PyObject *source;
    enum cio_format format;
    uint64_t max_nbytes;
    size_t chunk_nbytes;
    unsigned threads;
};
/* _own_source(reader): the source is ours to close. */
PyObject *pyio_reader_own_source(PyObject *mod, PyObject *op);
int pyio_reader_open(struct pyio_reader *r,
                     const struct pyio_reader_options *options);

/* The window has all of it, and nobody is in a call. */
static inline bool
pyio_reader_is_ready(const struct pyio_reader *r, int64_t size)
{
    return pyio_stream_is_open(&r->head) && pyio_lock_free(&r->head.lock)
           && r->saved == NULL && size >= 0
           && (uint64_t)size <= r->out.end - r->out.at;
}
/* Its next bytes; the window must have them. */
PyObject *pyio_reader_take_bytes(struct pyio_reader *r, size_t size);
/* Up to nbytes that need no decoding: of `saved`, or of the window. */
size_t pyio_reader_take_ready(struct pyio_reader *r, uint8_t *dst,
                              size_t nbytes);
/* `saved` to the front of the window. */
int pyio_reader_saved_to_window(struct pyio_reader *r);
/* An exception came behind nbytes that were read: they come first at the next
 * read. */
void pyio_reader_save(struct pyio_reader *r, const uint8_t *data,
                      size_t nbytes);
/* The same with result, which is dropped: without a copy where nothing else is
 * saved, as the exception may be that there is no memory. */
void pyio_reader_keep(struct pyio_reader *r, struct pyio_result *result);
/* A non-blocking source has no more now: then what was read is the result. */
bool pyio_reader_would_block(size_t got);

/* Methods that come in files of their own. */
PyObject *pyio_reader_read(PyObject *op, PyObject *const *args,
                           Py_ssize_t nargs);
PyObject *pyio_reader_read1(PyObject *op, PyObject *const *args,
                            Py_ssize_t nargs);
PyObject *pyio_reader_readinto(PyObject *op, PyObject *buffer);
PyObject *pyio_reader_readinto1(PyObject *op, PyObject *buffer);
PyObject *pyio_reader_peek(PyObject *op, PyObject *const *args,
                           Py_ssize_t nargs);
PyObject *pyio_reader_readline(PyObject *op, PyObject *const *args,
                               Py_ssize_t nargs);
PyObject *pyio_reader_seek(PyObject *op, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *kwnames);
PyObject *pyio_reader_next(PyObject *op);

/* ----------------------------------------------------------------- parts */

extern PyType_Spec pyio_inflater_spec, pyio_inflate_reader_spec,
    pyio_gzip_file_spec;
int pyio_add_pool(PyObject *mod, struct pyio_state *st);
PyObject *pyio_inflate(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames);
extern const char pyio_inflate_doc[];

#endif
