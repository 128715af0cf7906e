/* Hosts: addresses, clocks, queues, and the engine that lives on them. */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#define WALL_AT_START (UINT64_C(1767225600) * KDP_SECOND) /* 2026-01-01 */
#define BOOT_AT_START (100 * KDP_SECOND)

enum { INSIDE_QUEUE = 1024, SOCKET_QUEUE = 512, POOL_SLOTS = 12 };

/* ---- Making and ending ---- */

static sim_lane *make_lane(sim_host *host, uint32_t index) {
  sim_lane *lane = sim_allocate(sizeof *lane);
  kdp_host services = kdp_host_default();
  if (kdp_pool_create(host->config.pool_slots, &services, &lane->pool) != KDP_OK) abort();
  lane->out = (kdp_out){
      .wire = {.packet = lane->wire,
               .capacity = KDP_BATCH_CAPACITY,
               .path = lane->path,
               .path_capacity = KDP_BATCH_PATHS},
      .inside = {.packet = lane->inside, .capacity = KDP_BATCH_CAPACITY},
      .action = lane->action,
      .action_capacity = SIM_OUT_ACTIONS,
      .pool = lane->pool,
  };
  lane->lane = kdp_engine_lane(host->engine, index);
  if (!lane->lane) sim_fail(host->world, "%s: no lane %u", host->config.name, index);
  return lane;
}

static void start_engine(sim_host *host) {
  kdp_now now = sim_host_now(host);
  kdp_status status =
      host->config.create(host->config.context, &host->services, &host->config.limits, now, &host->engine);
  if (status != KDP_OK)
    sim_fail(host->world, "%s: the engine was not made: %s", host->config.name, kdp_status_describe(status)->name);
  for (uint32_t i = 0; i < host->lanes; i++)
    host->lane[i] = make_lane(host, i);
  if (kdp_engine_lane(host->engine, host->lanes))
    sim_fail(host->world, "%s: a lane above the limit", host->config.name);
  memset(&host->before, 0, sizeof host->before);
  memset(host->handed, 0, sizeof host->handed);
  memset(host->handed_total, 0, sizeof host->handed_total);
  host->came_out = 0;
  sim_lane *lane = host->lane[0];
  kdp_engine_link_up(lane->lane, 0, KDP_LINK_DATAGRAM, &(kdp_path){.link = 0}, &lane->out, now);
  sim_host_flush(host);
}

sim_host *sim_host_add(sim *world, const sim_host_config *config) {
  sim_host *host = sim_allocate(sizeof *host);
  host->world = world;
  host->config = *config;
  host->index = world->host_count;
  host->lanes = config->limits.lanes ? config->limits.lanes : 1;
  if (host->lanes > SIM_LANES) abort();
  if (!host->config.boot) host->config.boot = BOOT_AT_START;
  if (!host->config.wall) host->config.wall = WALL_AT_START;
  if (!host->config.wake_latency) host->config.wake_latency = 20 * KDP_MICROSECOND;
  if (!host->config.pool_slots) host->config.pool_slots = POOL_SLOTS;
  if (!host->config.socket_queue) host->config.socket_queue = SOCKET_QUEUE;
  host->config.boot -= world->now < host->config.boot ? world->now : 0; /* the clocks as given are those of now */
  host->random.state = sim_scatter(world->seed * 31 + host->index + 1);
  host->memory = (sim_memory){.world = world,
                              .owner = config->name,
                              .limit = config->memory_limit,
                              .random = {sim_scatter(world->seed * 37 + host->index + 1000)}};
  host->services = sim_memory_host(&host->memory);
  host->port = config->port ? config->port : (uint16_t)sim_random_between(&host->random, 20000, 60000);
  host->nat.next_port = (uint16_t)(1024 + sim_random_below(&host->random, 10000));
  host->round_at = KDP_NEVER;
  world->host = sim_grow(world->host, world->host_count, &world->host_capacity, sizeof *world->host);
  world->host[world->host_count++] = host;
  if (config->create) start_engine(host);
  return host;
}

static void free_line(sim_line *line) {
  while (line->count > 0)
    free(sim_line_take(line).datagram);
  free(line->waiting);
}

