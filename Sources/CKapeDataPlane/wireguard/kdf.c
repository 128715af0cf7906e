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

/* What HMAC does with its key before it sees a message. */
typedef struct hmac_key {
  kdp_blake2s inner, outer;
} hmac_key;

static void hmac_start(hmac_key *hmac, const void *key, size_t key_size) {
  uint8_t pad[KDP_BLAKE2S_BLOCK_SIZE] = {0};
  memcpy(pad, key, key_size);
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36;
  kdp_blake2s_start(&hmac->inner, KDP_WG_HASH_SIZE, NULL, 0);
  kdp_blake2s_update(&hmac->inner, pad, sizeof pad);
  for (size_t i = 0; i < sizeof pad; i++)
    pad[i] ^= 0x36 ^ 0x5c;
  kdp_blake2s_start(&hmac->outer, KDP_WG_HASH_SIZE, NULL, 0);
  kdp_blake2s_update(&hmac->outer, pad, sizeof pad);
  kdp_wipe(pad, sizeof pad);
}

/* Of a || b. Ends `hmac`. */
static void hmac_finish(hmac_key *hmac, const void *a, size_t a_size, const void *b, size_t b_size,
                        uint8_t mac[KDP_WG_HASH_SIZE]) {
  uint8_t inner[KDP_WG_HASH_SIZE];
  kdp_blake2s_update(&hmac->inner, a, a_size);
  kdp_blake2s_update(&hmac->inner, b, b_size);
  kdp_blake2s_finish(&hmac->inner, inner);
  kdp_blake2s_update(&hmac->outer, inner, sizeof inner);
  kdp_blake2s_finish(&hmac->outer, mac);
  kdp_wipe(inner, sizeof inner);
}

void kdp_wg_hmac(uint8_t mac[KDP_WG_HASH_SIZE], const void *key, size_t key_size, const void *bytes, size_t size) {
  hmac_key hmac;
  hmac_start(&hmac, key, key_size);
  hmac_finish(&hmac, bytes, size, NULL, 0, mac);
}

void kdp_wg_kdf(const uint8_t chaining_key[KDP_WG_HASH_SIZE], const void *input, size_t input_size, uint8_t *first,
                uint8_t *second, uint8_t *third) {
  uint8_t secret[KDP_WG_HASH_SIZE], output[KDP_WG_HASH_SIZE];
  uint8_t *const wanted[3] = {first, second, third};
  kdp_wg_hmac(secret, chaining_key, KDP_WG_HASH_SIZE, input, input_size);
  hmac_key extracted;
  hmac_start(&extracted, secret, sizeof secret);
  kdp_blake2s_go_on(&extracted.inner); /* no output is made of nothing: there is always a number to follow */
  kdp_blake2s_go_on(&extracted.outer);
  for (uint8_t i = 0; i < 3 && wanted[i]; i++) {
    uint8_t number = (uint8_t)(i + 1);
    hmac_key hmac = extracted;
    hmac_finish(&hmac, output, i == 0 ? 0 : sizeof output, &number, 1, output);
    memcpy(wanted[i], output, sizeof output);
  }
  kdp_wipe(&extracted, sizeof extracted);
  kdp_wipe(secret, sizeof secret);
  kdp_wipe(output, sizeof output);
}
