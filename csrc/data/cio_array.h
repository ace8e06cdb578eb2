/* SPDX-License-Identifier: MIT
 * cio_array.h - the bytes of many elements reversed, each in itself.
 *
 * Why      A value at a time costs a call each; whole arrays go at the speed
 *          of memory.
 * Owner    The caller's memory on both sides; dst == src is fine, any other
 *          overlap is not.
 * Units    nbytes is a multiple of width; width is 1, 2, 4, 8.
 * Threads  No state.
 */
#ifndef CIO_ARRAY_H
#define CIO_ARRAY_H

#include <stddef.h>
#include <stdint.h>

void cio_array_swap(void *dst, const void *src, size_t nbytes, unsigned width);

#endif
