/* SPDX-License-Identifier: MIT
 * test_zip.c - end records, directory and name table.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "tests/test.h"
#include "tests/zip_build.h"
#include "zip/cio_directory.h"
#include "zip/cio_nametable.h"

/* --------------------------------------------------------------- directory */

CIO_TEST(zip_directory_finds_every_name_and_the_last_of_equal_ones)
{
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    char name[32];

    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "name%d", i % 4000);
        zip_add(&b, name, (const uint8_t *)name, 1, CIO_ZIP_STORED);
    }
    zip_finish(&b, 0);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    CHECK_EQ(d.count, 5000);
    CHECK(d.ascending);
    CHECK(d.duplicates);
    for (uint32_t i = 0; i < 4000; i++) {
        const int n = snprintf(name, sizeof name, "name%u", i);

        CHECK_EQ(cio_directory_find(&d, name, (size_t)n),
                 i < 1000 ? i + 4000 : i);
        CHECK_EQ((d.members[i].flags & CIO_ZIP_MEMBER_SHADOWED) != 0,
                 i < 1000);
    }
    CHECK_EQ(cio_directory_find(&d, "name", 4), UINT32_MAX);
    CHECK_EQ(cio_directory_find(&d, "", 0), UINT32_MAX);
    cio_directory_clear(&d);
    zip_drop(&b);
}

CIO_TEST(zip_directory_takes_at_most_40_bytes_a_member)
{
    /* Directories of the two sizes at which the table is fullest and
     * emptiest. */
    for (uint32_t count = 98000; count < 99001; count += 500) {
        const uint64_t slots =
            sizeof(struct cio_zip_slot)
            * (count <= 98304 ? UINT64_C(131072) : UINT64_C(262144));

        CHECK_LE(slots + count * sizeof(struct cio_zip_member),
                 UINT64_C(40) * count);
    }
}

/* Names whose hashes end alike under one seed, found by trying; the same names
 * under another seed spread. */
CIO_TEST(zip_names_that_collide_under_one_seed_do_not_under_another)
{
    /* Keys as the kernel draws them. */
    const uint64_t known[4] = {
        UINT64_C(0xf2a74de452e6b438), UINT64_C(0x6513270e269e0d37),
        UINT64_C(0x0c5c7fd0a6a3a450), UINT64_C(0xd23f0824128b2f33)};
    const uint64_t other[4] = {
        UINT64_C(0x1818e811892f902b), UINT64_C(0x9531985d5d9dc9f8),
        UINT64_C(0xe8e25d940ed90475), UINT64_C(0x36f675cc81e74ef5)};
    struct zip_build b = {0};
    uint32_t first = 0, collided = 0, still = 0;
    uint64_t bits;

    for (uint32_t i = 0; collided < 2000; i++) {
        char name[16];
        const int n = snprintf(name, sizeof name, "%08x", i);
        const uint32_t tag =
            (uint32_t)cio_nametable_hash(known, name, (size_t)n, &bits);

        if ((tag & 0xfff) != 0x123) {
            continue;
        }
        collided++;
        if (collided == 1) {
            first = (uint32_t)cio_nametable_hash(other, name, (size_t)n, &bits)
                    & 0xfff;
        } else {
            still +=
                ((uint32_t)cio_nametable_hash(other, name, (size_t)n, &bits)
                 & 0xfff)
                == first;
        }
        if (collided < 200) {
            zip_add(&b, name, (const uint8_t *)name, 0, CIO_ZIP_STORED);
        }
    }
    CHECK_LE(still, 20); /* one in 4,096 by chance */
    zip_finish(&b, 0);
    for (int round = 0; round < 2; round++) {
        struct cio_directory d;
        struct cio_zip_problem problem;

        cio_directory_seed(round == 0 ? known : other);
        CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem),
                 CIO_OK);
        for (uint32_t i = 0; i < d.count; i++) {
            struct cio_zip_info info;

            cio_directory_info(&d, i, &info);
            CHECK_EQ(cio_directory_find(&d, info.name, info.name_nbytes), i);
        }
        cio_directory_clear(&d);
    }
    zip_drop(&b);
}

/* Sum of the distances of all names from where their hash puts them. */
static uint64_t
displacement(const struct cio_directory *d)
{
    uint64_t sum = 0;

    for (uint32_t at = 0; at <= d->slot_mask; at++) {
        if (d->slots[at].index != UINT32_MAX) {
            sum += (at - d->slots[at].tag) & d->slot_mask;
        }
    }
    return sum;
}

/* Who knew the keys could make names of one hash: these 16-byte ones begin
 * with what makes the first factor zero. Under the keys that the kernel drew
 * they are names as any other. */
CIO_TEST(zip_a_flood_made_for_known_keys_is_harmless_under_drawn_ones)
{
    enum { COUNT = 200000 };
    uint64_t known[4] = {UINT64_C(0x243f6a8885a308d3), 0,
                         UINT64_C(0x13198a2e03707344),
                         UINT64_C(0xa4093822299f31d0)};
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    char name[32];
    uint64_t bits, first = 0;

    known[1] = known[0] ^ cio_load_le64("aaaabbbb");
    for (unsigned i = 0; i < COUNT; i++) {
        uint64_t hash;

        (void)snprintf(name, sizeof name, "aaaabbbb%08u", i);
        hash = cio_nametable_hash(known, name, 16, &bits);
        first = i == 0 ? hash : first;
        CHECK_EQ(hash, first);
        zip_add(&b, name, (const uint8_t *)"", 0, CIO_ZIP_STORED);
    }
    zip_finish(&b, 0);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    CHECK_EQ(d.count, COUNT);
    CHECK_LE(displacement(&d), 4 * (uint64_t)COUNT);
    CHECK_EQ(cio_directory_find(&d, "aaaabbbb00123456", 16), 123456);
    cio_directory_clear(&d);
    zip_drop(&b);
}

