/* SPDX-License-Identifier: MIT
 * pyio_zip_many.c - ZipFile.read_many: members in batches, one release of the
 * GIL for each.
 *
 * A batch's results are made under the GIL before it runs, so that workers
 * inflate straight into the bytes objects that are handed out. An exception
 * that belongs to a member waits for that member's turn.
 */
#include "glue/zip/pyio_zip_profile.h"
#include "glue/zip/pyio_zip_reader.h"
#include "glue/zip/pyio_zip_run.h"

#include <string.h>

#include "base/cio_bytes.h"

struct many_item {
    PyObject *name;  /* owned; as the caller gave it; NULL: by index */
    PyObject *bytes; /* owned; NULL: read when its turn comes */
};

struct zip_many {
    PyObject_HEAD
    PyObject *reader; /* owned */
    struct pyio_archive *archive;
    PyObject *names;    /* owned iterator; NULL: all, by index */
    PyObject *progress; /* owned or NULL */
    PyObject *failure;  /* owned; raised behind the batch */
    PyObject *waiting;  /* owned; a name that didn't fit into the batch */
    struct pyio_slices slices;
    struct pyio_lock lock;
    struct cio_batch_item *work; /* one for each item that workers read */
    struct many_item *items;
    struct pyio_member *found; /* beside items, for those read later */
    size_t count, at;          /* of the batch */
    size_t work_count;
    uint64_t max_in_flight, total;
    uint32_t next_index;
    unsigned threads;
    bool ended, ready; /* ready: the batch has run */
};

/* ------------------------------------------------------------------- batch */

static void
clear_batch(struct zip_many *self)
{
    for (size_t i = 0; i < self->count; i++) {
        Py_CLEAR(self->items[i].name);
        Py_CLEAR(self->items[i].bytes);
        pyio_member_clear(&self->found[i]);
    }
    self->count = 0;
    self->at = 0;
    self->work_count = 0;
    self->ready = false;
}

/* Members that workers may read: results whose size can be trusted, from a
 * descriptor, by the methods of the core. */
static bool
is_plain(const struct zip_many *self, const struct cio_entry *entry)
{
    struct cio_zip_problem ignored;

    return self->archive->source == NULL && entry->end_off != entry->header_off
           && cio_entry_check(entry, &ignored) == CIO_OK
           && entry->compressed_nbytes <= self->archive->file_nbytes
           && (cio_entry_is_whole(entry) || entry->method == CIO_ZIP_STORED
               || entry->nbytes / CIO_ZIP_TRUST_RATIO
                      < entry->compressed_nbytes);
}

/* The next member's name (new; NULL with ended set, or an exception). */
static PyObject *
next_name(struct zip_many *self)
{
    PyObject *name = self->waiting;

    self->waiting = NULL;
    if (name == NULL && self->names != NULL) {
        name = PyIter_Next(self->names);
    } else if (name == NULL
               && self->next_index < self->archive->directory.count) {
        name = pyio_archive_name(self->archive, self->next_index);
    }
    if (name == NULL && !PyErr_Occurred()) {
        self->ended = true;
    }
    return name;
}

/* By name; without names by index, since a later member may have the same. */
static int
find_member(struct zip_many *self, PyObject *name, struct pyio_member *member)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));
    struct cio_zip_info info;

    if (self->names != NULL) {
        return pyio_member_find(st, self->archive, name, member);
    }
    memset(member, 0, sizeof *member);
    if (pyio_archive_order(self->archive) < 0) {
        return -1;
    }
    cio_directory_info(&self->archive->directory, self->next_index, &info);
    cio_entry_of(&self->archive->directory, &info, &member->entry);
    member->name = Py_NewRef(name);
    return 0;
}

/* The member joins the batch; its result is made when workers will fill it. */
static int
add_member(struct zip_many *self, PyObject *name, struct pyio_member *member)
{
    struct many_item *const item = &self->items[self->count];

    item->name = Py_NewRef(name);
    item->bytes = NULL;
    self->found[self->count] = *member; /* its references move */
    self->count++;
    if (self->names == NULL) {
        self->next_index++;
    }
    if (!is_plain(self, &member->entry)) {
        return 0;
    }
    if (member->entry.nbytes > PY_SSIZE_T_MAX / 2
        || cio_sys->allow_result((size_t)member->entry.nbytes) < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    item->bytes =
        PyBytes_FromStringAndSize(NULL, (Py_ssize_t)member->entry.nbytes);
    if (item->bytes == NULL) {
        return -1;
    }
    self->work[self->work_count++] = (struct cio_batch_item){
        .entry = member->entry,
        .out = (uint8_t *)PyBytes_AS_STRING(item->bytes),
        .done = {CIO_MORE, 0, 0},
    };
    return 0;
}

static bool
batch_is_full(const struct zip_many *self, uint64_t nbytes)
{
    return self->count == CIO_ZIP_BATCH_MEMBERS
           || (nbytes >= CIO_ZIP_BATCH_NBYTES
               && self->count >= (size_t)self->threads * 4);
}

static int
within_bounds(struct zip_many *self, const struct pyio_member *member)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));
    const struct pyio_bounds *const bounds = &self->archive->bounds;

    return pyio_bounds_check(st, self->archive, bounds, &member->entry,
                             member->name)
                       < 0
                   || pyio_bounds_add(st, self->archive, bounds,
                                      member->entry.nbytes, &self->total)
                          < 0
               ? -1
               : 0;
}

