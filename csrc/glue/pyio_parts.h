/* SPDX-License-Identifier: MIT
 * pyio_parts.h - the parts of the module; one adder each, called in the order
 * of the data flow by pyio_core.c. Each part owns its functions and types.
 */
#ifndef PYIO_PARTS_H
#define PYIO_PARTS_H

#include "glue/base/pyio.h"

int pyio_add_base(PyObject *mod, struct pyio_state *st);
int pyio_add_build_info(PyObject *mod, struct pyio_state *st);
int pyio_add_io(PyObject *mod, struct pyio_state *st);
int pyio_add_transfer(PyObject *mod, struct pyio_state *st);
int pyio_add_inflate(PyObject *mod, struct pyio_state *st);
int pyio_add_zip(PyObject *mod, struct pyio_state *st);
int pyio_add_data(PyObject *mod, struct pyio_state *st);

#endif
