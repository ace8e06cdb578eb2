/* SPDX-License-Identifier: MIT
 * pyio_transfer_probe.c - what a transfer would do, and the thresholds that
 * say so.
 */
#include "glue/transfer/pyio_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "base/cio_thresholds.h"

PyDoc_STRVAR(is_plain_doc,
             "_is_plain($module, file, /)\n--\n\n"
             "Whether file is a binary file whose bytes are where its "
             "descriptor is, or\nan exact BytesIO.");

static PyObject *
is_plain(PyObject *mod, PyObject *object)
{
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_end end;
    int is;

    if (PyLong_Check(object)
        || PyObject_IsInstance(object, st->text_iobase) > 0) {
        Py_RETURN_FALSE;
    }
    pyio_end_init(&end, object);
    if (pyio_end_classify(st, &end) < 0) {
        return NULL;
    }
    (void)pyio_end_close(&end);
    is = end.kind == PYIO_STREAM_OBJECT ? pyio_is_bytes_io(object)
                                        : end.kind != PYIO_STREAM_PATH;
    return is < 0 ? NULL : PyBool_FromLong(is);
}

/* ------------------------------------------------------------------- probe */

/* What a path is as an end, without making or opening it: a missing target is
 * a new file. */
static int
inspect_path(struct pyio_end *end, struct cio_end *core, bool target)
{
    PyObject *bytes;
    struct stat st;
    int result, error;

    if (pyio_as_path(end->path, &bytes) < 0) {
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    result = cio_sys->fstatat(AT_FDCWD, PyBytes_AS_STRING(bytes), &st, 0);
    error = errno;
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    if (result < 0 && error == ENOENT && target) {
        memset(&st, 0, sizeof st);
        st.st_mode = S_IFREG;
    } else if (result < 0) {
        const struct pyio_context context = {end->path, NULL, -1};

        return pyio_check(NULL, cio_done_sys(error, 0), &context);
    }
    cio_end_of_stat(core, -1, &st, 0);
    return 0;
}

static int
inspect_end(struct pyio_state *st, struct pyio_end *end, struct cio_end *core,
            bool target)
{
    struct cio_done done;
    int seekable;

    if (pyio_end_classify(st, end) < 0) {
        return -1;
    }
    if (end->kind == PYIO_STREAM_PATH) {
        return inspect_path(end, core, target);
    }
    cio_end_of_caller(core);
    if (end->kind == PYIO_STREAM_OBJECT) {
        return 0;
    }
    if (!target
        && (end->kind == PYIO_STREAM_BUFFERED
            || end->kind == PYIO_STREAM_FILE)) {
        seekable = pyio_end_ask(end->object, "seekable");
        if (seekable <= 0) {
            return seekable;
        }
    }
    done = cio_end_open(core, end->fd, CIO_OFFSET_FOLLOW, -1);
    if (target && done.status == CIO_OK) {
        done = cio_end_as_target(core);
    }
    return pyio_check(st, done, NULL);
}

PyDoc_STRVAR(probe_doc,
             "probe($module, source, target)\n--\n\n"
             "The methods that transfer(source, target) would try, in the "
             "order of use.\n\n"
             "Nothing is opened, made or moved; a target path that doesn't "
             "exist counts\nas a new file. A method that is listed may still "
             "be refused by the file\nsystem, and then gives way to the "
             "next.");

static PyObject *
probe(PyObject *mod, PyObject *const *args, Py_ssize_t nargs,
      PyObject *kwnames)
{
    static const char *const names[] = {"source", "target", NULL};
    static const struct pyio_signature signature = {"probe", names, 2, 2};
    struct pyio_state *st = pyio_state_of_module(mod);
    struct pyio_end source, target;
    struct cio_transfer t;
    PyObject *a[2], *result = NULL;
    enum cio_verdict verdict;

    if (pyio_arguments(&signature, args, nargs, kwnames, a) < 0) {
        return NULL;
    }
    pyio_end_init(&source, a[0]);
    pyio_end_init(&target, a[1]);
    cio_transfer_init(&t);
    if (inspect_end(st, &source, &t.source, false) < 0
        || inspect_end(st, &target, &t.target, true) < 0) {
        goto out;
    }
    t.truncate =
        target.kind == PYIO_STREAM_PATH && t.target.kind == CIO_END_FILE;
    verdict = cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO);
    if (verdict == CIO_PLAN_DIRECTORY) {
        const struct pyio_context context = {source.path, NULL, -1};

        (void)pyio_check(st, cio_done_sys(EISDIR, 0), &context);
        goto out;
    }
    result = PyTuple_New(t.route_count);
    for (unsigned i = 0; i < t.route_count && result != NULL; i++) {
        PyObject *const name =
            PyUnicode_InternFromString(cio_route_names[t.routes[i]]);

        if (name == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, name);
        }
    }
