/* SPDX-License-Identifier: MIT
 * pyio_inflater.c - Inflater: zlib.decompressobj's drop-in.
 *
 * Where the first call bounds its output (max_length), and for raw data, zlib
 * inflates, so that unconsumed_tail is the very one; else whatever is fastest
 * for streams. An
 * object that changes to bounded calls later keeps its engine, which may have
 * read ahead: then the last byte of input stays in unconsumed_tail for as long
 * as output is held back, since callers ask again while there is a tail.
 */
#include "glue/inflate/pyio_inflate.h"

#include <string.h>
#include <structmember.h>

#include "base/cio_bytes.h"

struct inflater {
    PyObject_HEAD
    PyObject *weakrefs;
    struct pyio_lock lock;
    struct cio_decoder decoder;
    PyObject *zdict;  /* owned bytes, or NULL */
    PyObject *unused; /* owned bytes */
    PyObject *tail;   /* owned bytes */
    PyObject *carry;  /* owned bytes of a call that was interrupted; or NULL */
    bool started, ended;
    char eof; /* as Python sees it */
};

PyDoc_STRVAR(inflater_doc,
             "Inflater(wbits=15, zdict=b'')\n--\n\n"
             "Decompress a stream piece by piece, as zlib.decompressobj.\n\n"
             "wbits: 8..15 zlib, -15..-8 raw, 24..31 gzip (one member), "
             "40..47 zlib or\ngzip by the header, 0 the header's window. The "
             "inflate state is taken from\nthe pool with the first byte and "
             "given back at the end of the stream.");

/* ------------------------------------------------------------ construction */

/* zlib's rules for windowBits of inflateInit2. */
static int
parse_wbits(int wbits, enum cio_format *format, int *window_bits)
{
    int bits = wbits;

    if (wbits < 0) {
        *format = CIO_FORMAT_RAW;
        bits = wbits < -15 ? 1 : -wbits;
    } else {
        *format = wbits < 16   ? CIO_FORMAT_ZLIB
                  : wbits < 32 ? CIO_FORMAT_GZIP
                               : CIO_FORMAT_WRAPPED;
        bits = wbits < 48 ? wbits & 15 : 1;
    }
    if (bits == 0) {
        *window_bits = 15;
        return 0;
    }
    if (bits < 8 || bits > 15) {
        return pyio_raise(PyExc_ValueError, "Invalid initialization option");
    }
    *window_bits = bits;
    return 0;
}

static PyObject *
inflater_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"wbits", "zdict", NULL};
    static const struct pyio_signature signature = {"Inflater", names, 2, 0};
    PyObject *given[2];
    struct inflater *self;
    enum cio_format format = CIO_FORMAT_ZLIB;
    int window_bits = 15;

    if (pyio_arguments_tuple(&signature, args, kwargs, given) < 0) {
        return NULL;
    }
    if (given[0] != NULL) {
        const long wbits = PyLong_AsLong(given[0]);

        if ((wbits == -1 && PyErr_Occurred())
            || parse_wbits(wbits < -99 || wbits > 99 ? 99 : (int)wbits,
                           &format, &window_bits)
                   < 0) {
            return NULL;
        }
    }
    if (given[1] != NULL && !PyObject_CheckBuffer(given[1])) {
        (void)pyio_raise(PyExc_TypeError,
                         "zdict argument must support the buffer protocol");
        return NULL;
    }
    self = (struct inflater *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    cio_decoder_init(&self->decoder, format);
    self->decoder.one_member = true;
    self->decoder.window_bits = window_bits;
    self->unused = PyBytes_FromStringAndSize(NULL, 0);
    self->tail = PyBytes_FromStringAndSize(NULL, 0);
    if (given[1] != NULL) {
        self->zdict = PyBytes_FromObject(given[1]);
    }
    if (self->unused == NULL || self->tail == NULL
        || (given[1] != NULL && self->zdict == NULL)) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->zdict != NULL && PyBytes_GET_SIZE(self->zdict) > 0) {
        self->decoder.dictionary =
            (const uint8_t *)PyBytes_AS_STRING(self->zdict);
        self->decoder.dictionary_nbytes =
            (size_t)PyBytes_GET_SIZE(self->zdict);
    }
    return (PyObject *)self;
}

