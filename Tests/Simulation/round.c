/* A round of a host's loop, as the I/O layer runs it: datagrams in, inner packets in, timers, events; and after each
   call what came out is held against the contract and carried out. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "host.h"

enum { TICKS_AT_ONCE = 4096, EVENTS_AT_ONCE = 100000 };

static void breach(sim_host *host, const char *what, uint64_t a, uint64_t b) {
  sim_fail(host->world, "%s (%s): %s (%llu, %llu)", host->config.name, kdp_engine_name(host->engine), what,
           (unsigned long long)a, (unsigned long long)b);
}

/* ---- What comes out ---- */

static void check_packet(sim_host *host, const sim_lane *lane, const kdp_packet *packet) {
  if (packet->slot >= kdp_pool_slot_count(lane->pool)) breach(host, "a packet outside the pool", packet->slot, 0);
  const uint8_t *slot = kdp_pool_slot_data(lane->pool, packet->slot);
  const uint8_t *first = packet->data - packet->head, *last = packet->data + packet->size + packet->tail;
  if (first < slot || last > slot + KDP_SLOT_SIZE) breach(host, "a packet beyond its slot", packet->size, packet->head);
  if (packet->size > UINT16_MAX) breach(host, "a packet of impossible size", packet->size, 0);
  if (packet->ecn > 3) breach(host, "an ECN field of more than two bits", packet->ecn, 0);
}

static void check_wire_packet(sim_host *host, const sim_lane *lane, uint32_t index) {
  const kdp_batch *wire = &lane->out.wire;
  const kdp_packet *packet = &wire->packet[index];
  check_packet(host, lane, packet);
  if (host->down) breach(host, "a datagram while the link is down", packet->size, packet->data[0]);
  if (packet->size == 0) breach(host, "an empty datagram", index, 0);
  if (packet->path >= wire->path_count) breach(host, "a path that is not in the batch", packet->path, wire->path_count);
  if (wire->path[packet->path].remote.family == KDP_FAMILY_NONE) breach(host, "a datagram to nowhere", index, 0);
  if (packet->flags & KDP_SAME_SIZE) {
    if (index == 0) breach(host, "SAME_SIZE on the first packet", 0, 0);
    const kdp_packet *former = &wire->packet[index - 1];
    if (former->size != packet->size || former->path != packet->path)
      breach(host, "SAME_SIZE on another size or path", former->size, packet->size);
  }
}

static void rebind(sim_host *host) {
  uint16_t port = host->port;
  while (port == host->port)
    port = (uint16_t)sim_random_between(&host->random, 20000, 60000);
  sim_note(host->world, "rebind", host->index, host->port, port);
  host->port = port;
}

static void act(sim_host *host, const kdp_action *action) {
  if (action->kind == 0 || action->kind >= SIM_ACTION_KINDS) breach(host, "an unknown action", action->kind, 0);
  host->actions[action->kind]++;
  sim_note(host->world, "action", host->index, action->kind, action->peer);
  if (host->config.on_action) host->config.on_action(host, action, host->config.context);
  switch ((kdp_action_kind)action->kind) {
  case KDP_ACTION_REBIND: rebind(host); break;
  case KDP_ACTION_RESOLVE: break;  /* the scenario's, through on_action */
  case KDP_ACTION_PATH_MTU: break; /* this network tells when something was too large */
  case KDP_ACTION_OPEN:
  case KDP_ACTION_CLOSE: breach(host, "a stream link: this network has none", action->kind, 0); break;
  case KDP_ACTION_HANDOFF: breach(host, "a hand-off from lane 0", action->packet.size, 0); break;
  }
}

/* Is it an ICMP error that this host may get: whole, with right sums, about a packet it sent? */
static bool check_icmp_error(sim_host *host, const uint8_t *bytes, uint32_t size) {
  if (size >= 28 && bytes[0] == 0x45 && bytes[9] == 1) {
    if (kdp_load_be16(bytes + 2) != size || sim_checksum(0, bytes, 20) || sim_checksum(0, bytes + 20, size - 20) ||
        bytes[20] != 3 || (bytes[21] != 1 && bytes[21] != 4) || size < 20 + 8 + 20)
      return false;
    const uint8_t *quote = bytes + 28;
    if (memcmp(bytes + 12, quote + 16, 4) != 0 || memcmp(bytes + 16, quote + 12, 4) != 0) return false;
    if (bytes[21] == 4) host->icmp_mtu = kdp_load_be16(bytes + 26);
    return sim_flow_quoted(host->world, host, quote, size - 28);
  }
  if (size >= 48 && bytes[0] >> 4 == 6 && bytes[6] == 58) {
    uint32_t pseudo = 58 + size - 40;
    for (uint32_t i = 8; i < 40; i += 2)
      pseudo += kdp_load_be16(bytes + i);
    bool known = (bytes[40] == 1 && bytes[41] == 3) || (bytes[40] == 2 && bytes[41] == 0);
    if (kdp_load_be16(bytes + 4) != size - 40 || sim_checksum(pseudo, bytes + 40, size - 40) || !known ||
        size < 48 + 40)
      return false;
    const uint8_t *quote = bytes + 48;
    if (memcmp(bytes + 8, quote + 24, 16) != 0 || memcmp(bytes + 24, quote + 8, 16) != 0) return false;
    if (bytes[40] == 2) host->icmp_mtu = kdp_load_be32(bytes + 44);
    return sim_flow_quoted(host->world, host, quote, size - 48);
  }
  return false;
}