static void end_engine(sim_host *host) {
  for (uint32_t i = 0; i < host->lanes; i++) {
    sim_lane *lane = host->lane[i];
    if (!lane) continue;
    kdp_batch_release(&lane->out.wire, lane->pool);
    kdp_batch_release(&lane->out.inside, lane->pool);
    free_line(&lane->to_inside);
    free_line(&lane->to_outside);
  }
  host->memory.sealed = false;
  kdp_engine_destroy(host->engine);
  host->engine = NULL;
  for (uint32_t i = 0; i < host->lanes; i++) {
    if (!host->lane[i]) continue;
    kdp_pool_destroy(host->lane[i]->pool);
    free(host->lane[i]);
    host->lane[i] = NULL;
  }
}

void sim_host_stop(sim_host *host) {
  if (!host->engine) return;
  sim_host_flush(host);
  sim_check_slots(host);
  sim_coverage *stopped = &host->world->stopped;
  sim_host_collect(host, stopped);
  end_engine(host);
  if (host->memory.blocks > 0)
    sim_fail(host->world, "%s: the engine is gone and %llu blocks (%zu bytes) did not come back", host->config.name,
             (unsigned long long)host->memory.blocks, host->memory.held);
  host->round_at = KDP_NEVER;
}

void sim_host_restart(sim_host *host) {
  sim_host_stop(host);
  start_engine(host);
}

void sim_host_free(sim_host *host) {
  if (host->engine) end_engine(host);
  free(host);
}

/* ---- What it is ---- */

sim *sim_host_world(const sim_host *host) {
  return host->world;
}
const char *sim_host_name(const sim_host *host) {
  return host->config.name;
}
void *sim_host_context(const sim_host *host) {
  return host->config.context;
}
kdp_engine *sim_host_engine(const sim_host *host) {
  return host->engine;
}
sim_conditions *sim_host_out(sim_host *host) {
  return &host->out;
}
sim_conditions *sim_host_in(sim_host *host) {
  return &host->in;
}
void sim_host_conditions(sim_host *host, const sim_conditions *conditions) {
  host->out = host->in = *conditions;
}
uint16_t sim_host_port(const sim_host *host) {
  return host->port;
}
size_t sim_host_memory(const sim_host *host) {
  return host->memory.held;
}
size_t sim_host_memory_peak(const sim_host *host) {
  return host->memory.peak;
}
uint64_t sim_host_allocations(const sim_host *host) {
  return host->memory.allocations;
}
void sim_host_fail_allocation(sim_host *host, uint64_t nth) {
  host->memory.fail_from = nth ? host->memory.allocations + nth : 0;
}
uint64_t sim_host_handed(const sim_host *host, bool outside, kdp_status status) {
  return host->handed[outside][status];
}
uint64_t sim_host_handed_total(const sim_host *host, bool outside) {
  return host->handed_total[outside];
}
uint64_t sim_host_events(const sim_host *host, kdp_event_kind kind) {
  return host->events[kind];
}
uint64_t sim_host_actions(const sim_host *host, kdp_action_kind kind) {
  return host->actions[kind];
}
uint64_t sim_host_sent(const sim_host *host) {
  return host->sent;
}
uint64_t sim_host_came_out(const sim_host *host) {
  return host->came_out;
}
uint64_t sim_host_icmp_errors(const sim_host *host) {
  return host->icmp_errors;
}
uint32_t sim_host_icmp_mtu(const sim_host *host) {
  return host->icmp_mtu;
}

bool sim_host_owns(const sim_host *host, const kdp_address *address) {
  for (uint32_t i = 0; i < host->config.address_count; i++)
    if (host->config.address[i].family == address->family &&
        memcmp(host->config.address[i].bytes, address->bytes, sizeof address->bytes) == 0)
      return true;
  return false;
}

const kdp_address *sim_host_default_source(const sim_host *host, kdp_family family) {
  for (uint32_t i = 0; i < host->config.address_count; i++)
    if (host->config.address[i].family == family) return &host->config.address[i];
  return NULL;
}

