/* SPDX-License-Identifier: MIT
 * pyio_path.c - opening and closing as builtins.open does: audit event,
 * close-on-exec, EINTR, the user's own path in the error.
 */
#include "glue/base/pyio.h"

#include <errno.h>
#include <fcntl.h>

int
pyio_as_path(PyObject *path, PyObject **bytes)
{
    *bytes = NULL;
    return PyUnicode_FSConverter(path, bytes) ? 0 : -1;
}

/* `path` is str or bytes: builtins.open, too, tells audit hooks and errors
 * what os.fspath gave. */
static int
open_plain_path(PyObject *path, const char *mode, int flags, int create_mode)
{
    const struct pyio_context context = {path, NULL, -1};
    PyObject *bytes;
    int fd, sys_errno = 0;

    if (pyio_as_path(path, &bytes) < 0) {
        return -1;
    }
    flags |= O_CLOEXEC;
    if (PySys_Audit("open", "Osi", path, mode, flags) < 0) {
        Py_DECREF(bytes);
        return -1;
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        fd = cio_sys->openat(AT_FDCWD, PyBytes_AS_STRING(bytes), flags,
                             (mode_t)create_mode);
        sys_errno = fd < 0 ? errno : 0;
        Py_END_ALLOW_THREADS
    } while (sys_errno == EINTR && PyErr_CheckSignals() == 0);

    Py_DECREF(bytes);
    if (fd < 0 && sys_errno != EINTR) {
        return pyio_check(NULL, cio_done_sys(sys_errno, 0), &context);
    }
    return fd;
}

int
pyio_open(PyObject *path, const char *mode, int flags, int create_mode)
{
    PyObject *const plain = PyOS_FSPath(path);
    int fd;

    if (plain == NULL) {
        return -1;
    }
    fd = open_plain_path(plain, mode, flags, create_mode);
    Py_DECREF(plain);
    return fd;
}

static int
closed(int result, int sys_errno, PyObject *before)
{
    if (before != NULL) {
        pyio_exception_give(before);
        return 0;
    }
    if (result < 0 && sys_errno != EINTR) { /* closed on Linux all the same */
        return pyio_check(NULL, cio_done_sys(sys_errno, 0), NULL);
    }
    return 0;
}

int
pyio_close(int fd)
{
    int result, sys_errno;
    PyObject *const before = pyio_exception_take();

    Py_BEGIN_ALLOW_THREADS
    result = cio_sys->close(fd);
    sys_errno = errno;
    Py_END_ALLOW_THREADS
    return closed(result, sys_errno, before);
}

int
pyio_close_local(int fd)
{
    PyObject *const before = pyio_exception_take();
    const int result = cio_sys->close(fd);

    return closed(result, errno, before);
}
