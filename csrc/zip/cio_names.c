/* SPDX-License-Identifier: MIT
 * cio_names.c - names looked at byte by byte, once.
 */
#include "zip/cio_names.h"

#include <string.h>

static bool
is_slash(uint8_t c)
{
    return c == '/' || c == '\\';
}

static bool
is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static unsigned
scan_start(const uint8_t *name, size_t nbytes)
{
    unsigned rules = 0;

    if (nbytes > 0 && name[0] == '/') {
        rules |= CIO_NAME_ABSOLUTE;
    }
    if (nbytes > 1 && is_slash(name[0]) && is_slash(name[1])) {
        rules |= CIO_NAME_UNC;
    }
    if (nbytes > 1 && is_letter(name[0]) && name[1] == ':') {
        rules |= CIO_NAME_DRIVE;
    }
    return rules;
}

unsigned
cio_name_scan(const uint8_t *name, size_t nbytes)
{
    unsigned rules = scan_start(name, nbytes);
    size_t start = 0; /* of the component */
    bool any = false;

    for (size_t i = 0; i <= nbytes; i++) {
        const uint8_t c = i < nbytes ? name[i] : '/';

        if (c >= 0x20 && c != '/' && c != '\\' && c != 0x7f) {
            continue; /* nearly all there is */
        }
        if (c == 0) {
            rules |= CIO_NAME_NUL;
            continue;
        }
        if (!is_slash(c)) {
            rules |= CIO_NAME_CONTROL;
            continue;
        }
        if (c == '\\') {
            rules |= CIO_NAME_BACKSLASH;
        }
        if (i - start == 2 && name[start] == '.' && name[start + 1] == '.') {
            rules |= CIO_NAME_TRAVERSAL;
        }
        any = any || i > start;
        start = i + 1;
    }
    return any ? rules : rules | CIO_NAME_EMPTY;
}

const char *
cio_name_rule_text(unsigned rules)
{
    static const char *const words[] = {
        "empty name", "traversal", "absolute name", "drive letter",
        "UNC name",   "backslash", "NUL",           "control character",
    };

    return words[__builtin_ctz(rules)];
}

size_t
cio_name_clean(const uint8_t *name, size_t nbytes, char *path)
{
    const uint8_t *nul = memchr(name, 0, nbytes);
    size_t put = 0, start = 0;

    if (nul != NULL) {
        nbytes = (size_t)(nul - name);
    }
    for (size_t i = 0; i <= nbytes; i++) {
        const size_t length = i - start;

        if (i < nbytes && name[i] != '/') {
            continue;
        }
        if (length > 0 && !(length == 1 && name[start] == '.')
            && !(length == 2 && name[start] == '.'
                 && name[start + 1] == '.')) {
            if (put > 0) {
                path[put++] = '/';
            }
            memcpy(path + put, name + start, length);
            put += length;
        }
        start = i + 1;
    }
    path[put] = '\0';
    return put;
}

bool
cio_name_link_inside(const uint8_t *text, size_t nbytes, size_t depth)
{
    bool below = false; /* a component other than ".." came */
    size_t start = 0, up = 0;

    if (nbytes == 0 || text[0] == '/' || memchr(text, 0, nbytes) != NULL) {
        return false;
    }
    for (size_t i = 0; i <= nbytes; i++) {
        const size_t length = i - start;

        if (i < nbytes && text[i] != '/') {
            continue;
        }
        if (length == 2 && text[start] == '.' && text[start + 1] == '.') {
            /* Behind a name, which may be a link by now, ".." leads to the
             * parent of where that link points: anywhere. */
            if (below || ++up > depth) {
                return false;
            }
        } else if (length > 0 && !(length == 1 && text[start] == '.')) {
            below = true;
        }
        start = i + 1;
    }
    return true;
}
