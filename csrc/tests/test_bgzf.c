/* SPDX-License-Identifier: MIT
 * test_bgzf.c - the queue of blocks: order, rings, wrong blocks, ends in the
 * middle, fork.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cio_fork.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "base/cio_workers.h"
#include "inflate/cio_bgzf.h"
#include "tests/test.h"

static uint64_t seed = 0x2545f4914f6cdd1d;

static uint32_t
draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

/* ----------------------------------------------------------------- streams */

struct stream {
    uint8_t *plain, *packed;
    size_t plain_nbytes, packed_nbytes, room;
};

/* One member; blocks have their size in the header. */
static void
add_member(struct stream *s, size_t nbytes, bool block, int level)
{
    static const uint8_t extra[] = {6, 0, 'B', 'C', 2, 0};
    uint8_t *const out = s->packed + s->packed_nbytes;
    z_stream stream = {0};
    size_t n;

    CHECK(s->plain_nbytes + nbytes <= s->room);
    CHECK_EQ(deflateInit2(&stream, level, Z_DEFLATED, 31, 8, 0), Z_OK);
    stream.next_in = s->plain + s->plain_nbytes;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = out;
    stream.avail_out = 70000;
    CHECK_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    n = 70000 - stream.avail_out;
    (void)deflateEnd(&stream);
    if (block) {
        memmove(out + 18, out + 10, n - 10);
        out[3] = 4;
        memcpy(out + 10, extra, sizeof extra);
        n += 8;
        out[16] = (uint8_t)(n - 1);
        out[17] = (uint8_t)((n - 1) >> 8);
    }
    s->plain_nbytes += nbytes;
    s->packed_nbytes += n;
}

/* letters: how many the data are made of; 256 can't be packed. */
static struct stream
new_stream(size_t room, unsigned letters)
{
    struct stream s = {malloc(room + 1), malloc(room * 2 + 200000), 0, 0,
                       room};

    for (size_t i = 0; i < room; i++) {
        s.plain[i] = (uint8_t)('a' + draw(letters));
    }
    return s;
}

static void
free_stream(struct stream *s)
{
    free(s->plain);
    free(s->packed);
}

/* ----------------------------------------------------------------- reading */

struct reading {
    const struct stream *s;
    struct cio_decoder d;
    struct cio_bgzf *q;
    struct cio_bgzf_in in;
    size_t in_at, out_at; /* of the stream */
    size_t in_most;       /* bytes that come at a time */
    const uint8_t *view;  /* its start, and where it stands in the data */
    size_t view_at;
    enum cio_status status;
};

static void
begin(struct reading *g, const struct stream *s, unsigned threads)
{
    const size_t first = 20 < s->packed_nbytes ? 20 : s->packed_nbytes;

    memset(g, 0, sizeof *g);
    g->s = s;
    g->in_most = 1 + draw(300000);
    cio_decoder_init(&g->d, CIO_FORMAT_GZIP);
    g->q = cio_bgzf_open(threads);
    CHECK(g->q != NULL);
    CHECK(cio_bgzf_begin(g->q, &g->in, s->packed, first));
    g->in_at = first;
}

static void
end(struct reading *g)
{
    cio_bgzf_close(g->q);
    cio_decoder_release(&g->d);
}

static bool
more_input(struct reading *g)
{
    size_t n = g->s->packed_nbytes - g->in_at;

    if (n == 0 || !cio_bgzf_room(g->q, &g->in)) {
        return false;
    }
    n = n < g->in_most ? n : g->in_most;
    CHECK(g->in.size > g->in.end);
    n = n < g->in.size - g->in.end ? n : g->in.size - g->in.end;
    memcpy(g->in.data + g->in.end, g->s->packed + g->in_at, n);
    g->in.end += n;
    g->in_at += n;
    return true;
}

static void
check_data(struct reading *g, const uint8_t *data, size_t nbytes)
{
    CHECK(g->out_at + nbytes <= g->s->plain_nbytes);
    CHECK_MEM(data, g->s->plain + g->out_at, nbytes);
    g->out_at += nbytes;
}