static void
inflater_dealloc(PyObject *op)
{
    struct inflater *self = (struct inflater *)op;
    PyTypeObject *const type = Py_TYPE(op);

    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    cio_decoder_release(&self->decoder);
    Py_XDECREF(self->zdict);
    Py_XDECREF(self->unused);
    Py_XDECREF(self->tail);
    Py_XDECREF(self->carry);
    type->tp_free(op);
    Py_DECREF(type);
}

static int
inflater_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op)); /* what it holds itself are bytes */
    return 0;
}

/* ---------------------------------------------------------------- inflating
 */

/* bytes of first and second together. */
static PyObject *
joined(PyObject *first, const uint8_t *second, size_t nbytes)
{
    const Py_ssize_t size = PyBytes_GET_SIZE(first);
    PyObject *both;

    if (nbytes == 0) {
        return Py_NewRef(first);
    }
    both = PyBytes_FromStringAndSize(NULL, size + (Py_ssize_t)nbytes);
    if (both != NULL) {
        memcpy(PyBytes_AS_STRING(both), PyBytes_AS_STRING(first),
               (size_t)size);
        memcpy(PyBytes_AS_STRING(both) + size, second, nbytes);
    }
    return both;
}

/* What is left of the input: behind the end, or to be given again. */
static int
keep_rest(struct inflater *self, const struct cio_span *span, size_t in_nbytes)
{
    const uint8_t *const rest = span->in + span->in_used;
    const size_t nbytes = in_nbytes - span->in_used;
    PyObject *tail, *unused = NULL;

    if (self->ended) {
        unused = joined(self->unused, rest, nbytes);
        if (unused == NULL) {
            return -1;
        }
        Py_SETREF(self->unused, unused);
    }
    if (PyBytes_GET_SIZE(self->tail) > 0 || (nbytes > 0 && !self->ended)) {
        /* Behind an end that had a tail before it, zlib's has there what is
         * unused: so have we. */
        tail =
            PyBytes_FromStringAndSize((const char *)rest, (Py_ssize_t)nbytes);
        if (tail == NULL) {
            return -1;
        }
        Py_SETREF(self->tail, tail);
    }
    self->eof = self->ended;
    return 0;
}

static int
first_room(struct pyio_result *result, struct inflater *self, size_t in_nbytes,
           size_t most)
{
    const size_t carried =
        self->carry == NULL ? 0 : (size_t)PyBytes_GET_SIZE(self->carry);
    size_t room = cio_min_size(in_nbytes, CIO_MIB) * 4 + 64;

    room = cio_min_size(room < carried ? carried : room, most);
    if (pyio_result_init(result, room) < 0) {
        return -1;
    }
    if (carried > 0) {
        memcpy(result->data, PyBytes_AS_STRING(self->carry), carried);
        result->nbytes = carried;
        Py_CLEAR(self->carry);
    }
    return 0;
}

/* Until `most` bytes are there or the input is used up. 0, or -1 with an
 * exception; result->nbytes and span->in_used are right then, too. */
static int
inflate_all(struct inflater *self, struct cio_span *span, size_t in_nbytes,
            struct pyio_result *result, size_t most)
{
    struct cio_decoder *const d = &self->decoder;
    const bool attached = in_nbytes <= CIO_INFLATE_ATTACHED_NBYTES;

    for (;;) {
        enum cio_status status;

        span->out = result->data;
        span->out_used = result->nbytes;
        span->out_nbytes = cio_min_size(result->capacity, most);
        if (attached && result->capacity <= CIO_INFLATE_SMALL_OUT_NBYTES) {
            status = cio_decoder_step(d, span);
        } else {
            Py_BEGIN_ALLOW_THREADS
            status = cio_decoder_step(d, span);
            Py_END_ALLOW_THREADS
        }
        result->nbytes = span->out_used;
        if (status == CIO_MORE) {
            if (PyErr_CheckSignals() < 0) {
                return -1;
            }
        } else if (status == CIO_EOF) {
            self->ended = true;
            return 0;
        } else if (status != CIO_OK) {
            return pyio_inflate_raise(d, status, PYIO_INFLATE_ZLIB, NULL);
        } else if (span->out_used < span->out_nbytes) {
            if (span->in_nbytes == in_nbytes) {
                return 0;
            }
            span->in_nbytes = in_nbytes; /* the byte that was held back */
        } else if (result->nbytes >= most) {
            return 0;
        } else if (!cio_decoder_pending(d)
                   && span->in_used == span->in_nbytes) {
            return 0;
        } else if (pyio_result_grow(result, most) < 0) {
            return -1;
        }
    }
}

