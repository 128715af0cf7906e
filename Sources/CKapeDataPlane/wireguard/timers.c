/* The timers of a peer (section 6 of the paper; the kernel's implementation where the paper is silent):

   - Retransmit: an initiation went out and no session came of it within REKEY_TIMEOUT and a jitter of up to 333 ms: the
     next initiation, with a new ephemeral key and a new source address. After three without an answer the socket may be
     bound anew and the endpoint's name is to be looked up again.
   - Give up: REKEY_ATTEMPT_TIME after the first initiation of an attempt: no more initiations, and what was staged is
     dropped. Whatever wants to be sent later begins a new attempt.
   - New handshake: data was sent and nothing at all, not even an empty packet, came back for KEEPALIVE_TIMEOUT +
     REKEY_TIMEOUT and the jitter: a new handshake.
   - Keepalive: data came and nothing was sent for KEEPALIVE_TIMEOUT: an empty packet. An empty packet that comes in
     never starts it, so two idle ends fall silent. Data that comes while it runs is answered by the same packet.
   - Persistent keepalive, where configured: nothing was sent or received for that long: an empty packet.
   - Session end: the current session is REJECT_AFTER_TIME old and cannot be used any more: the owner is told.
   - Wipe: no new session for 3 x REJECT_AFTER_TIME: all keys of the peer and of its handshake are wiped.
   - Notes: with more than one lane the times that New handshake and Keepalive start from are noted in the peer by every
     lane, and their timers follow the notes (notes.h). They are looked at before any timer of the peer acts.

   Deadlines are absolute times of a clock that goes on while the host sleeps. After hours of sleep everything is due at
   once; each timer then runs once, and an attempt that slept in the middle begins anew, for that time was not spent
   trying. What fires only marks work, so a pass over many peers is short, and the work has its budget. */
#include "wireguard/device.h"

/* Timer jitter needs no secrecy, only that two ends do not keep in step: xorshift64*. */
static uint64_t jitter(kdp_wg_device *device) {
  uint64_t x = device->jitter;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  device->jitter = x;
  return (x * UINT64_C(0x2545f4914f6cdd1d) >> 16) % (KDP_WG_REKEY_TIMEOUT_JITTER + 1);
}

void kdp_wg_timer_set(kdp_wg_device *device, kdp_wg_peer *peer, kdp_wg_timer timer, uint64_t boot) {
  peer->timer[timer] = boot;
  kdp_wg_heap_not_later(&device->heap, peer, boot);
}

void kdp_wg_timers_stop(kdp_wg_device *device, kdp_wg_peer *peer) {
  for (int i = 0; i < KDP_WG_TIMER_COUNT; i++)
    peer->timer[i] = KDP_NEVER;
  kdp_wg_heap_set(&device->heap, peer, KDP_NEVER);
}

/* Of two timers that start with data: as the note has it. */
static void follow(kdp_wg_device *device, kdp_wg_peer *peer, kdp_wg_timer timer, _Atomic(uint64_t) *note,
                   uint64_t *seen, uint64_t time) {
  uint64_t since = atomic_load(note);
  if (since == *seen) return;
  *seen = since;
  peer->timer[timer] = KDP_NEVER;
  if (since != 0) kdp_wg_timer_set(device, peer, timer, since + time);
}

void kdp_wg_timers_follow_notes(kdp_wg_device *device, kdp_wg_peer *peer) {
  kdp_wg_notes *notes = &peer->notes;
  follow(device, peer, KDP_WG_TIMER_NEW_HANDSHAKE, &notes->awaiting, &notes->seen_awaiting,
         KDP_WG_NEW_HANDSHAKE_TIME + jitter(device));
  follow(device, peer, KDP_WG_TIMER_KEEPALIVE, &notes->owing, &notes->seen_owing, KDP_WG_KEEPALIVE_TIMEOUT);
}

static void start_note(_Atomic(uint64_t) *note, uint64_t boot) {
  uint64_t none = 0;
  atomic_compare_exchange_strong(note, &none, boot);
}

void kdp_wg_timers_data_sent(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  if (kdp_wg_is_shared(device)) {
    start_note(&peer->notes.awaiting, boot);
    kdp_wg_timers_follow_notes(device, peer);
  } else if (peer->timer[KDP_WG_TIMER_NEW_HANDSHAKE] == KDP_NEVER) {
    kdp_wg_timer_set(device, peer, KDP_WG_TIMER_NEW_HANDSHAKE, boot + KDP_WG_NEW_HANDSHAKE_TIME + jitter(device));
  }
}

