/* SPDX-License-Identifier: MIT
 * pyio_zip_profile.c - where cio_profile wants to see bytes, they are fetched.
 */
#include "glue/zip/pyio_zip_profile.h"

#include <string.h>

#include "glue/zip/pyio_zip_reader.h"

/* Drives a check to its end; -1 with an exception where reading failed. */
static int
run_check(struct pyio_state *st, struct pyio_archive *archive,
          struct cio_profile_check *check)
{
    uint8_t small[512], *large = NULL, *data = small;
    size_t got = 0;
    int result = 0;

    while (cio_profile_check_step(check, data, got) == CIO_MORE) {
        if (check->want_nbytes > sizeof small && large == NULL) {
            large = cio_sys->malloc(CIO_PROFILE_WANT_NBYTES);
            if (large == NULL) {
                (void)PyErr_NoMemory();
                result = -1;
                break;
            }
        }
        data = check->want_nbytes > sizeof small ? large : small;
        if (pyio_archive_fetch(st, archive, check->want_off, data,
                               check->want_nbytes, &got)
            < 0) {
            result = -1;
            break;
        }
    }
    cio_free(large);
    return result;
}

static uint32_t
index_at(const struct cio_directory *directory, uint32_t position)
{
    return directory->ascending ? position : directory->order[position];
}

uint32_t
pyio_member_index(const struct pyio_archive *archive,
                  const struct cio_entry *entry)
{
    const struct cio_directory *const d = &archive->directory;
    uint32_t low = 0, high = d->count;
    struct cio_zip_info info;

    if (entry->index != UINT32_MAX) {
        return entry->index;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (d->members[index_at(d, middle)].header_off < entry->header_off) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == d->count
        || d->members[index_at(d, low)].header_off != entry->header_off) {
        return UINT32_MAX;
    }
    cio_directory_info(d, index_at(d, low), &info);
    /* Several members at one offset overlap: whichever it is, it is refused,
     * so that nobody makes us look for it among thousands. */
    if ((low + 1 < d->count
         && d->members[index_at(d, low + 1)].header_off == entry->header_off)
        || (info.raw_name_nbytes == entry->raw_name_nbytes
            && memcmp(info.raw_name, entry->raw_name, info.raw_name_nbytes)
                   == 0)) {
        return info.index;
    }
    return UINT32_MAX;
}

int
pyio_archive_admit(struct pyio_state *st, struct pyio_archive *archive,
                   struct cio_profile *profile, const struct cio_entry *entry,
                   PyObject *name)
{
    struct cio_zip_problem problem = {
        .rule = CIO_ZIP_RULE_PROFILE,
        .index = pyio_member_index(archive, entry),
        .offset = entry->header_off,
        .text = "the directory has no such member",
    };
    struct cio_profile_check check;

    if (problem.index == UINT32_MAX) {
        return pyio_zip_raise(st, archive, name, &problem);
    }
    cio_profile_check_init(&check, profile, problem.index);
    if (run_check(st, archive, &check) < 0) {
        return -1;
    }
    if (check.rules == 0) {
        return 0;
    }
    problem.text = cio_profile_rule_text(check.rules);
    return pyio_zip_raise(st, archive, name, &problem);
}

static struct cio_profile *
new_profile(struct pyio_archive *archive, enum cio_profile_kind kind)
{
    struct cio_profile *profile;

    if (pyio_archive_order(archive) < 0) {
        return NULL;
    }
    profile = cio_profile_new(kind, &archive->directory);
    if (profile == NULL) {
        (void)PyErr_NoMemory();
    }
    return profile;
}

struct cio_profile *
pyio_archive_extraction(struct pyio_archive *archive)
{
    if (archive->profile != NULL) {
        return archive->profile;
    }
    if (archive->extraction == NULL) {
        archive->extraction = new_profile(archive, CIO_PROFILE_SAFE);
    }
    return archive->extraction;
}

/* What strict refuses of the archive as a whole. */
static int
archive_rules(struct pyio_state *st, struct pyio_archive *archive,
              uint32_t *rules)
{
    uint8_t end_record[CIO_ZIP_END_NBYTES] = {0};
    size_t got;

    if (pyio_archive_fetch(st, archive, archive->directory.end.end_off,
                           end_record, sizeof end_record, &got)
        < 0) {
        return -1;
    }
    *rules = cio_profile_archive_rules(&archive->directory, end_record);
    return 0;
}

