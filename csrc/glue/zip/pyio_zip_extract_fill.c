/* SPDX-License-Identifier: MIT
 * pyio_zip_extract_fill.c - members on their way into a batch: where each one
 * goes, and who extracts it.
 */
#include <fcntl.h>
#include <string.h>

#include "glue/zip/pyio_zip_extract.h"
#include "glue/zip/pyio_zip_tree.h"

bool
pyio_extraction_next(struct extraction *x, struct cio_entry *entry,
                     uint32_t *index, struct cio_zip_info *info,
                     PyObject **name, PyObject **what)
{
    const struct cio_directory *const d = &x->archive->directory;

    *name = *what = NULL;
    if (x->wanted != NULL) {
        if (x->position == x->count) {
            return false;
        }
        *entry = x->wanted[x->position].member.entry;
        *name = Py_NewRef(x->wanted[x->position].member.name);
        *what = x->wanted[x->position].what;
        *index = pyio_member_index(x->archive, entry);
        if (*index != UINT32_MAX) {
            cio_directory_info(d, *index, info);
        }
        x->position++;
        return true;
    }
    while (x->position < x->count
           && (d->members[x->position].flags & CIO_ZIP_MEMBER_SHADOWED)) {
        x->position++;
    }
    if (x->position == x->count) {
        return false;
    }
    *index = x->position++;
    cio_directory_info(d, *index, info);
    cio_entry_of(d, info, entry);
    return true;
}

/* Room for a path of nbytes and its NUL behind the text. */
static char *
more_text(struct extraction *x, size_t nbytes)
{
    if (x->text_capacity - x->text_nbytes < nbytes + 1) {
        const size_t capacity = 2 * x->text_capacity + nbytes + 4096;
        char *const text = cio_sys->realloc(x->text, capacity);

        if (text == NULL) {
            (void)PyErr_NoMemory();
            return NULL;
        }
        x->text = text;
        x->text_capacity = capacity;
    }
    return x->text + x->text_nbytes;
}

static bool
is_ascii(const char *text, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++) {
        if ((unsigned char)text[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

/* The path that the name leads to, behind the text; -1, or its length. */
static Py_ssize_t
put_path(struct extraction *x, const char *name, size_t nbytes)
{
    PyObject *text, *path;
    Py_ssize_t length;
    char *out;

    if (is_ascii(name, nbytes)) {
        out = more_text(x, nbytes);
        return out == NULL ? -1
                           : (Py_ssize_t)cio_name_clean((const uint8_t *)name,
                                                        nbytes, out);
    }
    /* by the file system's encoding, as open() would */
    text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)nbytes, "strict");
    if (text == NULL || pyio_clean_path(text, &path) < 0) {
        Py_XDECREF(text);
        return -1;
    }
    Py_DECREF(text);
    length = PyBytes_GET_SIZE(path);
    out = more_text(x, (size_t)length);
    if (out != NULL) {
        memcpy(out, PyBytes_AS_STRING(path), (size_t)length + 1);
    }
    Py_DECREF(path);
    return out == NULL ? -1 : length;
}

struct audited {
    struct extraction *x;
    const char *path;
};

/* Called only where somebody listens. */
static PyObject *
audited_path(void *argument)
{
    const struct audited *const a = argument;

    return pyio_tree_path(a->x->target, a->path);
}

static int
audit(struct extraction *x, const char *path, bool folder)
{
    struct audited a = {x, path};

    return folder ? PySys_Audit("os.mkdir", "O&ii", audited_path, &a, 0777, -1)
                  : PySys_Audit("open", "O&si", audited_path, &a, "wb",
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
                                    | O_CLOEXEC);
}

static uint32_t
hash_path(const char *path, size_t nbytes)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < nbytes; i++) {
        h = (h ^ (uint8_t)path[i]) * 16777619u;
    }
    return h;
}

/* The batch has a member of that path: the second one has to come after it. */
static bool
seen_before(struct extraction *x, const char *path, size_t nbytes)
{
    size_t slot = hash_path(path, nbytes) % SEEN_SLOTS;

    while (x->seen[slot] != 0) {
        const struct cio_extract_item *item = &x->items[x->seen[slot] - 1];

        if (item->path_nbytes == nbytes
            && memcmp(x->text + x->offsets[x->seen[slot] - 1], path, nbytes)
                   == 0) {
            return true;
        }
        slot = (slot + 1) % SEEN_SLOTS;
    }
    x->seen[slot] = (uint16_t)(x->item_count + 1);
    return false;
}

/* C threads read by descriptor, and know stored and deflated members. */
static bool
is_for_python(const struct extraction *x, const struct cio_entry *entry,
              const struct cio_zip_info *info)
{
    return x->archive->fd < 0
           || (entry->method != CIO_ZIP_STORED
               && entry->method != CIO_ZIP_DEFLATED)
           || (x->symlinks && cio_extract_is_link(info));
}

/* Admits it here, and hands it back. */
static int
hand_back(struct extraction *x, const struct cio_entry *entry, uint32_t index,
          PyObject *what, PyObject *name, const char *path, size_t nbytes)
{
    PyObject *const own =
        name != NULL ? Py_NewRef(name) : pyio_archive_name(x->archive, index);
    PyObject *pair = NULL;
    int result = -1;

    if (own != NULL
        && pyio_archive_admit(x->st, x->archive, x->profile, entry, own)
               == 0) {
        pair = Py_BuildValue("Oy#", what != NULL ? what : own, path,
                             (Py_ssize_t)nbytes);
    }
    if (pair != NULL) {
        result = PyList_Append(x->leftovers, pair);
        Py_DECREF(pair);
    }
    Py_XDECREF(own);
    return result;
}

