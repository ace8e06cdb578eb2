/* SPDX-License-Identifier: MIT
 * pyio_zip_many.c - ZipFile.read_many: members in batches, one release of the
 * GIL for each.
 *
 * A batch's results are made under the GIL before it runs, so that workers
 * inflate straight into the bytes objects that are handed out. While one batch
 * is handed out workers read the next. An exception that belongs to a member
 * waits for that member's turn.
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

struct many_batch {
    struct cio_batch_item *work; /* one for each item that workers read */
    struct many_item *items;
    struct pyio_member *found; /* beside items, for those read later */
    PyObject *failure;         /* owned; raised behind the batch */
    size_t count, at, work_count;
    uint64_t nbytes;
};

struct zip_many {
    PyObject_HEAD
    PyObject *reader; /* owned */
    struct pyio_archive *archive;
    PyObject *names;    /* owned iterator; NULL: all, by index */
    PyObject *progress; /* owned or NULL */
    PyObject *waiting;  /* owned; a name that didn't fit into the batch */
    struct pyio_slices slices;
    struct pyio_lock lock;
    struct many_batch batches[2];
    struct many_batch *now;  /* handed out; it has run */
    struct many_batch *next; /* collected; it runs, or will */
    struct pyio_zip_run run; /* of next */
    uint64_t max_in_flight, total;
    uint32_t next_index;
    unsigned threads;
    bool ended; /* no name is left, or one failed */
};

/* ------------------------------------------------------------------- batch */

/* Gives items from `first` on back. */
static void
drop_items(struct many_batch *batch, size_t first)
{
    for (size_t i = first; i < batch->count; i++) {
        Py_CLEAR(batch->items[i].name);
        Py_CLEAR(batch->items[i].bytes);
        pyio_member_clear(&batch->found[i]);
    }
    batch->count = first;
}

/* Nobody runs it. */
static void
clear_batch(struct many_batch *batch)
{
    drop_items(batch, 0);
    Py_CLEAR(batch->failure);
    batch->at = 0;
    batch->work_count = 0;
    batch->nbytes = 0;
}

/* Members that workers may read: results whose size can be trusted, from a
 * descriptor, by the methods of the core. */
