/* SPDX-License-Identifier: MIT
 * test_inflate.c - framing: members, headers, cuts, bounds, blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "inflate/cio_decoder.h"
#include "tests/inflate_model.h"
#include "tests/test.h"

static const char *const engines[] = {NULL, "zlib", "isal", "libdeflate"};
#define ENGINE_COUNT (sizeof engines / sizeof engines[0])

static uint64_t seed = 0x2545f4914f6cdd1d;

static uint32_t
draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

CIO_TEST(decoder_is_zlib_whatever_comes_and_however_cut)
{
    static uint8_t data[100000];

    for (int i = 0; i < 4000; i++) {
        const size_t n = draw(20) == 0 ? draw(sizeof data) : draw(600);
        const char *wrong;

        if (i % 1000 == 0 && !cio_engine_init(engines[i / 1000])) {
            i += 999;
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            data[k] = (uint8_t)(k < 4   ? draw(256)
                                : i % 3 ? 'a' + draw(6)
                                        : draw(256));
        }
        wrong = inflate_model(data, n);
        if (wrong != NULL) {
            cio_test_fail(__FILE__, __LINE__, "input %d: %s", i, wrong);
        }
    }
    (void)cio_pool_trim(0);
}

static size_t
gzip_member(uint8_t *out, const uint8_t *plain, size_t nbytes)
{
    z_stream stream = {0};

    CHECK_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
    stream.next_in = (z_const Bytef *)plain;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = out;
    stream.avail_out = (uInt)nbytes * 2 + 64;
    CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&stream);
    return nbytes * 2 + 64 - stream.avail_out;
}

CIO_TEST(many_members_are_crossed_in_one_call_without_a_stream_state)
{
    enum { COUNT = 500, SIZE = 100 };
    uint8_t *packed = calloc(COUNT, 300), *plain = malloc(COUNT * SIZE);
    uint8_t *out = malloc(COUNT * SIZE + 300);
    size_t at = 0;

    for (size_t i = 0; i < COUNT * SIZE; i++) {
        plain[i] = (uint8_t)('a' + draw(20));
    }
    for (size_t i = 0; i < COUNT; i++) {
        at += gzip_member(packed + at, plain + i * SIZE, SIZE);
        at += draw(3); /* padding */
    }
    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        struct cio_span span = {packed, at, 0, out, COUNT * SIZE + 300, 0};
        struct cio_decoder decoder;

        if (!cio_engine_init(engines[e])) {
            continue;
        }
        cio_decoder_init(&decoder, CIO_FORMAT_GZIP);
        CHECK_EQ(cio_decoder_step(&decoder, &span), CIO_OK);
        CHECK_EQ(span.in_used, at);
        CHECK_EQ(span.out_used, COUNT * SIZE);
        CHECK_MEM(out, plain, COUNT * SIZE);
        CHECK_EQ(decoder.members, COUNT);
        CHECK_EQ(cio_decoder_finish(&decoder), CIO_EOF);
        cio_decoder_release(&decoder);
    }
    (void)cio_pool_trim(0);
    free(packed);
    free(plain);
    free(out);
}

static enum cio_status
decode_all(struct cio_decoder *decoder, const uint8_t *packed, size_t nbytes,
           size_t piece, uint8_t *out, size_t room, size_t *out_used)
{
    struct cio_span span = {packed, 0, 0, out, room, 0};
    enum cio_status status = CIO_OK;

    while (status == CIO_OK && span.in_used < nbytes) {
        span.in_nbytes =
            span.in_used + piece < nbytes ? span.in_used + piece : nbytes;
        status = cio_decoder_step(decoder, &span);
    }
    *out_used = span.out_used;
    return status == CIO_OK ? cio_decoder_finish(decoder) : status;
}

