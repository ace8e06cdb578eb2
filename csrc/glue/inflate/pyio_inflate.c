/* SPDX-License-Identifier: MIT
 * pyio_inflate.c - the part: its types, its exceptions, and inflate() of whole
 * buffers.
 */
#include "glue/inflate/pyio_inflate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cio_bytes.h"
#include "glue/pyio_parts.h"

/* ------------------------------------------------------------ exceptions */

/* A class of a module that is imported only now. New reference. */
static PyObject *
lazy_class(const char *module, const char *name)
{
    PyObject *const imported = PyImport_ImportModule(module);
    PyObject *class = NULL;

    if (imported != NULL) {
        class = PyObject_GetAttrString(imported, name);
        Py_DECREF(imported);
    }
    return class;
}

static void
raise_limit(const struct cio_decoder *d, const char *where)
{
    const bool gzip = d->format == CIO_FORMAT_GZIP;
    PyObject *const class = lazy_class("pyio_chunked._errors",
                                       gzip ? "GzipLimitError" : "LimitError");
    PyObject *error = NULL;

    if (class != NULL) {
        PyObject *const text =
            PyUnicode_FromFormat("more than max_size=%llu bytes come out%s",
                                 (unsigned long long)d->max_nbytes, where);

        if (text != NULL) {
            error =
                PyObject_CallFunction(class, "OsKK", text, "max_size",
                                      (unsigned long long)d->max_nbytes + 1,
                                      (unsigned long long)d->max_nbytes);
            Py_DECREF(text);
        }
        Py_DECREF(class);
    }
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
}

/* The sentence for a problem of the gzip frame, as gzip says it. */
static PyObject *
gzip_sentence(const struct cio_decoder *d)
{
    switch (d->problem) {
    case CIO_PROBLEM_MAGIC: {
        PyObject *const first =
            PyBytes_FromStringAndSize((const char *)d->first, d->first_nbytes);
        PyObject *text = NULL;

        if (first != NULL) {
            text = PyUnicode_FromFormat("Not a gzipped file (%R)", first);
            Py_DECREF(first);
        }
        return text;
    }
    case CIO_PROBLEM_METHOD:
        return PyUnicode_FromFormat("Unknown compression method %u",
                                    (unsigned)d->found);
    case CIO_PROBLEM_FLAGS:
        return PyUnicode_FromFormat("Reserved header flags set: 0x%x",
                                    (unsigned)d->found);
    case CIO_PROBLEM_HEADER_CRC:
        return PyUnicode_FromFormat("Header CRC check failed 0x%x != 0x%x",
                                    (unsigned)d->expected, (unsigned)d->found);
    case CIO_PROBLEM_CHECK:
        return PyUnicode_FromFormat("CRC check failed 0x%x != 0x%x",
                                    (unsigned)d->expected, (unsigned)d->found);
    case CIO_PROBLEM_SIZE:
        return PyUnicode_FromFormat(
            "Incorrect length of data produced: %u (mod 2**32), the trailer "
            "says %u",
            (unsigned)d->found, (unsigned)d->expected);
    case CIO_PROBLEM_NONE:
    case CIO_PROBLEM_WINDOW:
    case CIO_PROBLEM_NEED_DICTIONARY:
    case CIO_PROBLEM_DICTIONARY:
    case CIO_PROBLEM_DATA:
    case CIO_PROBLEM_CUT:
        break;
    }
    return NULL;
}

