/* SPDX-License-Identifier: MIT
 * cio_copy_list.c - a list of files, copied by several threads.
 *
 * Workers take one file after another. The calling thread does too, but comes
 * back every 20 ms, in the middle of a file if need be, to look at signals.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/cio_limits.h"
#include "io/cio_move.h"
#include "transfer/cio_copyfile.h"

static struct cio_copy_item *
claim(struct cio_copy_list *list)
{
    const size_t i = atomic_fetch_add(&list->next, 1);

    return i < list->item_count ? &list->items[i] : NULL;
}

static void
note(struct cio_copy_item *item, const struct cio_copyfile *copy,
     struct cio_done done)
{

    item->done = done;
    item->done.nbytes = copy->transfer.count;
    item->where = copy->where;
    item->fault = copy->fault;
}

static bool
work(struct cio_job *job)
{
    struct cio_copy_list *list = (struct cio_copy_list *)job;
    struct cio_copy_item *item = claim(list);
    struct cio_copyfile copy;
    struct cio_done done;

    if (item == NULL) {
        return false;
    }
    cio_copyfile_init(&copy, item->source, item->target, &list->options);
    do {
        done = cio_copyfile_step(&copy);
        atomic_fetch_add(&list->nbytes, done.nbytes);
    } while (done.status == CIO_MORE && !atomic_load(&job->cancelled));
    if (done.status == CIO_MORE) {
        cio_copyfile_abandon(&copy);
    }
    note(item, &copy, done);
    return true;
}

void
cio_copy_list_start(struct cio_copy_list *list, unsigned threads)
{
    memset(&list->job, 0, sizeof list->job);
    list->job.step = work;
    atomic_store(&list->next, 0);
    atomic_store(&list->nbytes, 0);
    list->current_item = NULL;
    for (size_t i = 0; i < list->item_count; i++) {
        list->items[i].done = cio_done_of(CIO_MORE, 0); /* not begun */
    }
    cio_job_start(&list->job, threads);
}

struct cio_done
cio_copy_list_step(struct cio_copy_list *list)
{
    const int64_t until = cio_clock_ns() + CIO_WAIT_MS * 1000000;
    uint64_t nbytes = 0;

    do {
        struct cio_done done;

        if (list->current_item == NULL) {
            list->current_item = claim(list);
            if (list->current_item == NULL) {
                return cio_done_of(
                    cio_job_join(&list->job, CIO_WAIT_MS) ? CIO_OK : CIO_MORE,
                    nbytes);
            }
            cio_copyfile_init(&list->current, list->current_item->source,
                              list->current_item->target, &list->options);
        }
        done = cio_copyfile_step(&list->current);
        nbytes += done.nbytes;
        atomic_fetch_add(&list->nbytes, done.nbytes);
        if (done.status != CIO_MORE) {
            note(list->current_item, &list->current, done);
            list->current_item = NULL;
        }
    } while (cio_clock_ns() < until);
    return cio_done_of(CIO_MORE, nbytes);
}

void
cio_copy_list_cancel(struct cio_copy_list *list)
{
    cio_job_cancel(&list->job);
    atomic_store(&list->next, list->item_count);
    if (list->current_item != NULL) {
        cio_copyfile_abandon(&list->current);
        note(list->current_item, &list->current, cio_done_of(CIO_MORE, 0));
        list->current_item = NULL;
    }
    while (!cio_job_join(&list->job, CIO_WAIT_MS)) {
    }
}
