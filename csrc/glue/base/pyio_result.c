/* SPDX-License-Identifier: MIT
 * pyio_result.c - a bytes object that grows with what arrives.
 */
#include "glue/base/pyio.h"

#include <stddef.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_thresholds.h"

/* Below this the interpreter shares bytes objects of one value. */
#define UNSHARED_NBYTES 2

static bool
refused(size_t capacity)
{
    return capacity > (size_t)PY_SSIZE_T_MAX - sizeof(PyBytesObject)
           || cio_sys->allow_result(capacity) < 0;
}

int
pyio_result_init(struct pyio_result *result, size_t capacity)
{
    memset(result, 0, sizeof *result);
    if (capacity < UNSHARED_NBYTES) {
        capacity = UNSHARED_NBYTES;
    }
    if (refused(capacity)) {
        (void)PyErr_NoMemory();
        return -1;
    }
    result->bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)capacity);
    if (result->bytes == NULL) {
        return -1;
    }
    result->data = (uint8_t *)PyBytes_AS_STRING(result->bytes);
    result->capacity = capacity;
    cio_advise_huge(result->data, capacity);
    return 0;
}

/* _PyBytes_Resize frees the object when it fails, and with it what arrived
 * from a pipe. This object is ours alone (one reference, not shared), so its
 * block may be moved as long as size, end and hash are kept. */
static int
resize(struct pyio_result *result, size_t capacity)
{
    PyBytesObject *const moved = PyObject_Realloc(
        result->bytes, offsetof(PyBytesObject, ob_sval) + capacity + 1);

    if (moved == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    result->bytes = (PyObject *)moved;
    Py_SET_SIZE(moved, (Py_ssize_t)capacity);
    moved->ob_sval[capacity] = '\0';
    result->data = (uint8_t *)moved->ob_sval;
    result->capacity = capacity;
    return 0;
}

int
pyio_result_grow(struct pyio_result *result, size_t limit)
{
    const size_t before = result->capacity;
    const size_t step = before < CIO_GROW_SLOW_NBYTES ? before : before / 2;
    size_t capacity = before + step;

    if (capacity < CIO_GROW_FIRST_NBYTES) {
        capacity = CIO_GROW_FIRST_NBYTES;
    }
    capacity = cio_min_size(capacity, limit);
    if (capacity <= before || refused(capacity)) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (resize(result, capacity) < 0) {
        return -1;
    }
    cio_advise_huge(result->data + result->nbytes, capacity - result->nbytes);
    return 0;
}

PyObject *
pyio_result_finish(struct pyio_result *result)
{
    PyObject *bytes;

    if (result->nbytes < UNSHARED_NBYTES) {
        bytes = PyBytes_FromStringAndSize((const char *)result->data,
                                          (Py_ssize_t)result->nbytes);
        pyio_result_drop(result);
        return bytes;
    }
    if (result->nbytes != result->capacity
        && resize(result, result->nbytes) < 0) {
        pyio_result_drop(result);
        return NULL;
    }
    bytes = result->bytes;
    result->bytes = NULL;
    result->data = NULL;
    return bytes;
}

void
pyio_result_drop(struct pyio_result *result)
{
    Py_CLEAR(result->bytes);
    result->data = NULL;
}
