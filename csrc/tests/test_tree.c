/* SPDX-License-Identifier: MIT
 * test_tree.c - what is written stays in the folder, whole or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "tests/test.h"
#include "zip/cio_tree.h"

static int
target(void)
{
    CHECK_EQ(chdir(cio_test_folder()), 0);
    CHECK_EQ(mkdir("in", 0777), 0);
    CHECK_EQ(mkdir("out", 0777), 0);
    return open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void
check_text(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *f = fopen(path, "r");

    CHECK(f != NULL);
    if (f != NULL) {
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        CHECK_STR(text, expected);
    }
}

static struct cio_done
put(struct cio_tree *tree, const char *path, const char *text,
    const struct cio_attributes *attributes)
{
    struct cio_sink sink;
    struct cio_done done;

    done = cio_sink_open(&sink, tree, path, strlen(path));
    if (done.status == CIO_OK) {
        done = cio_sink_write(&sink, text, strlen(text));
        if (done.status == CIO_OK) {
            return cio_sink_finish(&sink, attributes);
        }
    }
    cio_sink_drop(&sink);
    return done;
}

static int
count_entries(const char *path)
{
    char command[128], text[32] = "";
    FILE *f;

    (void)snprintf(command, sizeof command, "ls -A %s | wc -l", path);
    f = popen(command, "r");
    CHECK(f != NULL && fgets(text, sizeof text, f) != NULL);
    pclose(f);
    return atoi(text);
}

CIO_TEST(tree_makes_folders_and_files_in_more_places_than_it_keeps_open)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    char path[64];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3 * CIO_TREE_FOLDERS; i++) {
            (void)snprintf(path, sizeof path, "d%d/e/f%d/t%d", i, i, round);
            CHECK_EQ(put(tree, path, path, NULL).status, CIO_OK);
        }
    }
    CHECK_EQ(put(tree, "top", "1", NULL).status, CIO_OK);
    CHECK_EQ(cio_tree_make_folder(tree, "", 0).status, CIO_OK);
    CHECK_EQ(cio_tree_make_folder(tree, "x/y", 3).status, CIO_OK);
    check_text("in/d7/e/f7/t1", "d7/e/f7/t1");
    check_text("in/top", "1");
    CHECK_EQ(access("in/x/y", F_OK), 0);
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_follows_no_link)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    struct cio_done done;

    CHECK_EQ(symlink("../out", "in/a"), 0);
    CHECK_EQ(mkdir("in/d", 0777), 0);
    CHECK_EQ(symlink("../../out", "in/d/a"), 0);
    put_text("in/plain", "");
    put_text("out/kept", "kept");
    CHECK_EQ(symlink("../out/kept", "in/last"), 0);

    done = put(tree, "a/x", "1", NULL);
    CHECK_EQ(done.status, CIO_ERR_SYS);
    CHECK_EQ(done.sys_errno, ELOOP);
    CHECK_EQ(put(tree, "d/a/b/x", "1", NULL).sys_errno, ELOOP);
    CHECK_EQ(cio_tree_make_folder(tree, "a", 1).sys_errno, ELOOP);
    CHECK_EQ(put(tree, "plain/x", "1", NULL).sys_errno, ENOTDIR);
    CHECK_EQ(put(tree, "d", "1", NULL).sys_errno, EISDIR);
    /* The last name is no way: the link itself is replaced. */
    CHECK_EQ(put(tree, "last", "new", NULL).status, CIO_OK);
    check_text("in/last", "new");
    check_text("out/kept", "kept");
    CHECK_EQ(count_entries("out"), 1);
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_replaces_a_file_only_by_a_whole_one)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    const struct cio_fault full = {CIO_CALL_write, 1, 1, ENOSPC, 0};
    const struct cio_fault late = {CIO_CALL_close, 1, 1, EIO, 0};
    struct stat st;

    put_text("in/t", "old");
    CHECK_EQ(chmod("in/t", 0640), 0);
    cio_fault_add(&full);
    CHECK_EQ(put(tree, "t", "new", NULL).sys_errno, ENOSPC);
    cio_fault_add(&late);
    CHECK_EQ(put(tree, "t", "new", NULL).sys_errno, EIO);
    CHECK_EQ(put(tree, "t2", "new", NULL).status, CIO_OK);
    cio_fault_clear();
    check_text("in/t", "old");
    CHECK_EQ(count_entries("in"), 2);
    CHECK_EQ(put(tree, "t", "new", NULL).status, CIO_OK);
    check_text("in/t", "new");
    CHECK_EQ(stat("in/t", &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0640);
    CHECK_EQ(count_entries("in"), 2);
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_gives_attributes_without_special_bits)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    const struct cio_attributes attributes = {true, true, 06751, 1000000000};
    struct stat st;

    CHECK_EQ(put(tree, "d/t", "1", &attributes).status, CIO_OK);
    CHECK_EQ(cio_tree_set_folder(tree, "d", 1, &attributes).status, CIO_OK);
    CHECK_EQ(stat("in/d/t", &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0751);
    CHECK_EQ(st.st_mtime, 1000000000);
    CHECK_EQ(stat("in/d", &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0751);
    CHECK_EQ(st.st_mtime, 1000000000);
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_makes_links_in_place_of_files)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    char text[16] = "";

    put_text("in/l", "old");
    CHECK_EQ(cio_tree_link(tree, "l", 1, "x").status, CIO_OK);
    CHECK_EQ(cio_tree_link(tree, "d/l", 3, "../y").status, CIO_OK);
    CHECK_EQ(readlink("in/l", text, sizeof text), 1);
    CHECK_EQ(readlink("in/d/l", text, sizeof text), 4);
    CHECK_EQ(mkdir("in/f", 0777), 0);
    CHECK_EQ(cio_tree_link(tree, "f", 1, "x").sys_errno, EISDIR);
    CHECK_EQ(count_entries("in"), 3);
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_lets_kept_folders_go_where_descriptors_are_short)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    struct rlimit limit;
    char path[32];

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)fd + 5;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(path, sizeof path, "a%d/b/t", i);
        CHECK_EQ(put(tree, path, "1", NULL).status, CIO_OK);
    }
    cio_tree_free(tree);
    close(fd);
}

