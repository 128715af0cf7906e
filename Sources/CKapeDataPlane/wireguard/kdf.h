/* The hash, HMAC and key derivation functions of section 5.4 of the paper, all over BLAKE2s. */
#ifndef KDP_WIREGUARD_KDF_H
#define KDP_WIREGUARD_KDF_H

#include "wireguard/spec.h"

/* Hash(a || b). */
void kdp_wg_hash(uint8_t hash[KDP_WG_HASH_SIZE], const void *a, size_t a_size, const void *b, size_t b_size);

/* HMAC-BLAKE2s (RFC 2104 with a block of 64 bytes). `key_size` at most 64. */
void kdp_wg_hmac(uint8_t mac[KDP_WG_HASH_SIZE], const void *key, size_t key_size, const void *bytes, size_t size);

/* Kdf_1, Kdf_2 and Kdf_3 (HKDF, RFC 5869): as many of the outputs as are not NULL, from the first on. Outputs may be
   the chaining key itself. */
void kdp_wg_kdf(const uint8_t chaining_key[KDP_WG_HASH_SIZE], const void *input, size_t input_size, uint8_t *first,
                uint8_t *second, uint8_t *third);

#endif
