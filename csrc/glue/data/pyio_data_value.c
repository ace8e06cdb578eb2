/* SPDX-License-Identifier: MIT
 * pyio_data_value.c - values of Python to bits and back, and what is raised
 * when they do not fit or do not come.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "data/cio_scalar.h"

/* --------------------------------------------------------------- values */

int
data_type_of(PyObject *name, enum cio_type *type)
{
    if (PyUnicode_Check(name)) {
        for (int i = 0; i < CIO_TYPE_COUNT; i++) {
            if (PyUnicode_CompareWithASCIIString(name, cio_types[i].name)
                == 0) {
                *type = (enum cio_type)i;
                return 0;
            }
        }
    }
    return pyio_raise(PyExc_ValueError,
                      "no type is named %R: bool, int8 to int64, uint8 to "
                      "uint64, float16 to float64",
                      name);
}

int
data_range_error(PyObject *value, enum cio_type type)
{
    return pyio_raise(PyExc_OverflowError, "%R does not fit %s", value,
                      cio_types[type].name);
}

static int
bits_of_int(PyObject *value, enum cio_type type, uint64_t *bits)
{
    const unsigned nbits = cio_types[type].nbytes * 8u;
    const bool is_signed = type == CIO_INT8 || type == CIO_INT16
                           || type == CIO_INT32 || type == CIO_INT64;
    PyObject *const index = PyNumber_Index(value);
    int overflow, result = 0;
    int64_t number;

    if (index == NULL) {
        return -1;
    }
    number = PyLong_AsLongLongAndOverflow(index, &overflow);
    *bits = (uint64_t)number;
    if (overflow > 0 && type == CIO_UINT64) {
        *bits = PyLong_AsUnsignedLongLong(index);
        if (*bits == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            result = data_range_error(index, type);
        }
    } else if (overflow != 0 || (!is_signed && number < 0)
               || (is_signed && nbits < 64
                   && (number >= (int64_t)1 << (nbits - 1)
                       || number < -((int64_t)1 << (nbits - 1))))
               || (!is_signed && nbits < 64
                   && number >= (int64_t)1 << nbits)) {
        result = data_range_error(index, type);
    }
    Py_DECREF(index);
    return result;
}

static int
bits_of_float(PyObject *value, enum cio_type type, uint64_t *bits)
{
    const double number = PyFloat_AsDouble(value);
    uint32_t bits32 = 0;
    uint16_t bits16 = 0;
    bool fits = true;

    if (number == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (type == CIO_FLOAT64) {
        *bits = cio_bits_of_double(number);
    } else if (type == CIO_FLOAT32) {
        fits = cio_float32_of_double(number, &bits32);
        *bits = bits32;
    } else {
        fits = cio_float16_of_double(number, &bits16);
        *bits = bits16;
    }
    return fits ? 0 : data_range_error(value, type);
}

int
data_bits_of(PyObject *value, enum cio_type type, uint64_t *bits)
{
    int truth;

    switch (type) {
    case CIO_BOOL:
        truth = PyObject_IsTrue(value);
        *bits = truth > 0;
        return truth < 0 ? -1 : 0;
    case CIO_FLOAT16:
    case CIO_FLOAT32:
    case CIO_FLOAT64:
        return bits_of_float(value, type, bits);
    case CIO_INT8:
    case CIO_UINT8:
    case CIO_INT16:
    case CIO_UINT16:
    case CIO_INT32:
    case CIO_UINT32:
    case CIO_INT64:
    case CIO_UINT64:
        return bits_of_int(value, type, bits);
    case CIO_TYPE_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

PyObject *
data_value_of(uint64_t bits, enum cio_type type)
{
    switch (type) {
    case CIO_BOOL:
        return PyBool_FromLong(bits != 0);
    case CIO_INT8:
        return PyLong_FromLong((int8_t)bits);
    case CIO_INT16:
        return PyLong_FromLong((int16_t)bits);
    case CIO_INT32:
        return PyLong_FromLong((int32_t)bits);
    case CIO_INT64:
        return PyLong_FromLongLong((int64_t)bits);
    case CIO_UINT8:
    case CIO_UINT16:
    case CIO_UINT32:
    case CIO_UINT64:
        return PyLong_FromUnsignedLongLong(bits);
    case CIO_FLOAT16:
        return PyFloat_FromDouble(cio_double_of_float16((uint16_t)bits));
    case CIO_FLOAT32:
        return PyFloat_FromDouble(cio_double_of_float32((uint32_t)bits));
    case CIO_FLOAT64:
        return PyFloat_FromDouble(cio_double_of_bits(bits));
    case CIO_TYPE_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

/* --------------------------------------------------------------- errors */

static PyObject *
expected_of(const struct data_short *what)
{
    PyObject *const length = PyLong_FromUnsignedLongLong(what->expected);
    PyObject *const prefix = PyLong_FromSize_t(what->prefix_nbytes);
    PyObject *const sum =
        length != NULL && prefix != NULL ? PyNumber_Add(length, prefix) : NULL;

    Py_XDECREF(length);
    Py_XDECREF(prefix);
    return sum;
}

int
data_short_read(struct pyio_state *st, const struct data_short *what)
{
    const size_t found = what->head_nbytes + what->body_nbytes;
    const size_t kept_nbytes = cio_min_size(found, CIO_DATA_PARTIAL_NBYTES);
    const size_t kept_head = cio_min_size(what->head_nbytes, kept_nbytes);
    PyObject *kept, *const expected = expected_of(what);

    if (expected == NULL) {
        return -1;
    }
    kept = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)kept_nbytes);
    if (kept == NULL) {
        Py_DECREF(expected);
        return -1;
    }
    if (kept_head != 0) {
        memcpy(PyBytes_AS_STRING(kept), what->head, kept_head);
    }
    if (kept_nbytes != kept_head) {
        memcpy(PyBytes_AS_STRING(kept) + kept_head, what->body,
               kept_nbytes - kept_head);
    }
    (void)pyio_raise(st->short_read_error,
                     "%s at offset %lld: expected %S bytes, found %llu",
                     what->name, (long long)what->offset, expected,
                     (unsigned long long)cio_max_u64(what->found, found));
    pyio_exception_attribute("partial", kept);
    pyio_exception_attribute("expected", expected);
    pyio_exception_attribute("offset", PyLong_FromLongLong(what->offset));
    return -1;
}
