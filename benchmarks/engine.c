/* SPDX-License-Identifier: MIT
 * The engine alone on the members of a file of records (compressed size, size,
 * raw DEFLATE bytes): inflate and CRC-32, nothing else. What ZipFile.read adds
 * to this is what Python, the directory and the system calls cost.
 *
 *     cc -O2 engine.c -ldeflate && ./a.out FILE ROUNDS cpu|clock
 *
 * Prints the best round's nanoseconds per member.
 */
#include <libdeflate.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double
now(int cpu)
{
    struct timespec t;

    clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int
main(int argc, char **argv)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    const int cpu = argc == 4 && strcmp(argv[3], "cpu") == 0;
    uint8_t *data, *out;
    long nbytes;
    double best = 1e300;
    uint32_t sum = 0;

    if (file == NULL || d == NULL) {
        return 2;
    }
    fseek(file, 0, SEEK_END);
    nbytes = ftell(file);
    rewind(file);
    data = malloc((size_t)nbytes);
    if (data == NULL || fread(data, 1, (size_t)nbytes, file) != (size_t)nbytes) {
        return 2;
    }
    for (int round = 0; round < atoi(argv[2]); round++) {
        const double start = now(cpu);
        double took;
        long members = 0;

        for (long at = 0; at < nbytes; members++) {
            uint32_t sizes[2];

            memcpy(sizes, data + at, 8);
            out = malloc(sizes[1] + 1);
            if (libdeflate_deflate_decompress(d, data + at + 8, sizes[0], out,
                                              sizes[1], NULL)
                != LIBDEFLATE_SUCCESS) {
                return 1;
            }
            sum += libdeflate_crc32(0, out, sizes[1]);
            free(out);
            at += 8 + sizes[0];
        }
        took = (now(cpu) - start) / (double)members;
        best = took < best ? took : best;
    }
    printf("%.1f %u\n", best, sum);
    return 0;
}
