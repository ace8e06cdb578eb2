/* SPDX-License-Identifier: MIT
 * pyio_data_array.c - arrays: many elements in one call, swapped on their way
 * where the stream's order differs from theirs.
 */
#include "glue/data/pyio_data.h"

#include <string.h>

#include "base/cio_bytes.h"
#include "data/cio_array.h"

/* ------------------------------------------------------------- elements */

/* How the elements of a Buffer lie in memory. */
struct elements {
    unsigned width; /* bytes that are swapped together */
    char order;     /* '<' or '>' */
    bool is_float, is_raw;
};

/* Formats of PEP 3118 with one code: "<i", "d", "Zd" (complex), "5w", "16s".
 * Native sizes are what itemsize says. */
static int
elements_of(const Py_buffer *view, struct elements *e)
{
    const char *format = view->format == NULL ? "B" : view->format;
    size_t width = (size_t)view->itemsize;
    char code;

    e->order = CIO_BIG_ENDIAN_HOST ? '>' : '<';
    if (*format == '<' || *format == '>' || *format == '!') {
        e->order = *format == '<' ? '<' : '>';
    }
    if (*format != '\0' && strchr("@=<>!", *format) != NULL) {
        format++;
    }
    format += strspn(format, "0123456789");
    if (*format == 'Z') {
        width /= 2;
        format++;
    }
    code = *format;
    if (code == '\0' || format[1] != '\0'
        || strchr("?cbBhHiIlLqQnNefdswu", code) == NULL) {
        return pyio_raise(PyExc_TypeError,
                          "elements of format '%s' have no fixed meaning in a "
                          "stream: write numbers, or bytes",
                          view->format);
    }
    e->is_float = strchr("efd", code) != NULL;
    e->is_raw = strchr("?cbBs", code) != NULL;
    if (code == 's') {
        width = 1;
    } else if (code == 'w' || (code == 'u' && width % 4 == 0)) {
        width = 4;
    } else if (code == 'u') {
        width = 2;
    }
    e->width = (unsigned)width;
    return width == 1 || width == 2 || width == 4 || width == 8
               ? 0
               : pyio_raise(PyExc_TypeError, "elements of %zu bytes", width);
}

/* Detached where it takes long; the memory is exported, the stream locked. */
static void
swap_locked(void *dst, const void *src, size_t nbytes, unsigned width)
{
    if (nbytes < CIO_MIB) {
        cio_array_swap(dst, src, nbytes, width);
        return;
    }
    Py_BEGIN_ALLOW_THREADS
    cio_array_swap(dst, src, nbytes, width);
    Py_END_ALLOW_THREADS
}

/* -------------------------------------------------------------- writing */

/* Unbuffered: swapped whole, one write. */
static int
put_swapped_whole_locked(struct pyio_data_writer *w, const Py_buffer *view,
                         unsigned width)
{
    uint8_t *const whole = cio_sys->malloc((size_t)view->len);
    int result;

    if (whole == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    swap_locked(whole, view->buf, (size_t)view->len, width);
    result = writer_send_locked(w, whole, (size_t)view->len);
    if (result != PYIO_KEPT) {
        cio_free(whole);
    }
    return result < 0 ? -1 : 0;
}

/* Swapped into the buffer, a buffer's worth at a time. */
static int
put_swapped_locked(struct pyio_data_writer *w, const Py_buffer *view,
                   unsigned width)
{
    const uint8_t *const data = view->buf;
    const size_t nbytes = (size_t)view->len;
    size_t done = 0;

    if (w->s.unbuffered && nbytes != 0) {
        return put_swapped_whole_locked(w, view, width);
    }
    if (writer_room_locked(w, nbytes < w->s.capacity ? nbytes : w->s.capacity)
        < 0) {
        return -1;
    }
    while (done < nbytes) {
        const size_t room = w->s.capacity - writer_pending(w);
        const size_t piece = cio_min_size(nbytes - done, room - room % width);

        cio_array_swap(w->s.next, data + done, piece, width);
        w->s.next += piece;
        done += piece;
        if (done < nbytes
            && (writer_drain_locked(w) < 0 || PyErr_CheckSignals() < 0)) {
            /* What drained is out, what did not is pending: the rest of the
             * array is not, and `transferred` says how far it came. */
            pyio_exception_attribute(
                "transferred", PyLong_FromSize_t(done - writer_pending(w)));
            return -1;
        }
    }
    return 0;
}

static PyObject *
write_array(PyObject *op, PyObject *array)
{
    struct pyio_data_writer *const w = as_writer(op);
    struct elements elements;
    Py_buffer view;
    int result = -1;

    if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        < 0) {
        return NULL;
    }
    if (elements_of(&view, &elements) == 0) {
        if (elements.width == 1 || elements.order == w->s.order) {
            result = writer_put(w, "", 0, view.buf, (size_t)view.len);
        } else if (data_stream_enter(&w->s) == 0) {
            result = put_swapped_locked(w, &view, elements.width);
            data_stream_leave(&w->s);
        }
    }
    if (result != PYIO_KEPT) { /* else somebody still looks through it */
        PyBuffer_Release(&view);
    }
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

/* -------------------------------------------------------------- reading */

static void
make_truth(uint8_t *data, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++) {
        data[i] = data[i] != 0;
    }
}

