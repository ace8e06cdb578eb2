/* SPDX-License-Identifier: MIT
 * fuzz_names.c - any bytes as a member's name, and as a link's text.
 *
 * Promised: the path is relative, has no empty, "." or ".." component and no
 * NUL; what breaks no rule keeps all its components; a link that may be made
 * leads to a place inside, worked out component by component.
 */
#include <stdlib.h>
#include <string.h>

#include "zip/cio_names.h"

#define REQUIRE(condition)                                                    \
    do {                                                                      \
        if (!(condition)) {                                                   \
            abort();                                                          \
        }                                                                     \
    } while (0)

static void
check_path(const char *path, size_t nbytes)
{
    const char *at = path;

    REQUIRE(strlen(path) == nbytes);
    while (nbytes > 0) {
        const size_t length = strcspn(at, "/");

        REQUIRE(length > 0);
        REQUIRE(!(length == 1 && at[0] == '.'));
        REQUIRE(!(length == 2 && at[0] == '.' && at[1] == '.'));
        if (at[length] == '\0') {
            break;
        }
        at += length + 1;
    }
}

static void
check_link(const uint8_t *text, size_t nbytes, long depth)
{
    size_t start = 0;

    REQUIRE(text[0] != '/');
    for (size_t i = 0; i <= nbytes; i++) {
        if (i < nbytes && text[i] != '/') {
            continue;
        }
        if (i - start == 2 && memcmp(text + start, "..", 2) == 0) {
            REQUIRE(--depth >= 0);
        }
        start = i + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char *path = malloc(nbytes + 1);
    unsigned rules;
    size_t length;

    REQUIRE(path != NULL);
    rules = cio_name_scan(data, nbytes);
    length = cio_name_clean(data, nbytes, path);
    REQUIRE(length <= nbytes);
    check_path(path, length);
    if ((rules & (CIO_NAME_EMPTY | CIO_NAME_NUL)) == 0
        && memchr(data, '.', nbytes) == NULL) {
        REQUIRE(length > 0 || memchr(data, '\\', nbytes) != NULL);
    }
    if (rules != 0) {
        REQUIRE(cio_name_rule_text(rules) != NULL);
    }
    for (size_t depth = 0; depth < 4; depth++) {
        if (cio_name_link_inside(data, nbytes, depth)) {
            check_link(data, nbytes, (long)depth);
        }
    }
    free(path);
    return 0;
}
