/* The engine behind kdp/wireguard.h: a device with its peers. One lane; its functions are spread over the files named
   at each group below. */
#ifndef KDP_WIREGUARD_DEVICE_H
#define KDP_WIREGUARD_DEVICE_H

#include "core/counter.h"
#include "core/event_queue.h"
#include "wireguard/index_table.h"
#include "wireguard/peer_table.h"
#include "wireguard/ratelimit.h"

/* Packets that go through the AEAD together. */
typedef struct kdp_wg_group_entry {
  kdp_packet packet;
  kdp_wg_key_pair *pair; /* receiving only */
  kdp_wg_peer *peer;
  uint64_t counter;
  uint32_t input; /* receiving: number in the batch handed in */
} kdp_wg_group_entry;

typedef struct kdp_wg_group {
  uint32_t count;
  kdp_aead_job job[KDP_AEAD_MAX_BATCH];
  kdp_wg_group_entry entry[KDP_AEAD_MAX_BATCH];
} kdp_wg_group;

typedef struct kdp_wg_work_list {
  kdp_wg_peer *first, *last;
} kdp_wg_work_list;

typedef struct kdp_wg_device {
  kdp_engine engine;
  kdp_lane lane;
  kdp_host host;
  kdp_limits limits; /* defaults filled in */
  kdp_aead_worker *worker;
  const kdp_aead *aead;
  uint16_t inside_mtu;
  bool fixed_port;
  bool down; /* the link was taken down: nothing is begun until it is up again */

  kdp_wg_identity identity;
  kdp_wg_cookie_checker checker;
  kdp_trie *trie;
  kdp_wg_peer_table peers;
  kdp_wg_index_table indices;
  kdp_wg_key_store keys;
  kdp_wg_heap heap;
  kdp_wg_staging staging;
  kdp_wg_work_list work[2]; /* by kdp_wg_work: initiations, flushes */
  kdp_statistics statistics;

  uint64_t call;            /* number of the call on the lane that is running */
  uint32_t budget;          /* handshake messages that this call may still work on */
  bool out_blocked;         /* work was left over because `out` was full or the budget spent */
  uint64_t pool_retry;      /* work was left over because no slot was free: when to try again; 0: no */
  uint64_t peer_number;     /* of the newest peer */
  uint64_t newest_stamp;    /* wall time */
  uint64_t stamp_floor;     /* stamps for peers added from now on are above this: a peer may be an old one again */
  bool clock_back;          /* an event has told that the wall clock is behind the stamps */
  uint64_t authenticated;   /* boot time of the newest authenticated packet of any peer */
  uint64_t rebound;         /* boot time of the newest REBIND, 0: none */
  uint64_t rebind_interval; /* from it to the next one without an authenticated packet */
  uint64_t jitter;          /* state of the generator of timer jitter */
  uint64_t load_window;     /* boot time at which counting for load began anew */
  uint32_t load_messages;   /* handshake messages since then */
  uint64_t load_until;      /* boot time, 0: not under load */
  uint64_t mtu_asked[KDP_WG_MTU_ASKED]; /* numbers of peers whose path's MTU was asked for, 0: none or answered */
  uint32_t mtu_asked_next;              /* counts questions: where the next one is remembered */
  uint64_t icmp_time;                   /* when icmp_credit was right */
  uint64_t icmp_credit;                 /* ns; an answer costs 1 s / ICMP_PER_SECOND */

  /* From here on memory is left untouched until it is used. */
  kdp_event_queue events;
  kdp_wg_group group;
  kdp_wg_ratelimit ratelimit;
} kdp_wg_device;

static inline kdp_wg_device *kdp_wg_device_of(kdp_engine *engine) {
  return (kdp_wg_device *)(void *)engine;
}
static inline kdp_wg_device *kdp_wg_device_of_lane(kdp_lane *lane) {
  return kdp_wg_device_of(lane->engine);
}

static inline void kdp_wg_count(kdp_wg_device *device, kdp_status status, uint64_t packets) {
  if (packets > 0) kdp_counter_add(&device->statistics.status[status], packets);
}

/* Cuts a packet to `size` bytes, which is not more than it has. */
static inline void kdp_wg_trim(kdp_packet *packet, uint32_t size) {
  uint32_t tail = packet->tail + (packet->size - size);
  packet->tail = (uint16_t)(tail > UINT16_MAX ? UINT16_MAX : tail);
  packet->size = size;
}

/* ---- device.c: what every call begins and ends with, and events ---- */

/* For calls that do not come through kdp_engine_...: boot time does not go back. Time 0 is taken as 1, since 0 stands
   for "never yet" in a peer. */
kdp_now kdp_wg_clamp(kdp_wg_device *device, kdp_now now);
/* New number, new budget, and all timers that are due. */
void kdp_wg_call_begin(kdp_wg_device *device, kdp_out *out, kdp_now now);
void kdp_wg_call_end(kdp_wg_device *device, kdp_out *out, kdp_now now);
kdp_event *kdp_wg_event(kdp_event *event, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_now now);
void kdp_wg_tell(kdp_wg_device *device, const kdp_event *event);
/* An event with no more to it than a status and a value. */
void kdp_wg_tell_simple(kdp_wg_device *device, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_status status,
                        uint64_t value, kdp_now now);
