#include "wireguard/noise.h"

#include <sodium.h>

#include "core/wipe.h"
#include "wireguard/kdf.h"

static_assert(crypto_scalarmult_curve25519_BYTES == KDP_WG_KEY_SIZE, "X25519");
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == KDP_WG_TAG_SIZE, "RFC 8439");

/* Every handshake key seals one text: the nonce is zero. */
static const uint8_t zero_nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

kdp_status kdp_wg_dh(uint8_t secret[KDP_WG_KEY_SIZE], const uint8_t private_key[KDP_WG_KEY_SIZE],
                     const uint8_t public_key[KDP_WG_KEY_SIZE]) {
  int failed = crypto_scalarmult_curve25519(secret, private_key, public_key);
  if (failed || kdp_is_zero(secret, KDP_WG_KEY_SIZE)) {
    kdp_wipe(secret, KDP_WG_KEY_SIZE);
    return KDP_LOW_ORDER_KEY;
  }
  return KDP_OK;
}

static void mix_hash(uint8_t hash[KDP_WG_HASH_SIZE], const void *bytes, size_t size) {
  kdp_wg_hash(hash, hash, KDP_WG_HASH_SIZE, bytes, size);
}

/* C and H of section 5.4.2 before anything was sent to `responder_static`. */
static void start_hash(uint8_t hash[KDP_WG_HASH_SIZE], const uint8_t responder_static[KDP_WG_KEY_SIZE]) {
  kdp_wg_hash(hash, KDP_WG_CONSTRUCTION, sizeof KDP_WG_CONSTRUCTION - 1, NULL, 0);
  mix_hash(hash, KDP_WG_IDENTIFIER, sizeof KDP_WG_IDENTIFIER - 1);
  mix_hash(hash, responder_static, KDP_WG_KEY_SIZE);
}

static void start_chaining_key(uint8_t chaining_key[KDP_WG_HASH_SIZE]) {
  kdp_wg_hash(chaining_key, KDP_WG_CONSTRUCTION, sizeof KDP_WG_CONSTRUCTION - 1, NULL, 0);
}

/* Tokens "e": the ephemeral goes into both. */
static void mix_ephemeral(uint8_t chaining_key[KDP_WG_HASH_SIZE], uint8_t hash[KDP_WG_HASH_SIZE],
                          const uint8_t ephemeral[KDP_WG_KEY_SIZE]) {
  mix_hash(hash, ephemeral, KDP_WG_KEY_SIZE);
  kdp_wg_kdf(chaining_key, ephemeral, KDP_WG_KEY_SIZE, chaining_key, NULL, NULL);
}

/* Tokens of two letters: a shared secret goes into the chaining key, and out comes a key where one is wanted. */
static kdp_status mix_dh(uint8_t chaining_key[KDP_WG_HASH_SIZE], uint8_t *key,
                         const uint8_t private_key[KDP_WG_KEY_SIZE], const uint8_t public_key[KDP_WG_KEY_SIZE]) {
  uint8_t secret[KDP_WG_KEY_SIZE];
  kdp_status status = kdp_wg_dh(secret, private_key, public_key);
  if (status == KDP_OK) kdp_wg_kdf(chaining_key, secret, sizeof secret, chaining_key, key, NULL);
  kdp_wipe(secret, sizeof secret);
  return status;
}

/* Token "psk": section 5.4.3. */
static void mix_preshared_key(uint8_t chaining_key[KDP_WG_HASH_SIZE], uint8_t hash[KDP_WG_HASH_SIZE],
                              uint8_t key[KDP_WG_KEY_SIZE], const uint8_t preshared_key[KDP_WG_KEY_SIZE]) {
  uint8_t temporary[KDP_WG_HASH_SIZE];
  kdp_wg_kdf(chaining_key, preshared_key, KDP_WG_KEY_SIZE, chaining_key, temporary, key);
  mix_hash(hash, temporary, sizeof temporary);
  kdp_wipe(temporary, sizeof temporary);
}

