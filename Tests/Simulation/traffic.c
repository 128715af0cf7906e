/* Flows of inner packets. A packet is UDP in IPv4 or IPv6; its payload is a mark, the number of the flow, its own
   number, and bytes that follow from seed, flow and number, so that the far end can make it again and compare. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "world.h"

enum { MARK = 0x53494d21, PAYLOAD_HEAD = 12, MAX_SIZE = 65535 };

struct sim_flow {
  sim *world;
  sim_flow_config config;
  uint32_t index;
  uint64_t key; /* what its bytes and sizes follow from */
  sim_random random;
  bool stopped, scheduled;
  sim_flow_counts counts;
  uint64_t newest;   /* number of the newest delivered, plus one */
  uint64_t *sent_at; /* per number */
  uint16_t *size;
  uint8_t *delivered;
  uint32_t capacity;
};

uint16_t sim_checksum(uint32_t sum, const uint8_t *bytes, size_t size) {
  uint64_t total = sum;
  for (size_t i = 0; i + 1 < size; i += 2)
    total += kdp_load_be16(bytes + i);
  if (size & 1) total += (uint32_t)bytes[size - 1] << 8;
  while (total >> 16)
    total = (total & 0xffff) + (total >> 16);
  return (uint16_t)~total;
}

static uint32_t head_size(const sim_flow *flow) {
  return (flow->config.source.family == KDP_FAMILY_IPV6 ? 40 : 20) + 8;
}

static uint16_t next_size(const sim_flow *flow, uint64_t number) {
  uint32_t spread = flow->config.size_max - flow->config.size_min + 1;
  return (uint16_t)(flow->config.size_min + sim_scatter(flow->key ^ (number * 3 + 1)) % spread);
}

static void write_ipv4(const sim_flow *flow, uint64_t number, uint8_t ecn, uint32_t size, uint8_t *at) {
  memset(at, 0, 20);
  at[0] = 0x45;
  at[1] = (uint8_t)(0x20 | ecn); /* some traffic class, to see that it survives */
  kdp_store_be16(at + 2, (uint16_t)size);
  kdp_store_be16(at + 4, (uint16_t)number);
  if (flow->config.df) at[6] = 0x40;
  at[8] = 64;
  at[9] = 17;
  memcpy(at + 12, flow->config.source.bytes, 4);
  memcpy(at + 16, flow->config.destination.bytes, 4);
  kdp_store_be16(at + 10, sim_checksum(0, at, 20));
}

static void write_ipv6(const sim_flow *flow, uint8_t ecn, uint32_t size, uint8_t *at) {
  kdp_store_be32(at, UINT32_C(6) << 28 | (uint32_t)(0x20 | ecn) << 20 | (flow->index & 0xfffff));
  kdp_store_be16(at + 4, (uint16_t)(size - 40));
  at[6] = 17;
  at[7] = 64;
  memcpy(at + 8, flow->config.source.bytes, 16);
  memcpy(at + 24, flow->config.destination.bytes, 16);
}

/* The whole packet, with an ECN field of the caller's. */
static uint32_t make(const sim_flow *flow, uint64_t number, uint8_t ecn, uint8_t *at) {
  uint32_t size = flow->size[number];
  bool v6 = flow->config.source.family == KDP_FAMILY_IPV6;
  uint8_t *udp = at + (v6 ? 40 : 20);
  uint32_t udp_size = size - (uint32_t)(udp - at);
  if (v6)
    write_ipv6(flow, ecn, size, at);
  else
    write_ipv4(flow, number, ecn, size, at);
  kdp_store_be16(udp, flow->config.source.port);
  kdp_store_be16(udp + 2, flow->config.destination.port);
  kdp_store_be16(udp + 4, (uint16_t)udp_size);
  kdp_store_be16(udp + 6, 0);
  kdp_store_be32(udp + 8, MARK);
  kdp_store_be32(udp + 12, flow->index);
  kdp_store_be32(udp + 16, (uint32_t)number);
  sim_random bytes = {flow->key ^ sim_scatter(number)};
  sim_random_fill(&bytes, udp + 8 + PAYLOAD_HEAD, udp_size - 8 - PAYLOAD_HEAD);
  uint32_t pseudo = 17 + udp_size;
  const uint8_t *addresses = v6 ? at + 8 : at + 12;
  for (uint32_t i = 0; i < (v6 ? 32u : 8u); i += 2)
    pseudo += kdp_load_be16(addresses + i);
  uint16_t sum = sim_checksum(pseudo, udp, udp_size);
  kdp_store_be16(udp + 6, sum ? sum : 0xffff);
  return size;
}

