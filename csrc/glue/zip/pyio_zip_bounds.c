/* SPDX-License-Identifier: MIT
 * pyio_zip_bounds.c - Limits, as numbers, and what is beyond them.
 */
#include "base/cio_bytes.h"
#include "glue/zip/pyio_zip_profile.h"
#include "glue/zip/pyio_zip_reader.h"

static int
as_bound(PyObject *value, uint64_t *bound)
{
    *bound = UINT64_MAX;
    if (value == Py_None) {
        return 0;
    }
    *bound = PyLong_AsUnsignedLongLong(value);
    return *bound == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

int
pyio_as_bounds(PyObject *limits, struct pyio_bounds *bounds)
{
    PyObject *items[6];

    if (!PyArg_ParseTuple(limits, "OOOOOO", &items[0], &items[1], &items[2],
                          &items[3], &items[4], &items[5])) {
        return -1;
    }
    bounds->ratio = items[5] == Py_None ? -1.0 : PyFloat_AsDouble(items[5]);
    if (PyErr_Occurred() || as_bound(items[0], &bounds->entries) < 0
        || as_bound(items[1], &bounds->directory) < 0
        || as_bound(items[2], &bounds->name) < 0
        || as_bound(items[3], &bounds->entry) < 0
        || as_bound(items[4], &bounds->total) < 0) {
        return -1;
    }
    return 0;
}

static int
reached(struct pyio_state *st, struct pyio_archive *archive,
        enum cio_zip_rule rule, PyObject *name, uint32_t index,
        uint64_t allowed, uint64_t found)
{
    const struct cio_zip_problem problem = {
        .rule = rule, .index = index, .expected = allowed, .found = found};

    return pyio_zip_raise(st, archive, name, &problem);
}

int
pyio_bounds_directory(struct pyio_state *st, struct pyio_archive *archive,
                      const struct pyio_bounds *bounds)
{
    const struct cio_directory *const d = &archive->directory;

    if (d->count > bounds->entries) {
        return reached(st, archive, CIO_ZIP_RULE_LIMIT_ENTRIES, NULL,
                       UINT32_MAX, bounds->entries, d->count);
    }
    if (d->end.dir_nbytes > bounds->directory) {
        return reached(st, archive, CIO_ZIP_RULE_LIMIT_DIRECTORY, NULL,
                       UINT32_MAX, bounds->directory, d->end.dir_nbytes);
    }
    return 0;
}

int
pyio_bounds_check(struct pyio_state *st, struct pyio_archive *archive,
                  const struct pyio_bounds *bounds,
                  const struct cio_entry *entry, PyObject *name)
{
    const uint64_t packed = cio_max_u64(entry->compressed_nbytes, 1);

    if (entry->raw_name_nbytes > bounds->name) {
        return reached(st, archive, CIO_ZIP_RULE_LIMIT_NAME, name,
                       entry->index, bounds->name, entry->raw_name_nbytes);
    }
    if (entry->nbytes > bounds->entry) {
        return reached(st, archive, CIO_ZIP_RULE_LIMIT_ENTRY, name,
                       entry->index, bounds->entry, entry->nbytes);
    }
    if (bounds->ratio >= 0
        && (double)entry->nbytes > bounds->ratio * (double)packed) {
        return reached(st, archive, CIO_ZIP_RULE_LIMIT_RATIO, name,
                       entry->index, (uint64_t)bounds->ratio,
                       entry->nbytes / packed + (entry->nbytes % packed != 0));
    }
    return 0;
}

int
pyio_bounds_add(struct pyio_state *st, struct pyio_archive *archive,
                const struct pyio_bounds *bounds,
                const struct cio_entry *entry, PyObject *name, uint64_t *total)
{
    if (pyio_bounds_check(st, archive, bounds, entry, name) < 0) {
        return -1;
    }
    if (!cio_add_u64(*total, entry->nbytes, total)) {
        *total = UINT64_MAX;
    }
    return *total > bounds->total
               ? reached(st, archive, CIO_ZIP_RULE_LIMIT_TOTAL, NULL,
                         UINT32_MAX, bounds->total, *total)
               : 0;
}

int
pyio_bounds_all(struct pyio_state *st, struct pyio_archive *archive)
{
    const struct cio_directory *const d = &archive->directory;
    uint64_t total = 0;

    if (pyio_archive_order(archive) < 0) {
        return -1;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        struct cio_zip_info info;
        struct cio_entry entry;

        cio_directory_info(d, i, &info);
        cio_entry_of(d, &info, &entry);
        if (pyio_bounds_add(st, archive, &archive->bounds, &entry, NULL,
                            &total)
            < 0) {
            return -1;
        }
    }
    return 0;
}

/* Those of the directory have been looked at while it was loaded. */
PyObject *
pyio_zip_reader_set_limits(PyObject *op, PyObject *limits)
{
    struct pyio_archive *const archive = pyio_zip_reader_archive(op);
    int result;

    if (archive == NULL) {
        return NULL;
    }
    result = pyio_as_bounds(limits, &archive->bounds);
    archive->bounded = result == 0
                       && (archive->bounds.entry != UINT64_MAX
                           || archive->bounds.total != UINT64_MAX
                           || archive->bounds.ratio >= 0);
    pyio_archive_release(archive);
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}
