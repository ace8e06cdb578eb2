/* SPDX-License-Identifier: MIT
 * pyio_data_record_io.c - records in and out of the streams: write_struct,
 * read_struct, iter_struct.
 */
#include "glue/data/pyio_data.h"

#include "glue/data/pyio_data_record.h"

/* Records up to this size are composed on the C stack. */
#define SMALL_NBYTES 512

static PyObject *
write_struct(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_data_writer *const w = as_writer(op);
    uint8_t small[SMALL_NBYTES], *whole = small;
    const struct data_record *found;
    struct data_record record;
    int result;

    if (nargs < 1) {
        return PyErr_Format(PyExc_TypeError,
                            "write_struct() missing required argument 'fmt' "
                            "(pos 1)");
    }
    found = data_record_of(&w->s.records, args[0], w->s.order);
    if (found == NULL) {
        return NULL;
    }
    /* A conversion may run code that uses this stream, and with it the formats
     * that it keeps: those that can are held. */
    record = *found;
    Py_XINCREF(record.other);
    if (record.nbytes > sizeof small) {
        whole = cio_sys->malloc(record.nbytes);
        if (whole == NULL) {
            Py_XDECREF(record.other);
            return PyErr_NoMemory();
        }
    }
    result = data_record_pack(&record, whole, args + 1, nargs - 1);
    if (result == 0) {
        result = writer_put(w, "", 0, whole, record.nbytes);
    }
    if (whole != small && result != PYIO_KEPT) {
        cio_free(whole);
    }
    Py_XDECREF(record.other);
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

/* A record of the struct module's: from bytes of its own. */
static PyObject *
read_other(struct pyio_data_reader *r, const struct data_record *record)
{
    PyObject *const unpack = PyObject_GetAttrString(record->other, "unpack");
    PyObject *bytes = NULL, *result = NULL;

    if (unpack != NULL && data_stream_enter(&r->s) == 0) {
        bytes = reader_bytes_locked(r, 0, record->nbytes, "struct");
        data_stream_leave(&r->s);
    }
    if (bytes != NULL) {
        result = PyObject_CallOneArg(unpack, bytes);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(unpack);
    return result;
}

static PyObject *
read_record(struct pyio_data_reader *r, const struct data_record *record)
{
    struct data_whole whole;
    PyObject *tuple;
    int result = -1;

    if (record->other != NULL) {
        return read_other(r, record);
    }
    /* First the tuple: making it may collect garbage, and so run code that
     * uses this stream. Numbers and bytes do not. */
    tuple = data_record_new_tuple(record);
    if (tuple == NULL) {
        return NULL;
    }
    if (PYIO_LIKELY(stream_room(&r->s) >= record->nbytes
                    && pyio_lock_free(&r->s.head.lock)
                    && pyio_stream_is_open(&r->s.head))) {
        result = data_record_unpack(record, r->s.next, tuple);
        r->s.next += result == 0 ? record->nbytes : 0;
    } else if (data_stream_enter(&r->s) == 0) {
        if (reader_whole_locked(r, 0, record->nbytes, "struct", &whole) == 0) {
            result = data_record_unpack(record, whole.data, tuple);
            reader_whole_done_locked(r, &whole, result == 0);
        }
        data_stream_leave(&r->s);
    }
    if (result < 0) {
        Py_DECREF(tuple);
        return NULL;
    }
    return tuple;
}

static PyObject *
read_struct(PyObject *op, PyObject *text)
{
    struct pyio_data_reader *const r = as_reader(op);
    const struct data_record *const found =
        data_record_of(&r->s.records, text, r->s.order);
    struct data_record record;
    PyObject *result;

    if (found == NULL) {
        return NULL;
    }
    record = *found;
    Py_XINCREF(record.other);
    result = read_record(r, &record);
    Py_XDECREF(record.other);
    return result;
}

/* -------------------------------------------------------------- iterator */

struct record_iterator {
    PyObject_HEAD
    PyObject *reader; /* owned; NULL at the end */
    struct data_record record;
};

static int
iterator_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((struct record_iterator *)op)->reader);
    return 0;
}

