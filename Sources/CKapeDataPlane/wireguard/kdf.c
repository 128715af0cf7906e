#include "wireguard/kdf.h"

#include <string.h>

#include "core/wipe.h"
#include "wireguard/blake2s.h"

void kdp_wg_hash(uint8_t hash[KDP_WG_HASH_SIZE], const void *a, size_t a_size, const void *b, size_t b_size) {
  kdp_blake2s state;
  kdp_blake2s_start(&state, KDP_WG_HASH_SIZE, NULL, 0);
  kdp_blake2s_update(&state, a, a_size);
  kdp_blake2s_update(&state, b, b_size);
  kdp_blake2s_finish(&state, hash);
}

/* HMAC of a || b: the pieces that HKDF needs. */
static void hmac_of_two(uint8_t mac[KDP_WG_HASH_SIZE], const void *key, size_t key_size, const void *a, size_t a_size,
                        const void *b, size_t b_size) {
  kdp_blake2s state;
  uint8_t pad[KDP_BLAKE2S_BLOCK_SIZE] = {0}, inner[KDP_WG_HASH_SIZE];
  memcpy(pad, key, key_size);
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36;
  kdp_blake2s_start(&state, KDP_WG_HASH_SIZE, NULL, 0);
  kdp_blake2s_update(&state, pad, sizeof pad);
  kdp_blake2s_update(&state, a, a_size);
  kdp_blake2s_update(&state, b, b_size);
  kdp_blake2s_finish(&state, inner);
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36 ^ 0x5c;
  kdp_blake2s_start(&state, KDP_WG_HASH_SIZE, NULL, 0);
  kdp_blake2s_update(&state, pad, sizeof pad);
  kdp_blake2s_update(&state, inner, sizeof inner);
  kdp_blake2s_finish(&state, mac);
  kdp_wipe(pad, sizeof pad);
  kdp_wipe(inner, sizeof inner);
}

void kdp_wg_hmac(uint8_t mac[KDP_WG_HASH_SIZE], const void *key, size_t key_size, const void *bytes, size_t size) {
  hmac_of_two(mac, key, key_size, bytes, size, NULL, 0);
}

void kdp_wg_kdf(const uint8_t chaining_key[KDP_WG_HASH_SIZE], const void *input, size_t input_size, uint8_t *first,
                uint8_t *second, uint8_t *third) {
  uint8_t secret[KDP_WG_HASH_SIZE], output[KDP_WG_HASH_SIZE];
  uint8_t *const wanted[3] = {first, second, third};
  kdp_wg_hmac(secret, chaining_key, KDP_WG_HASH_SIZE, input, input_size);
  for (uint8_t i = 0; i < 3 && wanted[i]; i++) {
    uint8_t number = (uint8_t)(i + 1);
    hmac_of_two(output, secret, sizeof secret, output, i == 0 ? 0 : sizeof output, &number, 1);
    memcpy(wanted[i], output, sizeof output);
  }
  kdp_wipe(secret, sizeof secret);
  kdp_wipe(output, sizeof output);
}
