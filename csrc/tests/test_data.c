/* SPDX-License-Identifier: MIT
 * test_data.c - scalars, varints, arrays, modified UTF-8 and struct formats.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/cio_array.h"
#include "data/cio_format.h"
#include "data/cio_mutf8.h"
#include "data/cio_scalar.h"
#include "data/cio_type.h"
#include "data/cio_varint.h"
#include "tests/test.h"

/* --------------------------------------------------------------- scalars */

/* The next double of a positive one, up or down, without libm. */
static double
neighbour(double value, int step)
{
    return cio_double_of_bits(cio_bits_of_double(value) + (uint64_t)step);
}

CIO_TEST(scalars_come_back_in_both_orders)
{
    uint8_t bytes[8];

    cio_put32(bytes, 0x01020304, false);
    CHECK_EQ(cio_get32(bytes, false), 0x01020304u);
    CHECK_EQ(cio_get32(bytes, true), 0x04030201u);
    cio_put64(bytes, 0x0102030405060708, true);
    CHECK_EQ(cio_get64(bytes, true), 0x0102030405060708u);
    cio_put16(bytes, 0x0102, true);
    CHECK_EQ(cio_get16(bytes, false), 0x0201u);
}

CIO_TEST(every_half_comes_back_bit_for_bit)
{
    for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
        const double value = cio_double_of_float16((uint16_t)bits);
        uint16_t again = 0;

        CHECK(cio_float16_of_double(value, &again));
        CHECK_EQ(again, bits);
    }
}

CIO_TEST(halves_round_once_and_to_even)
{
    /* Between two halves: the middle goes to the even one, a double's last
     * bit beside it decides otherwise. */
    for (unsigned bits = 0; bits < 0x7BFF; bits++) {
        const double a = cio_double_of_float16((uint16_t)bits);
        const double b = cio_double_of_float16((uint16_t)(bits + 1));
        const double middle = (a + b) / 2;
        uint16_t rounded = 0;

        CHECK(cio_float16_of_double(middle, &rounded));
        CHECK_EQ(rounded, bits + (bits & 1));
        CHECK(cio_float16_of_double(neighbour(middle, -1), &rounded));
        CHECK_EQ(rounded, bits);
        CHECK(cio_float16_of_double(neighbour(middle, 1), &rounded));
        CHECK_EQ(rounded, bits + 1);
    }
}

CIO_TEST(halves_that_are_too_large_are_refused)
{
    uint16_t bits = 0;

    CHECK(cio_float16_of_double(neighbour(65520, -1), &bits));
    CHECK_EQ(bits, 0x7BFF);
    CHECK(!cio_float16_of_double(65520, &bits));
    CHECK(!cio_float16_of_double(-1e300, &bits));
    CHECK(cio_float16_of_double(-INFINITY, &bits));
    CHECK_EQ(bits, 0xFC00);
    CHECK(cio_float16_of_double(5e-324, &bits));
    CHECK_EQ(bits, 0);
}

CIO_TEST(floats_keep_signalling_nans_and_refuse_what_is_too_large)
{
    static const uint32_t patterns[] = {0x7FA00001, 0xFFA00001, 0x7FC00000,
                                        0x7F800001, 0xFFFFFFFF, 0x7F800000,
                                        0xFF800000, 0x80000000, 0x00000001};
    uint32_t bits = 0;

    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        CHECK(
            cio_float32_of_double(cio_double_of_float32(patterns[i]), &bits));
        CHECK_EQ(bits, patterns[i]);
    }
    CHECK(!cio_float32_of_double(1e39, &bits));
    CHECK(!cio_float32_of_double(-1e39, &bits));
    CHECK(cio_float32_of_double(INFINITY, &bits));
    /* A payload that only a double has room for stays a NaN. */
    CHECK(
        cio_float32_of_double(cio_double_of_bits(0x7FF0000000000001), &bits));
    CHECK_EQ(bits, 0x7FC00000u);
}

/* --------------------------------------------------------------- varints */

CIO_TEST(varints_come_back_and_say_their_length)
{
    for (unsigned shift = 0; shift < 64; shift++) {
        const uint64_t values[] = {(uint64_t)1 << shift,
                                   ((uint64_t)1 << shift) - 1, UINT64_MAX};
        for (size_t i = 0; i < 3; i++) {
            uint8_t bytes[CIO_VARINT_MAX_NBYTES];
            const size_t n = cio_varint_encode(bytes, values[i]);
            uint64_t value = 0;
            size_t used = 0;

            for (size_t cut = 0; cut < n; cut++) {
                CHECK_EQ(cio_varint_decode(bytes, cut, &value, &used),
                         CIO_MORE);
            }
            CHECK_EQ(cio_varint_decode(bytes, n, &value, &used), CIO_OK);
            CHECK_EQ(value, values[i]);
            CHECK_EQ(used, n);
        }
    }
}

