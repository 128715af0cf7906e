/* The engine behind kdp/wireguard.h: a device with its peers. Its functions are spread over the files named at each
   group below.

   Lanes: what is of the device belongs to lane 0, which changes what other lanes read (tries, indices, sessions, paths)
   behind the gate; what a lane needs for itself is in its kdp_wg_lane. Functions that take the device are lane 0's,
   those that take a kdp_wg_lane any lane's. Other lanes than 0 seal and open with sessions that are up, and hand
   everything else over. */
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
  kdp_wg_key_pair *pair;
  /* Receiving only. */
  kdp_wg_peer *peer;
  uint64_t counter;
  uint32_t input; /* number in the batch handed in */
} kdp_wg_group_entry;

typedef struct kdp_wg_group {
  uint32_t count;
  kdp_aead_job job[KDP_AEAD_MAX_BATCH];
  kdp_wg_group_entry entry[KDP_AEAD_MAX_BATCH];
} kdp_wg_group;

typedef struct kdp_wg_work_list {
  kdp_wg_peer *first, *last;
} kdp_wg_work_list;

/* Where in out->wire.path the path of a peer is. */
typedef struct kdp_wg_path_place {
  const kdp_wg_peer *peer;
  uint64_t call; /* in which it was put there */
  uint16_t index;
} kdp_wg_path_place;

typedef struct kdp_wg_lane {
  _Alignas(KDP_CACHE_LINE) kdp_lane base;
  kdp_aead_worker *worker;
  uint64_t call;                            /* number of the call on the lane that is running */
  bool wake;                                /* not lane 0: it has something to tell lane 0, which was not told yet */
  kdp_wg_path_place place[KDP_BATCH_PATHS]; /* not lane 0, which has this in the peer; by the peer's number */
  kdp_statistics statistics;
  kdp_wg_group group; /* memory is left untouched until it is used */
} kdp_wg_lane;

typedef struct kdp_wg_device {
  kdp_engine engine;
  kdp_wg_lane *lane; /* limits.lanes of them */
  void *lane_memory; /* what the host gave for them and the gate's doors */
  kdp_lane_gate gate;
  kdp_wg_notes_list noted;
  uint64_t newest_birth; /* of all key pairs; changed behind the gate */
  kdp_host host;
  kdp_limits limits; /* defaults filled in */
  const kdp_aead *aead;
  uint16_t inside_mtu; /* any lane reads it */
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
  kdp_wg_ratelimit ratelimit;
} kdp_wg_device;

static inline kdp_wg_device *kdp_wg_device_of(kdp_engine *engine) {
  return (kdp_wg_device *)(void *)engine;
}
static inline kdp_wg_device *kdp_wg_device_of_lane(kdp_lane *lane) {
  return kdp_wg_device_of(lane->engine);
}
static inline kdp_wg_lane *kdp_wg_lane_of(kdp_lane *lane) {
  return (kdp_wg_lane *)(void *)lane;
}
static inline bool kdp_wg_is_lane_0(const kdp_wg_lane *lane) {
  return lane->base.index == 0;
}
/* More than one thread may be at work. */
static inline bool kdp_wg_is_shared(const kdp_wg_device *device) {
  return device->gate.lanes > 1;
}

static inline void kdp_wg_lane_count(kdp_wg_lane *lane, kdp_status status, uint64_t packets) {
  if (packets > 0) kdp_counter_add(&lane->statistics.status[status], packets);
}
static inline void kdp_wg_count(kdp_wg_device *device, kdp_status status, uint64_t packets) {
  kdp_wg_lane_count(&device->lane[0], status, packets);
}
/* To a count of bytes of a peer. */
static inline void kdp_wg_add_bytes(const kdp_wg_device *device, uint64_t *counter, uint64_t bytes) {
  if (kdp_wg_is_shared(device))
    __atomic_fetch_add(counter, bytes, __ATOMIC_RELAXED);
  else
    *counter += bytes;
}

