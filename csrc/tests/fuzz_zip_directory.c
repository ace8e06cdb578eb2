/* SPDX-License-Identifier: MIT
 * fuzz_zip_directory.c - any bytes as an archive: what opens has a consistent
 * directory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cio_sys.h"
#include "zip/cio_directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void
must(int holds)
{
    if (!holds) {
        abort();
    }
}

static void
look_at_members(struct cio_directory *d)
{
    must(cio_directory_order(d) == CIO_OK);
    for (uint32_t i = 0; i < d->count; i++) {
        struct cio_zip_info info;
        uint32_t found;
        volatile uint8_t sum = 0;

        cio_directory_info(d, i, &info);
        must(info.index == i);
        found = cio_directory_find(d, info.name, info.name_nbytes);
        must(found == i
             || (found > i && (info.member_flags & CIO_ZIP_MEMBER_SHADOWED)));
        must(memchr(info.name, 0, info.name_nbytes) == NULL);
        for (size_t k = 0; k < info.extra_nbytes; k++) {
            sum = (uint8_t)(sum + info.extra[k]);
        }
        for (size_t k = 0; k < info.comment_nbytes; k++) {
            sum = (uint8_t)(sum + info.comment[k]);
        }
        (void)cio_directory_end_of(d, i);
        must(cio_directory_end_behind(d, info.header_off) != info.header_off
             || info.header_off == d->end.dir_off);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const struct cio_zip_bounds bounds = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct cio_zip_opener opener = {.whole_tail = nbytes % 2 != 0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    uint8_t *comment = malloc(65536), *raw;
    enum cio_status status = CIO_MORE;

    cio_zip_opener_init(&opener, nbytes, &bounds);
    while (status == CIO_MORE) {
        must(opener.want_off <= nbytes
             && opener.want_nbytes <= nbytes - opener.want_off);
        status = cio_zip_opener_step(&opener, data + opener.want_off,
                                     opener.want_nbytes, comment, &problem);
    }
    if (status != CIO_OK) {
        free(comment);
        return 0;
    }
    must(opener.end.dir_off + opener.end.dir_nbytes <= nbytes);
    raw = malloc((size_t)opener.end.dir_nbytes + 1);
    memcpy(raw, data + opener.end.dir_off, (size_t)opener.end.dir_nbytes);
    status = cio_directory_init(&d, &opener, raw,
                                (size_t)opener.end.dir_nbytes, comment, false);
    must(status == CIO_OK);
    do {
        status = cio_directory_walk(&d, &problem);
    } while (status == CIO_MORE);
    must(status == CIO_OK || problem.rule != CIO_ZIP_RULE_NONE);
    if (status == CIO_OK) {
        look_at_members(&d);
    }
    cio_directory_clear(&d);
    return 0;
}