void sim_flow_resize(sim_flow *flow, uint32_t size_min, uint32_t size_max) {
  uint32_t least = head_size(flow) + PAYLOAD_HEAD;
  flow->config.size_min = size_min < least ? least : size_min > MAX_SIZE ? MAX_SIZE : size_min;
  flow->config.size_max = size_max < flow->config.size_min ? flow->config.size_min
                          : size_max > MAX_SIZE            ? MAX_SIZE
                                                           : size_max;
}

sim_flow *sim_flow_add(sim *world, const sim_flow_config *config) {
  sim_flow *flow = sim_allocate(sizeof *flow);
  flow->world = world;
  flow->config = *config;
  flow->index = world->flow_count;
  flow->key = sim_scatter(world->seed * 1000003 + flow->index + 7);
  flow->random.state = sim_scatter(flow->key);
  sim_flow_resize(flow, config->size_min, config->size_max);
  world->flow = sim_grow(world->flow, world->flow_count, &world->flow_capacity, sizeof *world->flow);
  world->flow[world->flow_count++] = flow;
  if (config->interval > 0) {
    flow->scheduled = true;
    sim_schedule(world, (sim_due){.time = config->start, .kind = SIM_DUE_FLOW, .flow = flow});
  }
  return flow;
}

void sim_flow_free(sim_flow *flow) {
  free(flow->sent_at);
  free(flow->size);
  free(flow->delivered);
  free(flow);
}

void sim_flow_send(sim_flow *flow, uint32_t count) {
  static _Thread_local uint8_t packet[MAX_SIZE];
  for (uint32_t i = 0; i < count; i++) {
    if (!sim_host_is_awake(flow->config.from)) return;
    if (flow->config.limit && flow->counts.sent >= flow->config.limit) return;
    if (flow->counts.sent == flow->capacity) {
      uint32_t before = flow->capacity, capacity = before;
      flow->sent_at = sim_grow(flow->sent_at, before, &capacity, sizeof *flow->sent_at);
      capacity = before;
      flow->size = sim_grow(flow->size, before, &capacity, sizeof *flow->size);
      flow->delivered = sim_grow(flow->delivered, before, &flow->capacity, 1);
      memset(flow->delivered + before, 0, flow->capacity - before);
    }
    uint64_t number = flow->counts.sent++;
    flow->sent_at[number] = flow->world->now;
    flow->size[number] = next_size(flow, number);
    uint32_t size = make(flow, number, flow->config.ecn, packet);
    sim_host_inside(flow->config.from, packet, size);
  }
}

void sim_flow_due(sim_flow *flow) {
  sim *world = flow->world;
  flow->scheduled = false;
  const sim_flow_config *config = &flow->config;
  if (flow->stopped || (config->stop && world->now >= config->stop)) return;
  if (config->limit && flow->counts.sent >= config->limit) return;
  sim_flow_send(flow, (uint32_t)sim_random_between(&flow->random, 1, config->burst ? config->burst : 1));
  /* Even between nothing and twice the mean. */
  uint64_t wait = 1 + sim_random_below(&flow->random, 2 * config->interval);
  flow->scheduled = true;
  sim_schedule(world, (sim_due){.time = world->now + wait, .kind = SIM_DUE_FLOW, .flow = flow});
}

void sim_flow_stop(sim_flow *flow) {
  flow->stopped = true;
}

void sim_flow_resume(sim_flow *flow, uint64_t interval) {
  flow->stopped = false;
  flow->config.interval = interval;
  if (flow->scheduled || interval == 0) return;
  flow->scheduled = true;
  sim_schedule(flow->world, (sim_due){.time = flow->world->now, .kind = SIM_DUE_FLOW, .flow = flow});
}

sim_flow_counts sim_flow_counts_of(const sim_flow *flow) {
  return flow->counts;
}

bool sim_flow_delivered(const sim_flow *flow, uint64_t number) {
  return number < flow->counts.sent && flow->delivered[number];
}