static void take_inside(sim_host *host, const kdp_packet *packet) {
  host->came_out++;
  if (sim_flow_arrived(host->world, host, packet->data, packet->size)) return;
  if (host->config.on_inside && host->config.on_inside(host, packet->data, packet->size, host->config.context)) return;
  if (!check_icmp_error(host, packet->data, packet->size))
    breach(host, "a packet came out inside that nobody sent", packet->size, packet->size ? packet->data[0] : 0);
  host->icmp_errors++;
  sim_note(host->world, "icmp error", host->index, packet->size, host->icmp_mtu);
}

static uint64_t produced(const sim_lane *lane) {
  return (uint64_t)lane->out.wire.count + lane->out.inside.count + lane->out.action_count;
}

void sim_drain(sim_host *host, sim_lane *lane) {
  kdp_out *out = &lane->out;
  if (out->wire.count > out->wire.capacity || out->inside.count > out->inside.capacity ||
      out->action_count > out->action_capacity || out->wire.path_count > out->wire.path_capacity)
    breach(host, "more in `out` than it holds", out->wire.count, out->inside.count);
  uint32_t action = 0;
  for (uint32_t i = 0; i <= out->wire.count; i++) {
    while (action < out->action_count && out->action[action].wire_count <= i)
      act(host, &out->action[action++]);
    if (i == out->wire.count) break;
    check_wire_packet(host, lane, i);
    const kdp_packet *packet = &out->wire.packet[i];
    uint32_t copies = packet->flags & KDP_THRICE ? 3 : 1;
    for (uint32_t copy = 0; copy < copies; copy++) {
      host->sent++;
      sim_transmit(host->world, host, host->port, &out->wire.path[packet->path], packet);
    }
  }
  if (action < out->action_count) breach(host, "an action after more packets than there are", action, 0);
  for (uint32_t i = 0; i < out->inside.count; i++) {
    check_packet(host, lane, &out->inside.packet[i]);
    take_inside(host, &out->inside.packet[i]);
  }
  kdp_batch_release(&out->wire, lane->pool);
  kdp_batch_release(&out->inside, lane->pool);
  out->action_count = 0;
}

/* ---- Calls ---- */

/* One call in 8 has little room, so that engines meet a full `out` as a matter of course. */
static void set_room(sim_host *host, sim_lane *lane) {
  bool tight = !host->config.roomy && sim_random_below(&host->random, 8) == 0;
  lane->out.wire.capacity = tight ? (uint32_t)sim_random_between(&host->random, 1, 4) : KDP_BATCH_CAPACITY;
  lane->out.inside.capacity = tight ? (uint32_t)sim_random_between(&host->random, 1, 4) : KDP_BATCH_CAPACITY;
  lane->out.wire.path_capacity = tight ? (uint16_t)sim_random_between(&host->random, 1, 4) : KDP_BATCH_PATHS;
  lane->out.action_capacity = tight ? (uint32_t)sim_random_between(&host->random, 1, 4) : SIM_OUT_ACTIONS;
}

/* Takes all that is free in the pool, now and then; what was taken is in `taken`. */
typedef struct starvation {
  kdp_slot taken[1024];
  uint32_t count;
} starvation;

static void starve(sim_host *host, sim_lane *lane, starvation *starvation) {
  static const uint32_t SIZE[] = {4096, 64};
  starvation->count = 0;
  if (!sim_random_chance(&host->random, host->config.starve)) return;
  uint32_t most = sizeof starvation->taken / sizeof starvation->taken[0];
  kdp_packet packet;
  for (uint32_t i = 0; i < 2; i++)
    while (starvation->count < most && kdp_pool_take_packet(lane->pool, 0, SIZE[i], 0, &packet))
      starvation->taken[starvation->count++] = packet.slot;
}

static void feed_again(sim_lane *lane, const starvation *starvation) {
  for (uint32_t i = 0; i < starvation->count; i++)
    kdp_pool_release(lane->pool, starvation->taken[i]);
}

