/* AEAD written as the standards write it, byte by byte and slowly: what the providers are held against. Not constant
   time; for tests only. */
#ifndef KDP_TEST_REFERENCE_AEAD_H
#define KDP_TEST_REFERENCE_AEAD_H
#include "kdp/aead.h"

size_t reference_key_size(kdp_aead_algorithm algorithm);
/* `source` and `destination` are equal or do not overlap. */
void reference_seal(kdp_aead_algorithm algorithm, const uint8_t *key, const uint8_t nonce[12], const uint8_t *aad,
                    size_t aad_size, const uint8_t *source, size_t size, uint8_t *destination, uint8_t tag[16]);
/* RFC 9147 section 4.2.3. */
void reference_mask(kdp_aead_algorithm algorithm, const uint8_t *key, const uint8_t sample[16], uint8_t mask[16]);
/* draft-irtf-cfrg-xchacha-03; `destination` has size + 16 bytes. */
void reference_xchacha_seal(const uint8_t key[32], const uint8_t nonce[24], const uint8_t *aad, size_t aad_size,
                            const uint8_t *source, size_t size, uint8_t *destination);
#endif