/* By the decoder: whatever stands at the front of the input. */
static void
decode(struct reading *g)
{
    static uint8_t out[100000];
    struct cio_span span = {g->in.data, g->in.end,  g->in.at,
                            out,        sizeof out, 0};

    g->status = cio_decoder_step(&g->d, &span);
    g->in.at = span.in_used;
    g->view = NULL;
    if (g->status == CIO_ERR_DATA) { /* found after some had come out */
        g->out_at += span.out_used;
    } else {
        check_data(g, out, span.out_used);
    }
}

static void
look_at_view(struct reading *g, const struct cio_bgzf_view *view)
{
    if (view->nbytes == 0) {
        return;
    }
    if (!view->joins || g->view == NULL) {
        g->view = view->data;
        g->view_at = g->out_at;
    }
    CHECK(view->data == g->view + (g->out_at - g->view_at));
    check_data(g, view->data, view->nbytes);
    /* What was seen before is still there; its start would go first. */
    CHECK_MEM(g->view, g->s->plain + g->view_at,
              g->out_at - g->view_at < 2000 ? g->out_at - g->view_at : 2000);
}

/* Blocks by views, until something else comes up. */
static enum cio_bgzf_next
take_views(struct reading *g)
{
    enum cio_bgzf_next next = CIO_BGZF_BUSY;

    for (uint32_t n = draw(60); n > 0; n--) {
        struct cio_bgzf_view view;

        (void)cio_bgzf_push(g->q, &g->d, &g->in, NULL, 0);
        next = cio_bgzf_view(g->q, &g->d, &view);
        if (next == CIO_BGZF_TAKEN) {
            look_at_view(g, &view);
        } else if (next != CIO_BGZF_BUSY
                   || (!cio_bgzf_help(g->q) && !cio_bgzf_wait(g->q, 50))) {
            return next;
        }
    }
    return next;
}

/* Into memory of its own size, some of it inflated right there. */
static enum cio_bgzf_next
take_copies(struct reading *g)
{
    const size_t size = 1 + draw(400000);
    uint8_t *const dst = malloc(size);
    enum cio_bgzf_next next = CIO_BGZF_BUSY;
    size_t got = 0, n;

    g->view = NULL;
    for (uint32_t turns = draw(60); turns > 0; turns--) {
        (void)cio_bgzf_push(g->q, &g->d, &g->in, dst + got, size - got);
        next = cio_bgzf_copy(g->q, &g->d, dst + got, size - got, &n);
        if (next == CIO_BGZF_TAKEN) {
            got += n;
        } else if (next != CIO_BGZF_BUSY
                   || (!cio_bgzf_help(g->q) && !cio_bgzf_wait(g->q, 50))) {
            break;
        } else if (draw(3) == 0) {
            (void)more_input(g);
        }
    }
    if (cio_bgzf_aimed(g->q) > 0) {
        cio_bgzf_back(g->q, &g->in);
    }
    check_data(g, dst, got);
    free(dst);
    return next;
}

/* Nothing is queued. */
static void
go_on(struct reading *g)
{
    const uint8_t *const at = g->in.data + g->in.at;
    const size_t unread = g->in.end - g->in.at;
    const bool ended = g->in_at == g->s->packed_nbytes;
    struct cio_bgzf_member member;
    const enum cio_bgzf_start start = cio_decoder_between(&g->d)
                                          ? cio_bgzf_look(at, unread, &member)
                                      : unread == 0 ? CIO_BGZF_CUT
                                                    : CIO_BGZF_NO;

    if (start == CIO_BGZF_CUT && !ended) {
        CHECK(more_input(g)); /* there is always room */
    } else if (unread == 0) {
        g->status = cio_decoder_finish(&g->d);
    } else if (start != CIO_BGZF_BLOCK) {
        decode(g);
    }
}

