/* SPDX-License-Identifier: MIT
 * pyio_data_record.c - struct formats: found, packed, unpacked. Fixed sizes by
 * a plan of our own (data/cio_format.h), the rest by the struct module.
 */
#include "glue/data/pyio_data_record.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "data/cio_scalar.h"
#include "glue/data/pyio_data.h"

/* -------------------------------------------------------------- formats */

static const char *
text_of(PyObject *text, Py_ssize_t *nchars)
{
    if (PyBytes_Check(text)) {
        *nchars = PyBytes_GET_SIZE(text);
        return PyBytes_AS_STRING(text);
    }
    if (!PyUnicode_Check(text)) {
        (void)pyio_raise(PyExc_TypeError,
                         "a struct format is a str or bytes, not '%s'",
                         Py_TYPE(text)->tp_name);
        return NULL;
    }
    return PyUnicode_AsUTF8AndSize(text, nchars);
}

/* struct.Struct of the format, with the stream's order where it has none. */
static int
ask_struct(struct data_record *record, const char *text, Py_ssize_t nchars,
           char order)
{
    const size_t sign =
        nchars > 0 && *text != '\0' && strchr("@=<>!", *text) != NULL ? 0 : 1;
    PyObject *module, *size, *whole;

    /* As bytes, so that struct sees, and refuses, a NUL inside. */
    whole = PyBytes_FromStringAndSize(NULL, nchars + (Py_ssize_t)sign);
    if (whole == NULL) {
        return -1;
    }
    memset(PyBytes_AS_STRING(whole), order, sign);
    memcpy(PyBytes_AS_STRING(whole) + sign, text, (size_t)nchars);
    module = PyImport_ImportModule("struct");
    if (module == NULL) {
        Py_DECREF(whole);
        return -1;
    }
    record->other = PyObject_CallMethod(module, "Struct", "N", whole);
    Py_DECREF(module);
    if (record->other == NULL) {
        return -1;
    }
    size = PyObject_GetAttrString(record->other, "size");
    if (size == NULL) {
        return -1;
    }
    record->nbytes = PyLong_AsSize_t(size);
    Py_DECREF(size);
    return PyErr_Occurred() ? -1 : 0;
}

void
data_record_clear(struct data_record *record)
{
    Py_CLEAR(record->text);
    Py_CLEAR(record->other);
}

static int
parse(struct data_record *record, PyObject *text, char order)
{
    const char host = CIO_BIG_ENDIAN_HOST ? '>' : '<';
    Py_ssize_t nchars;
    const char *const chars = text_of(text, &nchars);
    char sign;

    memset(record, 0, sizeof *record);
    if (chars == NULL) {
        return -1;
    }
    if (cio_format_parse(chars, (size_t)nchars, &record->format) == CIO_OK) {
        sign = record->format.order == 0     ? order
               : record->format.order == '=' ? host
                                             : record->format.order;
        record->swap = sign != host;
        record->nbytes = record->format.nbytes;
    } else if (ask_struct(record, chars, nchars, order) < 0) {
        data_record_clear(record);
        return -1;
    }
    record->text = Py_NewRef(text);
    return 0;
}

struct data_record *
data_record_of(struct data_records **records, PyObject *text, char order)
{
    struct data_records *r = *records;
    struct data_record fresh;

    if (PYIO_LIKELY(r != NULL)) {
        for (unsigned i = 0; i < DATA_RECORDS_KEPT; i++) {
            if (r->kept[i].text == text) {
                return &r->kept[i];
            }
        }
    } else {
        r = *records = cio_sys->calloc(1, sizeof *r);
        if (r == NULL) {
            (void)PyErr_NoMemory();
            return NULL;
        }
    }
    if (parse(&fresh, text, order) < 0) {
        return NULL;
    }
    r->turn = (r->turn + 1) % DATA_RECORDS_KEPT;
    data_record_clear(&r->kept[r->turn]);
    r->kept[r->turn] = fresh;
    return &r->kept[r->turn];
}

