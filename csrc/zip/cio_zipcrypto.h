/* SPDX-License-Identifier: MIT
 * cio_zipcrypto.h - the traditional encryption of ZIP archives, decrypting.
 *
 * Why      Archives with passwords exist and are read; three keys that follow
 *          the plain bytes cost Python half a microsecond a byte. The cipher
 *          protects nothing against a known-plaintext attack.
 * Owner    The caller owns keys and buffers.
 * Units    Bytes.
 * Errors   The check byte tells a wrong password in 255 of 256 cases; the CRC
 *          behind the data tells the rest.
 * Threads  No state but the keys.
 */
#ifndef CIO_ZIPCRYPTO_H
#define CIO_ZIPCRYPTO_H

#include <stddef.h>
#include <stdint.h>

/* Random bytes in front of a member's data; the last one is the check byte. */
#define CIO_ZIPCRYPTO_HEADER_NBYTES 12

struct cio_zipcrypto {
    uint32_t key0, key1, key2;
};

void cio_zipcrypto_init(struct cio_zipcrypto *keys, const uint8_t *password,
                        size_t nbytes);
/* Moves the keys over plain bytes that are known already. */
void cio_zipcrypto_advance(struct cio_zipcrypto *keys, const uint8_t *plain,
                           size_t nbytes);
/* In place is fine: out == in. */
void cio_zipcrypto_decrypt(struct cio_zipcrypto *keys, const uint8_t *in,
                           uint8_t *out, size_t nbytes);

#endif