static void
raise_problem(const struct cio_decoder *d, enum pyio_inflate_style style,
              const char *where)
{
    PyObject *class, *text = NULL;

    if (d->problem == CIO_PROBLEM_CUT && style != PYIO_INFLATE_ZLIB) {
        (void)pyio_raise(PyExc_EOFError,
                         "Compressed file ended before the end-of-stream "
                         "marker was reached%s",
                         where);
        return;
    }
    if (style == PYIO_INFLATE_GZIP) {
        text = gzip_sentence(d);
        if (text == NULL && PyErr_Occurred()) {
            return;
        }
    }
    class = text != NULL ? lazy_class("gzip", "BadGzipFile")
                         : lazy_class("zlib", "error");
    if (class == NULL) {
        /* nothing to add */
    } else if (text != NULL) {
        (void)pyio_raise(class, "%U%s", text, where);
    } else if (d->problem == CIO_PROBLEM_NEED_DICTIONARY) {
        (void)pyio_raise(class, "Error 2 while decompressing data: %s%s",
                         d->text, where);
    } else if (d->problem == CIO_PROBLEM_DICTIONARY) {
        (void)pyio_raise(class, "Error -3 while setting zdict: %s%s", d->text,
                         where);
    } else {
        (void)pyio_raise(class, "Error %d while decompressing data: %s%s",
                         d->problem == CIO_PROBLEM_CUT ? -5 : -3, d->text,
                         where);
    }
    Py_XDECREF(class);
    Py_XDECREF(text);
}

int
pyio_inflate_raise(const struct cio_decoder *d, enum cio_status status,
                   enum pyio_inflate_style style, PyObject *name)
{
    char member[48] = "", where[256];
    const char *file = NULL;
    PyObject *text = NULL;

    if (status == CIO_ERR_NOMEM) {
        (void)PyErr_NoMemory();
        return -1;
    }
    if (name != NULL && PyObject_IsTrue(name) > 0) {
        text = PyObject_Repr(name);
        file = text == NULL ? NULL : PyUnicode_AsUTF8(text);
        PyErr_Clear(); /* a name that can't be shown is left out */
    }
    if (d->format == CIO_FORMAT_GZIP && !d->one_member) {
        (void)snprintf(member, sizeof member, ", member %" PRIu64,
                       d->members + 1);
    }
    (void)snprintf(where, sizeof where,
                   " (at compressed byte %" PRIu64 "%s, after %" PRIu64
                   " bytes of data%s%.120s)",
                   d->in_total, member, d->out_total,
                   file == NULL ? "" : ", in ", file == NULL ? "" : file);
    Py_XDECREF(text);
    if (status == CIO_ERR_LIMIT) {
        raise_limit(d, where);
    } else {
        raise_problem(d, style, where);
    }
    return -1;
}

int
pyio_as_max_size(PyObject *value, uint64_t *max_nbytes)
{
    int64_t size;

    *max_nbytes = UINT64_MAX;
    if (value == NULL || value == Py_None) {
        return 0;
    }
    if (pyio_as_offset(value, "max_size", &size) < 0) {
        return -1;
    }
    *max_nbytes = (uint64_t)size;
    return 0;
}

/* --------------------------------------------------------------- inflate */

const char pyio_inflate_doc[] =
    "inflate($module, /, data, format='auto', *, max_size=None, out=None)\n"
    "--\n\n"
    "Decompress a whole buffer: bytes, or the number of bytes written into "
    "out.\n\n"
    "format is 'raw', 'zlib', 'gzip' (all members), or 'auto': by the first "
    "two\nbytes, raw where they are neither's. Bytes behind the end are "
    "ignored (zlib,\nraw) or must be zeros or further members (gzip).\n\n"
    "More than max_size bytes: LimitError; more than out holds: ValueError. "
    "Errors\nof the data are those of zlib.decompress and gzip.decompress: "
    "zlib.error,\ngzip.BadGzipFile, EOFError.";

struct inflate_call {
    struct cio_decoder decoder;
    struct cio_span span;
    struct pyio_result result;
    bool into; /* out was given */
    uint64_t max_nbytes;
};

/* What the last member's ISIZE says, where that can be; 0: no idea. */
static size_t
guess_size(const uint8_t *in, size_t nbytes, enum cio_format format)
{
    size_t size;

    if ((format != CIO_FORMAT_GZIP && format != CIO_FORMAT_AUTO) || nbytes < 18
        || in[0] != 0x1f || in[1] != 0x8b) {
        return 0;
    }
    size = cio_load_le32(in + nbytes - 4);
    return size / CIO_DEFLATE_MAX_RATIO <= nbytes ? size : 0;
}

