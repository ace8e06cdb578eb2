/* SPDX-License-Identifier: MIT
 * pyio_transfer_result.c - how a transfer is told: the named tuple, and what
 * its exceptions carry.
 */
#include "glue/transfer/pyio_transfer.h"

int
pyio_raise_shutil(const char *name, const char *format, ...)
{
    PyObject *const module = PyImport_ImportModule("shutil");
    PyObject *type = NULL;
    va_list arguments;

    if (module != NULL) {
        type = PyObject_GetAttrString(module, name);
        Py_DECREF(module);
    }
    if (type != NULL) {
        va_start(arguments, format);
        (void)PyErr_FormatV(type, format, arguments);
        va_end(arguments);
        Py_DECREF(type);
    }
    return -1;
}

static PyObject *
position_of(const struct cio_end *end)
{
    return end->positional ? PyLong_FromUnsignedLongLong(end->off)
                           : Py_NewRef(Py_None);
}

void
pyio_transfer_attributes(const struct cio_transfer *t)
{
    size_t nbytes;
    const uint8_t *const pending = cio_transfer_pending(t, &nbytes);

    pyio_exception_attribute("transferred",
                             PyLong_FromUnsignedLongLong(t->count));
    pyio_exception_attribute("source_offset", position_of(&t->source));
    pyio_exception_attribute("target_offset", position_of(&t->target));
    /* What a pipe gave can't be read again. */
    if (pending != NULL && !t->source.positional) {
        pyio_exception_attribute(
            "partial", PyBytes_FromStringAndSize((const char *)pending,
                                                 (Py_ssize_t)nbytes));
    }
}

PyObject *
pyio_transfer_result(struct pyio_state *st, const struct cio_transfer *t)
{
    PyTypeObject *const type = st->transfer_type;
    PyObject *fallbacks = PyTuple_New(t->fallback_count), *result = NULL;
    PyObject *items[4] = {NULL, NULL, NULL, fallbacks};

    if (fallbacks == NULL) {
        return NULL;
    }
    for (unsigned i = 0; i < t->fallback_count; i++) {
        PyObject *const pair =
            Py_BuildValue("(si)", cio_route_names[t->fallbacks[i].route],
                          t->fallbacks[i].error);

        if (pair == NULL) {
            goto out;
        }
        PyTuple_SET_ITEM(fallbacks, i, pair);
    }
    items[0] = PyLong_FromUnsignedLongLong(t->count);
    items[1] = PyUnicode_InternFromString(cio_route_names[t->moved_by]);
    items[2] = PyLong_FromUnsignedLongLong(t->holes);
    if (items[0] == NULL || items[1] == NULL || items[2] == NULL) {
        goto out;
    }
    result = type->tp_alloc(type, 4); /* as tuple.__new__ of a subclass does */
    for (int i = 0; i < 4 && result != NULL; i++) {
        PyTuple_SET_ITEM(result, i, Py_NewRef(items[i]));
    }
out:
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(items[i]);
    }
    return result;
}
