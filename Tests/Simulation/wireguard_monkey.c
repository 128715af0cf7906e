/* Random sequences of public calls with arguments both right and wrong. Nothing traps, nothing is taken that is not
   given back, a change that fails changes nothing, and afterwards the device works. */
#include <string.h>

#include "wireguard_scenarios.h"
#include "wireguard_world.h"

enum { STEPS = 2500, KEYS = 12, PEERS = 8, MEMORY_LIMIT = 8 << 20 };

typedef struct monkey {
  sim *world;
  sim_random *random;
  wg_world *wg;
  wg_device *device, *friend;
  sim_flow *up, *down;
  uint8_t key[KEYS][KDP_KEY_SIZE]; /* public keys to choose from: few, so that they meet again */
} monkey;

static uint64_t below(monkey *monkey, uint64_t bound) {
  return sim_random_below(monkey->random, bound);
}
static bool chance(monkey *monkey, uint32_t percent) {
  return below(monkey, 100) < percent;
}

/* ---- What a device looks like from outside ---- */

static uint64_t digest(uint64_t sum, const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < size; i++)
    sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
  return sum;
}

/* Everything that a configuration can change, as one number; checks on the way that the lists hold together. */
static uint64_t look(monkey *monkey) {
  const kdp_engine *engine = sim_host_engine(monkey->device->host);
  kdp_wireguard_device_info device;
  kdp_wireguard_peer_info peer;
  kdp_wireguard_device(engine, &device);
  uint64_t sum = digest(1, device.private_key, KDP_KEY_SIZE), cursor = 0, last = 0;
  sum = digest(sum, device.public_key, KDP_KEY_SIZE);
  uint32_t count = 0;
  while (kdp_wireguard_next_peer(engine, &cursor, &peer)) {
    sim_check_number(monkey->world, peer.peer, >, last);
    last = peer.peer;
    count++;
    sum = digest(sum, peer.public_key, KDP_KEY_SIZE);
    sum = digest(sum, peer.preshared_key, KDP_KEY_SIZE);
    sum = digest(sum, &peer.endpoint, sizeof peer.endpoint);
    sum = digest(sum, &peer.keepalive_seconds, sizeof peer.keepalive_seconds);
    kdp_prefix prefix[4];
    uint32_t listed = 0, got;
    while ((got = kdp_wireguard_prefixes(engine, peer.peer, listed, prefix, 4)) > 0) {
      listed += got;
      for (uint32_t i = 0; i < got; i++) {
        sum = digest(sum, &prefix[i].family, 1);
        sum = digest(sum, &prefix[i].length, 1);
        sum = digest(sum, prefix[i].bytes, sizeof prefix[i].bytes);
      }
    }
    sim_check_number(monkey->world, listed, ==, peer.prefix_count);
    kdp_wireguard_peer_info again;
    sim_check(monkey->world, kdp_wireguard_find_peer(engine, peer.public_key, &again) == KDP_OK);
    sim_check_number(monkey->world, again.peer, ==, peer.peer);
    sim_check(monkey->world, device.has_private_key || !peer.has_session);
    sim_check(monkey->world, memcmp(peer.public_key, device.public_key, KDP_KEY_SIZE) != 0 || !device.has_private_key);
  }
  sim_check_number(monkey->world, count, ==, device.peer_count);
  return sum;
}

/* ---- Changes ---- */

static kdp_prefix any_prefix(monkey *monkey, bool right) {
  kdp_prefix prefix = {.family = chance(monkey, 50) ? KDP_FAMILY_IPV4 : KDP_FAMILY_IPV6};
  prefix.length = (uint8_t)below(monkey, prefix.family == KDP_FAMILY_IPV4 ? 33 : 129);
  sim_random_fill(monkey->random, prefix.bytes, chance(monkey, 50) ? 2 : prefix.family == KDP_FAMILY_IPV4 ? 4 : 16);
  if (right) return prefix;
  if (chance(monkey, 50))
    prefix.family = (uint8_t)below(monkey, 256);
  else
    prefix.length = (uint8_t)(129 + below(monkey, 127));
  return prefix;
}

