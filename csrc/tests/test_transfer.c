/* SPDX-License-Identifier: MIT
 * test_transfer.c - what transfer/ promises: the plan, falling back at the
 * position reached, holes, offsets, lists of files. No Python.
 */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_limits.h"
#include "base/cio_native.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "transfer/cio_copyfile.h"
#include "transfer/cio_routes.h"

#define SIZE 300000

static const char *
path_of(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *const path = paths[next++ % 8];

    (void)snprintf(path, sizeof paths[0], "%s/%s", cio_test_folder(), name);
    return path;
}

static const uint8_t *
noise(void)
{
    static uint8_t data[SIZE];
    uint32_t x = 1;

    for (size_t i = 0; i < SIZE; i++) {
        x = x * 1664525U + 1013904223U;
        data[i] = (uint8_t)(x >> 24);
    }
    return data;
}

static int
make_file(const char *name, size_t nbytes)
{
    const int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, noise(), nbytes), (ssize_t)nbytes);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void
check_file(int fd, size_t nbytes)
{
    static uint8_t got[SIZE + 1];

    CHECK_EQ(pread(fd, got, sizeof got, 0), (ssize_t)nbytes);
    CHECK_MEM(got, noise(), nbytes);
}

static void
begin(struct cio_transfer *t, int source, int target)
{
    cio_transfer_init(t);
    CHECK_EQ(cio_end_open(&t->source, source, CIO_OFFSET_FOLLOW, -1).status,
             CIO_OK);
    CHECK_EQ(cio_end_open(&t->target, target, CIO_OFFSET_FOLLOW, -1).status,
             CIO_OK);
    CHECK_EQ(cio_end_as_target(&t->target).status, CIO_OK);
}

static struct cio_done
run(struct cio_transfer *t)
{
    struct cio_done done;
    uint64_t total = t->count; /* of steps before */

    do {
        done = cio_transfer_step(t);
        total += done.nbytes;
    } while (done.status == CIO_MORE);
    done.nbytes = total;
    CHECK_EQ(cio_transfer_end(t).status, CIO_OK);
    CHECK(t->buffer == NULL);
    CHECK_EQ(total, t->count);
    return done;
}

/* Nothing that was leased is still out. */
static void
check_pool(void)
{
    struct cio_pool_stats stats;

    cio_pool_stats(&stats);
    CHECK_EQ(stats.in_use, 0U);
    (void)cio_pool_trim(0);
}

/* ---------------------------------------------------------------- plan */

CIO_TEST(plan_orders_the_routes_by_what_the_ends_are)
{
    struct cio_transfer t;
    const int source = make_file("s", 5000);
    const int target = make_file("t", 0);
    const int append = open(path_of("a"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int pipe_ends[2];

    CHECK_EQ(pipe(pipe_ends), 0);
    begin(&t, source, target);
    t.threshold = 5000;
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    if (cio_has_kernel_copies) {
        CHECK_EQ(t.route_count, 5U);
        CHECK_EQ(t.routes[0], CIO_ROUTE_REFLINK);
        CHECK_EQ(t.routes[1], CIO_ROUTE_COPY_FILE_RANGE);
        CHECK_EQ(t.routes[2], CIO_ROUTE_SENDFILE);
    }
    CHECK_EQ(t.routes[t.route_count - 2], CIO_ROUTE_MAPPED);
    CHECK_EQ(t.routes[t.route_count - 1], CIO_ROUTE_CHUNKED);

    begin(&t, source, append);
    t.threshold = 5001;
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK_EQ(t.route_count, 1U);
    CHECK_EQ(t.routes[0], CIO_ROUTE_CHUNKED);

    begin(&t, pipe_ends[0], target);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK_EQ(t.routes[0],
             cio_has_kernel_copies ? CIO_ROUTE_SPLICE : CIO_ROUTE_CHUNKED);
    begin(&t, pipe_ends[0], target);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_MAPPED, CIO_REFLINK_AUTO),
             CIO_PLAN_NO_METHOD);
    (void)close(source), (void)close(target), (void)close(append);
    (void)close(pipe_ends[0]), (void)close(pipe_ends[1]);
}

