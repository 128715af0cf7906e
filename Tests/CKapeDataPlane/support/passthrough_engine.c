#include "support/passthrough_engine.h"

#include <string.h>

static const uint8_t magic[8] = {'p', 'a', 's', 's', 't', 'h', 'r', 'u'};

void passthrough_write(uint8_t *datagram, size_t size, uint64_t number) {
  uint8_t *tail = datagram + PASSTHROUGH_HEAD + size;
  memcpy(datagram, magic, 8);
  memcpy(datagram + 8, &number, 8);
  memcpy(tail, &number, 8);
  memcpy(tail + 8, magic, 8);
}

bool passthrough_read(const uint8_t *datagram, size_t size, uint64_t *number) {
  if (size < PASSTHROUGH_HEAD + PASSTHROUGH_TAIL) return false;
  memcpy(number, datagram + 8, 8);
  return memcmp(datagram, magic, 8) == 0 && memcmp(datagram + size - 8, magic, 8) == 0 &&
         memcmp(datagram + size - 16, number, 8) == 0;
}

static passthrough_lane *other_of(kdp_lane *lane) {
  return lane->index ? (passthrough_lane *)lane : NULL;
}

/* Whether this lane does not want the packet. */
static bool hands_over(kdp_lane *lane, const kdp_packet *packet, const kdp_path *path, kdp_out *out) {
  const passthrough *self = (passthrough *)lane->engine;
  passthrough_lane *other = other_of(lane);
  if (!other || self->hand_every == 0 || (other->sent + other->received + other->handed) % self->hand_every != 0)
    return false;
  if (out->action_count == out->action_capacity) return false;
  other->handed++;
  out->action[out->action_count++] = (kdp_action){.kind = KDP_ACTION_HANDOFF,
                                                  .from_inside = !path,
                                                  .wire_count = out->wire.count,
                                                  .path = path ? *path : (kdp_path){0},
                                                  .packet = *packet};
  return true;
}

static uint32_t inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)now;
  passthrough *self = (passthrough *)lane->engine;
  passthrough_lane *other = other_of(lane);
  uint64_t *sent = other ? &other->sent : &self->sent, *damaged = other ? &other->damaged : &self->damaged;
  uint32_t taken = 0;
  while (taken < in->count && (self->take_most == 0 || taken < self->take_most)) {
    kdp_packet packet = in->packet[taken];
    if (self->path.remote.family == KDP_FAMILY_NONE || packet.head < PASSTHROUGH_HEAD ||
        packet.tail < PASSTHROUGH_TAIL) {
      ++*damaged;
      kdp_pool_release(out->pool, packet.slot);
      taken++;
      continue;
    }
    if (hands_over(lane, &packet, NULL, out)) {
      taken++;
      continue;
    }
    uint16_t path = kdp_batch_path(&out->wire, &self->path);
    if (path == UINT16_MAX || kdp_batch_room(&out->wire) == 0) break;
    if (!other && self->action.kind && out->action_count < out->action_capacity) {
      self->action.wire_count = out->wire.count;
      out->action[out->action_count++] = self->action;
      self->action.kind = 0;
    }
    uint32_t size = packet.size;
    packet.data -= PASSTHROUGH_HEAD;
    packet.head -= PASSTHROUGH_HEAD;
    packet.tail -= PASSTHROUGH_TAIL;
    packet.size += PASSTHROUGH_HEAD + PASSTHROUGH_TAIL;
    packet.path = path;
    packet.flags = self->flags;
    packet.ecn = self->ecn;
    passthrough_write(packet.data, size, (uint64_t)lane->index << 56 | (*sent)++);
    (void)kdp_batch_push(&out->wire, &packet);
    taken++;
  }
  return taken;
}

