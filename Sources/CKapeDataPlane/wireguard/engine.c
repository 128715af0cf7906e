/* Making, ending and the smaller calls of the engine. */
#include <sodium.h>

#include "core/wipe.h"
#include "wireguard/device.h"

/* The lanes and behind them the doors of the gate, aligned to cache lines in one piece of memory. */
static size_t lanes_size(uint32_t lanes) {
  return lanes * (sizeof(kdp_wg_lane) + sizeof(kdp_lane_door)) + KDP_CACHE_LINE - 1;
}

static kdp_status create_lanes(kdp_wg_device *device, uint64_t boot) {
  uint32_t lanes = device->limits.lanes;
  device->lane_memory = device->host.allocate(device->host.context, lanes_size(lanes));
  if (!device->lane_memory) return KDP_NO_MEMORY;
  uintptr_t aligned = ((uintptr_t)device->lane_memory + KDP_CACHE_LINE - 1) & ~(uintptr_t)(KDP_CACHE_LINE - 1);
  device->lane = (kdp_wg_lane *)aligned;
  device->gate.door = (kdp_lane_door *)(aligned + lanes * sizeof(kdp_wg_lane));
  device->gate.lanes = lanes;
  for (uint32_t i = 0; i < lanes; i++) {
    kdp_wg_lane *lane = &device->lane[i];
    memset(lane, 0, offsetof(kdp_wg_lane, group));
    lane->group.count = 0;
    lane->base = (kdp_lane){.engine = &device->engine, .index = i, .newest_boot = boot};
    atomic_init(&device->gate.door[i].busy, 0);
  }
  return KDP_OK;
}

static void destroy_lanes(kdp_wg_device *device) {
  if (!device->lane_memory) return;
  size_t size = lanes_size(device->limits.lanes);
  for (uint32_t i = 0; i < device->limits.lanes; i++)
    kdp_aead_worker_destroy(device->lane[i].worker);
  kdp_wipe(device->lane_memory, size);
  device->host.release(device->host.context, device->lane_memory, size);
}

static void destroy(kdp_engine *engine) {
  kdp_wg_device *device = kdp_wg_device_of(engine);
  kdp_host host = device->host;
  for (uint32_t i = 0; i < device->peers.count; i++) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    kdp_wg_key_pair *pairs[] = {peer->current, peer->previous, peer->next};
    for (size_t j = 0; j < sizeof pairs / sizeof pairs[0]; j++)
      if (pairs[j]) kdp_wg_key_pair_give_back(&device->keys, pairs[j]);
    kdp_wg_peer_destroy(device, peer);
  }
  kdp_wg_key_store_destroy(&device->keys, &host);
  kdp_wg_index_destroy(&device->indices, &host);
  kdp_wg_heap_destroy(&device->heap, &host);
  kdp_wg_peer_table_destroy(&device->peers, &host);
  kdp_wg_staging_destroy(&device->staging, &host);
  if (device->trie) kdp_trie_destroy(device->trie);
  destroy_lanes(device);
  kdp_wipe(device, sizeof *device);
  host.release(host.context, device, sizeof *device);
}

/* Lanes seal whole batches at the same time, and each may be overtaken by all others; the rest of what the other end
   tolerates is left to the network. */
enum { REORDER_WINDOW = (KDP_WG_WINDOW_WORDS - 1) * 64 };
static_assert(REORDER_WINDOW >= 4 * KDP_WIREGUARD_MAX_LANES * KDP_AEAD_MAX_BATCH, "a session on all lanes");

static kdp_room room(const kdp_engine *engine, const kdp_path *path) {
  (void)path;
  return (kdp_room){
      .head = KDP_WIREGUARD_HEAD,
      .tail = KDP_WIREGUARD_TAIL,
      .growth = KDP_WIREGUARD_HEAD + KDP_WIREGUARD_TAIL,
      .full_tail = KDP_WG_TAG_SIZE, /* padding never goes beyond the MTU */
      .inside_mtu = __atomic_load_n(&((const kdp_wg_device *)(const void *)engine)->inside_mtu, __ATOMIC_RELAXED),
      .reorder_window = REORDER_WINDOW,
  };
}

static kdp_lane *lane_of(kdp_engine *engine, uint32_t index) {
  kdp_wg_device *device = kdp_wg_device_of(engine);
  return index < device->limits.lanes ? &device->lane[index].base : NULL;
}

/* An interface taken down ends its sessions, as in the kernel: nobody knows when it is up again, and the keys are not
   to lie about until then. Any other loss of a link only takes the source addresses along that were learnt on it. */
static void link_down(kdp_lane *lane, kdp_link link, int error, kdp_out *out, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(lane);
  (void)out;
  now = kdp_wg_clamp(device, now);
  if (error == 0) device->down = true;
  for (uint32_t i = 0; i < device->peers.count; i++) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    if (error == 0) kdp_wg_peer_stop(device, peer, now);
    if (error == 0 || peer->path.link == link) kdp_wg_clear_source(device, peer);
  }
}

