/* SPDX-License-Identifier: MIT
 * pyio_io.h - what the files of pyio_io say to each other.
 */
#ifndef PYIO_IO_H
#define PYIO_IO_H

#include "glue/base/pyio.h"

extern const char pyio_write_bytes_doc[];
PyObject *pyio_write_bytes(PyObject *mod, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *kwnames);

#endif
