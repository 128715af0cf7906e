/* Sessions: a key for each direction with its counter or replay window (section 5.4.5 and 5.4.6 of the paper), and the
   store that they come from.

   A peer holds at most two: {previous, current} or {current, next}. The store is given room for two a peer when peers
   are added, in chunks whose memory stays untouched until a session is made; pairs used last are used first again. */
#ifndef KDP_WIREGUARD_KEY_PAIR_H
#define KDP_WIREGUARD_KEY_PAIR_H

#include "core/lane_gate.h"
#include "net/replay_window.h"
#include "wireguard/noise.h"

enum { KDP_WG_KEY_PAIRS_PER_PEER = 2 };

typedef struct kdp_wg_peer kdp_wg_peer;
typedef struct kdp_wg_key_chunk kdp_wg_key_chunk;

typedef struct kdp_wg_key_pair {
  kdp_wg_session_keys keys;
  uint64_t send_counter; /* of the next packet; every lane takes counters from it */
  uint64_t birth;        /* boot time */
  kdp_wg_peer *peer;
  uint32_t local_index, remote_index;
  bool initiator; /* we began its handshake */
  kdp_lane_lock window_lock;
  kdp_replay_window window;
  union {
    kdp_wg_key_chunk *chunk;      /* in use */
    struct kdp_wg_key_pair *next; /* free */
  };
  uint64_t word[KDP_WG_WINDOW_WORDS];
} kdp_wg_key_pair;

typedef struct kdp_wg_key_store {
  kdp_wg_key_chunk *with_room, *full;
  uint32_t capacity, used;
} kdp_wg_key_store;

/* Room for `count` pairs in all. NO_MEMORY leaves the store as it was. */
kdp_status kdp_wg_key_store_reserve(kdp_wg_key_store *store, uint32_t count, const kdp_host *host) KDP_MUST_USE;
/* Gives back chunks that hold nothing as far as `count` pairs still find room. */
void kdp_wg_key_store_trim(kdp_wg_key_store *store, uint32_t count, const kdp_host *host);
void kdp_wg_key_store_destroy(kdp_wg_key_store *store, const kdp_host *host); /* every pair is back */

/* A pair with its window started; the rest is the caller's. NULL when the store is used up, which a caller that holds
   to two a peer never sees. */
kdp_wg_key_pair *kdp_wg_key_pair_take(kdp_wg_key_store *store);
void kdp_wg_key_pair_give_back(kdp_wg_key_store *store, kdp_wg_key_pair *pair); /* wipes */

static inline uint64_t kdp_wg_key_pair_next_counter(const kdp_wg_key_pair *pair) {
  return __atomic_load_n(&pair->send_counter, __ATOMIC_RELAXED);
}
/* Takes the counters of the next `count` packets and returns the first. Lanes that take from a pair that is almost used
   up may overshoot: a counter from REJECT_AFTER_MESSAGES on is not to be sent. */
static inline uint64_t kdp_wg_key_pair_take_counters(kdp_wg_key_pair *pair, uint32_t count, bool shared) {
  if (shared) return __atomic_fetch_add(&pair->send_counter, count, __ATOMIC_RELAXED);
  uint64_t first = pair->send_counter;
  pair->send_counter = first + count;
  return first;
}
static inline bool kdp_wg_key_pair_can_send(const kdp_wg_key_pair *pair, uint64_t boot) {
  return pair && boot - pair->birth < KDP_WG_REJECT_AFTER_TIME &&
         kdp_wg_key_pair_next_counter(pair) < KDP_WG_REJECT_AFTER_MESSAGES;
}
static inline bool kdp_wg_key_pair_can_receive(const kdp_wg_key_pair *pair, uint64_t boot) {
  return boot - pair->birth < KDP_WG_REJECT_AFTER_TIME;
}

#endif
