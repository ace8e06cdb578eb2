/* SPDX-License-Identifier: MIT
 * cio_fork.h - the number of forks between the first process and this one.
 *
 * Why      A child of fork has its parent's memory and none of its threads:
 *          locks are free there, the pool empty, no workers. Whatever holds
 *          state of a call under way compares the generation it noted.
 * Threads  cio_fork_init once, at load.
 */
#ifndef CIO_FORK_H
#define CIO_FORK_H

extern unsigned cio_fork_generation;

/* Installs the handlers; 0, or an errno. Further calls do nothing. */
int cio_fork_init(void);

#endif