CIO_TEST(plan_refuses_directories_devices_without_end_and_overlaps)
{
    struct cio_transfer t;
    const int folder = open(cio_test_folder(), O_RDONLY);
    const int zero = open("/dev/zero", O_RDONLY);
    const int file = make_file("s", 5000);

    begin(&t, folder, file);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO),
             CIO_PLAN_DIRECTORY);
    begin(&t, zero, file);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_ENDLESS);
    begin(&t, zero, file);
    t.left = 5;
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    begin(&t, file, file);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OVERLAP);
    begin(&t, file, file);
    t.target.off = 5000; /* its end: bounded by the size now */
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_CHUNKED, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK_EQ(run(&t).nbytes, 5000U);
    (void)close(folder), (void)close(zero), (void)close(file);
    check_pool();
}

/* ------------------------------------------------------------- refusals */

static const struct {
    enum cio_route route;
    enum cio_call call;
} copies[] = {
    {CIO_ROUTE_COPY_FILE_RANGE, CIO_CALL_copy_file_range},
    {CIO_ROUTE_SENDFILE, CIO_CALL_sendfile},
};

CIO_TEST(a_refused_route_gives_way_at_the_position_reached)
{
    static const int errors[] = {EXDEV, EINVAL,     EBADF,   ENOSYS,
                                 EPERM, EOPNOTSUPP, ENODATA, EAGAIN};

    for (size_t i = 0; i < 2 * 8 && cio_has_kernel_copies; i++) {
        const enum cio_route route = copies[i % 2].route;
        const struct cio_fault shorter = {.call = copies[i % 2].call,
                                          .first = 1,
                                          .times = 1,
                                          .max_nbytes = 1000};
        const struct cio_fault refusal = {.call = copies[i % 2].call,
                                          .first = 2,
                                          .times = 1,
                                          .error = errors[i / 2]};
        struct cio_transfer t;
        const int source = make_file("s", SIZE), target = make_file("t", 0);

        begin(&t, source, target);
        CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_NEVER), CIO_PLAN_OK);
        if (route == CIO_ROUTE_COPY_FILE_RANGE) {
            t.routes[0] = route, t.routes[1] = CIO_ROUTE_CHUNKED;
            t.route_count = 2;
        }
        CHECK(cio_fault_add(&shorter) && cio_fault_add(&refusal));
        CHECK_EQ(run(&t).status, CIO_EOF);
        cio_fault_clear();
        CHECK_EQ(t.count, (uint64_t)SIZE);
        CHECK_EQ(t.fallback_count, 1U);
        CHECK_EQ(t.fallbacks[0].route, route);
        CHECK_EQ(t.fallbacks[0].error, errors[i / 2]);
        CHECK_EQ(t.moved_by, CIO_ROUTE_CHUNKED);
        check_file(target, SIZE);
        CHECK_EQ(lseek(source, 0, SEEK_CUR), SIZE);
        CHECK_EQ(lseek(target, 0, SEEK_CUR), SIZE);
        (void)close(source), (void)close(target);
    }
    check_pool();
}

static int
it_is_network(int fd)
{
    (void)fd;
    return 1;
}

CIO_TEST(eio_is_a_refusal_only_at_first_and_on_a_network)
{
    const struct cio_sys *const before = cio_sys;
    struct cio_sys network = *cio_sys;
    struct cio_transfer t;
    const int source = make_file("s", 5000), target = make_file("t", 0);

    begin(&t, source, target);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK(!cio_route_refuses(&t, CIO_ROUTE_COPY_FILE_RANGE, EIO));
    network.is_network = it_is_network;
    cio_sys = &network;
    CHECK(cio_route_refuses(&t, CIO_ROUTE_COPY_FILE_RANGE, EIO));
    t.count = 1;
    CHECK(!cio_route_refuses(&t, CIO_ROUTE_COPY_FILE_RANGE, EIO));
    t.count = 0;
    CHECK(!cio_route_refuses(&t, CIO_ROUTE_COPY_FILE_RANGE, ENOSPC));
    CHECK(!cio_route_refuses(&t, CIO_ROUTE_CHUNKED, EIO));
    cio_sys = before;
    (void)close(source), (void)close(target);
}

