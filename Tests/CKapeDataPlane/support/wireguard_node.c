#include "support/wireguard_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(void *context, size_t size) {
  node *n = context;
  if (n->fail_after != SIZE_MAX) {
    if (n->fail_after == 0) return NULL;
    n->fail_after--;
  }
  n->allocations++;
  n->allocated += size;
  if (n->allocated > n->allocated_most) n->allocated_most = n->allocated;
  void *memory = malloc(size);
  if (memory && size <= 65536) memset(memory, 0xa5, size); /* nobody may count on zeros */
  return memory;
}

static void release(void *context, void *memory, size_t size) {
  node *n = context;
  n->allocated -= size;
  free(memory);
}

static void fill_random(void *context, void *bytes, size_t size) {
  node *n = context;
  uint8_t *at = bytes;
  size_t fixed = size < n->fixed_random_size ? size : n->fixed_random_size;
  if (fixed) memcpy(at, n->fixed_random, fixed);
  n->fixed_random += fixed;
  n->fixed_random_size -= fixed;
  rng_fill(&n->random, at + fixed, size - fixed);
}

static void must(kdp_status status, const char *what) {
  if (status == KDP_OK) return;
  fprintf(stderr, "%s: %s\n", what, kdp_status_describe(status)->text);
  abort();
}

node *node_make(uint8_t number, const kdp_wireguard_config *config, const kdp_limits *limits) {
  static const kdp_wireguard_config no_config;
  static const kdp_limits no_limits;
  node *n = calloc(1, sizeof *n);
  if (!n) abort();
  n->random.state = number;
  n->fail_after = SIZE_MAX;
  n->host = (kdp_host){.context = n, .allocate = allocate, .release = release, .random = fill_random};
  n->address = (kdp_address){.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, number}};
  kdp_host plain = kdp_host_default();
  must(kdp_pool_create(16, &plain, &n->pool), "pool");
  must(kdp_out_create(n->pool, &plain, &n->storage), "out");
  n->out = kdp_out_of(n->storage);
  must(kdp_wireguard_create(config ? config : &no_config, limits ? limits : &no_limits, &n->host, node_time(0),
                            &n->engine),
       "engine");
  n->lane = kdp_engine_lane(n->engine, 0);
  n->device = kdp_wg_device_of(n->engine);
  for (size_t i = 0; i < sizeof n->private_key; i++)
    n->private_key[i] = (uint8_t)(number * 7 + i);
  kdp_wireguard_public_key(n->private_key, n->public_key);
  must(node_set_private_key(n, n->private_key, node_time(0)), "private key");
  node_forget(n);
  return n;
}

static void drop_kept(kept_datagram *kept, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    free(kept[i].bytes);
  *count = 0;
}

void node_forget(node *n) {
  drop_kept(n->sent, &n->sent_count);
  drop_kept(n->delivered, &n->delivered_count);
  n->event_count = n->action_count = 0;
}

void node_free(node *n) {
  node_forget(n);
  kdp_engine_destroy(n->engine);
  kdp_out_destroy(n->storage);
  bool leaked = n->allocated != 0, held = kdp_pool_free_count(n->pool) + 1 < kdp_pool_slot_count(n->pool);
  kdp_pool_destroy(n->pool);
  free(n);
  if (leaked || held) {
    fprintf(stderr, "the engine kept %s\n", leaked ? "memory" : "packet slots");
    abort();
  }
}

static void keep(kept_datagram *kept, uint32_t *count, const kdp_batch *batch, bool with_path) {
  for (uint32_t i = 0; i < batch->count; i++) {
    const kdp_packet *packet = &batch->packet[i];
    if (*count == NODE_KEPT) abort();
    kept_datagram *at = &kept[(*count)++];
    *at = (kept_datagram){.size = packet->size, .ecn = packet->ecn, .flags = packet->flags};
    if (with_path) at->path = batch->path[packet->path];
    at->bytes = malloc(packet->size + 1);
    if (!at->bytes) abort();
    memcpy(at->bytes, packet->data, packet->size);
  }
}

