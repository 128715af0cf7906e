#include "side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * KDP_SECOND + (uint64_t)t.tv_nsec;
}

kdp_now bench_now(void) {
  struct timespec boot, wall;
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  return (kdp_now){(uint64_t)boot.tv_sec * KDP_SECOND + (uint64_t)boot.tv_nsec,
                   (uint64_t)wall.tv_sec * KDP_SECOND + (uint64_t)wall.tv_nsec};
}

void bench_must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "benchmark: %s\n", what);
  exit(1);
}

static void make_output(side *s, const kdp_host *host) {
  bench_must(kdp_pool_create(SIDE_POOL_SLOTS, host, &s->pool) == KDP_OK, "no memory for a pool");
  bench_must(kdp_out_create(s->pool, host, &s->storage) == KDP_OK, "no memory for an output");
  s->out = kdp_out_of(s->storage);
}

void side_make(side *s, const uint8_t private_key[KDP_KEY_SIZE], uint32_t peers, uint32_t lanes, uint16_t inside_mtu,
               const side *shared, const kdp_host *host, kdp_now now) {
  kdp_wireguard_config config = {.inside_mtu = inside_mtu, .aead_provider = getenv("KAPE_AEAD")};
  kdp_limits limits = {.peers = peers, .lanes = lanes, .staged_packets = peers == 1 ? 4 : 0};
  bench_must(kdp_wireguard_create(&config, &limits, host, now, &s->engine) == KDP_OK, "the engine cannot be made");
  s->lane = kdp_engine_lane(s->engine, 0);
  if (shared) {
    s->pool = shared->pool;
    s->out = shared->out;
  } else {
    make_output(s, host);
  }
  memcpy(s->private_key, private_key, KDP_KEY_SIZE);
  kdp_wireguard_public_key(private_key, s->public_key);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
  memcpy(change.private_key, private_key, KDP_KEY_SIZE);
  bench_must(kdp_wireguard_apply(s->engine, &change, s->out, now) == KDP_OK, "the private key is refused");
}

void side_make_lane(side *s, const side *of, uint32_t index, const kdp_host *host) {
  s->engine = of->engine;
  s->lane = kdp_engine_lane(of->engine, index);
  bench_must(s->lane != NULL, "the engine has no such lane");
  make_output(s, host);
}

void side_end(side *s, bool shared) {
  if (!shared) kdp_out_destroy(s->storage);
  if (s->lane->index == 0) kdp_engine_destroy(s->engine);
  if (!shared) kdp_pool_destroy(s->pool);
}

void side_add_peer(side *s, const uint8_t public_key[KDP_KEY_SIZE], const uint8_t *preshared_key,
                   const kdp_address *endpoint, const kdp_prefix *prefix, uint32_t prefix_count, kdp_now now) {
  kdp_wireguard_prefix_change added[2] = {0};
  bench_must(prefix_count <= 2, "a peer here has two prefixes at most");
  for (uint32_t i = 0; i < prefix_count; i++)
    added[i].prefix = prefix[i];
  kdp_wireguard_peer_change peer = {
      .fields = KDP_WIREGUARD_PEER_SET_ENDPOINT, .endpoint = *endpoint, .prefix = added, .prefix_count = prefix_count};
  memcpy(peer.public_key, public_key, KDP_KEY_SIZE);
  if (preshared_key) {
    peer.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    memcpy(peer.preshared_key, preshared_key, KDP_KEY_SIZE);
  }
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  bench_must(kdp_wireguard_apply(s->engine, &change, s->out, now) == KDP_OK, "a peer is refused");
}

void side_receive(side *s, const uint8_t *bytes, uint32_t size, const kdp_path *path, kdp_now now) {
  kdp_packet packet;
  kdp_path from = *path;
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = &from, .path_count = 1, .path_capacity = 1};
  bench_must(kdp_pool_take_packet(s->pool, SIDE_ROOM, size, SIDE_ROOM, &packet), "the pool is empty");
  packet.path = 0;
  memcpy(packet.data, bytes, size);
  bench_must(kdp_engine_outside(s->lane, &batch, s->out, now) == 1, "a datagram was not taken");
}

void side_packet(side *s, uint32_t size, const uint8_t source[4], const uint8_t destination[4], kdp_packet *packet) {
  bench_must(kdp_pool_take_packet(s->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, packet), "the pool is empty");
  uint8_t *ip = packet->data;
  memset(ip, 0, 20);
  ip[0] = 0x45;
  ip[2] = (uint8_t)(size >> 8);
  ip[3] = (uint8_t)size;
  ip[8] = 64;
  ip[9] = 253;
  memcpy(ip + 12, source, 4);
  memcpy(ip + 16, destination, 4);
}

void side_send(side *s, const uint8_t source[4], const uint8_t destination[4], kdp_now now) {
  kdp_packet packet;
  side_packet(s, 64, source, destination, &packet);
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1};
  bench_must(kdp_engine_inside(s->lane, &batch, s->out, now) == 1, "a packet was not taken");
}

void side_drain(side *s) {
  kdp_batch_release(&s->out->wire, s->pool);
  kdp_batch_release(&s->out->inside, s->pool);
  for (uint32_t i = 0; i < s->out->action_count; i++)
    if (s->out->action[i].kind == KDP_ACTION_HANDOFF) kdp_pool_release(s->pool, s->out->action[i].packet.slot);
  s->out->action_count = 0;
  if (s->lane->index != 0) return;
  kdp_event event;
  while (kdp_engine_next_event(s->engine, &event)) {
  }
}
