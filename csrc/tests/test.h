/* SPDX-License-Identifier: MIT
 * test.h - a test is a function that registers itself; checks stay in release
 * builds and print what they saw.
 *
 * Why      Adding a test is adding a function: CIO_TEST(what_is_promised).
 * Owner    Each test runs in a process of its own, with a timeout: it may
 * leave faults set, the pool full and threads running; memory must be given
 *          back, as LeakSanitizer looks at the end of each.
 * Errors   A failed check ends the test (in another thread than the test's own
 *          it is only noted).
 * Threads  Checks may be made by any thread.
 */
#ifndef CIO_TEST_H
#define CIO_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cio_test {
    const char *name, *file;
    int line;
    void (*run)(void);
    struct cio_test *next;
};

void cio_test_register(struct cio_test *test);
void cio_test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A folder of the test's own, removed with all in it when the test ends. */
const char *cio_test_folder(void);

#define CIO_TEST(test_name)                                                   \
    static void test_##test_name(void);                                       \
    __attribute__((constructor)) static void register_##test_name(void)       \
    {                                                                         \
        static struct cio_test test = {#test_name, __FILE__, __LINE__,        \
                                       test_##test_name, NULL};               \
        cio_test_register(&test);                                             \
    }                                                                         \
    static void test_##test_name(void)

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            cio_test_fail(__FILE__, __LINE__, "%s", #condition);              \
        }                                                                     \
    } while (0)

/* Numbers, enums, bools and pointers. */
#define CHECK_EQ(a, b) CIO_CHECK_COMPARED(a, ==, b)
#define CHECK_NE(a, b) CIO_CHECK_COMPARED(a, !=, b)
#define CHECK_LE(a, b) CIO_CHECK_COMPARED(a, <=, b)
#define CHECK_GE(a, b) CIO_CHECK_COMPARED(a, >=, b)
#define CHECK_STR(a, b) cio_test_strings(__FILE__, __LINE__, #a, #b, a, b)
#define CHECK_MEM(a, b, nbytes)                                               \
    cio_test_memory(__FILE__, __LINE__, #a, #b, a, b, nbytes)

void cio_test_strings(const char *file, int line, const char *a_text,
                      const char *b_text, const char *a, const char *b);
void cio_test_memory(const char *file, int line, const char *a_text,
                     const char *b_text, const void *a, const void *b,
                     size_t nbytes);

/* Both sides as one type that holds them: a sign never turns into a size. */
#define CIO_CHECK_COMPARED(a, op, b)                                          \
    do {                                                                      \
        const struct cio_test_value va_ = CIO_TEST_VALUE(a);                  \
        const struct cio_test_value vb_ = CIO_TEST_VALUE(b);                  \
        if (!(cio_test_order(va_, vb_) op 0)) {                               \
            cio_test_compared(__FILE__, __LINE__, #a " " #op " " #b, va_,     \
                              vb_);                                           \
        }                                                                     \
    } while (0)

struct cio_test_value {
    bool negative;
    uint64_t bits; /* the number, or a negative one's two's complement */
};

#define CIO_TEST_VALUE(x)                                                     \
    _Generic((x),                                                             \
        signed char: cio_test_signed,                                         \
        char: cio_test_signed,                                                \
        short: cio_test_signed,                                               \
        int: cio_test_signed,                                                 \
        long: cio_test_signed,                                                \
        long long: cio_test_signed,                                           \
        _Bool: cio_test_unsigned,                                             \
        unsigned char: cio_test_unsigned,                                     \
        unsigned short: cio_test_unsigned,                                    \
        unsigned: cio_test_unsigned,                                          \
        unsigned long: cio_test_unsigned,                                     \
        unsigned long long: cio_test_unsigned,                                \
        default: cio_test_pointer)(x)

static inline struct cio_test_value
cio_test_signed(long long x)
{
    return (struct cio_test_value){x < 0, (uint64_t)x};
}

static inline struct cio_test_value
cio_test_unsigned(unsigned long long x)
{
    return (struct cio_test_value){false, x};
}

static inline struct cio_test_value
cio_test_pointer(const volatile void *x)
{
    return (struct cio_test_value){false, (uintptr_t)x};
}

static inline int
cio_test_order(struct cio_test_value a, struct cio_test_value b)
{
    if (a.negative != b.negative) {
        return a.negative ? -1 : 1;
    }
    return a.bits < b.bits ? -1 : a.bits > b.bits;
}

void cio_test_compared(const char *file, int line, const char *text,
                       struct cio_test_value a, struct cio_test_value b);

#endif
