/* SPDX-License-Identifier: MIT
 * cio_internal.h - what the files of base/ say only to each other.
 */
#ifndef CIO_INTERNAL_H
#define CIO_INTERNAL_H

/* In the child of a fork: what the parent's threads held is out of reach, so
 * locks are made new, and lists and threads forgotten. */
void cio_pool_forget(void);
void cio_workers_forget(void);

#endif
