/* SPDX-License-Identifier: MIT
 * pyio_read.c - the page cache under the GIL, else slices without it, else
 * several threads.
 */
#include "glue/base/pyio_read.h"

#include "base/cio_bytes.h"
#include "base/cio_thresholds.h"
#include "io/cio_parallel.h"

/* From here on a hint of the size is worth asking anew: a file that shrank
 * since it was opened must not cost its old size. */
#define TRUST_SIZE_NBYTES CIO_MIB

int
pyio_target_buffer(PyObject *object, const char *function, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) == 0) {
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        return pyio_raise(PyExc_TypeError,
                          "%s() argument must be a read-write, contiguous "
                          "bytes-like object, not %.50s",
                          function, Py_TYPE(object)->tp_name);
    }
    return -1;
}

static struct cio_done
step_detached(void *argument)
{
    return cio_file_read_step(argument);
}

static struct cio_done
read_parallel(struct cio_file *file, uint8_t *buf, size_t nbytes,
              unsigned threads)
{
    struct cio_parallel read;
    struct cio_done done;
    bool raised = false;

    cio_parallel_begin(&read, file->fd, file->off, buf, nbytes, threads);
    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_parallel_step(&read);
        Py_END_ALLOW_THREADS
        raised = done.status == CIO_MORE && PyErr_CheckSignals() < 0;
    } while (done.status == CIO_MORE && !raised);
    if (raised) {
        cio_parallel_cancel(&read);
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_parallel_end(&read);
        Py_END_ALLOW_THREADS
        if (!raised && PyErr_CheckSignals() < 0) {
            raised = true;
            cio_parallel_cancel(&read);
        }
    } while (done.status == CIO_MORE);

    if (raised) {
        done.status = CIO_MORE;
    }
    file->off += (int64_t)done.nbytes;
    return done;
}

struct cio_done
pyio_read_memory(struct cio_file *file, uint8_t *buf, size_t nbytes,
                 unsigned threads)
{
    struct cio_file_move move = {.file = file, .buf = buf, .left = nbytes};
    struct pyio_slices slices = {.step = step_detached, .argument = &move};
    struct cio_done done = cio_done_of(CIO_MORE, 0);
    uint64_t moved = 0;

    if (nbytes == 0) {
        return cio_done_of(CIO_OK, 0);
    }
    if (nbytes <= CIO_NOWAIT_NBYTES + 1) {
        do {
            done = cio_file_read_step_now(&move);
            moved += done.nbytes;
        } while (done.status == CIO_MORE && done.nbytes > 0);
        if (done.status != CIO_MORE) {
            done.nbytes = moved;
            return done;
        }
    } else if (threads != 1 && file->off != CIO_OWN_OFFSET && file->cached
               && nbytes >= atomic_load(&cio_thresholds.parallel)
               && (threads = cio_workers_count(threads)) > 1) {
        return read_parallel(file, buf, nbytes, threads);
    }
    done = pyio_run_slices(&slices);
    done.nbytes += moved;
    return done;
}

struct cio_done
pyio_fill(struct cio_file *file)
{
    struct cio_done done;

    if (cio_file_fill_now(file)) {
        return cio_done_of(CIO_OK, 0);
    }
    do {
        Py_BEGIN_ALLOW_THREADS
        done = cio_file_fill(file);
        Py_END_ALLOW_THREADS
    } while (done.status == CIO_MORE && PyErr_CheckSignals() == 0);
    return done;
}

/* What is there by the file's own size, else a first guess; never more than
 * the limit. A size may be a lie (/proc/kcore says 128 TiB): where there is
 * no such memory, it grows with what arrives instead. */
static int
first_capacity(struct cio_file *file, size_t ahead, size_t limit,
               struct pyio_result *result, bool *known)
{
    uint64_t rest = cio_file_rest_seen(file);
    size_t capacity;

    if (limit - ahead <= CIO_GROW_FIRST_NBYTES) {
        return pyio_result_init(result, limit);
    }
    if (rest == 0 || rest > TRUST_SIZE_NBYTES) {
        rest = cio_file_rest_now(file);
    }
    *known = rest > 0;
    if (rest == 0) {
        capacity = cio_min_size(limit, ahead + CIO_GROW_FIRST_NBYTES);
        return pyio_result_init(result, capacity);
    }
    capacity = (size_t)cio_min_u64(limit, ahead + rest);
    if (pyio_result_init(result, capacity) == 0) {
        return 0;
    }
    if (capacity <= CIO_GROW_SLOW_NBYTES) {
        return -1;
    }
    PyErr_Clear();
    return pyio_result_init(result, CIO_GROW_SLOW_NBYTES);
}

struct cio_done
pyio_read_result(struct cio_file *file, size_t limit, unsigned threads,
                 struct pyio_result *result)
{
    const size_t ahead = cio_min_size(cio_file_ahead(file), limit);
    struct cio_done done = cio_done_of(CIO_OK, 0);
    bool known = false;

    if (first_capacity(file, ahead, limit, result, &known) < 0) {
        PyErr_Clear();
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    result->nbytes = cio_file_take(file, result->data, ahead);
    while (done.status == CIO_OK && result->nbytes < limit) {
        size_t want = cio_min_size(result->capacity, limit) - result->nbytes;

        /* One byte more than there should be, into the place of the bytes
         * object's NUL, tells the end without a second call. */
        if (result->capacity < limit) {
            want++;
        }
        done = pyio_read_memory(file, result->data + result->nbytes, want,
                                threads);
        result->nbytes += done.nbytes;
        if (result->nbytes > result->capacity && known) {
            /* It grew since it was asked. Once more, and no further: a writer
             * may be faster than we are for ever. */
            known = false;
            limit = (size_t)cio_min_u64(limit, result->nbytes
                                                   + cio_file_rest_now(file));
        }
        if (result->nbytes > result->capacity
            && pyio_result_grow(result, limit) < 0) {
            PyErr_Clear();
            done.status = CIO_ERR_NOMEM;
        }
    }
    if (result->nbytes <= result->capacity) {
        result->data[result->nbytes] = '\0';
    }
    done.nbytes = result->nbytes;
    return done;
}
