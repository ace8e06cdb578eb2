/* SPDX-License-Identifier: MIT
 * cio_type.c - the table of fixed-size types.
 */
#include "data/cio_type.h"

const struct cio_type_info cio_types[CIO_TYPE_COUNT] = {
    [CIO_BOOL] = {"bool", 1, '?'},       [CIO_INT8] = {"int8", 1, 'b'},
    [CIO_UINT8] = {"uint8", 1, 'B'},     [CIO_INT16] = {"int16", 2, 'h'},
    [CIO_UINT16] = {"uint16", 2, 'H'},   [CIO_INT32] = {"int32", 4, 'i'},
    [CIO_UINT32] = {"uint32", 4, 'I'},   [CIO_INT64] = {"int64", 8, 'q'},
    [CIO_UINT64] = {"uint64", 8, 'Q'},   [CIO_FLOAT16] = {"float16", 2, 'e'},
    [CIO_FLOAT32] = {"float32", 4, 'f'}, [CIO_FLOAT64] = {"float64", 8, 'd'},
};