kdp_address sim_host_address(const sim_host *host, kdp_family family) {
  kdp_address address = {.family = KDP_FAMILY_NONE};
  const kdp_address *own = sim_host_default_source(host, family);
  if (own) address = *own;
  address.port = host->port;
  return address;
}

/* ---- Clocks ---- */

kdp_now sim_host_now(const sim_host *host) {
  return (kdp_now){.boot = (uint64_t)((int64_t)(host->config.boot + host->world->now) + host->boot_step),
                   .wall = (uint64_t)((int64_t)(host->config.wall + host->world->now) + host->wall_step)};
}

bool sim_host_is_awake(const sim_host *host) {
  return host->world->now >= host->asleep_until;
}

void sim_host_suspend(sim_host *host, uint64_t duration) {
  sim_note(host->world, "suspended", host->index, duration, 0);
  host->asleep_until = host->world->now + duration;
  sim_host_wake(host, host->asleep_until);
}

void sim_host_step_wall(sim_host *host, int64_t ns) {
  sim_note(host->world, "wall stepped", host->index, (uint64_t)ns, 0);
  host->wall_step += ns;
}

void sim_host_step_boot(sim_host *host, int64_t ns) {
  sim_note(host->world, "boot stepped", host->index, (uint64_t)ns, 0);
  host->boot_step += ns;
  sim_host_wake(host, host->world->now);
}

void sim_host_wake(sim_host *host, uint64_t time) {
  if (!host->engine) return;
  if (time < host->asleep_until) time = host->asleep_until;
  if (time >= host->round_at) return;
  host->round_at = time;
  sim_schedule(host->world, (sim_due){.time = time, .kind = SIM_DUE_ROUND, .host = host});
}

/* ---- Network ---- */

void sim_host_move(sim_host *host, const kdp_address *address, uint32_t count) {
  sim_note(host->world, "moved", host->index, count, 0);
  memcpy(host->config.address, address, count * sizeof *address);
  host->config.address_count = count;
}

void sim_host_network_changed(sim_host *host) {
  sim_lane *lane = host->lane[0];
  sim_note(host->world, "network changed", host->index, 0, 0);
  host->memory.sealed = true;
  kdp_engine_network_changed(lane->lane, &lane->out, sim_host_now(host));
  host->memory.sealed = false;
  sim_host_flush(host);
}

void sim_host_link(sim_host *host, bool up) {
  sim_lane *lane = host->lane[0];
  sim_note(host->world, up ? "link up" : "link down", host->index, 0, 0);
  if (up) {
    host->down = false;
    kdp_engine_link_up(lane->lane, 0, KDP_LINK_DATAGRAM, &(kdp_path){.link = 0}, &lane->out, sim_host_now(host));
  } else {
    kdp_engine_link_down(lane->lane, 0, 0, &lane->out, sim_host_now(host));
  }
  sim_host_flush(host);
  host->down = !up;
}

void sim_host_path_mtu(sim_host *host, const kdp_path *path, uint16_t mtu) {
  if (!host->engine) return;
  sim_note(host->world, "path mtu", host->index, mtu, 0);
  host->memory.sealed = true;
  kdp_engine_path_mtu(host->lane[0]->lane, path, mtu, sim_host_now(host));
  host->memory.sealed = false;
  sim_settle(host);
}

sim_nat *sim_host_nat_of(sim_host *host) {
  return &host->nat;
}

void sim_host_nat(sim_host *host, const kdp_address *outside) {
  sim_nat *nat = &host->nat;
  nat->on = true;
  if (nat->outside_count < 2) nat->outside[nat->outside_count++] = *outside;
}

void sim_nat_forget(sim_host *host) {
  sim_note(host->world, "nat forgets", host->index, 0, 0);
  host->nat.map_count = 0;
}

void sim_nat_drop_port(sim_host *host, uint16_t port) {
  sim_note(host->world, "nat drops port", host->index, port, 0);
  host->nat.dropped_port = port;
}

/* ---- Queues ---- */