void sim_flow_collect(const sim_flow *flow, sim_coverage *coverage) {
  coverage->inner_sent += flow->counts.sent;
  coverage->inner_delivered += flow->counts.delivered;
}

/* The UDP header of a packet that could be ours, or NULL. */
static const uint8_t *find_udp(const uint8_t *bytes, uint32_t size) {
  if (size >= 20 + 8 + PAYLOAD_HEAD && bytes[0] == 0x45 && bytes[9] == 17) return bytes + 20;
  if (size >= 40 + 8 + PAYLOAD_HEAD && bytes[0] >> 4 == 6 && bytes[6] == 17) return bytes + 40;
  return NULL;
}

static void note_delivery(sim_flow *flow, uint64_t number, uint8_t ecn) {
  sim *world = flow->world;
  sim_flow_counts *counts = &flow->counts;
  flow->delivered[number] = 1;
  counts->delivered++;
  if (number + 1 < flow->newest)
    counts->late++;
  else
    flow->newest = number + 1;
  if (counts->last_delivered && world->now - counts->last_delivered > counts->longest_gap)
    counts->longest_gap = world->now - counts->last_delivered;
  counts->last_delivered = world->now ? world->now : 1;
  uint64_t delay = world->now - flow->sent_at[number];
  if (delay > counts->longest_delay) counts->longest_delay = delay;
  if (ecn != flow->config.ecn) counts->marked++;
  sim_note(world, "delivered", flow->index, number, ecn);
  for (uint32_t i = 0; i < world->flow_count; i++)
    if (world->flow[i]->config.answers == flow && !world->flow[i]->stopped) sim_flow_send(world->flow[i], 1);
}

bool sim_flow_arrived(sim *world, sim_host *host, const uint8_t *bytes, uint32_t size) {
  static _Thread_local uint8_t expected[MAX_SIZE];
  const uint8_t *udp = find_udp(bytes, size);
  if (!udp || kdp_load_be32(udp + 8) != MARK) return false;
  uint32_t index = kdp_load_be32(udp + 12);
  uint64_t number = kdp_load_be32(udp + 16);
  if (index >= world->flow_count)
    sim_fail(world, "%s: a packet of flow %u came out, which is none", sim_host_name(host), index);
  sim_flow *flow = world->flow[index];
  if (number >= flow->counts.sent)
    sim_fail(world, "flow %u: number %llu came out, which was never sent", index, (unsigned long long)number);
  if (flow->config.to != host || flow->config.refused)
    sim_fail(world, "flow %u: number %llu came out at %s", index, (unsigned long long)number, sim_host_name(host));
  uint8_t ecn = bytes[0] >> 4 == 4 ? bytes[1] & 3 : bytes[1] >> 4 & 3;
  if (ecn != flow->config.ecn && !(ecn == 3 && flow->config.ecn != 0))
    sim_fail(world, "flow %u: the ECN field went from %u to %u", index, flow->config.ecn, ecn);
  uint32_t wanted = make(flow, number, ecn, expected);
  if (wanted != size)
    sim_fail(world, "flow %u: number %llu came out with %u bytes instead of %u", index, (unsigned long long)number,
             size, wanted);
  if (memcmp(expected, bytes, size) != 0) {
    uint32_t at = 0;
    while (expected[at] == bytes[at])
      at++;
    sim_fail(world, "flow %u: number %llu differs at byte %u of %u", index, (unsigned long long)number, at, size);
  }
  if (flow->delivered[number])
    sim_fail(world, "flow %u: number %llu came out twice", index, (unsigned long long)number);
  note_delivery(flow, number, ecn);
  return true;
}

bool sim_flow_quoted(sim *world, const sim_host *host, const uint8_t *bytes, uint32_t size) {
  static _Thread_local uint8_t expected[MAX_SIZE];
  const uint8_t *udp = find_udp(bytes, size);
  if (!udp || kdp_load_be32(udp + 8) != MARK) return false;
  uint32_t index = kdp_load_be32(udp + 12);
  if (index >= world->flow_count || world->flow[index]->config.from != host) return false;
  sim_flow *flow = world->flow[index];
  uint64_t number = kdp_load_be32(udp + 16);
  if (number >= flow->counts.sent) return false;
  uint32_t whole = make(flow, number, flow->config.ecn, expected);
  return size <= whole && memcmp(expected, bytes, size) == 0;
}
