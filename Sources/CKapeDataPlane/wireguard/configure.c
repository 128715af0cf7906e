/* kdp_wireguard_apply: all or nothing. First everything that can fail is done: the change is checked and walked through
   in order to see which peers it makes, and all memory is taken. Then it is carried out, which cannot fail.

   A peer that is in the table by key but not `live` is one that the change makes, or has removed; `present` is the
   answer of the walk to "would it exist now". Between two changes every peer is live and present. */
#include "core/wipe.h"
#include "wireguard/device.h"

void kdp_wg_peer_destroy(kdp_wg_device *device, kdp_wg_peer *peer) {
  kdp_wipe(peer, sizeof *peer);
  device->host.release(device->host.context, peer, sizeof *peer);
}

typedef struct apply_state {
  kdp_wg_device *device;
  const kdp_wireguard_change *change;
  kdp_wg_identity identity; /* the one that will be */
  bool new_identity;
  bool replace;
  kdp_wg_peer *pending;  /* made or removed by the change */
  uint32_t present;      /* peers at this point of the walk */
  uint32_t present_most; /* and the most at any point */
  uint32_t made;
  uint32_t prefixes; /* that will be inserted */
} apply_state;

static bool is_own_key(const apply_state *state, const uint8_t public_key[KDP_KEY_SIZE]) {
  return state->identity.present && memcmp(public_key, state->identity.public_key, KDP_KEY_SIZE) == 0;
}

/* A change that says that the peer is to exist. */
static bool wants_peer(const apply_state *state, const kdp_wireguard_peer_change *change) {
  return !(change->fields & (KDP_WIREGUARD_PEER_REMOVE | KDP_WIREGUARD_PEER_UPDATE_ONLY)) &&
         !is_own_key(state, change->public_key);
}

static void add_pending(apply_state *state, kdp_wg_peer *peer) {
  if (peer->is_pending) return;
  peer->is_pending = true;
  peer->pending = state->pending;
  state->pending = peer;
}

/* Frees the pending peers that do not live. */
static void settle_pending(apply_state *state) {
  kdp_wg_device *device = state->device;
  for (kdp_wg_peer *peer = state->pending, *after; peer; peer = after) {
    after = peer->pending;
    peer->is_pending = false;
    if (peer->live) continue;
    kdp_wg_peer_table_remove(&device->peers, peer);
    kdp_wg_peer_destroy(device, peer);
  }
  state->pending = NULL;
}

/* ---- What can fail ---- */

static kdp_status check(apply_state *state) {
  const kdp_wireguard_change *change = state->change;
  for (uint32_t i = 0; i < change->peer_count; i++) {
    const kdp_wireguard_peer_change *peer = &change->peer[i];
    if (!(peer->fields & KDP_WIREGUARD_PEER_REMOVE) && kdp_is_zero(peer->public_key, KDP_KEY_SIZE))
      return KDP_LOW_ORDER_KEY;
    for (uint32_t j = 0; j < peer->prefix_count; j++) {
      kdp_prefix prefix = peer->prefix[j].prefix;
      if (!kdp_prefix_normalise(&prefix)) return KDP_INVALID_ARGUMENT;
      if (!peer->prefix[j].remove) state->prefixes++;
    }
  }
  return KDP_OK;
}

static void find_identity(apply_state *state) {
  const kdp_wg_device *device = state->device;
  state->identity = device->identity;
  if (!(state->change->fields & KDP_WIREGUARD_SET_PRIVATE_KEY)) return;
  kdp_wg_identity_set(&state->identity, state->change->private_key);
  state->new_identity = state->identity.present != device->identity.present ||
                        !kdp_equal_secret(state->identity.private_key, device->identity.private_key, KDP_KEY_SIZE);
}

/* Who is still there before the first peer of the change is looked at. */
static void begin_walk(apply_state *state) {
  kdp_wg_device *device = state->device;
  state->present = device->peers.count;
  if (state->replace) {
    for (uint32_t i = 0; i < state->change->peer_count; i++) {
      const kdp_wireguard_peer_change *change = &state->change->peer[i];
      kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, change->public_key);
      if (peer && wants_peer(state, change)) peer->listed = true;
    }
    state->present = 0;
    for (uint32_t i = 0; i < device->peers.count; i++) {
      kdp_wg_peer *peer = device->peers.ordered[i];
      peer->present = peer->listed;
      state->present += peer->listed;
    }
  }
  if (state->identity.present) {
    kdp_wg_peer *self = kdp_wg_peer_table_find(&device->peers, state->identity.public_key);
    if (self && self->present) {
      self->present = false;
      state->present--;
    }
  }
  state->present_most = state->present;
}

