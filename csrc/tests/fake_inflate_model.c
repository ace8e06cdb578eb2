/* SPDX-License-Identifier: MIT
 * fake_inflate_model.c - zlib in one piece is the reference; ours runs in
 * pieces whose windows are allocated as large as they are, so that a sanitizer
 * sees a byte too far.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "inflate/cio_decoder.h"
#include "tests/inflate_model.h"

#define OUT_MAX (1024 * 1024)

struct input {
    const uint8_t *data;
    size_t nbytes;
    uint64_t random;
};

static unsigned
take_byte(struct input *input)
{
    if (input->nbytes == 0) {
        return 0;
    }
    input->nbytes--;
    return *input->data++;
}

static size_t
draw(struct input *input, size_t below)
{
    input->random ^= input->random << 13;
    input->random ^= input->random >> 7;
    input->random ^= input->random << 17;
    return (size_t)(input->random >> 20) % below;
}

static const int window_bits[] = {-15, 15, 31, 47};
static const enum cio_format formats[] = {CIO_FORMAT_RAW, CIO_FORMAT_ZLIB,
                                          CIO_FORMAT_GZIP, CIO_FORMAT_WRAPPED};

/* One member, as zlib makes it. */
static size_t
pack(const struct input *input, int bits, int level, uint8_t *out, size_t room)
{
    z_stream stream = {0};

    if (deflateInit2(&stream, level, Z_DEFLATED, bits, 8, 0) != Z_OK) {
        return 0;
    }
    stream.next_in = (z_const Bytef *)input->data;
    stream.avail_in = (uInt)input->nbytes;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    (void)deflate(&stream, Z_FINISH);
    (void)deflateEnd(&stream);
    return room - stream.avail_out;
}

struct outcome {
    bool whole; /* the first member's end was reached */
    size_t in_used, out_used;
};

static struct outcome
by_zlib(const uint8_t *packed, size_t nbytes, int bits, uint8_t *out)
{
    z_stream stream = {0};
    struct outcome outcome = {false, 0, 0};
    int result;

    if (inflateInit2(&stream, bits) != Z_OK) {
        return outcome;
    }
    stream.next_in = (z_const Bytef *)packed;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = out;
    stream.avail_out = (uInt)OUT_MAX;
    result = inflate(&stream, Z_SYNC_FLUSH);
    outcome.whole = result == Z_STREAM_END;
    outcome.in_used = nbytes - stream.avail_in;
    outcome.out_used = OUT_MAX - stream.avail_out;
    (void)inflateEnd(&stream);
    return outcome;
}

static const char *
step_in_copies(struct cio_decoder *decoder, struct cio_span *whole,
               size_t in_nbytes, size_t out_nbytes, enum cio_status *status)
{
    const size_t in_left = whole->in_nbytes - whole->in_used;
    const size_t out_left = whole->out_nbytes - whole->out_used;
    const size_t n = in_nbytes < in_left ? in_nbytes : in_left;
    const size_t m = out_nbytes < out_left ? out_nbytes : out_left;
    uint8_t *in = malloc(n + 1), *out = malloc(m + 1);
    struct cio_span span = {in + 1, n, 0, out + 1, m, 0};
    const char *wrong = NULL;

    memcpy(in + 1, whole->in + whole->in_used, n);
    *status = cio_decoder_step(decoder, &span);
    if (span.in_used > n || span.out_used > m) {
        wrong = "a window was left";
    } else if (*status == CIO_OK && span.in_used < n && span.out_used < m) {
        wrong = "CIO_OK though both windows have something";
    } else {
        memcpy(whole->out + whole->out_used, out + 1, span.out_used);
    }
    whole->in_used += span.in_used;
    whole->out_used += span.out_used;
    free(in);
    free(out);
    return wrong;
}