/* Collects members until the batch is full. An exception is kept for behind
 * them, as if they had been read one by one. */
static int
collect(struct zip_many *self)
{
    uint64_t nbytes = 0;

    clear_batch(self);
    while (!self->ended && !batch_is_full(self, nbytes)) {
        struct pyio_member member;
        PyObject *const name = next_name(self);

        if (name == NULL) {
            break;
        }
        if (find_member(self, name, &member) < 0) {
            Py_DECREF(name);
            break;
        }
        if (self->count > 0
            && member.entry.nbytes > self->max_in_flight - nbytes) {
            pyio_member_clear(&member);
            self->waiting = name;
            break;
        }
        if (PYIO_UNLIKELY(self->archive->bounded)
            && within_bounds(self, &member) < 0) {
            pyio_member_clear(&member);
            Py_DECREF(name);
            break;
        }
        nbytes +=
            cio_min_u64(member.entry.nbytes, self->max_in_flight - nbytes);
        (void)add_member(self, name, &member);
        Py_DECREF(name);
        if (PyErr_Occurred()) {
            /* Its memory couldn't be had: it fails in its turn. */
            self->count--;
            Py_CLEAR(self->items[self->count].name);
            Py_CLEAR(self->items[self->count].bytes);
            pyio_member_clear(&self->found[self->count]);
            break;
        }
    }
    if (PyErr_Occurred()) {
        self->failure = pyio_exception_take();
        self->ended = true;
    }
    return 0;
}

static PyObject *
read_later(struct zip_many *self, struct pyio_member *member, PyObject *name)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));
    const struct cio_entry *const entry = &member->entry;

    if ((entry->flags & CIO_ZIP_FLAG_ENCRYPTED) != 0
        || (entry->method != CIO_ZIP_STORED
            && entry->method != CIO_ZIP_DEFLATED)) {
        return PyObject_CallMethod(self->reader, "_read_special", "OOO", name,
                                   Py_None, Py_True);
    }
    return pyio_member_read(st, self->archive, member);
}

/* The item whose turn it is, as (name, bytes). */
static PyObject *
deliver(struct zip_many *self)
{
    struct many_item *const item = &self->items[self->at];
    struct pyio_member *const member = &self->found[self->at];
    PyObject *pair;

    if (item->bytes == NULL) {
        item->bytes = read_later(self, member, item->name);
        if (item->bytes == NULL) {
            self->ended = true;
            self->at = self->count;
            return NULL;
        }
        self->slices.done += PyBytes_GET_SIZE(item->bytes);
    }
    pair = PyTuple_New(2);
    if (pair == NULL) {
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, item->name);
    PyTuple_SET_ITEM(pair, 1, item->bytes);
    item->name = NULL;
    item->bytes = NULL;
    pyio_member_clear(member);
    self->at++;
    return pair;
}

/* A member that failed: everything from it on is given up. */
static int
look_at_outcomes(struct zip_many *self)
{
    size_t work = 0;

    for (size_t i = 0; i < self->count; i++) {
        const struct cio_batch_item *w;

        if (self->items[i].bytes == NULL) {
            continue;
        }
        w = &self->work[work++];
        if (w->done.status == CIO_OK) {
            continue;
        }
        (void)pyio_zip_check(pyio_state_of(Py_TYPE(self)), self->archive,
                             self->items[i].name, w->done, &w->problem);
        Py_XSETREF(self->failure, pyio_exception_take());
        self->ended = true;
        for (size_t j = i; j < self->count; j++) {
            Py_CLEAR(self->items[j].name);
            Py_CLEAR(self->items[j].bytes);
            pyio_member_clear(&self->found[j]);
        }
        self->count = i;
        break;
    }
    self->ready = true;
    return 0;
}

static int
next_batch(struct zip_many *self)
{
    if (self->at == self->count && !self->ended) {
        (void)collect(self);
    }
    if (self->at < self->count && !self->ready) {
        if (self->work_count > 0
            && pyio_zip_run(self->archive, self->work, self->work_count,
                            self->threads, &self->slices)
                   < 0) {
            return -1; /* the batch stays, and goes on at the next call */
        }
        return look_at_outcomes(self);
    }
    return 0;
}