void
data_records_free(struct data_records *records)
{
    if (records != NULL) {
        for (unsigned i = 0; i < DATA_RECORDS_KEPT; i++) {
            data_record_clear(&records->kept[i]);
        }
        cio_free(records);
    }
}

/* ---------------------------------------------------------------- packing */

static int
raise_struct_error(const char *name, const char *format, ...)
{
    PyObject *const module = PyImport_ImportModule("pyio_chunked._data");
    PyObject *const type =
        module == NULL ? NULL : PyObject_GetAttrString(module, name);
    va_list arguments;

    if (type != NULL) {
        va_start(arguments, format);
        (void)PyErr_FormatV(type, format, arguments);
        va_end(arguments);
    }
    Py_XDECREF(type);
    Py_XDECREF(module);
    return -1;
}

static inline void
put_bits(uint8_t *out, uint64_t bits, unsigned width, bool swap)
{
    switch (width) {
    case 1:
        *out = (uint8_t)bits;
        break;
    case 2:
        cio_put16(out, (uint16_t)bits, swap);
        break;
    case 4:
        cio_put32(out, (uint32_t)bits, swap);
        break;
    default:
        cio_put64(out, bits, swap);
        break;
    }
}

/* Conversions of any object, with the exceptions of struct. */
static int
pack_slowly(uint8_t *out, PyObject *value, enum cio_type type, bool swap)
{
    uint64_t bits;

    if (data_bits_of(value, type, &bits) < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            return raise_struct_error(
                "StructError", "required argument is not %s",
                type >= CIO_FLOAT16 ? "a float" : "an integer");
        }
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            return raise_struct_error("StructRangeError", "%R does not fit %s",
                                      value, cio_types[type].name);
        }
        return -1;
    }
    put_bits(out, bits, cio_types[type].nbytes, swap);
    return 0;
}

static inline int
pack_value(uint8_t *out, PyObject *value, enum cio_type type, bool swap)
{
    const unsigned width = cio_types[type].nbytes;
    const bool is_signed =
        type >= CIO_INT8 && type <= CIO_INT64 && (type - CIO_INT8) % 2 == 0;
    int64_t n;

    if (type == CIO_FLOAT64 && PyFloat_CheckExact(value)) {
        cio_put64(out, cio_bits_of_double(PyFloat_AS_DOUBLE(value)), swap);
        return 0;
    }
    if (type >= CIO_INT8 && type <= CIO_UINT64
        && PYIO_LIKELY(pyio_long_short(value, &n))) {
        const unsigned unused = 64 - 8 * width;
        const int64_t fits = is_signed
                                 ? (int64_t)((uint64_t)n << unused) >> unused
                                 : (int64_t)((uint64_t)n << unused >> unused);

        if (PYIO_LIKELY(fits == n && (is_signed || n >= 0))) {
            put_bits(out, (uint64_t)n, width, swap);
            return 0;
        }
    }
    return pack_slowly(out, value, type, swap);
}

/* One value of text: cut or filled with zeros, as struct does. */
static int
pack_text(uint8_t *out, PyObject *value, size_t nbytes, bool single)
{
    const char *data;
    size_t found;

    if (PyBytes_Check(value)) {
        data = PyBytes_AS_STRING(value);
        found = (size_t)PyBytes_GET_SIZE(value);
    } else if (!single && PyByteArray_Check(value)) {
        data = PyByteArray_AS_STRING(value);
        found = (size_t)PyByteArray_GET_SIZE(value);
    } else {
        data = NULL;
        found = 0;
    }
    if (data == NULL || (single && found != 1)) {
        return raise_struct_error(
            "StructError",
            single ? "char format requires a bytes object of length 1"
                   : "argument for 's' must be a bytes object");
    }
    found = cio_min_size(found, nbytes);
    memcpy(out, data, found);
    memset(out + found, 0, nbytes - found);
    return 0;
}