static void collect(node *n) {
  kdp_event event;
  keep(n->sent, &n->sent_count, &n->out->wire, true);
  keep(n->delivered, &n->delivered_count, &n->out->inside, false);
  for (uint32_t i = 0; i < n->out->action_count && n->action_count < 64; i++)
    n->action[n->action_count++] = n->out->action[i];
  n->out->action_count = 0;
  kdp_batch_release(&n->out->wire, n->pool);
  kdp_batch_release(&n->out->inside, n->pool);
  while (kdp_engine_next_event(n->engine, &event)) {
    if (n->event_count == NODE_KEPT) abort();
    n->event[n->event_count++] = event;
  }
}

kdp_status node_set_private_key(node *n, const uint8_t key[32], kdp_now now) {
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
  memcpy(change.private_key, key, 32);
  return node_apply(n, &change, now);
}

kdp_wireguard_prefix_change node_prefix(const node *other) {
  return (kdp_wireguard_prefix_change){
      .prefix = {.family = KDP_FAMILY_IPV4, .length = 32, .bytes = {10, 0, 0, other->address.bytes[3]}}};
}

kdp_wireguard_peer_change node_peer(const node *other, bool endpoint, const kdp_wireguard_prefix_change *prefix,
                                    uint32_t prefix_count) {
  kdp_wireguard_peer_change change = {.fields = endpoint ? KDP_WIREGUARD_PEER_SET_ENDPOINT : 0,
                                      .endpoint = other->address,
                                      .prefix = prefix,
                                      .prefix_count = prefix_count};
  memcpy(change.public_key, other->public_key, 32);
  return change;
}

kdp_status node_apply(node *n, const kdp_wireguard_change *change, kdp_now now) {
  kdp_status status = kdp_wireguard_apply(n->engine, change, n->out, now);
  collect(n);
  return status;
}

kdp_status node_add_peer(node *n, const node *other, bool endpoint, kdp_now now) {
  kdp_wireguard_prefix_change prefix = node_prefix(other);
  kdp_wireguard_peer_change peer = node_peer(other, endpoint, &prefix, 1);
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  return node_apply(n, &change, now);
}

kdp_status node_set_keepalive(node *n, const node *other, uint16_t seconds, kdp_now now) {
  kdp_wireguard_peer_change peer = node_peer(other, false, NULL, 0);
  peer.fields = KDP_WIREGUARD_PEER_UPDATE_ONLY | KDP_WIREGUARD_PEER_SET_KEEPALIVE;
  peer.keepalive_seconds = seconds;
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  return node_apply(n, &change, now);
}

uint32_t node_packet(uint8_t *to, const node *from, const node *target, uint32_t payload) {
  uint32_t size = 28 + payload;
  memset(to, 0, 28);
  to[0] = 0x45;
  kdp_store_be16(to + 2, (uint16_t)size);
  to[8] = 64;
  to[9] = 17;
  memcpy(to + 12, (uint8_t[]){10, 0, 0, from->address.bytes[3]}, 4);
  memcpy(to + 16, (uint8_t[]){10, 0, 0, target->address.bytes[3]}, 4);
  kdp_store_be16(to + 24, (uint16_t)(8 + payload));
  for (uint32_t i = 0; i < payload; i++)
    to[28 + i] = (uint8_t)(i * 31 + payload);
  return size;
}

static kdp_packet carve(node *n, const void *bytes, uint32_t size) {
  kdp_packet packet;
  if (!kdp_pool_take_packet(n->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet)) abort();
  if (size) memcpy(packet.data, bytes, size);
  return packet;
}

kdp_status node_send(node *n, const uint8_t *bytes, uint32_t size, kdp_now now) {
  kdp_packet packet = carve(n, bytes, size);
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1};
  if (kdp_engine_inside(n->lane, &batch, n->out, now) != 1) abort();
  collect(n);
  return packet.status;
}

kdp_status node_send_to(node *n, const node *other, uint32_t payload, kdp_now now) {
  uint8_t packet[NODE_DATAGRAM];
  return node_send(n, packet, node_packet(packet, n, other, payload), now);
}

