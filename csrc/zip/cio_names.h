/* SPDX-License-Identifier: MIT
 * cio_names.h - what is wrong with a member's name, and the path it leads to.
 *
 * Why      A name in an archive is anybody's bytes. One look at them says
 *          every rule that they break; who refuses what is the profile's
 *          business (cio_profile.h). The path that is written to comes from
 *          here alone, and can't leave the folder whatever the name was.
 * Owner    The caller owns all memory.
 * Units    Bytes of the name as the archive holds it, or UTF-8.
 * Threads  No state.
 */
#ifndef CIO_NAMES_H
#define CIO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cio_name_rule {
    CIO_NAME_EMPTY = 1 << 0,     /* no component at all */
    CIO_NAME_TRAVERSAL = 1 << 1, /* a component ".." */
    CIO_NAME_ABSOLUTE = 1 << 2,  /* starts with "/" */
    CIO_NAME_DRIVE = 1 << 3,     /* starts with a letter and ":" */
    CIO_NAME_UNC = 1 << 4,       /* starts with two slashes of either kind */
    CIO_NAME_BACKSLASH = 1 << 5,
    CIO_NAME_NUL = 1 << 6,
    CIO_NAME_CONTROL = 1 << 7, /* below U+0020, U+007F; not NUL */
};

/* The rules that the name breaks, or'ed; 0 for a plain one. Both slashes part
 * components: what a Windows reader takes for ".." counts as one. A final
 * slash marks a folder and is no component. */
unsigned cio_name_scan(const uint8_t *name, size_t nbytes);

/* The lowest rule in a set that isn't empty, as a word: "traversal". */
const char *cio_name_rule_text(unsigned rules);

/* The path below the target folder: components joined by one "/", those that
 * are empty, "." or ".." left out, as zipfile's extract does it, cut at the
 * first NUL. Returns its length and ends it with NUL; path has room for
 * nbytes + 1. 0: nothing is left. */
size_t cio_name_clean(const uint8_t *name, size_t nbytes, char *path);

/* True when a symbolic link that lies `depth` folders below the target may
 * point to text: relative, ".." only in front and no more than depth of them.
 * Then it can't lead outside, through other such links neither. */
bool cio_name_link_inside(const uint8_t *text, size_t nbytes, size_t depth);

#endif