static int
iterator_clear(PyObject *op)
{
    struct record_iterator *const it = (struct record_iterator *)op;

    Py_CLEAR(it->reader);
    data_record_clear(&it->record);
    return 0;
}

static void
iterator_dealloc(PyObject *op)
{
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    (void)iterator_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
iterator_next(PyObject *op)
{
    struct record_iterator *const it = (struct record_iterator *)op;
    PyObject *const reader = Py_XNewRef(it->reader);
    PyObject *result = NULL;
    struct pyio_data_reader *r;
    bool at_end = false;
    int filled = 0;

    /* Held from here on: another thread may come to the end meanwhile. */
    if (reader == NULL) {
        return NULL;
    }
    r = as_reader(reader);
    if (stream_room(&r->s) == 0 || !pyio_lock_free(&r->s.head.lock)) {
        filled = data_stream_enter(&r->s);
        if (filled == 0) {
            filled = reader_fill_locked(r, 1);
            at_end = filled == 0 && stream_room(&r->s) == 0;
            data_stream_leave(&r->s);
        }
    }
    if (at_end) {
        Py_CLEAR(it->reader);
    } else if (filled == 0) {
        result = read_record(r, &it->record);
    }
    Py_DECREF(reader);
    return result;
}

static PyType_Slot iterator_slots[] = {
    {Py_tp_iter, PyObject_SelfIter},     {Py_tp_iternext, iterator_next},
    {Py_tp_traverse, iterator_traverse}, {Py_tp_clear, iterator_clear},
    {Py_tp_dealloc, iterator_dealloc},   {0, NULL},
};

PyType_Spec pyio_data_iterator_spec = {
    .name = "pyio_chunked._StructIterator",
    .basicsize = sizeof(struct record_iterator),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
             | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = iterator_slots,
};

static PyObject *
iter_struct(PyObject *op, PyObject *text)
{
    struct pyio_data_reader *const r = as_reader(op);
    PyTypeObject *const type = pyio_state_of(Py_TYPE(op))->data_iterator_type;
    const struct data_record *found;
    struct record_iterator *it;

    if (pyio_stream_check(&r->s.head) < 0) {
        return NULL;
    }
    found = data_record_of(&r->s.records, text, r->s.order);
    if (found == NULL) {
        return NULL;
    }
    if (found->nbytes == 0) {
        return PyErr_Format(PyExc_ValueError,
                            "records of no bytes would never end");
    }
    it = (struct record_iterator *)type->tp_alloc(type, 0);
    if (it == NULL) {
        return NULL;
    }
    it->reader = Py_NewRef(op);
    found = data_record_of(&r->s.records, text, r->s.order);
    if (found == NULL) {
        Py_DECREF(it);
        return NULL;
    }
    it->record = *found;
    Py_XINCREF(it->record.text);
    Py_XINCREF(it->record.other);
    return (PyObject *)it;
}

PyMethodDef pyio_data_record_methods[] = {
    {"write_struct", PYIO_AS_METHOD(write_struct), METH_FASTCALL,
     PyDoc_STR("write_struct($self, fmt, /, *values)\n--\n\n"
               "Values by a format of the struct module. Without a sign: the "
               "stream's order and\nstandard sizes. A value out of range is "
               "an OverflowError that is a struct.error\ntoo; nothing is "
               "written then.")},
    {NULL, NULL, 0, NULL},
};

PyMethodDef pyio_data_record_get_methods[] = {
    {"read_struct", read_struct, METH_O,
     PyDoc_STR("read_struct($self, fmt, /)\n--\n\n"
               "One record by a format of the struct module, as a tuple.")},
    {"iter_struct", iter_struct, METH_O,
     PyDoc_STR("iter_struct($self, fmt, /)\n--\n\n"
               "Records up to the end, read when asked for: tell() is behind "
               "the last one given.\nHalf a record at the end is "
               "ShortReadError.")},
    {NULL, NULL, 0, NULL},
};