kdp_status node_receive(node *n, const void *bytes, uint32_t size, const kdp_path *path, kdp_now now) {
  kdp_packet packet = carve(n, bytes, size);
  kdp_path paths[1] = {*path};
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = paths, .path_count = 1, .path_capacity = 1};
  if (kdp_engine_outside(n->lane, &batch, n->out, now) != 1) abort();
  collect(n);
  kdp_lane_quiescent(n->lane, now);
  return packet.status;
}

void node_tick(node *n, kdp_now now) {
  kdp_engine_tick(n->lane, n->out, now);
  collect(n);
}

kdp_now node_run(node *n, kdp_now now, uint64_t until) {
  for (uint64_t next; (next = kdp_engine_deadline(n->lane)) <= until;) {
    if (next > now.boot) now = node_later(now, next - now.boot);
    node_tick(n, now);
  }
  return until > now.boot ? node_later(now, until - now.boot) : now;
}

void node_network_changed(node *n, kdp_now now) {
  kdp_engine_network_changed(n->lane, n->out, now);
  collect(n);
}

kdp_path node_path(const node *to, const node *from) {
  return (kdp_path){.ifindex = 2, .remote = from->address, .local = to->address};
}

kdp_status node_pass(node *from, uint32_t index, node *to, kdp_now now) {
  kdp_path path = node_path(to, from);
  return node_receive(to, from->sent[index].bytes, from->sent[index].size, &path, now);
}

void node_exchange(node *a, node *b, kdp_now now) {
  for (uint32_t i = 0, j = 0; i < a->sent_count || j < b->sent_count;) {
    if (i < a->sent_count) (void)node_pass(a, i++, b, now);
    if (j < b->sent_count) (void)node_pass(b, j++, a, now);
  }
  drop_kept(a->sent, &a->sent_count);
  drop_kept(b->sent, &b->sent_count);
}

kdp_now node_run_both(node *a, node *b, kdp_now now, uint64_t until) {
  for (;;) {
    uint64_t at_a = kdp_engine_deadline(a->lane), at_b = kdp_engine_deadline(b->lane);
    uint64_t next = at_a < at_b ? at_a : at_b;
    if (next > until) return until > now.boot ? node_later(now, until - now.boot) : now;
    if (next > now.boot) now = node_later(now, next - now.boot);
    if (at_a <= now.boot) node_tick(a, now);
    if (at_b <= now.boot) node_tick(b, now);
    node_exchange(a, b, now);
  }
}

void node_connect(node *a, node *b, kdp_now now) {
  must(node_add_peer(a, b, true, now), "peer");
  must(node_add_peer(b, a, false, now), "peer");
  must(node_send_to(a, b, 0, now), "first packet");
  node_exchange(a, b, now);
  if (!node_peer_of(a, b)->current || !node_peer_of(b, a)->current) abort();
  node_forget(a);
  node_forget(b);
}

uint32_t node_count_sent(const node *n, kdp_wg_message_type type, uint32_t *last) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->sent_count; i++)
    if (kdp_load_le32(n->sent[i].bytes) == (uint32_t)type) {
      count++;
      if (last) *last = i;
    }
  return count;
}

uint32_t node_count_events(const node *n, kdp_event_kind kind, kdp_event *last) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->event_count; i++)
    if (n->event[i].kind == kind) {
      count++;
      if (last) *last = n->event[i];
    }
  return count;
}

uint32_t node_count_actions(const node *n, kdp_action_kind kind, kdp_action *last) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->action_count; i++)
    if (n->action[i].kind == kind) {
      count++;
      if (last) *last = n->action[i];
    }
  return count;
}

uint64_t node_counted(const node *n, kdp_status status) {
  kdp_statistics statistics;
  kdp_engine_statistics(n->engine, &statistics);
  return statistics.status[status];
}

kdp_wg_peer *node_peer_of(node *n, const node *other) {
  return kdp_wg_peer_table_find(&n->device->peers, other->public_key);
}
