/* SPDX-License-Identifier: MIT
 * pyio_state.h - what one interpreter's copy of the module holds.
 *
 * Owner    The module. PYIO_STATE_OBJECTS lists all references once: traverse
 *          and clear are made from the list, so none can be forgotten.
 */
#ifndef PYIO_STATE_H
#define PYIO_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PYIO_STATE_OBJECTS(X)                                                 \
    /* standard library */                                                    \
    X(PyObject, buffered_iobase)    /* _io._BufferedIOBase */                 \
    X(PyObject, io_buffered_iobase) /* io.BufferedIOBase, the ABC */          \
    X(PyObject, raw_iobase)         /* _io._RawIOBase */                      \
    X(PyObject, text_iobase)        /* _io._TextIOBase */                     \
    X(PyObject, file_io)            /* _io.FileIO */                          \
    X(PyObject, buffered_reader)    /* _io.BufferedReader */                  \
    X(PyObject, buffered_writer)    /* _io.BufferedWriter */                  \
    X(PyObject, buffered_random)    /* _io.BufferedRandom */                  \
    X(PyObject, unsupported)        /* io.UnsupportedOperation */             \
    /* names used on hot paths */                                             \
    X(PyObject, str_readinto)                                                 \
    X(PyObject, str_read)                                                     \
    X(PyObject, str_write)                                                    \
    X(PyObject, str_fileno)                                                   \
    X(PyObject, str_close)                                                    \
    /* io */                                                                  \
    X(PyTypeObject, file_type)                                                \
    X(PyTypeObject, chunks_type)                                              \
    X(PyTypeObject, lease_type)                                               \
    /* transfer */                                                            \
    X(PyTypeObject, transfer_type) /* Transfer, a named tuple */              \
    /* inflate */                                                             \
    X(PyTypeObject, inflater_type)                                            \
    X(PyTypeObject, inflate_reader_type)                                      \
    X(PyTypeObject, gzip_file_type)                                           \
    X(PyTypeObject, pool_type)                                                \
    X(PyObject, pool_stats_type) /* PoolStats, a named tuple */               \
    /* zip */                                                                 \
    X(PyObject, zip_info) /* zipfile.ZipInfo */                               \
    X(PyTypeObject, zip_archive_type)                                         \
    X(PyTypeObject, zip_stream_type)                                          \
    X(PyTypeObject, zip_reader_type)                                          \
    X(PyTypeObject, zip_many_type)                                            \
    /* data */                                                                \
    X(PyTypeObject, data_writer_type)                                         \
    X(PyTypeObject, data_reader_type)                                         \
    X(PyTypeObject, data_iterator_type)                                       \
    X(PyTypeObject, java_output_type)                                         \
    X(PyTypeObject, java_input_type)                                          \
    X(PyObject, utf_error)        /* java.UTFDataFormatError */               \
    X(PyObject, utf_length_error) /* the same, an OverflowError too */        \
    X(PyObject, short_read_error)                                             \
    X(PyObject, array_type) /* array.array, once it is needed */

struct pyio_state {
#define X(type, name) type *name;
    PYIO_STATE_OBJECTS(X)
#undef X
};

#endif