void kdp_wg_timers_data_received(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  if (kdp_wg_is_shared(device)) {
    start_note(&peer->notes.owing, boot);
    kdp_wg_timers_follow_notes(device, peer);
  } else if (peer->timer[KDP_WG_TIMER_KEEPALIVE] == KDP_NEVER) {
    kdp_wg_timer_set(device, peer, KDP_WG_TIMER_KEEPALIVE, boot + KDP_WG_KEEPALIVE_TIMEOUT);
  }
}

static void keepalive_not_due(kdp_wg_peer *peer) {
  peer->timer[KDP_WG_TIMER_KEEPALIVE] = KDP_NEVER;
  atomic_store_explicit(&peer->notes.owing, 0, memory_order_relaxed);
  peer->notes.seen_owing = 0;
}

static void new_handshake_not_due(kdp_wg_peer *peer) {
  peer->timer[KDP_WG_TIMER_NEW_HANDSHAKE] = KDP_NEVER;
  atomic_store_explicit(&peer->notes.awaiting, 0, memory_order_relaxed);
  peer->notes.seen_awaiting = 0;
}

/* Anything authenticated went either way. */
void kdp_wg_timers_traversed(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  if (peer->keepalive_interval == 0) return;
  uint64_t due = boot + peer->keepalive_interval, before = peer->timer[KDP_WG_TIMER_PERSISTENT_KEEPALIVE];
  /* What another lane noted may be older than what this one knows. */
  if (before == KDP_NEVER || due > before || !kdp_wg_is_shared(device))
    kdp_wg_timer_set(device, peer, KDP_WG_TIMER_PERSISTENT_KEEPALIVE, due);
}

void kdp_wg_timers_any_sent(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  keepalive_not_due(peer);
  kdp_wg_timers_traversed(device, peer, boot);
}

void kdp_wg_timers_any_received(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  new_handshake_not_due(peer);
  kdp_wg_timers_traversed(device, peer, boot);
}

void kdp_wg_timers_attempt_begun(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  peer->attempts = 0;
  kdp_wg_timer_set(device, peer, KDP_WG_TIMER_GIVE_UP, boot + KDP_WG_REKEY_ATTEMPT_TIME);
}

void kdp_wg_timers_retransmit_after(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  kdp_wg_timer_set(device, peer, KDP_WG_TIMER_RETRANSMIT, boot + KDP_WG_REKEY_TIMEOUT + jitter(device));
}

void kdp_wg_timers_handshake_complete(kdp_wg_device *device, kdp_wg_peer *peer) {
  kdp_wg_work_remove(device, peer, KDP_WG_WORK_INITIATE);
  peer->timer[KDP_WG_TIMER_RETRANSMIT] = peer->timer[KDP_WG_TIMER_GIVE_UP] = KDP_NEVER;
  peer->attempts = 0;
}

void kdp_wg_timers_session_derived(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  kdp_wg_timer_set(device, peer, KDP_WG_TIMER_WIPE, boot + KDP_WG_WIPE_TIME);
}

/* ---- What happens when they fire ---- */

/* The endpoint's name may stand for another address by now. Not a matter of a fixed port or of other peers. */
static void ask_to_resolve(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  if (peer->resolved != 0 && now.boot - peer->resolved < KDP_WG_RESOLVE_INTERVAL) return;
  if (!kdp_wg_push_action(out, KDP_ACTION_RESOLVE, peer)) return;
  peer->resolved = now.boot;
  kdp_event event;
  kdp_wg_event(&event, KDP_EVENT_RESOLVE, peer, now);
  event.address = peer->path.remote;
  event.value = peer->unanswered;
  kdp_wg_tell(device, &event);
}

/* A mapping on the way may be dead for our port only. But while any peer is heard the port works, and a port bound anew
   costs the others their mappings: so only when nothing authenticated came since the first of the last three unanswered
   initiations, and then less and less often. */
static void ask_to_rebind(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  if (device->authenticated > peer->initiated[KDP_WG_REBIND_AFTER - 1]) return;
  bool heard_since = device->authenticated > device->rebound;
  if (device->rebound == 0 || heard_since)
    device->rebind_interval = KDP_WG_REBIND_INTERVAL;
  else if (now.boot - device->rebound < device->rebind_interval)
    return;
  else if ((device->rebind_interval *= 2) > KDP_WG_REBIND_INTERVAL_MAX)
    device->rebind_interval = KDP_WG_REBIND_INTERVAL_MAX;
  if (!device->fixed_port && !kdp_wg_push_action(out, KDP_ACTION_REBIND, peer)) return;
  device->rebound = now.boot;
  kdp_wg_tell_simple(device, KDP_EVENT_REBIND, peer, device->fixed_port ? KDP_UNSUPPORTED : KDP_OK, peer->unanswered,
                     now);
}