static kdp_status walk_peer(apply_state *state, const kdp_wireguard_peer_change *change) {
  kdp_wg_device *device = state->device;
  if (is_own_key(state, change->public_key)) return KDP_OK;
  kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, change->public_key);
  if (change->fields & KDP_WIREGUARD_PEER_REMOVE) {
    if (peer && peer->present) {
      peer->present = false;
      state->present--;
    }
    return KDP_OK;
  }
  if ((peer && peer->present) || (change->fields & KDP_WIREGUARD_PEER_UPDATE_ONLY)) return KDP_OK;
  if (++state->present > device->limits.peers) return KDP_LIMIT;
  if (state->present > state->present_most) state->present_most = state->present;
  if (!peer) {
    kdp_status status = kdp_wg_peer_table_reserve(&device->peers, device->peers.count + ++state->made, &device->host);
    if (status != KDP_OK) return status;
    peer = device->host.allocate(device->host.context, sizeof *peer);
    if (!peer) return KDP_NO_MEMORY;
    kdp_wg_peer_start(peer, change->public_key);
    kdp_wg_peer_table_insert(&device->peers, peer);
    add_pending(state, peer);
  }
  peer->present = true;
  return KDP_OK;
}

/* Leaves every peer as it was. */
static void undo_walk(apply_state *state) {
  kdp_wg_device *device = state->device;
  settle_pending(state);
  for (uint32_t i = 0; i < device->peers.count; i++) {
    device->peers.ordered[i]->present = true;
    device->peers.ordered[i]->listed = false;
  }
}

static kdp_status reserve(apply_state *state) {
  kdp_wg_device *device = state->device;
  /* A peer that is removed gives back what it has only when its turn comes. */
  kdp_wg_change_begin(device);
  uint32_t peers = state->present_most > device->peers.count ? state->present_most : device->peers.count;
  kdp_status status = kdp_trie_reserve(device->trie, state->prefixes);
  if (status == KDP_OK) status = kdp_wg_heap_reserve(&device->heap, peers, &device->host);
  if (status == KDP_OK)
    status = kdp_wg_index_reserve(&device->indices, peers * (KDP_WG_KEY_PAIRS_PER_PEER + 1), &device->host);
  if (status == KDP_OK)
    status = kdp_wg_key_store_reserve(&device->keys, peers * KDP_WG_KEY_PAIRS_PER_PEER, &device->host);
  kdp_wg_change_end(device);
  return status;
}

static kdp_status prepare(apply_state *state) {
  kdp_status status = check(state);
  if (status != KDP_OK) return status;
  find_identity(state);
  begin_walk(state);
  for (uint32_t i = 0; i < state->change->peer_count && status == KDP_OK; i++)
    status = walk_peer(state, &state->change->peer[i]);
  if (status == KDP_OK) status = reserve(state);
  if (status != KDP_OK) undo_walk(state);
  return status;
}

/* ---- What cannot fail ---- */

static void remove_peer(apply_state *state, kdp_wg_peer *peer, kdp_now now) {
  kdp_wg_device *device = state->device;
  kdp_wg_peer_stop(device, peer, now);
  kdp_trie_remove_owner(device->trie, &peer->prefixes);
  kdp_wg_peer_table_drop(&device->peers, peer);
  if (peer->stamp > device->stamp_floor) device->stamp_floor = peer->stamp;
  peer->live = false;
  add_pending(state, peer);
}

static void use_identity(apply_state *state, kdp_now now) {
  kdp_wg_device *device = state->device;
  if (!state->new_identity) return;
  for (uint32_t i = 0; i < device->peers.count; i++) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    kdp_wg_peer_stop(device, peer, now);
    kdp_wipe(peer->static_static, sizeof peer->static_static);
    peer->static_static_known = false;
  }
  device->identity = state->identity;
  kdp_wg_cookie_checker_set(&device->checker, device->identity.public_key);
  if (!device->identity.present) return;
  kdp_wg_peer *self = kdp_wg_peer_table_find(&device->peers, device->identity.public_key);
  if (self && self->live) remove_peer(state, self, now);
  for (uint32_t i = 0; i < device->peers.count; i++)
    if (device->peers.ordered[i]->keepalive_interval != 0) kdp_wg_owe_keepalive(device, device->peers.ordered[i]);
}

/* Replaced peers that the change lists again keep their sessions and where they are; the rest of their configuration is
   as for a peer just made. */
static void replace_peers(apply_state *state, kdp_now now) {
  kdp_wg_device *device = state->device;
  if (!state->replace) return;
  for (uint32_t i = device->peers.count; i-- > 0;) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    if (!peer->listed) {
      remove_peer(state, peer, now);
      continue;
    }
    peer->listed = false;
    kdp_trie_remove_owner(device->trie, &peer->prefixes);
    kdp_wipe(peer->preshared_key, sizeof peer->preshared_key);
    peer->keepalive_interval = 0;
    peer->timer[KDP_WG_TIMER_PERSISTENT_KEEPALIVE] = KDP_NEVER;
  }
}

static kdp_wg_peer *find_or_make(apply_state *state, const kdp_wireguard_peer_change *change) {
  kdp_wg_device *device = state->device;
  kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, change->public_key);
  if (peer && peer->live) return peer;
  if (!peer || (change->fields & KDP_WIREGUARD_PEER_UPDATE_ONLY)) return NULL;
  kdp_wg_peer *chain = peer->chain, *pending = peer->pending;
  kdp_wg_peer_start(peer, change->public_key);
  peer->chain = chain;
  peer->pending = pending;
  peer->is_pending = peer->live = peer->present = true;
  peer->number = ++device->peer_number;
  peer->stamp = device->stamp_floor;
  kdp_wg_peer_table_append(&device->peers, peer);
  return peer;
}

