/* SPDX-License-Identifier: MIT
 * pyio_transfer.c - transfer: between two descriptors in one
 * loop, by calls where an end is a Python object.
 */
#include "glue/transfer/pyio_transfer.h"

#include <errno.h>

#include "glue/pyio_parts.h"

const char *const pyio_sparse_names[] = {"auto", "always", "never", NULL};

/* One transfer under way. */
struct run {
    struct pyio_state *st;
    struct cio_transfer t;
    struct pyio_end source, target;
    struct pyio_slices slices; /* of the whole; progress is reported here */
};

/* ------------------------------------------------------------- exceptions */

static int
raise_outcome(struct run *run, struct cio_done done)
{
    struct pyio_context context = {NULL, NULL, -1};
    PyObject *from = NULL, *to = NULL;

    if (done.status == CIO_ERR_SYS) {
        from = pyio_end_name(&run->source);
        to = pyio_end_name(&run->target);
        context.filename = from;
        context.filename2 = to;
    }
    (void)pyio_check(run->st, done, &context);
    Py_XDECREF(from);
    Py_XDECREF(to);
    return -1;
}

static int
raise_verdict(struct run *run, enum cio_verdict verdict, const char *method)
{
    struct pyio_context context = {NULL, NULL, -1};
    PyObject *name;

    switch (verdict) {
    case CIO_PLAN_OK:
        return 0;
    case CIO_PLAN_DIRECTORY:
        context.filename = name = pyio_end_name(&run->source);
        (void)pyio_check(run->st, cio_done_sys(EISDIR, 0), &context);
        Py_XDECREF(name);
        return -1;
    case CIO_PLAN_ENDLESS:
        return pyio_raise(PyExc_ValueError, "%R never ends: a count is needed",
                          run->source.object);
    case CIO_PLAN_OVERLAP:
        if (run->source.fd == run->target.fd) {
            return pyio_raise(PyExc_ValueError,
                              "the ranges overlap in one file: source %llu, "
                              "target %llu",
                              (unsigned long long)run->t.source.off,
                              (unsigned long long)run->t.target.off);
        }
        return pyio_raise_shutil("SameFileError",
                                 "%R and %R are the same file",
                                 run->source.object, run->target.object);
    case CIO_PLAN_NO_METHOD:
        return pyio_raise(run->st->unsupported,
                          "method '%s' can't be had between %R and %R", method,
                          run->source.object, run->target.object);
    }
    Py_UNREACHABLE();
}

/* ------------------------------------------------------------------ moving */

static struct cio_done
step_all(void *argument)
{
    return cio_transfer_step(argument);
}

static struct cio_done
step_push(void *argument)
{
    return cio_transfer_push(argument);
}

static struct cio_done
step_pull(void *argument)
{
    return cio_transfer_pull(argument);
}

/* What stays CIO_MORE has an exception set. */
static struct cio_done
run_detached(struct run *run, struct cio_done (*step)(void *))
{
    struct pyio_slices inner = {.step = step, .argument = &run->t};

    return pyio_run_slices(&inner);
}

/* read1: a pipe's buffered reader gives what is there. */
static int
pull_one(struct run *run, uint8_t *room, size_t nbytes, size_t *got)
{
    PyObject *const piece = PyObject_CallMethod(run->source.object, "read1",
                                                "n", (Py_ssize_t)nbytes);
    Py_buffer view;
    int result = 0;

    *got = 0;
    if (piece == NULL) {
        return -1;
    }
    if (piece == Py_None) {
        errno = EAGAIN;
        (void)PyErr_SetFromErrno(PyExc_OSError);
        result = -1;
    } else if (PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE) < 0) {
        result = -1;
    } else {
        if ((size_t)view.len > nbytes) {
            result =
                pyio_raise(PyExc_OSError, "read1() returned too much data");
        } else {
            memcpy(room, view.buf, (size_t)view.len);
            *got = (size_t)view.len;
        }
        PyBuffer_Release(&view);
    }
    Py_DECREF(piece);
    return result;
}