CIO_TEST(full_disk_reports_what_arrived)
{
    const struct cio_fault full = {
        .call = CIO_CALL_pwrite, .first = 3, .times = 1, .error = ENOSPC};
    struct cio_transfer t;
    struct cio_done done;
    const int source = make_file("s", SIZE), target = make_file("t", 0);

    begin(&t, source, target);
    t.chunk_nbytes = 1000;
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_CHUNKED, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK(cio_fault_add(&full));
    done = run(&t);
    cio_fault_clear();
    CHECK_EQ(done.status, CIO_ERR_SYS);
    CHECK_EQ(done.sys_errno, ENOSPC);
    CHECK_EQ(done.nbytes, 2000U);
    check_file(target, 2000);
    (void)close(source), (void)close(target);
    check_pool();
}

/* ---------------------------------------------------------------- steps */

CIO_TEST(a_step_is_a_slice)
{
    struct cio_transfer t;
    struct cio_done done;
    const int source = make_file("s", 0), target = make_file("t", 0);
    const off_t size = (off_t)(2 * CIO_SLICE_NBYTES + 5);

    CHECK_EQ(ftruncate(source, size), 0);
    begin(&t, source, target);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_CHUNKED, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    do {
        done = cio_transfer_step(&t);
        CHECK_LE(done.nbytes, CIO_SLICE_NBYTES);
    } while (done.status == CIO_MORE);
    CHECK_EQ(done.status, CIO_EOF);
    CHECK_EQ(t.count, (uint64_t)size);
    (void)cio_transfer_end(&t);
    (void)close(source), (void)close(target);
    check_pool();
}

CIO_TEST(a_short_write_comes_back_for_signals)
{
    const struct cio_fault half = {
        .call = CIO_CALL_write, .first = 1, .times = 1, .max_nbytes = 100};
    struct cio_transfer t;
    struct cio_done done;
    const int source = make_file("s", 5000);
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    begin(&t, source, ends[1]);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_CHUNKED, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK(cio_fault_add(&half));
    done = cio_transfer_step(&t);
    CHECK_EQ(done.status, CIO_MORE);
    CHECK_EQ(done.nbytes, 100U);
    CHECK_EQ(run(&t).nbytes, 5000U);
    (void)close(source), (void)close(ends[0]), (void)close(ends[1]);
}

CIO_TEST(a_timeout_ends_a_wait)
{
    struct cio_transfer t;
    struct cio_done done;
    const int target = make_file("t", 0);
    int ends[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    CHECK_EQ(write(ends[1], "abc", 3), 3);
    begin(&t, ends[0], target);
    t.source.timeout_ms = 10;
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    done = run(&t);
    CHECK_EQ(done.status, CIO_ERR_SYS);
    CHECK_EQ(done.sys_errno, ETIMEDOUT);
    CHECK_EQ(done.nbytes, 3U);
    (void)close(target), (void)close(ends[0]), (void)close(ends[1]);
    check_pool();
}

CIO_TEST(bytes_of_the_caller_go_in_and_out)
{
    struct cio_transfer t;
    const uint8_t *data;
    size_t nbytes;
    const int file = make_file("f", 0);

    cio_transfer_init(&t);
    cio_end_of_caller(&t.source);
    CHECK_EQ(cio_end_open(&t.target, file, CIO_OFFSET_FOLLOW, -1).status,
             CIO_OK);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    cio_transfer_lend(&t, noise(), 1000);
    CHECK_EQ(cio_transfer_push(&t).status, CIO_OK);
    CHECK_EQ(t.count, 1000U);
    (void)cio_transfer_end(&t);
    check_file(file, 1000);

    cio_transfer_init(&t);
    cio_end_of_caller(&t.target);
    CHECK_EQ(cio_end_open(&t.source, file, CIO_OFFSET_KEEP, 10).status,
             CIO_OK);
    CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_AUTO), CIO_PLAN_OK);
    CHECK_EQ(cio_transfer_pull(&t).status, CIO_OK);
    data = cio_transfer_pending(&t, &nbytes);
    CHECK_EQ(nbytes, 990U);
    CHECK_MEM(data, noise() + 10, 990);
    cio_transfer_took(&t, 990);
    CHECK_EQ(cio_transfer_pull(&t).status, CIO_EOF);
    (void)cio_transfer_end(&t);
    CHECK_EQ(lseek(file, 0, SEEK_CUR), 1000);
    (void)close(file);
    check_pool();
}