/* The user's memory: is it made of elements of this type? */
static int
check_out(const Py_buffer *view, enum cio_type type, uint64_t nbytes,
          struct elements *e)
{
    const bool is_float = type >= CIO_FLOAT16;

    if (elements_of(view, e) < 0) {
        return -1;
    }
    if (e->is_raw && e->width == 1 && view->itemsize == 1) {
        e->width = cio_types[type].nbytes; /* bytes to hold native elements */
        e->is_float = is_float;
    }
    if (e->width != cio_types[type].nbytes || e->is_float != is_float) {
        return pyio_raise(
            PyExc_ValueError, "out has elements of format '%s', not %s",
            view->format == NULL ? "B" : view->format, cio_types[type].name);
    }
    if ((uint64_t)view->len < nbytes) {
        return pyio_raise(PyExc_ValueError,
                          "out has %zd bytes, %llu are needed", view->len,
                          (unsigned long long)nbytes);
    }
    return 0;
}

/* How far an array came. */
struct filling {
    uint8_t *out;
    size_t nbytes;  /* wanted */
    size_t done;    /* whole elements, in the order wanted */
    size_t raw;     /* bytes behind them, of an element that is not whole */
    unsigned width; /* 1: nothing is swapped */
    struct cio_buffer *piece; /* owned; for an object as source, once needed */
};

/* From the bytes at hand, in one pass. */
static void
take_at_hand(struct pyio_data_reader *r, struct filling *f)
{
    size_t piece = cio_min_size(stream_room(&r->s), f->nbytes - f->done);

    piece = cio_min_size(piece - piece % f->width, CIO_SLICE_NBYTES);
    swap_locked(f->out + f->done, r->s.next, piece, f->width);
    r->s.next += piece;
    f->done += piece;
}

/* One read of a descriptor straight to its place, swapped while it is in the
 * cache. 1: something came, 0: the end, -1. */
static int
fetch_in_place(struct pyio_data_reader *r, struct filling *f)
{
    uint8_t *const begin = f->out + f->done;
    const size_t want =
        cio_min_size(f->nbytes - f->done, CIO_CHUNK_NBYTES) - f->raw;
    size_t got, whole;
    int result;

    result = reader_source_read(r, begin + f->raw, want, &got);
    f->raw += got;
    whole = f->raw - f->raw % f->width;
    cio_array_swap(begin, begin, whole, f->width);
    f->done += whole;
    f->raw -= whole;
    return result < 0 ? -1 : got != 0;
}

/* One read of an object to memory that it may keep, and from there, swapped,
 * to its place. The same results. */
