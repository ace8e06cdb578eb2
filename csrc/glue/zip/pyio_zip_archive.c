/* SPDX-License-Identifier: MIT
 * pyio_zip_archive.c - the file behind ZipFile: opened or taken, its bytes
 * fetched.
 */
#include "glue/zip/pyio_zip.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cio_bytes.h"

/* ------------------------------------------------------------------ source */

static int
raise_os(struct pyio_archive *archive, int sys_errno)
{
    const struct pyio_context context = {archive->filename, NULL, -1};

    return pyio_check(NULL, cio_done_sys(sys_errno, 0), &context);
}

/* Size and identity of a file: 1 regular, 0 something else, -1 an OSError. */
static int
look_at_file(struct pyio_archive *archive, int fd, mode_t *mode)
{
    struct stat s;

    if (cio_sys->fstat(fd, &s) < 0) {
        return raise_os(archive, errno);
    }
    *mode = s.st_mode;
    archive->file_nbytes = (uint64_t)s.st_size;
    archive->mtime_ns =
        (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    archive->inode = (uint64_t)s.st_ino;
    return S_ISREG(s.st_mode);
}

static int
open_path(struct pyio_archive *archive, PyObject *path)
{
    mode_t mode = 0;
    int regular;

    archive->filename = PyOS_FSPath(path);
    if (archive->filename == NULL) {
        return -1;
    }
    archive->fd = pyio_open(archive->filename, "rb", O_RDONLY, 0);
    if (archive->fd < 0) {
        return -1;
    }
    archive->has_path = true;
    regular = look_at_file(archive, archive->fd, &mode);
    if (regular < 0) {
        return -1;
    }
    if (!regular) {
        if (S_ISDIR(mode)) {
            return raise_os(archive, EISDIR);
        }
        /* A block device has a size; a pipe has none and can't be one. */
        const off_t end = cio_sys->lseek(archive->fd, 0, SEEK_END);

        archive->file_nbytes = end < 0 ? 0 : (uint64_t)end;
    }
    return 0;
}

/* Bytes that a BufferedRandom has not written yet are part of its file. */
static int
flush_writer(struct pyio_state *st, PyObject *file)
{
    PyObject *done;

    if (Py_IS_TYPE(file, (PyTypeObject *)st->file_io)
        || Py_IS_TYPE(file, (PyTypeObject *)st->buffered_reader)) {
        return 0;
    }
    done = PyObject_CallMethod(file, "flush", NULL);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int
size_by_seek(PyObject *file, uint64_t *nbytes)
{
    PyObject *at = PyObject_CallMethod(file, "seek", "ii", 0, SEEK_END);
    long long end;

    Py_XDECREF(at);
    if (at == NULL) {
        return -1;
    }
    at = PyObject_CallMethod(file, "tell", NULL);
    if (at == NULL) {
        return -1;
    }
    end = PyLong_AsLongLong(at);
    Py_DECREF(at);
    if (end == -1 && PyErr_Occurred()) {
        return -1;
    }
    *nbytes = end < 0 ? 0 : (uint64_t)end;
    return 0;
}

static int
take_name(struct pyio_archive *archive, PyObject *file)
{
    archive->filename = PyObject_GetAttrString(file, "name");
    if (archive->filename == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        archive->filename = Py_NewRef(Py_None);
    }
    return 0;
}

/* A file object: by a descriptor of our own where its bytes are the file's,
 * else by its methods. Our own, since the number may be another file's once
 * the object is closed. */
static int
take_file(struct pyio_state *st, struct pyio_archive *archive, PyObject *file)
{
    enum pyio_stream_kind kind;
    mode_t mode;
    int fd, regular;

    if (pyio_stream_classify(st, file, &kind, &fd) < 0
        || take_name(archive, file) < 0) {
        return -1;
    }
    regular = fd < 0 ? 0 : look_at_file(archive, fd, &mode);
    if (regular < 0) {
        return -1;
    }
    if (regular) {
        if (kind != PYIO_STREAM_FD && flush_writer(st, file) < 0) {
            return -1;
        }
        archive->fd = cio_sys->fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (archive->fd < 0) {
            return raise_os(archive, errno);
        }
        /* What was flushed counts. */
        return look_at_file(archive, fd, &mode) < 0 ? -1 : 0;
    }
    archive->source = Py_NewRef(file);
    if (size_by_seek(file, &archive->file_nbytes) < 0) {
        if (PyErr_ExceptionMatches(PyExc_OSError)) {
            PyErr_Clear(); /* as zipfile: what can't seek is no archive */
            archive->file_nbytes = 0;
            return 0;
        }
        return -1;
    }
    return 0;
}

struct pyio_archive *
pyio_archive_new(struct pyio_state *st, PyObject *file)
{
    struct pyio_archive *const archive =
        PyObject_GC_New(struct pyio_archive, st->zip_archive_type);
    const size_t head = offsetof(struct pyio_archive, filename);
    int result;

    if (archive == NULL) {
        return NULL;
    }
    memset((char *)archive + head, 0, sizeof *archive - head);
    archive->fd = -1;
    archive->nowait = true;
    archive->expected_off = UINT64_MAX;
    PyObject_GC_Track((PyObject *)archive);
    if (PyUnicode_Check(file) || PyBytes_Check(file)
        || PyObject_HasAttrString(file, "__fspath__")) {
        result = open_path(archive, file);
    } else {
        result = take_file(st, archive, file);
    }
    if (result < 0) {
        Py_DECREF(archive);
        return NULL;
    }
    return archive;
}

/* ------------------------------------------------------------------- fetch */

static int
seek_source(struct pyio_archive *archive, uint64_t off)
{
    PyObject *const at =
        PyObject_CallMethod(archive->source, "seek", "L", (long long)off);

    Py_XDECREF(at);
    return at == NULL ? -1 : 0;
}

/* Reads until the memory is full or the source ends. */
static int
read_source(struct pyio_state *st, struct pyio_archive *archive, uint8_t *data,
            size_t nbytes, size_t *got)
{
    *got = 0;
    while (*got < nbytes) {
        size_t n;
        const int result = pyio_object_read(st, archive->source, data + *got,
                                            nbytes - *got, &n, NULL);

        if (result < 0) {
            return result;
        }
        if (n == 0) {
            break;
        }
        *got += n;
    }
    return 0;
}

/* Refills the window from off on. Memory that the source kept a view of is
 * lost to us: it can neither be used nor freed. */
static int
refill(struct pyio_state *st, struct pyio_archive *archive, uint64_t off)
{
    int result;

    archive->window_nbytes = 0;
    if (archive->window == NULL) {
        archive->window = cio_buffer_take(CIO_ZIP_AHEAD_NBYTES);
        if (archive->window == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
    }
    if (seek_source(archive, off) < 0) {
        return -1;
    }
    result = read_source(
        st, archive, archive->window->data,
        cio_min_size(CIO_ZIP_AHEAD_NBYTES, archive->window->nbytes),
        &archive->window_nbytes);
    if (result == PYIO_KEPT) {
        cio_buffer_abandon(archive->window);
        archive->window = NULL;
    }
    if (result < 0) {
        archive->window_nbytes = 0;
        return -1;
    }
    archive->window_off = off;
    return 0;
}

/* What the window holds of [off, off + nbytes), from off on. */
static size_t
copy_from_window(const struct pyio_archive *archive, uint64_t off,
                 uint8_t *data, size_t nbytes)
{
    size_t at, n;

    if (off < archive->window_off
        || off - archive->window_off >= archive->window_nbytes) {
        return 0;
    }
    at = (size_t)(off - archive->window_off);
    n = cio_min_size(nbytes, archive->window_nbytes - at);
    memcpy(data, archive->window->data + at, n);
    return n;
}

static int
fetch_from_source(struct pyio_state *st, struct pyio_archive *archive,
                  uint64_t off, uint8_t *data, size_t nbytes, size_t *got)
{
    size_t have = copy_from_window(archive, off, data, nbytes), n;
    struct cio_buffer *bounce;
    int result = 0;

    if (have < nbytes && nbytes - have < CIO_ZIP_AHEAD_NBYTES) {
        if (refill(st, archive, off + have) < 0) {
            return -1;
        }
        have +=
            copy_from_window(archive, off + have, data + have, nbytes - have);
        *got = have;
        return 0;
    }
    /* Large pieces go through a chunk of ours: a source may keep a view of
     * what it is lent, and the caller's memory may be a bytes object. */
    bounce = have < nbytes ? cio_buffer_take(CIO_CHUNK_NBYTES) : NULL;
    if (have < nbytes && bounce == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (have < nbytes && seek_source(archive, off + have) < 0) {
        result = -1;
    }
    while (result == 0 && have < nbytes) {
        const size_t want = cio_min_size(nbytes - have, bounce->nbytes);

        result = read_source(st, archive, bounce->data, want, &n);
        if (result < 0) {
            break;
        }
        memcpy(data + have, bounce->data, n);
        have += n;
        if (n < want) {
            break;
        }
        result = PyErr_CheckSignals();
    }
    if (result == PYIO_KEPT) {
        cio_buffer_abandon(bounce);
    } else {
        cio_buffer_give(bounce);
    }
    *got = have;
    return result < 0 ? -1 : 0;
}

void
pyio_archive_drop_window(struct pyio_archive *archive)
{
    cio_buffer_give(archive->window);
    archive->window = NULL;
    archive->window_nbytes = 0;
    if (archive->window_reserved > 0) {
        cio_entry_release(archive->window_reserved);
        archive->window_reserved = 0;
    }
}

/* What was read ahead stays as long as all such bytes of the process stay
 * under the pool's limit: hundreds of open archives must not keep a buffer
 * each. */
static void
keep_window_if_it_fits(struct pyio_archive *archive)
{
    if (archive->window == NULL || archive->window_reserved > 0) {
        return;
    }
    if (cio_entry_reserve(CIO_ZIP_AHEAD_NBYTES)) {
        archive->window_reserved = CIO_ZIP_AHEAD_NBYTES;
    } else {
        pyio_archive_drop_window(archive);
    }
}

struct positional {
    int fd;
    uint8_t *data;
    size_t nbytes, have;
    uint64_t off;
};

static struct cio_done
pread_slice(void *argument)
{
    struct positional *const p = argument;
    const ssize_t got =
        cio_sys->pread(p->fd, p->data + p->have,
                       cio_min_size(p->nbytes - p->have, CIO_SLICE_NBYTES),
                       (off_t)(p->off + p->have));

    if (got < 0) {
        return cio_done_sys(errno, 0);
    }
    p->have += (size_t)got;
    return cio_done_of(got == 0              ? CIO_EOF
                       : p->have < p->nbytes ? CIO_MORE
                                             : CIO_OK,
                       (uint64_t)got);
}

int
pyio_archive_fetch(struct pyio_state *st, struct pyio_archive *archive,
                   uint64_t off, uint8_t *data, size_t nbytes, size_t *got)
{
    int result;

    *got = 0;
    if (nbytes == 0) {
        return 0;
    }
    if (archive->source == NULL) {
        const struct pyio_context context = {archive->filename, NULL, -1};
        struct positional p = {archive->fd, data, nbytes, 0, off};
        struct pyio_slices slices = {.step = pread_slice, .argument = &p};
        const struct cio_done done = pyio_run_slices(&slices);

        *got = p.have;
        return pyio_check(st, done, &context);
    }
    if (pyio_lock_enter(&archive->lock, archive->source) < 0) {
        return -1;
    }
    result = fetch_from_source(st, archive, off, data, nbytes, got);
    keep_window_if_it_fits(archive);
    pyio_lock_leave(&archive->lock);
    return result;
}

/* -------------------------------------------------------------------- type */

static int
archive_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct pyio_archive *const self = (struct pyio_archive *)op;

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->filename);
    Py_VISIT(self->source);
    Py_VISIT(self->encoding);
    return 0;
}

static int
archive_clear(PyObject *op)
{
    struct pyio_archive *const self = (struct pyio_archive *)op;

    Py_CLEAR(self->filename);
    Py_CLEAR(self->source);
    Py_CLEAR(self->encoding);
    return 0;
}

static void
close_file(struct pyio_archive *self)
{
    const int fd = self->fd;

    self->fd = -1;
    if (fd >= 0) {
        PyObject *const before = pyio_exception_take();

        if (pyio_close(fd) < 0) {
            PyErr_WriteUnraisable(NULL);
        }
        pyio_exception_give(before);
    }
    pyio_archive_drop_window(self);
    Py_CLEAR(self->source);
}

void
pyio_archive_retire(struct pyio_archive *archive)
{
    archive->retired = true;
    if (Py_REFCNT(archive) == 1) {
        close_file(archive);
    }
}

void
pyio_archive_release(struct pyio_archive *archive)
{
    if (archive != NULL) {
        if (archive->retired && Py_REFCNT(archive) == 2) {
            close_file(archive);
        }
        Py_DECREF(archive);
    }
}

static void
archive_dealloc(PyObject *op)
{
    struct pyio_archive *const self = (struct pyio_archive *)op;
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    close_file(self);
    (void)archive_clear(op);
    cio_directory_clear(&self->directory);
    PyObject_GC_Del(op);
    Py_DECREF(type);
}

static PyType_Slot archive_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("The file behind a ZipFile. Private.")},
    {Py_tp_traverse, archive_traverse},
    {Py_tp_clear, archive_clear},
    {Py_tp_dealloc, archive_dealloc},
    {0, NULL},
};

static PyType_Spec archive_spec = {
    .name = "pyio_chunked._core._ZipArchive",
    .basicsize = sizeof(struct pyio_archive),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = archive_slots,
};

int
pyio_add_zip_archive(PyObject *mod, struct pyio_state *st)
{
    return pyio_add_type(mod, &archive_spec, NULL, &st->zip_archive_type);
}