CIO_TEST(varints_of_more_than_64_bits_are_refused)
{
    const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                              0x80, 0x80, 0x80, 0x80, 0x00};
    const uint8_t large[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                             0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    const uint8_t padded[] = {0x81, 0x80, 0x00};
    uint64_t value = 0;
    size_t used = 0;

    CHECK_EQ(cio_varint_decode(eleven, sizeof eleven, &value, &used),
             CIO_ERR_DATA);
    CHECK_EQ(cio_varint_decode(large, sizeof large, &value, &used),
             CIO_ERR_DATA);
    CHECK_EQ(cio_varint_decode(padded, sizeof padded, &value, &used), CIO_OK);
    CHECK_EQ(value, 1);
    CHECK_EQ(used, 3);
}

CIO_TEST(zigzag_keeps_small_numbers_small)
{
    static const int64_t values[] = {0, -1, 1, -2, 2, INT64_MIN, INT64_MAX};
    static const uint64_t want[] = {0, 1, 2, 3, 4, UINT64_MAX, UINT64_MAX - 1};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        CHECK_EQ(cio_zigzag(values[i]), want[i]);
        CHECK_EQ(cio_unzigzag(want[i]), values[i]);
    }
}

/* ---------------------------------------------------------------- arrays */

static void
swap_plainly(uint8_t *out, const uint8_t *in, size_t nbytes, unsigned width)
{
    for (size_t i = 0; i < nbytes; i++) {
        out[i] = in[i - i % width + (width - 1 - i % width)];
    }
}

CIO_TEST(arrays_are_swapped_at_every_length_and_alignment)
{
    enum { MOST = 300 };
    uint8_t in[MOST + 16], out[MOST + 16], want[MOST];

    for (unsigned i = 0; i < sizeof in; i++) {
        in[i] = (uint8_t)(i * 7 + 3);
    }
    for (unsigned width = 1; width <= 8; width *= 2) {
        for (size_t nbytes = 0; nbytes <= MOST; nbytes += width) {
            for (size_t shift = 0; shift < 9; shift += 4) {
                uint8_t *const place = out + shift + 1;

                memset(out, 0xEE, sizeof out);
                swap_plainly(want, in + shift, nbytes, width);
                cio_array_swap(place, in + shift, nbytes, width);
                CHECK_MEM(place, want, nbytes);
                CHECK_EQ(place[-1], 0xEE);
                CHECK_EQ(place[nbytes], 0xEE);
                memcpy(place, in + shift, nbytes);
                cio_array_swap(place, place, nbytes, width);
                CHECK_MEM(place, want, nbytes);
            }
        }
    }
    cio_array_swap(NULL, NULL, 0, 8);
}

/* -------------------------------------------------------- modified UTF-8 */

struct sample {
    uint32_t text[4];
    size_t nchars;
    uint8_t bytes[8];
    size_t nbytes;
};

/* From OpenJDK 17. */
static const struct sample samples[] = {
    {{0}, 1, {0xC0, 0x80}, 2},
    {{0xE9}, 1, {0xC3, 0xA9}, 2},
    {{0x7FF}, 1, {0xDF, 0xBF}, 2},
    {{0x800}, 1, {0xE0, 0xA0, 0x80}, 3},
    {{0x1F600}, 1, {0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80}, 6},
    {{0xD83D}, 1, {0xED, 0xA0, 0xBD}, 3},
    {{'A', 0xDE00, 0xD83D}, 3, {'A', 0xED, 0xB8, 0x80, 0xED, 0xA0, 0xBD}, 7},
};

static void
check_text(const struct sample *sample, unsigned kind, const void *text)
{
    uint8_t bytes[8];

    CHECK_EQ(cio_mutf8_nbytes(text, sample->nchars, kind, 100),
             sample->nbytes);
    CHECK(cio_mutf8_encode(bytes, text, sample->nchars, kind)
          == bytes + sample->nbytes);
    CHECK_MEM(bytes, sample->bytes, sample->nbytes);
}

