/* SPDX-License-Identifier: MIT
 * test_io_file.c - the chunk, a file's position, the atomic file.
 */
#include "tests/io_help.h"

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
        CIO_CALL_malloc, CIO_CALL_readlinkat, CIO_CALL_fstatat,
        CIO_CALL_openat, CIO_CALL_getrandom,  CIO_CALL_fchmod,
        CIO_CALL_fstat,  CIO_CALL_write,      CIO_CALL_fsync,
        CIO_CALL_close,  CIO_CALL_renameat};

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
