/* SPDX-License-Identifier: MIT
 * pyio_data_record.h - formats of the struct module, parsed once per stream.
 *
 * Owner    A stream owns its few parsed formats; lookups are by the format
 *          object itself, which callers mostly have as a constant.
 */
#ifndef PYIO_DATA_RECORD_H
#define PYIO_DATA_RECORD_H

#include "glue/base/pyio.h"

#include "data/cio_format.h"

struct data_record {
    PyObject *text;  /* owned; the format as given. NULL: free */
    PyObject *other; /* owned; a struct.Struct for what isn't ours, or NULL */
    size_t nbytes;
    bool swap;
    struct cio_format format;
};

#define DATA_RECORDS_KEPT 4

struct data_records {
    struct data_record kept[DATA_RECORDS_KEPT];
    unsigned turn; /* the one to give way next */
};

/* The record of a format; borrowed from *records, which is made on first use.
 * order: the stream's. */
struct data_record *data_record_of(struct data_records **records,
                                   PyObject *text, char order);
void data_record_clear(struct data_record *record);
void data_records_free(struct data_records *records);

/* Values to record->nbytes at out. StructRangeError (an OverflowError and a
 * struct.error), struct.error. May call Python. */
int data_record_pack(const struct data_record *record, uint8_t *out,
                     PyObject *const *values, Py_ssize_t nvalues);
/* Fills a new tuple from record->nbytes at data. Calls no code of the user's
 * for formats of ours. */
PyObject *data_record_new_tuple(const struct data_record *record);
int data_record_unpack(const struct data_record *record, const uint8_t *data,
                       PyObject *tuple);

#endif
