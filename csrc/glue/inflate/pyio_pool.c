/* SPDX-License-Identifier: MIT
 * pyio_pool.c - pyio_chunked.pool: the process's pool as Python sees it.
 */
#include "glue/inflate/pyio_inflate.h"

#include <errno.h>
#include <stdlib.h>

PyDoc_STRVAR(stats_doc,
             "stats($self, /)\n--\n\n"
             "PoolStats(limit, held, in_use, high_water, hits, "
             "misses, discarded):\nfour in bytes, three in pieces.");

static PyObject *
pool_stats(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(self));
    struct cio_pool_stats stats;

    cio_pool_stats(&stats);
    return PyObject_CallFunction(
        st->pool_stats_type, "KKKKKKK", (unsigned long long)stats.limit,
        (unsigned long long)stats.held, (unsigned long long)stats.in_use,
        (unsigned long long)stats.high_water, (unsigned long long)stats.hits,
        (unsigned long long)stats.misses, (unsigned long long)stats.discarded);
}

PyDoc_STRVAR(set_limit_doc,
             "set_limit($self, size, /)\n--\n\n"
             "Bytes that may be kept idle from now on; 0 switches pooling "
             "off.\nWhat is held beyond it is freed.");

static PyObject *
pool_set_limit(PyObject *Py_UNUSED(self), PyObject *size)
{
    int64_t nbytes;

    if (pyio_as_offset(size, "size", &nbytes) < 0) {
        return NULL;
    }
    cio_pool_set_limit((uint64_t)nbytes);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(trim_doc, "trim($self, keep=0, /)\n--\n\n"
                       "Free idle pieces until no more than keep bytes are "
                       "held; returns the\nbytes freed.");

static PyObject *
pool_trim(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t nargs)
{
    int64_t keep = 0;

    if (nargs > 1) {
        (void)pyio_raise(PyExc_TypeError,
                         "trim() takes at most 1 argument (%zd given)", nargs);
        return NULL;
    }
    if (nargs > 0 && pyio_as_offset(args[0], "keep", &keep) < 0) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(cio_pool_trim((uint64_t)keep));
}

static PyObject *
pool_repr(PyObject *Py_UNUSED(self))
{
    struct cio_pool_stats stats;

    cio_pool_stats(&stats);
    return PyUnicode_FromFormat(
        "<pyio_chunked pool: %llu bytes held, %llu in use, limit %llu>",
        (unsigned long long)stats.held, (unsigned long long)stats.in_use,
        (unsigned long long)stats.limit);
}

/* One object for one pool: pickled by its name. */
static PyObject *
pool_reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString("pool");
}

static PyMethodDef pool_methods[] = {
    {"stats", pool_stats, METH_NOARGS, stats_doc},
    {"set_limit", pool_set_limit, METH_O, set_limit_doc},
    {"trim", (PyCFunction)(void (*)(void))pool_trim, METH_FASTCALL, trim_doc},
    {"__reduce__", pool_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static void
pool_dealloc(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);

    type->tp_free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(pool_doc,
             "Process-wide pool of inflate states and I/O buffers, shared by "
             "every archive\nand stream. A miss allocates and never waits; "
             "above the limit a returned\npiece is freed.");

static PyType_Slot pool_slots[] = {
    {Py_tp_doc, (void *)pool_doc},
    {Py_tp_dealloc, pool_dealloc},
    {Py_tp_repr, pool_repr},
    {Py_tp_methods, pool_methods},
    {0, NULL},
};

static PyType_Spec pool_spec = {
    .name = "pyio_chunked._Pool",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION
             | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pool_slots,
};

/* typing.NamedTuple's kind, without typing. */
static int
add_stats_type(PyObject *mod, struct pyio_state *st)
{
    PyObject *const collections = PyImport_ImportModule("collections");
    PyObject *name = NULL;
    int result = -1;

    if (collections == NULL) {
        return -1;
    }
    st->pool_stats_type = PyObject_CallMethod(
        collections, "namedtuple", "ss", "PoolStats",
        "limit held in_use high_water hits misses discarded");
    name = PyUnicode_FromString("pyio_chunked");
    if (st->pool_stats_type != NULL && name != NULL
        && PyObject_SetAttrString(st->pool_stats_type, "__module__", name)
               == 0) {
        result = PyModule_AddObjectRef(mod, "PoolStats", st->pool_stats_type);
    }
    Py_XDECREF(name);
    Py_DECREF(collections);
    return result;
}

/* PYIO_CHUNKED_POOL_LIMIT: bytes, once at load. */
static int
limit_from_environment(void)
{
    const char *const text = getenv("PYIO_CHUNKED_POOL_LIMIT");
    char *end;
    unsigned long long nbytes;

    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    nbytes = strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-' || errno != 0) {
        return pyio_raise(PyExc_ValueError,
                          "PYIO_CHUNKED_POOL_LIMIT is %s, not a number of "
                          "bytes",
                          text);
    }
    cio_pool_set_limit(nbytes);
    return 0;
}

int
pyio_add_pool(PyObject *mod, struct pyio_state *st)
{
    PyObject *pool;
    int result;

    if (limit_from_environment() < 0 || add_stats_type(mod, st) < 0
        || pyio_add_type(mod, &pool_spec, NULL, &st->pool_type) < 0) {
        return -1;
    }
    pool = st->pool_type->tp_alloc(st->pool_type, 0);
    if (pool == NULL) {
        return -1;
    }
    result = PyModule_AddObjectRef(mod, "pool", pool);
    Py_DECREF(pool);
    return result;
}