CIO_TEST(zip_hash_sees_every_byte_and_every_length)
{
    const uint64_t seed[4] = {
        UINT64_C(0x1600a35a099950d8), UINT64_C(0x6b0d549b6f03675a),
        UINT64_C(0x3d9c172411e20b8f), UINT64_C(0x8d116ece1738f7d9)};
    uint8_t name[80] = {0};
    uint64_t bits, zeros[80];

    for (size_t n = 0; n < sizeof name; n++) {
        const uint64_t plain = cio_nametable_hash(seed, name, n, &bits);

        CHECK_EQ(bits, 0);
        zeros[n] = plain;
        for (size_t i = 0; i < n; i++) {
            CHECK_NE(zeros[i], plain); /* zeros of another length */
            name[i] = 0x80;
            CHECK_NE(cio_nametable_hash(seed, name, n, &bits), plain);
            CHECK(bits & UINT64_C(0x8080808080808080));
            name[i] = 0;
        }
    }
}

CIO_TEST(zip_bounds_are_checked_before_memory_is_taken)
{
    struct zip_build b = {0};
    const struct cio_zip_bounds by_size = {100, UINT64_MAX, UINT64_MAX};
    const struct cio_zip_bounds by_count = {UINT64_MAX, 9, UINT64_MAX};
    const struct cio_zip_bounds by_name = {UINT64_MAX, UINT64_MAX, 4};
    const struct {
        const struct cio_zip_bounds *bounds;
        enum cio_zip_rule rule;
        uint64_t found;
    } cases[] = {
        {&by_size, CIO_ZIP_RULE_LIMIT_DIRECTORY, 510},
        {&by_count, CIO_ZIP_RULE_LIMIT_ENTRIES, 10},
        {&by_name, CIO_ZIP_RULE_LIMIT_NAME, 5},
    };

    for (int i = 0; i < 10; i++) {
        zip_add(&b, "abcde", (const uint8_t *)"", 0, CIO_ZIP_STORED);
    }
    zip_finish(&b, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cio_directory d;
        struct cio_zip_problem problem;

        CHECK_EQ(zip_load(&d, b.data, b.nbytes, cases[i].bounds, &problem),
                 CIO_ERR_LIMIT);
        CHECK_EQ(problem.rule, cases[i].rule);
        CHECK_EQ(problem.found, cases[i].found);
        cio_directory_clear(&d);
    }
    zip_drop(&b);
}

CIO_TEST(zip_directory_survives_every_refused_allocation)
{
    struct zip_build b = {0};
    bool done = false;

    for (int i = 0; i < 300; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, i % 3 ? "n%d" : "\x82%d", i);
        zip_add(&b, name, (const uint8_t *)"", 0, CIO_ZIP_STORED);
    }
    zip_finish(&b, 50);
    for (unsigned k = 1; !done; k++) {
        struct cio_directory d;
        struct cio_zip_problem problem;
        enum cio_status status;

        CHECK(cio_fault_add(&(struct cio_fault){.call = CIO_CALL_malloc,
                                                .first = k,
                                                .times = 1,
                                                .error = ENOMEM}));
        CHECK(cio_fault_add(&(struct cio_fault){.call = CIO_CALL_realloc,
                                                .first = k,
                                                .times = 1,
                                                .error = ENOMEM}));
        status = zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem);
        done = status == CIO_OK;
        CHECK(done || status == CIO_ERR_NOMEM);
        cio_fault_clear();
        cio_directory_clear(&d);
    }
    zip_drop(&b);
}

CIO_TEST(zip_members_out_of_order_know_what_lies_behind_them)
{
    struct zip_build b = {0};
    struct cio_directory d;
    struct cio_zip_problem problem;
    uint8_t *from, *to, entry[47];

    zip_add(&b, "a", (const uint8_t *)"1", 1, CIO_ZIP_STORED);
    zip_add(&b, "b", (const uint8_t *)"2", 1, CIO_ZIP_STORED);
    zip_add(&b, "c", (const uint8_t *)"3", 1, CIO_ZIP_STORED);
    from = b.central;
    to = b.central + 2 * sizeof entry;
    memcpy(entry, from, sizeof entry);
    memcpy(from, to, sizeof entry);
    memcpy(to, entry, sizeof entry);
    zip_finish(&b, 0);
    CHECK_EQ(zip_load(&d, b.data, b.nbytes, &zip_unbounded, &problem), CIO_OK);
    CHECK(!d.ascending);
    CHECK_EQ(cio_directory_order(&d), CIO_OK);
    CHECK_EQ(cio_directory_end_of(&d, 2), 32);
    CHECK_EQ(cio_directory_end_of(&d, 1), 64);
    CHECK_EQ(cio_directory_end_of(&d, 0), 96);
    CHECK_EQ(cio_directory_end_behind(&d, 0), 32);
    CHECK_EQ(cio_directory_end_behind(&d, 63), 64);
    CHECK_EQ(cio_directory_end_behind(&d, 1000), d.end.dir_off);
    cio_directory_clear(&d);
    zip_drop(&b);
}
