/* MAC1, MAC2 and cookies (sections 5.4.4 and 5.4.7 of the paper): what lets a device under load ask a sender to prove
   that it receives at its address before any expensive work is done. */
#ifndef KDP_WIREGUARD_COOKIE_H
#define KDP_WIREGUARD_COOKIE_H

#include "wireguard/messages.h"

/* Hash(label || public_key), where label is one of the KDP_WG_LABEL_... of eight bytes. */
void kdp_wg_label_key(uint8_t key[KDP_WG_KEY_SIZE], const char *label, const uint8_t public_key[KDP_WG_KEY_SIZE]);

/* Messages to us: one per device. */
typedef struct kdp_wg_cookie_checker {
  uint8_t mac1_key[KDP_WG_KEY_SIZE];
  uint8_t reply_key[KDP_WG_KEY_SIZE];
  uint8_t secret[KDP_WG_KEY_SIZE];
  uint64_t secret_birth; /* 0: none yet */
} kdp_wg_cookie_checker;

/* New own public key. The secret goes too. */
void kdp_wg_cookie_checker_set(kdp_wg_cookie_checker *checker, const uint8_t public_key[KDP_WG_KEY_SIZE]);
/* Constant time. `size` is the whole message with its MACs. */
bool kdp_wg_mac1_valid(const kdp_wg_cookie_checker *checker, const uint8_t *message, size_t size) KDP_MUST_USE;
/* Whether MAC2 was made from the cookie that we would give to `source` now. */
bool kdp_wg_mac2_valid(kdp_wg_cookie_checker *checker, const uint8_t *message, size_t size, const kdp_address *source,
                       const kdp_host *host, uint64_t boot) KDP_MUST_USE;
/* The reply to a message whose MAC1 is valid. `mac1` and `receiver` (its sender index) come from that message. */
void kdp_wg_cookie_reply_create(kdp_wg_cookie_checker *checker, const uint8_t mac1[KDP_WG_MAC_SIZE],
                                const uint8_t receiver[4], const kdp_address *source, const kdp_host *host,
                                uint64_t boot, kdp_wg_cookie_reply *reply);

/* Messages from us: one per peer. */
typedef struct kdp_wg_cookie {
  uint8_t mac1_key[KDP_WG_KEY_SIZE];
  uint8_t mac1_sent[KDP_WG_MAC_SIZE];
  uint8_t value[KDP_WG_COOKIE_SIZE];
  uint64_t birth; /* boot time of its arrival */
  bool valid;     /* `value` is a cookie */
  bool waiting;   /* a message was sent that no reply has answered yet */
} kdp_wg_cookie;

void kdp_wg_cookie_start(kdp_wg_cookie *cookie, const uint8_t remote_public_key[KDP_WG_KEY_SIZE]);
/* Fills both MACs of a message of `size` bytes. */
void kdp_wg_macs_write(kdp_wg_cookie *cookie, uint8_t *message, size_t size, uint64_t boot);
/* OK or BAD_COOKIE. A second copy of a reply is bad. */
kdp_status kdp_wg_cookie_consume(kdp_wg_cookie *cookie, const uint8_t remote_public_key[KDP_WG_KEY_SIZE],
                                 const kdp_wg_cookie_reply *reply, uint64_t boot) KDP_MUST_USE;

#endif
