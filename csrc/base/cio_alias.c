/* SPDX-License-Identifier: MIT
 * cio_alias.c - finding out whether it matters here, and the way around.
 */
#include "base/cio_alias.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"

#define PAGE_NBYTES 4096
/* Target minus source, modulo a page, from 1 to this. */
#define NEAR_NBYTES 15

#if defined(__x86_64__)

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The best of a few copies in the first cache; takes 10 us at most. */
static int64_t
time_of(uint8_t *target, const uint8_t *source)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 4; i++) {
        const int64_t before = now_ns();
        void *to = target;
        const void *from = source;
        size_t n = 2 * (size_t)PAGE_NBYTES;

        __asm__ volatile("rep movsb"
                         : "+D"(to), "+S"(from), "+c"(n)
                         :
                         : "memory");
        best = now_ns() - before < best ? now_ns() - before : best;
    }
    return best;
}

static bool
measure(void)
{
    uint8_t room[6 * PAGE_NBYTES];

    memset(room, 1, sizeof room); /* in memory, and in the cache */
    return time_of(room + 3 * PAGE_NBYTES + 8, room)
           > 3 * time_of(room + 3 * PAGE_NBYTES + 2048, room);
}

#else

static bool
measure(void)
{
    return false;
}

#endif

static bool
is_slow_here(void)
{
    static atomic_int known; /* 0: not yet; 1: no; 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (answer == 0) {
        answer = measure() ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

bool
cio_alias_is_slow(const void *buf, size_t nbytes, off_t off)
{
    const uint64_t apart =
        ((uint64_t)(uintptr_t)buf - (uint64_t)off - 1) % PAGE_NBYTES;

    return apart < NEAR_NBYTES && nbytes >= PAGE_NBYTES && is_slow_here();
}

ssize_t
cio_alias_pread(ssize_t (*call)(int, void *, size_t, off_t), int fd, void *buf,
                size_t nbytes, off_t off)
{
    uint8_t room[CIO_ALIAS_NBYTES + PAGE_NBYTES];
    /* half a page behind the source, and from the target */
    uint8_t *const between =
        room
        + ((uint64_t)off + PAGE_NBYTES / 2 - (uint64_t)(uintptr_t)room)
              % PAGE_NBYTES;
    size_t have = 0;

    while (have < nbytes) {
        const size_t want = cio_min_size(nbytes - have, CIO_ALIAS_NBYTES);
        const ssize_t got = call(fd, between, want, off + (off_t)have);

        if (got < 0 && have == 0) {
            return got;
        }
        if (got > 0) {
            memcpy((uint8_t *)buf + have, between, (size_t)got);
            have += (size_t)got;
        }
        if (got < (ssize_t)want) {
            break;
        }
    }
    return (ssize_t)have;
}
