/* SPDX-License-Identifier: MIT
 * cio_type.h - the fixed-size types of typed streams, once for all who need a
 * name, a size or a code of them.
 *
 * Why      Writers, readers, arrays, struct formats and length prefixes speak
 *          of the same twelve types.
 * Units    Bytes.
 * Threads  Constants only.
 */
#ifndef CIO_TYPE_H
#define CIO_TYPE_H

#include <stdint.h>

enum cio_type {
    CIO_BOOL,
    CIO_INT8,
    CIO_UINT8,
    CIO_INT16,
    CIO_UINT16,
    CIO_INT32,
    CIO_UINT32,
    CIO_INT64,
    CIO_UINT64,
    CIO_FLOAT16,
    CIO_FLOAT32,
    CIO_FLOAT64,
    CIO_TYPE_COUNT,
};

struct cio_type_info {
    const char *name;
    uint8_t nbytes;
    char code; /* of the struct module, standard sizes */
};

extern const struct cio_type_info cio_types[CIO_TYPE_COUNT];

#endif
