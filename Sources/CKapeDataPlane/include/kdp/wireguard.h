/* kdp/wireguard.h: the WireGuard engine and what can be configured of it. Protocol: "WireGuard: Next Generation Kernel
   Network Tunnel", Jason A. Donenfeld, revision of 2020-06-01 ("the paper" below). Where the paper leaves something
   open the engine does what the kernel's implementation does.

   What it makes of the contract in engine.h:
   - A path's `link` is that of the packet that it was learnt from, and 0 for a configured endpoint: one socket for each
     family, whatever its number. Datagrams leave without KDP_DF: the host may fragment them.
   - kdp_engine_link_down with error 0 means that the interface was taken down: sessions end, as in the kernel, and
   nothing is begun until kdp_engine_link_up; then peers with a keepalive begin at once. With another error only the
   source addresses learnt on that link are forgotten.
   - REBIND (an action, and an event): after three unanswered initiations in a row of one peer, if no peer was heard
   since the first of them; then not again before an authenticated packet or 30 s, doubling up to 5 min. With a fixed
   port there is the event only, with status UNSUPPORTED.
   - RESOLVE (an action, and an event): with the third unanswered initiation in a row, with every further one, and when
   an attempt is given up, but at most once in 30 s for each peer.
   - limits: `peers` (default 2^20), `staged_packets` (512 slots of 2 KiB; a larger packet takes several),
     `handshakes_per_call` (32), `lanes` (1; more than KDP_WIREGUARD_MAX_LANES are INVALID_ARGUMENT). `links`,
   `handshakes` and `stream_frame_bytes` have no meaning here: the state of a handshake is part of its peer. */
#ifndef KDP_WIREGUARD_H
#define KDP_WIREGUARD_H

#include "aead.h"
#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Header (16) and tag (16) of a transport message. A packet grows by these and by up to 15 bytes of padding. */
enum { KDP_WIREGUARD_HEAD = 16, KDP_WIREGUARD_TAIL = 16 + 15, KDP_WIREGUARD_OVERHEAD = 32 };

/* A session is spread over all lanes, which must not reorder more than a quarter of what its peer tolerates. */
enum { KDP_WIREGUARD_MAX_LANES = 31 };

typedef struct kdp_wireguard_config {
  /* Which AEAD provider, as kdp_aead_worker_choose takes it; one worker is made per lane. */
  const char *aead_provider;
  /* A table of the caller's in place of the provider's ChaCha20-Poly1305 (a benchmark's null cipher, a test's fault);
     NULL: the provider's own. It is called with the engine's worker. */
  const kdp_aead *aead;
  uint16_t inside_mtu;   /* 0: 1420 */
  bool fixed_port;       /* a listen port is configured: never ask for another local port */
  uint64_t newest_stamp; /* wall time (ns) of the newest TAI64N sent before a restart, 0: none. Stamps continue above it
                            even when the wall clock is behind (kdp_wireguard_newest_stamp gives what to keep) */
} kdp_wireguard_config;

kdp_status kdp_wireguard_create(const kdp_wireguard_config *config, const kdp_limits *limits, const kdp_host *host,
                                kdp_now now, kdp_engine **engine) KDP_MUST_USE KDP_NONNULL;

/* ---- Configuration. Calls on lane 0. All or nothing: when a call fails the device is as it was. ---- */

enum kdp_wireguard_device_fields {
  KDP_WIREGUARD_SET_PRIVATE_KEY =
      1 << 0, /* all zero: removes it. Ends every session, unless it is the same key; a peer with its public key goes */
  /* Removes every peer that is not in the list (as one to be there: neither to be removed nor only to be updated). One
     that is keeps its session and its endpoint; its prefixes, preshared key and keepalive are as for a new peer. */
  KDP_WIREGUARD_REPLACE_PEERS = 1 << 1,
  KDP_WIREGUARD_SET_FIXED_PORT = 1 << 2
};

enum kdp_wireguard_peer_fields {
  KDP_WIREGUARD_PEER_REMOVE = 1 << 0,
  KDP_WIREGUARD_PEER_UPDATE_ONLY = 1 << 1,       /* do nothing when it does not exist */
  KDP_WIREGUARD_PEER_SET_PRESHARED_KEY = 1 << 2, /* all zero: none. Used from the next handshake on */
  KDP_WIREGUARD_PEER_SET_ENDPOINT = 1 << 3,
  KDP_WIREGUARD_PEER_SET_KEEPALIVE = 1 << 4,
  KDP_WIREGUARD_PEER_REPLACE_PREFIXES = 1 << 5
};