static void any_peer_change(monkey *monkey, kdp_wireguard_peer_change *change, kdp_wireguard_prefix_change *prefix) {
  *change = (kdp_wireguard_peer_change){.fields = (uint32_t)below(monkey, 64)};
  if (chance(monkey, 70)) change->fields &= ~(uint32_t)KDP_WIREGUARD_PEER_REMOVE;
  if (chance(monkey, 97))
    memcpy(change->public_key, monkey->key[below(monkey, KEYS)], KDP_KEY_SIZE);
  else if (chance(monkey, 70))
    sim_random_fill(monkey->random, change->public_key, KDP_KEY_SIZE); /* else all zero */
  if (chance(monkey, 50)) sim_random_fill(monkey->random, change->preshared_key, KDP_KEY_SIZE);
  change->endpoint = wg_endpoint(monkey->friend, wg_any_family(monkey->world));
  if (chance(monkey, 20)) sim_random_fill(monkey->random, change->endpoint.bytes, 4);
  if (chance(monkey, 5)) change->endpoint.port = 0;
  if (chance(monkey, 3)) change->endpoint.family = (uint8_t)below(monkey, 256);
  change->keepalive_seconds = (uint16_t)(chance(monkey, 50) ? 0 : below(monkey, 65536));
  change->prefix_count = (uint32_t)below(monkey, 4);
  change->prefix = prefix;
  for (uint32_t i = 0; i < change->prefix_count; i++)
    prefix[i] =
        (kdp_wireguard_prefix_change){.prefix = any_prefix(monkey, chance(monkey, 98)), .remove = chance(monkey, 20)};
}

static void apply_any(monkey *monkey) {
  enum { MOST = 5 };
  kdp_wireguard_peer_change peer[MOST];
  kdp_wireguard_prefix_change prefix[MOST][4];
  kdp_wireguard_change change = {.peer = peer, .peer_count = (uint32_t)below(monkey, MOST + 1)};
  if (chance(monkey, 5)) {
    change.fields |= KDP_WIREGUARD_SET_PRIVATE_KEY;
    if (chance(monkey, 60))
      memcpy(change.private_key, monkey->device->private_key, KDP_KEY_SIZE);
    else if (chance(monkey, 70))
      memcpy(change.private_key, monkey->friend->private_key, KDP_KEY_SIZE);
  }
  if (chance(monkey, 5)) change.fields |= KDP_WIREGUARD_REPLACE_PEERS;
  if (chance(monkey, 5)) change.fields |= KDP_WIREGUARD_SET_FIXED_PORT;
  change.fixed_port = chance(monkey, 50);
  for (uint32_t i = 0; i < change.peer_count; i++)
    any_peer_change(monkey, &peer[i], prefix[i]);
  if (chance(monkey, 10)) sim_host_fail_allocation(monkey->device->host, 1 + below(monkey, 4));
  uint64_t before = look(monkey);
  kdp_status status = wg_apply(monkey->device, &change);
  sim_host_fail_allocation(monkey->device->host, 0);
  sim_note(monkey->world, "applied", status, change.fields, change.peer_count);
  sim_mark(monkey->world, SIM_MARKS - 1);
  if (status != KDP_OK) sim_check(monkey->world, look(monkey) == before);
}

/* The friend is a peer as it ought to be, so that there is life now and then. */
static void befriend(monkey *monkey) {
  wg_set_key(monkey->device);
  kdp_wireguard_change none = {.fields = KDP_WIREGUARD_REPLACE_PEERS};
  if (chance(monkey, 50)) sim_check(monkey->world, wg_apply(monkey->device, &none) == KDP_OK);
  kdp_wireguard_device_info info;
  kdp_wireguard_device(sim_host_engine(monkey->device->host), &info);
  if (info.peer_count == PEERS) return;
  wg_peer(monkey->device, monkey->friend, &(wg_peer_options){.endpoint = wg_any_family(monkey->world)});
}

/* ---- Other calls ---- */

static void send_inside(monkey *monkey) {
  static _Thread_local uint8_t bytes[65535];
  if (chance(monkey, 50)) {
    sim_flow_send(chance(monkey, 50) ? monkey->up : monkey->down, 1 + (uint32_t)below(monkey, 8));
    return;
  }
  uint32_t size = (uint32_t)below(monkey, chance(monkey, 5) ? sizeof bytes + 1 : 100);
  sim_random_fill(monkey->random, bytes, size);
  if (size && chance(monkey, 70)) bytes[0] = chance(monkey, 50) ? 0x45 : 0x60;
  sim_host_inside(monkey->device->host, bytes, size);
}