static int
set_profile(struct pyio_state *st, struct pyio_archive *archive, long kind)
{
    struct cio_zip_problem problem = {.rule = CIO_ZIP_RULE_PROFILE,
                                      .index = UINT32_MAX};
    uint32_t rules = 0;

    if (kind == CIO_PROFILE_COMPAT) {
        return 0;
    }
    if (kind == CIO_PROFILE_STRICT && archive_rules(st, archive, &rules) < 0) {
        return -1;
    }
    if (rules != 0) {
        PyObject *const name =
            archive->filename != NULL && archive->filename != Py_None
                ? Py_NewRef(archive->filename)
                : PyUnicode_FromString("archive");

        problem.offset = archive->directory.end.end_off;
        problem.text = cio_profile_rule_text(rules);
        if (name != NULL) {
            (void)pyio_zip_raise(st, archive, name, &problem);
            Py_DECREF(name);
        }
        return -1;
    }
    archive->profile = new_profile(archive, (enum cio_profile_kind)kind);
    return archive->profile == NULL ? -1 : 0;
}

PyObject *
pyio_zip_reader_set_profile(PyObject *op, PyObject *kind)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *const archive = pyio_zip_reader_archive(op);
    const long value = PyLong_AsLong(kind);
    int result;

    if (archive == NULL) {
        return NULL;
    }
    result = PyErr_Occurred() ? -1 : set_profile(st, archive, value);
    pyio_archive_release(archive);
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------- check */

/* One line for each rule in the set; name NULL: of the archive. */
static int
add_lines(PyObject *list, uint32_t rules, PyObject *name)
{
    while (rules != 0) {
        const uint32_t lowest = rules & (0 - rules);
        PyObject *const line =
            name == NULL ? PyUnicode_FromString(cio_profile_rule_text(lowest))
                         : PyUnicode_FromFormat(
                               "%s: %R", cio_profile_rule_text(lowest), name);
        const int result = line == NULL ? -1 : PyList_Append(list, line);

        Py_XDECREF(line);
        if (result < 0) {
            return -1;
        }
        rules &= ~lowest;
    }
    return 0;
}

static int
check_member(struct pyio_state *st, struct pyio_archive *archive,
             struct cio_profile *profile, uint32_t index, PyObject *list)
{
    struct cio_profile_check check;
    PyObject *name;
    int result;

    cio_profile_check_init(&check, profile, index);
    if (run_check(st, archive, &check) < 0) {
        return -1;
    }
    if (archive->directory.members[index].flags & CIO_ZIP_MEMBER_SHADOWED) {
        check.rules |= CIO_PROFILE_DUPLICATE;
    }
    if (check.rules == 0) {
        return index % 4096 == 0 ? PyErr_CheckSignals() : 0;
    }
    name = pyio_archive_name(archive, index);
    result = name == NULL ? -1 : add_lines(list, check.rules, name);
    Py_XDECREF(name);
    return result;
}

const char pyio_zip_reader_check_doc[] =
    PyDoc_STR("check($self, /)\n--\n\n"
              "What the strict profile would refuse: a list of lines, each a "
              "rule's name and,\nbehind a colon, the member.\n\n"
              "Reads every local header, no data.");

PyObject *
pyio_zip_reader_check(PyObject *op, PyObject *Py_UNUSED(unused))
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *const archive = pyio_zip_reader_archive(op);
    struct cio_profile *profile = NULL;
    PyObject *list = PyList_New(0);
    uint32_t rules;
    int result = -1;

    if (archive != NULL && list != NULL
        && (profile = new_profile(archive, CIO_PROFILE_STRICT)) != NULL
        && archive_rules(st, archive, &rules) == 0) {
        /* duplicates are named one by one, at their members */
        rules &= ~(uint32_t)CIO_PROFILE_DUPLICATE;
        result = add_lines(list, rules, NULL);
        for (uint32_t i = 0; result == 0 && i < archive->directory.count;
             i++) {
            result = check_member(st, archive, profile, i, list);
        }
    }
    cio_profile_free(profile);
    pyio_archive_release(archive);
    if (result < 0) {
        Py_CLEAR(list);
    }
    return list;
}
