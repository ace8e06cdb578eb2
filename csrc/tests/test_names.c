/* SPDX-License-Identifier: MIT
 * test_names.c - hostile names, the paths they lead to, and ZipCrypto.
 */
#include <string.h>

#include "tests/test.h"
#include "zip/cio_names.h"
#include "zip/cio_zipcrypto.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

CIO_TEST(names_say_every_rule_they_break)
{
    CHECK_EQ(cio_name_scan(BYTES("a/b.txt")), 0);
    CHECK_EQ(cio_name_scan(BYTES("a/...")), 0);
    CHECK_EQ(cio_name_scan(BYTES("a/..b/.c")), 0);
    CHECK_EQ(cio_name_scan(BYTES("folder/")), 0);
    CHECK_EQ(cio_name_scan(BYTES("\xff\x80")), 0);
    CHECK_EQ(cio_name_scan(BYTES("")), CIO_NAME_EMPTY);
    CHECK_EQ(cio_name_scan(BYTES("/")), CIO_NAME_EMPTY | CIO_NAME_ABSOLUTE);
    CHECK_EQ(cio_name_scan(BYTES("..")), CIO_NAME_TRAVERSAL);
    CHECK_EQ(cio_name_scan(BYTES("a/../b")), CIO_NAME_TRAVERSAL);
    CHECK_EQ(cio_name_scan(BYTES("a/..")), CIO_NAME_TRAVERSAL);
    CHECK_EQ(cio_name_scan(BYTES("..\\a")),
             CIO_NAME_TRAVERSAL | CIO_NAME_BACKSLASH);
    CHECK_EQ(cio_name_scan(BYTES("/etc")), CIO_NAME_ABSOLUTE);
    CHECK_EQ(cio_name_scan(BYTES("//host/x")),
             CIO_NAME_ABSOLUTE | CIO_NAME_UNC);
    CHECK_EQ(cio_name_scan(BYTES("\\\\host")),
             CIO_NAME_BACKSLASH | CIO_NAME_UNC);
    CHECK_EQ(cio_name_scan(BYTES("C:x")), CIO_NAME_DRIVE);
    CHECK_EQ(cio_name_scan(BYTES("1:x")), 0);
    CHECK_EQ(cio_name_scan(BYTES("a\0b")), CIO_NAME_NUL);
    CHECK_EQ(cio_name_scan(BYTES("a\x7f")), CIO_NAME_CONTROL);
    CHECK_EQ(cio_name_scan(BYTES("a\nb\0..")),
             CIO_NAME_CONTROL | CIO_NAME_NUL);
    CHECK_STR(cio_name_rule_text(CIO_NAME_TRAVERSAL | CIO_NAME_NUL),
              "traversal");
    CHECK_STR(cio_name_rule_text(CIO_NAME_CONTROL), "control character");
}

static void
check_clean(const uint8_t *name, size_t nbytes, const char *expected)
{
    char path[64];

    CHECK_EQ(cio_name_clean(name, nbytes, path), strlen(expected));
    CHECK_STR(path, expected);
}

CIO_TEST(names_lead_to_paths_below_the_target)
{
    check_clean(BYTES("a/b"), "a/b");
    check_clean(BYTES("/a//b/"), "a/b");
    check_clean(BYTES("../../a/./../b"), "a/b");
    check_clean(BYTES("..."), "...");
    check_clean(BYTES("./"), "");
    check_clean(BYTES(".."), "");
    check_clean(BYTES("a\0/../b"), "a");
    check_clean(BYTES("a\\b"), "a\\b");
}

CIO_TEST(links_lead_upwards_only_as_far_as_folders_are_real)
{
    CHECK(cio_name_link_inside(BYTES("b"), 0));
    CHECK(cio_name_link_inside(BYTES("../b/./c"), 1));
    CHECK(cio_name_link_inside(BYTES("."), 0));
    CHECK(!cio_name_link_inside(BYTES(""), 3));
    CHECK(!cio_name_link_inside(BYTES("/etc"), 3));
    CHECK(!cio_name_link_inside(BYTES(".."), 0));
    CHECK(!cio_name_link_inside(BYTES("../../b"), 1));
    CHECK(!cio_name_link_inside(BYTES("b/../c"), 3)); /* b may be a link */
    CHECK(!cio_name_link_inside(BYTES("b\0"), 3));
}

CIO_TEST(zipcrypto_gives_what_another_program_encrypted)
{
    /* Info-ZIP zip 3.0, -P secret -0, "hello, world": header and data */
    static const uint8_t encrypted[] = {0x9d, 0x46, 0xa3, 0x33, 0x8a, 0xf1,
                                        0x80, 0xe7, 0xb5, 0xb5, 0x2d, 0x63,
                                        0x7c, 0xfb, 0x97, 0x91, 0x05, 0xb7,
                                        0x53, 0xc7, 0xc1, 0x29, 0xb0, 0x1d};
    uint8_t plain[sizeof encrypted];
    struct cio_zipcrypto keys;

    cio_zipcrypto_init(&keys, BYTES("secret"));
    /* in pieces, since the keys go on */
    cio_zipcrypto_decrypt(&keys, encrypted, plain, 5);
    cio_zipcrypto_decrypt(&keys, encrypted + 5, plain + 5, sizeof plain - 5);
    CHECK_MEM(plain + CIO_ZIPCRYPTO_HEADER_NBYTES, "hello, world", 12);
}
