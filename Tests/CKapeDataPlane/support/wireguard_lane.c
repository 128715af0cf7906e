#include "support/wireguard_lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

side_lane *side_lane_make(node *of, uint32_t index) {
  kdp_host plain = kdp_host_default();
  side_lane *l = calloc(1, sizeof *l);
  if (!l) abort();
  l->of = of;
  l->lane = kdp_engine_lane(of->engine, index);
  if (!l->lane || kdp_pool_create(16, &plain, &l->pool) != KDP_OK ||
      kdp_out_create(l->pool, &plain, &l->storage) != KDP_OK)
    abort();
  l->out = kdp_out_of(l->storage);
  return l;
}

void side_lane_free(side_lane *l) {
  side_lane_drain(l);
  bool held = kdp_pool_free_count(l->pool) + 1 < kdp_pool_slot_count(l->pool);
  kdp_out_destroy(l->storage);
  kdp_pool_destroy(l->pool);
  free(l);
  if (held) {
    fprintf(stderr, "a lane kept packet slots\n");
    abort();
  }
}

static kdp_packet carve(side_lane *l, const void *bytes, uint32_t size) {
  kdp_packet packet;
  if (!kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, &packet)) abort();
  if (size) memcpy(packet.data, bytes, size);
  return packet;
}

kdp_status side_lane_send(side_lane *l, const void *bytes, uint32_t size, kdp_now now) {
  kdp_packet packet = carve(l, bytes, size);
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1};
  if (kdp_engine_inside(l->lane, &batch, l->out, now) != 1) abort();
  return packet.status;
}

kdp_status side_lane_send_to(side_lane *l, const node *other, uint32_t payload, kdp_now now) {
  uint8_t packet[NODE_DATAGRAM];
  return side_lane_send(l, packet, node_packet(packet, l->of, other, payload), now);
}

kdp_status side_lane_receive(side_lane *l, const void *bytes, uint32_t size, const kdp_path *path, kdp_now now) {
  kdp_packet packet = carve(l, bytes, size);
  kdp_path paths[1] = {*path};
  kdp_batch batch = {.packet = &packet, .count = 1, .capacity = 1, .path = paths, .path_count = 1, .path_capacity = 1};
  if (kdp_engine_outside(l->lane, &batch, l->out, now) != 1) abort();
  return packet.status;
}

const kept_datagram *sealed_data(node *from, const node *to, uint32_t payload, kdp_now now) {
  uint32_t at = from->sent_count;
  if (node_send_to(from, to, payload, now) != KDP_OK) abort();
  while (at < from->sent_count &&
         (kdp_load_le32(from->sent[at].bytes) != KDP_WG_TRANSPORT || from->sent[at].size == KDP_WIREGUARD_OVERHEAD))
    at++;
  if (at == from->sent_count) abort();
  return &from->sent[at];
}

kdp_status side_lane_receive_from(side_lane *l, node *from, uint32_t payload, kdp_now now) {
  kdp_path path = node_path(l->of, from);
  const kept_datagram *data = sealed_data(from, l->of, payload, now);
  return side_lane_receive(l, data->bytes, data->size, &path, now);
}

uint32_t side_lane_pass_on(side_lane *l, kdp_now now) {
  uint32_t packets = 0;
  for (uint32_t i = 0; i < l->out->action_count; i++) {
    const kdp_action *action = &l->out->action[i];
    if (action->kind != KDP_ACTION_HANDOFF) abort();
    if (action->packet.size == 0) {
      node_tick(l->of, now);
      continue;
    }
    packets++;
    if (action->from_inside)
      (void)node_send(l->of, action->packet.data, action->packet.size, now);
    else
      (void)node_receive(l->of, action->packet.data, action->packet.size, &action->path, now);
  }
  side_lane_drain(l);
  return packets;
}

void side_lane_drain(side_lane *l) {
  kdp_batch_release(&l->out->wire, l->pool);
  kdp_batch_release(&l->out->inside, l->pool);
  for (uint32_t i = 0; i < l->out->action_count; i++)
    kdp_pool_release(l->pool, l->out->action[i].packet.slot);
  l->out->action_count = 0;
}

uint32_t side_lane_wakes(const side_lane *l) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < l->out->action_count; i++)
    count += l->out->action[i].packet.size == 0;
  return count;
}

lane_pair lane_pair_make(void) {
  static const kdp_limits three_lanes = {.lanes = 3};
  lane_pair p = {.a = node_make(1, NULL, &three_lanes), .b = node_make(2, NULL, NULL), .now = node_time(1000)};
  node_connect(p.a, p.b, p.now);
  p.l = side_lane_make(p.a, 1);
  return p;
}

void lane_pair_free(lane_pair *p) {
  side_lane_free(p->l);
  node_free(p->a);
  node_free(p->b);
}
