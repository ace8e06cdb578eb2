/* SPDX-License-Identifier: MIT
 * zip_build.h - archives made in memory, and opened as glue opens them.
 */
#ifndef ZIP_BUILD_H
#define ZIP_BUILD_H

#include "zip/cio_directory.h"

struct zip_build {
    uint8_t *data, *central;
    size_t nbytes, central_nbytes, capacity, central_capacity;
    unsigned count;
};

void zip_add(struct zip_build *b, const char *name, const uint8_t *plain,
             size_t nbytes, unsigned method);
void zip_finish(struct zip_build *b, size_t comment_nbytes);
void zip_drop(struct zip_build *b);

extern const struct cio_zip_bounds zip_unbounded;
enum cio_status zip_load(struct cio_directory *d, const uint8_t *data,
                         size_t nbytes, const struct cio_zip_bounds *bounds,
                         struct cio_zip_problem *problem);

/* Text of a few letters; from malloc. */
uint8_t *zip_text(size_t nbytes, unsigned seed);
/* A file of it in the test's folder; the descriptor. */
int zip_write(const uint8_t *data, size_t nbytes);

#endif
