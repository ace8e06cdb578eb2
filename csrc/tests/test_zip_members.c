/* SPDX-License-Identifier: MIT
 * test_zip_members.c - members whole, streamed and in batches.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "tests/test.h"
#include "tests/zip_build.h"
#include "zip/cio_batch.h"
#include "zip/cio_entry.h"

/* ----------------------------------------------------------------- members */

static struct cio_entry
entry_at(const struct cio_directory *d, uint32_t index)
{
    struct cio_zip_info info;
    struct cio_entry entry;

    cio_directory_info(d, index, &info);
    cio_entry_of(d, &info, &entry);
    return entry;
}

CIO_TEST(zip_header_says_how_many_bytes_it_needs)
{
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;

    zip_add(&b, "some name", (const uint8_t *)"text", 4, CIO_ZIP_STORED);
    zip_finish(&b, 0);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    for (size_t n = 0; n < 60; n++) {
        struct cio_entry entry = entry_at(&d, 0);
        size_t need = 0;
        const enum cio_status status =
            cio_entry_header(&entry, b.data, n, &need, &problem);

        if (n < 39) {
            CHECK_EQ(status, CIO_MORE);
            CHECK_EQ(need, n < 30 ? 30 : 39);
            CHECK_EQ(entry.data_off, 0);
        } else {
            CHECK_EQ(status, CIO_OK);
            CHECK_EQ(entry.data_off, 39);
        }
    }
    cio_directory_clear(&d);
    zip_drop(&b);
}

/* Windows of every small size on both sides, for both methods. */
CIO_TEST(zip_stream_gives_the_bytes_whatever_the_windows)
{
    const unsigned methods[] = {CIO_ZIP_STORED, CIO_ZIP_DEFLATED};
    uint8_t *const text = zip_text(5000, 1), out[5000];

    for (size_t m = 0; m < 2; m++) {
        for (size_t window = 1; window < 200; window += 1 + window / 3) {
            struct zip_build b = {0};
            struct cio_directory d;
            struct cio_zip_problem problem;
            struct cio_entry_stream stream;
            struct cio_entry entry;
            enum cio_status status = CIO_OK;
            size_t need;

            zip_add(&b, "a", text, 5000, methods[m]);
            zip_finish(&b, 0);
            CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem),
                     CIO_OK);
            entry = entry_at(&d, 0);
            CHECK_EQ(
                cio_entry_header(&entry, b.data, b.nbytes, &need, &problem),
                CIO_OK);
            cio_entry_stream_init(&stream, &entry);
            for (int i = 0; status == CIO_OK; i++) {
                struct cio_span span = {
                    .in = b.data + entry.data_off + stream.in_done,
                    .in_nbytes =
                        cio_min_size(window, (size_t)(entry.compressed_nbytes
                                                      - stream.in_done)),
                    .out = out + stream.out_done,
                    .out_nbytes =
                        cio_min_size(window, 5000 - (size_t)stream.out_done),
                };

                CHECK(i < 20000);
                status = cio_entry_stream_step(&stream, &span, &problem);
            }
            CHECK_EQ(status, CIO_EOF);
            CHECK_MEM(out, text, 5000);
            cio_entry_stream_close(&stream);
            cio_directory_clear(&d);
            zip_drop(&b);
        }
    }
    free(text);
}

CIO_TEST(zip_reserve_has_a_bound_and_gives_back)
{
    struct cio_pool_stats stats;
    uint64_t taken = 0;

    cio_pool_stats(&stats);
    while (cio_entry_reserve(100000)) {
        taken += 100000;
    }
    CHECK_LE(taken, stats.limit);
    CHECK_GE(taken, stats.limit - 100000);
    CHECK(!cio_entry_reserve(UINT64_MAX));
    cio_entry_release(taken);
    CHECK(cio_entry_reserve(stats.limit));
    cio_entry_release(stats.limit);
}