CIO_TEST(header_fields_in_all_combinations_at_every_cut)
{
    static const uint8_t body[] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint8_t packed[200], out[10];

    CHECK(cio_engine_init(NULL));
    for (unsigned flags = 0; flags < 256; flags++) {
        size_t n = 10, used;
        struct cio_decoder decoder;
        const bool reserved = flags & 0xe0;

        memset(packed, 0, sizeof packed);
        memcpy(packed, "\x1f\x8b\x08", 3);
        packed[3] = (uint8_t)flags;
        packed[4] = 42;
        if (flags & 4) {
            packed[n] = 5;
            memset(packed + n + 2, 'x', 5);
            n += 7;
        }
        if (flags & 8) {
            strcpy((char *)packed + n, "name");
            n += 5;
        }
        if (flags & 16) {
            strcpy((char *)packed + n, "comment");
            n += 8;
        }
        if (flags & 2) {
            const uint32_t crc = (uint32_t)crc32(0, packed, (uInt)n);

            packed[n] = (uint8_t)crc;
            packed[n + 1] = (uint8_t)(crc >> 8);
            n += 2;
        }
        memcpy(packed + n, body, sizeof body);
        n += sizeof body;
        for (size_t piece = 1; piece < 4; piece++) {
            for (size_t cut = 0; cut <= n; cut++) {
                enum cio_status status;

                cio_decoder_init(&decoder, CIO_FORMAT_GZIP);
                status =
                    decode_all(&decoder, packed, cut, piece, out, 10, &used);
                if (cut == 0 || (cut == n && !reserved)) {
                    CHECK_EQ(status, CIO_EOF);
                    CHECK_EQ(decoder.mtime, cut == 0 ? 0 : 42);
                } else {
                    CHECK_EQ(status, CIO_ERR_DATA);
                    CHECK_EQ(decoder.problem, cut == 1 ? CIO_PROBLEM_MAGIC
                                              : cut >= 4 && reserved
                                                  ? CIO_PROBLEM_FLAGS
                                                  : CIO_PROBLEM_CUT);
                }
                CHECK_EQ(used, 0);
                cio_decoder_release(&decoder);
            }
        }
        if ((flags & 2) && !reserved) {
            packed[n - 11] ^= 1;
            cio_decoder_init(&decoder, CIO_FORMAT_GZIP);
            CHECK_EQ(decode_all(&decoder, packed, n, n, out, 10, &used),
                     CIO_ERR_DATA);
            CHECK_EQ(decoder.problem, CIO_PROBLEM_HEADER_CRC);
        }
    }
    (void)cio_pool_trim(0);
}

CIO_TEST(the_bound_of_output_is_exact)
{
    uint8_t plain[5000], packed[12000], out[6000];
    const size_t packed_nbytes = (memset(plain, 'x', sizeof plain), draw(2),
                                  gzip_member(packed, plain, sizeof plain));
    size_t used;

    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        if (!cio_engine_init(engines[e])) {
            continue;
        }
        for (uint64_t bound = 4998; bound < 5003; bound++) {
            for (size_t room = 4997; room < 5004; room++) {
                struct cio_decoder decoder;
                enum cio_status status;

                cio_decoder_init(&decoder, CIO_FORMAT_GZIP);
                decoder.max_nbytes = bound;
                if (room < 5000 && room < bound) {
                    continue; /* would need more windows */
                }
                status = decode_all(&decoder, packed, packed_nbytes, 7, out,
                                    room, &used);
                CHECK_EQ(status, bound < 5000 ? CIO_ERR_LIMIT : CIO_EOF);
                CHECK_EQ(used, bound < 5000 ? bound : 5000);
                cio_decoder_release(&decoder);
            }
        }
    }
    (void)cio_pool_trim(0);
}

CIO_TEST(a_decoder_whose_memory_is_refused_goes_on_later)
{
    uint8_t plain[2000], packed[5000], out[2000];
    size_t n;
    struct cio_span span;
    struct cio_decoder decoder;
    static const enum cio_call calls[] = {CIO_CALL_malloc, CIO_CALL_calloc};

    memset(plain, 'y', sizeof plain);
    n = gzip_member(packed, plain, sizeof plain);
    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        if (!cio_engine_init(engines[e])) {
            continue;
        }
        (void)cio_pool_trim(0);
        cio_decoder_init(&decoder, CIO_FORMAT_GZIP);
        span = (struct cio_span){packed, n, 0, out, sizeof out, 0};
        for (size_t i = 0; i < 2; i++) {
            const struct cio_fault fault = {calls[i], 1, 1, 12, 0};

            CHECK(cio_fault_add(&fault));
        }
        CHECK_EQ(cio_decoder_step(&decoder, &span), CIO_ERR_NOMEM);
        cio_fault_clear();
        CHECK_EQ(cio_decoder_step(&decoder, &span), CIO_OK);
        CHECK_EQ(cio_decoder_step(&decoder, &span), CIO_OK);
        CHECK_EQ(span.out_used, sizeof out);
        CHECK_MEM(out, plain, sizeof plain);
        cio_decoder_release(&decoder);
    }
    (void)cio_pool_trim(0);
}

/* Found by fuzzing: ISA-L's count of input left went to -1. */
CIO_TEST(an_invalid_stream_never_uses_more_than_its_window)
{
    static const uint8_t input[] = {0x8b, 0xff, 0xe4, 0x00,
                                    0xab, 0x29, 0x06, 0x00};

    CHECK(cio_engine_init(NULL));
    CHECK_STR(inflate_model(input, sizeof input), NULL);
}
