/* SPDX-License-Identifier: MIT
 * cio_format.c - parses struct formats into a short plan.
 */
#include "data/cio_format.h"

#include "data/cio_type.h"

/* Counts stay far below where sizes could wrap; larger ones are struct's. */
#define COUNT_MAX (1u << 24)

static bool
item_of_code(char code, struct cio_format_item *item)
{
    item->kind = CIO_FORMAT_VALUE;
    item->type = CIO_UINT8;
    switch (code) {
    case 'x':
        item->kind = CIO_FORMAT_PAD;
        return true;
    case 'c':
        item->kind = CIO_FORMAT_CHAR;
        return true;
    case 's':
        item->kind = CIO_FORMAT_TEXT;
        return true;
    case 'l': /* as i in standard sizes */
        item->type = CIO_INT32;
        return true;
    case 'L':
        item->type = CIO_UINT32;
        return true;
    default:
        for (unsigned type = 0; type < CIO_TYPE_COUNT; type++) {
            if (cio_types[type].code == code) {
                item->type = (uint8_t)type;
                return true;
            }
        }
        return false;
    }
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t
parse_order(const char *text, size_t nchars, char *order)
{
    *order = 0;
    if (nchars > 0 && (*text == '<' || *text == '>' || *text == '=')) {
        *order = *text;
        return 1;
    }
    if (nchars > 0 && *text == '!') { /* network order */
        *order = '>';
        return 1;
    }
    return 0;
}

static bool
append(struct cio_format *format, struct cio_format_item item)
{
    const bool single = item.kind == CIO_FORMAT_TEXT;

    if (format->nitems == CIO_FORMAT_ITEMS_MAX) {
        return false;
    }
    format->nbytes += (size_t)item.count * cio_types[item.type].nbytes;
    if (item.kind != CIO_FORMAT_PAD) {
        format->nvalues += single ? 1 : item.count;
    }
    if (item.count != 0 || single) { /* "0s" takes a value all the same */
        format->items[format->nitems++] = item;
    }
    return true;
}

enum cio_status
cio_format_parse(const char *text, size_t nchars, struct cio_format *format)
{
    size_t at;

    format->nbytes = format->nvalues = 0;
    format->nitems = 0;
    at = parse_order(text, nchars, &format->order);
    while (at < nchars) {
        struct cio_format_item item = {0};
        bool counted = false;

        if (is_space(text[at])) {
            at++;
            continue;
        }
        for (; at < nchars && text[at] >= '0' && text[at] <= '9'; at++) {
            counted = true;
            item.count = item.count * 10 + (uint32_t)(text[at] - '0');
            if (item.count > COUNT_MAX) {
                return CIO_ERR_LIMIT;
            }
        }
        if (at == nchars || !item_of_code(text[at], &item)) {
            return CIO_ERR_LIMIT;
        }
        item.count = counted ? item.count : 1;
        at++;
        if (!append(format, item)) {
            return CIO_ERR_LIMIT;
        }
    }
    return CIO_OK;
}
