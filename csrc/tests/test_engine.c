/* SPDX-License-Identifier: MIT
 * test_engine.c - every engine gives zlib's bytes, and zlib's verdict counts.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "inflate/cio_crc32.h"
#include "inflate/cio_engine.h"
#include "tests/test.h"

static const char *const engines[] = {NULL, "zlib", "isal", "libdeflate"};
#define ENGINE_COUNT (sizeof engines / sizeof engines[0])

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t
draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

/* Text with repeats near and far: literals, matches, all block types. */
static void
fill(uint8_t *plain, size_t nbytes)
{
    size_t at = 0;

    while (at < nbytes) {
        const size_t n = 1 + draw(60);

        if (at > 40000 && draw(3) == 0) {
            const size_t back = 1 + draw(32768);

            for (size_t i = 0; i < n && at < nbytes; i++, at++) {
                plain[at] = plain[at - back];
            }
        } else {
            for (size_t i = 0; i < n && at < nbytes; i++, at++) {
                plain[at] = (uint8_t)('a' + draw(12));
            }
        }
    }
}

static size_t
deflate_raw(const uint8_t *plain, size_t nbytes, uint8_t *packed, size_t room,
            int level)
{
    z_stream stream = {0};
    int result;

    CHECK_EQ(deflateInit2(&stream, level, Z_DEFLATED, -15, 9, 0), Z_OK);
    stream.next_in = (z_const Bytef *)plain;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    result = deflate(&stream, Z_FINISH);
    CHECK_EQ(result, Z_STREAM_END);
    (void)deflateEnd(&stream);
    return room - stream.avail_out;
}

struct sample {
    uint8_t *plain, *packed;
    size_t plain_nbytes, packed_nbytes;
};

/* `tail` bytes lie behind the stream. */
static struct sample
sample_make(size_t nbytes, int level, size_t tail)
{
    struct sample s = {malloc(nbytes + 1), malloc(nbytes * 2 + 1024), nbytes,
                       0};

    fill(s.plain, nbytes);
    s.packed_nbytes =
        deflate_raw(s.plain, nbytes, s.packed, nbytes * 2 + 512, level);
    memset(s.packed + s.packed_nbytes, 0xa5, tail);
    return s;
}

static void
sample_drop(struct sample *s)
{
    free(s->plain);
    free(s->packed);
}

static const size_t sizes[] = {0,     1,      2,     100,   8191,
                               8192,  32767,  32768, 65535, 65536,
                               65537, 131072, 99999, 300000};

CIO_TEST(whole_members_are_right_by_every_engine)
{
    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        if (!cio_engine_init(engines[e])) {
            continue; /* not built in */
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int level = 0; level <= 9; level += 3) {
                for (int checked = 0; checked < 2; checked++) {
                    struct sample s = sample_make(sizes[i], level, 20);
                    uint8_t *out = malloc(sizes[i] + 1);
                    struct cio_whole whole = {
                        .in = s.packed,
                        .in_nbytes = s.packed_nbytes + 20,
                        .out = out,
                        .out_nbytes = sizes[i],
                        .checked = checked,
                    };

                    CHECK_EQ(cio_inflate_whole(&whole), CIO_OK);
                    CHECK_EQ(whole.in_used, s.packed_nbytes);
                    CHECK_EQ(whole.out_used, sizes[i]);
                    CHECK_MEM(out, s.plain, sizes[i]);
                    if (checked) {
                        CHECK_EQ(whole.crc, crc32_z(0, s.plain, sizes[i]));
                    }
                    free(out);
                    sample_drop(&s);
                }
            }
        }
    }
}

CIO_TEST(whole_members_that_are_wrong_say_how)
{
    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        struct sample s = sample_make(50000, 6, 0);
        uint8_t *out = malloc(60000);
        struct cio_whole whole = {.in = s.packed,
                                  .in_nbytes = s.packed_nbytes,
                                  .out = out,
                                  .checked = true};

        if (cio_engine_init(engines[e])) {
            whole.out_nbytes = 49999;
            CHECK_EQ(cio_inflate_whole(&whole), CIO_ERR_DATA);
            CHECK_EQ(whole.fault, CIO_FAULT_LONG);
            CHECK_EQ(whole.out_used, 49999);
            CHECK_MEM(out, s.plain, 49999);
            whole.out_nbytes = 50001;
            CHECK_EQ(cio_inflate_whole(&whole), CIO_ERR_DATA);
            CHECK_EQ(whole.fault, CIO_FAULT_SHORT);
            CHECK_EQ(whole.out_used, 50000);
            CHECK_EQ(cio_inflate_within(&whole), CIO_OK);
            CHECK_EQ(whole.out_used, 50000);
            whole.out_nbytes = 49999;
            CHECK_EQ(cio_inflate_within(&whole), CIO_ERR_DATA);
            CHECK_EQ(whole.fault, CIO_FAULT_LONG);
            whole.out_nbytes = 50000;
            for (size_t cut = 0; cut < s.packed_nbytes; cut += 97) {
                whole.in_nbytes = cut;
                CHECK_EQ(cio_inflate_whole(&whole), CIO_ERR_DATA);
                CHECK_EQ(whole.fault, CIO_FAULT_CUT);
                CHECK_MEM(out, s.plain, whole.out_used);
            }
            whole.in_nbytes = s.packed_nbytes;
            s.packed[0] |= 6; /* block type 3 */
            CHECK_EQ(cio_inflate_whole(&whole), CIO_ERR_DATA);
            CHECK_EQ(whole.fault, CIO_FAULT_STREAM);
            CHECK_STR(whole.text, "invalid block type");
        }
        free(out);
        sample_drop(&s);
    }
}

