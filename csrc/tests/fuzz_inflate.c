/* SPDX-License-Identifier: MIT
 * fuzz_inflate.c - the decoder, by every engine, against zlib.
 *
 * PYIO_CHUNKED_ENGINE forces an engine; -runs and corpus as libFuzzer has it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "inflate/cio_engine.h"
#include "tests/inflate_model.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *const forced = getenv("PYIO_CHUNKED_ENGINE");

    (void)argc;
    (void)argv;
    if (!cio_engine_init(forced == NULL || *forced == '\0' ? NULL : forced)) {
        fputs("PYIO_CHUNKED_ENGINE names no engine\n", stderr);
        exit(2);
    }
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *const wrong = inflate_model(data, nbytes);

    if (wrong != NULL) {
        fprintf(stderr, "%s\n", wrong);
        abort();
    }
    return 0;
}