/* ---------------------------------------------------------------- holes */

CIO_TEST(runs_of_zeros_keep_to_the_blocks_of_the_target)
{
    static uint8_t data[3 * CIO_BLOCK_NBYTES];
    struct cio_transfer t;
    bool zeros;

    cio_transfer_init(&t);
    data[CIO_BLOCK_NBYTES] = 1;
    CHECK_EQ(cio_sparse_run(&t, data, sizeof data, &zeros),
             (size_t)CIO_BLOCK_NBYTES);
    CHECK(zeros);
    CHECK_EQ(cio_sparse_run(&t, data + CIO_BLOCK_NBYTES, 2 * CIO_BLOCK_NBYTES,
                            &zeros),
             (size_t)CIO_BLOCK_NBYTES);
    CHECK(!zeros);
    t.target.off = 100; /* the first block ends 100 bytes earlier */
    CHECK_EQ(cio_sparse_run(&t, data, sizeof data, &zeros),
             (size_t)CIO_BLOCK_NBYTES - 100);
    CHECK(zeros);
    t.target.off = 0;
    CHECK_EQ(cio_sparse_run(&t, data, 5, &zeros), 5U);
    CHECK(zeros);
}

CIO_TEST(what_a_shrunken_source_has_lost_is_no_hole)
{
    static const off_t data_ends[] = {0, 1 << 16};
    const enum cio_sparse sparse[] = {CIO_SPARSE_AUTO, CIO_SPARSE_ALWAYS};
    struct stat st;

    for (size_t i = 0; i < 4; i++) {
        const off_t data_end = data_ends[i % 2];
        const int source = make_file("s", (size_t)data_end);
        const int target = make_file("t", 0);
        struct cio_transfer t;

        CHECK_EQ(ftruncate(source, 8 << 20), 0);
        begin(&t, source, target);
        t.sparse = sparse[i / 2];
        CHECK_EQ(cio_plan(&t, CIO_ROUTE_AUTO, CIO_REFLINK_NEVER), CIO_PLAN_OK);
        CHECK_EQ(ftruncate(source, data_end), 0);
        CHECK_EQ(run(&t).nbytes, (uint64_t)data_end);
        CHECK_EQ(fstat(target, &st), 0);
        CHECK_EQ(st.st_size, data_end);
        check_file(target, (size_t)data_end);
        (void)close(source);
        (void)close(target);
    }
    check_pool();
}

/* ------------------------------------------------------------ by path */

static struct cio_done
copy_one(struct cio_copyfile *copy, const char *source, const char *target)
{
    static const struct cio_copy_options options = {.method = CIO_ROUTE_AUTO,
                                                    .sparse = CIO_SPARSE_AUTO};
    struct cio_done done;

    cio_copyfile_init(copy, source, target, &options);
    do {
        done = cio_copyfile_step(copy);
    } while (done.status == CIO_MORE);
    return done;
}