static void retransmit(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  kdp_wg_clear_source(device, peer);
  if (peer->unanswered >= KDP_WG_REBIND_AFTER) {
    ask_to_rebind(device, peer, out, now);
    ask_to_resolve(device, peer, out, now);
  }
  kdp_wg_work_add(device, peer, KDP_WG_WORK_INITIATE);
}

static void give_up(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  kdp_wg_work_remove(device, peer, KDP_WG_WORK_INITIATE);
  peer->timer[KDP_WG_TIMER_RETRANSMIT] = KDP_NEVER;
  keepalive_not_due(peer);
  kdp_wg_count(device, KDP_STAGED_DROPPED, kdp_wg_staging_drop_all(&device->staging, &peer->staged));
  kdp_wg_count(device, KDP_HANDSHAKE_TIMEOUT, 1);
  if (peer->timer[KDP_WG_TIMER_WIPE] == KDP_NEVER) kdp_wg_timers_session_derived(device, peer, now.boot);
  kdp_wg_tell_simple(device, KDP_EVENT_HANDSHAKE_FAILED, peer, KDP_HANDSHAKE_TIMEOUT, peer->attempts, now);
  ask_to_resolve(device, peer, out, now);
  peer->attempts = 0;
}

static void session_end(kdp_wg_device *device, kdp_wg_peer *peer, kdp_now now) {
  if (!peer->connected) return;
  peer->connected = false;
  kdp_wg_tell_simple(device, KDP_EVENT_DISCONNECTED, peer, KDP_KEY_EXPIRED, 0, now);
}

static void fire(kdp_wg_device *device, kdp_wg_peer *peer, kdp_wg_timer timer, kdp_out *out, kdp_now now) {
  switch (timer) {
  case KDP_WG_TIMER_WIPE:
    kdp_wg_session_clear(device, peer, KDP_KEY_EXPIRED, now);
    kdp_wg_handshake_clear(device, peer);
    break;
  case KDP_WG_TIMER_SESSION_END: session_end(device, peer, now); break;
  case KDP_WG_TIMER_GIVE_UP: give_up(device, peer, out, now); break;
  case KDP_WG_TIMER_RETRANSMIT: retransmit(device, peer, out, now); break;
  case KDP_WG_TIMER_NEW_HANDSHAKE:
    new_handshake_not_due(peer);
    kdp_wg_clear_source(device, peer);
    kdp_wg_want_handshake(device, peer, now.boot);
    break;
  case KDP_WG_TIMER_KEEPALIVE:
    keepalive_not_due(peer);
    kdp_wg_owe_keepalive(device, peer);
    break;
  case KDP_WG_TIMER_PERSISTENT_KEEPALIVE:
    if (device->down || !kdp_wg_peer_has_endpoint(peer)) break; /* the first packet either way starts it again */
    kdp_wg_owe_keepalive(device, peer);
    peer->timer[timer] = now.boot + peer->keepalive_interval;
    break;
  case KDP_WG_TIMER_NOTES: kdp_wg_notes_look_again(device, peer, out, now); break;
  case KDP_WG_TIMER_COUNT: break;
  }
}

/* The host slept through a retransmission: the time was not spent trying. */
static void forgive_sleep(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot) {
  uint64_t due = peer->timer[KDP_WG_TIMER_RETRANSMIT];
  if (due == KDP_NEVER || boot < due || boot - due <= KDP_WG_REKEY_TIMEOUT) return;
  peer->unanswered = 0;
  kdp_wg_timers_attempt_begun(device, peer, boot);
}

void kdp_wg_timers_run(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  while (kdp_wg_heap_first(&device->heap) <= now.boot) {
    kdp_wg_peer *peer = device->heap.node[0].peer;
    if (kdp_wg_is_shared(device)) kdp_wg_notes_look(device, peer, out, now);
    forgive_sleep(device, peer, now.boot);
    for (int i = 0; i < KDP_WG_TIMER_COUNT; i++)
      if (peer->timer[i] <= now.boot) {
        peer->timer[i] = KDP_NEVER;
        fire(device, peer, (kdp_wg_timer)i, out, now);
      }
    uint64_t earliest = KDP_NEVER;
    for (int i = 0; i < KDP_WG_TIMER_COUNT; i++)
      if (peer->timer[i] < earliest) earliest = peer->timer[i];
    kdp_wg_heap_set(&device->heap, peer, earliest);
  }
}
