/* The network between the hosts: what happens to a datagram on its way. Links are datagram links; a stream link would
   be a second model beside this file, fed by kdp_engine_link_up, _room and _down, and would take the OPEN and CLOSE
   actions that host.c hands to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

kdp_address sim_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port) {
  return (kdp_address){.family = KDP_FAMILY_IPV4, .port = port, .bytes = {a, b, c, d}};
}

kdp_address sim_ipv6(uint16_t net, uint16_t host, uint16_t port) {
  return (kdp_address){.family = KDP_FAMILY_IPV6,
                       .port = port,
                       .bytes = {0x20, 0x01, 0x0d, 0xb8, (uint8_t)(net >> 8), (uint8_t)net, 0, 0, 0, 0, 0, 0, 0, 0,
                                 (uint8_t)(host >> 8), (uint8_t)host}};
}

sim_datagram *sim_datagram_make(const kdp_address *source, const kdp_address *destination, uint8_t ecn,
                                const void *bytes, uint32_t size) {
  sim_datagram *datagram = malloc(sizeof *datagram + size);
  if (!datagram) abort();
  *datagram = (sim_datagram){.source = *source, .destination = *destination, .ecn = ecn, .size = size};
  if (size) memcpy(datagram->bytes, bytes, size);
  return datagram;
}

void sim_set_filter(sim *world, sim_filter filter, void *context) {
  world->filter = filter;
  world->filter_context = context;
}

/* ---- Capture ---- */

void sim_capture(sim *world, bool on) {
  world->capture = on;
}
uint32_t sim_captured_count(const sim *world) {
  return world->captured_count;
}
const sim_captured *sim_captured_at(const sim *world, uint32_t index) {
  return &world->captured[index];
}

static void capture(sim *world, sim_host *from, const sim_datagram *datagram) {
  world->captured =
      sim_grow(world->captured, world->captured_count, &world->captured_capacity, sizeof *world->captured);
  world->captured[world->captured_count++] = (sim_captured){
      world->now, from,
      sim_datagram_make(&datagram->source, &datagram->destination, datagram->ecn, datagram->bytes, datagram->size)};
}

/* ---- NAT ---- */

static uint16_t nat_outer_port(sim *world, sim_nat *nat, uint16_t local) {
  for (uint32_t i = 0; i < nat->map_count; i++)
    if (nat->map[i].local == local) return nat->map[i].outer;
  uint32_t capacity = sizeof nat->map / sizeof nat->map[0];
  if (nat->map_count == capacity) {
    memmove(&nat->map[0], &nat->map[1], (capacity - 1) * sizeof nat->map[0]);
    nat->map_count--;
  }
  uint16_t outer = nat->next_port++;
  nat->map[nat->map_count].local = local;
  nat->map[nat->map_count++].outer = outer;
  sim_note(world, "nat maps", local, outer, 0);
  return outer;
}

static const kdp_address *nat_outside(const sim_nat *nat, uint8_t family) {
  for (uint32_t i = 0; i < nat->outside_count; i++)
    if (nat->outside[i].family == family) return &nat->outside[i];
  return NULL;
}

/* ---- The way of a datagram ---- */