static void send_outside(monkey *monkey) {
  static _Thread_local uint8_t bytes[65507];
  kdp_address from = sim_ipv4(203, 0, 113, (uint8_t)below(monkey, 256), (uint16_t)below(monkey, 65536));
  kdp_address to = wg_endpoint(monkey->device, KDP_FAMILY_IPV4);
  uint32_t size = (uint32_t)below(monkey, chance(monkey, 5) ? sizeof bytes : 256);
  sim_random_fill(monkey->random, bytes, size);
  if (chance(monkey, 30)) {
    size = 148;
    wg_forge_initiation(monkey->world, monkey->device, bytes, chance(monkey, 20));
  } else if (sim_captured_count(monkey->world) > 0 && chance(monkey, 60)) {
    const sim_captured *said =
        sim_captured_at(monkey->world, (uint32_t)below(monkey, sim_captured_count(monkey->world)));
    size = said->datagram->size;
    memcpy(bytes, said->datagram->bytes, size);
    if (size && chance(monkey, 50)) bytes[below(monkey, size)] ^= 1;
  }
  for (uint64_t times = chance(monkey, 5) ? 50 : 1; times > 0; times--)
    sim_inject(monkey->world, &from, &to, (uint8_t)below(monkey, 4), bytes, size, 0);
}

static void call_out_of_turn(monkey *monkey) {
  kdp_engine *engine = sim_host_engine(monkey->device->host);
  kdp_lane *lane = kdp_engine_lane(engine, 0);
  kdp_out *out = sim_host_output(monkey->device->host);
  kdp_now now = sim_host_now(monkey->device->host);
  kdp_path path = {.link = (kdp_link)below(monkey, 3), .remote = wg_endpoint(monkey->friend, KDP_FAMILY_IPV4)};
  if (chance(monkey, 30)) sim_random_fill(monkey->random, &path.remote, sizeof path.remote);
  uint8_t bytes[64];
  size_t size = sizeof bytes;
  kdp_packet packet = {.data = bytes, .size = (uint32_t)below(monkey, 64), .slot = KDP_NO_SLOT};
  kdp_wireguard_peer_info info;
  switch (below(monkey, 14)) {
  case 0: kdp_engine_tick(lane, out, now); break;
  case 1: kdp_engine_network_changed(lane, out, now); break;
  case 2: kdp_engine_path_mtu(lane, &path, (uint16_t)below(monkey, 65536), now); break;
  case 3: kdp_engine_set_inside_mtu(engine, (uint16_t)(chance(monkey, 80) ? 1420 : below(monkey, 65536))); break;
  case 4: kdp_engine_link_up(lane, path.link, KDP_LINK_DATAGRAM, &path, out, now); break;
  case 5: kdp_engine_link_room(lane, path.link, below(monkey, 65536), out, now); break;
  case 6: kdp_engine_link_down(lane, path.link, (int)below(monkey, 130), out, now); break;
  case 7: (void)!kdp_engine_stream(lane, path.link, &packet, out, now); break;
  case 8: sim_check(monkey->world, kdp_engine_read(engine, below(monkey, 9), bytes, &size) != KDP_OK); break;
  case 9:
    sim_check(monkey->world,
              kdp_engine_answer(engine, below(monkey, 9), KDP_ANSWER_ACCEPT, bytes, 3, out, now) != KDP_OK);
    break;
  case 10: sim_check(monkey->world, kdp_engine_lane(engine, 1 + (uint32_t)below(monkey, 1000)) == NULL); break;
  case 11:
    sim_random_fill(monkey->random, bytes, KDP_KEY_SIZE);
    sim_check(monkey->world, kdp_wireguard_find_peer(engine, bytes, &info) == KDP_NOT_FOUND);
    kdp_prefix prefix;
    sim_check(monkey->world, kdp_wireguard_prefixes(engine, below(monkey, 99), 1000000, &prefix, 1) == 0);
    break;
  case 12: kdp_lane_quiescent(lane, now); break;
  case 13: {
    kdp_room room = kdp_engine_room(engine, chance(monkey, 50) ? &path : NULL);
    sim_check(monkey->world, room.head >= KDP_WIREGUARD_HEAD && room.tail >= KDP_WIREGUARD_TAIL);
    break;
  }
  }
  sim_host_flush(monkey->device->host);
}