out:
    (void)pyio_end_close(&source);
    (void)pyio_end_close(&target);
    return result;
}

/* -------------------------------------------------------------- thresholds */

/* sys.maxsize and UINT64_MAX both mean never. */
static PyObject *
size_of_threshold(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(
        value > (uint64_t)PY_SSIZE_T_MAX ? (uint64_t)PY_SSIZE_T_MAX : value);
}

PyDoc_STRVAR(get_thresholds_doc,
             "_thresholds($module)\n--\n\n"
             "(mapped, parallel, huge_pages) in bytes; sys.maxsize: never.");

static PyObject *
get_thresholds(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue(
        "(NNN)", size_of_threshold(atomic_load(&cio_thresholds.mapped)),
        size_of_threshold(atomic_load(&cio_thresholds.parallel)),
        size_of_threshold(atomic_load(&cio_thresholds.huge_pages)));
}

PyDoc_STRVAR(set_thresholds_doc,
             "_set_thresholds($module, mapped, parallel, huge_pages, /)\n"
             "--\n\nIn bytes; None leaves one as it is.");

static PyObject *
set_thresholds(PyObject *Py_UNUSED(mod), PyObject *const *args,
               Py_ssize_t nargs)
{
    static const char *const names[] = {"mapped", "parallel", "huge_pages"};
    _Atomic uint64_t *const slots[] = {&cio_thresholds.mapped,
                                       &cio_thresholds.parallel,
                                       &cio_thresholds.huge_pages};
    int64_t values[3];

    if (nargs != 3) {
        PyErr_SetString(PyExc_TypeError, "three values are needed");
        return NULL;
    }
    for (int i = 0; i < 3; i++) { /* all are checked before one is set */
        if (pyio_as_optional_offset(args[i], names[i], &values[i]) < 0) {
            return NULL;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (values[i] >= 0) {
            atomic_store(slots[i], values[i] >= PY_SSIZE_T_MAX
                                       ? UINT64_MAX
                                       : (uint64_t)values[i]);
        }
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(set_transfer_type_doc,
             "_set_transfer_type($module, type, /)\n--\n\n"
             "The tuple subclass with four fields that results are made of.");

static PyObject *
set_transfer_type(PyObject *mod, PyObject *type)
{
    struct pyio_state *st = pyio_state_of_module(mod);

    if (!PyType_Check(type)
        || !PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a subclass of tuple is needed");
        return NULL;
    }
    Py_XSETREF(st->transfer_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"probe", (PyCFunction)(void (*)(void))probe,
     METH_FASTCALL | METH_KEYWORDS, probe_doc},
    {"_is_plain", is_plain, METH_O, is_plain_doc},
    {"_thresholds", get_thresholds, METH_NOARGS, get_thresholds_doc},
    {"_set_thresholds", (PyCFunction)(void (*)(void))set_thresholds,
     METH_FASTCALL, set_thresholds_doc},
    {"_set_transfer_type", set_transfer_type, METH_O, set_transfer_type_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_probe(PyObject *mod)
{
    return pyio_add_functions(mod, methods);
}