/* Damages a copy's bytes; the original may be sent again. */
static sim_datagram *damage(sim *world, const sim_conditions *conditions, sim_datagram *datagram) {
  if (datagram->size > 0 && sim_random_chance(&world->random, conditions->corrupt)) {
    uint64_t flips = 1 + sim_random_below(&world->random, 3);
    for (uint64_t i = 0; i < flips; i++) {
      uint64_t bit = sim_random_below(&world->random, (uint64_t)datagram->size * 8);
      datagram->bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    sim_note(world, "corrupted", datagram->size, flips, 0);
  }
  if (datagram->size > 0 && sim_random_chance(&world->random, conditions->truncate)) {
    datagram->size = (uint32_t)sim_random_below(&world->random, datagram->size);
    sim_note(world, "truncated", datagram->size, 0, 0);
  }
  if (sim_random_chance(&world->random, conditions->congestion) &&
      (datagram->ecn != 0 || sim_random_below(&world->random, 8) == 0)) {
    datagram->ecn = 3;
    sim_note(world, "congested", 0, 0, 0);
  }
  return datagram;
}

static uint64_t delay_of(sim *world, const sim_conditions *conditions) {
  uint64_t delay = conditions->delay + sim_random_below(&world->random, conditions->jitter + 1);
  if (sim_random_chance(&world->random, conditions->reorder))
    delay += sim_random_below(&world->random, conditions->reorder_delay + 1);
  return delay;
}

static bool is_lost(sim *world, const sim_conditions *conditions) {
  return conditions->down || sim_random_chance(&world->random, conditions->loss);
}

static uint32_t ip_size(const sim_datagram *datagram) {
  return datagram->size + 8 + (datagram->destination.family == KDP_FAMILY_IPV6 ? 40 : 20);
}

static bool fits(const sim_conditions *conditions, const sim_datagram *datagram) {
  return conditions->mtu == 0 || conditions->oversize == SIM_FRAGMENT || ip_size(datagram) <= conditions->mtu;
}

static void launch(sim *world, sim_datagram *datagram, uint64_t delay) {
  sim_schedule(world, (sim_due){.time = world->now + delay, .kind = SIM_DUE_ARRIVAL, .datagram = datagram});
}

/* Tells a sender the path MTU a while after it sent too much. */
typedef struct mtu_notice {
  sim_host *host;
  kdp_path path;
  uint16_t mtu;
} mtu_notice;

static void tell_mtu(sim *world, void *context) {
  (void)world;
  mtu_notice *notice = context;
  sim_host_path_mtu(notice->host, &notice->path, notice->mtu);
  free(notice);
}

static bool pass_mtu(sim *world, sim_host *from, const kdp_path *path, const sim_conditions *conditions,
                     const sim_datagram *datagram) {
  if (fits(conditions, datagram)) return true;
  sim_note(world, "too big", ip_size(datagram), conditions->mtu, conditions->oversize);
  if (conditions->oversize == SIM_ANSWER) {
    mtu_notice *notice = sim_allocate(sizeof *notice);
    *notice = (mtu_notice){from, *path, conditions->mtu};
    sim_schedule(world, (sim_due){.time = world->now + conditions->delay,
                                  .kind = SIM_DUE_CALL,
                                  .call = tell_mtu,
                                  .context = notice,
                                  .owned = true});
  }
  return false;
}

void sim_transmit(sim *world, sim_host *from, uint16_t local_port, const kdp_path *path, const kdp_packet *packet) {
  const kdp_address *source = &path->local;
  if (source->family != path->remote.family || !sim_host_owns(from, source)) {
    if (source->family != KDP_FAMILY_NONE) sim_note(world, "source gone", path->remote.family, 0, 0);
    source = sim_host_default_source(from, (kdp_family)path->remote.family); /* the kernel chooses */
  }
  if (!source) {
    sim_note(world, "no source", path->remote.family, 0, 0);
    return;
  }
  kdp_address local = *source;
  local.port = local_port;
  local.scope = 0;
  sim_datagram *datagram = sim_datagram_make(&local, &path->remote, packet->ecn, packet->data, packet->size);
  world->datagrams++;
  sim_note(world, "sent", datagram->size, local.port, path->remote.port);
  sim_note_bytes(world, "sent bytes", datagram->bytes, datagram->size);
  sim_nat *nat = sim_host_nat_of(from);
  const sim_conditions *out = sim_host_out(from);
  const kdp_address *outside = nat->on ? nat_outside(nat, local.family) : NULL;
  if (outside) {
    datagram->source = *outside;
    datagram->source.port = nat_outer_port(world, nat, local_port);
  }
  if (world->capture) capture(world, from, datagram);
  bool blocked = nat->dropped_port && local_port == nat->dropped_port;
  if ((world->filter && world->filter(world->filter_context, world, from, datagram) == SIM_DROP) || blocked ||
      is_lost(world, out) || !pass_mtu(world, from, path, out, datagram)) {
    sim_note(world, "lost", 0, 0, 0);
    free(datagram);
    return;
  }
  if (sim_random_chance(&world->random, out->duplicate)) {
    sim_datagram *copy =
        sim_datagram_make(&datagram->source, &datagram->destination, datagram->ecn, datagram->bytes, datagram->size);
    launch(world, damage(world, out, copy), delay_of(world, out));
  }
  launch(world, damage(world, out, datagram), delay_of(world, out));
}

void sim_inject(sim *world, const kdp_address *source, const kdp_address *destination, uint8_t ecn, const void *bytes,
                uint32_t size, uint64_t delay) {
  launch(world, sim_datagram_make(source, destination, ecn, bytes, size), delay);
}

/* Whose is it? Also finds the local port behind a NAT. */
static sim_host *receiver_of(sim *world, const kdp_address *destination, uint16_t *port) {
  for (uint32_t i = 0; i < world->host_count; i++) {
    sim_host *host = world->host[i];
    sim_nat *nat = sim_host_nat_of(host);
    if (nat->on) {
      const kdp_address *outside = nat_outside(nat, destination->family);
      if (!outside || memcmp(outside->bytes, destination->bytes, sizeof outside->bytes) != 0) continue;
      for (uint32_t m = 0; m < nat->map_count; m++) {
        if (nat->map[m].outer != destination->port) continue;
        *port = nat->map[m].local;
        return host;
      }
    } else if (sim_host_owns(host, destination)) {
      *port = destination->port;
      return host;
    }
  }
  return NULL;
}

void sim_deliver(sim *world, sim_host *host, sim_datagram *datagram, uint16_t port) {
  if (!sim_host_is_awake(host)) {
    sim_note(world, "asleep", datagram->size, 0, 0);
    free(datagram);
    return;
  }
  sim_host_receive(host, datagram, port);
}

/* At the receiver's access: its incoming conditions. */
void sim_arrive(sim *world, sim_datagram *datagram) {
  uint16_t port = 0;
  sim_host *host = receiver_of(world, &datagram->destination, &port);
  if (!host) {
    sim_note(world, "nobody there", datagram->size, datagram->destination.port, 0);
    free(datagram);
    return;
  }
  const sim_conditions *in = sim_host_in(host);
  if (is_lost(world, in) || !fits(in, datagram)) {
    sim_note(world, "lost at the end", datagram->size, 0, 0);
    free(datagram);
    return;
  }
  uint32_t copies = sim_random_chance(&world->random, in->duplicate) ? 2 : 1;
  for (uint32_t i = 0; i < copies; i++) {
    sim_datagram *piece = i + 1 == copies ? datagram
                                          : sim_datagram_make(&datagram->source, &datagram->destination, datagram->ecn,
                                                              datagram->bytes, datagram->size);
    sim_schedule(world, (sim_due){.time = world->now + delay_of(world, in),
                                  .kind = SIM_DUE_DELIVERY,
                                  .datagram = damage(world, in, piece),
                                  .to = host,
                                  .port = port});
  }
}
