/* SPDX-License-Identifier: MIT
 * test_io.c - descriptors, slices, parallel reads, the chunk and a file's
 * position, the atomic file.
 *
 * Length   One folder of the core, one file of tests, one set of helpers.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cio_limits.h"
#include "base/cio_pool.h"
#include "base/cio_sys.h"
#include "io/cio_atomic.h"
#include "io/cio_chunk.h"
#include "io/cio_fd.h"
#include "io/cio_file.h"
#include "io/cio_move.h"
#include "io/cio_parallel.h"
#include "tests/test.h"

/* Byte i of every test file. */
static uint8_t
byte_at(uint64_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

static bool
is_content(const uint8_t *p, uint64_t off, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++) {
        if (p[i] != byte_at(off + i)) {
            return false;
        }
    }
    return true;
}

static const char *
path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *result = path[next++ % 4];

    (void)snprintf(result, 512, "%s/%s", cio_test_folder(), name);
    return result;
}

static int
make_file(const char *name, size_t nbytes, int flags)
{
    const char *const path = path_of(name);
    uint8_t *data = malloc(nbytes + 1);
    FILE *file = fopen(path, "wb");
    int fd;

    CHECK(data != NULL && file != NULL);
    for (size_t i = 0; i < nbytes; i++) {
        data[i] = byte_at(i);
    }
    CHECK_EQ(fwrite(data, 1, nbytes, file), nbytes);
    CHECK_EQ(fclose(file), 0);
    free(data);
    fd = open(path, flags | O_CLOEXEC);
    CHECK_GE(fd, 0);
    return fd;
}

static void
fault(enum cio_call call, int error, size_t max_nbytes, unsigned first,
      unsigned times)
{
    const struct cio_fault f = {call, first, times, error, max_nbytes};

    CHECK(cio_fault_add(&f));
}

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

/* ----------------------------------------------------------------- chunk */

CIO_TEST(a_chunk_is_pooled_and_given_back_when_empty)
{
    struct cio_pool_stats before, after;
    struct cio_chunk chunk = {0};

    cio_pool_stats(&before);
    CHECK(cio_chunk_take(&chunk, 1000));
    CHECK_EQ(chunk.capacity, 1000);
    chunk.end = 10;
    cio_chunk_used(&chunk, 4);
    CHECK_EQ(cio_chunk_held(&chunk), 6);
    cio_chunk_used(&chunk, 6);
    CHECK(chunk.data == NULL);
    cio_pool_stats(&after);
    CHECK_EQ(after.in_use, before.in_use);
    CHECK(cio_chunk_take(&chunk, CIO_CHUNK_NBYTES + 1)); /* its own */
    CHECK(chunk.pooled == NULL);
    memset(chunk.data, 1, CIO_CHUNK_NBYTES + 1);
    cio_chunk_give(&chunk);
    fault(CIO_CALL_malloc, ENOMEM, 0, 1, 9);
    CHECK(!cio_chunk_take(&chunk, CIO_CHUNK_NBYTES + 1));
    cio_chunk_give(&chunk); /* fine after a failure */
}

/* ------------------------------------------------------------------ file */

static struct cio_file
file_of(int fd, bool positional, size_t size, size_t chunk)
{
    return (struct cio_file){
        .fd = fd,
        .seekable = true,
        .cached = true,
        .off = positional ? 0 : CIO_OWN_OFFSET,
        .size_seen = (int64_t)size,
        .chunk_nbytes = chunk,
    };
}

static int64_t
tell(const struct cio_file *file)
{
    int64_t pos = -1;

    CHECK_EQ(cio_file_tell(file, &pos).status, CIO_OK);
    return pos;
}