static int
make_room(struct inflate_call *call)
{
    const size_t limit =
        (size_t)cio_min_u64(call->max_nbytes, (uint64_t)PY_SSIZE_T_MAX);

    call->result.nbytes = call->span.out_used;
    if (call->result.capacity <= call->span.out_nbytes
        && pyio_result_grow(&call->result, limit) < 0) {
        return -1;
    }
    call->span.out = call->result.data;
    call->span.out_nbytes = cio_min_size(call->result.capacity, limit);
    return 0;
}

static int
first_room(struct inflate_call *call)
{
    const struct cio_span *const span = &call->span;
    const size_t guess =
        guess_size(span->in, span->in_nbytes, call->decoder.wanted);
    size_t room = cio_min_size(span->in_nbytes, SIZE_MAX / 8) * 3 + 64;

    /* A number that a byte could have forged is believed between "not packed
     * at all" (below it is the last of many members) and "packed like text";
     * beyond, memory follows what comes out. */
    if (guess > 0 && guess + 64 + guess / 512 >= span->in_nbytes
        && guess / CIO_SIZE_HINT_RATIO <= span->in_nbytes + CIO_CHUNK_NBYTES) {
        room = guess;
    }
    room = (size_t)cio_min_u64(room, call->max_nbytes);
    if (pyio_result_init(&call->result, room) < 0) {
        PyErr_Clear(); /* a guess: less may do */
        room = cio_min_size(room, CIO_GROW_FIRST_NBYTES);
        if (pyio_result_init(&call->result, room) < 0) {
            return -1;
        }
    }
    call->span.out = call->result.data;
    /* No more than asked for: where it is the size, the end is at the end. */
    call->span.out_nbytes = cio_min_size(call->result.capacity, room);
    return 0;
}

/* Steps until the stream ended or failed; -1 with an exception that isn't the
 * stream's. */
static int
inflate_steps(struct inflate_call *call, enum cio_status *status)
{
    struct cio_decoder *const d = &call->decoder;
    struct cio_span *const span = &call->span;
    /* Small things are done before a thread switch would be. */
    bool attached = span->in_nbytes <= CIO_INFLATE_ATTACHED_NBYTES;

    for (;;) {
        if (attached && span->out_nbytes <= CIO_INFLATE_SMALL_OUT_NBYTES) {
            *status = cio_decoder_step(d, span);
        } else {
            Py_BEGIN_ALLOW_THREADS
            *status = cio_decoder_step(d, span);
            Py_END_ALLOW_THREADS
        }
        d->all_input = false; /* for the first member alone */
        if (*status == CIO_MORE) {
            if (PyErr_CheckSignals() < 0) {
                return -1;
            }
            continue;
        }
        if (*status != CIO_OK) {
            return 0;
        }
        if (span->in_used == span->in_nbytes
            && (cio_decoder_between(d) || span->out_used < span->out_nbytes
                || !cio_decoder_pending(d))) {
            *status = cio_decoder_finish(d);
            return 0;
        }
        if (span->out_used == span->out_nbytes
            && (call->into || make_room(call) < 0)) {
            return call->into ? 0 : -1;
        }
    }
}

static PyObject *
inflate_end(struct inflate_call *call, enum cio_status status)
{
    struct cio_decoder *const d = &call->decoder;
    const enum pyio_inflate_style style =
        d->format == CIO_FORMAT_GZIP ? PYIO_INFLATE_GZIP : PYIO_INFLATE_ZLIB;

    if (status == CIO_EOF) {
        if (call->into) {
            return PyLong_FromSize_t(call->span.out_used);
        }
        call->result.nbytes = call->span.out_used;
        return pyio_result_finish(&call->result);
    }
    if (call->into
        && (status == CIO_OK
            || (status == CIO_ERR_LIMIT
                && call->span.out_nbytes < call->max_nbytes))) {
        (void)pyio_raise(PyExc_ValueError,
                         "out is too small: %zu bytes, and more come",
                         call->span.out_nbytes);
        return NULL;
    }
    (void)pyio_inflate_raise(d, status, style, NULL);
    return NULL;
}

