/* SPDX-License-Identifier: MIT
 * pyio_transfer_copyfile.c - copyfile by shutil's rules, and the loop over a
 * folder's files.
 *
 * A small file is three audit events, two path conversions and one detached
 * call. What is rare (links as links) is Python: pyio_chunked._transfer.
 */
#include "glue/transfer/pyio_transfer.h"

#include <errno.h>
#include <fcntl.h>

static const char *const reflink_names[] = {"auto", "always", "never", NULL};

/* A regular copyfile of a path into a path. */
struct job {
    PyObject *given_source, *given_target; /* borrowed: the user's own */
    PyObject *source, *target;             /* owned: os.fspath of them */
    PyObject *source_bytes, *target_bytes; /* owned */
    struct cio_copy_options options;
    PyObject *progress; /* owned */
};

static int
choose(PyObject *value, const char *name, const char *const *choices,
       int *index)
{
    return value == NULL ? 0 : pyio_as_choice(value, name, choices, index);
}

static int
read_options(PyObject *reflink, PyObject *sparse, PyObject *method,
             struct cio_copy_options *options)
{
    int reflink_index = CIO_REFLINK_AUTO, sparse_index = CIO_SPARSE_AUTO;
    int method_index = CIO_ROUTE_AUTO;

    if (choose(reflink, "reflink", reflink_names, &reflink_index) < 0
        || choose(sparse, "sparse", pyio_sparse_names, &sparse_index) < 0
        || choose(method, "method", cio_route_names, &method_index) < 0) {
        return -1;
    }
    memset(options, 0, sizeof *options);
    options->method = (enum cio_route)method_index;
    options->reflink = (enum cio_reflink)reflink_index;
    options->sparse = (enum cio_sparse)sparse_index;
    return 0;
}

