#include <sodium.h>

#include "kdp/aead.h"

_Static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == KDP_XCHACHA_NONCE_SIZE, "24-byte nonces");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == KDP_AEAD_TAG_SIZE, "the tag is 16 bytes");

void kdp_xchacha_seal(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                      const uint8_t *source, size_t size, uint8_t *destination) {
  (void)crypto_aead_xchacha20poly1305_ietf_encrypt(destination, NULL, source, size, aad, aad_size, NULL, nonce, key);
}

kdp_status kdp_xchacha_open(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                            const uint8_t *source, size_t size, uint8_t *destination) {
  if (size < KDP_AEAD_TAG_SIZE) return KDP_TOO_SHORT;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(destination, NULL, NULL, source, size, aad, aad_size, nonce, key) != 0)
    return KDP_AUTHENTICATION_FAILED;
  return KDP_OK;
}
