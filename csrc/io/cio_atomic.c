/* SPDX-License-Identifier: MIT
 * cio_atomic.c - temporary file, then rename.
 */
#include "io/cio_atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cio_limits.h"
#include "base/cio_sys.h"

#define LINKS_MAX 40 /* as the kernel follows before it says ELOOP */
#define NAME_TRIES 100
#define SUFFIX_NBYTES 24

static size_t
folder_length(const char *path)
{
    const char *const slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash + 1 - path);
}

/* A link's text, relative to the folder that the link lies in. */
static char *
joined(const char *link, const char *text, size_t text_nbytes)
{
    const size_t folder = text[0] == '/' ? 0 : folder_length(link);
    char *path = cio_sys->malloc(folder + text_nbytes + 1);

    if (path != NULL) {
        memcpy(path, link, folder);
        memcpy(path + folder, text, text_nbytes);
        path[folder + text_nbytes] = '\0';
    }
    return path;
}

/* Follows path's last component; *target is the caller's. */
static struct cio_done
follow(const char *path, char **target)
{
    char text[CIO_PATH_NBYTES];

    *target = joined("", path, strlen(path));
    for (int links = 0; *target != NULL; links++) {
        const ssize_t n =
            cio_sys->readlinkat(AT_FDCWD, *target, text, sizeof text);
        char *next;

        if (n < 0) {
            /* EINVAL: no link. ENOENT: nothing there yet. */
            return errno == EINVAL || errno == ENOENT ? cio_done_of(CIO_OK, 0)
                                                      : cio_done_sys(errno, 0);
        }
        if ((size_t)n == sizeof text) {
            return cio_done_sys(ENAMETOOLONG, 0);
        }
        if (links == LINKS_MAX) {
            return cio_done_sys(ELOOP, 0);
        }
        next = joined(*target, text, (size_t)n);
        cio_free(*target);
        *target = next;
    }
    return cio_done_of(CIO_ERR_NOMEM, 0);
}

/* A name of our own beside the target; the random part is no secret, O_EXCL
 * does the rest. A target's name near NAME_MAX must not make it too long. */
static struct cio_done
open_temporary(struct cio_atomic *atomic, mode_t mode)
{
    const size_t folder = folder_length(atomic->target);
    char *path = cio_sys->malloc(folder + SUFFIX_NBYTES + 1);
    int error = EEXIST;

    if (path == NULL) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    memcpy(path, atomic->target, folder);
    for (int i = 0; i < NAME_TRIES && (error == EEXIST || error == EINTR);
         i++) {
        uint64_t random;

        if (cio_sys->getrandom(&random, sizeof random)
            != (ssize_t)sizeof random) {
            error = errno;
            break;
        }
        (void)snprintf(path + folder, SUFFIX_NBYTES + 1, ".%016llx.tmp",
                       (unsigned long long)random);
        atomic->fd = cio_sys->openat(
            AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (atomic->fd >= 0) {
            atomic->temporary = path;
            return cio_done_of(CIO_OK, 0);
        }
        error = errno;
    }
    cio_free(path);
    return cio_done_sys(error, 0);
}

/* The new file becomes the old one's owner's, where we may give it away. Where
 * not, the set-ID bits would lend our own identity: they go. */
static struct cio_done
take_after(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 07777;
    struct stat st;

    if (cio_sys->fstat(fd, &st) < 0) {
        return cio_done_sys(errno, 0);
    }
    if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid)
        && cio_sys->fchown(fd, old->st_uid, old->st_gid) < 0) {
        mode &= ~(mode_t)(S_ISUID | S_ISGID);
    }
    return cio_sys->fchmod(fd, mode) < 0 ? cio_done_sys(errno, 0)
                                         : cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_atomic_begin(struct cio_atomic *atomic, const char *path)
{
    struct cio_done done;
    struct stat st;
    bool exists;

    *atomic = (struct cio_atomic){.fd = -1};
    if (*path == '\0') { /* nothing could be renamed to it */
        return cio_done_sys(ENOENT, 0);
    }
    done = follow(path, &atomic->target);
    if (done.status != CIO_OK) {
        cio_atomic_abort(atomic);
        return done;
    }
    exists = cio_sys->fstatat(AT_FDCWD, atomic->target, &st, 0) == 0;
    if (!exists && errno != ENOENT) {
        done = cio_done_sys(errno, 0);
    } else if (exists && !S_ISREG(st.st_mode)) {
        done = cio_done_sys(S_ISDIR(st.st_mode) ? EISDIR : EINVAL, 0);
    } else {
        /* Nobody else may open it before it has the old one's mode. */
        done = open_temporary(atomic, exists ? 0600 : 0666);
    }
    if (done.status == CIO_OK && exists) {
        done = take_after(atomic->fd, &st);
    }
    if (done.status != CIO_OK) {
        cio_atomic_abort(atomic);
    }
    return done;
}

static struct cio_done
sync_fd(int fd)
{
    int result;

    do { /* the file is complete: a signal can wait until it is in place */
        result = cio_sys->fsync(fd);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? cio_done_sys(errno, 0) : cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_sync_folder(const char *target)
{
    const size_t folder = folder_length(target);
    char *path =
        joined("", folder == 0 ? "." : target, folder == 0 ? 1 : folder);
    struct cio_done done;
    int fd;

    if (path == NULL) {
        return cio_done_of(CIO_ERR_NOMEM, 0);
    }
    do {
        fd = cio_sys->openat(AT_FDCWD, path,
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        done = fd < 0 ? cio_done_sys(errno, 0) : cio_done_of(CIO_OK, 0);
    } while (done.status == CIO_ERR_SYS && done.sys_errno == EINTR);
    cio_free(path);
    if (fd < 0) {
        return done;
    }
    /* EINVAL: a file system that can't sync a folder. */
    done = sync_fd(fd);
    if (done.status == CIO_ERR_SYS && done.sys_errno == EINVAL) {
        done = cio_done_of(CIO_OK, 0);
    }
    (void)cio_sys->close(fd);
    return done;
}

struct cio_done
cio_atomic_commit(struct cio_atomic *atomic, bool sync)
{
    struct cio_done done = cio_done_of(CIO_OK, 0);
    const int fd = atomic->fd;

    if (sync) {
        done = sync_fd(fd);
    }
    atomic->fd = -1;
    if (cio_sys->close(fd) < 0 && errno != EINTR && done.status == CIO_OK) {
        done = cio_done_sys(errno, 0);
    }
    if (done.status == CIO_OK
        && cio_sys->renameat(AT_FDCWD, atomic->temporary, AT_FDCWD,
                             atomic->target)
               < 0) {
        done = cio_done_sys(errno, 0);
    }
    if (done.status == CIO_OK) {
        cio_free(atomic->temporary); /* it is the target now */
        atomic->temporary = NULL;
        if (sync) {
            done = cio_sync_folder(atomic->target);
        }
    }
    cio_atomic_abort(atomic);
    return done;
}

void
cio_atomic_abort(struct cio_atomic *atomic)
{
    if (atomic->fd >= 0) {
        (void)cio_sys->close(atomic->fd);
        atomic->fd = -1;
    }
    if (atomic->temporary != NULL) {
        (void)cio_sys->unlinkat(AT_FDCWD, atomic->temporary, 0);
        cio_free(atomic->temporary);
        atomic->temporary = NULL;
    }
    cio_free(atomic->target);
    atomic->target = NULL;
}