/* Round every change of what other lanes read. */
static inline void kdp_wg_change_begin(kdp_wg_device *device) {
  kdp_lane_change_begin(&device->gate);
}
static inline void kdp_wg_change_end(kdp_wg_device *device) {
  kdp_lane_change_end(&device->gate);
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
/* Calls on any lane that carry data: what is due on lane 0, the gate on others. Returns the time that counts. */
kdp_now kdp_wg_begin(kdp_wg_lane *lane, kdp_out *out, kdp_now now);
void kdp_wg_end(kdp_wg_lane *lane, kdp_out *out, kdp_now now);
/* New number, new budget, what other lanes have noted, and all timers that are due. */
void kdp_wg_call_begin(kdp_wg_device *device, kdp_out *out, kdp_now now);
void kdp_wg_call_end(kdp_wg_device *device, kdp_out *out, kdp_now now);
kdp_event *kdp_wg_event(kdp_event *event, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_now now);
void kdp_wg_tell(kdp_wg_device *device, const kdp_event *event);
/* An event with no more to it than a status and a value. */
void kdp_wg_tell_simple(kdp_wg_device *device, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_status status,
                        uint64_t value, kdp_now now);
bool kdp_wg_push_action(kdp_out *out, kdp_action_kind kind, const kdp_wg_peer *peer);
/* Index of the peer's path in this call's out->wire; false: no more paths fit. */
bool kdp_wg_path_index(kdp_wg_lane *lane, kdp_wg_peer *peer, kdp_out *out, uint16_t *index);
/* Not lane 0: gives the packet to it, whole; `path` is where it came from, NULL: from the inside. HANDED_OVER;
   else the slot is still the caller's: AGAIN, when room has been made for actions, or HANDOVER_FULL: there never is. */
kdp_status kdp_wg_hand_over(kdp_packet *packet, const kdp_path *path, kdp_out *out);
/* Not lane 0: what it has to tell lane 0 goes out as soon as there is room for it. */
void kdp_wg_wake_lane_0(kdp_wg_lane *lane, kdp_out *out);
/* Our side of the peer's path is not trusted any more: the kernel chooses it anew. */
void kdp_wg_clear_source(kdp_wg_device *device, kdp_wg_peer *peer);

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
/* Of a packet on another lane, at `boot`. */
void kdp_wg_timers_traversed(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot);
/* The timers that start with data are as peer->notes have it. */
void kdp_wg_timers_follow_notes(kdp_wg_device *device, kdp_wg_peer *peer);

/* ---- notes.c: what other lanes tell lane 0 of a peer ---- */

/* Not lane 0, at the end of a run of packets. */
void kdp_wg_note_sent(kdp_wg_lane *lane, kdp_wg_peer *peer, bool data, uint64_t boot);
void kdp_wg_note_received(kdp_wg_lane *lane, kdp_wg_peer *peer, bool data, uint64_t boot);
static inline bool kdp_wg_notes_wait(const kdp_wg_device *device) {
  return atomic_load_explicit(&device->noted.attention, memory_order_relaxed) != 0;
}
/* Looks at the peers on the list. */
void kdp_wg_notes_collect(kdp_wg_device *device, kdp_out *out, kdp_now now);
/* Does what the notes of one peer bring about. */
void kdp_wg_notes_look(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now);
/* KDP_WG_TIMER_NOTES has run. */
void kdp_wg_notes_look_again(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now);
/* The peer ends or begins anew; behind the gate, and it has no session. */
void kdp_wg_notes_forget(kdp_wg_device *device, kdp_wg_peer *peer);

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
/* Section 6.2: a session that has sealed much, or that we began and that is old, is renewed by sending at `boot`. */
bool kdp_wg_renew_on_sending(const kdp_wg_key_pair *pair, uint64_t boot);
/* Data goes to the peer: asks for its path's MTU when that is not known. */
void kdp_wg_ask_path_mtu(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, uint64_t boot);

/* ---- open.c: from the wire ---- */

uint32_t kdp_wg_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now);
/* Section 6.2: the initiator renews an old session before it ends when it only receives, at `boot`. */
bool kdp_wg_renew_on_receiving(const kdp_wg_key_pair *current, uint64_t boot);

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
