/* SPDX-License-Identifier: MIT
 * fuzz_zip_extract.c - any bytes as an archive, judged and extracted.
 *
 * Promised: nothing is written beside the folder; what failed leaves no file;
 * strict admits no member that safe refuses; no two members that safe admits
 * share a byte, worked out from their local headers.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cio_bytes.h"
#include "base/cio_sys.h"
#include "inflate/cio_engine.h"
#include "zip/cio_extract.h"
#include "zip/cio_names.h"

#define MEMBERS_MAX 64

static char root[64];

static void
must(bool promise)
{
    if (!promise) {
        abort();
    }
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind;
    return ftw->level > 0 ? remove(path) : 0;
}

static void
clean(void)
{
    char in[96];

    (void)snprintf(in, sizeof in, "%s/in", root);
    (void)nftw(in, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
prepare(void)
{
    if (*root == '\0') {
        char path[96];

        must(cio_engine_init(NULL));
        strcpy(root, "/dev/shm/pyio-fuzz-XXXXXX");
        must(mkdtemp(root) != NULL);
        (void)snprintf(path, sizeof path, "%s/in", root);
        must(mkdir(path, 0777) == 0);
    }
}

static bool
load(struct cio_directory *d, const uint8_t *data, size_t nbytes)
{
    const struct cio_zip_bounds bounds = {1 << 20, MEMBERS_MAX, UINT64_MAX};
    struct cio_zip_opener opener = {.whole_tail = true};
    struct cio_zip_problem problem;
    uint8_t *comment = malloc(65536), *raw;
    enum cio_status status = CIO_MORE;

    cio_zip_opener_init(&opener, nbytes, &bounds);
    while (status == CIO_MORE) {
        status = cio_zip_opener_step(&opener, data + opener.want_off,
                                     opener.want_nbytes, comment, &problem);
    }
    if (status != CIO_OK) {
        free(comment);
        return false;
    }
    raw = malloc((size_t)opener.end.dir_nbytes + 1);
    memcpy(raw, data + opener.end.dir_off, (size_t)opener.end.dir_nbytes);
    must(cio_directory_init(d, &opener, raw, (size_t)opener.end.dir_nbytes,
                            comment, false)
         == CIO_OK);
    do {
        status = cio_directory_walk(d, &problem);
    } while (status == CIO_MORE);
    if (status == CIO_OK) {
        must(cio_directory_order(d) == CIO_OK);
        return true;
    }
    cio_directory_clear(d);
    return false;
}

static bool
admitted(struct cio_profile *profile, int fd, uint32_t index)
{
    struct cio_zip_problem problem = {0};
    const struct cio_done done =
        cio_profile_admit(profile, fd, index, &problem);

    must(done.status == CIO_OK
         || (done.status == CIO_ERR_DATA && problem.text != NULL));
    return done.status == CIO_OK;
}

static void
judge(const struct cio_directory *d, int fd, const uint8_t *data,
      size_t nbytes)
{
    struct cio_profile *safe = cio_profile_new(CIO_PROFILE_SAFE, d);
    struct cio_profile *strict = cio_profile_new(CIO_PROFILE_STRICT, d);
    uint64_t starts[MEMBERS_MAX], ends[MEMBERS_MAX];
    size_t count = 0;

    must(safe != NULL && strict != NULL);
    /* from both ends: what is known of others must not matter */
    for (uint32_t n = 0; n < d->count; n++) {
        const uint32_t i = n % 2 == 0 ? n / 2 : d->count - 1 - n / 2;
        const bool ok = admitted(safe, fd, i);
        struct cio_zip_info info;

        must(ok == admitted(safe, fd, i));
        must(ok || !admitted(strict, fd, i));
        if (!ok) {
            continue;
        }
        cio_directory_info(d, i, &info);
        must(info.header_off + CIO_ZIP_HEADER_NBYTES <= nbytes);
        starts[count] = info.header_off;
        ends[count] = info.header_off + CIO_ZIP_HEADER_NBYTES
                      + cio_load_le16(data + info.header_off + 26)
                      + cio_load_le16(data + info.header_off + 28)
                      + info.compressed_nbytes;
        must(ends[count] <= d->end.dir_off);
        for (size_t k = 0; k < count; k++) {
            must(ends[k] <= starts[count] || ends[count] <= starts[k]);
        }
        count++;
    }
    cio_profile_free(safe);
    cio_profile_free(strict);
}

static void
extract_all(const struct cio_directory *d, int fd, int target)
{
    struct cio_profile *profile = cio_profile_new(CIO_PROFILE_SAFE, d);
    struct cio_extract_item *items = calloc(d->count + 1, sizeof *items);
    char **paths = calloc(d->count + 1, sizeof *paths);
    struct cio_extract extract;
    size_t count = 0;

    must(cio_extract_init(&extract, 1, fd, target, profile));
    for (uint32_t i = 0; i < d->count; i++) {
        struct cio_zip_info info;
        struct cio_extract_item *item = &items[count];

        cio_directory_info(d, i, &info);
        cio_entry_of(d, &info, &item->entry);
        if (info.nbytes > CIO_MIB) {
            continue; /* a bomb is no news, and takes time */
        }
        paths[count] = malloc(info.name_nbytes + 1);
        item->path = paths[count];
        item->path_nbytes = cio_name_clean((const uint8_t *)info.name,
                                           info.name_nbytes, paths[count]);
        item->index = i;
        item->folder =
            info.name_nbytes > 0 && info.name[info.name_nbytes - 1] == '/';
        cio_extract_attributes(&info, &item->attributes);
        if (item->path_nbytes == 0) {
            free(paths[count]);
            continue;
        }
        count++;
    }
    cio_extract_next(&extract, items, count, 1);
    while (extract.job.step(&extract.job)) {
    }
    cio_extract_end(&extract);
    for (size_t i = 0; i < count; i++) {
        struct stat st;

        if (items[i].done.status == CIO_OK) {
            must(fstatat(target, items[i].path, &st, AT_SYMLINK_NOFOLLOW)
                 == 0);
        }
        free(paths[i]);
    }
    free(paths);
    free(items);
    cio_profile_free(profile);
}

static int
count_names(void)
{
    struct stat st;

    must(stat(root, &st) == 0);
    return (int)st.st_nlink; /* of a folder: its folders, and two */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct cio_directory d;
    char path[96];
    int fd, target;

    prepare();
    if (!load(&d, data, nbytes)) {
        return 0;
    }
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, nbytes) == (ssize_t)nbytes);
    (void)snprintf(path, sizeof path, "%s/in", root);
    target = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(target >= 0);
    judge(&d, fd, data, nbytes);
    extract_all(&d, fd, target);
    must(count_names() == 3);
    (void)close(target);
    (void)close(fd);
    cio_directory_clear(&d);
    clean();
    return 0;
}
