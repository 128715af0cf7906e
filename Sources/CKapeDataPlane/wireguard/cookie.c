#include "wireguard/cookie.h"

#include "core/wipe.h"
#include "kdp/aead.h"
#include "wireguard/blake2s.h"
#include "wireguard/kdf.h"

enum { LABEL_SIZE = 8 };
static_assert(sizeof KDP_WG_LABEL_MAC1 - 1 == LABEL_SIZE, "section 5.4");
static_assert(sizeof KDP_WG_LABEL_COOKIE - 1 == LABEL_SIZE, "section 5.4");

void kdp_wg_label_key(uint8_t key[KDP_WG_KEY_SIZE], const char *label, const uint8_t public_key[KDP_WG_KEY_SIZE]) {
  kdp_wg_hash(key, label, LABEL_SIZE, public_key, KDP_WG_KEY_SIZE);
}

static const kdp_wg_macs *macs_of(const uint8_t *message, size_t size) {
  return (const kdp_wg_macs *)(message + size - sizeof(kdp_wg_macs));
}

/* MAC1 covers all before it, MAC2 all before it with MAC1. */
static void make_mac1(uint8_t mac[KDP_WG_MAC_SIZE], const uint8_t key[KDP_WG_KEY_SIZE], const uint8_t *message,
                      size_t size) {
  kdp_blake2s_mac(mac, KDP_WG_MAC_SIZE, key, KDP_WG_KEY_SIZE, message, size - sizeof(kdp_wg_macs));
}
static void make_mac2(uint8_t mac[KDP_WG_MAC_SIZE], const uint8_t cookie[KDP_WG_COOKIE_SIZE], const uint8_t *message,
                      size_t size) {
  kdp_blake2s_mac(mac, KDP_WG_MAC_SIZE, cookie, KDP_WG_COOKIE_SIZE, message, size - KDP_WG_MAC_SIZE);
}

void kdp_wg_cookie_checker_set(kdp_wg_cookie_checker *checker, const uint8_t public_key[KDP_WG_KEY_SIZE]) {
  kdp_wipe(checker, sizeof *checker);
  kdp_wg_label_key(checker->mac1_key, KDP_WG_LABEL_MAC1, public_key);
  kdp_wg_label_key(checker->reply_key, KDP_WG_LABEL_COOKIE, public_key);
}

bool kdp_wg_mac1_valid(const kdp_wg_cookie_checker *checker, const uint8_t *message, size_t size) {
  uint8_t mac[KDP_WG_MAC_SIZE];
  make_mac1(mac, checker->mac1_key, message, size);
  return kdp_equal_secret(mac, macs_of(message, size)->mac1, sizeof mac);
}

/* Mac(secret, address || port): no memory is needed to know it again. */
static void make_cookie(kdp_wg_cookie_checker *checker, const kdp_address *source, const kdp_host *host, uint64_t boot,
                        uint8_t cookie[KDP_WG_COOKIE_SIZE]) {
  if (checker->secret_birth == 0 || boot - checker->secret_birth >= KDP_WG_COOKIE_TIME) {
    host->random(host->context, checker->secret, sizeof checker->secret);
    checker->secret_birth = boot ? boot : 1;
  }
  uint8_t port[2];
  kdp_store_be16(port, source->port);
  kdp_blake2s state;
  kdp_blake2s_start(&state, KDP_WG_COOKIE_SIZE, checker->secret, sizeof checker->secret);
  kdp_blake2s_update(&state, source->bytes, source->family == KDP_FAMILY_IPV4 ? 4 : 16);
  kdp_blake2s_update(&state, port, sizeof port);
  kdp_blake2s_finish(&state, cookie);
}

bool kdp_wg_mac2_valid(kdp_wg_cookie_checker *checker, const uint8_t *message, size_t size, const kdp_address *source,
                       const kdp_host *host, uint64_t boot) {
  uint8_t cookie[KDP_WG_COOKIE_SIZE], mac[KDP_WG_MAC_SIZE];
  make_cookie(checker, source, host, boot, cookie);
  make_mac2(mac, cookie, message, size);
  kdp_wipe(cookie, sizeof cookie);
  return kdp_equal_secret(mac, macs_of(message, size)->mac2, sizeof mac);
}

void kdp_wg_cookie_reply_create(kdp_wg_cookie_checker *checker, const uint8_t mac1[KDP_WG_MAC_SIZE],
                                const uint8_t receiver[4], const kdp_address *source, const kdp_host *host,
                                uint64_t boot, kdp_wg_cookie_reply *reply) {
  uint8_t cookie[KDP_WG_COOKIE_SIZE];
  kdp_store_le32(reply->type, KDP_WG_COOKIE_REPLY);
  memcpy(reply->receiver, receiver, sizeof reply->receiver);
  host->random(host->context, reply->nonce, sizeof reply->nonce);
  make_cookie(checker, source, host, boot, cookie);
  kdp_xchacha_seal(checker->reply_key, reply->nonce, mac1, KDP_WG_MAC_SIZE, cookie, sizeof cookie,
                   reply->sealed_cookie);
  kdp_wipe(cookie, sizeof cookie);
}

void kdp_wg_cookie_start(kdp_wg_cookie *cookie, const uint8_t remote_public_key[KDP_WG_KEY_SIZE]) {
  memset(cookie, 0, sizeof *cookie);
  kdp_wg_label_key(cookie->mac1_key, KDP_WG_LABEL_MAC1, remote_public_key);
}

void kdp_wg_macs_write(kdp_wg_cookie *cookie, uint8_t *message, size_t size, uint64_t boot) {
  kdp_wg_macs *macs = (kdp_wg_macs *)(message + size - sizeof(kdp_wg_macs));
  make_mac1(macs->mac1, cookie->mac1_key, message, size);
  memcpy(cookie->mac1_sent, macs->mac1, KDP_WG_MAC_SIZE);
  cookie->waiting = true;
  if (cookie->valid && boot - cookie->birth >= KDP_WG_COOKIE_TIME - KDP_WG_COOKIE_LATENCY) {
    kdp_wipe(cookie->value, sizeof cookie->value);
    cookie->valid = false;
  }
  if (cookie->valid)
    make_mac2(macs->mac2, cookie->value, message, size);
  else
    memset(macs->mac2, 0, sizeof macs->mac2);
}

kdp_status kdp_wg_cookie_consume(kdp_wg_cookie *cookie, const uint8_t remote_public_key[KDP_WG_KEY_SIZE],
                                 const kdp_wg_cookie_reply *reply, uint64_t boot) {
  if (!cookie->waiting) return KDP_BAD_COOKIE;
  uint8_t key[KDP_WG_KEY_SIZE], value[KDP_WG_COOKIE_SIZE];
  kdp_wg_label_key(key, KDP_WG_LABEL_COOKIE, remote_public_key);
  kdp_status status = kdp_xchacha_open(key, reply->nonce, cookie->mac1_sent, sizeof cookie->mac1_sent,
                                       reply->sealed_cookie, sizeof reply->sealed_cookie, value);
  if (status == KDP_OK) {
    memcpy(cookie->value, value, sizeof value);
    cookie->birth = boot;
    cookie->valid = true;
    cookie->waiting = false;
  }
  kdp_wipe(value, sizeof value);
  return status == KDP_OK ? KDP_OK : KDP_BAD_COOKIE;
}
