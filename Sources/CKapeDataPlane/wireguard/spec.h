/* Specification constants of WireGuard. Sections are those of the paper ("WireGuard: Next Generation Kernel Network
   Tunnel", revision of 2020-06-01). Where the paper leaves a value open it is that of the kernel's implementation. */
#ifndef KDP_WIREGUARD_SPEC_H
#define KDP_WIREGUARD_SPEC_H

#include "kdp/time.h"

/* Section 5.4: the names that the first hash and the MAC keys are made from. */
#define KDP_WG_CONSTRUCTION "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
#define KDP_WG_IDENTIFIER "WireGuard v1 zx2c4 Jason@zx2c4.com"
#define KDP_WG_LABEL_MAC1 "mac1----"
#define KDP_WG_LABEL_COOKIE "cookie--"

enum {
  KDP_WG_KEY_SIZE = 32,       /* X25519 keys and ChaCha20 keys, section 5.4 */
  KDP_WG_HASH_SIZE = 32,      /* BLAKE2s, section 5.4 */
  KDP_WG_TAG_SIZE = 16,       /* Poly1305 */
  KDP_WG_MAC_SIZE = 16,       /* MAC1 and MAC2, section 5.4.4 */
  KDP_WG_COOKIE_SIZE = 16,    /* section 5.4.7 */
  KDP_WG_TIMESTAMP_SIZE = 12, /* TAI64N, section 5.4.2 */
  KDP_WG_PADDING = 16,        /* transport packets are padded to a multiple of this, section 5.4.6 */
  KDP_WG_WINDOW_WORDS = 128   /* the replay window holds 8,192 bits, of which 8,128 may be behind the newest, 5.4.6 */
};

/* Section 6.1. */
#define KDP_WG_REKEY_AFTER_MESSAGES (UINT64_C(1) << 60)
#define KDP_WG_REJECT_AFTER_MESSAGES (UINT64_MAX - (UINT64_C(1) << 13))
#define KDP_WG_REKEY_AFTER_TIME (120 * KDP_SECOND)
#define KDP_WG_REJECT_AFTER_TIME (180 * KDP_SECOND)
#define KDP_WG_REKEY_ATTEMPT_TIME (90 * KDP_SECOND)
#define KDP_WG_REKEY_TIMEOUT (5 * KDP_SECOND)
#define KDP_WG_REKEY_TIMEOUT_JITTER (333 * KDP_MILLISECOND) /* section 6.1: up to this much more */
#define KDP_WG_KEEPALIVE_TIMEOUT (10 * KDP_SECOND)

/* Section 6.2: the initiator rekeys on receiving with a session this old. */
#define KDP_WG_REKEY_ON_RECEIVE_TIME (KDP_WG_REJECT_AFTER_TIME - KDP_WG_KEEPALIVE_TIMEOUT - KDP_WG_REKEY_TIMEOUT)
/* Section 6.2: data was sent and nothing came back for this long: a new handshake. */
#define KDP_WG_NEW_HANDSHAKE_TIME (KDP_WG_KEEPALIVE_TIMEOUT + KDP_WG_REKEY_TIMEOUT)
/* Section 6.3: without a new session for this long every key is wiped. */
#define KDP_WG_WIPE_TIME (3 * KDP_WG_REJECT_AFTER_TIME)

/* Section 5.4.7: a cookie lasts this long; whoever received one stops using it a little earlier (the kernel's 5 s). */
#define KDP_WG_COOKIE_TIME (120 * KDP_SECOND)
#define KDP_WG_COOKIE_LATENCY (5 * KDP_SECOND)

/* Initiations of one peer that are answered, as in the kernel. */
enum { KDP_WG_INITIATIONS_PER_SECOND = 50 };

/* Low bits of a TAI64N stamp's nanoseconds are cleared so that the clock does not leak: the largest power of two that
   still lets INITIATIONS_PER_SECOND stamps differ, 2^24 ns (section 5.4.2 and the kernel). */
#define KDP_WG_STAMP_STEP (UINT64_C(1) << 24)

#endif
