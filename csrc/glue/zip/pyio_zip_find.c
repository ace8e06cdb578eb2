/* SPDX-License-Identifier: MIT
 * pyio_zip_find.c - a member found by name or given as ZipInfo.
 */
#include "glue/zip/pyio_zip.h"

#include <string.h>

static int
no_such_member(PyObject *name)
{
    return pyio_raise(PyExc_KeyError,
                      "There is no item named %R in the archive", name);
}

static int
get_u64(PyObject *info, const char *name, uint64_t *value)
{
    PyObject *const attribute = PyObject_GetAttrString(info, name);

    if (attribute == NULL) {
        return -1;
    }
    *value = PyLong_AsUnsignedLongLong(attribute);
    Py_DECREF(attribute);
    if (*value == UINT64_MAX && PyErr_Occurred()) {
        return -1;
    }
    return 0;
}

/* orig_filename as the bytes that the local header should hold. */
static int
encode_name(struct pyio_archive *archive, PyObject *info,
            struct pyio_member *member)
{
    PyObject *const name = PyObject_GetAttrString(info, "orig_filename");
    const char *encoding = "utf-8";

    if (name == NULL) {
        return -1;
    }
    if (!(member->entry.flags & CIO_ZIP_FLAG_UTF8)) {
        encoding = archive->encoding == NULL
                       ? "cp437"
                       : PyUnicode_AsUTF8(archive->encoding);
    }
    member->raw_name =
        encoding == NULL ? NULL
                         : PyUnicode_AsEncodedString(name, encoding, "strict");
    Py_DECREF(name);
    if (member->raw_name == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return -1;
        }
        /* No header can hold that name under that flag. */
        PyErr_Clear();
        member->raw_name = PyBytes_FromStringAndSize(NULL, 0);
        if (member->raw_name == NULL) {
            return -1;
        }
    }
    member->entry.raw_name =
        (const uint8_t *)PyBytes_AS_STRING(member->raw_name);
    member->entry.raw_name_nbytes = (size_t)PyBytes_GET_SIZE(member->raw_name);
    return 0;
}

/* A ZipInfo is read by its own fields, as zipfile does: callers change them.
 */
static int
find_by_info(struct pyio_archive *archive, PyObject *info,
             struct pyio_member *member)
{
    struct cio_entry *const entry = &member->entry;
    uint64_t crc, method, flags, time;

    if (get_u64(info, "compress_size", &entry->compressed_nbytes) < 0
        || get_u64(info, "file_size", &entry->nbytes) < 0
        || get_u64(info, "CRC", &crc) < 0
        || get_u64(info, "compress_type", &method) < 0
        || get_u64(info, "flag_bits", &flags) < 0
        || get_u64(info, "_raw_time", &time) < 0) {
        return -1;
    }
    if (get_u64(info, "header_offset", &entry->header_off) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return -1;
        }
        PyErr_Clear();
        entry->nowhere = true;
    }
    if (entry->header_off > INT64_MAX) {
        entry->nowhere = true;
    }
    entry->end_off =
        cio_directory_end_behind(&archive->directory, entry->header_off);
    entry->crc = (uint32_t)crc;
    entry->method = (uint16_t)method;
    entry->flags = (uint16_t)flags;
    entry->time = (uint16_t)time;
    entry->index = UINT32_MAX;
    entry->verify = true;
    member->name = PyObject_GetAttrString(info, "filename");
    return member->name == NULL ? -1 : encode_name(archive, info, member);
}

int
pyio_name_index(const struct pyio_archive *archive, PyObject *name,
                uint32_t *index)
{
    const char *utf8;
    Py_ssize_t nbytes;

    *index = UINT32_MAX;
    if (!PyUnicode_Check(name)) {
        /* zipfile looks a name up in a dict. */
        return PyObject_Hash(name) == -1 ? -1 : 0;
    }
    utf8 = PyUnicode_AsUTF8AndSize(name, &nbytes);
    if (utf8 != NULL) {
        *index = cio_directory_find(&archive->directory, utf8, (size_t)nbytes);
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        return -1;
    }
    PyErr_Clear(); /* a str that no UTF-8 spells names nothing */
    return 0;
}

int
pyio_member_find(struct pyio_state *st, struct pyio_archive *archive,
                 PyObject *what, struct pyio_member *member)
{
    struct cio_zip_info info;
    uint32_t index;

    memset(member, 0, sizeof *member);
    if (pyio_archive_order(archive) < 0) {
        return -1;
    }
    if (PYIO_LIKELY(PyUnicode_Check(what))) {
        if (pyio_name_index(archive, what, &index) < 0) {
            return -1;
        }
        if (index == UINT32_MAX) {
            return no_such_member(what);
        }
        cio_directory_info(&archive->directory, index, &info);
        cio_entry_of(&archive->directory, &info, &member->entry);
        member->name = Py_NewRef(what);
        return 0;
    }
    if (st->zip_info != NULL) {
        const int is = PyObject_IsInstance(what, st->zip_info);

        if (is < 0) {
            return -1;
        }
        if (is) {
            if (find_by_info(archive, what, member) < 0) {
                pyio_member_clear(member);
                return -1;
            }
            return 0;
        }
    }
    return pyio_name_index(archive, what, &index) < 0 ? -1
                                                      : no_such_member(what);
}

void
pyio_member_clear(struct pyio_member *member)
{
    Py_CLEAR(member->name);
    Py_CLEAR(member->raw_name);
}