static void
check_reader(bool positional)
{
    int fd = make_file("file", 1000, O_RDONLY);
    struct cio_file file = file_of(fd, positional, 1000, 64);
    uint8_t buf[1000];
    int64_t pos;

    CHECK_EQ(cio_file_fill(&file).status, CIO_OK);
    CHECK_EQ(cio_file_ahead(&file), 64);
    CHECK_EQ(tell(&file), 0);
    CHECK_EQ(cio_file_take(&file, buf, 10), 10);
    CHECK_EQ(tell(&file), 10);
    CHECK_EQ(cio_file_seek(&file, 5, SEEK_SET, &pos).status, CIO_OK);
    CHECK_EQ(cio_file_ahead(&file), 59); /* moved inside */
    CHECK_EQ(cio_file_seek(&file, 20, SEEK_CUR, &pos).status, CIO_OK);
    CHECK_EQ(pos, 25);
    CHECK_EQ(cio_file_take(&file, buf, 100), 39);
    CHECK(is_content(buf, 25, 39));
    CHECK(file.chunk.data == NULL);
    CHECK_EQ(cio_file_read(&file, buf, 100).nbytes, 100);
    CHECK_EQ(tell(&file), 164);
    CHECK(cio_file_unread(&file, 50));
    CHECK_EQ(tell(&file), 114);
    CHECK_EQ(cio_file_fill(&file).status, CIO_OK);
    CHECK_EQ(cio_file_drop_ahead(&file).status, CIO_OK);
    CHECK_EQ(tell(&file), 114);
    CHECK_EQ(cio_file_seek(&file, -10, SEEK_END, &pos).status, CIO_OK);
    CHECK_EQ(pos, 990);
    CHECK_EQ(cio_file_fill(&file).status, CIO_OK);
    CHECK_EQ(cio_file_take(&file, buf, 100), 10);
    CHECK(is_content(buf, 990, 10));
    CHECK_EQ(cio_file_fill(&file).status, CIO_EOF);
    CHECK(file.chunk.data == NULL);
    CHECK_EQ(cio_file_seek(&file, -1, SEEK_SET, &pos).sys_errno, EINVAL);
    CHECK_EQ(cio_file_seek(&file, INT64_MAX, SEEK_CUR, &pos).status,
             CIO_ERR_SYS);
    CHECK_EQ(tell(&file), 1000);
    CHECK_EQ(cio_file_seek(&file, 7, SEEK_SET, &pos).status, CIO_OK);
    CHECK_EQ(cio_file_fill(&file).status, CIO_OK);
    CHECK_EQ(cio_file_drop_ahead(&file).status, CIO_OK);
    CHECK_EQ(cio_file_expose(&file).status, CIO_OK);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7);
    (void)close(fd);
}

CIO_TEST(a_reader_by_position)
{
    check_reader(true);
}

CIO_TEST(a_reader_by_the_descriptors_offset)
{
    check_reader(false);
}

CIO_TEST(the_end_is_known_by_the_size)
{
    int fd = make_file("file", 100, O_RDONLY);
    struct cio_file file = file_of(fd, true, 100, 64);
    uint8_t buf[200];
    struct cio_file_move move = {.file = &file, .buf = buf, .left = 200};
    struct cio_done done = cio_file_read_step(&move);

    CHECK_EQ(done.status, CIO_EOF);
    CHECK_EQ(done.nbytes, 100);
    CHECK_EQ(cio_file_rest_seen(&file), 0);
    /* A short read that isn't at the size seen is no end. */
    file.off = 0;
    fault(CIO_CALL_pread, 0, 40, 1, 1);
    move = (struct cio_file_move){.file = &file, .buf = buf, .left = 200};
    CHECK_EQ(cio_file_read_step(&move).status, CIO_MORE);
    CHECK_EQ(cio_file_rest_seen(&file), 60);
    CHECK_EQ(cio_file_rest_now(&file), 60);
    cio_fault_clear();
    (void)close(fd);
}

CIO_TEST(a_file_that_cannot_seek_is_read_as_it_comes)
{
    /* As regular files of /proc that refuse a position. */
    int fd = make_file("file", 100, O_RDONLY);
    struct cio_file file = file_of(fd, true, 0, 64);
    uint8_t buf[200];

    fault(CIO_CALL_pread, ESPIPE, 0, 1, 9);
    CHECK_EQ(cio_file_read(&file, buf, 60).nbytes, 60);
    CHECK_EQ(file.off, CIO_OWN_OFFSET);
    CHECK_EQ(cio_file_read(&file, buf, 60).nbytes, 40);
    CHECK(!cio_file_unread(&file, 40));
    cio_fault_clear();
    (void)close(fd);
}

CIO_TEST(pending_bytes_survive_a_failed_flush)
{
    int fd = make_file("file", 0, O_RDWR);
    struct cio_file file = file_of(fd, false, 0, 64);
    uint8_t data[60], back[60];
    struct cio_done done;

    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = byte_at(i);
    }
    CHECK_EQ(cio_file_room(&file), 64);
    cio_file_put(&file, data, 60);
    CHECK_EQ(tell(&file), 60);
    fault(CIO_CALL_write, 0, 20, 1, 1);
    fault(CIO_CALL_write, ENOSPC, 0, 2, 1);
    done = cio_file_flush(&file);
    CHECK_EQ(done.status, CIO_MORE);
    CHECK_EQ(done.nbytes, 20);
    CHECK_EQ(cio_file_flush(&file).sys_errno, ENOSPC);
    CHECK_EQ(cio_file_pending(&file), 40);
    CHECK_EQ(tell(&file), 60);
    cio_fault_clear();
    CHECK_EQ(cio_file_flush(&file).status, CIO_OK);
    CHECK(!file.dirty && file.chunk.data == NULL);
    CHECK_EQ(cio_file_flush(&file).status, CIO_OK); /* nothing to do */
    CHECK_EQ(pread(fd, back, 60, 0), 60);
    CHECK_MEM(back, data, 60);
    (void)close(fd);
}

