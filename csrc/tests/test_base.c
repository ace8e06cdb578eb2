/* SPDX-License-Identifier: MIT
 * test_base.c - what base/ promises: faults, the pool, worker threads, fork.
 */
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_fork.h"
#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_prefault.h"
#include "base/cio_sys.h"
#include "base/cio_workers.h"

/* ---------------------------------------------------------------- bytes */

CIO_TEST(bytes_load_what_was_stored_in_the_named_order)
{
    uint8_t at[9] = {0};

    cio_store_be32(at + 1, 0x01020304U);
    CHECK_MEM(at + 1, "\x01\x02\x03\x04", 4);
    cio_store_le64(at + 1, 0x0102030405060708U);
    CHECK_MEM(at + 1, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    CHECK_EQ(cio_load_le64(at + 1), 0x0102030405060708U);
    CHECK_EQ(cio_load_be16(at + 1), 0x0807U);
}

CIO_TEST(sizes_that_wrap_are_refused_and_leave_the_result)
{
    uint64_t result = 7;

    CHECK(!cio_add_u64(UINT64_MAX, 1, &result));
    CHECK(!cio_mul_u64(UINT64_MAX / 2 + 1, 2, &result));
    CHECK_EQ(result, 7U);
    CHECK(cio_add_u64(UINT64_MAX - 1, 1, &result));
    CHECK_EQ(result, UINT64_MAX);
}

/* --------------------------------------------------------------- faults */

CIO_TEST(the_kth_call_fails_and_the_next_goes_on)
{
    const struct cio_fault fault = {
        .call = CIO_CALL_read, .first = 2, .times = 2, .error = EIO};
    const int fd = open("/dev/zero", O_RDONLY);
    char byte;

    CHECK(cio_fault_add(&fault));
    CHECK_EQ(cio_sys->read(fd, &byte, 1), 1);
    CHECK_EQ(cio_sys->read(fd, &byte, 1), -1);
    CHECK_EQ(errno, EIO);
    CHECK_EQ(cio_sys->read(fd, &byte, 1), -1);
    CHECK_EQ(cio_sys->read(fd, &byte, 1), 1);
    CHECK_EQ(cio_fault_calls(CIO_CALL_read), 4U);
    cio_fault_clear();
    CHECK_EQ(cio_fault_calls(CIO_CALL_read), 0U);
    CHECK_EQ(cio_sys->close(fd), 0);
}

CIO_TEST(a_short_call_moves_no_more_than_it_may)
{
    const struct cio_fault brief = {
        .call = CIO_CALL_read, .first = 1, .times = 1, .max_nbytes = 3};
    const struct cio_fault none = {
        .call = CIO_CALL_read, .first = 2, .times = 1, .max_nbytes = 0};
    const int fd = open("/dev/zero", O_RDONLY);
    char bytes[8];

    CHECK(cio_fault_add(&brief));
    CHECK(cio_fault_add(&none));
    CHECK_EQ(cio_sys->read(fd, bytes, sizeof bytes), 3);
    CHECK_EQ(cio_sys->read(fd, bytes, sizeof bytes), 0);
    CHECK_EQ(cio_sys->read(fd, bytes, sizeof bytes), 8);
    cio_fault_clear();
    CHECK_EQ(cio_sys->close(fd), 0);
}

CIO_TEST(a_short_writev_ends_inside_the_list)
{
    const struct cio_fault fault = {
        .call = CIO_CALL_writev, .first = 1, .times = 1, .max_nbytes = 5};
    char first[] = "abc", second[] = "defg", got[8] = {0};
    const struct iovec list[] = {{first, 3}, {second, 4}};
    int fds[2];

    CHECK_EQ(cio_sys->pipe(fds), 0);
    CHECK(cio_fault_add(&fault));
    CHECK_EQ(cio_sys->writev(fds[1], list, 2), 5);
    cio_fault_clear();
    CHECK_EQ(cio_sys->read(fds[0], got, sizeof got), 5);
    CHECK_STR(got, "abcde");
    (void)cio_sys->close(fds[0]);
    (void)cio_sys->close(fds[1]);
}

CIO_TEST(a_failing_close_closes_all_the_same)
{
    const struct cio_fault fault = {
        .call = CIO_CALL_close, .first = 1, .times = 1, .error = EIO};
    const int fd = open("/dev/null", O_RDONLY);

    CHECK(cio_fault_add(&fault));
    CHECK_EQ(cio_sys->close(fd), -1);
    CHECK_EQ(errno, EIO);
    cio_fault_clear();
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
}

CIO_TEST(every_call_has_a_name_that_finds_it)
{
    for (int call = 0; call < CIO_CALL_COUNT; call++) {
        CHECK_EQ(cio_call_of_name(cio_call_name((enum cio_call)call)), call);
    }
    CHECK_EQ(cio_call_of_name("no such call"), -1);
}

CIO_TEST(opened_descriptors_are_close_on_exec)
{
    int fds[2];
    const int fd = cio_sys->openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);

    CHECK_EQ(cio_sys->pipe(fds), 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
    (void)cio_sys->close(fd);
    (void)cio_sys->close(fds[0]);
    (void)cio_sys->close(fds[1]);
}

/* ----------------------------------------------------------------- pool */

CIO_TEST(a_given_buffer_is_taken_again)
{
    struct cio_pool_stats stats;
    struct cio_buffer *first, *second;

    first = cio_buffer_take(60000);
    CHECK(first != NULL);
    CHECK_EQ(first->nbytes, 64 * CIO_KIB);
    CHECK_EQ((uintptr_t)first->data % 64, 0U);
    memset(first->data, 1, first->nbytes);
    cio_buffer_give(first);
    second = cio_buffer_take(64 * CIO_KIB);
    CHECK(first == second);
    cio_pool_stats(&stats);
    CHECK_EQ(stats.hits, 1U);
    CHECK_EQ(stats.misses, 1U);
    CHECK_GE(stats.in_use, 64 * CIO_KIB);
    CHECK_EQ(stats.held, 0U);
    cio_buffer_give(second);
    CHECK_GE(cio_pool_trim(0), 64 * CIO_KIB);
    cio_pool_stats(&stats);
    CHECK_EQ(stats.held, 0U);
    CHECK_EQ(stats.in_use, 0U);
}

CIO_TEST(buffers_come_in_the_smallest_size_that_holds)
{
    const size_t wants[] = {0, 4096, 4097, 16385, 65537, 10 * CIO_MIB};
    const size_t sizes[] = {4096, 4096, 16384, 65536, 262144, 262144};

    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct cio_buffer *buffer = cio_buffer_take(wants[i]);

        CHECK_EQ(buffer->nbytes, sizes[i]);
        cio_buffer_give(buffer);
    }
    (void)cio_pool_trim(0);
}