static bool
is_plain(const struct zip_many *self, const struct cio_entry *entry)
{
    struct cio_zip_problem ignored;

    /* A ZipInfo's member has no index, by which a batch asks the profile. */
    return self->archive->source == NULL && entry->end_off != entry->header_off
           && (self->archive->profile == NULL || entry->index != UINT32_MAX)
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
add_member(struct zip_many *self, struct many_batch *batch, PyObject *name,
           struct pyio_member *member)
{
    const uint64_t nbytes = member->entry.nbytes;
    struct many_item *const item = &batch->items[batch->count];

    item->name = Py_NewRef(name);
    item->bytes = NULL;
    batch->found[batch->count] = *member; /* its references move */
    batch->count++;
    if (self->names == NULL) {
        self->next_index++;
    }
    if (!is_plain(self, &member->entry)) {
        return 0;
    }
    if (nbytes > PY_SSIZE_T_MAX / 2
        || cio_sys->allow_result((size_t)nbytes) < 0) {
        (void)PyErr_NoMemory();
        return -1;
    }
    item->bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    if (item->bytes == NULL) {
        return -1;
    }
    batch->work[batch->work_count++] = (struct cio_batch_item){
        .entry = member->entry,
        .out = (uint8_t *)PyBytes_AS_STRING(item->bytes),
        .done = {CIO_MORE, 0, 0},
    };
    return 0;
}

static bool
batch_is_full(const struct zip_many *self, const struct many_batch *batch)
{
    return batch->count == CIO_ZIP_BATCH_MEMBERS
           || (batch->nbytes >= CIO_ZIP_BATCH_NBYTES
               && batch->count >= (size_t)self->threads * 4);
}

/* What is in flight already counts; a member larger than all that may be goes
 * alone. */
static bool
fits(const struct zip_many *self, uint64_t nbytes)
{
    const uint64_t before = self->now->nbytes + self->next->nbytes;

    return (self->now->at == self->now->count && self->next->count == 0)
           || (before <= self->max_in_flight
               && nbytes <= self->max_in_flight - before);
}

/* A KeyboardInterrupt or its like: no fault of the member, which is kept. */
static bool
is_interrupt(void)
{
    return !PyErr_ExceptionMatches(PyExc_Exception);
}

/* The next member joins the batch: 1; 0: there is none, or no room for it. -1:
 * an exception, which comes behind the batch. */
static int
collect_one(struct zip_many *self, struct many_batch *batch)
{
    struct pyio_member member;
    PyObject *const name = next_name(self);
    int result = -1;

    if (name == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (find_member(self, name, &member) < 0) {
        if (is_interrupt()) {
            self->waiting = name;
            return -1;
        }
        goto out;
    }
    if (!fits(self, member.entry.nbytes)) {
        pyio_member_clear(&member);
        self->waiting = name;
        return 0;
    }
    if (PYIO_UNLIKELY(self->archive->bounded)
        && pyio_bounds_add(pyio_state_of(Py_TYPE(self)), self->archive,
                           &self->archive->bounds, &member.entry, member.name,
                           &self->total)
               < 0) {
        pyio_member_clear(&member);
        goto out;
    }
    if (add_member(self, batch, name, &member) < 0) {
        drop_items(batch, batch->count - 1); /* it fails in its turn */
        goto out;
    }
    if (!cio_add_u64(batch->nbytes, member.entry.nbytes, &batch->nbytes)) {
        batch->nbytes = UINT64_MAX / 2;
    }
    result = 1;
out:
    Py_DECREF(name);
    return result;
}

/* Collects the next batch until it is full. An exception is kept for behind
 * it, as if its members had been read one by one. -1: a KeyboardInterrupt and
 * its like, which come at once. */
static int
collect(struct zip_many *self)
{
    struct many_batch *const batch = self->next;
    int more = 1;

    while (more > 0 && !self->ended && !batch_is_full(self, batch)) {
        more = collect_one(self, batch);
    }
    if (more >= 0) {
        return 0;
    }
    if (is_interrupt()) {
        return -1;
    }
    self->ended = true;
    batch->failure = pyio_exception_take();
    return 0;
}

static void
start(struct zip_many *self, unsigned threads)
{
    struct many_batch *const batch = self->next;

    if (batch->work_count > 0) {
        pyio_zip_start(&self->run, self->archive, batch->work,
                       batch->work_count, threads);
    }
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

/* A member that is read in its turn failed: nothing comes behind it. */
static void
give_up(struct zip_many *self)
{
    self->ended = true;
    pyio_zip_stop(&self->run);
    clear_batch(self->next);
    drop_items(self->now, self->now->at);
    Py_CLEAR(self->now->failure);
}

/* The item whose turn it is, as (name, bytes). */
static PyObject *
deliver(struct zip_many *self)
{
    struct many_batch *const batch = self->now;
    struct many_item *const item = &batch->items[batch->at];
    struct pyio_member *const member = &batch->found[batch->at];
    PyObject *pair;

    if (item->bytes == NULL) {
        item->bytes = read_later(self, member, item->name);
        if (item->bytes == NULL) {
            if (!is_interrupt()) {
                give_up(self);
            }
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
    batch->at++;
    return pair;
}

/* A member of the batch that ran failed: everything from it on is given up. */
static void
look_at_outcomes(struct zip_many *self, struct many_batch *batch)
{
    size_t work = 0;

    for (size_t i = 0; i < batch->count; i++) {
        const struct cio_batch_item *w;

        if (batch->items[i].bytes == NULL) {
            continue;
        }
        w = &batch->work[work++];
        if (w->done.status == CIO_OK) {
            continue;
        }
        (void)pyio_zip_check(pyio_state_of(Py_TYPE(self)), self->archive,
                             batch->found[i].name, w->done, &w->problem);
        Py_XSETREF(batch->failure, pyio_exception_take());
        self->ended = true;
        drop_items(batch, i);
    }
}

/* The next batch becomes the one that is handed out, and workers go on behind
 * it. -1: it goes on at the next call. */
static int
next_batch(struct zip_many *self)
{
    struct many_batch *const batch = self->next;

    clear_batch(self->now);
    if (batch->count == 0 && batch->failure == NULL && collect(self) < 0) {
        return -1;
    }
    if (batch->work_count > 0 && !self->run.started) {
        start(self, batch->work_count > 1 ? self->threads : 1);
    }
    if (self->run.started && pyio_zip_finish(&self->run, &self->slices) < 0) {
        return -1;
    }
    look_at_outcomes(self, batch);
    self->next = self->now;
    self->now = batch;
    if (self->threads > 1 && !self->ended) {
        if (collect(self) < 0) {
            return -1;
        }
        start(self, self->threads);
    }
    return 0;
}

static PyObject *
step(struct zip_many *self)
{
    struct many_batch *const before = self->now;

    if (PYIO_UNLIKELY(before->at == before->count) && before->failure == NULL
        && next_batch(self) < 0) {
        return NULL;
    }
    if (PYIO_LIKELY(self->now->at < self->now->count)) {
        return deliver(self);
    }
    /* The archive can go while its iterator is kept. */
    self->ended = true;
    pyio_archive_release(self->archive);
    self->archive = NULL;
    Py_CLEAR(self->reader);
    if (self->now->failure != NULL) {
        pyio_exception_give(self->now->failure);
        self->now->failure = NULL;
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
    Py_VISIT(self->waiting);
    for (size_t k = 0; k < 2; k++) {
        const struct many_batch *const batch = &self->batches[k];

        Py_VISIT(batch->failure);
        for (size_t i = 0; i < batch->count; i++) {
            Py_VISIT(batch->items[i].name);
            Py_VISIT(batch->found[i].name);
        }
    }
    return 0;
}

static int
many_clear(PyObject *op)
{
    struct zip_many *const self = (struct zip_many *)op;
    struct pyio_archive *const archive = self->archive;

    if (self->run.started) {
        Py_BEGIN_ALLOW_THREADS
        pyio_zip_stop(&self->run);
        Py_END_ALLOW_THREADS
    }
    for (size_t k = 0; k < 2; k++) {
        clear_batch(&self->batches[k]);
    }
    self->ended = true;
    self->archive = NULL;
    pyio_archive_release(archive);
    Py_CLEAR(self->reader);
    Py_CLEAR(self->names);
    Py_CLEAR(self->progress);
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
    for (size_t k = 0; k < 2; k++) {
        cio_free(self->batches[k].work);
        cio_free(self->batches[k].items);
        cio_free(self->batches[k].found);
    }
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
prepare_batch(struct many_batch *batch)
{
    const size_t n = CIO_ZIP_BATCH_MEMBERS;

    batch->work = cio_sys->malloc(n * sizeof *batch->work);
    batch->items = cio_sys->malloc(n * sizeof *batch->items);
    batch->found = cio_sys->malloc(n * sizeof *batch->found);
    return batch->work == NULL || batch->items == NULL || batch->found == NULL
               ? -1
               : 0;
}

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
    if (prepare_batch(&self->batches[0]) < 0
        || prepare_batch(&self->batches[1]) < 0) {
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
    self->now = &self->batches[0];
    self->next = &self->batches[1];
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