static void restore_room(sim_lane *lane) {
  lane->out.wire.capacity = lane->out.inside.capacity = KDP_BATCH_CAPACITY;
  lane->out.wire.path_capacity = KDP_BATCH_PATHS;
  lane->out.action_capacity = SIM_OUT_ACTIONS;
}

/* Each consumed packet has a status, and was counted under it: `before` are the counters as they were. */
static void tally(sim_host *host, const kdp_packet *packet, uint32_t count, bool outside,
                  const kdp_statistics *before) {
  kdp_statistics after;
  kdp_engine_statistics(host->engine, &after);
  uint32_t times[KDP_STATUS_COUNT] = {0};
  for (uint32_t i = 0; i < count; i++) {
    kdp_status status = (kdp_status)packet[i].status;
    if (status >= KDP_STATUS_COUNT) breach(host, "a packet with an unknown status", status, i);
    host->handed[outside][status]++;
    host->handed_total[outside]++;
    if (++times[status] > after.status[status] - before->status[status])
      breach(host, "a packet's status was not counted", status, i);
  }
}

/* Hands a batch to the engine until all of it is consumed. */
static void hand(sim_host *host, sim_lane *lane, kdp_batch *batch, bool outside) {
  uint32_t done = 0, total = batch->count;
  kdp_packet *packet = batch->packet;
  while (done < total) {
    batch->packet = packet + done;
    batch->count = total - done;
    if (host->config.before_call) host->config.before_call(host, host->config.context);
    set_room(host, lane);
    kdp_statistics before;
    kdp_engine_statistics(host->engine, &before);
    starvation starvation;
    starve(host, lane, &starvation);
    host->memory.sealed = true;
    kdp_now now = sim_host_now(host);
    uint32_t consumed = outside ? kdp_engine_outside(lane->lane, batch, &lane->out, now)
                                : kdp_engine_inside(lane->lane, batch, &lane->out, now);
    host->memory.sealed = false;
    feed_again(lane, &starvation);
    if (consumed > total - done) breach(host, "consumed more than there was", consumed, total - done);
    if (consumed == 0 && produced(lane) == 0)
      breach(host, "consumed nothing and produced nothing", total - done, outside);
    tally(host, batch->packet, consumed, outside, &before);
    done += consumed;
    sim_note(host->world, outside ? "outside" : "inside", host->index, consumed, lane->out.wire.count);
    sim_drain(host, lane);
    restore_room(lane);
  }
}

/* Takes what waits into the batch, with room round each packet. */
static void fill(sim_host *host, sim_lane *lane, sim_line *line, kdp_batch *batch, bool outside) {
  while (line->count > 0 && batch->count < batch->capacity) {
    const sim_datagram *next = line->waiting[line->first].datagram;
    kdp_path path = {.link = 0, .remote = next->source, .local = next->destination};
    path.local.port = 0;
    kdp_room room = kdp_engine_room(host->engine, outside ? &path : NULL);
    kdp_packet *packet = &batch->packet[batch->count];
    bool cut = outside && host->receive_limit && next->size > host->receive_limit;
    uint32_t size = cut ? host->receive_limit : next->size;
    if (!kdp_pool_take_packet(lane->pool, outside ? 0 : room.head, size, outside ? 0 : room.tail, packet)) break;
    if (size) memcpy(packet->data, next->bytes, size);
    packet->ecn = next->ecn;
    packet->status = cut ? KDP_TRUNCATED : KDP_OK;
    if (outside) {
      packet->path = kdp_batch_path(batch, &path);
      if (packet->path == UINT16_MAX) {
        kdp_pool_release(lane->pool, packet->slot);
        break;
      }
    }
    batch->count++;
    free(sim_line_take(line).datagram);
  }
}

static void feed(sim_host *host, sim_lane *lane, bool outside) {
  kdp_packet packet[SIM_ROUND_PACKETS];
  kdp_path path[KDP_BATCH_PATHS];
  kdp_batch batch = {
      .packet = packet, .capacity = SIM_ROUND_PACKETS, .path = path, .path_capacity = outside ? KDP_BATCH_PATHS : 0};
  fill(host, lane, outside ? &lane->to_outside : &lane->to_inside, &batch, outside);
  if (batch.count > 0) hand(host, lane, &batch, outside);
}

