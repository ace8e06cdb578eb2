/* SPDX-License-Identifier: MIT
 * pyio_zip_ahead.c - small members read in the order of the file.
 *
 * Half of what a member of 1 KiB costs beside inflating is its system call.
 * Who reads one behind the other gets many at once; who jumps about pays for
 * nothing that he doesn't read. Everything here happens with the GIL held,
 * from the page cache, so the window needs no lock.
 */
#include "glue/zip/pyio_zip.h"

#include "base/cio_bytes.h"

static bool
covers(const struct pyio_archive *archive, uint64_t off, size_t nbytes)
{
    return archive->window_nbytes > 0 && off >= archive->window_off
           && nbytes <= archive->window_nbytes
           && off - archive->window_off <= archive->window_nbytes - nbytes;
}

/* Whatever fails here the plain way finds again, and says. */
static void
refill(struct pyio_archive *archive, uint64_t off)
{
    ssize_t got;

    archive->window_nbytes = 0;
    if (archive->window == NULL) {
        if (!cio_entry_reserve_spare(CIO_ZIP_AHEAD_NBYTES)) {
            return;
        }
        archive->window_reserved = CIO_ZIP_AHEAD_NBYTES;
        archive->window = cio_buffer_take(CIO_ZIP_AHEAD_NBYTES);
        if (archive->window == NULL) {
            pyio_archive_drop_window(archive);
            return;
        }
    }
    got = cio_sys->pread_nowait(archive->fd, archive->window->data,
                                CIO_ZIP_AHEAD_NBYTES, (off_t)off);
    if (got > 0) {
        archive->window_off = off;
        archive->window_nbytes = (size_t)got;
    }
}

static const uint8_t *
look(struct pyio_archive *archive, const struct cio_entry *entry,
     size_t *nbytes)
{
    const uint64_t want = cio_entry_window(entry);
    const bool in_order = entry->header_off == archive->expected_off;

    archive->expected_off = entry->end_off;
    if (want > CIO_ZIP_IN_ORDER_NBYTES) {
        return NULL;
    }
    if (in_order && !covers(archive, entry->header_off, (size_t)want)) {
        refill(archive, entry->header_off);
    }
    if (!covers(archive, entry->header_off, (size_t)want)) {
        return NULL;
    }
    *nbytes = archive->window_nbytes
              - (size_t)(entry->header_off - archive->window_off);
    return archive->window->data + (entry->header_off - archive->window_off);
}

/* The file may have been mended since: it is asked again. */
static bool
broken(struct pyio_archive *archive)
{
    archive->window_nbytes = 0;
    return false;
}

bool
pyio_ahead_locate(struct pyio_archive *archive, struct cio_entry *entry,
                  enum cio_status *status, struct cio_zip_problem *problem)
{
    const bool in_order = entry->header_off == archive->expected_off;
    size_t nbytes, need;
    const uint8_t *const data = look(archive, entry, &nbytes);

    if (in_order) { /* it is read next, most likely */
        archive->expected_off = entry->header_off;
    }
    if (data == NULL) {
        return false;
    }
    *status = cio_entry_header(entry, data, nbytes, &need, problem);
    return *status == CIO_OK || broken(archive);
}

bool
pyio_ahead_read(struct pyio_archive *archive, struct cio_entry *entry,
                uint8_t *out, struct cio_done *done,
                struct cio_zip_problem *problem)
{
    const uint64_t seen = entry->data_off;
    size_t nbytes, need;
    const uint8_t *const data = look(archive, entry, &nbytes);
    uint64_t start;

    *done = cio_done_of(CIO_OK, 0);
    if (data == NULL) {
        return false;
    }
    done->status = cio_entry_header(entry, data, nbytes, &need, problem);
    if (done->status != CIO_OK) {
        return broken(archive);
    }
    start = entry->data_off - entry->header_off;
    if (start <= nbytes && entry->compressed_nbytes <= nbytes - start) {
        done->status = cio_entry_decode(entry, data + start, out, problem);
        if (done->status != CIO_ERR_DATA) {
            return true;
        }
        (void)broken(archive);
    }
    entry->data_off = seen;
    return false;
}
