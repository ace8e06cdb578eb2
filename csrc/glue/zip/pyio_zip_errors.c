/* SPDX-License-Identifier: MIT
 * pyio_zip_errors.c - what is wrong with an archive, in zipfile's classes and,
 * where it has them, its words.
 */
#include "glue/zip/pyio_zip.h"

#include <zlib.h>

/* A class of zipfile, or of ours that derives from zipfile's: neither is
 * imported before it is needed. */
static PyObject *
find_class(const char *module, const char *name)
{
    PyObject *const mod = PyImport_ImportModule(module);
    PyObject *found = NULL;

    if (mod != NULL) {
        found = PyObject_GetAttrString(mod, name);
        Py_DECREF(mod);
    }
    return found;
}

/* Sets class with the text, followed by where it happened; steals text. */
static int
raise_text(const struct pyio_archive *archive, PyObject *class, PyObject *text,
           uint64_t offset)
{
    PyObject *where;

    if (text != NULL && class != NULL) {
        /* A file without a name may have its descriptor's number there. */
        where = archive->filename == NULL || archive->filename == Py_None
                        || PyLong_Check(archive->filename)
                    ? PyUnicode_FromFormat("%U [at byte %llu]", text,
                                           (unsigned long long)offset)
                    : PyUnicode_FromFormat("%U [at byte %llu of %R]", text,
                                           (unsigned long long)offset,
                                           archive->filename);
        if (where != NULL) {
            PyErr_SetObject(class, where);
            Py_DECREF(where);
        }
    }
    Py_XDECREF(text);
    return -1;
}

static int
raise_bad(const struct pyio_archive *archive, PyObject *text, uint64_t offset)
{
    PyObject *const class = find_class("zipfile", "BadZipFile");
    const int result = raise_text(archive, class, text, offset);

    Py_XDECREF(class);
    return result;
}

static int
raise_ours(const struct pyio_archive *archive, const char *name,
           PyObject *text, uint64_t offset)
{
    PyObject *const class = find_class("pyio_chunked._errors", name);
    const int result = raise_text(archive, class, text, offset);

    Py_XDECREF(class);
    return result;
}

/* name: the member of which `what` is too much, or None. */
static int
raise_limit(const char *limit, const struct cio_zip_problem *problem,
            const char *what, PyObject *name)
{
    PyObject *const class = find_class("pyio_chunked._errors", "LimitError");
    PyObject *text, *error;

    if (class == NULL) {
        return -1;
    }
    text = name == Py_None
               ? PyUnicode_FromFormat(
                     "%s: %llu, but only %llu are allowed (%s)", what,
                     (unsigned long long)problem->found,
                     (unsigned long long)problem->expected, limit)
               : PyUnicode_FromFormat(
                     "%s of %R: %llu, but only %llu are allowed (%s)", what,
                     name, (unsigned long long)problem->found,
                     (unsigned long long)problem->expected, limit);
    error = text == NULL
                ? NULL
                : PyObject_CallFunction(class, "OsKK", text, limit,
                                        (unsigned long long)problem->found,
                                        (unsigned long long)problem->expected);
    if (error != NULL) {
        PyErr_SetObject(class, error);
        Py_DECREF(error);
    }
    Py_XDECREF(text);
    Py_DECREF(class);
    return -1;
}

/* A name flagged UTF-8 that isn't: as zipfile, the decoder's own error. */
static int
raise_decoding(const struct pyio_archive *archive)
{
    const struct cio_directory *const d = &archive->directory;
    const uint8_t *const entry = d->raw + d->walked;
    const size_t left = d->raw_nbytes - d->walked - CIO_ZIP_CENTRAL_NBYTES;
    const size_t said = (size_t)entry[28] | (size_t)entry[29] << 8;
    PyObject *const name = PyUnicode_DecodeUTF8(
        (const char *)entry + CIO_ZIP_CENTRAL_NBYTES,
        (Py_ssize_t)(said < left ? said : left), "strict");

    if (name != NULL) { /* not reached: both decoders follow RFC 3629 */
        Py_DECREF(name);
        return raise_bad(archive, PyUnicode_FromString("Bad UTF-8 in a name"),
                         d->walked);
    }
    return -1;
}