void sim_line_push(sim_line *line, sim_waiting waiting) {
  if (line->count == line->capacity) {
    uint32_t capacity = line->capacity ? line->capacity * 2 : 16;
    sim_waiting *ring = sim_allocate(capacity * sizeof *ring);
    for (uint32_t i = 0; i < line->count; i++)
      ring[i] = line->waiting[(line->first + i) % line->capacity];
    free(line->waiting);
    line->waiting = ring;
    line->first = 0;
    line->capacity = capacity;
  }
  line->waiting[(line->first + line->count++) % line->capacity] = waiting;
}

sim_waiting sim_line_take(sim_line *line) {
  sim_waiting waiting = line->waiting[line->first];
  line->first = (line->first + 1) % line->capacity;
  line->count--;
  return waiting;
}

/* A flow keeps to one lane: by its addresses, as a kernel with several queues does. */
static sim_lane *lane_for(sim_host *host, const void *bytes, size_t size) {
  uint64_t digest = 0;
  const uint8_t *at = bytes;
  for (size_t i = 0; i < size; i++)
    digest = digest * 131 + at[i];
  return host->lane[sim_scatter(digest) % host->lanes];
}

static void enqueue(sim_host *host, sim_line *line, uint32_t limit, sim_waiting waiting) {
  if (line->count >= limit) {
    host->queue_drops++;
    sim_note(host->world, "queue full", host->index, 0, 0);
    free(waiting.datagram);
    return;
  }
  sim_line_push(line, waiting);
  sim_host_wake(host, host->world->now + sim_random_below(&host->random, host->config.wake_latency + 1));
}

void sim_host_inside(sim_host *host, const void *packet, uint32_t size) {
  if (!host->engine || host->down || !sim_host_is_awake(host)) return;
  kdp_address none = {.family = KDP_FAMILY_NONE};
  const uint8_t *bytes = packet;
  size_t from = size >= 20 && bytes[0] >> 4 == 4 ? 12 : 8;
  sim_lane *lane = lane_for(host, bytes + (size < 28 ? 0 : from), size < 28 ? 0 : 16);
  enqueue(host, &lane->to_inside, INSIDE_QUEUE,
          (sim_waiting){.datagram = sim_datagram_make(&none, &none, 0, packet, size)});
}

void sim_host_receive(sim_host *host, sim_datagram *datagram, uint16_t port) {
  if (!host->engine) {
    if (host->config.on_datagram) host->config.on_datagram(host, datagram, host->config.context);
    free(datagram);
    return;
  }
  if (port != host->port || host->down) {
    sim_note(host->world, "port closed", host->index, port, 0);
    free(datagram);
    return;
  }
  sim_lane *lane = lane_for(host, &datagram->source, sizeof datagram->source);
  enqueue(host, &lane->to_outside, host->config.socket_queue, (sim_waiting){.datagram = datagram, .port = port});
}

/* ---- The caller's own calls ---- */

void sim_host_receive_limit(sim_host *host, uint32_t bytes) {
  host->receive_limit = bytes;
}

void sim_host_deafen(sim_host *host, bool deaf) {
  host->deaf = deaf;
}

kdp_out *sim_host_output(sim_host *host) {
  return &host->lane[0]->out;
}

void sim_host_flush(sim_host *host) {
  for (uint32_t i = 0; i < host->lanes; i++)
    sim_drain(host, host->lane[i]);
  sim_settle(host);
}

void sim_host_collect(sim_host *host, sim_coverage *coverage) {
  if (!host->engine) return;
  sim_check_counters(host);
  sim_check_slots(host);
  kdp_statistics statistics;
  kdp_engine_statistics(host->engine, &statistics);
  for (unsigned i = 0; i < KDP_STATUS_COUNT; i++)
    coverage->status[i] += statistics.status[i];
  for (unsigned i = 0; i < SIM_EVENT_KINDS; i++)
    coverage->event[i] += host->events[i];
  for (unsigned i = 0; i < SIM_ACTION_KINDS; i++)
    coverage->action[i] += host->actions[i];
  coverage->handshakes += statistics.handshakes;
  coverage->key_changes += statistics.key_changes;
  coverage->roams += statistics.roams;
}
