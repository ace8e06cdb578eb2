/* SPDX-License-Identifier: MIT
 * cio_sparse.c - holes of the source stay holes of the target.
 *
 * Where the target is new a hole is a step forward; in old bytes it is
 * punched, and filled with zeros where the file system can't punch.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

static struct cio_done
write_zeros(struct cio_transfer *t, uint64_t nbytes)
{
    static const uint8_t zeros[CIO_ZEROS_NBYTES];
    struct cio_done total = {CIO_OK, 0, 0};
    const uint64_t off = t->target.off;

    while (total.nbytes < nbytes && total.status == CIO_OK) {
        const size_t n =
            (size_t)cio_min_u64(sizeof zeros, nbytes - total.nbytes);
        struct cio_done step;

        t->target.off = off + total.nbytes;
        step = cio_target_write(t, zeros, n);
        total.status = step.status;
        total.sys_errno = step.sys_errno;
        total.nbytes += step.nbytes;
    }
    t->target.off = off;
    if (total.nbytes > 0) { /* the error comes again with the next call */
        total.status = CIO_OK;
    }
    return total;
}

struct cio_done
cio_sparse_hole(struct cio_transfer *t, uint64_t nbytes)
{
    const uint64_t off = t->target.off;

    if (off < t->target_size) {
        const uint64_t old = cio_min_u64(nbytes, t->target_size - off);

        if (cio_sys->fallocate(t->target.fd, cio_fallocate_punch, (off_t)off,
                               (off_t)old)
            < 0) {
            if (errno == EINTR) {
                return cio_done_sys(EINTR, 0);
            }
            return write_zeros(t, cio_min_u64(nbytes, CIO_SLICE_NBYTES));
        }
    }
    t->holes += nbytes;
    return cio_done_of(CIO_OK, nbytes);
}

/* SEEK_DATA moves the own offset: noted before, put back at the end. */
static int64_t
seek_segment(struct cio_end *end, uint64_t off, int whence)
{
    if (cio_end_note(end).status != CIO_OK) {
        return -1;
    }
    end->own = -1; /* wherever: it has to be set anew */
    return cio_sys->lseek(end->fd, (off_t)off, whence);
}

/* Behind the last data: the hole ends where the file does, which may have
 * become shorter. What isn't there any more is no hole. */
static int64_t
end_of_holes(struct cio_end *source)
{
    struct stat st;

    if (cio_sys->fstat(source->fd, &st) == 0
        && (uint64_t)st.st_size < source->size) {
        source->size = (uint64_t)st.st_size;
    }
    return (int64_t)source->size;
}

struct cio_done
cio_sparse_next(struct cio_transfer *t)
{
    struct cio_end *source = &t->source;
    const uint64_t off = source->off;
    int64_t data, hole;

    if (off >= source->size) {
        t->data_end = UINT64_MAX; /* what comes now is growth: plain data */
        return cio_done_of(CIO_OK, 0);
    }
    data = seek_segment(source, off, cio_seek_data);
    if (data < 0 && errno == ENXIO) {
        data = end_of_holes(source);
    }
    if (data < (int64_t)off) { /* EINVAL, and where it isn't known: as data */
        t->data_end = UINT64_MAX;
        return cio_done_of(CIO_OK, 0);
    }
    if ((uint64_t)data > off) {
        t->data_end = off;
        return cio_sparse_hole(t, cio_min_u64(t->left, (uint64_t)data - off));
    }
    hole = seek_segment(source, off, cio_seek_hole);
    t->data_end = hole > data ? (uint64_t)hole : UINT64_MAX;
    return cio_done_of(CIO_OK, 0);
}

size_t
cio_sparse_run(const struct cio_transfer *t, const uint8_t *data,
               size_t nbytes, bool *zeros)
{
    size_t at = 0;

    *zeros = false;
    while (at < nbytes) {
        const size_t to_edge =
            (size_t)(CIO_BLOCK_NBYTES
                     - (t->target.off + at) % CIO_BLOCK_NBYTES);
        const size_t n = cio_min_size(to_edge, nbytes - at);
        const bool zero =
            data[at] == 0 && memcmp(data + at, data + at + 1, n - 1) == 0;

        if (at == 0) {
            *zeros = zero;
        } else if (zero != *zeros) {
            break;
        }
        at += n;
    }
    return at;
}

uint64_t
cio_sparse_count(struct cio_end *end, uint64_t from, uint64_t to)
{
    uint64_t holes = 0;

    while (from < to) {
        int64_t data = seek_segment(end, from, cio_seek_data);

        if (data < 0) {
            return errno == ENXIO ? holes + (to - from) : holes;
        }
        if ((uint64_t)data > to) {
            data = (int64_t)to;
        }
        holes += (uint64_t)data - from;
        data = seek_segment(end, (uint64_t)data, cio_seek_hole);
        if (data <= (int64_t)from) {
            break;
        }
        from = (uint64_t)data;
    }
    return holes;
}
