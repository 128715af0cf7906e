/* BLAKE2s (RFC 7693), unkeyed and keyed, in one piece or in several. */
#ifndef KDP_WIREGUARD_BLAKE2S_H
#define KDP_WIREGUARD_BLAKE2S_H

#include "kdp/base.h"

enum { KDP_BLAKE2S_BLOCK_SIZE = 64, KDP_BLAKE2S_HASH_SIZE = 32 };

typedef struct kdp_blake2s {
  uint32_t h[8];
  uint64_t compressed; /* bytes that went through the compression function */
  uint8_t block[KDP_BLAKE2S_BLOCK_SIZE];
  uint32_t filled; /* bytes in `block`; a full block waits until it is known not to be the last */
  uint32_t hash_size;
} kdp_blake2s;

/* `hash_size` 1 to 32; `key_size` 0 to 32. */
void kdp_blake2s_start(kdp_blake2s *state, uint32_t hash_size, const void *key, uint32_t key_size);
void kdp_blake2s_update(kdp_blake2s *state, const void *bytes, size_t size);
/* After whole blocks: the last one is no longer held back, as more is sure to follow. For a state that several hashes
   begin with. */
void kdp_blake2s_go_on(kdp_blake2s *state);
/* Writes hash_size bytes and wipes the state. */
void kdp_blake2s_finish(kdp_blake2s *state, uint8_t *hash);

/* A keyed hash (section 5.4 of the paper: Mac) of one piece. */
void kdp_blake2s_mac(uint8_t *mac, uint32_t mac_size, const void *key, uint32_t key_size, const void *bytes,
                     size_t size);

#endif
