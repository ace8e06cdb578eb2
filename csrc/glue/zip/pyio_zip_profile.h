/* SPDX-License-Identifier: MIT
 * pyio_zip_profile.h - members admitted by a profile, wherever the archive's
 * bytes come from.
 *
 * Owner    Profiles belong to the archive.
 * Errors   -1 or NULL with an exception set.
 * Threads  With the GIL; reads detached.
 */
#ifndef PYIO_ZIP_PROFILE_H
#define PYIO_ZIP_PROFILE_H

#include "glue/zip/pyio_zip.h"
#include "zip/cio_profile.h"

/* The index of a member that was given as ZipInfo: by offset and raw name;
 * UINT32_MAX where the directory has no such member. */
uint32_t pyio_member_index(const struct pyio_archive *archive,
                           const struct cio_entry *entry);
/* BadZipFile where the profile refuses the member. */
int pyio_archive_admit(struct pyio_state *st, struct pyio_archive *archive,
                       struct cio_profile *profile,
                       const struct cio_entry *entry, PyObject *name);
/* A Limits, in the order of its fields. */
int pyio_as_bounds(PyObject *limits, struct pyio_bounds *bounds);
/* LimitError where a member is beyond them: before memory is taken. */
int pyio_bounds_check(struct pyio_state *st, struct pyio_archive *archive,
                      const struct pyio_bounds *bounds,
                      const struct cio_entry *entry, PyObject *name);
/* The same, and adds the member to the total of a call. */
int pyio_bounds_add(struct pyio_state *st, struct pyio_archive *archive,
                    const struct pyio_bounds *bounds,
                    const struct cio_entry *entry, PyObject *name,
                    uint64_t *total);
/* The directory as a whole. */
int pyio_bounds_directory(struct pyio_state *st, struct pyio_archive *archive,
                          const struct pyio_bounds *bounds);
/* Every member against the archive's own. */
int pyio_bounds_all(struct pyio_state *st, struct pyio_archive *archive);
/* The archive's own profile, at least safe; NULL with MemoryError. */
struct cio_profile *pyio_archive_extraction(struct pyio_archive *archive);

#endif