/* To the stream's end, or its error. */
static void
read_on(struct reading *g)
{
    while (g->status == CIO_OK || g->status == CIO_MORE) {
        enum cio_bgzf_next next;

        while (cio_bgzf_hungry(g->q) && draw(4) != 0 && more_input(g)) {
        }
        next = draw(2) == 0 ? take_views(g) : take_copies(g);
        if (draw(20) == 0) {
            cio_bgzf_back(g->q, &g->in);
        }
        if (draw(40) == 0) {
            uint8_t *const kept = g->in.data;

            cio_bgzf_abandon(g->q, &g->in);
            CHECK(g->in.data != kept);
            free(kept); /* it would stay for good: the test's own memory */
        }
        if (next == CIO_BGZF_WRONG) {
            cio_bgzf_back(g->q, &g->in);
            decode(g);
        } else if (next == CIO_BGZF_NONE && cio_bgzf_queued(g->q) == 0) {
            go_on(g);
        }
    }
}

static void
clean_up(void)
{
    (void)cio_pool_trim(0);
    cio_workers_stop();
}

CIO_TEST(bgzf_blocks_come_in_order_from_several_threads)
{
    CHECK(cio_engine_init(NULL));
    for (unsigned round = 0; round < 8; round++) {
        struct stream s = new_stream(5000000, round % 3 == 0 ? 150 : 4);
        unsigned members = 0;
        struct reading g;

        /* Sizes of all kinds; now and then a member that is no block. */
        while (s.plain_nbytes + 65280 < s.room) {
            const unsigned kind = draw(20);

            add_member(&s,
                       kind == 0   ? 0
                       : kind < 4  ? draw(200)
                       : kind < 12 ? 65280
                                   : draw(60000),
                       draw(40) != 0, 1);
            members++;
        }
        add_member(&s, 0, true, 1);
        begin(&g, &s, 1 + round % 4);
        read_on(&g);
        CHECK_EQ(g.status, CIO_EOF);
        CHECK_EQ(g.out_at, s.plain_nbytes);
        CHECK_EQ(g.d.in_total, s.packed_nbytes);
        CHECK_EQ(g.d.out_total, s.plain_nbytes);
        CHECK_EQ(g.d.members, members + 1);
        end(&g);
        free_stream(&s);
    }
    clean_up();
}

CIO_TEST(a_wrong_bgzf_block_is_an_error_where_it_stands)
{
    enum { COUNT = 60, SIZE = 30000 };
    struct stream s = new_stream(COUNT * SIZE, 20);
    size_t starts[COUNT + 1];

    CHECK(cio_engine_init(NULL));
    for (size_t i = 0; i < COUNT; i++) {
        starts[i] = s.packed_nbytes;
        add_member(&s, SIZE, true, 1);
    }
    starts[COUNT] = s.packed_nbytes;
    for (unsigned round = 0; round < 40; round++) {
        const size_t k = draw(COUNT);
        /* The data, the trailer, the block's size, or the stream's end. */
        const size_t places[] = {30 + draw(10000),
                                 starts[k + 1] - starts[k] - 5, 16};
        uint8_t *const at = s.packed + starts[k] + places[round % 4 % 3];
        const size_t whole = s.packed_nbytes;
        struct reading g;

        if (round % 4 == 3) {
            s.packed_nbytes = starts[k] + 100;
        } else {
            *at ^= 0x10;
        }
        begin(&g, &s, 2 + round % 2);
        read_on(&g);
        if (round % 4 == 2) { /* only the block's size was wrong */
            CHECK_EQ(g.status, CIO_EOF);
            CHECK_EQ(g.out_at, s.plain_nbytes);
        } else {
            CHECK_EQ(g.status, CIO_ERR_DATA);
            CHECK_EQ(g.d.problem == CIO_PROBLEM_CUT, round % 4 == 3);
            CHECK_GE(g.out_at, k * SIZE);
        }
        end(&g);
        if (round % 4 == 3) {
            s.packed_nbytes = whole;
        } else {
            *at ^= 0x10;
        }
    }
    free_stream(&s);
    clean_up();
}