static void pass_time(monkey *monkey) {
  static const uint64_t MOST[] = {KDP_MILLISECOND, KDP_SECOND, 10 * KDP_SECOND, 200 * KDP_SECOND};
  uint64_t time = below(monkey, MOST[below(monkey, chance(monkey, 3) ? 4 : 2)]);
  if (chance(monkey, 2)) sim_host_step_boot(monkey->device->host, (int64_t)below(monkey, 100 * KDP_SECOND));
  if (chance(monkey, 2)) sim_host_step_boot(monkey->device->host, -(int64_t)below(monkey, 10 * KDP_SECOND));
  if (chance(monkey, 2))
    sim_host_step_wall(monkey->device->host, (int64_t)below(monkey, 2000 * KDP_SECOND) - 1000 * (int64_t)KDP_SECOND);
  sim_run_for(monkey->world, time);
}

/* ICMP errors about the nonsense that was handed in. */
static bool take_inside(sim_host *host, const uint8_t *bytes, uint32_t size, void *device) {
  (void)host;
  (void)device;
  if (size >= 28 && bytes[0] == 0x45) return bytes[9] == 1 && bytes[20] == 3;
  return size >= 48 && bytes[0] >> 4 == 6 && bytes[6] == 58 && (bytes[40] == 1 || bytes[40] == 2);
}

void wg_monkey(sim *world) {
  monkey *monkey = sim_lend(world, sizeof *monkey);
  *monkey = (struct monkey){.world = world, .random = sim_random_of(world), .wg = wg_begin(world)};
  monkey->wg->anything = true;
  monkey->device = wg_add(monkey->wg, &(wg_device_options){.name = "monkey",
                                                           .no_key = true,
                                                           .on_inside = take_inside,
                                                           .memory_limit = MEMORY_LIMIT,
                                                           .limits = {.peers = PEERS, .staged_packets = 20}});
  monkey->friend = wg_add(monkey->wg, &(wg_device_options){.name = "friend", .port = 51820});
  wg_peer(monkey->friend, monkey->device, &(wg_peer_options){.endpoint = KDP_FAMILY_IPV4});
  sim_host_conditions(monkey->device->host, &(sim_conditions){.delay = 5 * KDP_MILLISECOND, .loss = 2 * SIM_PERCENT});
  for (uint32_t i = 0; i < KEYS; i++)
    sim_random_fill(monkey->random, monkey->key[i], KDP_KEY_SIZE);
  memcpy(monkey->key[0], monkey->friend->public_key, KDP_KEY_SIZE);
  memcpy(monkey->key[1], monkey->friend->public_key, KDP_KEY_SIZE);
  memcpy(monkey->key[2], monkey->device->public_key, KDP_KEY_SIZE);
  monkey->up = wg_flow(monkey->device, monkey->friend, &(wg_flow_options){.inner = KDP_FAMILY_IPV4, .size_max = 3000});
  monkey->down = wg_flow(monkey->friend, monkey->device, &(wg_flow_options){.inner = KDP_FAMILY_IPV6});
  sim_capture(world, true);
  for (uint32_t step = 0; step < STEPS; step++) {
    switch (below(monkey, 20)) {
    case 0:
    case 1:
    case 2: apply_any(monkey); break;
    case 3: befriend(monkey); break;
    case 4:
    case 5:
    case 6:
    case 7: send_inside(monkey); break;
    case 8:
    case 9:
    case 10: send_outside(monkey); break;
    case 11:
    case 12:
    case 13:
    case 14: call_out_of_turn(monkey); break;
    case 15: (void)look(monkey); break;
    case 16:
      if (chance(monkey, 5)) wg_restart(monkey->device);
      break;
    default: pass_time(monkey); break;
    }
    if (sim_captured_count(world) > 5000) sim_capture(world, false);
    sim_check_number(world, sim_host_memory(monkey->device->host), <=, MEMORY_LIMIT);
  }
  /* And afterwards it works. */
  sim_run_for(world, 700 * KDP_SECOND);
  wg_restart(monkey->device);
  sim_host_conditions(monkey->device->host, &(sim_conditions){.delay = 5 * KDP_MILLISECOND});
  monkey->device->config.newest_stamp = sim_host_now(monkey->friend->host).wall + 4000 * KDP_SECOND;
  wg_restart(monkey->device);
  befriend(monkey);
  uint64_t before = sim_flow_counts_of(monkey->up).delivered;
  sim_flow_send(monkey->up, 3);
  sim_run_for(world, 20 * KDP_SECOND);
  sim_check_number(world, sim_flow_counts_of(monkey->up).delivered, ==, before + 3);
}
