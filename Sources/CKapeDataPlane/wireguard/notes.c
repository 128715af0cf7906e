#include "core/wipe.h"
#include "wireguard/device.h"

/* ---- Other lanes ---- */

/* After the notes. Either this lane sees that nobody watches, or lane 0, which looks once more after it has stopped to
   watch, sees the notes: hence the order of all stores and loads of `sent`, `received` and `watched`. */
static void call_attention(kdp_wg_lane *lane, kdp_wg_peer *peer) {
  kdp_wg_notes_list *list = &kdp_wg_device_of_lane(&lane->base)->noted;
  if (atomic_load(&peer->notes.watched) || atomic_exchange(&peer->notes.watched, 1)) return;
  kdp_wg_peer *first = atomic_load_explicit(&list->first, memory_order_relaxed);
  do
    peer->notes.next = first;
  while (!atomic_compare_exchange_weak(&list->first, &first, peer));
  lane->wake = true;
}

/* The note says when it began: one that is there stays. */
static void begin(_Atomic(uint64_t) *note, uint64_t boot) {
  if (atomic_load_explicit(note, memory_order_relaxed) == 0) atomic_store_explicit(note, boot, memory_order_relaxed);
}

static void end(_Atomic(uint64_t) *note) {
  if (atomic_load_explicit(note, memory_order_relaxed) != 0) atomic_store_explicit(note, 0, memory_order_relaxed);
}

void kdp_wg_note_sent(kdp_wg_lane *lane, kdp_wg_peer *peer, bool data, uint64_t boot) {
  end(&peer->notes.owing);
  if (data) begin(&peer->notes.awaiting, boot);
  atomic_store(&peer->notes.sent, boot);
  call_attention(lane, peer);
}

void kdp_wg_note_received(kdp_wg_lane *lane, kdp_wg_peer *peer, bool data, uint64_t boot) {
  end(&peer->notes.awaiting);
  if (data) begin(&peer->notes.owing, boot);
  atomic_store(&peer->notes.received, boot);
  call_attention(lane, peer);
}

/* ---- Lane 0 ---- */

/* A packet of another lane went to the peer at `boot`. */
static void sent(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot, kdp_out *out, kdp_now now) {
  kdp_wg_timers_traversed(device, peer, boot);
  kdp_wg_ask_path_mtu(device, peer, out, now.boot);
  /* It may have been sealed before the current session was made. */
  if (peer->current && boot >= peer->current->birth && kdp_wg_renew_on_sending(peer->current, boot))
    kdp_wg_want_handshake(device, peer, now.boot);
}

static void received(kdp_wg_device *device, kdp_wg_peer *peer, uint64_t boot, kdp_now now) {
  kdp_wg_timers_traversed(device, peer, boot);
  if (boot > device->authenticated) device->authenticated = boot;
  if (boot > peer->initiated[0]) peer->unanswered = 0;
  if (peer->current && boot >= peer->current->birth && kdp_wg_renew_on_receiving(peer->current, boot))
    kdp_wg_want_handshake(device, peer, now.boot);
}

void kdp_wg_notes_look(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  kdp_wg_notes *notes = &peer->notes;
  uint64_t newest_sent = atomic_load(&notes->sent), newest_received = atomic_load(&notes->received);
  kdp_wg_timers_follow_notes(device, peer);
  if (newest_received != notes->seen_received) {
    notes->seen_received = newest_received;
    notes->active = true;
    received(device, peer, newest_received, now);
  }
  if (newest_sent != notes->seen_sent) {
    notes->seen_sent = newest_sent;
    notes->active = true;
    sent(device, peer, newest_sent, out, now);
  }
}

static void watch(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  kdp_wg_notes_look(device, peer, out, now);
  peer->notes.active = false;
  uint64_t again = now.boot + KDP_WG_NOTES_INTERVAL;
  kdp_wg_timer_set(device, peer, KDP_WG_TIMER_NOTES, again - again % KDP_WG_NOTES_STEP);
}

void kdp_wg_notes_collect(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  atomic_store(&device->noted.attention, 0);
  kdp_wg_peer *peer = atomic_exchange(&device->noted.first, NULL);
  while (peer) {
    kdp_wg_peer *next = peer->notes.next;
    watch(device, peer, out, now);
    peer = next;
  }
}

static bool is_news(const kdp_wg_notes *notes) {
  return atomic_load(&notes->sent) != notes->seen_sent || atomic_load(&notes->received) != notes->seen_received ||
         atomic_load(&notes->awaiting) != notes->seen_awaiting || atomic_load(&notes->owing) != notes->seen_owing;
}

void kdp_wg_notes_look_again(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, kdp_now now) {
  if (!peer->notes.active) {
    atomic_store(&peer->notes.watched, 0);
    /* Something came in between. When a lane has seen that nobody watches, the peer is on the list. */
    if (!is_news(&peer->notes) || atomic_exchange(&peer->notes.watched, 1)) return;
  }
  watch(device, peer, out, now);
}

void kdp_wg_notes_forget(kdp_wg_device *device, kdp_wg_peer *peer) {
  kdp_wg_peer *first = atomic_load(&device->noted.first);
  if (first == peer) {
    atomic_store(&device->noted.first, peer->notes.next);
  } else {
    for (kdp_wg_peer *at = first; at; at = at->notes.next)
      if (at->notes.next == peer) at->notes.next = peer->notes.next;
  }
  kdp_wipe(&peer->notes, sizeof peer->notes);
}
