/* SPDX-License-Identifier: MIT
 * cio_tree.c - one name at a time, from an open folder to the next.
 */
#include "zip/cio_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"

/* Passing through a folder needs no permission to list it. */
#ifndef O_PATH
#define O_PATH O_RDONLY
#endif
#define FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW)

#define NAME_NBYTES 256 /* NAME_MAX and its NUL */
/* Names that somebody else takes or removes under our hands: how often we try
 * before we say so. */
#define TRIES 16

struct folder {
    char *path; /* owned; NULL: unused */
    size_t nbytes, room;
    uint64_t used; /* the tree's clock at the last use */
    int fd;
};

struct cio_tree {
    int target;
    uint64_t clock;
    struct folder *last; /* the one used last: nearly always the next, too */
    struct folder folders[CIO_TREE_FOLDERS];
};

struct cio_tree *
cio_tree_new(int target)
{
    struct cio_tree *tree = cio_sys->calloc(1, sizeof *tree);

    if (tree == NULL) {
        return NULL;
    }
    tree->target = target;
    tree->last = &tree->folders[0];
    for (size_t i = 0; i < CIO_TREE_FOLDERS; i++) {
        tree->folders[i].fd = -1;
    }
    return tree;
}

static void
folder_close(struct folder *folder)
{
    if (folder->fd >= 0) {
        (void)cio_sys->close(folder->fd);
        folder->fd = -1;
    }
}

void
cio_tree_free(struct cio_tree *tree)
{
    if (tree == NULL) {
        return;
    }
    for (size_t i = 0; i < CIO_TREE_FOLDERS; i++) {
        folder_close(&tree->folders[i]);
        cio_free(tree->folders[i].path);
    }
    cio_free(tree);
}