CIO_TEST(tree_refuses_paths_that_the_kernel_would)
{
    const int fd = target();
    struct cio_tree *tree = cio_tree_new(fd);
    char path[2 * CIO_PATH_NBYTES];

    memset(path, 'a', sizeof path);
    path[300] = '\0';
    CHECK_EQ(put(tree, path, "1", NULL).sys_errno, ENAMETOOLONG);
    path[260] = '/';
    CHECK_EQ(put(tree, path, "1", NULL).sys_errno, ENAMETOOLONG);
    for (size_t i = 0; i < sizeof path; i++) {
        path[i] = i % 2 == 0 ? 'a' : '/';
    }
    path[sizeof path - 1] = '\0';
    CHECK_EQ(put(tree, path, "1", NULL).sys_errno, ENAMETOOLONG);
    CHECK_EQ(count_entries("in"), 0);
    cio_tree_free(tree);
    close(fd);
}

/* Each call of each kind fails once: an error or success, never half a file,
 * never a descriptor left. */
CIO_TEST(tree_survives_every_fault)
{
    static const enum cio_call calls[] = {
        CIO_CALL_openat,    CIO_CALL_write,   CIO_CALL_close,
        CIO_CALL_fchmod,    CIO_CALL_mkdirat, CIO_CALL_calloc,
        CIO_CALL_realloc,   CIO_CALL_fstatat, CIO_CALL_renameat,
        CIO_CALL_getrandom, CIO_CALL_futimens};
    const struct cio_attributes attributes = {true, true, 0644, 1};
    const int fd = target();

    put_text("in/over", "old");
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        for (unsigned k = 1; k <= 8; k++) {
            const struct cio_fault fault = {calls[c], k, 1, EIO, 0};
            struct cio_tree *tree;

            cio_fault_add(&fault);
            tree = cio_tree_new(fd);
            if (tree != NULL) {
                const bool first =
                    put(tree, "d/e/t", "12", &attributes).status == CIO_OK;
                const bool second =
                    put(tree, "over", "new", NULL).status == CIO_OK;

                cio_fault_clear();
                CHECK_EQ(access("in/d/e/t", F_OK) == 0, first);
                check_text("in/over", second ? "new" : "old");
                put_text("in/over", "old");
            }
            cio_fault_clear();
            cio_tree_free(tree);
            CHECK_EQ(system("rm -rf in/d; test $(ls -A in) = over"), 0);
        }
    }
    CHECK_EQ(dup(fd), fd + 1);
    close(fd);
}

static atomic_bool swapping;

static void *
swap(void *unused)
{
    while (atomic_load(&swapping)) {
        (void)rename("in/a", "in/real");
        (void)symlink("../out", "in/a");
        (void)unlink("in/a");
        (void)rename("in/real", "in/a");
    }
    return unused;
}

CIO_TEST(tree_stays_inside_while_a_thread_swaps_folders_for_links)
{
    const int fd = target();
    pthread_t thread;
    int written = 0;

    atomic_store(&swapping, true);
    CHECK_EQ(pthread_create(&thread, NULL, swap, NULL), 0);
    /* More tries where a busy machine let none through. */
    for (int i = 0; i < 2000 || (written == 0 && i < 200000); i++) {
        struct cio_tree *tree = cio_tree_new(fd);

        written += put(tree, "a/b/t", "1", NULL).status == CIO_OK;
        cio_tree_free(tree);
    }
    atomic_store(&swapping, false);
    pthread_join(thread, NULL);
    CHECK_EQ(count_entries("out"), 0);
    CHECK_GE(written, 1);
    close(fd);
}