CIO_TEST(what_is_held_never_passes_the_limit)
{
    struct cio_buffer *buffers[8];
    struct cio_pool_stats stats;

    cio_pool_set_limit(3 * (256 * CIO_KIB + 512));
    for (int i = 0; i < 8; i++) {
        buffers[i] = cio_buffer_take(256 * CIO_KIB);
    }
    for (int i = 0; i < 8; i++) {
        cio_buffer_give(buffers[i]);
    }
    cio_pool_stats(&stats);
    CHECK_LE(stats.held, stats.limit);
    CHECK_EQ(stats.discarded, 5U);
    CHECK_GE(stats.high_water, 8 * 256 * CIO_KIB);
    cio_pool_set_limit(0);
    cio_pool_stats(&stats);
    CHECK_EQ(stats.held, 0U);
    cio_buffer_give(cio_buffer_take(1));
    cio_pool_stats(&stats);
    CHECK_EQ(stats.held, 0U);
}

CIO_TEST(a_miss_without_memory_says_so)
{
    const struct cio_fault fault = {
        .call = CIO_CALL_malloc, .first = 1, .times = 1, .error = ENOMEM};
    struct cio_pool_stats stats;

    CHECK(cio_fault_add(&fault));
    CHECK(cio_buffer_take(4096) == NULL);
    cio_fault_clear();
    cio_pool_stats(&stats);
    CHECK_EQ(stats.in_use, 0U);
    cio_buffer_give(NULL);
}

CIO_TEST(an_abandoned_buffer_is_the_keepers_and_not_counted)
{
    struct cio_pool_stats stats;
    struct cio_buffer *buffer = cio_buffer_take(4096);

    cio_buffer_abandon(buffer);
    cio_buffer_abandon(NULL);
    buffer->data[0] = 1; /* still there for who kept it */
    cio_pool_stats(&stats);
    CHECK_EQ(stats.in_use, 0U);
    CHECK_EQ(stats.held, 0U);
    cio_free(buffer);
}

static void *
take_and_give(void *argument)
{
    const size_t want = *(const size_t *)argument;

    for (int i = 0; i < 20000; i++) {
        struct cio_buffer *buffer = cio_buffer_take(want);

        buffer->data[0] = (uint8_t)i;
        buffer->data[buffer->nbytes - 1] = (uint8_t)i;
        CHECK_EQ(buffer->data[0], (uint8_t)i);
        cio_buffer_give(buffer);
    }
    return NULL;
}

