/* SPDX-License-Identifier: MIT
 * fuzz_data.c - bytes as modified UTF-8, as a varint, as a struct format and
 * as an array.
 *
 * What a scan accepts decodes into exactly the room it said; what was decoded
 * encodes to bytes that decode to the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "data/cio_array.h"
#include "data/cio_format.h"
#include "data/cio_mutf8.h"
#include "data/cio_type.h"
#include "data/cio_varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void
must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void
fuzz_text(const uint8_t *data, size_t nbytes)
{
    struct cio_mutf8_shape shape, again;
    const uint8_t *end;
    uint8_t *bytes;
    uint32_t *text, *second;
    unsigned kind;
    size_t encoded;

    if (cio_mutf8_scan(data, nbytes, &shape) != CIO_OK) {
        must(shape.bad_at < nbytes);
        return;
    }
    kind = shape.widest < 0x100 ? 1 : shape.widest < 0x10000 ? 2 : 4;
    /* Exact rooms: AddressSanitizer sees a byte too many. */
    text = malloc(shape.nchars * kind);
    must(text != NULL || shape.nchars == 0);
    cio_mutf8_decode(data, nbytes, text, kind);
    encoded = cio_mutf8_nbytes(text, shape.nchars, kind, SIZE_MAX - 8);
    bytes = malloc(encoded);
    end = cio_mutf8_encode(bytes, text, shape.nchars, kind);
    must(end == bytes + encoded);
    must(cio_mutf8_scan(bytes, encoded, &again) == CIO_OK);
    must(again.nchars == shape.nchars);
    second = malloc(shape.nchars * kind);
    cio_mutf8_decode(bytes, encoded, second, kind);
    must(shape.nchars == 0 || memcmp(text, second, shape.nchars * kind) == 0);
    free(second);
    free(bytes);
    free(text);
}

static void
fuzz_varint(const uint8_t *data, size_t nbytes)
{
    uint8_t again[CIO_VARINT_MAX_NBYTES];
    uint64_t value, second;
    size_t used, n;

    if (cio_varint_decode(data, nbytes, &value, &used) != CIO_OK) {
        return;
    }
    must(used <= nbytes && used <= CIO_VARINT_MAX_NBYTES);
    n = cio_varint_encode(again, value);
    must(n <= used);
    must(cio_varint_decode(again, n, &second, &used) == CIO_OK);
    must(second == value && used == n);
    must(cio_zigzag(cio_unzigzag(value)) == value);
}

static void
fuzz_format(const uint8_t *data, size_t nbytes)
{
    struct cio_format format;
    size_t sum = 0;

    if (cio_format_parse((const char *)data, nbytes, &format) != CIO_OK) {
        return;
    }
    must(format.nitems <= CIO_FORMAT_ITEMS_MAX);
    for (unsigned i = 0; i < format.nitems; i++) {
        must(format.items[i].type < CIO_TYPE_COUNT);
        sum += (size_t)format.items[i].count
               * cio_types[format.items[i].type].nbytes;
    }
    must(sum == format.nbytes);
}

static void
fuzz_array(const uint8_t *data, size_t nbytes)
{
    for (unsigned width = 1; width <= 8; width *= 2) {
        const size_t whole = nbytes - nbytes % width;
        uint8_t *const out = malloc(whole);

        cio_array_swap(out, data, whole, width);
        cio_array_swap(out, out, whole, width);
        must(whole == 0 || memcmp(out, data, whole) == 0);
        free(out);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_text(data, nbytes);
    fuzz_varint(data, nbytes);
    fuzz_format(data, nbytes);
    fuzz_array(data, nbytes);
    return 0;
}