static PyObject *
run_locked(struct inflater *self, const uint8_t *in, size_t in_nbytes,
           size_t most)
{
    struct cio_span span = {in, in_nbytes, 0, NULL, 0, 0};
    const bool bounded = most < (size_t)PY_SSIZE_T_MAX;
    struct pyio_result result;

    if (self->ended) {
        if (keep_rest(self, &span, in_nbytes) < 0) {
            return NULL;
        }
        return PyBytes_FromStringAndSize(NULL, 0);
    }
    if (!self->started && in_nbytes > 0) {
        self->started = true;
        self->decoder.zlib_only = self->decoder.eager =
            bounded
            || cio_inflater_is_zlib(self->decoder.wanted != CIO_FORMAT_RAW);
    }
    if (bounded && !self->decoder.zlib_only && in_nbytes > 1) {
        span.in_nbytes--;
    }
    if (first_room(&result, self, in_nbytes, most) < 0) {
        return NULL;
    }
    if (inflate_all(self, &span, in_nbytes, &result, most) < 0) {
        /* Out of memory, or a signal: all of it comes with the next call. An
         * error of the data comes again. */
        PyObject *const exception = pyio_exception_take();

        self->carry = pyio_result_finish(&result);
        if (self->carry == NULL || keep_rest(self, &span, in_nbytes) < 0) {
            PyErr_Clear();
        }
        pyio_exception_give(exception);
        return NULL;
    }
    if (keep_rest(self, &span, in_nbytes) < 0) {
        pyio_result_drop(&result);
        return NULL;
    }
    return pyio_result_finish(&result);
}

