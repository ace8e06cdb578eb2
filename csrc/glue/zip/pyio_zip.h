/* SPDX-License-Identifier: MIT
 * pyio_zip.h - what the glue files of the ZIP reader share: the archive behind
 * ZipFile, its members' streams, and EntryRef.
 *
 * Why      A member that was opened outlives its ZipFile's close(): its
 *          descriptor, directory and lock belong to an object of their own,
 *          the archive, which everybody who reads holds a reference to. The
 *          last one closes.
 * Owner    References as the C API says.
 * Errors   -1 or NULL with an exception set.
 * Threads  With the GIL, except where it says detached. Positional reads need
 *          no lock; a source without descriptor is read under archive->lock.
 */
#ifndef PYIO_ZIP_H
#define PYIO_ZIP_H

#include "glue/base/pyio.h"
#include "zip/cio_directory.h"
#include "zip/cio_entry.h"
#include "zip/cio_profile.h"

/* A Limits; UINT64_MAX (a ratio below 0): none. */
struct pyio_bounds {
    uint64_t entries, directory, name, entry, total;
    double ratio;
};

struct pyio_archive {
    PyObject_HEAD
    PyObject *filename; /* owned; a path, a file's name, or None */
    PyObject *source;   /* owned; read under the lock; NULL: by descriptor */
    PyObject *encoding; /* owned; metadata_encoding; NULL: cp437 */
    int fd;             /* -1: none; owned */
    bool nowait;        /* the descriptor can say what the page cache holds */
    bool whole_tail;    /* read all of the tail when loading */
    uint64_t file_nbytes;
    int64_t mtime_ns; /* with inode and size: which file it was */
    uint64_t inode;
    bool has_path;
    bool retired; /* its ZipFile is closed, and keeps it to list members */
    struct cio_directory directory; /* empty behind an EntryRef */
    /* Owned. What reading has to pass (NULL: compat), and what extraction has
     * where that is less than safe (NULL: not made yet). */
    struct cio_profile *profile, *extraction;
    struct pyio_bounds bounds;
    bool bounded;
    struct pyio_lock lock;
    /* What was read last from the source, and a little ahead. */
    struct cio_buffer *window;
    uint64_t window_off;
    size_t window_nbytes;
    size_t window_reserved; /* of the budget of open members */
    uint64_t expected_off;  /* a member read next from there is in order */
};

/* ---------------------------------------------------------------- archive */

/* Opens a path, takes a file object. No directory yet. */
struct pyio_archive *pyio_archive_new(struct pyio_state *st, PyObject *file);
/* Finds the end record alone. */
int pyio_archive_find_end(struct pyio_state *st, struct pyio_archive *archive);
/* Finds and loads the directory. */
int pyio_archive_load(struct pyio_state *st, struct pyio_archive *archive,
                      const struct cio_zip_bounds *bounds);
/* nbytes from off: by descriptor (detached) or from the source. *got is less
 * at the end only. */
int pyio_archive_fetch(struct pyio_state *st, struct pyio_archive *archive,
                       uint64_t off, uint8_t *data, size_t nbytes,
                       size_t *got);
/* Its ZipFile was closed and still has its reference: the file is closed when
 * nobody else has one, the directory stays. */
void pyio_archive_retire(struct pyio_archive *archive);
/* For any reference but the ZipFile's own; NULL: nothing. */
void pyio_archive_release(struct pyio_archive *archive);
/* Gives the window back. */
void pyio_archive_drop_window(struct pyio_archive *archive);

/* A small member out of a window over its neighbours; false: the plain way has
 * to do it (nothing is changed). With the GIL, on archives with descriptor. */
bool pyio_ahead_locate(struct pyio_archive *archive, struct cio_entry *entry,
                       enum cio_status *status,
                       struct cio_zip_problem *problem);
bool pyio_ahead_read(struct pyio_archive *archive, struct cio_entry *entry,
                     uint8_t *out, struct cio_done *done,
                     struct cio_zip_problem *problem);

/* The order of members by offset, made when the first one is read. */
int pyio_archive_order(struct pyio_archive *archive);

/* The name of member `index` as a new str. */
PyObject *pyio_archive_name(const struct pyio_archive *archive,
                            uint32_t index);
/* The raw name decoded whole, as ZipInfo.orig_filename. */
PyObject *pyio_archive_orig_name(const struct pyio_archive *archive,
                                 const struct cio_zip_info *info);

/* Sets the exception that zipfile raises for it, which names file, member,
 * offset, expected and found; -1. name NULL: by problem->index. */
int pyio_zip_raise(struct pyio_state *st, const struct pyio_archive *archive,
                   PyObject *name, const struct cio_zip_problem *problem);
/* The same for any outcome that isn't CIO_OK or CIO_EOF. */
int pyio_zip_check(struct pyio_state *st, const struct pyio_archive *archive,
                   PyObject *name, struct cio_done done,
                   const struct cio_zip_problem *problem);

/* ---------------------------------------------------------------- members */

/* What the caller named: a str of the directory, or a ZipInfo, which is read
 * by its own fields. *name is new, for messages. KeyError as zipfile. */
struct pyio_member {
    struct cio_entry entry;
    PyObject *name;     /* owned; NULL until a message needs it */
    PyObject *raw_name; /* owned; what entry.raw_name points into, or NULL */
};
/* By name; *index UINT32_MAX where there is none. TypeError for what can't be
 * hashed, as a dict. */
int pyio_name_index(const struct pyio_archive *archive, PyObject *name,
                    uint32_t *index);
int pyio_member_find(struct pyio_state *st, struct pyio_archive *archive,
                     PyObject *what, struct pyio_member *member);
void pyio_member_clear(struct pyio_member *member);

/* Refused before anything is read; a warning where zipfile warns. Must come
 * before all that follows. */
int pyio_member_check(struct pyio_state *st, struct pyio_archive *archive,
                      struct pyio_member *member);

/* The whole member as bytes; checks. */
PyObject *pyio_member_read(struct pyio_state *st, struct pyio_archive *archive,
                           struct pyio_member *member);
/* Into memory of exactly entry.nbytes. */
int pyio_member_read_into(struct pyio_state *st, struct pyio_archive *archive,
                          struct pyio_member *member, uint8_t *out);
/* The local header, checked: sets entry.data_off. */
int pyio_member_locate(struct pyio_state *st, struct pyio_archive *archive,
                       struct pyio_member *member);
/* The next nbytes of a stream whose member was located: CIO_OK (filled),
 * CIO_EOF, or an outcome for pyio_zip_check. */
struct cio_done pyio_stream_fill(struct pyio_state *st,
                                 struct pyio_archive *archive,
                                 struct cio_entry_stream *stream, uint8_t *out,
                                 size_t nbytes,
                                 struct cio_zip_problem *problem);
/* A stream over it (struct pyio_state.zip_stream_type); takes what it needs
 * from member. */
PyObject *pyio_member_open(struct pyio_state *st, struct pyio_archive *archive,
                           struct pyio_member *member);

/* ------------------------------------------------------------------ parts */

int pyio_add_tree(PyObject *mod, struct pyio_state *st);
int pyio_add_zip_archive(PyObject *mod, struct pyio_state *st);
int pyio_add_zip_stream(PyObject *mod, struct pyio_state *st);
int pyio_add_zip_reader(PyObject *mod, struct pyio_state *st);
int pyio_add_zip_many(PyObject *mod, struct pyio_state *st);
int pyio_add_zip_ref(PyObject *mod, struct pyio_state *st);

#endif
