/* SPDX-License-Identifier: MIT
 * cio_move.c - reads and writes in slices.
 */
#include "io/cio_move.h"

#include <time.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "io/cio_fd.h"

int64_t
cio_clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

size_t
cio_slice_next(size_t *slice_nbytes)
{
    if (*slice_nbytes == 0) {
        *slice_nbytes = CIO_SLICE_NBYTES;
    }
    return *slice_nbytes;
}

void
cio_slice_took(size_t *slice_nbytes, int64_t ns)
{
    if (ns > CIO_SLICE_MAX_NS && *slice_nbytes > CIO_SLICE_MIN_NBYTES) {
        *slice_nbytes /= 2;
    }
}

/* The clock is looked at only where a slice could take long at all. */
static struct cio_done
one_call(struct cio_move *move, int writing)
{
    const size_t want =
        (size_t)cio_min_u64(move->left, cio_slice_next(&move->slice_nbytes));
    const int64_t before = want > CIO_SLICE_MIN_NBYTES ? cio_clock_ns() : 0;
    const struct cio_done done =
        writing ? cio_fd_write(move->fd, move->buf, want, move->off)
                : cio_fd_read(move->fd, move->buf, want, move->off);

    if (before != 0) {
        cio_slice_took(&move->slice_nbytes, cio_clock_ns() - before);
    }
    move->buf += done.nbytes;
    move->left -= done.nbytes;
    if (move->off != CIO_OWN_OFFSET) {
        move->off += (int64_t)done.nbytes;
    }
    if (done.status == CIO_OK && move->left > 0) {
        return cio_done_of(CIO_MORE, done.nbytes);
    }
    return done;
}

struct cio_done
cio_read_step(struct cio_move *move)
{
    return one_call(move, 0);
}

struct cio_done
cio_write_step(struct cio_move *move)
{
    return one_call(move, 1);
}

/* Buffers that make up a slice, at least one; the last may have to be cut:
 * *cut is what was cut off it. */
static int
slice_of(const struct cio_vector *vector, size_t most, size_t *cut)
{
    size_t nbytes = 0;
    int n = 0;

    while (n < vector->n && nbytes < most) {
        nbytes += vector->list[n].iov_len;
        n++;
    }
    *cut = nbytes > most ? nbytes - most : 0;
    return n;
}

static void
skip(struct cio_vector *vector, size_t nbytes)
{
    while (vector->n > 0 && nbytes >= vector->list->iov_len) {
        nbytes -= vector->list->iov_len;
        vector->list++;
        vector->n--;
    }
    if (nbytes > 0) {
        vector->list->iov_base = (uint8_t *)vector->list->iov_base + nbytes;
        vector->list->iov_len -= nbytes;
    }
}

struct cio_done
cio_write_vector_step(struct cio_vector *vector)
{
    const int64_t before = cio_clock_ns();
    struct cio_done done;
    size_t cut;
    int n;

    skip(vector, 0); /* empty buffers */
    if (vector->n == 0) {
        return cio_done_of(CIO_OK, 0);
    }
    n = slice_of(vector, cio_slice_next(&vector->slice_nbytes), &cut);
    vector->list[n - 1].iov_len -= cut;
    done = cio_fd_writev(vector->fd, vector->list, n);
    vector->list[n - 1].iov_len += cut;
    cio_slice_took(&vector->slice_nbytes, cio_clock_ns() - before);
    skip(vector, (size_t)done.nbytes);
    if (done.status == CIO_OK && vector->n > 0) {
        done.status = CIO_MORE;
    }
    return done;
}