bool kdp_wg_push_action(kdp_out *out, kdp_action_kind kind, const kdp_wg_peer *peer);
/* Index of the peer's path in this call's out->wire; false: no more paths fit. */
bool kdp_wg_path_index(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, uint16_t *index);

/* ---- session.c: key pairs of a peer ---- */

/* A handshake made keys. The initiator's are in use at once, the responder's wait for the first packet. `local_index`
   is in the index table already and points to the pair afterwards. */
void kdp_wg_session_add(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_wg_session_keys *keys, bool initiator,
                        uint32_t local_index, uint32_t remote_index, kdp_now now);
/* A packet was opened with `pair`: when it is the one that waits it comes into use. */
void kdp_wg_session_confirm(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_wg_key_pair *pair, kdp_now now);
void kdp_wg_session_clear(kdp_wg_device *device, kdp_wg_peer *peer, kdp_status why, kdp_now now);
void kdp_wg_handshake_clear(kdp_wg_device *device, kdp_wg_peer *peer);
/* Sessions, handshakes, timers and staged packets go; configuration and place stay. */
void kdp_wg_peer_stop(kdp_wg_device *device, kdp_wg_peer *peer, kdp_now now);

/* ---- timers.c ---- */

void kdp_wg_timer_set(kdp_wg_device *device, kdp_wg_peer *peer, kdp_wg_timer timer, uint64_t boot);
void kdp_wg_timers_stop(kdp_wg_device *device, kdp_wg_peer *peer);
void kdp_wg_timers_run(kdp_wg_device *device, kdp_out *out, kdp_now now);
void kdp_wg_timers_data_sent(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
void kdp_wg_timers_data_received(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
void kdp_wg_timers_any_sent(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
void kdp_wg_timers_any_received(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
/* An attempt begins: REKEY_ATTEMPT_TIME runs. */
void kdp_wg_timers_attempt_begun(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
static inline bool kdp_wg_attempt_runs(const kdp_wg_peer *peer) {
  return peer->timer[KDP_WG_TIMER_GIVE_UP] != KDP_NEVER;
}
/* The next initiation leaves REKEY_TIMEOUT and a jitter after the handshake message sent at `boot`. */
void kdp_wg_timers_retransmit_after(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
void kdp_wg_timers_handshake_complete(kdp_wg_device *device, kdp_wg_peer *peer);
void kdp_wg_timers_session_derived(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);

/* ---- work.c: what peers wait for ---- */

void kdp_wg_work_add(kdp_wg_device *device, kdp_wg_peer *peer, enum kdp_wg_work work);
void kdp_wg_work_remove(kdp_wg_device *device, kdp_wg_peer *peer, enum kdp_wg_work work);
/* Something is to be said to the peer at once: what is staged, else an empty packet; without a session a handshake. */
void kdp_wg_owe_keepalive(kdp_wg_device *device, kdp_wg_peer *peer);
/* As far as the budget, `out` and the pool allow. */
void kdp_wg_work_run(kdp_wg_device *device, kdp_out *out, kdp_now now);

/* ---- handshake.c ---- */

/* A new session is wanted: an initiation leaves now, or as soon as one may again, unless one is under way. */
void kdp_wg_want_handshake(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
/* OK (sent, or given up with an event), OUT_FULL or POOL_EMPTY. */
kdp_status kdp_wg_send_initiation(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now);
/* One handshake message or cookie reply, whose size fits its type. Takes the packet over: an answer is written in its
   place, or its slot is released. out->wire has room for a packet and a path. Returns what became of it. */
kdp_status kdp_wg_handshake_message(kdp_wg_device *device, kdp_wg_message_type type, kdp_packet *packet,
                                    const kdp_path *path, kdp_out *out, kdp_now now);
bool kdp_wg_under_load(const kdp_wg_device *device, uint64_t boot);
/* An authenticated packet of `peer` came along `path`. */
void kdp_wg_authenticated(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_path *path, kdp_now now);

/* ---- seal.c: towards the wire ---- */

uint32_t kdp_wg_inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now);
/* Seals what is staged for the peer, or an empty packet when one is owed. OK, AGAIN (no session: a handshake is under
   way), OUT_FULL or POOL_EMPTY. */
kdp_status kdp_wg_flush(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now);

/* ---- open.c: from the wire ---- */

uint32_t kdp_wg_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now);

/* ---- answer.c: ICMP errors to the inside ---- */

void kdp_wg_answer_unreachable(kdp_wg_device *device, const kdp_packet *packet, kdp_out *out, uint64_t boot);
void kdp_wg_answer_too_big(kdp_wg_device *device, const kdp_packet *packet, uint32_t mtu, kdp_out *out, uint64_t boot);

/* ---- keylog.c ---- */

/* Both ends of a handshake can be read from a capture with these lines (Wireshark's WireGuard keylog). Nothing without
   host->keylog. */
void kdp_wg_keylog(const kdp_wg_device *device, const kdp_wg_peer *peer,
                   const uint8_t ephemeral_private[KDP_WG_KEY_SIZE]);

/* ---- configure.c ---- */

void kdp_wg_peer_destroy(kdp_wg_device *device, kdp_wg_peer *peer); /* it is in no table any more */

#endif
