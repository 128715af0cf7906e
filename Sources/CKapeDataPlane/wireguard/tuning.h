/* Constants of this implementation, each with its reason. What the protocol fixes is in spec.h. */
#ifndef KDP_WIREGUARD_TUNING_H
#define KDP_WIREGUARD_TUNING_H

#include "kdp/time.h"

enum {
  /* Inner MTU when none is given: 1,500 less IPv6, UDP and the transport message, as wg-quick has it. */
  KDP_WG_DEFAULT_MTU = 1420,

  /* Most peers of a device, as in the kernel. */
  KDP_WG_DEFAULT_PEERS = 1 << 20,

  /* About 100 us each on a small machine, so a call stays under 4 ms while a thousand peers come back
     (wireguard_handshake_test: a_call_does_no_more_handshakes_than_its_budget). */
  KDP_WG_DEFAULT_HANDSHAKES_PER_CALL = 32,

  /* Initiations and responses read in one round that mean load. A round is LOAD_WINDOW of the engine's time and not one
     call or one wake-up: an I/O layer may read a flood a few datagrams at a time (worker_load_test), while 32 in one
     call are always within one round. An ordinary device sees one or two (wireguard_handshake_test:
     load_begins_with_the_32nd_message_of_a_round_and_is_kept_up_for_a_second). */
  KDP_WG_LOAD_MESSAGES = 32,

  /* One staging slot holds a full packet of an ordinary MTU; larger packets take a chain. 512 slots are 1 MiB, of which
     only what was ever used is resident (wireguard_tables_test). */
  KDP_WG_STAGING_SLOT_SIZE = 2048,
  KDP_WG_DEFAULT_STAGED_PACKETS = 512,
  KDP_WG_STAGED_PER_PEER = 128, /* as in the kernel */

  /* Token bucket of a source under load, as in the kernel: 20 messages a second, 5 at once. */
  KDP_WG_RATE_PER_SECOND = 20,
  KDP_WG_RATE_BURST = 5,
  /* Sources at once: 512 sets of 8 ways, 96 KiB, which bounds the memory; a set full of busy sources refuses further
     ones (wireguard_tables_test). */
  KDP_WG_RATE_SETS = 512,
  KDP_WG_RATE_WAYS = 8,

  /* ICMP answers to the inside: enough for path MTU discovery of many flows, too little to be a flood. */
  KDP_WG_ICMP_PER_SECOND = 100,
  KDP_WG_ICMP_BURST = 64,

  /* Unanswered initiations in a row after which the socket is bound anew and the endpoint's name looked up again. */
  KDP_WG_REBIND_AFTER = 3,

  /* Peers whose question for the path MTU is remembered until it is answered: the actions that one call can give. When
     more wait, the answers to the oldest are looked up among all peers. */
  KDP_WG_MTU_ASKED = 64,

  /* Key pairs come in chunks of up to this many: about 150 KiB, so that an allocator maps them and pages that no
     session has touched cost nothing. */
  KDP_WG_KEY_PAIR_CHUNK = 128
};

/* A sixth of the time of a small machine, at 100 us a message; on one that takes longer for each, more of it. */
#define KDP_WG_LOAD_WINDOW (20 * KDP_MILLISECOND)
#define KDP_WG_LOAD_HOLD KDP_SECOND /* load is kept up for this long after its last message */

#define KDP_WG_REBIND_INTERVAL (30 * KDP_SECOND) /* between two of them without an authenticated packet, doubling */
#define KDP_WG_REBIND_INTERVAL_MAX (300 * KDP_SECOND)
#define KDP_WG_RESOLVE_INTERVAL (30 * KDP_SECOND) /* between two look-ups of one peer's name */

#define KDP_WG_PATH_MTU_TIME (600 * KDP_SECOND) /* a path MTU is forgotten after this, and so asked for again */
#define KDP_WG_PATH_MTU_RETRY                                                                                          \
  (10 * KDP_SECOND) /* asked for again after this when the answer was that nothing is known */

/* How often lane 0 looks at what other lanes note of a busy peer: seldom enough to cost nothing, often enough that a
   renewal of its keys, which has seconds, is not late. */
#define KDP_WG_NOTES_INTERVAL (500 * KDP_MILLISECOND)
/* Looks fall on multiples of this, so that lane 0 wakes ten times a second for ten thousand busy peers as for one. */
#define KDP_WG_NOTES_STEP (100 * KDP_MILLISECOND)

/* When no packet slot is free, own messages are tried again after this. */
#define KDP_WG_POOL_RETRY (1 * KDP_MILLISECOND)

#endif