CIO_TEST(a_bgzf_queue_ends_while_workers_are_at_it)
{
    struct stream s = new_stream(1500000, 20);

    CHECK(cio_engine_init(NULL));
    while (s.plain_nbytes + 65280 < s.room) {
        add_member(&s, 65280, true, 1);
    }
    for (unsigned round = 0; round < 60; round++) {
        uint8_t *const dst = malloc(1500000);
        struct reading g;

        begin(&g, &s, 2 + round % 3);
        g.in_most = 300000;
        (void)more_input(&g);
        (void)cio_bgzf_push(g.q, &g.d, &g.in, dst,
                            round % 2 == 0 ? 1500000 : 0);
        for (unsigned k = round % 5; k > 0; k--) {
            (void)cio_bgzf_help(g.q);
        }
        if (round % 6 == 0) { /* what was aimed is no longer written to */
            cio_bgzf_back(g.q, &g.in);
            CHECK_EQ(cio_bgzf_queued(g.q), 0);
            free(dst);
            read_on(&g);
            CHECK_EQ(g.status, CIO_EOF);
            CHECK_EQ(g.out_at, s.plain_nbytes);
            end(&g);
        } else {
            end(&g);
            free(dst);
        }
    }
    free_stream(&s);
    clean_up();
}

CIO_TEST(a_child_of_fork_reads_a_bgzf_queue_on)
{
    struct stream s = new_stream(800000, 20);

    CHECK(cio_engine_init(NULL));
    CHECK_EQ(cio_fork_init(), 0);
    while (s.plain_nbytes + 40000 < s.room) {
        add_member(&s, 40000, true, 1);
    }
    for (unsigned round = 0; round < 12; round++) {
        struct reading g;
        pid_t child;
        int status;

        begin(&g, &s, 2);
        g.in_most = 300000;
        (void)more_input(&g);
        (void)cio_bgzf_push(g.q, &g.d, &g.in, NULL, 0);
        (void)usleep(50 * round);
        child = fork();
        if (child == 0) {
            /* Its ends are the caller's: what it inflates anew, and nothing
             * that only a worker could finish. */
            if (round % 3 == 0) {
                end(&g);
                _exit(0);
            }
            read_on(&g);
            _exit(g.status == CIO_EOF && g.out_at == s.plain_nbytes ? 0 : 1);
        }
        read_on(&g);
        CHECK_EQ(g.status, CIO_EOF);
        CHECK_EQ(g.out_at, s.plain_nbytes);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        end(&g);
    }
    free_stream(&s);
    clean_up();
}

CIO_TEST(a_bgzf_queue_whose_memory_is_refused_is_none)
{
    for (unsigned k = 1; k <= 3; k++) {
        const struct cio_fault fault = {k == 1 ? CIO_CALL_calloc
                                               : CIO_CALL_malloc,
                                        k == 3 ? 2 : 1, 1, 12, 0};

        CHECK(cio_fault_add(&fault));
        CHECK(cio_bgzf_open(2) == NULL);
        cio_fault_clear();
    }
}

CIO_TEST(a_bgzf_queue_goes_on_in_memory_that_somebody_keeps)
{
    const struct cio_fault fault = {CIO_CALL_malloc, 1, 1, 12, 0};
    struct stream s = new_stream(500000, 20);
    struct reading g;
    uint8_t *kept;

    CHECK(cio_engine_init(NULL));
    while (s.plain_nbytes + 40000 < s.room) {
        add_member(&s, 40000, true, 1);
    }
    begin(&g, &s, 2);
    kept = g.in.data;
    CHECK(cio_fault_add(&fault));
    cio_bgzf_abandon(g.q, &g.in); /* no memory for another */
    cio_fault_clear();
    CHECK(g.in.data == kept);
    while (more_input(&g)) {
    }
    (void)cio_bgzf_push(g.q, &g.d, &g.in, NULL, 0);
    CHECK_GE(cio_bgzf_queued(g.q), 1);
    for (;;) {
        struct cio_bgzf_view view;
        const enum cio_bgzf_next next = cio_bgzf_view(g.q, &g.d, &view);

        if (next == CIO_BGZF_TAKEN) {
            look_at_view(&g, &view);
        } else if (next == CIO_BGZF_NONE) {
            break;
        } else if (!cio_bgzf_help(g.q)) {
            (void)cio_bgzf_wait(g.q, 50);
        }
    }
    CHECK_EQ(g.out_at, s.plain_nbytes);
    end(&g);
    free(kept); /* not freed by the queue */
    free_stream(&s);
    clean_up();
}
