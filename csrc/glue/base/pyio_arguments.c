/* SPDX-License-Identifier: MIT
 * pyio_arguments.c - arguments by position and name, and their values.
 */
#include "glue/base/pyio.h"

#include <string.h>

static int
count_names(const struct pyio_signature *signature)
{
    int n = 0;

    while (signature->names[n] != NULL) {
        n++;
    }
    return n;
}

static int
place_keyword(const struct pyio_signature *signature, PyObject *key,
              PyObject *value, PyObject **out)
{
    for (int i = 0; signature->names[i] != NULL; i++) {
        if (PyUnicode_CompareWithASCIIString(key, signature->names[i]) != 0) {
            continue;
        }
        if (out[i] != NULL) {
            return pyio_raise(PyExc_TypeError,
                              "%s() got multiple values for argument '%U'",
                              signature->function, key);
        }
        out[i] = value;
        return 0;
    }
    return pyio_raise(PyExc_TypeError,
                      "%s() got an unexpected keyword argument '%U'",
                      signature->function, key);
}

static int
place_positional(const struct pyio_signature *signature, Py_ssize_t nargs,
                 PyObject **out)
{
    const int n = count_names(signature);

    if (nargs > signature->positional) {
        return pyio_raise(PyExc_TypeError,
                          "%s() takes at most %d positional argument%s "
                          "(%zd given)",
                          signature->function, signature->positional,
                          signature->positional == 1 ? "" : "s", nargs);
    }
    memset(out, 0, (size_t)n * sizeof *out);
    return 0;
}

static int
check_required(const struct pyio_signature *signature, PyObject **out)
{
    for (int i = 0; i < signature->required; i++) {
        if (out[i] == NULL) {
            return pyio_raise(PyExc_TypeError,
                              "%s() missing required argument '%s' (pos %d)",
                              signature->function, signature->names[i], i + 1);
        }
    }
    return 0;
}

int
pyio_arguments(const struct pyio_signature *signature, PyObject *const *args,
               Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    if (place_positional(signature, nargs, out) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        out[i] = args[i];
    }
    if (kwnames != NULL) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
            if (place_keyword(signature, PyTuple_GET_ITEM(kwnames, i),
                              args[nargs + i], out)
                < 0) {
                return -1;
            }
        }
    }
    return check_required(signature, out);
}

int
pyio_arguments_tuple(const struct pyio_signature *signature, PyObject *args,
                     PyObject *kwargs, PyObject **out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    if (place_positional(signature, PyTuple_GET_SIZE(args), out) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        out[i] = PyTuple_GET_ITEM(args, i);
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        if (!PyUnicode_Check(key)) {
            return pyio_raise(PyExc_TypeError, "keywords must be strings");
        }
        if (place_keyword(signature, key, value, out) < 0) {
            return -1;
        }
    }
    return check_required(signature, out);
}

/* An int of Python as int64; *overflow is its sign where it does not fit. */
static int
as_int64(PyObject *value, int64_t *result, int *overflow)
{
    PyObject *const index = PyNumber_Index(value);

    if (index == NULL) {
        return -1;
    }
    *result = PyLong_AsLongLongAndOverflow(index, overflow);
    Py_DECREF(index);
    return *result == -1 && PyErr_Occurred() ? -1 : 0;
}

int
pyio_as_size(PyObject *value, int64_t *size)
{
    int overflow = 0;

    if (value == NULL || value == Py_None) {
        *size = -1;
        return 0;
    }
    if (as_int64(value, size, &overflow) < 0) {
        return -1;
    }
    if (overflow > 0) {
        return pyio_raise(PyExc_OverflowError, "size %R is 2**63 or more",
                          value);
    }
    if (overflow < 0 || *size < -1) {
        return pyio_raise(PyExc_ValueError,
                          "size must be non-negative or -1, not %R", value);
    }
    return 0;
}

int
pyio_as_offset(PyObject *value, const char *name, int64_t *offset)
{
    int overflow = 0;

    if (as_int64(value, offset, &overflow) < 0) {
        return -1;
    }
    if (overflow > 0) {
        return pyio_raise(PyExc_OverflowError, "%s %R is 2**63 or more", name,
                          value);
    }
    if (overflow < 0 || *offset < 0) {
        return pyio_raise(PyExc_ValueError, "%s must be non-negative, not %R",
                          name, value);
    }
    return 0;
}

int
pyio_end_fits(int64_t off, int64_t nbytes)
{
    int64_t end;

    if (__builtin_add_overflow(off, nbytes, &end)) {
        return pyio_raise(PyExc_OverflowError,
                          "offset + size is 2**63 or more");
    }
    return 0;
}

int
pyio_as_bool(PyObject *object, bool *value)
{
    int truth;

    if (object == NULL) {
        return 0;
    }
    truth = PyObject_IsTrue(object);
    *value = truth > 0;
    return truth < 0 ? -1 : 0;
}

int
pyio_as_choice(PyObject *value, const char *name, const char *const *choices,
               int *index)
{
    PyObject *known;

    if (PyUnicode_Check(value)) {
        for (int i = 0; choices[i] != NULL; i++) {
            if (PyUnicode_CompareWithASCIIString(value, choices[i]) == 0) {
                *index = i;
                return 0;
            }
        }
    }
    known = PyUnicode_FromString(choices[0]);
    for (int i = 1; choices[i] != NULL && known != NULL; i++) {
        Py_SETREF(known, PyUnicode_FromFormat("%U, %s", known, choices[i]));
    }
    if (known != NULL) {
        (void)pyio_raise(PyExc_ValueError, "%s must be one of %U, not %R",
                         name, known, value);
        Py_DECREF(known);
    }
    return -1;
}

int
pyio_as_progress(PyObject *value, int64_t total, PyObject **progress)
{
    PyObject *adapter;

    *progress = NULL;
    if (value == NULL || value == Py_None || value == Py_False) {
        return 0;
    }
    if (value != Py_True) {
        if (!PyCallable_Check(value)) {
            return pyio_raise(PyExc_TypeError,
                              "progress must be None, True or callable, "
                              "not %R",
                              value);
        }
        *progress = Py_NewRef(value);
        return 0;
    }
    adapter = PyImport_ImportModule("pyio_chunked._progress");
    if (adapter == NULL) {
        return -1;
    }
    *progress =
        total < 0 ? PyObject_CallMethod(adapter, "bar", "O", Py_None)
                  : PyObject_CallMethod(adapter, "bar", "L", (long long)total);
    Py_DECREF(adapter);
    return *progress == NULL ? -1 : 0;
}