/* Up again: peers that are to be kept alive begin at once. */
static void link_up(kdp_lane *lane, kdp_link link, kdp_link_kind kind, const kdp_path *path, kdp_out *out,
                    kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(lane);
  (void)link;
  (void)kind;
  (void)path;
  if (!device->down) return;
  device->down = false;
  now = kdp_wg_clamp(device, now);
  kdp_wg_call_begin(device, out, now);
  for (uint32_t i = 0; i < device->peers.count; i++) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    if (peer->keepalive_interval != 0 || peer->staged.count > 0) kdp_wg_owe_keepalive(device, peer);
  }
  kdp_wg_call_end(device, out, now);
}

static void learn_path_mtu(kdp_wg_device *device, kdp_wg_peer *peer, uint16_t bytes, uint64_t boot) {
  kdp_wg_change_begin(device);
  peer->path_mtu = bytes;
  peer->path_mtu_until = boot + KDP_WG_PATH_MTU_TIME;
  kdp_wg_change_end(device);
  peer->path_mtu_ask = boot + (bytes ? KDP_WG_PATH_MTU_TIME : KDP_WG_PATH_MTU_RETRY);
}

static bool is_behind(const kdp_wg_peer *peer, const kdp_path *path) {
  return peer->path.remote.family == path->remote.family &&
         memcmp(peer->path.remote.bytes, path->remote.bytes, sizeof path->remote.bytes) == 0;
}

/* An answer is for those who asked; others behind the same address ask for themselves. With thousands of peers that
   become active at once, looking through all of them for each answer would hold up their packets. What nobody asked for
   is news, and for everybody. */
static void path_mtu(kdp_lane *lane, const kdp_path *path, uint16_t bytes, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(lane);
  bool was_asked = false;
  for (uint32_t i = 0; i < KDP_WG_MTU_ASKED; i++) {
    if (device->mtu_asked[i] == 0) continue;
    kdp_wg_peer *peer = kdp_wg_peer_table_numbered(&device->peers, device->mtu_asked[i]);
    if (peer && !is_behind(peer, path)) continue;
    device->mtu_asked[i] = 0;
    if (!peer) continue;
    learn_path_mtu(device, peer, bytes, now.boot);
    was_asked = true;
  }
  if (was_asked) return;
  for (uint32_t i = 0; i < device->peers.count; i++)
    if (is_behind(device->peers.ordered[i], path)) learn_path_mtu(device, device->peers.ordered[i], bytes, now.boot);
}

/* Our side of every path is forgotten; a path MTU stays until the answer to a new question, for one that is too small
   does no harm. Peers that are in use say at once where they are now: with a session by an empty packet, else by an
   initiation that does not wait for the last one's time to pass. */
static void network_changed(kdp_lane *lane, kdp_out *out, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(lane);
  now = kdp_wg_clamp(device, now);
  kdp_wg_call_begin(device, out, now);
  for (uint32_t i = 0; i < device->peers.count; i++) {
    kdp_wg_peer *peer = device->peers.ordered[i];
    kdp_wg_clear_source(device, peer);
    peer->path_mtu_ask = 0;
    bool attempting = kdp_wg_attempt_runs(peer);
    /* One that left this moment (the wake from sleep that led to this call) is enough: the other end would take a
       second one so soon for a flood. */
    if (attempting && now.boot - peer->initiated[0] < KDP_SECOND / KDP_WG_INITIATIONS_PER_SECOND) continue;
    if (attempting || peer->staged.count > 0) {
      peer->handshake_sent = 0;
      peer->unanswered = 0;
      peer->timer[KDP_WG_TIMER_RETRANSMIT] = peer->timer[KDP_WG_TIMER_GIVE_UP] = KDP_NEVER;
      kdp_wg_work_remove(device, peer, KDP_WG_WORK_INITIATE);
      kdp_wg_want_handshake(device, peer, now.boot);
    } else if (peer->keepalive_interval != 0 || kdp_wg_key_pair_can_send(peer->current, now.boot)) {
      kdp_wg_owe_keepalive(device, peer);
    }
  }
  kdp_wg_call_end(device, out, now);
}

static void set_inside_mtu(kdp_engine *engine, uint16_t bytes) {
  __atomic_store_n(&kdp_wg_device_of(engine)->inside_mtu, bytes ? bytes : KDP_WG_DEFAULT_MTU, __ATOMIC_RELAXED);
}