static int
raise_archive(const struct pyio_archive *archive,
              const struct cio_zip_problem *problem)
{
    const unsigned long long found = problem->found;
    const char *text = NULL;

    switch (problem->rule) {
    case CIO_ZIP_RULE_NO_END:
        text = "File is not a zip file";
        break;
    case CIO_ZIP_RULE_DISKS:
        text = "zipfiles that span multiple disks are not supported";
        break;
    case CIO_ZIP_RULE_DIRECTORY_OFFSET:
        text = "Bad offset for central directory";
        break;
    case CIO_ZIP_RULE_DIRECTORY_CUT:
        text = "Truncated central directory";
        break;
    case CIO_ZIP_RULE_DIRECTORY_MAGIC:
        text = "Bad magic number for central directory";
        break;
    case CIO_ZIP_RULE_VERSION:
        return pyio_raise(PyExc_NotImplementedError,
                          "zip file version %llu.%llu", found / 10,
                          found % 10);
    case CIO_ZIP_RULE_EXTRA: {
        char type[8];

        (void)snprintf(type, sizeof type, "%04x", (unsigned)problem->expected);
        return raise_bad(
            archive,
            PyUnicode_FromFormat("Corrupt extra field %s (size=%llu)", type,
                                 found),
            problem->offset);
    }
    case CIO_ZIP_RULE_EXTRA_SIZE:
        text = "Corrupt zip64 extra field. File size not found.";
        break;
    case CIO_ZIP_RULE_EXTRA_COMPRESSED:
        text = "Corrupt zip64 extra field. Compress size not found.";
        break;
    case CIO_ZIP_RULE_EXTRA_OFFSET:
        text = "Corrupt zip64 extra field. Header offset not found.";
        break;
    case CIO_ZIP_RULE_NAME_UTF8:
        return raise_decoding(archive);
    case CIO_ZIP_RULE_UNICODE_PATH:
        text = "Corrupt unicode path extra field (0x7075)";
        break;
    case CIO_ZIP_RULE_UNICODE_PATH_UTF8:
        text = "Corrupt unicode path extra field (0x7075): invalid utf-8 "
               "bytes";
        break;
    case CIO_ZIP_RULE_LIMIT_DIRECTORY:
        return raise_limit("directory_size", problem, "bytes of directory",
                           Py_None);
    case CIO_ZIP_RULE_LIMIT_ENTRIES:
        return raise_limit("entries", problem, "entries", Py_None);
    case CIO_ZIP_RULE_LIMIT_NAME:
        return raise_limit("name_length", problem, "bytes of a name", Py_None);
    case CIO_ZIP_RULE_NONE:
    case CIO_ZIP_RULE_HEADER_CUT:
    case CIO_ZIP_RULE_HEADER_MAGIC:
    case CIO_ZIP_RULE_HEADER_NAME:
    case CIO_ZIP_RULE_OVERLAP:
    case CIO_ZIP_RULE_PATCH:
    case CIO_ZIP_RULE_STRONG:
    case CIO_ZIP_RULE_ENCRYPTED:
    case CIO_ZIP_RULE_PASSWORD:
    case CIO_ZIP_RULE_METHOD:
    case CIO_ZIP_RULE_DATA_CUT:
    case CIO_ZIP_RULE_STREAM:
    case CIO_ZIP_RULE_STREAM_CUT:
    case CIO_ZIP_RULE_SHORT:
    case CIO_ZIP_RULE_LONG:
    case CIO_ZIP_RULE_IMPOSSIBLE:
    case CIO_ZIP_RULE_CRC:
    case CIO_ZIP_RULE_LIMIT_ENTRY:
    case CIO_ZIP_RULE_LIMIT_TOTAL:
    case CIO_ZIP_RULE_LIMIT_RATIO:
    case CIO_ZIP_RULE_PROFILE:
        text = "Bad zip file";
        break;
    }
    return raise_bad(archive, PyUnicode_FromString(text), problem->offset);
}

/* zlib's words as its Python module puts them. */
static PyObject *
stream_text(PyObject *name, const struct cio_zip_problem *problem)
{
    return PyUnicode_FromFormat(
        "Error %d while decompressing data of %R: %s", Z_DATA_ERROR, name,
        problem->text != NULL ? problem->text : "invalid data");
}

static PyObject *
crc_text(PyObject *name, const struct cio_zip_problem *problem)
{
    char sums[48];

    (void)snprintf(sums, sizeof sums, "expected %08x, found %08x",
                   (unsigned)problem->expected, (unsigned)problem->found);
    return PyUnicode_FromFormat("Bad CRC-32 for file %R: %s", name, sums);
}

