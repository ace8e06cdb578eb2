/* SPDX-License-Identifier: MIT
 * cio_pool.c - an atomic single slot in front, a list under a mutex behind.
 *
 * The slot serves the common case, one thread that opens member after member,
 * with one exchange. Counters are atomics without order: they are statistics,
 * except `held`, whose value decides and is reserved before a piece is kept.
 */
#include "base/cio_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/cio_internal.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"

#if defined(__SANITIZE_ADDRESS__)
#define CIO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CIO_ASAN 1
#endif
#endif
#ifdef CIO_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cio_pool_class *classes; /* those that ever kept a piece */

static _Atomic uint64_t limit = CIO_POOL_LIMIT_NBYTES;
static _Atomic uint64_t held, in_use, high_water;
static _Atomic uint64_t hits, misses, discarded;

#define ADD(counter, n)                                                       \
    atomic_fetch_add_explicit(&(counter), (n), memory_order_relaxed)
#define SUB(counter, n)                                                       \
    atomic_fetch_sub_explicit(&(counter), (n), memory_order_relaxed)

static struct cio_piece *
take_idle(struct cio_pool_class *of)
{
    struct cio_piece *piece =
        atomic_exchange_explicit(&of->slot, NULL, memory_order_acquire);

    if (piece == NULL && of->registered) {
        (void)pthread_mutex_lock(&lock);
        piece = of->idle;
        if (piece != NULL) {
            of->idle = piece->next;
        }
        (void)pthread_mutex_unlock(&lock);
    }
    if (piece != NULL) {
        SUB(held, of->piece_nbytes);
        piece->next = NULL;
    }
    return piece;
}

struct cio_piece *
cio_pool_take(struct cio_pool_class *of)
{
    struct cio_piece *piece = take_idle(of);
    uint64_t now, top;

    if (piece != NULL) {
        ADD(hits, 1);
    } else {
        piece = of->create(of);
        if (piece == NULL) {
            return NULL;
        }
        piece->of = of;
        piece->next = NULL;
        ADD(misses, 1);
    }
    now = ADD(in_use, of->piece_nbytes) + of->piece_nbytes
          + atomic_load_explicit(&held, memory_order_relaxed);
    top = atomic_load_explicit(&high_water, memory_order_relaxed);
    while (now > top
           && !atomic_compare_exchange_weak_explicit(&high_water, &top, now,
                                                     memory_order_relaxed,
                                                     memory_order_relaxed)) {
    }
    return piece;
}

