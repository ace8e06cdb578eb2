/* SPDX-License-Identifier: MIT
 * pyio_build_info.c - what this build linked and what this kernel has.
 */
#include "glue/base/pyio.h"
#include "glue/pyio_parts.h"

#include <errno.h>

#include "inflate/cio_engine.h"

/* A call that the kernel has answers EBADF for no descriptor. */
static bool
present(ssize_t result)
{
    return !(result < 0 && (errno == ENOSYS || errno == EOPNOTSUPP));
}

PyDoc_STRVAR(build_facts_doc,
             "_build_facts($module)\n--\n\n"
             "The facts of pyio_chunked.build_info(): (portable, libraries, "
             "engines, kernel).");

static PyObject *
build_facts(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    struct cio_engine_info info;
    off_t off = 0;
    char byte;

    cio_engine_info(&info);
    return Py_BuildValue(
        "O{szszsz}{sssssssssO}{sOsOsOsO}", CIO_PORTABLE ? Py_True : Py_False,
        "zlib", info.zlib, "libdeflate", info.libdeflate, "isal", info.isal,
        "whole", info.whole, "stream", info.stream, "raw", "zlib", "crc32",
        info.crc32, "isal_refused", info.isal_refused ? Py_True : Py_False,
        "copy_file_range",
        present(cio_sys->copy_file_range(-1, &off, -1, &off, 1)) ? Py_True
                                                                 : Py_False,
        "sendfile",
        present(cio_sys->sendfile(-1, -1, &off, 1)) ? Py_True : Py_False,
        "splice",
        present(cio_sys->splice(-1, &off, -1, &off, 1)) ? Py_True : Py_False,
        "read_nowait",
        present(cio_sys->pread_nowait(-1, &byte, 1, 0)) ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"_build_facts", build_facts, METH_NOARGS, build_facts_doc},
    {NULL, NULL, 0, NULL},
};

int
pyio_add_build_info(PyObject *mod, struct pyio_state *st)
{
    (void)st;
    return pyio_add_functions(mod, methods);
}