static const char *
compare(struct input *input, enum cio_format format, const uint8_t *packed,
        size_t packed_nbytes, const uint8_t *expected,
        struct outcome reference, uint8_t *out)
{
    static const size_t pieces[] = {1, 3, 40, 1000, 70000, OUT_MAX};
    const size_t in_max = pieces[draw(input, 6)];
    const size_t out_max = pieces[draw(input, 6)];
    const bool all = draw(input, 4) == 0;
    struct cio_span whole = {packed, packed_nbytes, 0, out, OUT_MAX, 0};
    struct cio_decoder decoder;
    enum cio_status status = CIO_OK;
    const char *wrong = NULL;

    cio_decoder_init(&decoder, format);
    decoder.one_member = true;
    decoder.all_input = all;
    decoder.zlib_only = draw(input, 4) == 0;
    decoder.eager = draw(input, 2) == 0;
    while (wrong == NULL && status == CIO_OK) {
        const size_t before = whole.in_used + whole.out_used;
        size_t room;
        const bool asked =
            whole.in_used < packed_nbytes || cio_decoder_pending(&decoder);

        if (!asked || whole.out_used == OUT_MAX) {
            status = cio_decoder_finish(&decoder);
            break;
        }
        room = draw(input, 8) == 0 ? 0 : 1 + draw(input, out_max);
        wrong = step_in_copies(&decoder, &whole,
                               all ? packed_nbytes : 1 + draw(input, in_max),
                               room, &status);
        if (wrong == NULL && status == CIO_OK && room > 0
            && whole.in_used + whole.out_used == before
            && (whole.in_used < packed_nbytes
                || cio_decoder_pending(&decoder))) {
            wrong = "no progress, no error";
        }
    }
    if (wrong == NULL && reference.whole && status != CIO_EOF) {
        wrong = "zlib takes it";
    } else if (wrong == NULL && format == CIO_FORMAT_RAW && !reference.whole
               && status == CIO_EOF) {
        wrong = "zlib refuses it, and nothing protects it";
    } else if (wrong == NULL && reference.whole
               && (whole.in_used != reference.in_used
                   || whole.out_used != reference.out_used)) {
        wrong = "it ends elsewhere";
    } else if (wrong == NULL
               && memcmp(out, expected,
                         whole.out_used < reference.out_used
                             ? whole.out_used
                             : reference.out_used)
                      != 0
               && (reference.whole || status == CIO_EOF)) {
        wrong = "the bytes differ";
    }
    cio_decoder_release(&decoder);
    return wrong;
}

const char *
inflate_model(const uint8_t *data, size_t nbytes)
{
    struct input input = {data, nbytes, 0x9e3779b97f4a7c15};
    const unsigned kind = take_byte(&input) % 4;
    const unsigned how = take_byte(&input);
    const size_t room = 2 * nbytes + 600;
    /* One call at a time; what is beyond a window is seen by its copies. */
    static uint8_t expected[OUT_MAX], out[OUT_MAX];
    uint8_t *packed = malloc(room);
    size_t packed_nbytes;
    struct outcome reference;
    const char *wrong = NULL;

    input.random ^= (uint64_t)take_byte(&input) << 40;
    input.random ^= (uint64_t)take_byte(&input) << 32;
    if (how & 1) {
        packed_nbytes =
            pack(&input, window_bits[kind == 3 ? how / 2 % 2 + 1 : kind],
                 (int)(how / 4 % 10), packed, room - 20);
        for (size_t i = how / 64; i > 0 && packed_nbytes > 0; i--) {
            packed[draw(&input, packed_nbytes)] ^=
                (uint8_t)(1u << draw(&input, 8));
        }
        memset(packed + packed_nbytes, 0x1f, 20);
        packed_nbytes += draw(&input, 20);
    } else {
        packed_nbytes = input.nbytes;
        memcpy(packed, input.data, packed_nbytes);
    }
    reference = by_zlib(packed, packed_nbytes, window_bits[kind], expected);
    if (reference.out_used < OUT_MAX) {
        wrong = compare(&input, formats[kind], packed, packed_nbytes, expected,
                        reference, out);
    }
    free(packed);
    return wrong;
}