static bool
reserve(uint64_t nbytes)
{
    const uint64_t bound = atomic_load_explicit(&limit, memory_order_relaxed);
    uint64_t now = atomic_load_explicit(&held, memory_order_relaxed);

    do {
        if (nbytes > bound || now > bound - nbytes) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&held, &now, now + nbytes,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void
cio_pool_give(struct cio_piece *piece)
{
    struct cio_pool_class *of;
    struct cio_piece *empty = NULL;

    if (piece == NULL) {
        return;
    }
    of = piece->of;
    SUB(in_use, of->piece_nbytes);
    if (!reserve(of->piece_nbytes)) {
        ADD(discarded, 1);
        of->destroy(piece);
        return;
    }
    if (!of->registered) {
        (void)pthread_mutex_lock(&lock);
        if (!of->registered) {
            of->next = classes;
            classes = of;
            of->registered = true;
        }
        (void)pthread_mutex_unlock(&lock);
    }
    if (atomic_compare_exchange_strong_explicit(&of->slot, &empty, piece,
                                                memory_order_release,
                                                memory_order_relaxed)) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    piece->next = of->idle;
    of->idle = piece;
    (void)pthread_mutex_unlock(&lock);
}

void
cio_pool_stats(struct cio_pool_stats *stats)
{
    stats->limit = atomic_load(&limit);
    stats->held = atomic_load(&held);
    stats->in_use = atomic_load(&in_use);
    stats->high_water = atomic_load(&high_water);
    stats->hits = atomic_load(&hits);
    stats->misses = atomic_load(&misses);
    stats->discarded = atomic_load(&discarded);
}

void
cio_pool_set_limit(uint64_t nbytes)
{
    atomic_store(&limit, nbytes);
    (void)cio_pool_trim(nbytes);
}

uint64_t
cio_pool_trim(uint64_t keep_nbytes)
{
    uint64_t freed = 0;
    struct cio_pool_class *of;

    (void)pthread_mutex_lock(&lock);
    of = classes;
    (void)pthread_mutex_unlock(&lock);
    for (; of != NULL; of = of->next) { /* only ever grows at its head */
        struct cio_piece *piece;

        while (atomic_load(&held) > keep_nbytes
               && (piece = take_idle(of)) != NULL) {
            freed += of->piece_nbytes;
            of->destroy(piece);
        }
    }
    return freed;
}

void
cio_pool_forget(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    for (struct cio_pool_class *of = classes; of != NULL; of = of->next) {
        of->idle = NULL;
        atomic_store(&of->slot, NULL);
    }
    atomic_store(&held, 0);
}

/* --------------------------------------------------------------- buffers */

#define BUFFER_ALIGNMENT 64
#define BUFFER_HEAD_NBYTES                                                    \
    ((sizeof(struct cio_buffer) + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT    \
     * BUFFER_ALIGNMENT)

static struct cio_piece *
buffer_create(struct cio_pool_class *of)
{
    /* malloc aligns to 16: the data is moved up to the next line. */
    struct cio_buffer *buffer = cio_sys->malloc(of->piece_nbytes);

    if (buffer == NULL) {
        return NULL;
    }
    buffer->data = (uint8_t *)(((uintptr_t)buffer + BUFFER_HEAD_NBYTES
                                + BUFFER_ALIGNMENT - 1)
                               & ~(uintptr_t)(BUFFER_ALIGNMENT - 1));
    buffer->nbytes = of->piece_nbytes - BUFFER_HEAD_NBYTES - BUFFER_ALIGNMENT;
    return &buffer->piece;
}

static void
buffer_destroy(struct cio_piece *piece)
{
    struct cio_buffer *buffer = (struct cio_buffer *)piece;

    ASAN_UNPOISON_MEMORY_REGION(buffer->data, buffer->nbytes);
    cio_free(buffer);
}

#define BUFFER_CLASS(label, nbytes)                                           \
    {.name = (label),                                                         \
     .piece_nbytes = BUFFER_HEAD_NBYTES + BUFFER_ALIGNMENT + (nbytes),        \
     .create = buffer_create,                                                 \
     .destroy = buffer_destroy}
static struct cio_pool_class buffer_classes[] = {
    BUFFER_CLASS("4 KiB", 4 * CIO_KIB),
    BUFFER_CLASS("16 KiB", 16 * CIO_KIB),
    BUFFER_CLASS("64 KiB", 64 * CIO_KIB),
    BUFFER_CLASS("256 KiB", 256 * CIO_KIB),
};
#define BUFFER_CLASS_COUNT (sizeof buffer_classes / sizeof buffer_classes[0])

struct cio_buffer *
cio_buffer_take(size_t want_nbytes)
{
    size_t i = 0;
    struct cio_buffer *buffer;

    while (i + 1 < BUFFER_CLASS_COUNT
           && buffer_classes[i].piece_nbytes - BUFFER_HEAD_NBYTES
                      - BUFFER_ALIGNMENT
                  < want_nbytes) {
        i++;
    }
    buffer = (struct cio_buffer *)cio_pool_take(&buffer_classes[i]);
    if (buffer != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(buffer->data, buffer->nbytes);
    }
    return buffer;
}

void
cio_buffer_give(struct cio_buffer *buffer)
{
    if (buffer != NULL) {
        ASAN_POISON_MEMORY_REGION(buffer->data, buffer->nbytes);
        cio_pool_give(&buffer->piece);
    }
}

void
cio_buffer_abandon(struct cio_buffer *buffer)
{
    if (buffer != NULL) {
        SUB(in_use, buffer->piece.of->piece_nbytes);
        ADD(discarded, 1);
    }
}