CIO_TEST(modified_utf8_as_java)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *const sample = &samples[i];
        struct cio_mutf8_shape shape;
        uint32_t text[4] = {0}, widest = 0;
        uint16_t narrow[4];
        uint8_t latin[4];

        for (size_t k = 0; k < sample->nchars; k++) {
            narrow[k] = (uint16_t)sample->text[k];
            latin[k] = (uint8_t)sample->text[k];
            widest = widest > sample->text[k] ? widest : sample->text[k];
        }
        check_text(sample, 4, sample->text);
        if (widest <= UINT16_MAX) {
            check_text(sample, 2, narrow);
        }
        if (widest <= UINT8_MAX) {
            check_text(sample, 1, latin);
        }
        CHECK_EQ(cio_mutf8_scan(sample->bytes, sample->nbytes, &shape),
                 CIO_OK);
        CHECK_EQ(shape.nchars, sample->nchars);
        CHECK_EQ(shape.widest > UINT16_MAX, widest > UINT16_MAX);
        cio_mutf8_decode(sample->bytes, sample->nbytes, text, 4);
        CHECK_MEM(text, sample->text, sample->nchars * sizeof *text);
    }
}

CIO_TEST(modified_utf8_is_lenient_where_java_is)
{
    static const struct {
        uint8_t bytes[4];
        size_t nbytes;
        uint32_t text;
    } lenient[] = {
        {{0x00}, 1, 0},
        {{0xC1, 0x81}, 2, 'A'},
        {{0xE0, 0x80, 0x80}, 3, 0},
        {{0xED, 0xB8, 0x80}, 3, 0xDE00},
    };
    static const struct {
        uint8_t bytes[4];
        size_t nbytes, bad_at;
        bool ends_inside;
    } refused[] = {
        {{0xF0, 0x9F, 0x98, 0x80}, 4, 0, false},
        {{0x80}, 1, 0, false},
        {{0xC3}, 1, 0, true},
        {{0xC3, 0x41}, 2, 0, false},
        {{'a', 0xE0, 0xA0}, 3, 1, true},
        {{'a', 0xE0, 0xA0, 0x41}, 4, 1, false},
    };
    struct cio_mutf8_shape shape;
    uint32_t text;

    for (size_t i = 0; i < sizeof lenient / sizeof *lenient; i++) {
        CHECK_EQ(cio_mutf8_scan(lenient[i].bytes, lenient[i].nbytes, &shape),
                 CIO_OK);
        CHECK_EQ(shape.nchars, 1);
        cio_mutf8_decode(lenient[i].bytes, lenient[i].nbytes, &text, 4);
        CHECK_EQ(text, lenient[i].text);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK_EQ(cio_mutf8_scan(refused[i].bytes, refused[i].nbytes, &shape),
                 CIO_ERR_DATA);
        CHECK_EQ(shape.bad_at, refused[i].bad_at);
        CHECK_EQ(shape.ends_inside, refused[i].ends_inside);
    }
}

CIO_TEST(counting_stops_above_the_limit)
{
    static const uint16_t text[1000] = {0x4E00};

    CHECK_LE(cio_mutf8_nbytes(text, 1000, 2, 10), 13);
}

/* --------------------------------------------------------------- formats */

static enum cio_status
parse(const char *text, struct cio_format *format)
{
    return cio_format_parse(text, strlen(text), format);
}

CIO_TEST(formats_of_fixed_size_are_planned)
{
    struct cio_format format;

    CHECK_EQ(parse(">ihd", &format), CIO_OK);
    CHECK_EQ(format.order, '>');
    CHECK_EQ(format.nbytes, 14);
    CHECK_EQ(format.nvalues, 3);
    CHECK_EQ(parse("!3x 4s\t0s2c0i1000Q", &format), CIO_OK);
    CHECK_EQ(format.order, '>');
    CHECK_EQ(format.nbytes, 3 + 4 + 2 + 8000);
    CHECK_EQ(format.nvalues, 1 + 1 + 2 + 1000);
    CHECK_EQ(parse("=lL", &format), CIO_OK);
    CHECK_EQ(format.nbytes, 8);
    CHECK_EQ(parse("", &format), CIO_OK);
    CHECK_EQ(format.order, 0);
    CHECK_EQ(format.nbytes, 0);
}

CIO_TEST(other_formats_are_left_to_the_struct_module)
{
    static const char *const others[] = {
        "@i",           "n",  "N",  "P", "5p", "<>i", "3", "i3", "k",
        "99999999999i", "i<", "-1i"};
    char many[2 * CIO_FORMAT_ITEMS_MAX + 3];
    struct cio_format format;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_EQ(parse(others[i], &format), CIO_ERR_LIMIT);
    }
    memset(many, 'i', sizeof many);
    CHECK_EQ(cio_format_parse(many, CIO_FORMAT_ITEMS_MAX, &format), CIO_OK);
    CHECK_EQ(cio_format_parse(many, CIO_FORMAT_ITEMS_MAX + 1, &format),
             CIO_ERR_LIMIT);
}
