/* SPDX-License-Identifier: MIT
 * pyio_compat.h - differences between CPython 3.11 and 3.14, and nothing else.
 */
#ifndef PYIO_COMPAT_H
#define PYIO_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

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

/* The value of an int of at most two digits (60 bits), which most are: without
 * a call, and without a branch on its size and sign, which random numbers make
 * a processor guess wrong. false for any other object. */
static inline bool
pyio_long_short(PyObject *object, int64_t *value)
{
    const PyLongObject *const number = (PyLongObject *)object;
    const digit *digits;
    uint64_t magnitude, negative;
    size_t n;

    if (!PyLong_CheckExact(object)) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030C0000
    n = number->long_value.lv_tag >> 3;
    negative = (number->long_value.lv_tag & 2) >> 1;
    digits = number->long_value.ob_digit;
#else
    negative = Py_SIZE(number) < 0;
    n = (size_t)(negative ? -Py_SIZE(number) : Py_SIZE(number));
    digits = number->ob_digit;
#endif
    if (n > 2) {
        return false;
    }
    n = n == 2; /* index of the last digit; zero has one digit as well */
    magnitude =
        digits[0] | ((uint64_t)digits[n] & (0 - (uint64_t)n)) << PyLong_SHIFT;
    *value = (int64_t)((magnitude ^ (0 - negative)) + negative);
    return true;
}

#endif