static int
audit_opens(PyObject *source, PyObject *target)
{
    if (PySys_Audit("open", "Osi", source, "r", O_RDONLY | O_CLOEXEC) < 0
        || PySys_Audit("open", "Osi", target, "w",
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
               < 0) {
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------- exceptions */

static int
raise_fault(struct pyio_state *st, enum cio_copy_fault fault,
            enum cio_route method, PyObject *source, PyObject *target)
{
    switch (fault) {
    case CIO_COPY_NO_FAULT:
        break;
    case CIO_COPY_SAME:
        return pyio_raise_shutil(
            "SameFileError", "%R and %R are the same file", source, target);
    case CIO_COPY_SOURCE_SPECIAL:
        return pyio_raise_shutil("SpecialFileError", "`%S` is a named pipe",
                                 source);
    case CIO_COPY_TARGET_SPECIAL:
        return pyio_raise_shutil("SpecialFileError", "`%S` is a named pipe",
                                 target);
    case CIO_COPY_ENDLESS:
        return pyio_raise(PyExc_ValueError, "%R never ends", source);
    case CIO_COPY_NO_METHOD:
        return pyio_raise(st->unsupported,
                          "method '%s' can't be had between %R and %R",
                          cio_route_names[method], source, target);
    }
    PyErr_SetString(PyExc_SystemError, "a copy failed without a fault");
    return -1;
}

/* builtins.open of "new/" says IsADirectoryError; shutil says what is meant.
 */
static int
raise_no_folder(const struct pyio_context *context, const char *path)
{
    struct stat st;
    PyObject *cause, *error;

    (void)pyio_check(NULL, cio_done_sys(EISDIR, 0), context);
    if (cio_sys->fstatat(AT_FDCWD, path, &st, 0) == 0) {
        return -1;
    }
    cause = pyio_exception_take();
    (void)pyio_raise(PyExc_FileNotFoundError, "Directory does not exist: %S",
                     context->filename);
    error = pyio_exception_take();
    PyException_SetCause(error, cause);
    pyio_exception_give(error);
    return -1;
}

static int
raise_failure(struct pyio_state *st, struct cio_done done,
              enum cio_where where, enum cio_copy_fault fault,
              enum cio_route method, PyObject *source, PyObject *target,
              PyObject *target_bytes)
{
    struct pyio_context context = {NULL, NULL, -1};

    if (done.status == CIO_ERR_DATA) {
        return raise_fault(st, fault, method, source, target);
    }
    switch (where) {
    case CIO_AT_SOURCE:
        context.filename = source;
        break;
    case CIO_AT_TARGET:
        context.filename = target;
        if (done.status == CIO_ERR_SYS && done.sys_errno == EISDIR) {
            return raise_no_folder(&context, PyBytes_AS_STRING(target_bytes));
        }
        break;
    case CIO_AT_BOTH:
        context.filename = source;
        context.filename2 = target;
        break;
    }
    return pyio_check(st, done, &context);
}

/* --------------------------------------------------------------- copyfile */

static struct cio_done
step(void *argument)
{
    return cio_copyfile_step(argument);
}

/* The total is known once the source is open. The last report comes before
 * the copy is ended: what raises there can still keep an atomic target. */
static struct cio_done
run_with_progress(struct cio_copyfile *copy, struct pyio_slices *slices)
{
    struct cio_done done;

    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_copyfile_step(copy);
        Py_END_ALLOW_THREADS
        if (copy->stage != CIO_COPY_OPEN && S_ISREG(copy->st.st_mode)
            && copy->st.st_size > 0) {
            slices->total = (int64_t)copy->st.st_size;
        }
        slices->done += (int64_t)done.nbytes;
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0
             && pyio_report(slices, copy->stage == CIO_COPY_MOVED) == 0);
    return done;
}

static PyObject *
run_job(struct pyio_state *st, struct job *job)
{
    struct cio_copyfile copy;
    struct pyio_slices slices = {.step = step, .argument = &copy, .total = -1};
    struct cio_done done;

    if (job->progress != NULL) {
        job->options.call_max_nbytes = CIO_CALL_PROGRESS_NBYTES;
        job->options.waits = true;
        slices.progress = job->progress;
    }
    cio_copyfile_init(&copy, PyBytes_AS_STRING(job->source_bytes),
                      PyBytes_AS_STRING(job->target_bytes), &job->options);
    done = job->progress == NULL ? pyio_run_slices(&slices)
                                 : run_with_progress(&copy, &slices);
    if (done.status == CIO_OK || done.status == CIO_EOF) {
        return pyio_transfer_result(st, &copy.transfer);
    }
    if (done.status == CIO_MORE) {
        PyObject *const exception = pyio_exception_take();

        Py_BEGIN_ALLOW_THREADS
        cio_copyfile_abandon(&copy);
        Py_END_ALLOW_THREADS
        pyio_exception_give(exception);
    } else if (done.status == CIO_ERR_DATA) {
        (void)raise_fault(st, copy.fault, job->options.method,
                          job->given_source, job->given_target);
    } else {
        (void)raise_failure(st, done, copy.where, copy.fault,
                            job->options.method, job->source, job->target,
                            job->target_bytes);
    }
    pyio_transfer_attributes(&copy.transfer);
    return NULL;
}

static void
drop_job(struct job *job)
{
    Py_CLEAR(job->progress);
    Py_CLEAR(job->source_bytes);
    Py_CLEAR(job->target_bytes);
    Py_CLEAR(job->source);
    Py_CLEAR(job->target);
}

static PyObject *
do_copyfile(struct pyio_state *st, struct job *job, PyObject *progress)
{
    PyObject *result = NULL;

    job->source = PyOS_FSPath(job->given_source);
    job->target = job->source == NULL ? NULL : PyOS_FSPath(job->given_target);
    if (job->target != NULL
        && pyio_as_path(job->source, &job->source_bytes) == 0
        && pyio_as_path(job->target, &job->target_bytes) == 0
        && pyio_as_progress(progress, -1, &job->progress) == 0
        && audit_opens(job->source, job->target) == 0) {
        result = run_job(st, job);
    }
    drop_job(job);
    return result;
}

enum {
    A_SRC,
    A_DST,
    A_FOLLOW,
    A_REFLINK,
    A_SPARSE,
    A_METHOD,
    A_ATOMIC,
    A_SYNC,
    A_PROGRESS,
    A_METADATA,
    A_ALL
};
static const char *const copyfile_names[] = {
    "src",    "dst",  "follow_symlinks", "reflink",  "sparse", "method",
    "atomic", "sync", "progress",        "metadata", NULL,
};

/* follow_symlinks=False: the rules of links. */
static PyObject *
copyfile_by_rules(PyObject *const *a)
{
    PyObject *const module = PyImport_ImportModule("pyio_chunked._transfer");
    PyObject *const function =
        module == NULL ? NULL
                       : PyObject_GetAttrString(module, "_copyfile_by_rules");
    PyObject *result = NULL, *options = PyDict_New();
    PyObject *paths = PyTuple_Pack(2, a[A_SRC], a[A_DST]);

    if (function == NULL || options == NULL || paths == NULL) {
        goto out;
    }
    for (int i = A_FOLLOW; i < A_METADATA; i++) {
        if (a[i] != NULL
            && PyDict_SetItemString(options, copyfile_names[i], a[i]) < 0) {
            goto out;
        }
    }
    result = PyObject_Call(function, paths, options);
out:
    Py_XDECREF(paths);
    Py_XDECREF(options);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyDoc_STRVAR(
    copyfile_doc,
    "copyfile($module, src, dst, *, follow_symlinks=True, reflink='auto',\n"
    "         sparse='auto', method='auto', atomic=False, sync=False,\n"
    "         progress=None)\n--\n\n"
    "Copy a file's bytes by shutil.copyfile's rules; return a Transfer.\n\n"
    "Refused before anything is truncated: shutil.SameFileError,\n"
    "shutil.SpecialFileError (a FIFO), IsADirectoryError. reflink: 'always'\n"
    "shares blocks or fails, 'never' makes no clone and no copy_file_range.\n"
    "sparse: 'auto' keeps holes, 'always' also makes holes of blocks of\n"
    "zeros, 'never' fills them. atomic: a temporary file in the same folder,\n"
    "then rename. sync: fsync of the file and its folder. progress is called\n"
    "with (bytes done, bytes in all).\n\n"
    "OSError and whatever a signal handler or progress raises carry\n"
    "transferred, source_offset and target_offset. A target that got nothing\n"
    "is removed, one that got something stays.");

static PyObject *
copyfile(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
         PyObject *kwnames)
{
    static const struct pyio_signature signature = {"copyfile", copyfile_names,
                                                    2, 2};
    PyObject *a[A_ALL];
    struct job job = {0};
    bool follow = true;

    if (kwnames == NULL && nargs == 2) { /* nothing to look up */
        memset(a, 0, sizeof a);
        a[A_SRC] = args[0];
        a[A_DST] = args[1];
    } else if (pyio_arguments(&signature, args, nargs, kwnames, a) < 0) {
        return NULL;
    }
    if (a[A_METADATA] != NULL) {
        (void)pyio_raise(PyExc_TypeError,
                         "copyfile() got an unexpected keyword argument "
                         "'metadata'");
        return NULL;
    }
    if (pyio_as_bool(a[A_FOLLOW], &follow) < 0
        || read_options(a[A_REFLINK], a[A_SPARSE], a[A_METHOD], &job.options)
               < 0
        || pyio_as_bool(a[A_ATOMIC], &job.options.atomic) < 0
        || pyio_as_bool(a[A_SYNC], &job.options.sync) < 0
        || PySys_Audit("shutil.copyfile", "OO", a[A_SRC], a[A_DST]) < 0) {
        return NULL;
    }
    if (!follow) {
        return copyfile_by_rules(a);
    }
    job.given_source = a[A_SRC];
    job.given_target = a[A_DST];
    return do_copyfile(pyio_state_of_module(mod), &job, a[A_PROGRESS]);
}

PyDoc_STRVAR(copy_one_doc,
             "_copy_one($module, src, dst, *, reflink='auto', sparse='auto', "
             "method='auto', atomic=False, sync=False, progress=None, "
             "metadata=False)\n"
             "--\n\n"
             "copyfile of followed paths without shutil's audit event; with "
             "metadata\nalso mode, times and extended attributes.");

static PyObject *
copy_one(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
         PyObject *kwnames)
{
    static const struct pyio_signature signature = {"_copy_one",
                                                    copyfile_names, 2, 2};
    PyObject *a[A_ALL];
    struct job job = {0};

    if (pyio_arguments(&signature, args, nargs, kwnames, a) < 0
        || read_options(a[A_REFLINK], a[A_SPARSE], a[A_METHOD], &job.options)
               < 0
        || pyio_as_bool(a[A_ATOMIC], &job.options.atomic) < 0
        || pyio_as_bool(a[A_SYNC], &job.options.sync) < 0
        || pyio_as_bool(a[A_METADATA], &job.options.metadata) < 0) {
        return NULL;
    }
    job.given_source = a[A_SRC];
    job.given_target = a[A_DST];
    return do_copyfile(pyio_state_of_module(mod), &job, a[A_PROGRESS]);
}

/* ------------------------------------------------------------------- tree */

struct tree {
    struct cio_copy_list list;
    PyObject *sources, *targets; /* borrowed sequences of the user's paths */
    PyObject *owned;             /* list of the bytes behind the items */
};

static int
fill_item(struct tree *tree, Py_ssize_t i)
{
    PyObject *const source = PyList_GET_ITEM(tree->sources, i);
    PyObject *const target = PyList_GET_ITEM(tree->targets, i);
    PyObject *bytes;

    if (PySys_Audit("shutil.copyfile", "OO", source, target) < 0
        || audit_opens(source, target) < 0
        || (tree->list.options.metadata
            && PySys_Audit("shutil.copystat", "OO", source, target) < 0)) {
        return -1;
    }
    if (pyio_as_path(source, &bytes) < 0) {
        return -1;
    }
    PyList_SET_ITEM(tree->owned, 2 * i, bytes);
    tree->list.items[i].source = PyBytes_AS_STRING(bytes);
    if (pyio_as_path(target, &bytes) < 0) {
        return -1;
    }
    PyList_SET_ITEM(tree->owned, 2 * i + 1, bytes);
    tree->list.items[i].target = PyBytes_AS_STRING(bytes);
    return 0;
}

static int
fill_tree(struct tree *tree)
{
    const Py_ssize_t n = PyList_GET_SIZE(tree->sources);

    if (PyList_GET_SIZE(tree->targets) != n) {
        return pyio_raise(PyExc_ValueError, "as many targets as sources");
    }
    tree->owned = PyList_New(2 * n);
    tree->list.items =
        cio_sys->calloc((size_t)n + 1, sizeof *tree->list.items);
    if (tree->owned == NULL || tree->list.items == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    tree->list.item_count = (size_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (fill_item(tree, i) < 0) {
            return -1;
        }
    }
    return 0;
}

static struct cio_done
step_tree(void *argument)
{
    return cio_copy_list_step(argument);
}

/* [(index, exception)] of the files that failed. */
static PyObject *
failures_of(struct pyio_state *st, struct tree *tree)
{
    PyObject *failures = PyList_New(0);

    for (size_t i = 0; i < tree->list.item_count && failures != NULL; i++) {
        const struct cio_copy_item *item = &tree->list.items[i];
        PyObject *exception, *pair;
        int appended;

        if (item->done.status == CIO_OK || item->done.status == CIO_EOF) {
            continue;
        }
        (void)raise_failure(
            st, item->done, item->where, item->fault,
            tree->list.options.method,
            PyList_GET_ITEM(tree->sources, (Py_ssize_t)i),
            PyList_GET_ITEM(tree->targets, (Py_ssize_t)i),
            PyList_GET_ITEM(tree->owned, 2 * (Py_ssize_t)i + 1));
        pyio_exception_attribute(
            "transferred", PyLong_FromUnsignedLongLong(item->done.nbytes));
        exception = pyio_exception_take();
        pair = Py_BuildValue("(nN)", (Py_ssize_t)i, exception);
        appended = pair == NULL ? -1 : PyList_Append(failures, pair);
        Py_XDECREF(pair);
        if (appended < 0) {
            Py_CLEAR(failures);
        }
    }
    return failures;
}

static PyObject *
run_tree(struct pyio_state *st, struct tree *tree, unsigned threads,
         PyObject *progress, int64_t begun, int64_t total)
{
    struct pyio_slices slices = {.step = step_tree,
                                 .argument = &tree->list,
                                 .progress = progress,
                                 .total = total,
                                 .done = begun};
    struct cio_done done;

    cio_copy_list_start(&tree->list, threads);
    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_copy_list_step(&tree->list);
        Py_END_ALLOW_THREADS
        slices.done = begun + (int64_t)atomic_load(&tree->list.nbytes);
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0
             && pyio_report(&slices, false) == 0);
    if (done.status == CIO_MORE) {
        PyObject *const exception = pyio_exception_take();

        Py_BEGIN_ALLOW_THREADS
        cio_copy_list_cancel(&tree->list);
        Py_END_ALLOW_THREADS
        pyio_exception_give(exception);
        pyio_exception_attribute(
            "transferred",
            PyLong_FromUnsignedLongLong((unsigned long long)begun
                                        + atomic_load(&tree->list.nbytes)));
        return NULL;
    }
    return Py_BuildValue("(KN)",
                         (unsigned long long)atomic_load(&tree->list.nbytes),
                         failures_of(st, tree));
}

PyDoc_STRVAR(
    copy_list_doc,
    "_copy_list($module, sources, targets, workers, options, progress, "
    "begun, total)\n--\n\n"
    "Copy each of the list sources to its target; (bytes, [(index, "
    "exception)]).\nworkers 0: as many as the machine gives. options: "
    "(reflink, sparse, method, sync,\natomic, metadata). begun: bytes of "
    "earlier "
    "lists, for progress; total -1: unknown.");

static PyObject *
copy_list(PyObject *mod, PyObject *args)
{
    PyObject *reflink, *sparse, *method, *progress, *result = NULL;
    struct tree *tree = PyMem_Calloc(1, sizeof *tree);
    int sync, atomic, metadata;
    unsigned workers;
    long long begun, total;

    if (tree == NULL) {
        return PyErr_NoMemory();
    }
    if (PyArg_ParseTuple(args, "O!O!I(OOOppp)OLL", &PyList_Type,
                         &tree->sources, &PyList_Type, &tree->targets,
                         &workers, &reflink, &sparse, &method, &sync, &atomic,
                         &metadata, &progress, &begun, &total)
        && read_options(reflink, sparse, method, &tree->list.options) == 0) {
        tree->list.options.sync = sync != 0;
        tree->list.options.atomic = atomic != 0;
        tree->list.options.metadata = metadata != 0;
        if (fill_tree(tree) == 0) {
            result = run_tree(
                pyio_state_of_module(mod), tree, cio_workers_count(workers),
                progress == Py_None ? NULL : progress, begun, total);
        }
    }
    Py_XDECREF(tree->owned);
    cio_free(tree->list.items);
    PyMem_Free(tree);
    return result;
}

static PyMethodDef methods[] = {
    {"copyfile", (PyCFunction)(void (*)(void))copyfile,
     METH_FASTCALL | METH_KEYWORDS, copyfile_doc},
    {"_copy_one", (PyCFunction)(void (*)(void))copy_one,
     METH_FASTCALL | METH_KEYWORDS, copy_one_doc},
    {"_copy_list", copy_list, METH_VARARGS, copy_list_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_copyfile(PyObject *mod)
{
    return pyio_add_functions(mod, methods);
}
