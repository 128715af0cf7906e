/* The ChaCha20 form of the record-number mask (RFC 9147 section 4.2.3, as RFC 9001 section 5.4.4): the first 16 bytes
   of the block that the sample's first four bytes number (little endian) under its other twelve as nonce. */
#ifndef KDP_AEAD_CHACHA_MASK_H
#define KDP_AEAD_CHACHA_MASK_H
#include "kdp/aead.h"

void kdp_aead_chacha_mask(kdp_aead_worker *worker, const uint8_t *key, const uint8_t *const *sample,
                          uint8_t (*mask)[KDP_AEAD_MASK_SIZE], uint32_t count);
#endif