static int
raise_member(const struct pyio_archive *archive, PyObject *name,
             const struct cio_zip_problem *problem)
{
    const unsigned long long expected = problem->expected;
    const unsigned long long found = problem->found;
    PyObject *text = NULL;

    switch (problem->rule) {
    case CIO_ZIP_RULE_HEADER_CUT:
        text = PyUnicode_FromFormat("Truncated file header of %R", name);
        break;
    case CIO_ZIP_RULE_HEADER_MAGIC:
        text = PyUnicode_FromFormat("Bad magic number for file header of %R",
                                    name);
        break;
    case CIO_ZIP_RULE_HEADER_NAME:
        text = PyUnicode_FromFormat(
            "File name in directory %R and header differ.", name);
        break;
    case CIO_ZIP_RULE_OVERLAP:
        text = PyUnicode_FromFormat(
            "Overlapped entries: %R (possible zip bomb): its data would end "
            "at byte %llu, what follows begins at %llu",
            name, found, expected);
        break;
    case CIO_ZIP_RULE_PATCH:
        return pyio_raise(PyExc_NotImplementedError,
                          "compressed patched data (flag bit 5) of %R", name);
    case CIO_ZIP_RULE_STRONG:
        return pyio_raise(PyExc_NotImplementedError,
                          "strong encryption (flag bit 6) of %R", name);
    case CIO_ZIP_RULE_ENCRYPTED:
        return pyio_raise(PyExc_RuntimeError,
                          "File %R is encrypted, password required for "
                          "extraction",
                          name);
    case CIO_ZIP_RULE_PASSWORD:
        return pyio_raise(PyExc_RuntimeError, "Bad password for file %R",
                          name);
    case CIO_ZIP_RULE_METHOD:
        return pyio_raise(PyExc_NotImplementedError,
                          "That compression method is not supported (%llu, "
                          "of %R)",
                          found, name);
    case CIO_ZIP_RULE_DATA_CUT:
        text = PyUnicode_FromFormat(
            "File ends inside the data of %R: %llu of %llu bytes", name, found,
            expected);
        return raise_ours(archive, "CutShort", text, problem->offset);
    case CIO_ZIP_RULE_STREAM:
        return raise_ours(archive, "BadStream", stream_text(name, problem),
                          problem->offset);
    case CIO_ZIP_RULE_STREAM_CUT:
    case CIO_ZIP_RULE_SHORT:
        text = PyUnicode_FromFormat(
            "Bad size of file %R: expected %llu bytes, found %llu", name,
            expected, found);
        break;
    case CIO_ZIP_RULE_LONG:
        text = PyUnicode_FromFormat(
            "Bad size of file %R: expected %llu bytes, found more", name,
            expected);
        break;
    case CIO_ZIP_RULE_IMPOSSIBLE:
        text = PyUnicode_FromFormat(
            "Bad size of file %R: expected %llu bytes, but its compressed "
            "data can't hold more than %llu",
            name, found, expected);
        break;
    case CIO_ZIP_RULE_CRC:
        text = crc_text(name, problem);
        break;
    case CIO_ZIP_RULE_LIMIT_ENTRY:
        return raise_limit("entry_size", problem, "bytes", name);
    case CIO_ZIP_RULE_LIMIT_TOTAL:
        return raise_limit("total_size", problem, "bytes of all members",
                           Py_None);
    case CIO_ZIP_RULE_LIMIT_RATIO:
        return raise_limit("ratio", problem, "size by compressed size", name);
    case CIO_ZIP_RULE_PROFILE:
        text =
            PyUnicode_FromFormat("%R is refused: %s", name,
                                 problem->text != NULL ? problem->text : "");
        break;
    case CIO_ZIP_RULE_NONE:
    case CIO_ZIP_RULE_NO_END:
    case CIO_ZIP_RULE_DISKS:
    case CIO_ZIP_RULE_DIRECTORY_OFFSET:
    case CIO_ZIP_RULE_DIRECTORY_CUT:
    case CIO_ZIP_RULE_DIRECTORY_MAGIC:
    case CIO_ZIP_RULE_VERSION:
    case CIO_ZIP_RULE_EXTRA:
    case CIO_ZIP_RULE_EXTRA_SIZE:
    case CIO_ZIP_RULE_EXTRA_COMPRESSED:
    case CIO_ZIP_RULE_EXTRA_OFFSET:
    case CIO_ZIP_RULE_NAME_UTF8:
    case CIO_ZIP_RULE_UNICODE_PATH:
    case CIO_ZIP_RULE_UNICODE_PATH_UTF8:
    case CIO_ZIP_RULE_LIMIT_DIRECTORY:
    case CIO_ZIP_RULE_LIMIT_ENTRIES:
    case CIO_ZIP_RULE_LIMIT_NAME:
        return raise_archive(archive, problem);
    }
    return raise_bad(archive, text, problem->offset);
}

int
pyio_zip_raise(struct pyio_state *st, const struct pyio_archive *archive,
               PyObject *name, const struct cio_zip_problem *problem)
{
    PyObject *own = NULL;
    int result;

    (void)st;
    if (problem->rule < CIO_ZIP_RULE_HEADER_CUT) {
        return raise_archive(archive, problem);
    }
    if (name == NULL && problem->index < archive->directory.count) {
        own = pyio_archive_name(archive, problem->index);
        if (own == NULL) {
            return -1;
        }
        name = own;
    }
    result = raise_member(archive, name != NULL ? name : Py_None, problem);
    Py_XDECREF(own);
    return result;
}

int
pyio_zip_check(struct pyio_state *st, const struct pyio_archive *archive,
               PyObject *name, struct cio_done done,
               const struct cio_zip_problem *problem)
{
    const struct pyio_context context = {archive->filename, NULL, -1};

    if (done.status == CIO_ERR_DATA || done.status == CIO_ERR_LIMIT) {
        return pyio_zip_raise(st, archive, name, problem);
    }
    return pyio_check(st, done, &context);
}
