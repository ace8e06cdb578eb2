/* SPDX-License-Identifier: MIT
 * cio_format.h - formats of the struct module, those whose sizes do not depend
 * on the machine.
 *
 * Why      A record is one call; its values are stored into the stream's
 *          buffer without a bytes object in between.
 * Owner    The plan is plain memory of the caller's.
 * Units    Bytes.
 * Errors   CIO_OK: the plan is filled. CIO_ERR_LIMIT: not one of ours (native
 *          sizes or alignment, codes p n N P, too long, or malformed): the
 *          struct module is to be asked, which also has the words for errors.
 * Threads  No state.
 */
#ifndef CIO_FORMAT_H
#define CIO_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cio_status.h"

/* A record with more groups than this is rare, and struct's to handle. */
#define CIO_FORMAT_ITEMS_MAX 24

enum cio_format_kind {
    CIO_FORMAT_VALUE, /* count values of `type` */
    CIO_FORMAT_PAD,   /* count zero bytes, no value */
    CIO_FORMAT_CHAR,  /* count values, each one byte of text */
    CIO_FORMAT_TEXT,  /* one value of count bytes */
};

struct cio_format_item {
    uint8_t kind, type; /* enum cio_format_kind, enum cio_type */
    uint32_t count;
};

struct cio_format {
    size_t nbytes, nvalues;
    unsigned nitems;
    char order; /* '<', '>', '=' or 0: the stream's */
    struct cio_format_item items[CIO_FORMAT_ITEMS_MAX];
};

enum cio_status cio_format_parse(const char *text, size_t nchars,
                                 struct cio_format *format);

#endif
