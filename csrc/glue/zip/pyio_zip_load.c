/* SPDX-License-Identifier: MIT
 * pyio_zip_load.c - an archive's directory: found, read, walked, its names.
 */
#include "glue/zip/pyio_zip.h"

#include <string.h>

#include "base/cio_bytes.h"

/* --------------------------------------------------------------- directory */

/* The range the opener wants; *data is replaced. */
static int
fetch_range(struct pyio_state *st, struct pyio_archive *archive,
            struct cio_zip_opener *opener, uint8_t **data, size_t *got)
{
    cio_free(*data);
    *data = cio_sys->malloc(opener->want_nbytes + 1);
    if (*data == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return pyio_archive_fetch(st, archive, opener->want_off, *data,
                              opener->want_nbytes, got);
}

/* The directory's bytes: memory follows what arrives, as a sparse file may
 * claim any size; and one that doesn't begin as a directory isn't read on. */
static int
read_directory(struct pyio_state *st, struct pyio_archive *archive,
               const struct cio_zip_end *end, uint8_t **raw, size_t *have)
{
    size_t capacity = 0;

    *raw = NULL;
    *have = 0;
    while (*have < end->dir_nbytes) {
        size_t want = *have == 0 ? CIO_MIB : *have * 2, got;
        uint8_t *moved;

        if (capacity == CIO_MIB && cio_load_le32(*raw) != 0x02014b50u) {
            return 0; /* the walk will say so */
        }
        want = (size_t)cio_min_u64(want, end->dir_nbytes);
        moved = cio_sys->realloc(*raw, want);
        if (moved == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
        *raw = moved;
        capacity = want;
        if (pyio_archive_fetch(st, archive, end->dir_off + *have, *raw + *have,
                               want - *have, &got)
            < 0) {
            return -1;
        }
        *have += got;
        if (got == 0 || *have < want) {
            break;
        }
    }
    return 0;
}

/* A slice of the walk; the directory belongs to this thread alone. */
static enum cio_status
walk_detached(struct cio_directory *directory, struct cio_zip_problem *problem)
{
    enum cio_status status;

    if (directory->raw_nbytes < CIO_ZIP_ATTACHED_NBYTES) {
        return cio_directory_walk(directory, problem);
    }
    Py_BEGIN_ALLOW_THREADS
    status = cio_directory_walk(directory, problem);
    Py_END_ALLOW_THREADS
    return status;
}

/* Names without the UTF-8 flag, by the caller's encoding. */
static int
rename_members(struct pyio_archive *archive)
{
    struct cio_directory *const directory = &archive->directory;

    for (uint32_t i = 0; i < directory->count; i++) {
        struct cio_zip_info info;
        PyObject *name;
        const char *utf8;
        Py_ssize_t nbytes;
        enum cio_status status;

        cio_directory_info(directory, i, &info);
        if ((info.flags & CIO_ZIP_FLAG_UTF8)
            || (info.member_flags & CIO_ZIP_MEMBER_RENAMED)) {
            continue;
        }
        name = pyio_archive_orig_name(archive, &info);
        utf8 = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, &nbytes);
        if (utf8 == NULL) {
            Py_XDECREF(name);
            return -1;
        }
        status = cio_directory_rename(directory, i, utf8,
                                      strnlen(utf8, (size_t)nbytes));
        Py_DECREF(name);
        if (status != CIO_OK) {
            (void)PyErr_NoMemory();
            return -1;
        }
        if (i % 65536 == 65535 && PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
    if (cio_directory_index(directory) != CIO_OK) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static int
walk(struct pyio_state *st, struct pyio_archive *archive)
{
    struct cio_zip_problem problem;
    enum cio_status status;

    do {
        status = walk_detached(&archive->directory, &problem);
    } while (status == CIO_MORE && PyErr_CheckSignals() == 0);
    if (status != CIO_OK) {
        return pyio_zip_check(st, archive, NULL, cio_done_of(status, 0),
                              &problem);
    }
    return archive->encoding == NULL ? 0 : rename_members(archive);
}

static int
locate(struct pyio_state *st, struct pyio_archive *archive,
       struct cio_zip_opener *opener, uint8_t *comment)
{
    struct cio_zip_problem problem;
    enum cio_status status = CIO_MORE;
    uint8_t *data = NULL;
    size_t got;

    while (status == CIO_MORE) {
        if (fetch_range(st, archive, opener, &data, &got) < 0) {
            cio_free(data);
            return -1;
        }
        status = cio_zip_opener_step(opener, data, got, comment, &problem);
    }
    cio_free(data);
    return status == CIO_OK ? 0
                            : pyio_zip_check(st, archive, NULL,
                                             cio_done_of(status, 0), &problem);
}

int
pyio_archive_find_end(struct pyio_state *st, struct pyio_archive *archive)
{
    const struct cio_zip_bounds none = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct cio_zip_opener opener = {0};
    uint8_t *const comment = cio_sys->malloc(UINT16_MAX + 1);
    int result;

    if (comment == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    cio_zip_opener_init(&opener, archive->file_nbytes, &none);
    result = locate(st, archive, &opener, comment);
    cio_free(comment);
    return result;
}

int
pyio_archive_load(struct pyio_state *st, struct pyio_archive *archive,
                  const struct cio_zip_bounds *bounds)
{
    struct cio_zip_opener opener = {.whole_tail = archive->whole_tail};
    uint8_t *comment = cio_sys->malloc(UINT16_MAX + 1), *raw = NULL, *kept;
    size_t raw_nbytes = 0;
    enum cio_status status;

    if (comment == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    cio_zip_opener_init(&opener, archive->file_nbytes, bounds);
    if (locate(st, archive, &opener, comment) < 0
        || read_directory(st, archive, &opener.end, &raw, &raw_nbytes) < 0) {
        cio_free(comment);
        cio_free(raw);
        return -1;
    }
    kept = cio_sys->realloc(comment, opener.end.comment_nbytes + 1);
    status = cio_directory_init(&archive->directory, &opener, raw, raw_nbytes,
                                kept != NULL ? kept : comment,
                                archive->encoding != NULL);
    if (status != CIO_OK) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return walk(st, archive);
}

int
pyio_archive_order(struct pyio_archive *archive)
{
    if (PYIO_UNLIKELY(!archive->directory.ascending
                      && archive->directory.order == NULL)
        && cio_directory_order(&archive->directory) != CIO_OK) {
        (void)PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* ------------------------------------------------------------------- names */

PyObject *
pyio_archive_name(const struct pyio_archive *archive, uint32_t index)
{
    struct cio_zip_info info;

    cio_directory_info(&archive->directory, index, &info);
    return PyUnicode_DecodeUTF8(info.name, (Py_ssize_t)info.name_nbytes,
                                "strict");
}

PyObject *
pyio_archive_orig_name(const struct pyio_archive *archive,
                       const struct cio_zip_info *info)
{
    const char *encoding = "cp437";

    if (info->flags & CIO_ZIP_FLAG_UTF8) {
        encoding = "utf-8";
    } else if (archive->encoding != NULL) {
        encoding = PyUnicode_AsUTF8(archive->encoding);
        if (encoding == NULL) {
            return NULL;
        }
    }
    return PyUnicode_Decode((const char *)info->raw_name,
                            (Py_ssize_t)info->raw_name_nbytes, encoding,
                            "strict");
}