static uint32_t outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)now;
  passthrough *self = (passthrough *)lane->engine;
  passthrough_lane *other = other_of(lane);
  uint32_t taken = 0;
  for (; taken < in->count && (self->take_most == 0 || taken < self->take_most); taken++) {
    kdp_packet packet = in->packet[taken];
    uint64_t number;
    if (!passthrough_read(packet.data, packet.size, &number)) {
      ++*(other ? &other->damaged : &self->damaged);
      kdp_pool_release(out->pool, packet.slot);
      continue;
    }
    if (hands_over(lane, &packet, &in->path[packet.path], out)) continue;
    if (kdp_batch_room(&out->inside) == 0) break;
    if (!other && self->learn) self->path = in->path[packet.path];
    if (!other) self->last_ecn = packet.ecn;
    packet.data += PASSTHROUGH_HEAD;
    packet.head += PASSTHROUGH_HEAD;
    packet.size -= PASSTHROUGH_HEAD + PASSTHROUGH_TAIL;
    ++*(other ? &other->received : &self->received);
    (void)kdp_batch_push(&out->inside, &packet);
  }
  return taken;
}

static kdp_room room(const kdp_engine *engine, const kdp_path *path) {
  (void)path;
  const passthrough *self = (const passthrough *)engine;
  return (kdp_room){.head = PASSTHROUGH_HEAD,
                    .tail = PASSTHROUGH_TAIL,
                    .growth = PASSTHROUGH_HEAD + PASSTHROUGH_TAIL,
                    .inside_mtu = self->inside_mtu ? self->inside_mtu : 1420};
}

static kdp_lane *lane_of(kdp_engine *engine, uint32_t index) {
  passthrough *self = (passthrough *)engine;
  if (index == 0) return &self->lane;
  return index < self->lanes ? &self->other[index - 1].lane : NULL;
}

static uint64_t deadline(const kdp_lane *lane) {
  return lane->index ? KDP_NEVER : ((const passthrough *)lane->engine)->deadline;
}

static void tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  (void)out;
  passthrough *self = (passthrough *)lane->engine;
  if (now.boot < self->deadline) self->damaged++; /* called too early */
  self->ticks++;
  self->deadline = KDP_NEVER;
}

static void path_mtu(kdp_lane *lane, const kdp_path *path, uint16_t bytes, kdp_now now) {
  (void)path, (void)now;
  passthrough *self = (passthrough *)lane->engine;
  self->path_mtu = bytes;
  self->path_mtu_calls++;
}

static void link_up(kdp_lane *lane, kdp_link link, kdp_link_kind kind, const kdp_path *path, kdp_out *out,
                    kdp_now now) {
  (void)link, (void)kind, (void)path, (void)out, (void)now;
  ((passthrough *)lane->engine)->links_up++;
}

static void link_down(kdp_lane *lane, kdp_link link, int error, kdp_out *out, kdp_now now) {
  (void)link, (void)error, (void)out, (void)now;
  ((passthrough *)lane->engine)->links_down++;
}

static void quiescent(kdp_lane *lane, kdp_now now) {
  (void)now;
  passthrough_lane *other = other_of(lane);
  ++*(other ? &other->quiescent : &((passthrough *)lane->engine)->quiescent);
}

static bool next_event(kdp_engine *engine, kdp_event *event) {
  passthrough *self = (passthrough *)engine;
  if (self->event_count == 0) return false;
  *event = self->event[--self->event_count];
  return true;
}

static void statistics(const kdp_engine *engine, kdp_statistics *result) {
  const passthrough *self = (const passthrough *)engine;
  result->wire_out.packets = self->sent;
  result->wire_in.packets = self->received;
}

static void destroy(kdp_engine *engine) {
  (void)engine;
}

static const kdp_engine_ops ops = {
    .name = "passthrough",
    .destroy = destroy,
    .room = room,
    .lane = lane_of,
    .inside = inside,
    .outside = outside,
    .link_up = link_up,
    .link_down = link_down,
    .path_mtu = path_mtu,
    .deadline = deadline,
    .tick = tick,
    .quiescent = quiescent,
    .next_event = next_event,
    .statistics = statistics,
};

void passthrough_init(passthrough *self) {
  memset(self, 0, sizeof *self);
  self->engine.ops = &ops;
  self->lane.engine = &self->engine;
  for (uint32_t i = 0; i < PASSTHROUGH_LANES - 1; i++)
    self->other[i].lane = (kdp_lane){.engine = &self->engine, .index = i + 1};
  self->deadline = KDP_NEVER;
}
