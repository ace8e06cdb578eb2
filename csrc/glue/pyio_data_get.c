/* SPDX-License-Identifier: MIT
 * pyio_data_get.c - DataReader's numbers.
 *
 * A fast path takes a value from the bytes at hand; reader_need fetches more.
 */
#include "glue/pyio_data.h"

#include "data/cio_scalar.h"

DATA_GET(read_bool, "bool", 8, PyBool_FromLong(v))
DATA_GET(read_int8, "int8", 8, PyLong_FromLong((int8_t)v))
DATA_GET(read_uint8, "uint8", 8, PyLong_FromLong(v))
DATA_GET(read_int16, "int16", 16, PyLong_FromLong((int16_t)v))
DATA_GET(read_uint16, "uint16", 16, PyLong_FromLong(v))
DATA_GET(read_int32, "int32", 32, PyLong_FromLong((int32_t)v))
DATA_GET(read_uint32, "uint32", 32, PyLong_FromUnsignedLong(v))
DATA_GET(read_int64, "int64", 64, PyLong_FromLongLong((int64_t)v))
DATA_GET(read_uint64, "uint64", 64, PyLong_FromUnsignedLongLong(v))
DATA_GET(read_float16, "float16", 16,
         PyFloat_FromDouble(cio_double_of_float16(v)))
DATA_GET(read_float32, "float32", 32,
         PyFloat_FromDouble(cio_double_of_float32(v)))
DATA_GET(read_float64, "float64", 64,
         PyFloat_FromDouble(cio_double_of_bits(v)))

#define READ(name)                                                            \
    {"read_" #name, read_##name, METH_NOARGS,                                 \
     PyDoc_STR("read_" #name "($self, /)\n--\n\n"                             \
               "One " #name " in the stream's byte order.")}

PyMethodDef pyio_data_get_methods[] = {
    READ(bool),
    READ(int8),
    READ(uint8),
    READ(int16),
    READ(uint16),
    READ(int32),
    READ(uint32),
    READ(int64),
    READ(uint64),
    READ(float16),
    READ(float32),
    READ(float64),
    {NULL, NULL, 0, NULL},
};
