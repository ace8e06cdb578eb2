/* SPDX-License-Identifier: MIT
 * pyio_zip_tree.h - paths below a target folder, for those who extract.
 *
 * Owner    References as the C API says.
 * Errors   -1 or NULL with an exception set.
 * Threads  With the GIL.
 */
#ifndef PYIO_ZIP_TREE_H
#define PYIO_ZIP_TREE_H

#include "glue/base/pyio.h"

/* A member's name as the path below the target that it leads to, in the file
 * system's encoding: *path is new bytes, empty where nothing is left. */
int pyio_clean_path(PyObject *name, PyObject **path);
/* target/path as str, for messages. */
PyObject *pyio_tree_path(PyObject *target, const char *path);
/* The OSError of a call about target/path; -1. */
int pyio_tree_raise(PyObject *target, const char *path, struct cio_done done);

#endif