static void set_prefixes(kdp_wg_device *device, kdp_wg_peer *peer, const kdp_wireguard_peer_change *change,
                         kdp_now now) {
  if (change->fields & KDP_WIREGUARD_PEER_REPLACE_PREFIXES) kdp_trie_remove_owner(device->trie, &peer->prefixes);
  for (uint32_t i = 0; i < change->prefix_count; i++) {
    kdp_prefix prefix = change->prefix[i].prefix;
    (void)kdp_prefix_normalise(&prefix);
    if (change->prefix[i].remove) {
      (void)kdp_trie_remove(device->trie, &prefix, &peer->prefixes);
      continue;
    }
    kdp_trie_owner *before = kdp_trie_insert(device->trie, &prefix, &peer->prefixes);
    if (!before) continue;
    kdp_event event;
    kdp_wg_event(&event, KDP_EVENT_PREFIX_MOVED, peer, now);
    event.other = kdp_wg_peer_of_owner(before)->number;
    event.address.family = prefix.family;
    memcpy(event.address.bytes, prefix.bytes, sizeof prefix.bytes);
    event.value = prefix.length;
    kdp_wg_tell(device, &event);
  }
}

static void set_keepalive(kdp_wg_device *device, kdp_wg_peer *peer, uint16_t seconds, kdp_now now) {
  bool off_before = peer->keepalive_interval == 0;
  peer->keepalive_interval = seconds * KDP_SECOND;
  if (seconds == 0)
    peer->timer[KDP_WG_TIMER_PERSISTENT_KEEPALIVE] = KDP_NEVER;
  else if (off_before)
    kdp_wg_owe_keepalive(device, peer);
  else
    kdp_wg_timer_set(device, peer, KDP_WG_TIMER_PERSISTENT_KEEPALIVE, now.boot + peer->keepalive_interval);
}

static void change_peer(apply_state *state, const kdp_wireguard_peer_change *change, kdp_now now) {
  kdp_wg_device *device = state->device;
  if (is_own_key(state, change->public_key)) return;
  if (change->fields & KDP_WIREGUARD_PEER_REMOVE) {
    kdp_wg_peer *peer = kdp_wg_peer_table_find(&device->peers, change->public_key);
    if (peer && peer->live) remove_peer(state, peer, now);
    return;
  }
  kdp_wg_peer *peer = find_or_make(state, change);
  if (!peer) return;
  if (change->fields & KDP_WIREGUARD_PEER_SET_PRESHARED_KEY)
    memcpy(peer->preshared_key, change->preshared_key, KDP_KEY_SIZE);
  if (change->fields & KDP_WIREGUARD_PEER_SET_ENDPOINT) {
    bool unknown = !kdp_wg_peer_has_endpoint(peer);
    kdp_path path = {.remote = change->endpoint};
    kdp_wg_peer_set_path(peer, &path);
    if (unknown && peer->keepalive_interval != 0) kdp_wg_owe_keepalive(device, peer);
  }
  set_prefixes(device, peer, change, now);
  if (change->fields & KDP_WIREGUARD_PEER_SET_KEEPALIVE) set_keepalive(device, peer, change->keepalive_seconds, now);
  if (peer->staged.count > 0) kdp_wg_work_add(device, peer, KDP_WG_WORK_FLUSH);
}

static void carry_out(apply_state *state, kdp_now now) {
  kdp_wg_device *device = state->device;
  const kdp_wireguard_change *change = state->change;
  if (change->fields & KDP_WIREGUARD_SET_FIXED_PORT) device->fixed_port = change->fixed_port;
  use_identity(state, now);
  replace_peers(state, now);
  for (uint32_t i = 0; i < change->peer_count; i++)
    change_peer(state, &change->peer[i], now);
  settle_pending(state);
  kdp_wg_key_store_trim(&device->keys, device->peers.count * KDP_WG_KEY_PAIRS_PER_PEER, &device->host);
}

kdp_status kdp_wireguard_apply(kdp_engine *engine, const kdp_wireguard_change *change, kdp_out *out, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of(engine);
  apply_state state = {
      .device = device, .change = change, .replace = (change->fields & KDP_WIREGUARD_REPLACE_PEERS) != 0};
  kdp_status status = prepare(&state);
  if (status == KDP_OK) {
    now = kdp_wg_clamp(device, now);
    kdp_wg_call_begin(device, out, now);
    /* As one: a prefix or a peer that stays is not missed by a packet in between. */
    kdp_wg_change_begin(device);
    carry_out(&state, now);
    kdp_wg_change_end(device);
    kdp_wg_call_end(device, out, now);
  }
  kdp_wipe(&state.identity, sizeof state.identity);
  return status;
}