CIO_TEST(lent_bytes_are_written_or_owned)
{
    int fd = make_file("file", 0, O_RDWR);
    struct cio_file file = file_of(fd, false, 0, 64);
    uint8_t lent[40], back[60];

    for (size_t i = 0; i < sizeof lent; i++) {
        lent[i] = byte_at(i);
    }
    cio_file_adopt(&file, lent, 40);
    CHECK_EQ(cio_file_pending(&file), 40);
    CHECK_EQ(tell(&file), 40);
    CHECK_EQ(cio_file_room(&file), 0);
    fault(CIO_CALL_write, 0, 10, 1, 1);
    CHECK_EQ(cio_file_flush(&file).nbytes, 10);
    cio_fault_clear();
    CHECK(cio_file_own(&file));
    CHECK_EQ(cio_file_pending(&file), 30);
    CHECK_EQ(cio_file_room(&file), 34);
    memset(lent, 0xee, 20); /* no longer looked at */
    cio_file_put(&file, lent, 20);
    CHECK(cio_file_own(&file));
    CHECK_EQ(cio_file_flush(&file).status, CIO_OK);
    CHECK_EQ(pread(fd, back, 60, 0), 60);
    CHECK(is_content(back, 0, 40));
    CHECK_EQ(back[59], 0xee);
    (void)close(fd);
}

CIO_TEST(adopted_bytes_come_first)
{
    int pipes[2];
    uint8_t kept[4] = "kept", buf[10];
    struct cio_file file = {.off = CIO_OWN_OFFSET, .chunk_nbytes = 64};

    CHECK_EQ(pipe(pipes), 0);
    file.fd = pipes[0];
    CHECK_EQ(write(pipes[1], " more", 5), 5);
    cio_chunk_adopt(&file.chunk, kept, 4);
    CHECK_EQ(cio_file_drop_ahead(&file).status, CIO_OK); /* no place to go */
    CHECK_EQ(cio_file_take(&file, buf, 10), 4);
    CHECK(file.chunk.data == NULL);
    CHECK_EQ(cio_file_fill(&file).status, CIO_OK);
    CHECK_EQ(cio_file_take(&file, buf + 4, 6), 5);
    CHECK_MEM(buf, "kept more", 9);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* ---------------------------------------------------------------- atomic */

static void
check_whole(const char *name, const char *text)
{
    char buf[32] = "";
    const int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);

    CHECK_GE(fd, 0);
    CHECK_GE(read(fd, buf, sizeof buf - 1), 0);
    CHECK_STR(buf, text);
    (void)close(fd);
}

static struct cio_done
replace(const char *name, const char *text, bool sync)
{
    struct cio_atomic atomic;
    struct cio_done done = cio_atomic_begin(&atomic, path_of(name));

    if (done.status == CIO_OK) {
        done = cio_fd_write(atomic.fd, text, strlen(text), CIO_OWN_OFFSET);
        if (done.status != CIO_OK) {
            cio_atomic_abort(&atomic);
        } else {
            done = cio_atomic_commit(&atomic, sync);
        }
    }
    CHECK(atomic.fd == -1 && atomic.temporary == NULL);
    CHECK(atomic.target == NULL);
    return done;
}

CIO_TEST(an_atomic_file_is_whole_whatever_fails)
{
    static const enum cio_call calls[] = {
        CIO_CALL_malloc,  CIO_CALL_readlinkat, CIO_CALL_fstatat,
        CIO_CALL_openat,  CIO_CALL_getrandom,  CIO_CALL_fchmod,
        CIO_CALL_write,   CIO_CALL_fsync,      CIO_CALL_close,
        CIO_CALL_renameat};

    CHECK_EQ(replace("file", "first", true).status, CIO_OK);
    check_whole("file", "first");
    CHECK_EQ(chmod(path_of("file"), 0640), 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct cio_done done;

        fault(calls[i], EIO, 0, 1, 1);
        done = replace("file", "second", true);
        cio_fault_clear();
        CHECK_NE(done.status, CIO_OK);
        check_whole("file", "first");
    }
    CHECK_EQ(symlink("file", path_of("link")), 0);
    CHECK_EQ(replace("link", "third", false).status, CIO_OK);
    check_whole("file", "third");
}

CIO_TEST(an_atomic_file_replaces_only_files)
{
    CHECK_EQ(mkdir(path_of("folder"), 0700), 0);
    CHECK_EQ(replace("folder", "x", false).sys_errno, EISDIR);
    CHECK_EQ(mkfifo(path_of("fifo"), 0600), 0);
    CHECK_EQ(replace("fifo", "x", false).sys_errno, EINVAL);
    CHECK_EQ(symlink("loop", path_of("loop")), 0);
    CHECK_EQ(replace("loop", "x", false).sys_errno, ELOOP);
    CHECK_EQ(symlink("new", path_of("dangling")), 0);
    CHECK_EQ(replace("dangling", "made", false).status, CIO_OK);
    check_whole("new", "made");
}
