/* SPDX-License-Identifier: MIT
 * pyio_zip.c - the ZIP reader's parts, in the order of the data flow.
 */
#include "glue/zip/pyio_zip.h"
#include "glue/pyio_parts.h"

int
pyio_add_zip(PyObject *mod, struct pyio_state *st)
{
    static int (*const add_part[])(PyObject *, struct pyio_state *) = {
        pyio_add_zip_archive, pyio_add_zip_stream, pyio_add_zip_reader,
        pyio_add_zip_many,    pyio_add_zip_ref,    pyio_add_tree,
    };

    for (size_t i = 0; i < Py_ARRAY_LENGTH(add_part); i++) {
        if (add_part[i](mod, st) < 0) {
            return -1;
        }
    }
    return 0;
}
