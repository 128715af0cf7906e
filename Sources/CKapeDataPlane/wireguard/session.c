#include "core/wipe.h"
#include "wireguard/device.h"

/* Takes the pair that a peer's field points to away from it; behind the gate. */
static void drop(kdp_wg_device *device, kdp_wg_key_pair **pair) {
  if (!*pair) return;
  kdp_wg_index_release(&device->indices, (*pair)->local_index);
  kdp_wg_key_pair_give_back(&device->keys, *pair);
  for (uint32_t i = 0; i < device->limits.lanes; i++)
    kdp_aead_worker_forget(device->lane[i].worker);
  *pair = NULL;
}

/* The current pair is a new one: what the outside is told, and the clock of its end. */
static void current_changed(kdp_wg_device *device, kdp_wg_peer *peer, kdp_now now) {
  kdp_counter_add(&device->lane[0].statistics.handshakes, 1);
  kdp_counter_add(&device->lane[0].statistics.key_changes, 1);
  peer->handshake_wall = now.wall;
  kdp_wg_timers_handshake_complete(device, peer);
  kdp_wg_timer_set(device, peer, KDP_WG_TIMER_SESSION_END, peer->current->birth + KDP_WG_REJECT_AFTER_TIME);
  kdp_event event;
  kdp_wg_event(&event, peer->connected ? KDP_EVENT_REKEYED : KDP_EVENT_CONNECTED, peer, now);
  event.address = peer->path.remote;
  kdp_wg_tell(device, &event);
  peer->connected = true;
}

void kdp_wg_session_add(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_wg_session_keys *keys, bool initiator,
                        uint32_t local_index, uint32_t remote_index, kdp_now now) {
  kdp_wg_change_begin(device);
  /* Make the place first: the store holds two pairs a peer and no more. */
  drop(device, &peer->previous);
  if (!initiator) {
    drop(device, &peer->next);
  } else if (peer->next) {
    /* A pair that waits for its first packet may be the one that the other end uses, when both began at once: it stays
       for receiving, and the current one goes. */
    drop(device, &peer->current);
    peer->previous = peer->next;
    peer->next = NULL;
  } else {
    peer->previous = peer->current;
    peer->current = NULL;
  }
  kdp_wg_key_pair *pair = kdp_wg_key_pair_take(&device->keys);
  pair->keys = *keys;
  pair->birth = now.boot;
  pair->peer = peer;
  pair->local_index = local_index;
  pair->remote_index = remote_index;
  pair->initiator = initiator;
  device->newest_birth = now.boot;
  kdp_wg_index_change(&device->indices, local_index, KDP_WG_INDEX_KEY_PAIR, pair);
  kdp_wg_timers_session_derived(device, peer, now.boot);
  if (initiator) {
    peer->current = pair;
    current_changed(device, peer, now);
  } else {
    peer->next = pair;
  }
  kdp_wg_change_end(device);
}

void kdp_wg_session_confirm(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_wg_key_pair *pair, kdp_now now) {
  if (pair != peer->next || !pair) return;
  kdp_wg_change_begin(device);
  drop(device, &peer->previous);
  peer->previous = peer->current;
  peer->current = peer->next;
  peer->next = NULL;
  kdp_wg_change_end(device);
  /* An initiation of ours that is still under way has become pointless; its answer, held back by someone, must not put
     a session into use later that the other end has forgotten. */
  kdp_wg_handshake_clear(device, peer);
  current_changed(device, peer, now);
  if (peer->staged.count > 0) kdp_wg_work_add(device, peer, KDP_WG_WORK_FLUSH);
}

void kdp_wg_session_clear(kdp_wg_device *device, kdp_wg_peer *peer, kdp_status why, kdp_now now) {
  if (peer->next || peer->previous || peer->current) {
    kdp_wg_change_begin(device);
    drop(device, &peer->next);
    drop(device, &peer->previous);
    drop(device, &peer->current);
    kdp_wg_change_end(device);
  }
  peer->timer[KDP_WG_TIMER_SESSION_END] = KDP_NEVER;
  if (peer->connected) {
    peer->connected = false;
    kdp_wg_tell_simple(device, KDP_EVENT_DISCONNECTED, peer, why, 0, now);
  }
}

void kdp_wg_peer_stop(kdp_wg_device *device, kdp_wg_peer *peer, kdp_now now) {
  kdp_wg_change_begin(device);
  kdp_wg_session_clear(device, peer, KDP_CLOSED, now);
  kdp_wg_handshake_clear(device, peer);
  kdp_wg_timers_stop(device, peer);
  kdp_wg_notes_forget(device, peer);
  kdp_wg_change_end(device);
  kdp_wg_work_remove(device, peer, KDP_WG_WORK_INITIATE);
  kdp_wg_work_remove(device, peer, KDP_WG_WORK_FLUSH);
  kdp_wg_count(device, KDP_STAGED_DROPPED, kdp_wg_staging_drop_all(&device->staging, &peer->staged));
  peer->keepalive_owed = false;
  peer->handshake_sent = 0;
  peer->attempts = peer->unanswered = 0;
}

void kdp_wg_handshake_clear(kdp_wg_device *device, kdp_wg_peer *peer) {
  if (!peer->handshake_active) return;
  kdp_wg_change_begin(device);
  kdp_wg_index_release(&device->indices, peer->handshake_index);
  kdp_wg_change_end(device);
  kdp_wipe(&peer->handshake, sizeof peer->handshake);
  peer->handshake_active = false;
}