/* Seals with the hash as additional data; the sealed text then goes into the hash. */
static void seal_and_mix(uint8_t hash[KDP_WG_HASH_SIZE], const uint8_t key[KDP_WG_KEY_SIZE], const uint8_t *text,
                         size_t size, uint8_t *sealed) {
  crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, text, size, hash, KDP_WG_HASH_SIZE, NULL, zero_nonce, key);
  mix_hash(hash, sealed, size + KDP_WG_TAG_SIZE);
}

static kdp_status open_and_mix(uint8_t hash[KDP_WG_HASH_SIZE], const uint8_t key[KDP_WG_KEY_SIZE],
                               const uint8_t *sealed, size_t sealed_size, uint8_t *text) {
  if (crypto_aead_chacha20poly1305_ietf_decrypt(text, NULL, NULL, sealed, sealed_size, hash, KDP_WG_HASH_SIZE,
                                                zero_nonce, key))
    return KDP_AUTHENTICATION_FAILED;
  mix_hash(hash, sealed, sealed_size);
  return KDP_OK;
}

void kdp_wg_identity_set(kdp_wg_identity *identity, const uint8_t private_key[KDP_WG_KEY_SIZE]) {
  kdp_wipe(identity, sizeof *identity);
  if (kdp_is_zero(private_key, KDP_WG_KEY_SIZE)) return;
  identity->present = true;
  memcpy(identity->private_key, private_key, KDP_WG_KEY_SIZE);
  identity->private_key[0] &= 248;
  identity->private_key[31] = (uint8_t)((identity->private_key[31] & 127) | 64);
  crypto_scalarmult_curve25519_base(identity->public_key, identity->private_key);
  start_hash(identity->initial_hash, identity->public_key);
}

kdp_status kdp_wg_initiation_create(const kdp_wg_identity *identity, const uint8_t remote_static[KDP_WG_KEY_SIZE],
                                    const uint8_t static_static[KDP_WG_KEY_SIZE],
                                    const uint8_t ephemeral_private[KDP_WG_KEY_SIZE],
                                    const uint8_t timestamp[KDP_WG_TIMESTAMP_SIZE], kdp_wg_handshake *handshake,
                                    kdp_wg_initiation *message) {
  uint8_t key[KDP_WG_KEY_SIZE];
  memcpy(handshake->ephemeral_private, ephemeral_private, KDP_WG_KEY_SIZE);
  start_chaining_key(handshake->chaining_key);
  start_hash(handshake->hash, remote_static);
  kdp_store_le32(message->type, KDP_WG_INITIATION);

  /* e */
  crypto_scalarmult_curve25519_base(message->ephemeral, ephemeral_private);
  mix_ephemeral(handshake->chaining_key, handshake->hash, message->ephemeral);
  /* es */
  kdp_status status = mix_dh(handshake->chaining_key, key, ephemeral_private, remote_static);
  if (status == KDP_OK) {
    /* s */
    seal_and_mix(handshake->hash, key, identity->public_key, KDP_WG_KEY_SIZE, message->sealed_static);
    /* ss */
    kdp_wg_kdf(handshake->chaining_key, static_static, KDP_WG_KEY_SIZE, handshake->chaining_key, key, NULL);
    seal_and_mix(handshake->hash, key, timestamp, KDP_WG_TIMESTAMP_SIZE, message->sealed_timestamp);
  } else {
    kdp_wipe(handshake, sizeof *handshake);
  }
  kdp_wipe(key, sizeof key);
  return status;
}

