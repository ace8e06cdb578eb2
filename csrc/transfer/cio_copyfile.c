/* SPDX-License-Identifier: MIT
 * cio_copyfile.c - one file by path, with shutil.copyfile's rules.
 *
 * A new target is made with O_EXCL: then there is nothing to compare, to
 * truncate or to ask by fstat. Only where one is there already that has to be
 * done, and before its bytes are touched.
 */
#include "transfer/cio_copyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cio_bytes.h"
#include "base/cio_limits.h"
#include "base/cio_sys.h"
#include "transfer/cio_routes.h"

void
cio_copyfile_init(struct cio_copyfile *copy, const char *source,
                  const char *target, const struct cio_copy_options *options)
{
    copy->source = source;
    copy->target = target;
    copy->options = *options;
    copy->where = CIO_AT_SOURCE;
    copy->fault = CIO_COPY_NO_FAULT;
    copy->stage = CIO_COPY_OPEN;
    copy->source_fd = -1;
    copy->target_fd = -1;
    copy->made = false;
    copy->atomic = false;
    copy->planned = false;
    cio_transfer_init(&copy->transfer);
    copy->transfer.sparse = options->sparse;
    copy->transfer.alone = true;
    if (options->call_max_nbytes != 0) {
        copy->transfer.call_max_nbytes = options->call_max_nbytes;
    }
}

static struct cio_done
failed(struct cio_copyfile *copy, enum cio_where where, int sys_errno)
{
    copy->where = where;
    return cio_done_sys(sys_errno, 0);
}

static struct cio_done
refused(struct cio_copyfile *copy, enum cio_where where,
        enum cio_copy_fault fault)
{
    copy->where = where;
    copy->fault = fault;
    return cio_done_of(CIO_ERR_DATA, 0);
}

/* O_NONBLOCK lets a FIFO be opened and refused; a device that was meant gets
 * its blocking ways back. */
static struct cio_done
block_again(struct cio_copyfile *copy, int fd, enum cio_where where,
            const struct stat *st)
{
    int flags;

    if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
        return cio_done_of(CIO_OK, 0);
    }
    flags = cio_sys->fcntl(fd, F_GETFL, 0);
    if (flags < 0 || cio_sys->fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) {
        return failed(copy, where, errno);
    }
    return cio_done_of(CIO_OK, 0);
}

static struct cio_done
open_source(struct cio_copyfile *copy)
{
    copy->source_fd =
        cio_sys->openat(AT_FDCWD, copy->source, O_RDONLY | O_NONBLOCK, 0);
    if (copy->source_fd < 0) {
        return failed(copy, CIO_AT_SOURCE, errno);
    }
    if (cio_sys->fstat(copy->source_fd, &copy->st) < 0) {
        return failed(copy, CIO_AT_SOURCE, errno);
    }
    if (S_ISDIR(copy->st.st_mode)) {
        return failed(copy, CIO_AT_SOURCE, EISDIR);
    }
    if (S_ISFIFO(copy->st.st_mode)) {
        return refused(copy, CIO_AT_SOURCE, CIO_COPY_SOURCE_SPECIAL);
    }
    return block_again(copy, copy->source_fd, CIO_AT_SOURCE, &copy->st);
}

static bool
is_source(const struct cio_copyfile *copy, const struct stat *st)
{
    return st->st_dev == copy->st.st_dev && st->st_ino == copy->st.st_ino;
}

/* The rules come before the permissions: shutil asks stat first. */
static struct cio_done
why_not_opened(struct cio_copyfile *copy, int error)
{
    struct stat st;

    if (cio_sys->fstatat(AT_FDCWD, copy->target, &st, 0) == 0) {
        if (S_ISFIFO(st.st_mode)) { /* ENXIO: nobody reads it */
            return refused(copy, CIO_AT_TARGET, CIO_COPY_TARGET_SPECIAL);
        }
        if (is_source(copy, &st)) {
            return refused(copy, CIO_AT_BOTH, CIO_COPY_SAME);
        }
    }
    return failed(copy, CIO_AT_TARGET, error);
}

/* A target that is there already: *st is filled. */
static struct cio_done
open_old_target(struct cio_copyfile *copy, struct stat *st)
{
    copy->target_fd = cio_sys->openat(AT_FDCWD, copy->target,
                                      O_WRONLY | O_CREAT | O_NONBLOCK, 0666);
    if (copy->target_fd < 0) {
        return why_not_opened(copy, errno);
    }
    if (cio_sys->fstat(copy->target_fd, st) < 0) {
        return failed(copy, CIO_AT_TARGET, errno);
    }
    if (is_source(copy, st)) {
        return refused(copy, CIO_AT_BOTH, CIO_COPY_SAME);
    }
    if (S_ISFIFO(st->st_mode)) {
        return refused(copy, CIO_AT_TARGET, CIO_COPY_TARGET_SPECIAL);
    }
    return block_again(copy, copy->target_fd, CIO_AT_TARGET, st);
}

