/* SPDX-License-Identifier: MIT
 * pyio_zip_test.c - ZipFile.testzip: all members by worker threads, nothing
 * kept.
 */
#include "glue/zip/pyio_zip_profile.h"
#include "glue/zip/pyio_zip_reader.h"
#include "glue/zip/pyio_zip_run.h"

#include <string.h>

#include "base/cio_bytes.h"

struct test {
    PyObject *op;
    struct pyio_archive *archive;
    struct cio_batch_item *work;
    size_t count;
    uint32_t next; /* index of the first member behind the batch */
    unsigned threads;
    struct pyio_slices slices;
};

/* 1: bad data, as zipfile's testzip takes it; 0: another exception is set. */
static int
is_bad_zip_file(void)
{
    PyObject *const failure = pyio_exception_take();
    PyObject *const mod = PyImport_ImportModule("zipfile");
    PyObject *class = NULL;
    int is = 0;

    if (mod != NULL) {
        class = PyObject_GetAttrString(mod, "BadZipFile");
        Py_DECREF(mod);
    }
    if (class != NULL) {
        is = PyObject_IsInstance(failure, class);
        Py_DECREF(class);
    }
    if (is == 1) {
        Py_DECREF(failure);
        return 1;
    }
    PyErr_Clear();
    pyio_exception_give(failure);
    return 0;
}

/* Members that the batch can't do, one by one: 1 bad, 0 good, -1. */
static int
test_special(struct test *t, const struct cio_batch_item *item)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(t->op));
    PyObject *const name = pyio_archive_name(t->archive, item->entry.index);
    PyObject *stream = NULL, *piece = NULL;
    Py_ssize_t nbytes = 1;

    (void)st;
    if (name == NULL) {
        return -1;
    }
    stream = PyObject_CallMethod(t->op, "open", "O", name);
    while (stream != NULL && nbytes > 0) {
        Py_XDECREF(piece);
        piece = PyObject_CallMethod(stream, "read", "n", (Py_ssize_t)CIO_MIB);
        if (piece == NULL) {
            break;
        }
        nbytes = PyObject_Size(piece);
        t->slices.done += nbytes > 0 ? nbytes : 0;
    }
    Py_XDECREF(piece);
    if (stream != NULL) {
        PyObject *const before = pyio_exception_take();
        PyObject *const closed = PyObject_CallMethod(stream, "close", NULL);

        Py_XDECREF(closed);
        Py_DECREF(stream);
        if (before != NULL) {
            PyErr_Clear();
            pyio_exception_give(before);
        }
    }
    Py_DECREF(name);
    if (PyErr_Occurred()) {
        return is_bad_zip_file() ? 1 : -1;
    }
    return 0;
}

static bool
needs_special(const struct test *t, const struct cio_batch_item *item)
{
    const struct cio_entry *const entry = &item->entry;

    return t->archive->source != NULL || entry->end_off == entry->header_off
           || (entry->flags & CIO_ZIP_FLAG_ENCRYPTED) != 0
           || (entry->method != CIO_ZIP_STORED
               && entry->method != CIO_ZIP_DEFLATED);
}

static void
collect_tests(struct test *t)
{
    const struct cio_directory *const directory = &t->archive->directory;
    uint64_t nbytes = 0;

    t->count = 0;
    while (t->next < directory->count && t->count < CIO_ZIP_BATCH_MEMBERS
           && nbytes < CIO_ZIP_TEST_NBYTES) {
        struct cio_batch_item *const item = &t->work[t->count];
        struct cio_zip_info info;

        cio_directory_info(directory, t->next++, &info);
        if (info.member_flags & CIO_ZIP_MEMBER_SHADOWED) {
            continue; /* zipfile opens by name: it never sees these */
        }
        memset(item, 0, sizeof *item);
        cio_entry_of(directory, &info, &item->entry);
        item->done.status = needs_special(t, item) ? CIO_OK : CIO_MORE;
        nbytes += cio_min_u64(info.nbytes, CIO_ZIP_TEST_NBYTES);
        t->count++;
    }
}

/* The first bad member of a batch that ran: its name, NULL for none. */
static PyObject *
first_bad(struct test *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct cio_batch_item *const item = &t->work[i];
        int bad = 0;

        if (needs_special(t, item)) {
            bad = test_special(t, item);
        } else if (item->done.status != CIO_OK) {
            (void)pyio_zip_check(pyio_state_of(Py_TYPE(t->op)), t->archive,
                                 NULL, item->done, &item->problem);
            bad = is_bad_zip_file() ? 1 : -1;
        }
        if (bad < 0) {
            return NULL;
        }
        if (bad > 0) {
            return pyio_archive_name(t->archive, item->entry.index);
        }
    }
    return NULL;
}

static PyObject *
test_all(struct test *t)
{
    struct pyio_zip_run run;
    PyObject *bad = NULL;

    if (pyio_archive_order(t->archive) < 0) {
        return NULL;
    }
    while (bad == NULL && t->next < t->archive->directory.count) {
        collect_tests(t);
        if (t->count > 0) {
            pyio_zip_start(&run, t->archive, t->work, t->count,
                           t->count > 1 ? t->threads : 1);
            if (pyio_zip_finish(&run, &t->slices) < 0) {
                return NULL;
            }
        }
        bad = first_bad(t);
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (pyio_report(&t->slices, true) < 0) {
        Py_XDECREF(bad);
        return NULL;
    }
    return bad != NULL ? bad : Py_NewRef(Py_None);
}

const char pyio_zip_reader_testzip_doc[] =
    "testzip($self, *, workers=None, progress=None)\n--\n\n"
    "Read all members by C threads, compare sizes and CRCs; the name of "
    "the first\nbad one, or None. In place of zipfile's ZipFile.testzip.";

PyObject *
pyio_zip_reader_testzip(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                        PyObject *kwnames)
{
    static const char *const names[] = {"workers", "progress", NULL};
    static const struct pyio_signature signature = {"testzip", names, 0, 0};
    struct test t = {.op = op};
    PyObject *given[2], *progress = NULL, *result = NULL;
    unsigned workers;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || pyio_as_workers(given[0], &workers) < 0
        || (t.archive = pyio_zip_reader_archive(op)) == NULL) {
        return NULL;
    }
    if (t.archive->bounded
        && pyio_bounds_all(pyio_state_of(Py_TYPE(op)), t.archive) < 0) {
        pyio_archive_release(t.archive);
        return NULL;
    }
    t.threads = cio_workers_count(workers);
    t.slices.total = given[1] == NULL || given[1] == Py_None
                         ? -1
                         : pyio_zip_size(&t.archive->directory);
    t.work = cio_sys->malloc(CIO_ZIP_BATCH_MEMBERS * sizeof *t.work);
    if (t.work == NULL) {
        (void)PyErr_NoMemory();
    } else if (pyio_as_progress(given[1], t.slices.total, &progress) == 0) {
        t.slices.progress = progress;
        result = test_all(&t);
    }
    Py_XDECREF(progress);
    cio_free(t.work);
    pyio_archive_release(t.archive);
    return result;
}
