/* SPDX-License-Identifier: MIT
 * pyio_base.c - what tests and build_info see of the base: faults, call
 * counts, worker threads.
 */
#include "glue/base/pyio.h"
#include "glue/pyio_parts.h"

#include <stdlib.h>

#include "base/cio_native.h"
#include "base/cio_workers.h"

static int
as_call(PyObject *name, enum cio_call *call)
{
    const char *const text = PyUnicode_AsUTF8(name);
    int found;

    if (text == NULL) {
        return -1;
    }
    found = cio_call_of_name(text);
    if (found < 0) {
        return pyio_raise(PyExc_ValueError, "no call is named %R", name);
    }
    *call = (enum cio_call)found;
    return 0;
}

PyDoc_STRVAR(fault_add_doc,
             "_fault_add($module, call, error=0, max_nbytes=0, first=1, "
             "times=1)\n--\n\n"
             "Make calls number first .. first+times-1 (from 1, counted from "
             "now) of\nthe named kind fail with errno `error`, or, with 0, "
             "move at most\nmax_nbytes. For tests: the table is the one that "
             "ships.");

static PyObject *
fault_add(PyObject *Py_UNUSED(mod), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"call",  "error", "max_nbytes",
                            "first", "times", NULL};
    struct cio_fault fault = {.first = 1, .times = 1};
    PyObject *name;
    Py_ssize_t max_nbytes = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|inII", names, &name,
                                     &fault.error, &max_nbytes, &fault.first,
                                     &fault.times)
        || as_call(name, &fault.call) < 0) {
        return NULL;
    }
    fault.max_nbytes = (size_t)max_nbytes;
    if (!cio_fault_add(&fault)) {
        PyErr_SetString(PyExc_RuntimeError, "too many faults");
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(fault_count_doc, "_fault_count($module)\n--\n\n"
                              "Count calls from now on; _fault_clear ends "
                              "it.");

static PyObject *
fault_count(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    cio_fault_count();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(fault_calls_doc,
             "_fault_calls($module)\n--\n\n"
             "dict of the calls counted since _fault_count or the first "
             "fault, by name,\nthose that were made.");

static PyObject *
fault_calls(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    PyObject *const counts = PyDict_New();

    for (int call = 0; call < CIO_CALL_COUNT && counts != NULL; call++) {
        const uint64_t n = cio_fault_calls((enum cio_call)call);
        PyObject *value;
        int set;

        if (n == 0) {
            continue;
        }
        value = PyLong_FromUnsignedLongLong(n);
        set = value == NULL
                  ? -1
                  : PyDict_SetItemString(
                        counts, cio_call_name((enum cio_call)call), value);
        Py_XDECREF(value);
        if (set < 0) {
            Py_DECREF(counts);
            return NULL;
        }
    }
    return counts;
}

PyDoc_STRVAR(fault_clear_doc, "_fault_clear($module)\n--\n\n"
                              "Forget all faults and counts.");

static PyObject *
fault_clear(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    cio_fault_clear();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(workers_running_doc, "_workers_running($module)\n--\n\n"
                                  "Number of C worker threads.");

static PyObject *
workers_running(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(cio_workers_running());
}

static PyMethodDef methods[] = {
    {"_fault_add", (PyCFunction)(void (*)(void))fault_add,
     METH_VARARGS | METH_KEYWORDS, fault_add_doc},
    {"_fault_count", fault_count, METH_NOARGS, fault_count_doc},
    {"_fault_calls", fault_calls, METH_NOARGS, fault_calls_doc},
    {"_fault_clear", fault_clear, METH_NOARGS, fault_clear_doc},
    {"_workers_running", workers_running, METH_NOARGS, workers_running_doc},
    {NULL, NULL, 0, NULL},
};

static PyObject *
workers_close(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS
    cio_workers_close();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Behind atexit's functions the interpreter ends daemon threads where they
 * are, with the jobs on their stacks that workers may be inside. */
static int
close_workers_at_exit(void)
{
    static PyMethodDef def = {"_workers_close", workers_close, METH_NOARGS,
                              NULL};
    PyObject *const mod = PyImport_ImportModule("atexit");
    PyObject *const function = PyCFunction_New(&def, NULL);
    PyObject *result = NULL;

    if (mod != NULL && function != NULL) {
        result = PyObject_CallMethod(mod, "register", "O", function);
    }
    Py_XDECREF(mod);
    Py_XDECREF(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static void
read_environment(void)
{
    const char *const text = getenv("PYIO_CHUNKED_WORKERS");
    const long cap = text == NULL ? 0 : strtol(text, NULL, 10);

    if (cap > 0 && cap <= 1024) {
        cio_workers_set_cap((unsigned)cap);
    }
}

int
pyio_add_base(PyObject *mod, struct pyio_state *st)
{
    static bool once; /* the threads are the process's, not a module's */

    (void)st;
    if (!once) {
        read_environment();
        /* where the main interpreter never imports this */
        if (Py_AtExit(cio_workers_stop) < 0) {
            return pyio_raise(PyExc_RuntimeError, "too many exit functions");
        }
        once = true;
    }
    if (PyInterpreterState_Get() == PyInterpreterState_Main()
        && close_workers_at_exit() < 0) {
        return -1;
    }
    if (PyModule_AddStringConstant(mod, "__version__", PYIO_VERSION) < 0) {
        return -1;
    }
    return pyio_add_functions(mod, methods);
}
