/* SPDX-License-Identifier: MIT
 * pyio_zip_password.c - encrypted members: the keys that a password makes.
 */
#include "base/cio_bytes.h"
#include "glue/zip/pyio_zip_reader.h"

int
pyio_zip_keys(PyObject *pwd, struct cio_zipcrypto *keys)
{
    if (!PyBytes_Check(pwd)) {
        return pyio_raise(PyExc_TypeError, "pwd: expected bytes, got %s",
                          Py_TYPE(pwd)->tp_name);
    }
    cio_zipcrypto_init(keys, (const uint8_t *)PyBytes_AS_STRING(pwd),
                       (size_t)PyBytes_GET_SIZE(pwd));
    return 0;
}

int
pyio_zip_reader_unlock(PyObject *op, struct cio_entry *entry, PyObject *pwd)
{
    PyObject *own = NULL;
    int result = 0;

    if (PYIO_LIKELY(!(entry->flags & CIO_ZIP_FLAG_ENCRYPTED))) {
        return 0;
    }
    if (pwd == NULL || pwd == Py_None
        || (PyBytes_Check(pwd) && PyBytes_GET_SIZE(pwd) == 0)) {
        pwd = own = PyObject_GetAttrString(op, "pwd");
        if (own == NULL) {
            return -1;
        }
    }
    if (pwd != Py_None) {
        entry->decrypt = true;
        result = pyio_zip_keys(pwd, &entry->keys);
    }
    Py_XDECREF(own);
    return result;
}

/* _open_raw(name, pwd): a stream over a member's bytes as they lie in the
 * file, decrypted. */
PyObject *
pyio_zip_reader_open_raw(PyObject *op, PyObject *const *args, Py_ssize_t nargs)
{
    struct pyio_state *st = pyio_state_of(Py_TYPE(op));
    struct pyio_archive *const archive = pyio_zip_reader_archive(op);
    struct pyio_member member;
    PyObject *result = NULL;

    if (archive == NULL) {
        return NULL;
    }
    if (nargs != 2) {
        (void)pyio_raise(PyExc_TypeError, "_open_raw takes 2 arguments");
    } else if (pyio_member_find(st, archive, args[0], &member) == 0) {
        struct cio_entry *const entry = &member.entry;

        if (pyio_zip_reader_unlock(op, entry, args[1]) == 0) {
            entry->method = CIO_ZIP_STORED;
            entry->nbytes = entry->compressed_nbytes;
            if (entry->decrypt) {
                entry->nbytes -=
                    cio_min_u64(entry->nbytes, CIO_ZIPCRYPTO_HEADER_NBYTES);
            }
            entry->verify = false;
            result = pyio_member_open(st, archive, &member);
        }
        pyio_member_clear(&member);
    }
    pyio_archive_release(archive);
    return result;
}