static void
stream_in_pieces(const struct sample *s, bool checked, uint32_t in_max,
                 uint32_t out_max)
{
    struct cio_inflater *inflater = cio_inflater_take(checked);
    size_t in_at = 0, out_at = 0;
    enum cio_status status = CIO_OK;

    CHECK(inflater != NULL);
    while (status == CIO_OK) {
        /* Windows of their own, as large as what is in them. */
        const size_t in_nbytes = cio_inflater_pending(inflater) && draw(2) == 0
                                     ? 0
                                     : draw(in_max + 1);
        const size_t out_nbytes = draw(out_max + 1);
        const size_t room = s->packed_nbytes + 20 - in_at;
        const size_t n = in_nbytes < room ? in_nbytes : room;
        uint8_t *in = malloc(n + 1), *out = malloc(out_nbytes + 1);
        struct cio_span span = {in, n, 0, out, out_nbytes, 0};

        memcpy(in, s->packed + in_at, n);
        status = cio_inflater_step(inflater, &span);
        CHECK(status == CIO_OK || status == CIO_EOF);
        CHECK(status == CIO_EOF || span.in_used == n
              || span.out_used == out_nbytes);
        in_at += span.in_used;
        CHECK_LE(out_at + span.out_used, s->plain_nbytes);
        CHECK_MEM(out, s->plain + out_at, span.out_used);
        out_at += span.out_used;
        free(in);
        free(out);
        if (draw(64) == 0 && status == CIO_OK) {
            struct cio_inflater *other = cio_inflater_copy(inflater);

            CHECK(other != NULL);
            cio_inflater_give(inflater);
            inflater = other;
        }
    }
    CHECK_EQ(in_at, s->packed_nbytes);
    CHECK_EQ(out_at, s->plain_nbytes);
    cio_inflater_give(inflater);
    (void)cio_pool_trim(0);
}

CIO_TEST(streams_end_exactly_by_every_engine_and_piece)
{
    static const uint32_t pieces[] = {1, 2, 7, 100, 5000, 200000};

    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        if (!cio_engine_init(engines[e])) {
            continue;
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t p = 0; p < 6; p++) {
                for (size_t q = 0; q < 6; q++) {
                    struct sample s;

                    if (sizes[i] > 9000 && (p < 3 || q < 3)
                        && !(p == q && sizes[i] == 32768)) {
                        continue; /* too slow under sanitizers */
                    }
                    s = sample_make(sizes[i], (int)draw(10), 20);
                    stream_in_pieces(&s, draw(2), pieces[p], pieces[q]);
                    sample_drop(&s);
                }
            }
        }
    }
}

CIO_TEST(a_stream_without_input_makes_no_native_call)
{
    struct sample s;
    struct cio_inflater *inflater;
    struct cio_engine_counts before, after;
    uint8_t out[1000];
    struct cio_span span;

    CHECK(cio_engine_init(NULL));
    s = sample_make(500, 6, 0);
    inflater = cio_inflater_take(true);
    span = (struct cio_span){s.packed, 20, 0, out, sizeof out, 0};
    CHECK_EQ(cio_inflater_step(inflater, &span), CIO_OK);
    cio_engine_counts(&before);
    CHECK_EQ(cio_inflater_step(inflater, &span), CIO_OK);
    span.out_nbytes = span.out_used;
    span.in_nbytes = s.packed_nbytes;
    CHECK_EQ(cio_inflater_step(inflater, &span), CIO_OK);
    cio_engine_counts(&after);
    CHECK_EQ(before.with_input, after.with_input);
    CHECK_EQ(before.without_input, after.without_input);
    cio_inflater_give(inflater);
    (void)cio_pool_trim(0);
    sample_drop(&s);
}

CIO_TEST(engines_report_when_memory_is_refused)
{
    uint8_t out[10], in[] = {3, 0};

    /* Three of zlib's: its object, its state, its window. */
    for (unsigned k = 1; k <= 4; k++) {
        struct cio_fault fault = {CIO_CALL_calloc, k, 1, 12, 0};
        struct cio_whole whole = {.in = in, .in_nbytes = 2, .out = out};

        CHECK(cio_engine_init("zlib"));
        (void)cio_pool_trim(0);
        CHECK(cio_fault_add(&fault));
        CHECK_EQ(cio_inflate_whole(&whole), k <= 3 ? CIO_ERR_NOMEM : CIO_OK);
        cio_fault_clear();
    }
    (void)cio_pool_trim(0);
}

CIO_TEST(checksums_are_zlibs)
{
    uint8_t data[5000];

    fill(data, sizeof data);
    for (size_t e = 0; e < ENGINE_COUNT; e++) {
        if (!cio_engine_init(engines[e])) {
            continue;
        }
        for (int i = 0; i < 300; i++) {
            const size_t at = draw(100), n = draw(4900);
            const uint32_t crc = (uint32_t)crc32_z(0, data, at);
            const uint32_t adler = (uint32_t)adler32_z(1, data, at);

            CHECK_EQ(cio_crc32(crc, data + at, n), crc32_z(crc, data + at, n));
            CHECK_EQ(cio_adler32(adler, data + at, n),
                     adler32_z(adler, data + at, n));
            CHECK_EQ(
                cio_crc32_combine(crc, (uint32_t)crc32_z(0, data + at, n), n),
                crc32_z(0, data, at + n));
        }
    }
}
