/* SPDX-License-Identifier: MIT
 * pyio_errors.c - the one table from outcome to exception.
 */
#include "glue/base/pyio.h"

#include <errno.h>

int
pyio_raise(PyObject *type, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)PyErr_FormatV(type, format, arguments);
    va_end(arguments);
    return -1;
}

void
pyio_exception_attribute(const char *name, PyObject *value)
{
    PyObject *const exception = pyio_exception_take();

    /* An exception without __dict__ can't carry it: still the right one. */
    if (value == NULL || exception == NULL
        || PyObject_SetAttrString(exception, name, value) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(value);
    pyio_exception_give(exception);
}

static void
raise_os_error(int sys_errno, const struct pyio_context *context)
{
    errno = sys_errno;
    if (context != NULL && context->filename != NULL) {
        (void)PyErr_SetFromErrnoWithFilenameObjects(
            PyExc_OSError, context->filename, context->filename2);
    } else {
        (void)PyErr_SetFromErrno(PyExc_OSError);
    }
}

int
pyio_check(struct pyio_state *st, struct cio_done done,
           const struct pyio_context *context)
{
    (void)st;
    switch (done.status) {
    case CIO_OK:
    case CIO_EOF:
        return 0;
    case CIO_MORE:
        assert(PyErr_Occurred()); /* a handler or progress raised */
        break;
    case CIO_ERR_SYS:
        raise_os_error(done.sys_errno, context);
        break;
    case CIO_ERR_NOMEM:
        (void)PyErr_NoMemory();
        break;
    case CIO_ERR_DATA:
    case CIO_ERR_LIMIT:
        /* These need the words of their format, which its own file has. */
        PyErr_SetString(PyExc_SystemError,
                        "an outcome of a format reached pyio_check");
        break;
    }
    if (context != NULL && context->transferred >= 0) {
        pyio_exception_attribute("transferred",
                                 PyLong_FromLongLong(context->transferred));
    }
    return -1;
}
