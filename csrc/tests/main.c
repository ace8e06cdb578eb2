/* SPDX-License-Identifier: MIT
 * main.c - runs the registered tests, each in a process of its own.
 *
 * Usage    test_core [--here] [NAME...]: only tests whose name contains one of
 *          the words; --here without fork, for a debugger.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"

/* A test takes milliseconds; what takes this long hangs. Sanitizers and a busy
 * machine are allowed for. */
#define TIMEOUT_S 120

static struct cio_test *all;
static pthread_t test_thread;
static jmp_buf test_end;
static atomic_bool failed;
static char folder[64];

void
cio_test_register(struct cio_test *test)
{
    struct cio_test **at = &all;

    /* By file and line, whatever order the linker chose. */
    while (*at != NULL) {
        const int order = strcmp((*at)->file, test->file);
        if (order > 0 || (order == 0 && (*at)->line > test->line)) {
            break;
        }
        at = &(*at)->next;
    }
    test->next = *at;
    *at = test;
}

void
cio_test_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    failed = true;
    if (pthread_equal(pthread_self(), test_thread)) {
        longjmp(test_end, 1);
    }
}

void
cio_test_strings(const char *file, int line, const char *a_text,
                 const char *b_text, const char *a, const char *b)
{
    if (a == NULL || b == NULL ? a != b : strcmp(a, b) != 0) {
        cio_test_fail(file, line, "%s is \"%s\", %s is \"%s\"", a_text,
                      a == NULL ? "(null)" : a, b_text,
                      b == NULL ? "(null)" : b);
    }
}

void
cio_test_memory(const char *file, int line, const char *a_text,
                const char *b_text, const void *a, const void *b,
                size_t nbytes)
{
    const unsigned char *pa = a, *pb = b;

    for (size_t i = 0; i < nbytes; i++) {
        if (pa[i] != pb[i]) {
            cio_test_fail(file, line,
                          "%s and %s differ at byte %zu of %zu: 0x%02x, "
                          "0x%02x",
                          a_text, b_text, i, nbytes, pa[i], pb[i]);
            return;
        }
    }
}

static void
value_text(struct cio_test_value value, char *text, size_t size)
{
    if (value.negative) {
        snprintf(text, size, "%" PRId64, (int64_t)value.bits);
    } else {
        snprintf(text, size, "%" PRIu64, value.bits);
    }
}

void
cio_test_compared(const char *file, int line, const char *text,
                  struct cio_test_value a, struct cio_test_value b)
{
    char a_text[24], b_text[24];

    value_text(a, a_text, sizeof a_text);
    value_text(b, b_text, sizeof b_text);
    cio_test_fail(file, line, "%s: left is %s, right is %s", text, a_text,
                  b_text);
}

const char *
cio_test_folder(void)
{
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/test_core_XXXXXX");
        if (mkdtemp(folder) == NULL) {
            folder[0] = '\0';
            cio_test_fail(__FILE__, __LINE__, "mkdtemp: %s", strerror(errno));
        }
    }
    return folder;
}

static void
remove_tree(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        const struct dirent *entry;
        while (dir != NULL && (entry = readdir(dir)) != NULL) {
            char below[4096];
            const int n =
                snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            if (n > 0 && (size_t)n < sizeof below
                && strcmp(entry->d_name, ".") != 0
                && strcmp(entry->d_name, "..") != 0) {
                remove_tree(below);
            }
        }
        if (dir != NULL) {
            closedir(dir);
        }
    }
    remove(path);
}

static bool
run_here(const struct cio_test *test)
{
    test_thread = pthread_self();
    failed = false;
    folder[0] = '\0';
    if (setjmp(test_end) == 0) {
        test->run();
    }
    if (folder[0] != '\0') {
        remove_tree(folder);
    }
    return !failed;
}

static bool
run_apart(const struct cio_test *test)
{
    const time_t start = time(NULL);
    const struct timespec nap = {0, 500000};
    int status = 0;
    pid_t child, done;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        /* exit, not _exit: LeakSanitizer looks then. */
        exit(run_here(test) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    if (child < 0) {
        perror("fork");
        return false;
    }
    while ((done = waitpid(child, &status, WNOHANG)) == 0
           || (done < 0 && errno == EINTR)) {
        if (time(NULL) - start > TIMEOUT_S) {
            fprintf(stderr, "%s: still running after %d s\n", test->name,
                    TIMEOUT_S);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
        nanosleep(&nap, NULL);
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s: killed by signal %d\n", test->name,
                WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool
is_wanted(const struct cio_test *test, char **words, int n)
{
    for (int i = 0; i < n; i++) {
        if (strstr(test->name, words[i]) != NULL) {
            return true;
        }
    }
    return n == 0;
}

int
main(int argc, char **argv)
{
    const bool here = argc > 1 && strcmp(argv[1], "--here") == 0;
    unsigned passed = 0, lost = 0;

    for (const struct cio_test *test = all; test; test = test->next) {
        double started;
        bool ok;
        if (!is_wanted(test, argv + 1 + here, argc - 1 - here)) {
            continue;
        }
        printf("%s ... ", test->name);
        fflush(stdout);
        started = now();
        ok = here ? run_here(test) : run_apart(test);
        printf("%s (%.2f s)\n", ok ? "ok" : "FAILED", now() - started);
        passed += ok;
        lost += !ok;
    }
    printf("%u passed, %u failed\n", passed, lost);
    return lost == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
