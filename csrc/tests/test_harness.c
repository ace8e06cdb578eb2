/* SPDX-License-Identifier: MIT
 * test_harness.c - the checks themselves: what they compare, and how.
 */
#include <sys/stat.h>

#include "tests/test.h"

CIO_TEST(harness_compares_by_value_not_by_type)
{
    CHECK_EQ(1, 1u);
    CHECK_EQ((uint8_t)255, 255LL);
    CHECK_NE(-1, UINT64_MAX);
    CHECK_LE(-1, 0u);
    CHECK_GE(UINT64_MAX, INT64_MIN);
    CHECK(cio_test_order(CIO_TEST_VALUE(-2), CIO_TEST_VALUE(-1)) < 0);
    CHECK(cio_test_order(CIO_TEST_VALUE(UINT64_MAX), CIO_TEST_VALUE(-1)) > 0);
}

CIO_TEST(harness_gives_each_test_a_folder)
{
    struct stat st;

    CHECK_EQ(stat(cio_test_folder(), &st), 0);
    CHECK(S_ISDIR(st.st_mode));
}