/* A size as zlib's argument parser takes it. */
static int
as_length(PyObject *value, Py_ssize_t *length)
{
    PyObject *const index = PyNumber_Index(value);

    if (index == NULL) {
        return -1;
    }
    *length = PyLong_AsSsize_t(index);
    Py_DECREF(index);
    return *length == -1 && PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(decompress_doc,
             "decompress($self, data, /, max_length=0)\n--\n\n"
             "What comes out of data, at most max_length bytes (0: all of "
             "it). Input that\nwasn't needed yet is then in unconsumed_tail: "
             "give it again. Errors:\nzlib.error.");

static PyObject *
inflater_decompress(PyObject *op, PyObject *const *args, Py_ssize_t nargs,
                    PyObject *kwnames)
{
    static const char *const names[] = {"", "max_length", NULL};
    static const struct pyio_signature signature = {"decompress", names, 2, 1};
    struct inflater *self = (struct inflater *)op;
    PyObject *given[2], *value = NULL;
    size_t most = (size_t)PY_SSIZE_T_MAX;
    Py_buffer data;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0) {
        return NULL;
    }
    if (given[1] != NULL) {
        Py_ssize_t length;

        if (as_length(given[1], &length) < 0) {
            return NULL;
        }
        if (length < 0) {
            (void)pyio_raise(PyExc_ValueError,
                             "max_length must be non-negative");
            return NULL;
        }
        most = length == 0 ? most : (size_t)length;
    }
    if (PyObject_GetBuffer(given[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (pyio_lock_enter(&self->lock, op) == 0) {
        value = run_locked(self, data.buf, (size_t)data.len, most);
        pyio_lock_leave(&self->lock);
    }
    PyBuffer_Release(&data);
    return value;
}

PyDoc_STRVAR(flush_doc, "flush($self, length=16384, /)\n--\n\n"
                        "What comes out of unconsumed_tail, all of it; "
                        "length is of no effect.");

static PyObject *
inflater_flush(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct inflater *self = (struct inflater *)op;
    PyObject *tail, *value;

    if (nargs > 1) {
        (void)pyio_raise(PyExc_TypeError,
                         "flush() takes at most 1 argument (%zd given)",
                         nargs);
        return NULL;
    }
    if (nargs == 1) {
        Py_ssize_t length;

        if (as_length(args[0], &length) < 0) {
            return NULL;
        }
        if (length <= 0) {
            (void)pyio_raise(PyExc_ValueError,
                             "length must be greater than zero");
            return NULL;
        }
    }
    if (pyio_lock_enter(&self->lock, op) < 0) {
        return NULL;
    }
    tail = Py_NewRef(self->tail);
    value = run_locked(self, (const uint8_t *)PyBytes_AS_STRING(tail),
                       (size_t)PyBytes_GET_SIZE(tail), (size_t)PY_SSIZE_T_MAX);
    Py_DECREF(tail);
    pyio_lock_leave(&self->lock);
    return value;
}

PyDoc_STRVAR(copy_doc, "copy($self, /)\n--\n\n"
                       "A second Inflater in the same state; ValueError at "
                       "the end of the stream.");

static PyObject *
inflater_copy(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    struct inflater *self = (struct inflater *)op, *other = NULL;
    enum cio_status status;

    if (pyio_lock_enter(&self->lock, op) < 0) {
        return NULL;
    }
    if (self->ended) {
        (void)pyio_raise(PyExc_ValueError,
                         "the stream has ended: there is nothing to copy");
        goto out;
    }
    other = (struct inflater *)Py_TYPE(op)->tp_alloc(Py_TYPE(op), 0);
    if (other == NULL) {
        goto out;
    }
    status = cio_decoder_copy(&other->decoder, &self->decoder);
    other->zdict = Py_XNewRef(self->zdict);
    other->unused = Py_NewRef(self->unused);
    other->tail = Py_NewRef(self->tail);
    other->carry = Py_XNewRef(self->carry);
    other->started = self->started;
    if (status != CIO_OK) {
        Py_CLEAR(other);
        (void)PyErr_NoMemory();
    }
out:
    pyio_lock_leave(&self->lock);
    return (PyObject *)other;
}

static PyObject *
inflater_deepcopy(PyObject *op, PyObject *Py_UNUSED(memo))
{
    return inflater_copy(op, NULL);
}

static PyMethodDef inflater_methods[] = {
    {"decompress", (PyCFunction)(void (*)(void))inflater_decompress,
     METH_FASTCALL | METH_KEYWORDS, decompress_doc},
    {"flush", (PyCFunction)(void (*)(void))inflater_flush, METH_FASTCALL,
     flush_doc},
    {"copy", inflater_copy, METH_NOARGS, copy_doc},
    {"__copy__", inflater_copy, METH_NOARGS,
     PyDoc_STR("__copy__($self, /)\n--\n\nAs copy().")},
    {"__deepcopy__", inflater_deepcopy, METH_O,
     PyDoc_STR("__deepcopy__($self, memo, /)\n--\n\nAs copy().")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef inflater_members[] = {
    {"unused_data", T_OBJECT_EX, offsetof(struct inflater, unused), READONLY,
     PyDoc_STR("What came behind the end of the stream.")},
    {"unconsumed_tail", T_OBJECT_EX, offsetof(struct inflater, tail), READONLY,
     PyDoc_STR("Input that max_length left over.")},
    {"eof", T_BOOL, offsetof(struct inflater, eof), READONLY,
     PyDoc_STR("The end of the stream was reached.")},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct inflater, weakrefs),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot inflater_slots[] = {
    {Py_tp_doc, (void *)inflater_doc},
    {Py_tp_new, inflater_new},
    {Py_tp_dealloc, inflater_dealloc},
    {Py_tp_traverse, inflater_traverse},
    {Py_tp_methods, inflater_methods},
    {Py_tp_members, inflater_members},
    {0, NULL},
};

PyType_Spec pyio_inflater_spec = {
    .name = "pyio_chunked.Inflater",
    .basicsize = sizeof(struct inflater),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = inflater_slots,
};