kdp_status kdp_wg_initiation_open_static(const kdp_wg_identity *identity, const kdp_wg_initiation *message,
                                         kdp_wg_reception *reception) {
  uint8_t key[KDP_WG_KEY_SIZE];
  memcpy(reception->hash, identity->initial_hash, KDP_WG_HASH_SIZE);
  start_chaining_key(reception->chaining_key);
  memcpy(reception->remote_ephemeral, message->ephemeral, KDP_WG_KEY_SIZE);
  mix_ephemeral(reception->chaining_key, reception->hash, message->ephemeral);
  kdp_status status = mix_dh(reception->chaining_key, key, identity->private_key, message->ephemeral);
  if (status == KDP_OK)
    status = open_and_mix(reception->hash, key, message->sealed_static, sizeof message->sealed_static,
                          reception->remote_static);
  kdp_wipe(key, sizeof key);
  return status;
}

kdp_status kdp_wg_initiation_open_timestamp(const kdp_wg_initiation *message,
                                            const uint8_t static_static[KDP_WG_KEY_SIZE], kdp_wg_reception *reception) {
  uint8_t key[KDP_WG_KEY_SIZE];
  kdp_wg_kdf(reception->chaining_key, static_static, KDP_WG_KEY_SIZE, reception->chaining_key, key, NULL);
  kdp_status status = open_and_mix(reception->hash, key, message->sealed_timestamp, sizeof message->sealed_timestamp,
                                   reception->timestamp);
  kdp_wipe(key, sizeof key);
  return status;
}

kdp_status kdp_wg_response_create(kdp_wg_reception *reception, const uint8_t preshared_key[KDP_WG_KEY_SIZE],
                                  const uint8_t ephemeral_private[KDP_WG_KEY_SIZE], kdp_wg_response *message,
                                  kdp_wg_session_keys *keys) {
  uint8_t key[KDP_WG_KEY_SIZE];
  kdp_store_le32(message->type, KDP_WG_RESPONSE);
  /* e */
  crypto_scalarmult_curve25519_base(message->ephemeral, ephemeral_private);
  mix_ephemeral(reception->chaining_key, reception->hash, message->ephemeral);
  /* ee, se */
  kdp_status status = mix_dh(reception->chaining_key, NULL, ephemeral_private, reception->remote_ephemeral);
  if (status == KDP_OK) status = mix_dh(reception->chaining_key, NULL, ephemeral_private, reception->remote_static);
  if (status == KDP_OK) {
    mix_preshared_key(reception->chaining_key, reception->hash, key, preshared_key);
    seal_and_mix(reception->hash, key, NULL, 0, message->sealed_nothing);
    /* Section 5.4.5: the initiator sends with the first key. */
    kdp_wg_kdf(reception->chaining_key, NULL, 0, keys->receive, keys->send, NULL);
  }
  kdp_wipe(key, sizeof key);
  return status;
}

void kdp_wg_reception_wipe(kdp_wg_reception *reception) {
  kdp_wipe(reception, sizeof *reception);
}

kdp_status kdp_wg_response_consume(const kdp_wg_identity *identity, kdp_wg_handshake *handshake,
                                   const uint8_t preshared_key[KDP_WG_KEY_SIZE], const kdp_wg_response *message,
                                   kdp_wg_session_keys *keys) {
  uint8_t key[KDP_WG_KEY_SIZE];
  kdp_wg_handshake next = *handshake;
  /* e */
  mix_ephemeral(next.chaining_key, next.hash, message->ephemeral);
  /* ee, se */
  kdp_status status = mix_dh(next.chaining_key, NULL, next.ephemeral_private, message->ephemeral);
  if (status == KDP_OK) status = mix_dh(next.chaining_key, NULL, identity->private_key, message->ephemeral);
  if (status == KDP_OK) {
    mix_preshared_key(next.chaining_key, next.hash, key, preshared_key);
    status = open_and_mix(next.hash, key, message->sealed_nothing, sizeof message->sealed_nothing, NULL);
  }
  if (status == KDP_OK) {
    kdp_wg_kdf(next.chaining_key, NULL, 0, keys->send, keys->receive, NULL);
    kdp_wipe(handshake, sizeof *handshake);
  }
  kdp_wipe(&next, sizeof next);
  kdp_wipe(key, sizeof key);
  return status;
}