/* The rules, then a temporary file. What is there and no regular file is
 * written to: a device isn't replaced. */
static struct cio_done
open_temporary(struct cio_copyfile *copy)
{
    struct cio_done done;
    struct stat st;

    if (cio_sys->fstatat(AT_FDCWD, copy->target, &st, 0) == 0) {
        if (is_source(copy, &st)) {
            return refused(copy, CIO_AT_BOTH, CIO_COPY_SAME);
        }
        if (!S_ISREG(st.st_mode)) {
            copy->options.atomic = false;
            return cio_done_of(CIO_OK, 0);
        }
    }
    done = cio_atomic_begin(&copy->temporary, copy->target);
    copy->where = CIO_AT_TARGET;
    copy->atomic = done.status == CIO_OK;
    copy->target_fd = copy->temporary.fd;
    return done;
}

static struct cio_done
open_target(struct cio_copyfile *copy)
{
    struct stat st = copy->st; /* of a new file: regular, and empty */
    struct cio_done done = {CIO_OK, 0, 0};

    if (copy->options.atomic) {
        done = open_temporary(copy);
        if (done.status != CIO_OK) {
            return done;
        }
    }
    if (!copy->atomic) {
        copy->target_fd = cio_sys->openat(AT_FDCWD, copy->target,
                                          O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    if (copy->target_fd >= 0) {
        copy->made = true;
        st.st_mode = S_IFREG;
        st.st_size = 0;
        st.st_blocks = 0;
        st.st_ino = 0; /* no file has it: not the source's */
    } else if (errno == EEXIST) {
        done = open_old_target(copy, &st);
    } else {
        return failed(copy, CIO_AT_TARGET, errno);
    }
    if (done.status == CIO_OK) {
        cio_end_of_stat(&copy->transfer.target, copy->target_fd, &st, 0);
        copy->transfer.truncate =
            copy->transfer.target.kind == CIO_END_FILE && st.st_size > 0;
    }
    return done;
}

static struct cio_done
open_both(struct cio_copyfile *copy)
{
    struct cio_done done = {CIO_OK, 0, 0};

    if (copy->source_fd < 0) { /* not a second time after EINTR */
        done = open_source(copy);
    }
    if (done.status == CIO_OK) {
        cio_end_of_stat(&copy->transfer.source, copy->source_fd, &copy->st, 0);
        if (copy->transfer.source.endless) {
            return refused(copy, CIO_AT_SOURCE, CIO_COPY_ENDLESS);
        }
        done = open_target(copy);
    }
    if (done.status != CIO_OK) {
        return done;
    }
    copy->where = CIO_AT_BOTH;
    copy->planned = true;
    if (cio_plan(&copy->transfer, copy->options.method, copy->options.reflink)
        != CIO_PLAN_OK) {
        return refused(copy, CIO_AT_BOTH, CIO_COPY_NO_METHOD);
    }
    copy->stage = CIO_COPY_MOVE;
    return done;
}

/* ------------------------------------------------------------- metadata */

/* What shutil.copystat passes over. */
static bool
attribute_error_matters(int error)
{
    return error != EPERM && error != ENOTSUP && error != EOPNOTSUPP
           && error != ENODATA && error != EINVAL && error != ENOSYS
           && error != EACCES;
}

static struct cio_done
copy_attributes(struct cio_copyfile *copy, struct cio_buffer *names,
                struct cio_buffer *value)
{
    const ssize_t size = cio_sys->flistxattr(
        copy->source_fd, (char *)names->data, names->nbytes);
    const char *name = (const char *)names->data;

    while (size > 0 && name < (const char *)names->data + size) {
        const ssize_t n = cio_sys->fgetxattr(copy->source_fd, name,
                                             value->data, value->nbytes);

        if ((n < 0
             || cio_sys->fsetxattr(copy->target_fd, name, value->data,
                                   (size_t)n)
                    < 0)
            && attribute_error_matters(errno)) {
            return failed(copy, CIO_AT_BOTH, errno);
        }
        name += strlen(name) + 1;
    }
    return cio_done_of(CIO_OK, 0);
}

/* Most files have no extended attributes: one call says so. */
static struct cio_done
copy_all_attributes(struct cio_copyfile *copy)
{
    const ssize_t size = cio_sys->flistxattr(copy->source_fd, NULL, 0);
    struct cio_buffer *names = NULL, *value = NULL;
    struct cio_done done = {CIO_OK, 0, 0};

    if (size <= 0) {
        return size < 0 && attribute_error_matters(errno)
                   ? failed(copy, CIO_AT_SOURCE, errno)
                   : done;
    }
    names = cio_buffer_take(CIO_XATTR_NBYTES);
    value = cio_buffer_take(CIO_XATTR_NBYTES);
    if (names == NULL || value == NULL) {
        done.status = CIO_ERR_NOMEM;
    } else {
        done = copy_attributes(copy, names, value);
    }
    cio_buffer_give(value);
    cio_buffer_give(names);
    return done;
}

static struct cio_done
copy_metadata(struct cio_copyfile *copy)
{
    const struct timespec times[2] = {copy->st.st_atim, copy->st.st_mtim};
    const mode_t mode = copy->st.st_mode & 07777;
    struct cio_done done;

    if (cio_sys->futimens(copy->target_fd, times) < 0) {
        return failed(copy, CIO_AT_TARGET, errno);
    }
    done = copy_all_attributes(copy);
    if (done.status != CIO_OK) {
        return done;
    }
    if (cio_sys->fchmod(copy->target_fd, mode) < 0) {
        return failed(copy, CIO_AT_TARGET, errno);
    }
    return done;
}

/* ------------------------------------------------------------------ end */

/* Only what is still the file that was opened, and never a link's target. */
static void
remove_target(struct cio_copyfile *copy)
{
    struct stat named, opened;

    if (cio_sys->fstat(copy->target_fd, &opened) == 0
        && cio_sys->fstatat(AT_FDCWD, copy->target, &named,
                            AT_SYMLINK_NOFOLLOW)
               == 0
        && S_ISREG(named.st_mode) && named.st_dev == opened.st_dev
        && named.st_ino == opened.st_ino) {
        (void)cio_sys->unlinkat(AT_FDCWD, copy->target, 0);
    }
}

/* The target's last steps after all its bytes: what NFS and quotas have to say
 * of a failed write comes as late as the close. */
static struct cio_done
close_good(struct cio_copyfile *copy)
{
    const int fd = copy->target_fd;
    struct cio_done done = {CIO_OK, 0, 0};

    copy->target_fd = -1;
    if (copy->atomic) {
        done = cio_atomic_commit(&copy->temporary, copy->options.sync);
        copy->atomic = false;
    } else {
        if (copy->options.sync && cio_sys->fsync(fd) < 0) {
            done = cio_done_sys(errno, 0);
        }
        if (cio_sys->close(fd) < 0 && errno != EINTR
            && done.status == CIO_OK) {
            done = cio_done_sys(errno, 0);
        }
        if (copy->options.sync && done.status == CIO_OK) {
            done = cio_sync_folder(copy->target);
        }
    }
    copy->where = CIO_AT_TARGET;
    return done;
}

static void
close_failed(struct cio_copyfile *copy, bool emptied)
{
    if (copy->atomic) {
        cio_atomic_abort(&copy->temporary);
        copy->atomic = false;
    } else if (copy->target_fd >= 0) {
        if (copy->transfer.count == 0 && (copy->made || emptied)) {
            remove_target(copy);
        }
        (void)cio_sys->close(copy->target_fd);
    }
    copy->target_fd = -1;
}

static struct cio_done
end_copy(struct cio_copyfile *copy, struct cio_done done)
{
    const bool good = done.status == CIO_OK || done.status == CIO_EOF;
    const bool emptied = copy->planned && !copy->transfer.truncate
                         && copy->fault == CIO_COPY_NO_FAULT;
    struct cio_done ended = {CIO_OK, 0, 0};

    if (copy->planned) {
        ended = cio_transfer_end(&copy->transfer);
        copy->planned = false;
    }
    if (good && ended.status == CIO_OK && copy->options.metadata) {
        ended = copy_metadata(copy);
    }
    if (good && ended.status == CIO_OK) {
        ended = close_good(copy);
    } else {
        close_failed(copy, emptied && !good);
    }
    if (copy->source_fd >= 0) {
        (void)cio_sys->close(copy->source_fd);
    }
    copy->source_fd = -1;
    copy->stage = CIO_COPY_DONE;
    if (good && ended.status != CIO_OK) {
        ended.nbytes = done.nbytes;
        return ended;
    }
    return done;
}

struct cio_done
cio_copyfile_step(struct cio_copyfile *copy)
{
    struct cio_done done = {CIO_OK, 0, 0};

    if (copy->stage == CIO_COPY_OPEN) {
        done = open_both(copy);
        if (done.status == CIO_MORE
            || (done.status == CIO_ERR_SYS && done.sys_errno == EINTR)) {
            return cio_done_of(CIO_MORE, 0);
        }
    }
    if (done.status == CIO_OK && copy->stage == CIO_COPY_MOVE) {
        done = cio_transfer_step(&copy->transfer);
        if (copy->options.waits
            && (done.status == CIO_OK || done.status == CIO_EOF)) {
            copy->stage = CIO_COPY_MOVED;
            done.status = CIO_MORE;
        }
    }
    return done.status == CIO_MORE ? done : end_copy(copy, done);
}

void
cio_copyfile_abandon(struct cio_copyfile *copy)
{
    if (copy->stage != CIO_COPY_DONE) {
        (void)end_copy(copy, cio_done_sys(EINTR, 0));
    }
}