CIO_TEST(threads_never_share_a_piece)
{
    pthread_t threads[8];
    const size_t wants[] = {4096, 65536};
    struct cio_pool_stats stats;

    for (int i = 0; i < 8; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, take_and_give,
                                (void *)(uintptr_t)&wants[i % 2]),
                 0);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    cio_pool_stats(&stats);
    CHECK_EQ(stats.in_use, 0U);
    CHECK_EQ(stats.hits + stats.misses, 160000U);
    (void)cio_pool_trim(0);
}

/* -------------------------------------------------------------- workers */

struct count_job {
    struct cio_job job;
    atomic_uint next;
    unsigned pieces;
    atomic_uint done;
    unsigned sleep_us;
};

static bool
count_step(struct cio_job *job)
{
    struct count_job *count = (struct count_job *)job;

    if (atomic_fetch_add(&count->next, 1) >= count->pieces) {
        return false;
    }
    if (count->sleep_us != 0) {
        (void)usleep(count->sleep_us);
    }
    atomic_fetch_add(&count->done, 1);
    return true;
}

static void
run_to_its_end(struct count_job *count, unsigned threads)
{
    cio_job_start(&count->job, threads);
    while (count_step(&count->job)) {
    }
    while (!cio_job_join(&count->job, 10)) {
    }
}

CIO_TEST(every_piece_is_done_once)
{
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct count_job count = {.job.step = count_step, .pieces = 10000};

        run_to_its_end(&count, threads);
        CHECK_EQ(atomic_load(&count.done), 10000U);
    }
    CHECK_GE(cio_workers_running(), 1U);
    cio_workers_stop();
    CHECK_EQ(cio_workers_running(), 0U);
}

CIO_TEST(workers_that_are_closed_leave_their_jobs)
{
    struct count_job count = {
        .job.step = count_step, .pieces = 100000, .sleep_us = 1000};
    uint64_t done;

    cio_job_start(&count.job, 4);
    while (atomic_load(&count.done) < 10) {
        (void)usleep(100);
    }
    cio_workers_close(); /* long before the last piece */
    CHECK_EQ(cio_workers_running(), 0U);
    done = atomic_load(&count.done);
    CHECK(done < count.pieces);
    CHECK(cio_job_join(&count.job, 10));
    CHECK_EQ(atomic_load(&count.done), done);
    count = (struct count_job){.job.step = count_step, .pieces = 1000};
    run_to_its_end(&count, 4); /* by the caller alone */
    CHECK_EQ(atomic_load(&count.done), 1000U);
    CHECK_EQ(cio_workers_running(), 0U);
}

CIO_TEST(many_jobs_dont_make_threads_without_end)
{
    enum { JOBS = 40 };
    static struct count_job jobs[JOBS];

    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct count_job){
            .job.step = count_step, .pieces = 100000, .sleep_us = 5000};
        cio_job_start(&jobs[i].job, 8);
        CHECK(cio_workers_running() <= CIO_THREADS_MAX);
    }
    for (size_t i = 0; i < JOBS; i++) {
        cio_job_cancel(&jobs[i].job);
        while (!cio_job_join(&jobs[i].job, 10)) {
        }
    }
}

CIO_TEST(one_thread_means_that_none_is_started)
{
    struct count_job count = {.job.step = count_step, .pieces = 10};

    run_to_its_end(&count, 1);
    CHECK_EQ(cio_workers_running(), 0U);
    cio_workers_set_cap(1);
    CHECK_EQ(cio_workers_count(0), 1U);
    CHECK_EQ(cio_workers_count(8), 1U);
    atomic_store(&count.next, 0);
    run_to_its_end(&count, 8);
    CHECK_EQ(cio_workers_running(), 0U);
}

CIO_TEST(without_threads_the_caller_does_it_all)
{
    const struct cio_fault fault = {.call = CIO_CALL_thread_start,
                                    .first = 1,
                                    .times = 100,
                                    .error = EAGAIN};
    struct count_job count = {.job.step = count_step, .pieces = 100};

    CHECK(cio_fault_add(&fault));
    run_to_its_end(&count, 4);
    cio_fault_clear();
    CHECK_EQ(atomic_load(&count.done), 100U);
}

CIO_TEST(a_cancelled_job_takes_no_more_steps)
{
    struct count_job count = {
        .job.step = count_step, .pieces = 1000000, .sleep_us = 1000};
    unsigned done;

    cio_job_start(&count.job, 2);
    (void)usleep(20000);
    cio_job_cancel(&count.job);
    while (!cio_job_join(&count.job, 10)) {
    }
    done = atomic_load(&count.done);
    (void)usleep(20000);
    CHECK_EQ(atomic_load(&count.done), done);
    cio_workers_stop();
}

