/* SPDX-License-Identifier: MIT
 * test_zip_build.c - archives made in memory, and opened as glue opens them.
 */
#include "tests/zip_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "tests/test.h"

static void
zip_put(uint8_t **data, size_t *nbytes, size_t *capacity, const void *from,
        size_t n)
{
    if (*nbytes + n > *capacity) {
        *capacity = (*nbytes + n) * 2 + 4096;
        *data = realloc(*data, *capacity);
        CHECK(*data != NULL);
    }
    if (n > 0) {
        memcpy(*data + *nbytes, from, n);
    }
    *nbytes += n;
}

static size_t
deflate_raw(const uint8_t *plain, size_t nbytes, uint8_t **packed)
{
    z_stream z = {0};

    CHECK_EQ(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY),
             Z_OK);
    *packed = malloc(nbytes + 1024);
    z.next_in = (Bytef *)(uintptr_t)plain;
    z.avail_in = (uInt)nbytes;
    z.next_out = *packed;
    z.avail_out = (uInt)(nbytes + 1024);
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

void
zip_add(struct zip_build *b, const char *name, const uint8_t *plain,
        size_t nbytes, unsigned method)
{
    uint8_t local[30] = {0}, entry[46] = {0}, *packed = NULL;
    const size_t name_nbytes = strlen(name);
    const size_t packed_nbytes = method == CIO_ZIP_STORED
                                     ? nbytes
                                     : deflate_raw(plain, nbytes, &packed);
    const uint32_t crc = (uint32_t)crc32(0, plain, (uInt)nbytes);

    cio_store_le32(local, 0x04034b50);
    cio_store_le16(local + 8, (uint16_t)method);
    cio_store_le32(local + 14, crc);
    cio_store_le32(local + 18, (uint32_t)packed_nbytes);
    cio_store_le32(local + 22, (uint32_t)nbytes);
    cio_store_le16(local + 26, (uint16_t)name_nbytes);
    cio_store_le32(entry, 0x02014b50);
    cio_store_le16(entry + 10, (uint16_t)method);
    cio_store_le32(entry + 16, crc);
    cio_store_le32(entry + 20, (uint32_t)packed_nbytes);
    cio_store_le32(entry + 24, (uint32_t)nbytes);
    cio_store_le16(entry + 28, (uint16_t)name_nbytes);
    cio_store_le32(entry + 42, (uint32_t)b->nbytes);
    zip_put(&b->data, &b->nbytes, &b->capacity, local, sizeof local);
    zip_put(&b->data, &b->nbytes, &b->capacity, name, name_nbytes);
    zip_put(&b->data, &b->nbytes, &b->capacity,
            method == CIO_ZIP_STORED ? plain : packed, packed_nbytes);
    zip_put(&b->central, &b->central_nbytes, &b->central_capacity, entry,
            sizeof entry);
    zip_put(&b->central, &b->central_nbytes, &b->central_capacity, name,
            name_nbytes);
    free(packed);
    b->count++;
}

void
zip_finish(struct zip_build *b, size_t comment_nbytes)
{
    uint8_t end[22] = {0};
    const size_t start = b->nbytes;
    const uint16_t count = (uint16_t)cio_min_size(b->count, 0xffff);

    zip_put(&b->data, &b->nbytes, &b->capacity, b->central, b->central_nbytes);
    cio_store_le32(end, 0x06054b50);
    cio_store_le16(end + 8, count);
    cio_store_le16(end + 10, count);
    cio_store_le32(end + 12, (uint32_t)b->central_nbytes);
    cio_store_le32(end + 16, (uint32_t)start);
    cio_store_le16(end + 20, (uint16_t)comment_nbytes);
    zip_put(&b->data, &b->nbytes, &b->capacity, end, sizeof end);
    for (size_t i = 0; i < comment_nbytes; i++) {
        zip_put(&b->data, &b->nbytes, &b->capacity, "c", 1);
    }
}

void
zip_drop(struct zip_build *b)
{
    free(b->data);
    free(b->central);
}

const struct cio_zip_bounds zip_unbounded = {UINT64_MAX, UINT64_MAX,
                                             UINT64_MAX};

/* Opens an archive in memory, as glue does it. */
enum cio_status
zip_load(struct cio_directory *d, const uint8_t *data, size_t nbytes,
         const struct cio_zip_bounds *bounds, struct cio_zip_problem *problem)
{
    struct cio_zip_opener opener = {0};
    uint8_t *comment = cio_sys->malloc(65536), *raw;
    enum cio_status status = CIO_MORE;

    memset(d, 0, sizeof *d);
    if (comment == NULL) {
        return CIO_ERR_NOMEM;
    }
    cio_zip_opener_init(&opener, nbytes, bounds);
    while (status == CIO_MORE) {
        CHECK_LE(opener.want_off + opener.want_nbytes, nbytes);
        status = cio_zip_opener_step(&opener, data + opener.want_off,
                                     opener.want_nbytes, comment, problem);
    }
    if (status != CIO_OK) {
        cio_free(comment);
        return status;
    }
    raw = cio_sys->malloc((size_t)opener.end.dir_nbytes + 1);
    if (raw == NULL) {
        cio_free(comment);
        return CIO_ERR_NOMEM;
    }
    memcpy(raw, data + opener.end.dir_off, (size_t)opener.end.dir_nbytes);
    status = cio_directory_init(d, &opener, raw, (size_t)opener.end.dir_nbytes,
                                comment, false);
    while (status == CIO_OK || status == CIO_MORE) {
        status = cio_directory_walk(d, problem);
        if (status != CIO_MORE) {
            break;
        }
    }
    return status;
}

uint8_t *
zip_text(size_t nbytes, unsigned seed)
{
    uint8_t *const text = malloc(nbytes + 1);

    for (size_t i = 0; i < nbytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = (uint8_t)("etaoin shrdlu\n"[(seed >> 24) % 14]);
    }
    return text;
}

int
zip_write(const uint8_t *data, size_t nbytes)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof path, "%s/a.zip", cio_test_folder());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_GE(fd, 0);
    CHECK_EQ(write(fd, data, nbytes), (ssize_t)nbytes);
    return fd;
}
