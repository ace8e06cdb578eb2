/* SPDX-License-Identifier: MIT
 * pyio_zip_tree.c - a folder that Python code writes into and never leaves.
 *
 * For members that C threads don't extract: those of other methods, of file
 * objects, and links. One file at a time.
 */
#include "glue/zip/pyio_zip_tree.h"
#include "glue/zip/pyio_zip.h"

#include <errno.h>
#include <string.h>

#include "zip/cio_extract.h"
#include "zip/cio_names.h"
#include "zip/cio_tree.h"

struct tree {
    PyObject_HEAD
    PyObject *target; /* owned; a str, for messages */
    struct cio_tree *core;
    struct cio_sink sink;
    PyObject *path; /* owned; bytes of the file under way; NULL: none */
};

PyObject *
pyio_tree_path(PyObject *target, const char *path)
{
    PyObject *const rest = PyUnicode_DecodeFSDefault(path);
    PyObject *full = NULL;

    if (rest != NULL) {
        full = *path == '\0' ? Py_NewRef(target)
                             : PyUnicode_FromFormat("%U/%U", target, rest);
        Py_DECREF(rest);
    }
    return full;
}

int
pyio_tree_raise(PyObject *target, const char *path, struct cio_done done)
{
    PyObject *const full = pyio_tree_path(target, path);
    const struct pyio_context context = {full, NULL, -1};
    PyObject *text, *arguments;

    if (full == NULL) {
        return -1;
    }
    if (done.status != CIO_ERR_SYS || done.sys_errno != ELOOP) {
        (void)pyio_check(NULL, done, &context);
        Py_DECREF(full);
        return -1;
    }
    text = PyUnicode_FromString("a symbolic link lies on the way: nothing is "
                                "written through it");
    arguments = text == NULL ? NULL : Py_BuildValue("iOO", ELOOP, text, full);
    if (arguments != NULL) {
        PyErr_SetObject(PyExc_OSError, arguments);
        Py_DECREF(arguments);
    }
    Py_XDECREF(text);
    Py_DECREF(full);
    return -1;
}

int
pyio_clean_path(PyObject *name, PyObject **path)
{
    PyObject *raw;
    Py_ssize_t nbytes;
    size_t length;

    *path = NULL;
    if (!PyUnicode_Check(name)) {
        return pyio_raise(PyExc_TypeError, "a member's name is a str");
    }
    raw = PyUnicode_EncodeFSDefault(name);
    if (raw == NULL) {
        return -1;
    }
    nbytes = PyBytes_GET_SIZE(raw);
    *path = PyBytes_FromStringAndSize(NULL, nbytes);
    if (*path == NULL) {
        Py_DECREF(raw);
        return -1;
    }
    length = cio_name_clean((const uint8_t *)PyBytes_AS_STRING(raw),
                            (size_t)nbytes, PyBytes_AS_STRING(*path));
    Py_DECREF(raw);
    return _PyBytes_Resize(path, (Py_ssize_t)length);
}

static int
raise_done(struct tree *self, PyObject *path, struct cio_done done)
{
    return pyio_tree_raise(self->target, PyBytes_AS_STRING(path), done);
}

/* ----------------------------------------------------------------- methods */

static int
tree_init(PyObject *op, PyObject *args, PyObject *kwargs)
{
    struct tree *const self = (struct tree *)op;
    PyObject *target;
    int fd;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "iU:_Tree", &fd, &target)) {
        return -1;
    }
    if (self->core != NULL) {
        return pyio_raise(PyExc_RuntimeError, "a _Tree is made once");
    }
    self->core = cio_tree_new(fd);
    if (self->core == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    self->sink.fd = -1;
    self->target = Py_NewRef(target);
    return 0;
}

static int
ready(struct tree *self, bool under_way)
{
    if (self->core == NULL || (self->path != NULL) != under_way) {
        return pyio_raise(PyExc_ValueError, under_way ? "no file was begun"
                                                      : "a file is under way");
    }
    return 0;
}

/* Nothing is under way, and path is one that a tree takes. */
static int
ready_for(struct tree *self, PyObject *path)
{
    if (ready(self, false) < 0) {
        return -1;
    }
    return PyBytes_Check(path)
               ? 0
               : pyio_raise(PyExc_TypeError, "a path in a _Tree is bytes");
}