/* Each pread comes back short, or fails, at every place where one is made. */
CIO_TEST(zip_members_survive_short_and_failed_reads)
{
    const size_t sizes[] = {0, 10, 5000, 70000, 600000};
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    uint8_t *const text = zip_text(600000, 2), *out = malloc(600001);
    int fd;

    for (size_t i = 0; i < 5; i++) {
        char name[8] = {(char)('a' + i), 0};

        zip_add(&b, name, text, sizes[i], CIO_ZIP_STORED);
        name[0] = (char)('A' + i);
        zip_add(&b, name, text, sizes[i], CIO_ZIP_DEFLATED);
    }
    zip_finish(&b, 0);
    fd = zip_write(b.data, b.nbytes);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    for (uint32_t i = 0; i < d.count; i++) {
        for (unsigned k = 1; k < 6; k++) {
            struct cio_entry entry = entry_at(&d, i);
            struct cio_done done;
            bool refused = false;

            CHECK(cio_fault_add(&(struct cio_fault){.call = CIO_CALL_pread,
                                                    .first = k,
                                                    .times = 1000,
                                                    .max_nbytes = 7000}));
            done = cio_entry_read(&entry, fd, out, false, &refused, &problem);
            CHECK_EQ(done.status, CIO_OK);
            CHECK_MEM(out, text, (size_t)entry.nbytes);
            cio_fault_clear();
            CHECK(cio_fault_add(&(struct cio_fault){.call = CIO_CALL_pread,
                                                    .first = k,
                                                    .times = 1,
                                                    .error = EIO}));
            entry = entry_at(&d, i);
            done = cio_entry_read(&entry, fd, out, false, &refused, &problem);
            CHECK(done.status == CIO_OK
                  || (done.status == CIO_ERR_SYS && done.sys_errno == EIO));
            cio_fault_clear();
        }
    }
    (void)close(fd);
    cio_directory_clear(&d);
    free(text);
    free(out);
    zip_drop(&b);
}

CIO_TEST(zip_batches_read_all_and_name_the_bad_one)
{
    enum { COUNT = 200 };
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    struct cio_batch_item *const items = calloc(COUNT, sizeof *items);
    struct cio_batch batch;
    uint8_t *const text = zip_text(300000, 3);
    int fd;

    for (unsigned i = 0; i < COUNT; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "n%u", i);
        zip_add(&b, name, text, i == 50 ? 300000 : i * 13,
                i % 2 ? CIO_ZIP_STORED : CIO_ZIP_DEFLATED);
    }
    zip_finish(&b, 0);
    fd = zip_write(b.data, b.nbytes);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    for (int round = 0; round < 3; round++) {
        const bool test_only = round == 2;

        for (uint32_t i = 0; i < COUNT; i++) {
            items[i] = (struct cio_batch_item){.entry = entry_at(&d, i),
                                               .done = {CIO_MORE, 0, 0}};
            items[i].out =
                test_only ? NULL : malloc((size_t)items[i].entry.nbytes + 1);
            items[i].entry.crc ^= i == 77;
        }
        cio_batch_init(&batch, items, COUNT, fd);
        batch.run = 3;
        cio_job_start(&batch.job, round == 0 ? 1 : 3);
        while (batch.job.step(&batch.job)) {
        }
        while (!cio_job_join(&batch.job, CIO_WAIT_MS)) {
        }
        cio_batch_clear(&batch);
        for (uint32_t i = 0; i < COUNT; i++) {
            CHECK_EQ(items[i].done.status, i == 77 ? CIO_ERR_DATA : CIO_OK);
            if (i == 77) {
                CHECK_EQ(items[i].problem.rule, CIO_ZIP_RULE_CRC);
                CHECK_EQ(items[i].problem.index, 77);
            } else if (!test_only) {
                CHECK_MEM(items[i].out, text, (size_t)items[i].entry.nbytes);
            }
            free(items[i].out);
        }
    }
    cio_workers_stop();
    (void)close(fd);
    cio_directory_clear(&d);
    free(items);
    free(text);
    zip_drop(&b);
}
