/* SPDX-License-Identifier: MIT
 * cio_window.c - reading ahead, as far as its user says.
 */
#include "zip/cio_window.h"

#include <errno.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"

bool
cio_window_has(const struct cio_window *window, uint64_t off, size_t nbytes)
{
    return window->buffer != NULL && off >= window->off
           && (window->ended
               || (off - window->off <= window->nbytes
                   && window->nbytes - (size_t)(off - window->off) >= nbytes));
}

static bool
refill(struct cio_window *window, int fd, uint64_t off, size_t nbytes)
{
    window->nbytes = 0;
    window->off = off;
    window->ended = false;
    while (window->nbytes < nbytes) {
        const ssize_t got = cio_sys->pread(
            fd, window->buffer->data + window->nbytes, nbytes - window->nbytes,
            (off_t)(off + window->nbytes));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            window->sys_errno = errno;
            window->nbytes = 0;
            return false;
        }
        if (got == 0) {
            window->ended = true;
            break;
        }
        window->nbytes += (size_t)got;
    }
    return true;
}

const uint8_t *
cio_window_look(struct cio_window *window, int fd, uint64_t off, size_t nbytes,
                size_t ahead, size_t *got)
{
    window->sys_errno = 0;
    if (!cio_window_has(window, off, nbytes)) {
        const size_t want =
            cio_min_size(ahead > nbytes ? ahead : nbytes, CIO_CHUNK_NBYTES);

        if (window->buffer == NULL || window->buffer->nbytes < want) {
            cio_buffer_give(window->buffer);
            window->buffer = cio_buffer_take(want);
        }
        if (window->buffer == NULL || !refill(window, fd, off, want)) {
            return NULL;
        }
    }
    if (off - window->off >= window->nbytes) {
        *got = 0;
        return window->buffer->data;
    }
    *got = cio_min_size(nbytes, window->nbytes - (size_t)(off - window->off));
    return window->buffer->data + (off - window->off);
}

void
cio_window_end(struct cio_window *window)
{
    cio_buffer_give(window->buffer);
    *window = (struct cio_window){0};
}
