/* SPDX-License-Identifier: MIT
 * test_zip_profile.c - what safe and strict admit, and what it costs to know.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "tests/test.h"
#include "tests/zip_build.h"
#include "zip/cio_profile.h"
#include "zip/cio_window.h"

static void
build(struct zip_build *b, unsigned count)
{
    char name[16];

    memset(b, 0, sizeof *b);
    for (unsigned i = 0; i < count; i++) {
        name[0] = 'a';
        name[1] = (char)('a' + i / 26);
        name[2] = (char)('a' + i % 26);
        name[3] = '\0';
        zip_add(b, name, (const uint8_t *)"0123456789", 10, 0);
    }
    zip_finish(b, 0);
}

static enum cio_status
admit(enum cio_profile_kind kind, const struct zip_build *b, uint32_t index,
      const char *rule)
{
    struct cio_directory d;
    struct cio_zip_problem problem = {0};
    struct cio_profile *profile;
    const int fd = zip_write(b->data, b->nbytes);
    struct cio_done done;

    CHECK_EQ(zip_load(&d, b->data, b->nbytes, &zip_unbounded, &problem),
             CIO_OK);
    CHECK_EQ(cio_directory_order(&d), CIO_OK);
    profile = cio_profile_new(kind, &d);
    CHECK(profile != NULL);
    done = cio_profile_admit(profile, fd, index, &problem);
    if (rule != NULL) {
        CHECK_EQ(done.status, CIO_ERR_DATA);
        CHECK_STR(problem.text, rule);
    }
    cio_profile_free(profile);
    cio_directory_clear(&d);
    close(fd);
    return done.status;
}

CIO_TEST(profile_admits_what_is_plain)
{
    struct zip_build b;

    build(&b, 40);
    for (uint32_t i = 0; i < 40; i++) {
        CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, i, NULL), CIO_OK);
        CHECK_EQ(admit(CIO_PROFILE_STRICT, &b, i, NULL), CIO_OK);
    }
    zip_drop(&b);
}

CIO_TEST(profile_finds_an_extra_field_that_covers_the_next_member)
{
    struct zip_build b;

    /* The first header's extra field: longer than the directory knows, so
     * that its data lie behind the second header. */
    build(&b, 40);
    cio_store_le16(b.data + 28, 43);
    CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, 0, "overlap"), CIO_ERR_DATA);
    CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, 1, "overlap"), CIO_ERR_DATA);
    CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, 2, NULL), CIO_OK);
    CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, 39, NULL), CIO_OK);
    zip_drop(&b);
}

CIO_TEST(profile_holds_the_local_header_against_the_directory)
{
    static const struct {
        size_t at;
        const char *rule;
    } fields[] = {
        {0, "local header"},          {7, "local header's flags"},
        {8, "local header's method"}, {10, "local header's time"},
        {12, "local header's time"},  {14, "local header's CRC"},
        {18, "local header's size"},  {22, "local header's size"},
        {30, "local header's name"},
    };
    struct zip_build b;

    build(&b, 2);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint8_t before = b.data[fields[i].at];

        b.data[fields[i].at] ^= 0x28;
        CHECK_EQ(admit(CIO_PROFILE_STRICT, &b, 0, fields[i].rule),
                 CIO_ERR_DATA);
        if (i > 0) {
            CHECK_EQ(admit(CIO_PROFILE_SAFE, &b, 0, NULL), CIO_OK);
        }
        b.data[fields[i].at] = before;
    }
    zip_drop(&b);
}

CIO_TEST(profile_reads_each_header_once)
{
    struct zip_build b;
    struct cio_directory d;
    struct cio_zip_problem problem;
    struct cio_profile *profile;
    int fd;

    build(&b, 200);
    fd = zip_write(b.data, b.nbytes);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    CHECK_EQ(cio_directory_order(&d), CIO_OK);
    profile = cio_profile_new(CIO_PROFILE_SAFE, &d);
    cio_fault_count();
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < d.count; i++) {
            CHECK_EQ(cio_profile_admit(profile, fd, i, &problem).status,
                     CIO_OK);
        }
    }
    CHECK_EQ(cio_fault_calls(CIO_CALL_pread), 200);
    cio_profile_free(profile);
    cio_directory_clear(&d);
    close(fd);
    zip_drop(&b);
}

CIO_TEST(profile_says_when_memory_or_the_file_fails)
{
    struct zip_build b;
    struct cio_directory d;
    struct cio_zip_problem problem;
    int fd;

    build(&b, 3);
    fd = zip_write(b.data, b.nbytes);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    CHECK_EQ(cio_directory_order(&d), CIO_OK);
    for (unsigned k = 1; k <= 3; k++) {
        const struct cio_fault fault = {CIO_CALL_calloc, k, 1, ENOMEM, 0};

        cio_fault_add(&fault);
        CHECK(cio_profile_new(CIO_PROFILE_SAFE, &d) == NULL);
        cio_fault_clear();
    }
    for (unsigned k = 1; k <= 2; k++) {
        const struct cio_fault fault = {CIO_CALL_pread, k, 1, EIO, 0};
        struct cio_profile *profile = cio_profile_new(CIO_PROFILE_SAFE, &d);
        struct cio_done done;

        cio_fault_add(&fault);
        done = cio_profile_admit(profile, fd, 2, &problem);
        CHECK_EQ(done.status, CIO_ERR_SYS);
        CHECK_EQ(done.sys_errno, EIO);
        cio_fault_clear();
        CHECK_EQ(cio_profile_admit(profile, fd, 2, &problem).status, CIO_OK);
        cio_profile_free(profile);
    }
    cio_directory_clear(&d);
    close(fd);
    zip_drop(&b);
}

CIO_TEST(window_reads_ahead_and_says_where_the_file_ends)
{
    const uint8_t text[] = "0123456789";
    const int fd = zip_write(text, 10);
    struct cio_window w = {0};
    const uint8_t *p;
    size_t got;

    cio_fault_count();
    p = cio_window_look(&w, fd, 2, 3, 6, &got);
    CHECK_EQ(got, 3);
    CHECK_MEM(p, "234", 3);
    CHECK_MEM(cio_window_look(&w, fd, 5, 3, 0, &got), "567", 3);
    CHECK_EQ(cio_fault_calls(CIO_CALL_pread), 1);
    CHECK_MEM(cio_window_look(&w, fd, 7, 9, 0, &got), "789", 3);
    CHECK_EQ(got, 3);
    CHECK(cio_window_look(&w, fd, 20, 4, 0, &got) != NULL);
    CHECK_EQ(got, 0);
    cio_window_end(&w);
    close(fd);
}
