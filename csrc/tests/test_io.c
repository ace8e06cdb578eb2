/* SPDX-License-Identifier: MIT
 * test_io.c - descriptors, slices, parallel reads.
 */
#include "tests/io_help.h"

/* ----------------------------------------------------------- descriptors */

CIO_TEST(a_call_has_one_outcome)
{
    uint8_t buf[16];
    struct stat st;
    int fd = make_file("file", 10, O_RDWR), other;
    struct cio_done done = cio_fd_read(fd, buf, 16, CIO_OWN_OFFSET);

    CHECK_EQ(done.status, CIO_OK);
    CHECK_EQ(done.nbytes, 10);
    CHECK_EQ(cio_fd_read(fd, buf, 16, CIO_OWN_OFFSET).status, CIO_EOF);
    CHECK_EQ(cio_fd_read(fd, buf, 0, CIO_OWN_OFFSET).status, CIO_OK);
    done = cio_fd_read(fd, buf, 16, 4);
    CHECK_EQ(done.nbytes, 6);
    CHECK(is_content(buf, 4, 6));
    fault(CIO_CALL_read, EINTR, 0, 1, 1);
    fault(CIO_CALL_read, EIO, 0, 2, 1);
    CHECK_EQ(cio_fd_read(fd, buf, 16, CIO_OWN_OFFSET).status, CIO_MORE);
    done = cio_fd_read(fd, buf, 16, CIO_OWN_OFFSET);
    CHECK_EQ(done.status, CIO_ERR_SYS);
    CHECK_EQ(done.sys_errno, EIO);
    cio_fault_clear();
    fault(CIO_CALL_write, 0, 0, 1, 1);
    done = cio_fd_write(fd, buf, 16, CIO_OWN_OFFSET);
    CHECK_EQ(done.sys_errno, ENOSPC); /* nothing written is full, not more */
    cio_fault_clear();
    CHECK_EQ(
        cio_fd_open(path_of("missing"), O_RDONLY, 0, &other, &st).sys_errno,
        ENOENT);
    (void)close(fd);
}

CIO_TEST(a_failed_open_leaves_nothing_open)
{
    struct stat st;
    int fd = make_file("file", 10, O_RDONLY), opened;

    fault(CIO_CALL_fstat, EIO, 0, 1, 1);
    CHECK_EQ(cio_fd_open(path_of("file"), O_RDONLY, 0, &opened, &st).sys_errno,
             EIO);
    CHECK_EQ(opened, -1);
    CHECK_EQ(cio_fault_calls(CIO_CALL_close), 1);
    cio_fault_clear();
    (void)close(fd);
}

CIO_TEST(a_small_file_is_read_in_one_go)
{
    uint8_t buf[128];
    struct stat st;
    int fd, opened;

    (void)close(make_file("file", 100, O_RDONLY));
    cio_fault_count();
    CHECK_EQ(
        cio_fd_read_small(path_of("file"), buf, sizeof buf, &fd, &st).nbytes,
        100);
    CHECK_EQ(fd, -1);
    CHECK(is_content(buf, 0, 100));
    CHECK_EQ(cio_fault_calls(CIO_CALL_openat) + cio_fault_calls(CIO_CALL_fstat)
                 + cio_fault_calls(CIO_CALL_pread)
                 + cio_fault_calls(CIO_CALL_close),
             4);
    cio_fault_clear();
    /* No room for the byte that tells the end: left to the caller. */
    CHECK_EQ(cio_fd_read_small(path_of("file"), buf, 100, &fd, &st).nbytes, 0);
    CHECK_GE(fd, 0);
    (void)close(fd);
    /* It grew since it was asked: left to the caller, at its start. */
    fault(CIO_CALL_pread, 0, 99, 1, 1);
    CHECK_EQ(cio_fd_read_small(path_of("file"), buf, sizeof buf, &opened, &st)
                 .nbytes,
             0);
    CHECK_EQ(lseek(opened, 0, SEEK_CUR), 0);
    cio_fault_clear();
    (void)close(opened);
}

