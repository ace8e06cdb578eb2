/* SPDX-License-Identifier: MIT
 * pyio_data_get.c - DataReader's numbers.
 *
 * A fast path takes a value from the bytes at hand; reader_need fetches more.
 */
#include "glue/pyio_data.h"

#include "data/cio_scalar.h"

static inline bool
at_hand(const struct pyio_reader *r, size_t nbytes)
{
    return PYIO_LIKELY(stream_room(&r->s) >= nbytes)
           && pyio_lock_free(&r->s.head.lock);
}

#define GET_SCALAR(name, bits, make)                                          \
    static PyObject *read_##name(PyObject *op, PyObject *Py_UNUSED(ignored))  \
    {                                                                         \
        struct pyio_reader *const r = as_reader(op);                          \
        uint##bits##_t v;                                                     \
                                                                              \
        if (!at_hand(r, bits / 8) && reader_need(r, bits / 8, #name) < 0) {   \
            return NULL;                                                      \
        }                                                                     \
        v = cio_get##bits(r->s.next, r->s.swap);                              \
        r->s.next += bits / 8;                                                \
        return make;                                                          \
    }

GET_SCALAR(bool, 8, PyBool_FromLong(v))
GET_SCALAR(int8, 8, PyLong_FromLong((int8_t)v))
GET_SCALAR(uint8, 8, PyLong_FromLong(v))
GET_SCALAR(int16, 16, PyLong_FromLong((int16_t)v))
GET_SCALAR(uint16, 16, PyLong_FromLong(v))
GET_SCALAR(int32, 32, PyLong_FromLong((int32_t)v))
GET_SCALAR(uint32, 32, PyLong_FromUnsignedLong(v))
GET_SCALAR(int64, 64, PyLong_FromLongLong((int64_t)v))
GET_SCALAR(uint64, 64, PyLong_FromUnsignedLongLong(v))
GET_SCALAR(float16, 16, PyFloat_FromDouble(cio_double_of_float16(v)))
GET_SCALAR(float32, 32, PyFloat_FromDouble(cio_double_of_float32(v)))
GET_SCALAR(float64, 64, PyFloat_FromDouble(cio_double_of_bits(v)))

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