typedef struct kdp_wireguard_prefix_change {
  kdp_prefix prefix; /* normalised by the engine */
  bool remove;       /* taken away, if this peer has it */
} kdp_wireguard_prefix_change;

typedef struct kdp_wireguard_peer_change {
  uint8_t public_key[KDP_KEY_SIZE];
  uint32_t fields; /* kdp_wireguard_peer_fields */
  uint8_t preshared_key[KDP_KEY_SIZE];
  kdp_address endpoint;
  uint16_t keepalive_seconds; /* 0: off */
  const kdp_wireguard_prefix_change *prefix;
  uint32_t prefix_count;
} kdp_wireguard_peer_change;

typedef struct kdp_wireguard_change {
  uint32_t fields; /* kdp_wireguard_device_fields */
  uint8_t private_key[KDP_KEY_SIZE];
  bool fixed_port;
  const kdp_wireguard_peer_change *peer;
  uint32_t peer_count;
} kdp_wireguard_change;

/* Applies in order, as the configuration protocol does. Peers that the change does not touch keep their sessions. A
   peer whose public key is our own is skipped silently. A prefix that another peer has moves, with an event. What
   follows at once (a keepalive, an initiation for staged packets) is in `out`. Fails with NO_MEMORY, LIMIT,
   INVALID_ARGUMENT (prefix) or LOW_ORDER_KEY (a public key that is all zero; others of low order only never complete a
   handshake). */
kdp_status kdp_wireguard_apply(kdp_engine *engine, const kdp_wireguard_change *change, kdp_out *out,
                               kdp_now now) KDP_MUST_USE KDP_NONNULL;

typedef struct kdp_wireguard_device_info {
  bool has_private_key;
  uint8_t private_key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE]; /* wipe it after use */
  uint32_t peer_count;
  bool under_load;
} kdp_wireguard_device_info;
void kdp_wireguard_device(const kdp_engine *engine, kdp_wireguard_device_info *info) KDP_NONNULL;

typedef struct kdp_wireguard_peer_info {
  uint64_t peer; /* as in events */
  uint8_t public_key[KDP_KEY_SIZE];
  uint8_t preshared_key[KDP_KEY_SIZE]; /* all zero: none. Wipe it after use */
  kdp_address endpoint;                /* KDP_FAMILY_NONE: not known */
  uint16_t keepalive_seconds;
  uint32_t prefix_count;
  uint64_t handshake_wall;                           /* wall time of the newest completed handshake, ns; 0: never */
  uint64_t received_bytes, sent_bytes;               /* WireGuard message bytes, as the kernel counts them */
  uint64_t inside_received_bytes, inside_sent_bytes; /* inner packet bytes */
  bool has_session;
} kdp_wireguard_peer_info;

/* In the order of addition, one a call; start with *cursor = 0. Peers may come and go between calls: none that stays is
   left out or told twice. False: no more. */
bool kdp_wireguard_next_peer(const kdp_engine *engine, uint64_t *cursor, kdp_wireguard_peer_info *info) KDP_NONNULL;
/* Peer by key. NOT_FOUND. */
kdp_status kdp_wireguard_find_peer(const kdp_engine *engine, const uint8_t public_key[KDP_KEY_SIZE],
                                   kdp_wireguard_peer_info *info) KDP_MUST_USE KDP_NONNULL;
/* Writes the prefixes of a peer from number `first` on; returns how many. */
uint32_t kdp_wireguard_prefixes(const kdp_engine *engine, uint64_t peer, uint32_t first, kdp_prefix *prefix,
                                uint32_t capacity) KDP_NONNULL;

/* Newest wall time put into a TAI64N stamp; kept by hosts that want replay protection to survive a restart with the
 * clock set back. */
uint64_t kdp_wireguard_newest_stamp(const kdp_engine *engine) KDP_NONNULL;

/* X25519 public key of a private one (clamped first). */
void kdp_wireguard_public_key(const uint8_t private_key[KDP_KEY_SIZE], uint8_t public_key[KDP_KEY_SIZE]) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
