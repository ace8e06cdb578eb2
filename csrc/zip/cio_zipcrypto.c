/* SPDX-License-Identifier: MIT
 * cio_zipcrypto.c - APPNOTE 6.1, traditional PKWARE decryption.
 */
#include "zip/cio_zipcrypto.h"

#include <zlib.h>

/* zlib's table is the CRC-32 table of the format: crc of one byte. */
static inline uint32_t
crc_byte(const z_crc_t *table, uint32_t crc, uint8_t byte)
{
    return (uint32_t)table[(crc ^ byte) & 0xff] ^ (crc >> 8);
}

static inline void
update(const z_crc_t *table, struct cio_zipcrypto *keys, uint8_t plain)
{
    keys->key0 = crc_byte(table, keys->key0, plain);
    keys->key1 += keys->key0 & 0xff;
    keys->key1 = keys->key1 * 134775813u + 1;
    keys->key2 = crc_byte(table, keys->key2, (uint8_t)(keys->key1 >> 24));
}

void
cio_zipcrypto_init(struct cio_zipcrypto *keys, const uint8_t *password,
                   size_t nbytes)
{
    const z_crc_t *table = get_crc_table();

    *keys = (struct cio_zipcrypto){0x12345678, 0x23456789, 0x34567890};
    for (size_t i = 0; i < nbytes; i++) {
        update(table, keys, password[i]);
    }
}

void
cio_zipcrypto_decrypt(struct cio_zipcrypto *keys, const uint8_t *in,
                      uint8_t *out, size_t nbytes)
{
    const z_crc_t *table = get_crc_table();
    struct cio_zipcrypto k = *keys; /* in registers: out may alias keys */

    for (size_t i = 0; i < nbytes; i++) {
        const uint32_t t = (k.key2 | 2) & 0xffff;
        const uint8_t plain = (uint8_t)(in[i] ^ ((t * (t ^ 1)) >> 8));

        update(table, &k, plain);
        out[i] = plain;
    }
    *keys = k;
}