/* Ticks until nothing is due any more. */
static void run_timers(sim_host *host, sim_lane *lane) {
  for (uint32_t ticks = 0; kdp_engine_deadline(lane->lane) <= sim_host_now(host).boot; ticks++) {
    if (ticks == TICKS_AT_ONCE) breach(host, "the deadline does not move", kdp_engine_deadline(lane->lane), ticks);
    if (host->config.before_call) host->config.before_call(host, host->config.context);
    set_room(host, lane);
    starvation starvation;
    starve(host, lane, &starvation);
    host->memory.sealed = true;
    kdp_engine_tick(lane->lane, &lane->out, sim_host_now(host));
    host->memory.sealed = false;
    feed_again(lane, &starvation);
    sim_note(host->world, "tick", host->index, lane->out.wire.count, lane->out.inside.count);
    sim_drain(host, lane);
    restore_room(lane);
  }
}

/* ---- After the calls ---- */

static void take_events(sim_host *host) {
  kdp_event event;
  if (host->deaf) return;
  for (uint32_t taken = 0; kdp_engine_next_event(host->engine, &event); taken++) {
    if (taken == EVENTS_AT_ONCE) breach(host, "events without end", event.kind, 0);
    if (event.kind == 0 || event.kind >= SIM_EVENT_KINDS) breach(host, "an unknown event", event.kind, 0);
    if (event.status >= KDP_STATUS_COUNT) breach(host, "an event with an unknown status", event.status, event.kind);
    host->events[event.kind]++;
    sim_note(host->world, "event", host->index, event.kind, event.value);
    if (host->config.on_event) host->config.on_event(host, &event, host->config.context);
  }
}

static void check_rise(sim_host *host, const char *what, uint64_t before, uint64_t after) {
  if (after < before) breach(host, what, before, after);
}

void sim_check_counters(sim_host *host) {
  kdp_statistics now;
  const kdp_statistics *before = &host->before;
  kdp_engine_statistics(host->engine, &now);
  check_rise(host, "inside_in fell", before->inside_in.packets, now.inside_in.packets);
  check_rise(host, "inside_out fell", before->inside_out.packets, now.inside_out.packets);
  check_rise(host, "wire_in fell", before->wire_in.packets, now.wire_in.packets);
  check_rise(host, "wire_out fell", before->wire_out.packets, now.wire_out.packets);
  check_rise(host, "inside_in bytes fell", before->inside_in.bytes, now.inside_in.bytes);
  check_rise(host, "inside_out bytes fell", before->inside_out.bytes, now.inside_out.bytes);
  check_rise(host, "wire_in bytes fell", before->wire_in.bytes, now.wire_in.bytes);
  check_rise(host, "wire_out bytes fell", before->wire_out.bytes, now.wire_out.bytes);
  check_rise(host, "handshakes fell", before->handshakes, now.handshakes);
  check_rise(host, "key changes fell", before->key_changes, now.key_changes);
  for (unsigned i = 0; i < KDP_STATUS_COUNT; i++)
    check_rise(host, kdp_status_describe((kdp_status)i)->name, before->status[i], now.status[i]);
  host->before = now;
}

void sim_check_slots(sim_host *host) {
  for (uint32_t i = 0; i < host->lanes; i++) {
    uint32_t free_count = kdp_pool_free_count(host->lane[i]->pool), all = kdp_pool_slot_count(host->lane[i]->pool);
    if (free_count + 1 < all) breach(host, "slots did not come back", free_count, all);
  }
}

void sim_settle(sim_host *host) {
  take_events(host);
  uint64_t next = KDP_NEVER;
  for (uint32_t i = 0; i < host->lanes; i++) {
    const sim_lane *lane = host->lane[i];
    uint64_t deadline = kdp_engine_deadline(lane->lane), boot = sim_host_now(host).boot;
    uint64_t wait = deadline == KDP_NEVER ? KDP_NEVER : deadline > boot ? deadline - boot : 0;
    if (lane->to_inside.count || lane->to_outside.count) wait = 0;
    if (wait < next) next = wait;
  }
  if (next == KDP_NEVER || next > UINT64_MAX / 4) return;
  uint64_t late = sim_random_below(&host->random, host->config.wake_latency + 1);
  sim_host_wake(host, host->world->now + next + late);
}

void sim_host_round(sim_host *host) {
  if (host->world->now != host->round_at || !host->engine) return; /* a wake-up that was overtaken */
  host->round_at = KDP_NEVER;
  if (!sim_host_is_awake(host)) {
    sim_host_wake(host, host->asleep_until);
    return;
  }
  host->world->rounds++;
  host->rounds++;
  for (uint32_t i = 0; i < host->lanes; i++) {
    sim_lane *lane = host->lane[i];
    feed(host, lane, true);
    feed(host, lane, false);
    run_timers(host, lane);
    kdp_lane_quiescent(lane->lane, sim_host_now(host));
  }
  sim_check_slots(host);
  if (host->rounds % 32 == 0) sim_check_counters(host);
  sim_settle(host);
}