CIO_TEST(copyfile_keeps_shutils_rules)
{
    struct cio_copyfile copy;
    const char *const source = path_of("s"), *const target = path_of("t");
    int fd = make_file("s", 5000);

    CHECK_EQ(copy_one(&copy, source, target).status, CIO_EOF);
    CHECK_EQ(copy.transfer.count, 5000U);
    CHECK_EQ(copy_one(&copy, source, source).status, CIO_ERR_DATA);
    CHECK_EQ(copy.fault, CIO_COPY_SAME);
    check_file(fd, 5000);
    CHECK_EQ(copy_one(&copy, cio_test_folder(), target).sys_errno, EISDIR);
    CHECK_EQ(copy.where, CIO_AT_SOURCE);
    CHECK_EQ(copy_one(&copy, source, cio_test_folder()).sys_errno, EISDIR);
    CHECK_EQ(copy.where, CIO_AT_TARGET);
    CHECK_EQ(copy_one(&copy, path_of("none"), target).sys_errno, ENOENT);
    CHECK_EQ(mkfifo(path_of("fifo"), 0600), 0);
    CHECK_EQ(copy_one(&copy, path_of("fifo"), target).status, CIO_ERR_DATA);
    CHECK_EQ(copy.fault, CIO_COPY_SOURCE_SPECIAL);
    CHECK_EQ(copy_one(&copy, source, path_of("fifo")).status, CIO_ERR_DATA);
    CHECK_EQ(copy.fault, CIO_COPY_TARGET_SPECIAL);
    (void)close(fd);
    fd = open(target, O_RDONLY);
    check_file(fd, 5000);
    (void)close(fd);
    check_pool();
}

CIO_TEST(an_abandoned_copy_leaves_no_empty_target)
{
    static const struct cio_copy_options options = {
        .method = CIO_ROUTE_CHUNKED, .sparse = CIO_SPARSE_AUTO};
    const struct cio_fault interrupted = {
        .call = CIO_CALL_pwrite, .first = 1, .times = 1, .error = EINTR};
    struct cio_copyfile copy;
    const char *const source = path_of("s"), *const target = path_of("t");

    (void)close(make_file("s", 5000));
    cio_copyfile_init(&copy, source, target, &options);
    CHECK(cio_fault_add(&interrupted));
    CHECK_EQ(cio_copyfile_step(&copy).status, CIO_MORE);
    cio_copyfile_abandon(&copy);
    CHECK_NE(access(target, F_OK), 0);
    check_pool();
}

#define FILES 300

CIO_TEST(a_list_is_copied_by_many_threads)
{
    static char names[2 * FILES][512];
    static struct cio_copy_item items[FILES];
    static struct cio_copy_list list;
    size_t failed = 0;

    for (size_t i = 0; i < FILES; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "s%zu", i);
        (void)snprintf(names[2 * i], 512, "%s/s%zu", cio_test_folder(), i);
        (void)snprintf(names[2 * i + 1], 512, "%s/%st%zu", cio_test_folder(),
                       i % 100 == 99 ? "none/" : "", i);
        (void)close(make_file(name, i * 10));
        items[i].source = names[2 * i];
        items[i].target = names[2 * i + 1];
    }
    list.items = items;
    list.item_count = FILES;
    list.options.method = CIO_ROUTE_AUTO;
    list.options.metadata = true;
    cio_copy_list_start(&list, 4);
    while (cio_copy_list_step(&list).status == CIO_MORE) {
    }
    for (size_t i = 0; i < FILES; i++) {
        if (items[i].done.status == CIO_EOF) {
            const int fd = open(items[i].target, O_RDONLY);

            CHECK_EQ(items[i].done.nbytes, i * 10);
            check_file(fd, i * 10);
            (void)close(fd);
        } else {
            CHECK_EQ(items[i].done.sys_errno, ENOENT);
            CHECK_EQ(items[i].where, CIO_AT_TARGET);
            failed++;
        }
    }
    CHECK_EQ(failed, FILES / 100U);
    cio_workers_stop();
    check_pool();
}

CIO_TEST(a_cancelled_list_leaves_the_rest_alone)
{
    static char names[2][512];
    static struct cio_copy_item items[50];
    static struct cio_copy_list list;

    (void)close(make_file("s", 5000));
    (void)snprintf(names[0], 512, "%s/s", cio_test_folder());
    (void)snprintf(names[1], 512, "%s/t", cio_test_folder());
    for (size_t i = 0; i < 50; i++) {
        items[i].source = names[0];
        items[i].target = names[1];
    }
    list.items = items;
    list.item_count = 50;
    list.options.method = CIO_ROUTE_AUTO;
    cio_copy_list_start(&list, 1);
    cio_copy_list_cancel(&list);
    for (size_t i = 0; i < 50; i++) {
        CHECK_EQ(items[i].done.status, CIO_MORE);
    }
    CHECK_NE(access(names[1], F_OK), 0);
}
