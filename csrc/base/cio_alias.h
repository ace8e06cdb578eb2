/* SPDX-License-Identifier: MIT
 * cio_alias.h - reads whose target lies just behind their source.
 *
 * Why      `rep movsb`, by which kernels and C libraries copy, stores ahead of
 *          its loads. Where target minus source is 1 to 15 bytes modulo a
 *          page, AMD's Zen takes each store for one of the next load's bytes
 *          and copies at 3 GB/s in place of 18. A page of the page cache and
 *          the file have the same offsets in a page, so a file's offset and
 *          the result's address decide: a WAV's data read behind its header
 *          of 44 bytes, a stored zip member with a short name. Such a read
 *          goes through the stack. benchmarks/test_io.py::offsets.
 * Owner    Nothing is owned here.
 * Units    Bytes.
 * Errors   As pread: what came before an error counts.
 * Threads  Any.
 */
#ifndef CIO_ALIAS_H
#define CIO_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Such a copy is slow on this CPU (measured at the first question), and buf
 * and off make it one. */
bool cio_alias_is_slow(const void *buf, size_t nbytes, off_t off);

/* pread, or a call like it, in pieces by way of the stack. */
ssize_t cio_alias_pread(ssize_t (*call)(int, void *, size_t, off_t), int fd,
                        void *buf, size_t nbytes, off_t off);

#endif
