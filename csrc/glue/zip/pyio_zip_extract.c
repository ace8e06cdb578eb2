/* SPDX-License-Identifier: MIT
 * pyio_zip_extract.c - members of an archive into files, a batch at a time.
 *
 * Names, limits and audit events are dealt with under the GIL; then it is
 * given up once for the whole batch, while C threads read, inflate and write.
 * What C can't extract (other methods, sources without a descriptor, links) is
 * handed back for pyio_chunked/_extract.py.
 */
#include "glue/zip/pyio_zip_extract.h"
#include "base/cio_bytes.h"
#include "glue/zip/pyio_zip_reader.h"
#include "glue/zip/pyio_zip_tree.h"

/* ------------------------------------------------------------------ wanted */

static int
find_wanted(struct extraction *x, PyObject *members)
{
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(members);

    x->wanted = cio_sys->calloc((size_t)count + 1, sizeof *x->wanted);
    if (x->wanted == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        struct wanted *const w = &x->wanted[i];

        w->what = PySequence_Fast_GET_ITEM(members, i);
        if (pyio_member_find(x->st, x->archive, w->what, &w->member) < 0) {
            return -1;
        }
        x->count = (uint32_t)i + 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ limits */

/* All of it, before the first file is made. */
static int
check_limits(struct extraction *x, const struct pyio_bounds *b)
{
    struct cio_entry entry;
    struct cio_zip_info info;
    PyObject *name, *what;
    uint32_t index;
    int result = pyio_bounds_directory(x->st, x->archive, b);

    x->total = 0;
    x->position = 0;
    while (result == 0
           && pyio_extraction_next(x, &entry, &index, &info, &name, &what)) {
        result =
            pyio_bounds_add(x->st, x->archive, b, &entry, name, &x->total);
        Py_XDECREF(name);
    }
    x->position = 0;
    return result;
}

/* --------------------------------------------------------------------- run */

/* A look at signals now and then: detached. */
static bool
run_slice(struct extraction *x, bool *working)
{
    const int64_t until = pyio_now_ns() + (int64_t)CIO_WAIT_MS * 1000000;

    while (*working) {
        *working = x->core.job.step(&x->core.job);
        if (pyio_now_ns() > until) {
            return false;
        }
    }
    return cio_job_join(&x->core.job, CIO_WAIT_MS);
}

/* Both the files that C threads have open and the message need the GIL. */
static int
raise_first(struct extraction *x)
{
    const size_t failed = atomic_load(&x->core.failed);
    const struct cio_extract_item *const item = &x->items[failed];

    return item->at_target
               ? pyio_tree_raise(x->target, item->path, item->done)
               : pyio_zip_check(x->st, x->archive, x->names[failed],
                                item->done, &item->problem);
}

static int
run_batch(struct extraction *x)
{
    const unsigned threads =
        x->item_count < CIO_EXTRACT_RUN && x->total < CIO_MIB ? 1 : x->threads;
    bool working = true, ended = false;
    int result = 0;

    if (x->item_count == 0) {
        return PyErr_CheckSignals();
    }
    cio_extract_next(&x->core, x->items, x->item_count, threads);
    cio_job_start(&x->core.job, threads);
    while (!ended) {
        Py_BEGIN_ALLOW_THREADS
        ended = run_slice(x, &working);
        Py_END_ALLOW_THREADS
        x->slices.done = (int64_t)atomic_load(&x->core.done_nbytes);
        if (result == 0
            && (PyErr_CheckSignals() < 0
                || pyio_report(&x->slices, false) < 0)) {
            cio_job_cancel(&x->core.job);
            working = false;
            result = -1;
        }
    }
    cio_extract_stop(&x->core);
    if (result == 0 && atomic_load(&x->core.failed) != SIZE_MAX) {
        result = raise_first(x);
    }
    return result;
}

static int
run_all(struct extraction *x)
{
    enum filled filled = FILLED;

    while (filled == FILLED || filled == FULL) {
        filled = pyio_extraction_fill(x);
        if (filled == FAILED) { /* what comes before it is extracted first */
            x->failure = pyio_exception_take();
        }
        if (run_batch(x) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------ method */

static void
extraction_free(struct extraction *x)
{
    cio_extract_end(&x->core);
    for (size_t i = 0; i < x->item_count; i++) {
        Py_CLEAR(x->names[i]);
    }
    if (x->wanted != NULL) {
        for (uint32_t i = 0; i < x->count; i++) {
            pyio_member_clear(&x->wanted[i].member);
        }
        cio_free(x->wanted);
    }
    cio_free(x->text);
    Py_XDECREF(x->leftovers);
    Py_XDECREF(x->folders);
    Py_XDECREF(x->failure);
    Py_XDECREF(x->slices.progress);
    cio_free(x);
}

static int
prepare(struct extraction *x, PyObject *members, PyObject *limits,
        PyObject *progress)
{
    struct pyio_bounds bounds;

    x->profile = pyio_archive_extraction(x->archive);
    x->leftovers = PyList_New(0);
    x->folders = PyList_New(0);
    if (x->profile == NULL || x->leftovers == NULL || x->folders == NULL) {
        return -1;
    }
    if (members != Py_None) {
        if (find_wanted(x, members) < 0) {
            return -1;
        }
    } else {
        x->count = x->archive->directory.count;
    }
    if (pyio_as_bounds(limits, &bounds) < 0
        || (x->archive->bounded && check_limits(x, &x->archive->bounds) < 0)
        || check_limits(x, &bounds) < 0) {
        return -1;
    }
    x->slices.total = (int64_t)cio_min_u64(x->total, INT64_MAX);
    if (pyio_as_progress(progress, x->slices.total, &x->slices.progress) < 0) {
        return -1;
    }
    if (!cio_extract_init(&x->core, x->threads, x->archive->fd, x->target_fd,
                          x->profile)) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* _extract(target_fd, target, members, pwd, threads, preserve, symlinks,
 * limits, progress) -> (leftovers, folders, done, total, progress,
 * what to raise behind the leftovers) */
PyObject *
pyio_zip_reader_extract(PyObject *op, PyObject *args)
{
    struct extraction *x = cio_sys->calloc(1, sizeof *x);
    PyObject *members, *pwd, *limits, *progress, *result = NULL;
    int preserve, symlinks, threads;

    if (x == NULL) {
        return PyErr_NoMemory();
    }
    x->st = pyio_state_of(Py_TYPE(op));
    x->archive = pyio_zip_reader_archive(op);
    if (x->archive == NULL
        || !PyArg_ParseTuple(args, "iUOOippOO:_extract", &x->target_fd,
                             &x->target, &members, &pwd, &threads, &preserve,
                             &symlinks, &limits, &progress)) {
        goto out;
    }
    x->preserve = preserve;
    x->symlinks = symlinks;
    x->threads = cio_workers_count((unsigned)threads);
    x->has_keys = pwd != Py_None;
    if (x->has_keys && pyio_zip_keys(pwd, &x->keys) < 0) {
        goto out;
    }
    if (prepare(x, members, limits, progress) < 0) {
        goto out;
    }
    if (run_all(x) < 0) {
        pyio_exception_attribute("transferred",
                                 PyLong_FromLongLong(x->slices.done));
        goto out;
    }
    result = Py_BuildValue(
        "OOLLOO", x->leftovers, x->folders, (long long)x->slices.done,
        (long long)x->slices.total,
        x->slices.progress != NULL ? x->slices.progress : Py_None,
        x->failure != NULL ? x->failure : Py_None);
out: {
    struct pyio_archive *const archive = x->archive;

    extraction_free(x);
    pyio_archive_release(archive);
}
    return result;
}