static int
note_folder(struct extraction *x, const struct cio_zip_info *info,
            const char *path, size_t nbytes)
{
    struct cio_attributes a;
    PyObject *entry;
    int result;

    cio_extract_attributes(info, &a);
    entry = Py_BuildValue(
        "y#NN", path, (Py_ssize_t)nbytes,
        a.has_mode ? PyLong_FromLong((long)a.mode) : Py_NewRef(Py_None),
        a.has_mtime ? PyLong_FromLongLong(a.mtime) : Py_NewRef(Py_None));
    result = entry == NULL ? -1 : PyList_Append(x->folders, entry);
    Py_XDECREF(entry);
    return result;
}

static void
add_item(struct extraction *x, const struct cio_entry *entry, uint32_t index,
         const struct cio_zip_info *info, PyObject *name, bool folder,
         size_t nbytes)
{
    struct cio_extract_item *const item = &x->items[x->item_count];

    memset(item, 0, sizeof *item);
    item->entry = *entry;
    item->index = index;
    item->folder = folder;
    item->path_nbytes = nbytes;
    if ((entry->flags & CIO_ZIP_FLAG_ENCRYPTED) && x->has_keys) {
        item->entry.decrypt = true;
        item->entry.keys = x->keys;
    }
    if (x->preserve && !folder) {
        cio_extract_attributes(info, &item->attributes);
    }
    x->offsets[x->item_count] = x->text_nbytes;
    x->names[x->item_count] = Py_XNewRef(name);
    x->text_nbytes += nbytes + 1;
    x->item_count++;
}

/* A name of the user's own (ZipInfo.filename) leads nowhere else than one of
 * the archive's may. */
static int
check_name(struct extraction *x, const char *utf8, size_t nbytes,
           const struct cio_entry *entry, uint32_t index, PyObject *name)
{
    const unsigned rules =
        cio_name_scan((const uint8_t *)utf8, nbytes) & CIO_PROFILE_SAFE_NAMES;
    const struct cio_zip_problem problem = {
        .rule = CIO_ZIP_RULE_PROFILE,
        .index = index,
        .offset = entry->header_off,
        .text = rules == 0 ? NULL : cio_name_rule_text(rules)};

    return rules == 0 ? 0 : pyio_zip_raise(x->st, x->archive, name, &problem);
}

/* Takes one more member into the batch. */
static enum filled
fill_one(struct extraction *x)
{
    const uint32_t start = x->position;
    struct cio_entry entry;
    struct cio_zip_info info = {0};
    PyObject *name, *what;
    const char *utf8;
    Py_ssize_t nbytes, length;
    uint32_t index;
    enum filled result = FAILED;
    bool folder;

    if (!pyio_extraction_next(x, &entry, &index, &info, &name, &what)) {
        return NONE_LEFT;
    }
    utf8 = info.name;
    nbytes = (Py_ssize_t)info.name_nbytes;
    if (name != NULL) {
        utf8 = PyUnicode_AsUTF8AndSize(name, &nbytes);
    }
    if (utf8 == NULL
        || check_name(x, utf8, (size_t)nbytes, &entry, index, name) < 0) {
        goto out;
    }
    folder = nbytes > 0 && utf8[nbytes - 1] == '/';
    length = put_path(x, utf8, (size_t)nbytes);
    if (length < 0) {
        goto out;
    }
    if (length == 0 && !folder) {
        (void)pyio_raise(PyExc_ValueError, "Empty filename.");
        goto out;
    }
    if (seen_before(x, x->text + x->text_nbytes, (size_t)length)) {
        x->position = start;
        result = FULL;
        goto out;
    }
    if (audit(x, x->text + x->text_nbytes, folder) < 0) {
        goto out;
    }
    if (folder && x->preserve
        && note_folder(x, &info, x->text + x->text_nbytes, (size_t)length)
               < 0) {
        goto out;
    }
    if (index == UINT32_MAX || is_for_python(x, &entry, &info)) {
        if (hand_back(x, &entry, index, what, name, x->text + x->text_nbytes,
                      (size_t)length)
            < 0) {
            goto out;
        }
    } else {
        add_item(x, &entry, index, &info, name, folder, (size_t)length);
    }
    result = FILLED;
out:
    Py_XDECREF(name);
    return result;
}

enum filled
pyio_extraction_fill(struct extraction *x)
{
    enum filled result = FILLED;

    for (size_t i = 0; i < x->item_count; i++) {
        Py_CLEAR(x->names[i]);
    }
    x->item_count = 0;
    x->text_nbytes = 0;
    memset(x->seen, 0, sizeof x->seen);
    /* What is handed back takes a place in the table of seen paths too. */
    for (size_t taken = 0; result == FILLED && taken < CIO_EXTRACT_BATCH;
         taken++) {
        result = fill_one(x);
    }
    for (size_t i = 0; i < x->item_count; i++) {
        x->items[i].path = x->text + x->offsets[i];
    }
    return result;
}