static int
open_at(int folder, const char *name, int flags, mode_t mode)
{
    int fd;

    do { /* FUSE and NFS can be interrupted; nothing was done then */
        fd = cio_sys->openat(folder, name, flags, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static bool
is_folder(const struct folder *folder, const char *path, size_t nbytes)
{
    return folder->fd >= 0 && folder->nbytes == nbytes
           && memcmp(folder->path, path, nbytes) == 0;
}

static struct folder *
find_folder(struct cio_tree *tree, const char *path, size_t nbytes)
{
    if (!is_folder(tree->last, path, nbytes)) {
        size_t i = 0;

        while (!is_folder(&tree->folders[i], path, nbytes)) {
            if (++i == CIO_TREE_FOLDERS) {
                return NULL;
            }
        }
        tree->last = &tree->folders[i];
    }
    tree->last->used = ++tree->clock;
    return tree->last;
}

/* The place of the folder that was not used for longest, emptied, and with
 * room for a path. NULL: out of memory. */
static struct folder *
place_for(struct cio_tree *tree, size_t nbytes)
{
    struct folder *place = &tree->folders[0];

    for (size_t i = 1; i < CIO_TREE_FOLDERS && place->fd >= 0; i++) {
        if (tree->folders[i].fd < 0 || tree->folders[i].used < place->used) {
            place = &tree->folders[i];
        }
    }
    if (place->room < nbytes) {
        char *path = cio_sys->realloc(place->path, nbytes);

        if (path == NULL) {
            return NULL;
        }
        place->path = path;
        place->room = nbytes;
    }
    folder_close(place);
    return place;
}

/* Descriptors are short: those of folders that we only keep for later go. */
static bool
spare_descriptors(struct cio_tree *tree, int needed)
{
    bool any = false;

    for (size_t i = 0; i < CIO_TREE_FOLDERS; i++) {
        if (tree->folders[i].fd >= 0 && tree->folders[i].fd != needed) {
            folder_close(&tree->folders[i]);
            any = true;
        }
    }
    return any;
}

/* ENOTDIR says little: links are a reason of their own. */
static int
why_no_folder(int parent, const char *name)
{
    struct stat st;

    if (cio_sys->fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0
        && S_ISLNK(st.st_mode)) {
        return ELOOP;
    }
    return ENOTDIR;
}

/* The folder `name` in parent, made where it isn't there; -1 and errno. */
static int
enter(struct cio_tree *tree, int parent, const char *name)
{
    for (int i = 0; i < TRIES; i++) {
        const int fd = open_at(parent, name, FOLDER_FLAGS, 0);

        if (fd >= 0) {
            return fd;
        }
        if ((errno == EMFILE || errno == ENFILE)
            && spare_descriptors(tree, parent)) {
            continue;
        }
        if (errno == ENOTDIR || errno == ELOOP) {
            errno = why_no_folder(parent, name);
            return -1;
        }
        if (errno != ENOENT) {
            return -1;
        }
        if (cio_sys->mkdirat(parent, name, 0777) < 0 && errno != EEXIST) {
            return -1;
        }
    }
    errno = ENOENT; /* removed again each time */
    return -1;
}

/* The longest part of path[0, nbytes) that is open already. */
static size_t
open_part(struct cio_tree *tree, const char *path, size_t nbytes, int *fd)
{
    while (nbytes > 0) {
        const struct folder *folder = find_folder(tree, path, nbytes);

        if (folder != NULL) {
            *fd = folder->fd;
            return nbytes;
        }
        do {
            nbytes--;
        } while (nbytes > 0 && path[nbytes] != '/');
    }
    *fd = tree->target;
    return 0;
}

/* Opens path[0, nbytes), a folder, made where it isn't there. */
static struct cio_done
reach(struct cio_tree *tree, const char *path, size_t nbytes, int *fd)
{
    size_t done = open_part(tree, path, nbytes, fd);

    while (done < nbytes) {
        const size_t start = done == 0 ? 0 : done + 1;
        const char *slash = memchr(path + start, '/', nbytes - start);
        const size_t end = slash == NULL ? nbytes : (size_t)(slash - path);
        char name[NAME_NBYTES];
        struct folder *place;
        int next;

        if (end - start >= sizeof name) {
            return cio_done_sys(ENAMETOOLONG, 0);
        }
        memcpy(name, path + start, end - start);
        name[end - start] = '\0';
        next = enter(tree, *fd, name);
        if (next < 0) {
            return cio_done_sys(errno, 0);
        }
        place = place_for(tree, end);
        if (place == NULL) {
            (void)cio_sys->close(next);
            return cio_done_of(CIO_ERR_NOMEM, 0);
        }
        memcpy(place->path, path, end);
        place->nbytes = end;
        place->fd = *fd = next;
        place->used = ++tree->clock;
        tree->last = place;
        done = end;
    }
    return cio_done_of(CIO_OK, 0);
}

/* Opens the folder that holds path; *name is the last component. */
static struct cio_done
reach_parent(struct cio_tree *tree, const char *path, size_t nbytes,
             int *folder, const char **name)
{
    size_t end = nbytes;

    if (nbytes >= CIO_PATH_NBYTES) {
        return cio_done_sys(ENAMETOOLONG, 0);
    }
    while (end > 0 && path[end - 1] != '/') {
        end--;
    }
    *name = path + end;
    return reach(tree, path, end > 0 ? end - 1 : 0, folder);
}

struct cio_done
cio_tree_make_folder(struct cio_tree *tree, const char *path, size_t nbytes)
{
    int fd;

    if (nbytes >= CIO_PATH_NBYTES) {
        return cio_done_sys(ENAMETOOLONG, 0);
    }
    return reach(tree, path, nbytes, &fd);
}

/* -1 and errno; mtime last, since a change of mode is none of content. */
static int
set_attributes(int fd, const struct cio_attributes *attributes)
{
    if (attributes->has_mode
        && cio_sys->fchmod(fd, attributes->mode & 0777) < 0) {
        return -1;
    }
    if (attributes->has_mtime) {
        const struct timespec times[2] = {{(time_t)attributes->mtime, 0},
                                          {(time_t)attributes->mtime, 0}};

        return cio_sys->futimens(fd, times);
    }
    return 0;
}

struct cio_done
cio_tree_set_folder(struct cio_tree *tree, const char *path, size_t nbytes,
                    const struct cio_attributes *attributes)
{
    struct cio_done done;
    const char *name;
    int parent, fd;

    done = reach_parent(tree, path, nbytes, &parent, &name);
    if (done.status != CIO_OK) {
        return done;
    }
    fd = open_at(parent, *name == '\0' ? "." : name,
                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0) {
        return cio_done_sys(errno, 0);
    }
    if (set_attributes(fd, attributes) < 0) {
        done = cio_done_sys(errno, 0);
    }
    (void)cio_sys->close(fd);
    return done;
}

/* A name that nobody has guessed. */
static struct cio_done
make_temporary(char *name, size_t size)
{
    uint64_t number;

    if (cio_sys->getrandom(&number, sizeof number) != sizeof number) {
        return cio_done_sys(errno, 0);
    }
    (void)snprintf(name, size, ".pyio-%016llx", (unsigned long long)number);
    return cio_done_of(CIO_OK, 0);
}

struct cio_done
cio_tree_link(struct cio_tree *tree, const char *path, size_t nbytes,
              const char *text)
{
    struct cio_done done;
    const char *name;
    char temporary[32];
    int folder, error;

    done = reach_parent(tree, path, nbytes, &folder, &name);
    if (done.status != CIO_OK) {
        return done;
    }
    if (cio_sys->symlinkat(text, folder, name) == 0) {
        return done;
    }
    if (errno != EEXIST) {
        return cio_done_sys(errno, 0);
    }
    done = make_temporary(temporary, sizeof temporary);
    if (done.status != CIO_OK) {
        return done;
    }
    if (cio_sys->symlinkat(text, folder, temporary) < 0) {
        return cio_done_sys(errno, 0);
    }
    if (cio_sys->renameat(folder, temporary, folder, name) < 0) {
        error = errno;
        (void)cio_sys->unlinkat(folder, temporary, 0);
        return cio_done_sys(error, 0);
    }
    return done;
}

/* Something has the name already: a temporary file takes its place later. A
 * CIO_MORE says that it went away meanwhile. */
static struct cio_done
open_temporary(struct cio_sink *sink)
{
    struct cio_done done;
    struct stat st;

    if (cio_sys->fstatat(sink->folder, sink->name, &st, AT_SYMLINK_NOFOLLOW)
        < 0) {
        return errno == ENOENT ? cio_done_of(CIO_MORE, 0)
                               : cio_done_sys(errno, 0);
    }
    if (S_ISDIR(st.st_mode)) {
        return cio_done_sys(EISDIR, 0);
    }
    sink->kept_mode = S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0;
    done = make_temporary(sink->temporary, sizeof sink->temporary);
    if (done.status != CIO_OK) {
        return done;
    }
    sink->fd = open_at(sink->folder, sink->temporary,
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    return sink->fd < 0 ? cio_done_sys(errno, 0) : done;
}

struct cio_done
cio_sink_open(struct cio_sink *sink, struct cio_tree *tree, const char *path,
              size_t nbytes)
{
    struct cio_done done;

    *sink = (struct cio_sink){.fd = -1};
    done = reach_parent(tree, path, nbytes, &sink->folder, &sink->name);
    for (int i = 0; done.status == CIO_OK && i < TRIES; i++) {
        sink->fd = open_at(sink->folder, sink->name,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
        if (sink->fd >= 0) {
            return done;
        }
        if ((errno == EMFILE || errno == ENFILE)
            && spare_descriptors(tree, sink->folder)) {
            continue;
        }
        if (errno != EEXIST) {
            return cio_done_sys(errno, 0);
        }
        done = open_temporary(sink);
        if (done.status != CIO_MORE) {
            return done;
        }
        done.status = CIO_OK;
    }
    return done.status == CIO_OK ? cio_done_sys(EEXIST, 0) : done;
}

struct cio_done
cio_sink_write(struct cio_sink *sink, const void *data, size_t nbytes)
{
    struct cio_done done = {CIO_OK, 0, 0};

    while (done.nbytes < nbytes) {
        const ssize_t put =
            cio_sys->write(sink->fd, (const char *)data + done.nbytes,
                           nbytes - (size_t)done.nbytes);

        if (put > 0) {
            done.nbytes += (uint64_t)put;
        } else if (put == 0 || errno != EINTR) {
            /* 0 for more than 0 bytes: a device that takes nothing */
            return cio_done_sys(put == 0 ? ENOSPC : errno, done.nbytes);
        }
    }
    return done;
}

void
cio_sink_drop(struct cio_sink *sink)
{
    if (sink->fd >= 0) {
        (void)cio_sys->close(sink->fd);
        sink->fd = -1;
        (void)cio_sys->unlinkat(
            sink->folder, *sink->temporary ? sink->temporary : sink->name, 0);
    }
}

struct cio_done
cio_sink_finish(struct cio_sink *sink, const struct cio_attributes *attributes)
{
    const bool temporary = *sink->temporary != '\0';
    int error = 0;

    if (sink->kept_mode != 0
        && cio_sys->fchmod(sink->fd, sink->kept_mode) < 0) {
        error = errno;
    } else if (attributes != NULL
               && set_attributes(sink->fd, attributes) < 0) {
        error = errno;
    }
    if (error != 0) {
        cio_sink_drop(sink);
        return cio_done_sys(error, 0);
    }
    /* EINTR: closed all the same, as on Linux */
    if (cio_sys->close(sink->fd) < 0 && errno != EINTR) {
        error = errno;
    }
    sink->fd = -1;
    if (error == 0 && temporary
        && cio_sys->renameat(sink->folder, sink->temporary, sink->folder,
                             sink->name)
               < 0) {
        error = errno;
    }
    if (error != 0) {
        (void)cio_sys->unlinkat(sink->folder,
                                temporary ? sink->temporary : sink->name, 0);
        return cio_done_sys(error, 0);
    }
    return cio_done_of(CIO_OK, 0);
}
