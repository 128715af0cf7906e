#include "kdp/engine.h"

#include <string.h>

/* Boot time never goes back, whatever a host hands in. */
static kdp_now clamp(kdp_lane *lane, kdp_now now) {
  if (now.boot < lane->newest_boot) now.boot = lane->newest_boot;
  lane->newest_boot = now.boot;
  return now;
}

void kdp_engine_destroy(kdp_engine *engine) {
  if (engine) engine->ops->destroy(engine);
}

const char *kdp_engine_name(const kdp_engine *engine) {
  return engine->ops->name;
}

kdp_room kdp_engine_room(const kdp_engine *engine, const kdp_path *path) {
  return engine->ops->room(engine, path);
}

kdp_lane *kdp_engine_lane(kdp_engine *engine, uint32_t index) {
  return engine->ops->lane(engine, index);
}

uint32_t kdp_engine_inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  return in->count ? lane->engine->ops->inside(lane, in, out, clamp(lane, now)) : 0;
}

uint32_t kdp_engine_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  return in->count ? lane->engine->ops->outside(lane, in, out, clamp(lane, now)) : 0;
}

size_t kdp_engine_stream(kdp_lane *lane, kdp_link link, kdp_packet *in, kdp_out *out, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  return ops->stream && in->size ? ops->stream(lane, link, in, out, clamp(lane, now)) : 0;
}

void kdp_engine_link_up(kdp_lane *lane, kdp_link link, kdp_link_kind kind, const kdp_path *path, kdp_out *out,
                        kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->link_up) ops->link_up(lane, link, kind, path, out, clamp(lane, now));
}

void kdp_engine_link_room(kdp_lane *lane, kdp_link link, size_t bytes, kdp_out *out, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->link_room) ops->link_room(lane, link, bytes, out, clamp(lane, now));
}

void kdp_engine_link_down(kdp_lane *lane, kdp_link link, int error, kdp_out *out, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->link_down) ops->link_down(lane, link, error, out, clamp(lane, now));
}

void kdp_engine_path_mtu(kdp_lane *lane, const kdp_path *path, uint16_t bytes, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->path_mtu) ops->path_mtu(lane, path, bytes, clamp(lane, now));
}

void kdp_engine_network_changed(kdp_lane *lane, kdp_out *out, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->network_changed) ops->network_changed(lane, out, clamp(lane, now));
}

void kdp_engine_set_inside_mtu(kdp_engine *engine, uint16_t bytes) {
  if (engine->ops->set_inside_mtu) engine->ops->set_inside_mtu(engine, bytes);
}

uint64_t kdp_engine_deadline(const kdp_lane *lane) {
  return lane->engine->ops->deadline(lane);
}

void kdp_engine_tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  lane->engine->ops->tick(lane, out, clamp(lane, now));
}

void kdp_lane_quiescent(kdp_lane *lane, kdp_now now) {
  const kdp_engine_ops *ops = lane->engine->ops;
  if (ops->quiescent) ops->quiescent(lane, clamp(lane, now));
}

bool kdp_engine_next_event(kdp_engine *engine, kdp_event *event) {
  return engine->ops->next_event(engine, event);
}

kdp_status kdp_engine_read(kdp_engine *engine, kdp_ticket ticket, void *bytes, size_t *size) {
  return engine->ops->read ? engine->ops->read(engine, ticket, bytes, size) : KDP_NOT_FOUND;
}

kdp_status kdp_engine_answer(kdp_engine *engine, kdp_ticket ticket, kdp_answer answer, const void *bytes, size_t size,
                             kdp_out *out, kdp_now now) {
  return engine->ops->answer ? engine->ops->answer(engine, ticket, answer, bytes, size, out, now) : KDP_NOT_FOUND;
}

void kdp_engine_statistics(const kdp_engine *engine, kdp_statistics *statistics) {
  memset(statistics, 0, sizeof *statistics);
  engine->ops->statistics(engine, statistics);
}