static PyObject *
step(struct zip_many *self)
{
    if (PYIO_UNLIKELY(self->at == self->count || !self->ready)
        && next_batch(self) < 0) {
        return NULL;
    }
    if (PYIO_LIKELY(self->at < self->count)) {
        return deliver(self);
    }
    if (self->failure != NULL) {
        pyio_exception_give(self->failure);
        self->failure = NULL;
    } else if (self->progress != NULL) {
        (void)pyio_report(&self->slices, true);
        Py_CLEAR(self->progress);
        self->slices.progress = NULL;
    }
    return NULL;
}

static PyObject *
many_next(PyObject *op)
{
    struct zip_many *const self = (struct zip_many *)op;
    PyObject *result;

    if (pyio_lock_enter(&self->lock, op) < 0) {
        return NULL;
    }
    result = step(self);
    pyio_lock_leave(&self->lock);
    return result;
}

/* -------------------------------------------------------------------- type */

static int
many_traverse(PyObject *op, visitproc visit, void *arg)
{
    struct zip_many *const self = (struct zip_many *)op;

    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->reader);
    Py_VISIT(self->archive);
    Py_VISIT(self->names);
    Py_VISIT(self->progress);
    Py_VISIT(self->failure);
    Py_VISIT(self->waiting);
    for (size_t i = 0; i < self->count; i++) {
        Py_VISIT(self->items[i].name);
        Py_VISIT(self->found[i].name);
    }
    return 0;
}

static int
many_clear(PyObject *op)
{
    struct zip_many *const self = (struct zip_many *)op;
    struct pyio_archive *const archive = self->archive;

    if (self->items != NULL) {
        clear_batch(self);
    }
    self->ended = true;
    self->archive = NULL;
    pyio_archive_release(archive);
    Py_CLEAR(self->reader);
    Py_CLEAR(self->names);
    Py_CLEAR(self->progress);
    Py_CLEAR(self->failure);
    Py_CLEAR(self->waiting);
    self->slices.progress = NULL;
    return 0;
}

static void
many_dealloc(PyObject *op)
{
    struct zip_many *const self = (struct zip_many *)op;
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    (void)many_clear(op);
    cio_free(self->work);
    cio_free(self->items);
    cio_free(self->found);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot many_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Iterator of (name, bytes).")},
    {Py_tp_dealloc, many_dealloc},
    {Py_tp_traverse, many_traverse},
    {Py_tp_clear, many_clear},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, many_next},
    {0, NULL},
};

static PyType_Spec many_spec = {
    .name = "pyio_chunked._core._ZipMany",
    .basicsize = sizeof(struct zip_many),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = many_slots,
};

static int
many_prepare(struct zip_many *self, PyObject *names, PyObject *progress)
{
    if (names != NULL && names != Py_None) {
        self->names = PyObject_GetIter(names);
        if (self->names == NULL) {
            return -1;
        }
    }
    self->slices.total =
        self->names != NULL || progress == NULL || progress == Py_None
            ? -1
            : pyio_zip_size(&self->archive->directory);
    if (pyio_as_progress(progress, self->slices.total, &self->progress) < 0) {
        return -1;
    }
    self->slices.progress = self->progress;
    self->work = cio_sys->malloc(CIO_ZIP_BATCH_MEMBERS * sizeof *self->work);
    self->items = cio_sys->malloc(CIO_ZIP_BATCH_MEMBERS * sizeof *self->items);
    self->found = cio_sys->malloc(CIO_ZIP_BATCH_MEMBERS * sizeof *self->found);
    if (self->work == NULL || self->items == NULL || self->found == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return 0;
}

const char pyio_zip_reader_read_many_doc[] =
    "read_many($self, names=None, *, workers=None, max_in_flight=67108864, "
    "progress=None)\n--\n\n"
    "Iterator of (name, bytes) in the order of names (None: the "
    "directory's).\n\n"
    "C threads read ahead in batches of at most max_in_flight bytes; a "
    "larger\nmember goes alone. KeyError and BadZipFile come in their "
    "member's turn.";

PyObject *
pyio_zip_reader_read_many(PyObject *op, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"names", "workers", "max_in_flight",
                                        "progress", NULL};
    static const struct pyio_signature signature = {"read_many", names, 1, 0};
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    PyObject *given[4];
    struct zip_many *self;
    unsigned workers;
    int64_t max_in_flight = 64 << 20;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || pyio_as_workers(given[1], &workers) < 0
        || (given[2] != NULL
            && pyio_as_offset(given[2], "max_in_flight", &max_in_flight)
                   < 0)) {
        return NULL;
    }
    self =
        (struct zip_many *)st->zip_many_type->tp_alloc(st->zip_many_type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->archive = pyio_zip_reader_archive(op);
    self->reader = Py_NewRef(op);
    self->threads = cio_workers_count(workers);
    self->max_in_flight = (uint64_t)max_in_flight;
    if (self->archive == NULL || many_prepare(self, given[0], given[3]) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

int
pyio_add_zip_many(PyObject *mod, struct pyio_state *st)
{
    return pyio_add_type(mod, &many_spec, NULL, &st->zip_many_type);
}