CIO_TEST(nowait_zero_is_no_end)
{
    uint8_t buf[16];
    bool refused = false;
    int fd = make_file("file", 10, O_RDONLY);

    CHECK_EQ(cio_fd_read_nowait(fd, buf, 16, 10, &refused).status, CIO_MORE);
    fault(CIO_CALL_pread_nowait, EAGAIN, 0, 1, 1);
    CHECK_EQ(cio_fd_read_nowait(fd, buf, 16, 0, &refused).status, CIO_MORE);
    fault(CIO_CALL_pread_nowait, EOPNOTSUPP, 0, 1, 1);
    CHECK_EQ(cio_fd_read_nowait(fd, buf, 16, 0, &refused).status, CIO_MORE);
    CHECK(refused);
    cio_fault_clear();
    (void)close(fd);
}

/* ---------------------------------------------------------------- slices */

CIO_TEST(no_step_moves_more_than_a_slice)
{
    const size_t size = CIO_SLICE_NBYTES * 2 + 5;
    int fd = make_file("file", size, O_RDONLY);
    uint8_t *buf = malloc(size + 10);
    struct cio_move move = {.fd = fd, .buf = buf, .left = size + 10};
    struct cio_done done;
    int steps = 0;

    do {
        done = cio_read_step(&move);
        CHECK_LE(done.nbytes, CIO_SLICE_NBYTES);
        steps++;
    } while (done.status == CIO_MORE);
    CHECK_EQ(done.status, CIO_EOF);
    CHECK_GE(steps, 4); /* more where the machine was slow */
    CHECK_EQ(move.left, 10);
    CHECK_EQ(move.off, size);
    CHECK(is_content(buf, 0, size));
    free(buf);
    (void)close(fd);
}

CIO_TEST(a_slow_slice_is_halved)
{
    size_t slice = 0;

    CHECK_EQ(cio_slice_next(&slice), CIO_SLICE_NBYTES);
    cio_slice_took(&slice, CIO_SLICE_MAX_NS);
    CHECK_EQ(cio_slice_next(&slice), CIO_SLICE_NBYTES);
    cio_slice_took(&slice, CIO_SLICE_MAX_NS + 1);
    CHECK_EQ(cio_slice_next(&slice), CIO_SLICE_NBYTES / 2);
    for (int i = 0; i < 40; i++) {
        cio_slice_took(&slice, CIO_SLICE_MAX_NS + 1);
    }
    CHECK_EQ(cio_slice_next(&slice), CIO_SLICE_MIN_NBYTES);
}

CIO_TEST(a_short_write_comes_back_for_signals)
{
    uint8_t data[100];
    int fd = make_file("file", 0, O_RDWR);
    struct cio_move move = {
        .fd = fd, .off = CIO_OWN_OFFSET, .buf = data, .left = 100};
    struct cio_done done;

    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = byte_at(i);
    }
    fault(CIO_CALL_write, 0, 30, 1, 1);
    fault(CIO_CALL_write, EINTR, 0, 2, 1);
    done = cio_write_step(&move);
    CHECK_EQ(done.status, CIO_MORE);
    CHECK_EQ(done.nbytes, 30);
    done = cio_write_step(&move);
    CHECK_EQ(done.status, CIO_MORE);
    CHECK_EQ(done.nbytes, 0);
    done = cio_write_step(&move);
    CHECK_EQ(done.status, CIO_OK);
    CHECK_EQ(done.nbytes, 70);
    cio_fault_clear();
    CHECK_EQ(pread(fd, data, 100, 0), 100);
    CHECK(is_content(data, 0, 100));
    (void)close(fd);
}

CIO_TEST(a_vector_goes_on_inside_a_buffer)
{
    uint8_t data[100], back[100];
    struct iovec list[] = {{data, 0},       {data, 10}, {data + 10, 0},
                           {data + 10, 50}, {data, 0},  {data + 60, 40},
                           {data, 0}};
    int fd = make_file("file", 0, O_RDWR);
    struct cio_vector vector = {.fd = fd, .list = list, .n = 7};
    struct cio_done done;
    uint64_t total = 0;

    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = byte_at(i);
    }
    for (unsigned k = 1; k <= 12; k++) {
        fault(CIO_CALL_writev, 0, k, k, 1);
    }
    do {
        done = cio_write_vector_step(&vector);
        total += done.nbytes;
    } while (done.status == CIO_MORE);
    CHECK_EQ(done.status, CIO_OK);
    CHECK_EQ(total, 100);
    cio_fault_clear();
    CHECK_EQ(pread(fd, back, 100, 0), 100);
    CHECK_MEM(back, data, 100);
    (void)close(fd);
}