static int
pack_other(const struct data_record *record, uint8_t *out,
           PyObject *const *values, Py_ssize_t nvalues)
{
    PyObject *const pack = PyObject_GetAttrString(record->other, "pack");
    PyObject *bytes = NULL;
    int result = -1;

    if (pack != NULL) {
        bytes = PyObject_Vectorcall(pack, values, (size_t)nvalues, NULL);
    }
    if (bytes != NULL && PyBytes_Check(bytes)
        && (size_t)PyBytes_GET_SIZE(bytes) == record->nbytes) {
        memcpy(out, PyBytes_AS_STRING(bytes), record->nbytes);
        result = 0;
    }
    Py_XDECREF(bytes);
    Py_XDECREF(pack);
    return result;
}

static int
pack_item(const struct cio_format_item *item, uint8_t **out,
          PyObject *const **values, bool swap)
{
    const enum cio_type type = (enum cio_type)item->type;

    switch ((enum cio_format_kind)item->kind) {
    case CIO_FORMAT_PAD:
        memset(*out, 0, item->count);
        *out += item->count;
        return 0;
    case CIO_FORMAT_TEXT:
        if (pack_text(*out, *(*values)++, item->count, false) < 0) {
            return -1;
        }
        *out += item->count;
        return 0;
    case CIO_FORMAT_CHAR:
        for (uint32_t k = 0; k < item->count; k++) {
            if (pack_text((*out)++, *(*values)++, 1, true) < 0) {
                return -1;
            }
        }
        return 0;
    case CIO_FORMAT_VALUE:
        for (uint32_t k = 0; k < item->count; k++) {
            if (pack_value(*out, *(*values)++, type, swap) < 0) {
                return -1;
            }
            *out += cio_types[type].nbytes;
        }
        return 0;
    }
    Py_UNREACHABLE();
}

int
data_record_pack(const struct data_record *record, uint8_t *out,
                 PyObject *const *values, Py_ssize_t nvalues)
{
    const struct cio_format *const format = &record->format;

    if (record->other != NULL) {
        return pack_other(record, out, values, nvalues);
    }
    if ((size_t)nvalues != format->nvalues) {
        return raise_struct_error(
            "StructError", "pack expected %zu items for packing (got %zd)",
            format->nvalues, nvalues);
    }
    for (unsigned i = 0; i < format->nitems; i++) {
        if (pack_item(&format->items[i], &out, &values, record->swap) < 0) {
            return -1;
        }
    }
    return 0;
}

/* -------------------------------------------------------------- unpacking */

PyObject *
data_record_new_tuple(const struct data_record *record)
{
    return PyTuple_New(
        record->other != NULL ? 0 : (Py_ssize_t)record->format.nvalues);
}

static PyObject *
unpack_value(const uint8_t *data, enum cio_type type, bool swap)
{
    switch (cio_types[type].nbytes) {
    case 1:
        return data_value_of(*data, type);
    case 2:
        return data_value_of(cio_get16(data, swap), type);
    case 4:
        return data_value_of(cio_get32(data, swap), type);
    default:
        return data_value_of(cio_get64(data, swap), type);
    }
}

int
data_record_unpack(const struct data_record *record, const uint8_t *data,
                   PyObject *tuple)
{
    const struct cio_format *const format = &record->format;
    Py_ssize_t at = 0;

    for (unsigned i = 0; i < format->nitems; i++) {
        const struct cio_format_item item = format->items[i];
        const bool text = item.kind == CIO_FORMAT_TEXT;
        const bool chars = text || item.kind == CIO_FORMAT_CHAR;
        const size_t step = text ? item.count : cio_types[item.type].nbytes;

        if (item.kind == CIO_FORMAT_PAD) {
            data += item.count;
            continue;
        }
        for (uint32_t k = 0; k < (text ? 1 : item.count); k++, data += step) {
            PyObject *const value =
                chars ? PyBytes_FromStringAndSize((const char *)data,
                                                  (Py_ssize_t)step)
                      : unpack_value(data, (enum cio_type)item.type,
                                     record->swap);

            if (value == NULL) {
                return -1;
            }
            PyTuple_SET_ITEM(tuple, at++, value);
        }
    }
    return 0;
}