CIO_TEST(join_comes_back_while_a_worker_is_busy)
{
    struct count_job count = {
        .job.step = count_step, .pieces = 1, .sleep_us = 200000};

    cio_job_start(&count.job, 2);
    (void)usleep(50000); /* the worker has the only piece */
    CHECK(!cio_job_join(&count.job, 1));
    while (!cio_job_join(&count.job, 50)) {
    }
    CHECK_EQ(atomic_load(&count.done), 1U);
    cio_workers_stop();
}

struct supply_job {
    struct cio_job job;
    atomic_uint left, done;
};

static bool
supply_step(struct cio_job *job)
{
    struct supply_job *supply = (struct supply_job *)job;
    unsigned left = atomic_load(&supply->left);

    do {
        if (left == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&supply->left, &left, left - 1));
    atomic_fetch_add(&supply->done, 1);
    return true;
}

CIO_TEST(a_job_that_is_offered_more_pieces_gets_them_all_done)
{
    struct supply_job supply = {.job.step = supply_step};
    unsigned pieces = 0;

    /* The caller does none: a worker that saw nothing left must look again. */
    for (unsigned round = 0; round < 2000; round++) {
        unsigned waited = 0;

        pieces += 1 + round % 3;
        atomic_fetch_add(&supply.left, 1 + round % 3);
        cio_job_offer(&supply.job, 2 + round % 3);
        while (atomic_load(&supply.done) < pieces && waited < 3000000) {
            waited += 10;
            (void)usleep(round % 2 == 0 ? 0 : 10);
        }
        CHECK_EQ(atomic_load(&supply.done), pieces);
        if (round % 100 == 99) { /* it goes on after an end, too */
            cio_job_cancel(&supply.job);
            while (!cio_job_join(&supply.job, 10)) {
            }
        }
    }
    while (!cio_job_join(&supply.job, 10)) {
    }
    cio_workers_stop();
}

/* ------------------------------------------------------------ prefault */

CIO_TEST(memory_made_ready_keeps_what_its_owner_writes_meanwhile)
{
    const size_t nbytes = 2 * CIO_HUGE_PAGES_NBYTES + 12345;
    uint8_t *const p = cio_sys->malloc(nbytes);
    struct cio_prefault ready;
    size_t wrong = 0;

    CHECK(p != NULL);
    cio_prefault_start(&ready, p, nbytes, nbytes);
    for (size_t i = 0; i < nbytes; i++) {
        p[i] = (uint8_t)(i * 7);
    }
    cio_prefault_stop(&ready);
    for (size_t i = 0; i < nbytes; i++) {
        wrong += p[i] != (uint8_t)(i * 7);
    }
    CHECK_EQ(wrong, 0);
    cio_free(p);
}

CIO_TEST(little_memory_is_left_alone_and_a_refusal_is_no_error)
{
    const size_t nbytes = 2 * CIO_HUGE_PAGES_NBYTES;
    uint8_t *const p = cio_sys->malloc(nbytes);
    struct cio_prefault ready;

    CHECK(p != NULL);
    cio_prefault_start(&ready, p, nbytes, CIO_HUGE_PAGES_NBYTES - 1);
    cio_prefault_stop(&ready);
    CHECK_EQ(cio_workers_running(), 0);

    CHECK(cio_fault_add(&(struct cio_fault){
        .call = CIO_CALL_madvise, .first = 1, .times = 99, .error = EINVAL}));
    cio_prefault_start(&ready, p, nbytes, nbytes);
    cio_prefault_stop(&ready);
    cio_fault_clear();
    cio_free(p);
}

/* ----------------------------------------------------------------- fork */

CIO_TEST(a_child_of_fork_starts_with_an_empty_pool_and_no_workers)
{
    struct count_job count = {.job.step = count_step, .pieces = 100};
    struct cio_buffer *held = cio_buffer_take(4096);
    pid_t child;
    int status;

    CHECK_EQ(cio_fork_init(), 0);
    run_to_its_end(&count, 2);
    cio_buffer_give(held);
    child = fork();
    if (child == 0) {
        struct cio_pool_stats stats;

        cio_pool_stats(&stats);
        if (stats.held != 0 || cio_workers_running() != 0
            || cio_fork_generation != 1) {
            _exit(1);
        }
        atomic_store(&count.next, 0);
        atomic_store(&count.done, 0);
        run_to_its_end(&count, 2);
        _exit(atomic_load(&count.done) == 100 ? 0 : 2);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(cio_fork_generation, 0U);
    (void)cio_pool_trim(0);
    cio_workers_stop();
}