PyObject *
pyio_inflate(PyObject *Py_UNUSED(mod), PyObject *const *args, Py_ssize_t nargs,
             PyObject *kwnames)
{
    static const char *const names[] = {"data", "format", "max_size", "out",
                                        NULL};
    static const struct pyio_signature signature = {"inflate", names, 2, 1};
    static const char *const formats[] = {"auto", "raw", "zlib", "gzip", NULL};
    PyObject *given[4], *value = NULL;
    Py_buffer data = {0}, out = {0};
    struct inflate_call call = {0};
    enum cio_status status = CIO_OK;
    int format = 0;

    if (pyio_arguments(&signature, args, nargs, kwnames, given) < 0
        || (given[1] != NULL
            && pyio_as_choice(given[1], "format", formats, &format) < 0)
        || pyio_as_max_size(given[2], &call.max_nbytes) < 0
        || PyObject_GetBuffer(given[0], &data, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    call.span.in = data.buf;
    call.span.in_nbytes = (size_t)data.len;
    cio_decoder_init(&call.decoder, (enum cio_format)format);
    call.decoder.eager = true;
    call.decoder.all_input =
        call.span.in_nbytes <= CIO_INFLATE_WHOLE_MAX_NBYTES;
    call.decoder.max_nbytes = call.max_nbytes;
    if (given[3] != NULL && given[3] != Py_None) {
        if (PyObject_GetBuffer(given[3], &out, PyBUF_WRITABLE) < 0) {
            goto out;
        }
        call.into = true;
        call.span.out = out.buf;
        call.span.out_nbytes = (size_t)out.len;
        call.decoder.max_nbytes =
            cio_min_u64(call.max_nbytes, (uint64_t)out.len);
    } else if (first_room(&call) < 0) {
        goto out;
    }
    if (inflate_steps(&call, &status) == 0) {
        value = inflate_end(&call, status);
    }
out:
    cio_decoder_release(&call.decoder);
    pyio_result_drop(&call.result);
    PyBuffer_Release(&out);
    PyBuffer_Release(&data);
    return value;
}

/* ------------------------------------------------------------------ part */

PyDoc_STRVAR(counts_doc,
             "_inflate_counts($module)\n--\n\n"
             "(native inflate calls with input, without): for tests.");

static PyObject *
inflate_counts(PyObject *Py_UNUSED(mod), PyObject *Py_UNUSED(ignored))
{
    struct cio_engine_counts counts;

    cio_engine_counts(&counts);
    return Py_BuildValue("KK", (unsigned long long)counts.with_input,
                         (unsigned long long)counts.without_input);
}

static PyMethodDef functions[] = {
    {"inflate", (PyCFunction)(void (*)(void))pyio_inflate,
     METH_FASTCALL | METH_KEYWORDS, pyio_inflate_doc},
    {"_inflate_counts", inflate_counts, METH_NOARGS, counts_doc},
    {"_own_source", pyio_reader_own_source, METH_O,
     PyDoc_STR("_own_source($module, reader, /)\n--\n\n"
               "The reader's source is ours: closed when the reader is.")},
    {NULL, NULL, 0, NULL},
};

static bool engine_known;

static void
choose_engines(void)
{
    const char *const forced = getenv("PYIO_CHUNKED_ENGINE");

    engine_known =
        cio_engine_init(forced == NULL || *forced == '\0' ? NULL : forced);
}

int
pyio_add_inflate(PyObject *mod, struct pyio_state *st)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    /* Once for the process: other interpreters may be inflating already. */
    (void)pthread_once(&once, choose_engines);
    if (!engine_known) {
        return pyio_raise(PyExc_ImportError,
                          "PYIO_CHUNKED_ENGINE is %s: it may be zlib, or isal "
                          "or libdeflate where they are built in",
                          getenv("PYIO_CHUNKED_ENGINE"));
    }
    if (pyio_add_functions(mod, functions) < 0 || pyio_add_pool(mod, st) < 0
        || pyio_add_type(mod, &pyio_inflater_spec, NULL, &st->inflater_type)
               < 0
        || pyio_add_stream_type(mod, &pyio_inflate_reader_spec,
                                &st->inflate_reader_type)
               < 0) {
        return -1;
    }
    return pyio_add_type(mod, &pyio_gzip_file_spec,
                         (PyObject *)st->inflate_reader_type,
                         &st->gzip_file_type);
}