static int
fetch_by_piece(struct pyio_data_reader *r, struct filling *f)
{
    uint8_t *const begin = f->out + f->done;
    size_t want, got, have, whole;
    uint8_t *data;
    int result;

    if (f->piece == NULL
        && (f->piece = cio_buffer_take(CIO_CHUNK_NBYTES)) == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    data = f->piece->data;
    memcpy(data, begin, f->raw);
    want = cio_min_size(f->nbytes - f->done, f->piece->nbytes) - f->raw;
    result = reader_source_read(r, data + f->raw, want, &got);
    if (result == PYIO_KEPT) {
        cio_buffer_abandon(f->piece); /* the keeper's now */
        f->piece = NULL;
    }
    if (result < 0) {
        return -1;
    }
    have = f->raw + got;
    whole = have - have % f->width;
    cio_array_swap(begin, data, whole, f->width);
    memcpy(begin + whole, data + whole, have - whole);
    f->done += whole;
    f->raw = have - whole;
    return got != 0;
}

static int
fill_step(struct pyio_data_reader *r, struct filling *f, bool straight)
{
    const size_t at_hand = stream_room(&r->s);
    int result = 1;

    if (f->raw == 0 && at_hand >= f->width) {
        take_at_hand(r, f);
    } else if (straight) {
        if (at_hand != 0) { /* less than an element */
            memcpy(f->out + f->done, r->s.next, at_hand);
            f->raw = at_hand;
        }
        reader_drop(r);
        result = reader_by_descriptor(r) ? fetch_in_place(r, f)
                                         : fetch_by_piece(r, f);
    } else {
        result = reader_fill_locked(r, f->nbytes - f->done);
        result = result < 0 ? -1 : stream_room(&r->s) >= f->width;
    }
    return result == 1 && PyErr_CheckSignals() < 0 ? -1 : result;
}

/* f->nbytes to f->out. 1; 0: the source ended before; -1. Unless all came,
 * the position is where it was. */
static int
fill_locked(struct pyio_data_reader *r, struct filling *f)
{
    /* What fits the buffer is read ahead; more goes straight to its place. */
    const bool straight =
        !r->memory && f->nbytes > stream_room(&r->s) + r->s.capacity;
    int result = 1;

    while (f->done < f->nbytes && result == 1) {
        result = fill_step(r, f, straight);
    }
    if (result != 1) {
        PyObject *const exception = pyio_exception_take();

        cio_array_swap(f->out, f->out, f->done, f->width);
        if (reader_unread_locked(r, f->out, f->done + f->raw) < 0) {
            Py_XDECREF(exception); /* the new one tells of the loss */
            result = -1;
        } else {
            pyio_exception_give(exception);
        }
    }
    if (f->piece != NULL) {
        cio_buffer_give(f->piece);
        f->piece = NULL;
    }
    return result;
}

static int
read_to_memory_locked(struct pyio_data_reader *r, uint8_t *out, size_t nbytes,
                      unsigned width, enum cio_type type)
{
    struct filling f = {out, nbytes, 0, 0, width, NULL};
    const int result = fill_locked(r, &f);

    if (result == 0) {
        return reader_short_locked(r, nbytes, cio_types[type].name);
    }
    if (result == 1 && type == CIO_BOOL) {
        make_truth(out, nbytes);
    }
    return result < 0 ? -1 : 0;
}

static PyObject *
read_to_out(struct pyio_data_reader *r, enum cio_type type, size_t nbytes,
            PyObject *out)
{
    struct elements elements;
    Py_buffer view;
    int result;

    if (PyObject_GetBuffer(out, &view,
                           PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        < 0) {
        return NULL;
    }
    result = check_out(&view, type, nbytes, &elements);
    if (result == 0 && (result = data_stream_enter(&r->s)) == 0) {
        const unsigned width =
            elements.order != r->s.order ? elements.width : 1;

        result = read_to_memory_locked(r, view.buf, nbytes, width, type);
        data_stream_leave(&r->s);
    }
    PyBuffer_Release(&view);
    return result < 0 ? NULL : Py_NewRef(out);
}

/* A new, empty array.array for elements of this type. */
static PyObject *
new_array(struct pyio_state *st, enum cio_type type)
{
    const int code = type == CIO_BOOL ? 'B' : cio_types[type].code;

    if (type == CIO_FLOAT16) {
        (void)pyio_raise(PyExc_ValueError,
                         "array.array has no float16: give out=");
        return NULL;
    }
    if (st->array_type == NULL) {
        PyObject *const module = PyImport_ImportModule("array");

        if (module == NULL) {
            return NULL;
        }
        st->array_type = PyObject_GetAttrString(module, "array");
        Py_DECREF(module);
    }
    return st->array_type == NULL
               ? NULL
               : PyObject_CallFunction(st->array_type, "C", code);
}

static int
append_piece(PyObject *array, const uint8_t *data, size_t nbytes)
{
    PyObject *const view = PyMemoryView_FromMemory(
        (char *)(uintptr_t)data, (Py_ssize_t)nbytes, PyBUF_READ);
    PyObject *result;

    if (view == NULL) {
        return -1;
    }
    if (cio_sys->allow_result(nbytes) < 0) {
        Py_DECREF(view);
        (void)PyErr_NoMemory();
        return -1;
    }
    result = PyObject_CallMethod(array, "frombytes", "O", view);
    Py_DECREF(view); /* array.array keeps none */
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* What came of an array that did not come whole: back to the stream. */
static void
unread_array(struct pyio_data_reader *r, PyObject *array, unsigned width)
{
    PyObject *const exception = pyio_exception_take();
    Py_buffer view;

    if (PyObject_GetBuffer(array, &view, PyBUF_WRITABLE) == 0) {
        swap_locked(view.buf, view.buf, (size_t)view.len, width);
        (void)reader_unread_locked(r, view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
    }
    if (exception != NULL) {
        pyio_exception_give(exception);
    }
}

/* Piece by piece through memory that stays in the cache, so that the array
 * grows with what arrives. */
static int
read_pieces_locked(struct pyio_data_reader *r, PyObject *array,
                   enum cio_type type, uint64_t nbytes,
                   struct cio_buffer *piece)
{
    const unsigned width = r->s.swap ? cio_types[type].nbytes : 1;
    uint64_t done = 0;

    while (done < nbytes) {
        struct filling f = {
            piece->data, (size_t)cio_min_u64(nbytes - done, piece->nbytes),
            0,           0,
            width,       NULL};
        int result = fill_locked(r, &f);

        if (result == 1 && append_piece(array, f.out, f.nbytes) < 0) {
            cio_array_swap(f.out, f.out, f.nbytes, width);
            (void)reader_unread_locked(r, f.out, f.nbytes);
            result = -1;
        }
        if (result != 1) {
            unread_array(r, array, width);
            return result < 0
                       ? -1
                       : reader_short_locked(r, nbytes, cio_types[type].name);
        }
        done += f.nbytes;
    }
    return 0;
}

static PyObject *
read_to_array(struct pyio_data_reader *r, enum cio_type type, uint64_t nbytes)
{
    PyObject *const array = new_array(pyio_state_of(Py_TYPE(r)), type);
    struct cio_buffer *piece;
    Py_buffer view;
    int result = -1;

    if (array == NULL) {
        return NULL;
    }
    piece = cio_buffer_take((size_t)cio_min_u64(nbytes, CIO_CHUNK_NBYTES));
    if (piece == NULL) {
        (void)PyErr_NoMemory();
    } else if (data_stream_enter(&r->s) == 0) {
        result = read_pieces_locked(r, array, type, nbytes, piece);
        data_stream_leave(&r->s);
    }
    cio_buffer_give(piece);
    if (result == 0 && type == CIO_BOOL
        && (result = PyObject_GetBuffer(array, &view, PyBUF_WRITABLE)) == 0) {
        make_truth(view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
    }
    if (result < 0) {
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

static PyObject *
read_array(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
           PyObject *kwnames)
{
    static const char *const names[] = {"type", "n", "out", NULL};
    static const struct pyio_signature signature = {"read_array", names, 2, 2};
    struct pyio_data_reader *const r = as_reader(op);
    PyObject *given[3];
    enum cio_type type;
    uint64_t nbytes;
    int64_t n;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || data_type_of(given[0], &type) < 0
        || pyio_as_offset(given[1], "n", &n) < 0) {
        return NULL;
    }
    if (!cio_mul_u64((uint64_t)n, cio_types[type].nbytes, &nbytes)
        || nbytes > (uint64_t)PY_SSIZE_T_MAX) {
        return PyErr_Format(PyExc_OverflowError,
                            "%lld elements of %s are 2**63 bytes or more",
                            (long long)n, cio_types[type].name);
    }
    return given[2] == NULL || given[2] == Py_None
               ? read_to_array(r, type, nbytes)
               : read_to_out(r, type, (size_t)nbytes, given[2]);
}

PyMethodDef pyio_data_array_methods[] = {
    {"write_array", write_array, METH_O,
     PyDoc_STR("write_array($self, array, /)\n--\n\n"
               "The elements of a C-contiguous Buffer (numpy, array.array, "
               "memoryview), each in\nthe stream's byte order, without a "
               "length.")},
    {NULL, NULL, 0, NULL},
};

PyMethodDef pyio_data_array_get_methods[] = {
    {"read_array", PYIO_AS_METHOD(read_array), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("read_array($self, /, type, n, *, out=None)\n--\n\n"
               "n elements of a type (\"int32\", \"float64\" ...) as an "
               "array.array, or into out:\nany writable Buffer of such "
               "elements, or of bytes; returned. A short source is\n"
               "ShortReadError; out's content is undefined then.")},
    {NULL, NULL, 0, NULL},
};