static uint64_t deadline(const kdp_lane *lane) {
  const kdp_wg_device *device = (const kdp_wg_device *)(const void *)lane->engine;
  if (lane->index != 0) return ((const kdp_wg_lane *)(const void *)lane)->wake ? lane->newest_boot : KDP_NEVER;
  if (device->out_blocked || kdp_wg_notes_wait(device)) return lane->newest_boot;
  uint64_t earliest = kdp_wg_heap_first(&device->heap);
  if (device->pool_retry != 0 && device->pool_retry < earliest) earliest = device->pool_retry;
  if (device->load_until != 0 && device->load_until < earliest) earliest = device->load_until;
  return earliest;
}

static void tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  if (lane->index != 0) {
    if (kdp_wg_lane_of(lane)->wake) kdp_wg_wake_lane_0(kdp_wg_lane_of(lane), out);
    return;
  }
  now = kdp_wg_begin(kdp_wg_lane_of(lane), out, now);
  kdp_wg_end(kdp_wg_lane_of(lane), out, now);
}

static bool next_event(kdp_engine *engine, kdp_event *event) {
  return kdp_event_queue_take(&kdp_wg_device_of(engine)->events, event);
}

static void statistics(const kdp_engine *engine, kdp_statistics *statistics) {
  const kdp_wg_device *device = (const kdp_wg_device *)(const void *)engine;
  for (uint32_t i = 0; i < device->limits.lanes; i++)
    kdp_statistics_add(&device->lane[i].statistics, statistics);
}

static const kdp_engine_ops ops = {
    .name = "wireguard",
    .destroy = destroy,
    .room = room,
    .lane = lane_of,
    .inside = kdp_wg_inside,
    .outside = kdp_wg_outside,
    .link_up = link_up,
    .link_down = link_down,
    .path_mtu = path_mtu,
    .network_changed = network_changed,
    .set_inside_mtu = set_inside_mtu,
    .deadline = deadline,
    .tick = tick,
    .next_event = next_event,
    .statistics = statistics,
};

static kdp_limits with_defaults(const kdp_limits *limits) {
  kdp_limits filled = *limits;
  if (filled.peers == 0) filled.peers = KDP_WG_DEFAULT_PEERS;
  if (filled.lanes == 0) filled.lanes = 1;
  if (filled.staged_packets == 0) filled.staged_packets = KDP_WG_DEFAULT_STAGED_PACKETS;
  if (filled.handshakes_per_call == 0) filled.handshakes_per_call = KDP_WG_DEFAULT_HANDSHAKES_PER_CALL;
  return filled;
}

/* Everything that can fail; destroy() takes what is there. */
static kdp_status fill(kdp_wg_device *device, const kdp_wireguard_config *config, kdp_now now) {
  kdp_status status = create_lanes(device, now.boot);
  for (uint32_t i = 0; i < device->limits.lanes && status == KDP_OK; i++)
    status = kdp_aead_worker_choose(config->aead_provider, &device->host, &device->lane[i].worker);
  if (status != KDP_OK) return status;
  device->aead = config->aead ? config->aead : kdp_aead_of(device->lane[0].worker, KDP_AEAD_CHACHA20_POLY1305);
  if (device->aead->key_size != KDP_WG_KEY_SIZE || device->aead->expanded_size != 0) return KDP_UNSUPPORTED;
  status = kdp_trie_create(&device->host, &device->trie);
  if (status != KDP_OK) return status;
  return kdp_wg_staging_create(&device->staging, device->limits.staged_packets, &device->host);
}

kdp_status kdp_wireguard_create(const kdp_wireguard_config *config, const kdp_limits *limits, const kdp_host *host,
                                kdp_now now, kdp_engine **engine) {
  if (limits->lanes > KDP_WIREGUARD_MAX_LANES) return KDP_INVALID_ARGUMENT;
  if (sodium_init() < 0) return KDP_SELF_TEST_FAILED;
  kdp_wg_device *device = host->allocate(host->context, sizeof *device);
  if (!device) return KDP_NO_MEMORY;
  memset(device, 0, offsetof(kdp_wg_device, events));
  device->events.first = device->events.count = device->events.lost = 0;
  device->engine.ops = &ops;
  device->host = *host;
  device->limits = with_defaults(limits);
  device->inside_mtu = config->inside_mtu ? config->inside_mtu : KDP_WG_DEFAULT_MTU;
  device->fixed_port = config->fixed_port;
  device->newest_stamp = device->stamp_floor = config->newest_stamp;
  device->icmp_time = now.boot;
  device->icmp_credit = KDP_SECOND / KDP_WG_ICMP_PER_SECOND * KDP_WG_ICMP_BURST;
  host->random(host->context, &device->jitter, sizeof device->jitter);
  device->jitter |= 1; /* the generator stands still at zero */
  kdp_wg_peer_table_start(&device->peers, host);
  kdp_wg_ratelimit_start(&device->ratelimit, host);
  kdp_status status = fill(device, config, now);
  if (status != KDP_OK) {
    destroy(&device->engine);
    return status;
  }
  *engine = &device->engine;
  return KDP_OK;
}
