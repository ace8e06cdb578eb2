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
    *keys = (struct cio_zipcrypto){0x12345678, 0x23456789, 0x34567890};
    cio_zipcrypto_advance(keys, password, nbytes);
}

void
cio_zipcrypto_advance(struct cio_zipcrypto *keys, const uint8_t *plain,
                      size_t nbytes)
{
    const z_crc_t *table = get_crc_table();

    for (size_t i = 0; i < nbytes; i++) {
        update(table, keys, plain[i]);
    }
}

void
cio_zipcrypto_decrypt(struct cio_zipcrypto *keys, const uint8_t *in,
                      uint8_t *out, size_t nbytes)
{
    const z_crc_t *table = get_crc_table();
    uint32_t key0 = keys->key0, key1 = keys->key1, key2 = keys->key2;

    /* Each byte waits for the one before it: what counts is the length of the
     * chain from key2 to key2. So all that doesn't hang on it (key0 with the
     * next byte, key1 times its factor) is worked out beside it. */
    for (size_t i = 0; i < nbytes; i++) {
        const uint32_t aside = (key0 ^ in[i]) << 8;
        const uint32_t next1 = key1 * 134775813u + 1;
        const uint32_t product =
            (uint16_t)(key2 | 2) * (uint32_t)(uint16_t)((key2 ^ 1) | 2);

        out[i] = (uint8_t)(in[i] ^ (product >> 8));
        key0 =
            (uint32_t)table[(uint8_t)((product ^ aside) >> 8)] ^ (key0 >> 8);
        key1 = next1 + (key0 & 0xff) * 134775813u;
        key2 = (uint32_t)table[(key1 >> 24) ^ (key2 & 0xff)] ^ (key2 >> 8);
    }
    *keys = (struct cio_zipcrypto){key0, key1, key2};
}
