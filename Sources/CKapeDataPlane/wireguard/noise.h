/* Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s as WireGuard uses it (section 5.4 of the paper), both roles. Pure functions
   over keys and messages: no peer, no timer, no MAC fields.

   An initiator keeps a kdp_wg_handshake between its message and the answer. A responder answers at once and keeps
   nothing. */
#ifndef KDP_WIREGUARD_NOISE_H
#define KDP_WIREGUARD_NOISE_H

#include "wireguard/messages.h"

/* Our own static key pair and what follows from its public half. */
typedef struct kdp_wg_identity {
  bool present;
  uint8_t private_key[KDP_WG_KEY_SIZE]; /* clamped */
  uint8_t public_key[KDP_WG_KEY_SIZE];
  uint8_t initial_hash[KDP_WG_HASH_SIZE]; /* H after mixing our public key: what every initiation to us starts from */
} kdp_wg_identity;

/* A zero private key: none. */
void kdp_wg_identity_set(kdp_wg_identity *identity, const uint8_t private_key[KDP_WG_KEY_SIZE]);

/* X25519; LOW_ORDER_KEY when the result is zero (a public key of low order). */
kdp_status kdp_wg_dh(uint8_t secret[KDP_WG_KEY_SIZE], const uint8_t private_key[KDP_WG_KEY_SIZE],
                     const uint8_t public_key[KDP_WG_KEY_SIZE]) KDP_MUST_USE;

/* Keys of a session as its two ends name them. */
typedef struct kdp_wg_session_keys {
  uint8_t send[KDP_WG_KEY_SIZE], receive[KDP_WG_KEY_SIZE];
} kdp_wg_session_keys;

/* What an initiator remembers until the response. */
typedef struct kdp_wg_handshake {
  uint8_t ephemeral_private[KDP_WG_KEY_SIZE];
  uint8_t hash[KDP_WG_HASH_SIZE];
  uint8_t chaining_key[KDP_WG_HASH_SIZE];
} kdp_wg_handshake;

/* Writes type, ephemeral, static and timestamp; `sender` and the MACs are the caller's. `ephemeral_private` is 32
   random bytes; `static_static` is kdp_wg_dh of both static keys. OK or LOW_ORDER_KEY. */
kdp_status kdp_wg_initiation_create(const kdp_wg_identity *identity, const uint8_t remote_static[KDP_WG_KEY_SIZE],
                                    const uint8_t static_static[KDP_WG_KEY_SIZE],
                                    const uint8_t ephemeral_private[KDP_WG_KEY_SIZE],
                                    const uint8_t timestamp[KDP_WG_TIMESTAMP_SIZE], kdp_wg_handshake *handshake,
                                    kdp_wg_initiation *message) KDP_MUST_USE;

/* A responder's state while it reads an initiation and writes its answer. Wipe it (kdp_wg_reception_wipe). */
typedef struct kdp_wg_reception {
  uint8_t remote_static[KDP_WG_KEY_SIZE];
  uint8_t remote_ephemeral[KDP_WG_KEY_SIZE];
  uint8_t timestamp[KDP_WG_TIMESTAMP_SIZE];
  uint8_t hash[KDP_WG_HASH_SIZE];
  uint8_t chaining_key[KDP_WG_HASH_SIZE];
} kdp_wg_reception;

/* First half: one multiplication, after which remote_static says who it claims to be. OK, AUTHENTICATION_FAILED or
   LOW_ORDER_KEY. */
kdp_status kdp_wg_initiation_open_static(const kdp_wg_identity *identity, const kdp_wg_initiation *message,
                                         kdp_wg_reception *reception) KDP_MUST_USE;
/* Second half, with the secret of both static keys: proves the sender and gives the timestamp. */
kdp_status kdp_wg_initiation_open_timestamp(const kdp_wg_initiation *message,
                                            const uint8_t static_static[KDP_WG_KEY_SIZE],
                                            kdp_wg_reception *reception) KDP_MUST_USE;
/* Writes type, ephemeral and the empty sealed text; `sender`, `receiver` and the MACs are the caller's. */
kdp_status kdp_wg_response_create(kdp_wg_reception *reception, const uint8_t preshared_key[KDP_WG_KEY_SIZE],
                                  const uint8_t ephemeral_private[KDP_WG_KEY_SIZE], kdp_wg_response *message,
                                  kdp_wg_session_keys *keys) KDP_MUST_USE;
void kdp_wg_reception_wipe(kdp_wg_reception *reception);

/* The initiator's last step. The handshake is left as it was unless the result is OK, after which it is wiped. */
kdp_status kdp_wg_response_consume(const kdp_wg_identity *identity, kdp_wg_handshake *handshake,
                                   const uint8_t preshared_key[KDP_WG_KEY_SIZE], const kdp_wg_response *message,
                                   kdp_wg_session_keys *keys) KDP_MUST_USE;

#endif