static PyObject *
tree_folder(PyObject *op, PyObject *path)
{
    struct tree *const self = (struct tree *)op;
    struct cio_done done;

    if (ready_for(self, path) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_tree_make_folder(self->core, PyBytes_AS_STRING(path),
                                (size_t)PyBytes_GET_SIZE(path));
    Py_END_ALLOW_THREADS
    if (done.status != CIO_OK) {
        (void)raise_done(self, path, done);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
tree_begin(PyObject *op, PyObject *path)
{
    struct tree *const self = (struct tree *)op;
    struct cio_done done;

    if (ready_for(self, path) < 0) {
        return NULL;
    }
    self->path = Py_NewRef(path);
    Py_BEGIN_ALLOW_THREADS
    done = cio_sink_open(&self->sink, self->core, PyBytes_AS_STRING(path),
                         (size_t)PyBytes_GET_SIZE(path));
    Py_END_ALLOW_THREADS
    if (done.status != CIO_OK) {
        (void)raise_done(self, path, done);
        Py_CLEAR(self->path);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
tree_write(PyObject *op, PyObject *data)
{
    struct tree *const self = (struct tree *)op;
    struct cio_done done;
    Py_buffer view;

    if (ready(self, true) < 0
        || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_sink_write(&self->sink, view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    if (done.status != CIO_OK) {
        (void)raise_done(self, self->path, done);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* mode and mtime as ints, or None. */
static int
as_attributes(PyObject *const *args, struct cio_attributes *attributes)
{
    *attributes = (struct cio_attributes){0};
    if (args[0] != Py_None) {
        attributes->has_mode = true;
        attributes->mode = (mode_t)PyLong_AsLong(args[0]);
    }
    if (args[1] != Py_None) {
        attributes->has_mtime = true;
        attributes->mtime = PyLong_AsLongLong(args[1]);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
tree_finish(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct tree *const self = (struct tree *)op;
    struct cio_attributes attributes;
    struct cio_done done;
    PyObject *path;

    if (nargs != 2) {
        return PyErr_Format(PyExc_TypeError, "finish takes mode and mtime");
    }
    if (ready(self, true) < 0 || as_attributes(args, &attributes) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_sink_finish(&self->sink, &attributes);
    Py_END_ALLOW_THREADS
    path = self->path;
    self->path = NULL;
    if (done.status != CIO_OK) {
        (void)raise_done(self, path, done);
        Py_DECREF(path);
        return NULL;
    }
    Py_DECREF(path);
    Py_RETURN_NONE;
}

static PyObject *
tree_drop(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct tree *const self = (struct tree *)op;

    if (self->path != NULL) {
        cio_sink_drop(&self->sink);
        Py_CLEAR(self->path);
    }
    Py_RETURN_NONE;
}

static PyObject *
tree_link(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct tree *const self = (struct tree *)op;
    struct cio_done done;
    const char *p;
    size_t depth = 0;

    if (nargs != 2 || !PyBytes_Check(args[0]) || !PyBytes_Check(args[1])) {
        return PyErr_Format(PyExc_TypeError, "link takes a path and a text");
    }
    if (ready(self, false) < 0) {
        return NULL;
    }
    for (p = PyBytes_AS_STRING(args[0]); *p != '\0'; p++) {
        depth += *p == '/';
    }
    if (PyBytes_GET_SIZE(args[1]) >= CIO_PATH_NBYTES
        || !cio_name_link_inside((const uint8_t *)PyBytes_AS_STRING(args[1]),
                                 (size_t)PyBytes_GET_SIZE(args[1]), depth)) {
        Py_RETURN_FALSE;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_tree_link(self->core, PyBytes_AS_STRING(args[0]),
                         (size_t)PyBytes_GET_SIZE(args[0]),
                         PyBytes_AS_STRING(args[1]));
    Py_END_ALLOW_THREADS
    if (done.status != CIO_OK) {
        (void)raise_done(self, args[0], done);
        return NULL;
    }
    Py_RETURN_TRUE;
}

static PyObject *
tree_attributes(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct tree *const self = (struct tree *)op;
    struct cio_attributes attributes;
    struct cio_done done;

    if (nargs != 3 || !PyBytes_Check(args[0])) {
        return PyErr_Format(PyExc_TypeError,
                            "attributes takes a path, mode and mtime");
    }
    if (ready(self, false) < 0 || as_attributes(args + 1, &attributes) < 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    done = cio_tree_set_folder(self->core, PyBytes_AS_STRING(args[0]),
                               (size_t)PyBytes_GET_SIZE(args[0]), &attributes);
    Py_END_ALLOW_THREADS
    if (done.status != CIO_OK) {
        (void)raise_done(self, args[0], done);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
clean_path(PyObject *mod, PyObject *name)
{
    PyObject *path;

    (void)mod;
    return pyio_clean_path(name, &path) < 0 ? NULL : path;
}

/* -------------------------------------------------------------------- type */

static void
tree_dealloc(PyObject *op)
{
    struct tree *const self = (struct tree *)op;
    PyTypeObject *const type = Py_TYPE(op);

    if (self->path != NULL) {
        cio_sink_drop(&self->sink);
        Py_CLEAR(self->path);
    }
    cio_tree_free(self->core);
    Py_CLEAR(self->target);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef tree_methods[] = {
    {"folder", tree_folder, METH_O, NULL},
    {"begin", tree_begin, METH_O, NULL},
    {"write", tree_write, METH_O, NULL},
    {"finish", PYIO_AS_METHOD(tree_finish), METH_FASTCALL, NULL},
    {"drop", tree_drop, METH_NOARGS, NULL},
    {"link", PYIO_AS_METHOD(tree_link), METH_FASTCALL, NULL},
    {"attributes", PYIO_AS_METHOD(tree_attributes), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tree_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR("_Tree(descriptor, path, /)\n--\n\n"
                       "A folder that is written into and never left. "
                       "Private.")},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, tree_init},
    {Py_tp_dealloc, tree_dealloc},
    {Py_tp_methods, tree_methods},
    {0, NULL},
};

static PyType_Spec tree_spec = {
    .name = "pyio_chunked._core._Tree",
    .basicsize = sizeof(struct tree),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tree_slots,
};

static PyMethodDef functions[] = {
    {"_clean_path", clean_path, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_tree(PyObject *mod, struct pyio_state *st)
{
    PyTypeObject *type = NULL;
    int result;

    (void)st;
    if (pyio_add_functions(mod, functions) < 0) {
        return -1;
    }
    result = pyio_add_type(mod, &tree_spec, NULL, &type);
    Py_XDECREF(type);
    return result;
}