CIO_TEST(a_vector_is_cut_to_a_slice)
{
    const size_t size = CIO_SLICE_NBYTES + 100;
    uint8_t *data = calloc(1, size);
    struct iovec list[] = {{data, 50}, {data, size}, {data, 50}};
    int fd = make_file("file", 0, O_RDWR);
    struct cio_vector vector = {.fd = fd, .list = list, .n = 3};
    struct cio_done done = cio_write_vector_step(&vector);

    CHECK_EQ(done.status, CIO_MORE);
    CHECK_EQ(done.nbytes, CIO_SLICE_NBYTES);
    done = cio_write_vector_step(&vector);
    CHECK_EQ(done.status, CIO_OK);
    CHECK_EQ(lseek(fd, 0, SEEK_END), size + 100);
    free(data);
    (void)close(fd);
}

/* -------------------------------------------------------------- parallel */

static struct cio_done
read_parallel(int fd, uint8_t *buf, uint64_t nbytes, unsigned threads)
{
    struct cio_parallel read;
    struct cio_done done;

    cio_parallel_begin(&read, fd, 0, buf, nbytes, threads);
    do {
        done = cio_parallel_step(&read);
    } while (done.status == CIO_MORE);
    do {
        done = cio_parallel_end(&read);
    } while (done.status == CIO_MORE);
    return done;
}

CIO_TEST(threads_read_what_one_would)
{
    const size_t size = CIO_PIECE_NBYTES * 5 + 77;
    int fd = make_file("file", size, O_RDONLY);

    for (unsigned threads = 1; threads <= 4; threads++) {
        uint8_t *buf = calloc(1, size + 1);
        struct cio_done done = read_parallel(fd, buf, size, threads);

        CHECK_EQ(done.status, CIO_OK);
        CHECK_EQ(done.nbytes, size);
        CHECK(is_content(buf, 0, size));
        done = read_parallel(fd, buf, size + 1, threads);
        CHECK_EQ(done.status, CIO_EOF);
        CHECK_EQ(done.nbytes, size);
        free(buf);
    }
    (void)close(fd);
}

CIO_TEST(the_first_gap_is_the_outcome)
{
    const size_t size = CIO_PIECE_NBYTES * 4;
    int fd = make_file("file", size, O_RDONLY);
    uint8_t *buf = calloc(1, size);
    struct cio_done done;

    /* Alone, pieces come in order: the third call fails. */
    fault(CIO_CALL_pread, EIO, 0, 3, 1);
    done = read_parallel(fd, buf, size, 1);
    CHECK_EQ(done.status, CIO_ERR_SYS);
    CHECK_EQ(done.sys_errno, EIO);
    CHECK_EQ(done.nbytes, CIO_PIECE_NBYTES * 2);
    cio_fault_clear();
    /* Cut short and interrupted, a piece is gone on with. */
    fault(CIO_CALL_pread, 0, 1000, 1, 2);
    fault(CIO_CALL_pread, EINTR, 0, 4, 2);
    done = read_parallel(fd, buf, size, 2);
    CHECK_EQ(done.status, CIO_OK);
    CHECK(is_content(buf, 0, size));
    cio_fault_clear();
    /* No thread can be started: the caller does it all. */
    fault(CIO_CALL_thread_start, EAGAIN, 0, 1, 100);
    done = read_parallel(fd, buf, size, 4);
    CHECK_EQ(done.nbytes, size);
    cio_fault_clear();
    free(buf);
    (void)close(fd);
}

CIO_TEST(a_cancelled_read_says_what_came_in_a_row)
{
    const size_t size = CIO_PIECE_NBYTES * 16;
    int fd = make_file("file", size, O_RDONLY);
    uint8_t *buf = calloc(1, size);
    struct cio_parallel read;
    struct cio_done done;

    cio_parallel_begin(&read, fd, 0, buf, size, 2);
    CHECK_EQ(cio_parallel_step(&read).status, CIO_MORE);
    cio_parallel_cancel(&read);
    do {
        done = cio_parallel_end(&read);
    } while (done.status == CIO_MORE);
    CHECK_EQ(done.status, CIO_OK);
    CHECK_GE(done.nbytes, CIO_PIECE_NBYTES);
    CHECK(is_content(buf, 0, (size_t)done.nbytes));
    free(buf);
    (void)close(fd);
}
