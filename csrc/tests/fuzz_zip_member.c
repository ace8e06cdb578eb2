/* SPDX-License-Identifier: MIT
 * fuzz_zip_member.c - one member: its local header and data are the input,
 * what the directory says of it stands in front. Read whole and streamed with
 * windows of sizes from the input, it must give the same bytes; where only one
 * way gives any, the checksum confirms them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"
#include "inflate/cio_engine.h"
#include "zip/cio_entry.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { FRONT = 16, OUT_MAX = 1 << 18 };

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return cio_engine_init(getenv("PYIO_CHUNKED_ENGINE")) ? 0 : -1;
}

static void
must(int holds)
{
    if (!holds) {
        abort();
    }
}

static enum cio_status
read_streamed(const struct cio_entry *entry, const uint8_t *file,
              size_t in_window, size_t out_window, uint8_t *out)
{
    struct cio_entry_stream stream;
    struct cio_zip_problem problem;
    enum cio_status status = CIO_OK;

    cio_entry_stream_init(&stream, entry);
    while (status == CIO_OK) {
        struct cio_span span = {
            .in = file + entry->data_off + stream.in_done,
            .in_nbytes = (size_t)cio_min_u64(
                in_window, entry->compressed_nbytes - stream.in_done),
            .out = out + stream.out_done,
            .out_nbytes = (size_t)cio_min_u64(out_window,
                                              entry->nbytes - stream.out_done),
        };
        const uint64_t before = stream.in_done + stream.out_done;

        status = cio_entry_stream_step(&stream, &span, &problem);
        if (status == CIO_OK && span.in_used == 0 && span.out_used == 0
            && stream.in_done + stream.out_done == before
            && (span.in_nbytes > 0 || span.out_nbytes > 0)) {
            abort(); /* would go round for ever */
        }
    }
    cio_entry_stream_close(&stream);
    return status == CIO_EOF ? CIO_OK : status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct cio_entry entry = {.end_off = UINT64_MAX};
    struct cio_zip_problem problem;
    const uint8_t *const file = data + FRONT;
    uint8_t *whole, *streamed;
    enum cio_status one, other;
    size_t need;

    if (nbytes < FRONT + 30) {
        return 0;
    }
    entry.method = data[0] & 1 ? CIO_ZIP_DEFLATED : CIO_ZIP_STORED;
    entry.verify = (data[0] & 2) != 0;
    entry.bare = (data[0] & 4) != 0;
    entry.crc = cio_load_le32(data + 4);
    entry.nbytes = cio_load_le32(data + 8) % OUT_MAX;
    if (cio_entry_header(&entry, file, nbytes - FRONT, &need, &problem)
            != CIO_OK
        || entry.data_off > nbytes - FRONT) {
        return 0;
    }
    entry.compressed_nbytes = nbytes - FRONT - entry.data_off;
    if (cio_entry_check(&entry, &problem) != CIO_OK) {
        return 0;
    }
    whole = malloc((size_t)entry.nbytes + 1);
    streamed = malloc((size_t)entry.nbytes + 1);
    one = cio_entry_decode(&entry, file + entry.data_off, whole, &problem);
    other =
        read_streamed(&entry, file, (size_t)data[1] + 1,
                      ((size_t)data[2] + 1) * (1 + data[3] % 64), streamed);
    if (one == CIO_OK && other == CIO_OK) {
        must(memcmp(whole, streamed, (size_t)entry.nbytes) == 0);
    } else if (one == CIO_OK || other == CIO_OK) {
        /* An engine may accept what zlib refuses where a checksum confirms
         * the bytes. */
        must(entry.nbytes > 0
             && cio_crc32(0, one == CIO_OK ? whole : streamed,
                          (size_t)entry.nbytes)
                    == entry.crc);
    }
    free(whole);
    free(streamed);
    return 0;
}
