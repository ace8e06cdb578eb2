/* SPDX-License-Identifier: MIT
 * pyio_data_number.c - the numbers of DataWriter and DataReader.
 *
 * A fast path neither calls Python nor detaches. The writer's: an exact int or
 * float in range, room in the buffer, nobody inside; then it is a compare, a
 * swap and a store, all else goes through writer_put. The reader's takes a
 * value from the bytes at hand; reader_need fetches more.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "data/cio_scalar.h"
#include "data/cio_varint.h"

/* ------------------------------------------------------------- writing */

static __attribute__((noinline)) PyObject *
put_slowly(struct pyio_data_writer *w, PyObject *value, enum cio_type type)
{
    const unsigned nbytes = cio_types[type].nbytes;
    uint8_t bytes[8];
    uint64_t bits;

    if (data_bits_of(value, type, &bits) < 0) {
        return NULL;
    }
    switch (nbytes) {
    case 1:
        cio_put8(bytes, (uint8_t)bits, w->s.swap);
        break;
    case 2:
        cio_put16(bytes, (uint16_t)bits, w->s.swap);
        break;
    case 4:
        cio_put32(bytes, (uint32_t)bits, w->s.swap);
        break;
    default:
        cio_put64(bytes, bits, w->s.swap);
        break;
    }
    return writer_put(w, "", 0, bytes, nbytes) < 0 ? NULL : Py_NewRef(Py_None);
}

#define PUT_INT(name, TYPE, bits, in_range)                                   \
    static PyObject *write_##name(PyObject *op, PyObject *value)              \
    {                                                                         \
        struct pyio_data_writer *const w = as_writer(op);                     \
        int64_t n;                                                            \
                                                                              \
        if (PYIO_LIKELY(stream_is_quick(&w->s, bits / 8)                      \
                        && pyio_long_short(value, &n) && (in_range))) {       \
            cio_put##bits(w->s.next, (uint##bits##_t)n, w->s.swap);           \
            w->s.next += bits / 8;                                            \
            Py_RETURN_NONE;                                                   \
        }                                                                     \
        return put_slowly(w, value, TYPE);                                    \
    }

PUT_INT(int8, CIO_INT8, 8, n == (int8_t)n)
PUT_INT(uint8, CIO_UINT8, 8, n == (uint8_t)n)
PUT_INT(int16, CIO_INT16, 16, n == (int16_t)n)
PUT_INT(uint16, CIO_UINT16, 16, n == (uint16_t)n)
PUT_INT(int32, CIO_INT32, 32, n == (int32_t)n)
PUT_INT(uint32, CIO_UINT32, 32, n == (uint32_t)n)
PUT_INT(int64, CIO_INT64, 64, true)
PUT_INT(uint64, CIO_UINT64, 64, n >= 0)

static PyObject *
write_bool(PyObject *op, PyObject *value)
{
    struct pyio_data_writer *const w = as_writer(op);

    if (PYIO_LIKELY(stream_is_quick(&w->s, 1) && PyBool_Check(value))) {
        *w->s.next++ = value == Py_True;
        Py_RETURN_NONE;
    }
    return put_slowly(w, value, CIO_BOOL);
}

static PyObject *
write_float64(PyObject *op, PyObject *value)
{
    struct pyio_data_writer *const w = as_writer(op);

    if (PYIO_LIKELY(stream_is_quick(&w->s, 8) && PyFloat_CheckExact(value))) {
        cio_put64(w->s.next, cio_bits_of_double(PyFloat_AS_DOUBLE(value)),
                  w->s.swap);
        w->s.next += 8;
        Py_RETURN_NONE;
    }
    return put_slowly(w, value, CIO_FLOAT64);
}

static PyObject *
write_float32(PyObject *op, PyObject *value)
{
    struct pyio_data_writer *const w = as_writer(op);
    uint32_t bits;

    if (PYIO_LIKELY(
            stream_is_quick(&w->s, 4) && PyFloat_CheckExact(value)
            && cio_float32_of_double(PyFloat_AS_DOUBLE(value), &bits))) {
        cio_put32(w->s.next, bits, w->s.swap);
        w->s.next += 4;
        Py_RETURN_NONE;
    }
    return put_slowly(w, value, CIO_FLOAT32);
}

static PyObject *
write_float16(PyObject *op, PyObject *value)
{
    return put_slowly(as_writer(op), value, CIO_FLOAT16);
}

/* ------------------------------------------------------------- varints */

static PyObject *
put_varint(struct pyio_data_writer *w, uint64_t number)
{
    uint8_t bytes[CIO_VARINT_MAX_NBYTES];
    const size_t nbytes = cio_varint_encode(bytes, number);

    return writer_put(w, "", 0, bytes, nbytes) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
write_uvarint(PyObject *op, PyObject *value)
{
    uint64_t number;

    return data_bits_of(value, CIO_UINT64, &number) < 0
               ? NULL
               : put_varint(as_writer(op), number);
}

static PyObject *
write_svarint(PyObject *op, PyObject *value)
{
    uint64_t number;

    return data_bits_of(value, CIO_INT64, &number) < 0
               ? NULL
               : put_varint(as_writer(op), cio_zigzag((int64_t)number));
}

#define WRITE(name, what)                                                     \
    {"write_" #name, write_##name, METH_O,                                    \
     PyDoc_STR("write_" #name "($self, value, /)\n--\n\n" what)}
#define WRITE_ORDERED(name)                                                   \
    WRITE(name, "One " #name " in the stream's byte order.\n"                 \
                "OverflowError: out of range; nothing is written.")

PyMethodDef pyio_data_put_methods[] = {
    WRITE(bool, "One byte: 1 for what is true, else 0."),
    WRITE_ORDERED(int8),
    WRITE_ORDERED(uint8),
    WRITE_ORDERED(int16),
    WRITE_ORDERED(uint16),
    WRITE_ORDERED(int32),
    WRITE_ORDERED(uint32),
    WRITE_ORDERED(int64),
    WRITE_ORDERED(uint64),
    WRITE_ORDERED(float16),
    WRITE_ORDERED(float32),
    WRITE_ORDERED(float64),
    WRITE(uvarint, "LEB128 of an unsigned 64-bit number: 1 to 10 bytes."),
    WRITE(svarint, "LEB128 of the zigzag of a signed 64-bit number."),
    {NULL, NULL, 0, NULL},
};

/* ------------------------------------------------------------- reading */

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
