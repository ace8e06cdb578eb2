/* SPDX-License-Identifier: MIT
 * pyio_core.c - the module: its parts, its state, and how both are found.
 */
#include "glue/base/pyio.h"
#include "glue/pyio_parts.h"

#include <string.h>

#include "base/cio_fork.h"

static int
fill_state(struct pyio_state *st)
{
    PyObject *const io = PyImport_ImportModule("_io");
    PyObject *const abc_io = io == NULL ? NULL : PyImport_ImportModule("io");
    int result = -1;

    if (abc_io == NULL) {
        goto out;
    }
#define FROM_IO(slot, name)                                                   \
    if ((st->slot = PyObject_GetAttrString(io, name)) == NULL) {              \
        goto out;                                                             \
    }
    FROM_IO(buffered_iobase, "_BufferedIOBase")
    FROM_IO(raw_iobase, "_RawIOBase")
    FROM_IO(text_iobase, "_TextIOBase")
    FROM_IO(file_io, "FileIO")
    FROM_IO(buffered_reader, "BufferedReader")
    FROM_IO(buffered_writer, "BufferedWriter")
    FROM_IO(buffered_random, "BufferedRandom")
    FROM_IO(unsupported, "UnsupportedOperation")
#undef FROM_IO
    st->io_buffered_iobase = PyObject_GetAttrString(abc_io, "BufferedIOBase");
    st->str_readinto = PyUnicode_InternFromString("readinto");
    st->str_read = PyUnicode_InternFromString("read");
    st->str_write = PyUnicode_InternFromString("write");
    st->str_fileno = PyUnicode_InternFromString("fileno");
    st->str_close = PyUnicode_InternFromString("close");
    if (st->io_buffered_iobase == NULL || st->str_readinto == NULL
        || st->str_read == NULL || st->str_write == NULL
        || st->str_fileno == NULL || st->str_close == NULL) {
        goto out;
    }
    result = 0;
out:
    Py_XDECREF(abc_io);
    Py_XDECREF(io);
    return result;
}

static int
core_exec(PyObject *mod)
{
    /* In the order of the data flow. */
    static int (*const add_part[])(PyObject *, struct pyio_state *) = {
        pyio_add_base, pyio_add_io,   pyio_add_transfer,   pyio_add_inflate,
        pyio_add_zip,  pyio_add_data, pyio_add_build_info,
    };
    struct pyio_state *st = pyio_state_of_module(mod);
    const int error = cio_fork_init();

    if (error != 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    if (fill_state(st) < 0) {
        return -1;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(add_part); i++) {
        if (add_part[i](mod, st) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
core_traverse(PyObject *mod, visitproc visit, void *arg)
{
    struct pyio_state *st = pyio_state_of_module(mod);

#define X(type, name) Py_VISIT(st->name);
    PYIO_STATE_OBJECTS(X)
#undef X
    return 0;
}

static int
core_clear(PyObject *mod)
{
    struct pyio_state *st = pyio_state_of_module(mod);

#define X(type, name) Py_CLEAR(st->name);
    PYIO_STATE_OBJECTS(X)
#undef X
    return 0;
}

static void
core_free(void *mod)
{
    (void)core_clear((PyObject *)mod);
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyio_chunked._core",
    .m_doc =
        PyDoc_STR("The C core of pyio_chunked. Private: use pyio_chunked."),
    .m_size = sizeof(struct pyio_state),
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}

struct pyio_state *
pyio_state_of_module(PyObject *mod)
{
    return PyModule_GetState(mod);
}

struct pyio_state *
pyio_state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModuleByDef(type, &core_module));
}

int
pyio_add_type(PyObject *mod, PyType_Spec *spec, PyObject *base,
              PyTypeObject **slot)
{
    PyObject *const type = PyType_FromModuleAndSpec(mod, spec, base);

    if (type == NULL) {
        return -1;
    }
    *slot = (PyTypeObject *)type; /* the state owns it from here */
    return PyModule_AddType(mod, *slot);
}

int
pyio_add_stream_type(PyObject *mod, PyType_Spec *spec, PyTypeObject **slot)
{
    struct pyio_state *st = pyio_state_of_module(mod);
    PyObject *registered;

    if (pyio_add_type(mod, spec, st->buffered_iobase, slot) < 0) {
        return -1;
    }
    registered = PyObject_CallMethod(st->io_buffered_iobase, "register", "O",
                                     (PyObject *)*slot);
    Py_XDECREF(registered);
    return registered == NULL ? -1 : 0;
}

int
pyio_add_functions(PyObject *mod, PyMethodDef *methods)
{
    PyObject *const name = PyUnicode_InternFromString("pyio_chunked");
    int result = -1;

    if (name == NULL || PyModule_AddFunctions(mod, methods) < 0) {
        goto out;
    }
    for (; methods->ml_name != NULL; methods++) {
        PyObject *function;
        int set;

        if (methods->ml_name[0] == '_') {
            continue;
        }
        function = PyObject_GetAttrString(mod, methods->ml_name);
        if (function == NULL) {
            goto out;
        }
        set = PyObject_SetAttrString(function, "__module__", name);
        Py_DECREF(function);
        if (set < 0) {
            goto out;
        }
    }
    result = 0;
out:
    Py_XDECREF(name);
    return result;
}
