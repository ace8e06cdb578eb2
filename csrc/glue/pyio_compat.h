/* SPDX-License-Identifier: MIT
 * pyio_compat.h - differences between CPython 3.11 and 3.14, and nothing else.
 */
#ifndef PYIO_COMPAT_H
#define PYIO_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The exception that is set, as one object; NULL where none is. */
static inline PyObject *
pyio_exception_take(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        (void)PyException_SetTraceback(value, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return value;
#endif
}

/* Steals the exception; NULL clears. */
static inline void
pyio_exception_give(PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    if (exception == NULL) {
        PyErr_Clear();
        return;
    }
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception,
                  PyException_GetTraceback(exception));
#endif
}

#endif