/* Bytes of the source become pending: 1, 0 at its end, -1. */
static int
pull_from_object(struct run *run)
{
    struct pyio_end *source = &run->source;
    size_t nbytes, got = 0;
    uint8_t *room;
    int result;

    if (source->pull == PYIO_PULL_MEMORY) {
        const uint64_t at = run->t.source.off;
        const uint64_t size = (uint64_t)source->memory.len;

        if (at >= size) {
            return 0;
        }
        nbytes = size - at < run->t.left ? (size_t)(size - at)
                                         : (size_t)run->t.left;
        cio_transfer_lend(&run->t, (const uint8_t *)source->memory.buf + at,
                          nbytes);
        return 1;
    }
    room = cio_transfer_room(&run->t, &nbytes);
    if (room == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (source->pull == PYIO_PULL_ONE) {
        result = pull_one(run, room, nbytes, &got);
    } else {
        result = pyio_object_read(run->st, source->object, room, nbytes, &got,
                                  NULL);
    }
    if (result == PYIO_KEPT) {
        /* Whoever kept it may still write there. */
        cio_buffer_abandon(run->t.buffer);
        run->t.buffer = NULL;
    }
    if (result < 0) {
        return -1;
    }
    cio_transfer_lend(&run->t, room, got);
    return got > 0;
}

static int
push_to_object(struct run *run)
{
    const uint8_t *data;
    size_t nbytes, put;

    while ((data = cio_transfer_pending(&run->t, &nbytes)) != NULL) {
        int result;

        if (nbytes > CIO_SLICE_NBYTES) {
            nbytes = CIO_SLICE_NBYTES;
        }
        result = pyio_object_write(run->st, run->target.object, data, nbytes,
                                   &put, NULL);
        if (result == PYIO_KEPT && run->source.pull != PYIO_PULL_MEMORY) {
            cio_buffer_abandon(run->t.buffer);
            run->t.buffer = NULL;
            cio_transfer_lend(&run->t, NULL, 0);
        }
        if (result < 0) {
            return -1;
        }
        if (put == 0) {
            return pyio_raise(PyExc_OSError,
                              "write() of %R accepted no byte of %zu",
                              run->target.object, nbytes);
        }
        cio_transfer_took(&run->t, put);
        if (PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    return 0;
}

/* One side, or both, is a Python object. */
static int
move_by_calls(struct run *run)
{
    while (run->t.left > 0) {
        struct cio_done done = {CIO_OK, 0, 0};
        int more = 1;

        if (run->t.source.kind == CIO_END_CALLER) {
            more = pull_from_object(run);
        } else {
            done = run_detached(run, step_pull);
            if (done.status == CIO_EOF) {
                more = 0;
            } else if (done.status != CIO_OK) {
                return raise_outcome(run, done);
            }
        }
        if (more <= 0) {
            if (more < 0) {
                return -1;
            }
            break;
        }
        if (run->t.target.kind == CIO_END_CALLER) {
            more = push_to_object(run);
        } else {
            done = run_detached(run, step_push);
            more = done.status == CIO_OK ? 0 : raise_outcome(run, done);
        }
        run->slices.done = (int64_t)run->t.count;
        if (more < 0 || PyErr_CheckSignals() < 0
            || pyio_report(&run->slices, false) < 0) {
            return -1;
        }
    }
    if (run->t.target.kind != CIO_END_CALLER) { /* nothing came: cut even so */
        const struct cio_done done = run_detached(run, step_push);

        if (done.status != CIO_OK) {
            return raise_outcome(run, done);
        }
    }
    return pyio_report(&run->slices, true);
}

static int
move(struct run *run)
{
    struct cio_done done;

    if (run->t.source.kind == CIO_END_CALLER
        || run->t.target.kind == CIO_END_CALLER) {
        return move_by_calls(run);
    }
    run->slices.step = step_all;
    run->slices.argument = &run->t;
    done = pyio_run_slices(&run->slices);
    return done.status == CIO_OK || done.status == CIO_EOF
               ? 0
               : raise_outcome(run, done);
}

/* --------------------------------------------------------------- transfer */

static int64_t
total_of(const struct run *run)
{
    int64_t ahead = -1;

    if (run->source.pull == PYIO_PULL_MEMORY) {
        ahead = (int64_t)run->source.memory.len - run->source.memory_at;
    } else if (run->t.source.kind == CIO_END_FILE && run->t.source.size > 0) {
        ahead = (int64_t)run->t.source.size - (int64_t)run->t.source.off;
    }
    if (ahead < 0) {
        return run->t.left == UINT64_MAX ? ahead : (int64_t)run->t.left;
    }
    return run->t.left < (uint64_t)ahead ? (int64_t)run->t.left : ahead;
}

/* After all outcomes: offsets, positions, the target of a failed copy. */
static int
end_run(struct run *run, int result)
{
    PyObject *const before = pyio_exception_take();
    struct cio_done done;

    Py_BEGIN_ALLOW_THREADS
    done = cio_transfer_end(&run->t);
    Py_END_ALLOW_THREADS
    pyio_exception_give(before);
    if (result == 0 && done.status != CIO_OK) {
        result = raise_outcome(run, done);
        pyio_transfer_attributes(&run->t);
    }
    if (pyio_end_settle(&run->source, &run->t.source) < 0) {
        result = -1;
    }
    if (pyio_end_settle(&run->target, &run->t.target) < 0) {
        result = -1;
    }
    return result;
}

static int
begin_run(struct run *run, enum cio_route method)
{
    enum cio_verdict verdict;

    if (pyio_end_classify(run->st, &run->source) < 0
        || pyio_end_classify(run->st, &run->target) < 0
        || pyio_source_open(run->st, &run->source, &run->t.source) < 0) {
        return -1;
    }
    /* Before a target is made or emptied for nothing. */
    if (run->t.source.kind == CIO_END_DIRECTORY) {
        return raise_verdict(run, CIO_PLAN_DIRECTORY, NULL);
    }
    if (run->t.left == UINT64_MAX && run->t.source.endless) {
        return raise_verdict(run, CIO_PLAN_ENDLESS, NULL);
    }
    if (pyio_target_open(run->st, &run->target, &run->t) < 0) {
        return -1;
    }
    verdict = cio_plan(&run->t, method, CIO_REFLINK_AUTO);
    return raise_verdict(run, verdict, cio_route_names[method]);
}

static PyObject *
run_transfer(struct run *run, enum cio_route method)
{
    PyObject *result = NULL;
    int status = begin_run(run, method);
    bool planned = status == 0;
    bool emptied;

    if (planned) {
        run->slices.total = total_of(run);
        status = move(run);
        if (status < 0) {
            pyio_transfer_attributes(&run->t);
        }
    }
    emptied = planned && !run->t.truncate && run->target.given < 0
              && run->target.opened && run->t.target.kind == CIO_END_FILE;
    status = end_run(run, status);
    if (status < 0 && run->t.count == 0 && (run->target.made || emptied)) {
        pyio_target_remove(&run->target);
    }
    if (pyio_end_close(&run->target) < 0) {
        status = -1;
    }
    if (pyio_end_close(&run->source) < 0) {
        status = -1;
    }
    if (status == 0) {
        result = pyio_transfer_result(run->st, &run->t);
    }
    return result;
}

enum {
    A_SOURCE,
    A_TARGET,
    A_COUNT,
    A_SOURCE_OFFSET,
    A_TARGET_OFFSET,
    A_METHOD,
    A_THRESHOLD,
    A_CHUNK_SIZE,
    A_SPARSE,
    A_PROGRESS,
    A_ALL
};
static const char *const transfer_names[] = {
    "source",        "target",   "count",     "source_offset",
    "target_offset", "method",   "threshold", "chunk_size",
    "sparse",        "progress", NULL,
};
static const struct pyio_signature transfer_signature = {"transfer",
                                                         transfer_names, 3, 2};

int
pyio_as_optional_offset(PyObject *value, const char *name, int64_t *offset)
{
    *offset = -1;
    return value == NULL || value == Py_None
               ? 0
               : pyio_as_offset(value, name, offset);
}

/* Ranges whose end no file can have. */
static int
check_range(int64_t offset, int64_t count)
{
    if (offset >= 0 && count >= 0 && offset > INT64_MAX - count) {
        return pyio_raise(PyExc_OverflowError,
                          "offset %lld + count %lld is above 2**63 - 1",
                          (long long)offset, (long long)count);
    }
    return 0;
}

static int
read_arguments(struct run *run, PyObject **a, int *method)
{
    struct cio_transfer *t = &run->t;
    int64_t count, threshold, chunk;
    int sparse = CIO_SPARSE_NEVER;

    *method = CIO_ROUTE_AUTO;
    if (pyio_as_optional_offset(a[A_COUNT], "count", &count) < 0
        || pyio_as_optional_offset(a[A_SOURCE_OFFSET], "source_offset",
                                   &run->source.given)
               < 0
        || pyio_as_optional_offset(a[A_TARGET_OFFSET], "target_offset",
                                   &run->target.given)
               < 0
        || check_range(run->source.given, count) < 0
        || check_range(run->target.given, count) < 0
        || pyio_as_optional_offset(a[A_THRESHOLD], "threshold", &threshold) < 0
        || pyio_as_optional_offset(a[A_CHUNK_SIZE], "chunk_size", &chunk) < 0
        || (a[A_METHOD] != NULL
            && pyio_as_choice(a[A_METHOD], "method", cio_route_names, method)
                   < 0)
        || (a[A_SPARSE] != NULL
            && pyio_as_choice(a[A_SPARSE], "sparse", pyio_sparse_names,
                              &sparse)
                   < 0)) {
        return -1;
    }
    if (chunk == 0) {
        return pyio_raise(PyExc_ValueError, "chunk_size must be at least 1");
    }
    t->sparse = (enum cio_sparse)sparse;
    if (count >= 0) {
        t->left = (uint64_t)count;
    }
    if (threshold >= 0) {
        t->threshold = (uint64_t)threshold;
    }
    if (chunk > 0 && (uint64_t)chunk < t->chunk_nbytes) {
        t->chunk_nbytes = (size_t)chunk;
    }
    return 0;
}

PyDoc_STRVAR(
    transfer_doc,
    "transfer($module, source, target, count=None, *, source_offset=None,\n"
    "         target_offset=None, method='auto', threshold=None,\n"
    "         chunk_size=None, sparse='never', progress=None)\n--\n\n"
    "Move up to count bytes (None: to the source's end); return a Transfer.\n"
    "\n"
    "source and target are paths, descriptors, sockets or binary file\n"
    "objects; text is a TypeError. Without an offset the position of an end\n"
    "is used, buffered bytes counted, and ends behind the last byte moved;\n"
    "with one it stays where it is. A path target is made, and emptied\n"
    "unless target_offset is given.\n\n"
    "method: 'auto', or one of 'reflink', 'copy_file_range', 'sendfile',\n"
    "'splice', 'mapped', 'chunked', which then has to serve\n"
    "(io.UnsupportedOperation, or the kernel's OSError). threshold: bytes\n"
    "from which 'mapped' may be used (None: thresholds().mapped).\n"
    "chunk_size: bytes of one read in 'chunked', 256 KiB at most. sparse:\n"
    "'auto' keeps holes, 'always' also makes holes of blocks of zeros,\n"
    "'never' fills them. progress: called with (bytes done, bytes in all or\n"
    "None), at most every 50 ms and once at the end; True is a tqdm bar.\n\n"
    "OSError, and what a signal handler or progress raises, carry\n"
    "transferred, source_offset and target_offset (positions reached, None\n"
    "where an end has none) and, of a source that can't seek, partial: bytes\n"
    "that were read and not written. ValueError: overlapping ranges of one\n"
    "descriptor, an endless device without a count. shutil.SameFileError:\n"
    "both are one file, before anything is truncated.");

static PyObject *
transfer(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
         PyObject *kwnames)
{
    struct run run;
    PyObject *a[A_ALL], *progress = NULL, *result = NULL;
    int method;

    if (pyio_arguments(&transfer_signature, args, nargs, kwnames, a) < 0) {
        return NULL;
    }
    memset(&run.slices, 0, sizeof run.slices);
    run.st = pyio_state_of_module(mod);
    cio_transfer_init(&run.t);
    cio_end_of_caller(&run.t.source);
    cio_end_of_caller(&run.t.target);
    pyio_end_init(&run.source, a[A_SOURCE]);
    pyio_end_init(&run.target, a[A_TARGET]);
    if (read_arguments(&run, a, &method) < 0) {
        return NULL;
    }
    if (a[A_PROGRESS] != NULL && a[A_PROGRESS] != Py_None) {
        if (pyio_as_progress(
                a[A_PROGRESS],
                run.t.left == UINT64_MAX ? -1 : (int64_t)run.t.left, &progress)
            < 0) {
            return NULL;
        }
        run.t.call_max_nbytes = CIO_CALL_PROGRESS_NBYTES;
    }
    run.slices.progress = progress;
    result = run_transfer(&run, (enum cio_route)method);
    Py_XDECREF(progress);
    return result;
}

static PyMethodDef methods[] = {
    {"transfer", (PyCFunction)(void (*)(void))transfer,
     METH_FASTCALL | METH_KEYWORDS, transfer_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_transfer(PyObject *mod, struct pyio_state *st)
{
    (void)st;
    if (pyio_add_functions(mod, methods) < 0) {
        return -1;
    }
    return pyio_add_copyfile(mod) < 0 ? -1 : pyio_add_probe(mod);
}
