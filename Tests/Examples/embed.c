/* A WireGuard tunnel in a program that has packets and sockets of its own (embed_host is that program). */
#include "embed.h"

kdp_status embed(embed_host *my, const kdp_wireguard_change *peers) {
  kdp_host host = kdp_host_default();
  kdp_wireguard_config config = {0};
  kdp_limits limits = {0};
  kdp_pool *pool = NULL;
  kdp_out_storage *storage = NULL;
  kdp_engine *engine = NULL;
  kdp_status status = kdp_pool_create(16, &host, &pool);
  if (!status) status = kdp_out_create(pool, &host, &storage);
  if (!status) status = kdp_wireguard_create(&config, &limits, &host, my->now(my), &engine);
  if (!status) status = kdp_wireguard_apply(engine, peers, kdp_out_of(storage), my->now(my));
  while (!status) {
    kdp_out *out = kdp_out_of(storage);
    kdp_lane *lane = kdp_engine_lane(engine, 0);
    for (kdp_packet *p = out->wire.packet; p < out->wire.packet + out->wire.count; p++)
      my->send(my, p, &out->wire.path[p->path]);
    for (kdp_packet *p = out->inside.packet; p < out->inside.packet + out->inside.count; p++)
      my->deliver(my, p);
    kdp_batch_release(&out->wire, pool);
    kdp_batch_release(&out->inside, pool);
    out->action_count = 0;
    kdp_lane_quiescent(lane, my->now(my));
    embed_event event = my->wait(my, kdp_engine_deadline(lane));
    kdp_batch in = {.packet = &(kdp_packet){0}, .capacity = 1, .path = &event.path, .path_count = 1};
    if (event.kind == EMBED_STOP) break;
    if (event.kind == EMBED_DEADLINE)
      kdp_engine_tick(lane, out, my->now(my));
    else if (!kdp_batch_copy_in(&in, pool, kdp_engine_room(engine, NULL), &event.bytes, 1))
      continue;
    else if (event.kind == EMBED_PACKET)
      in.count -= kdp_engine_inside(lane, &in, out, my->now(my)); /* sealed */
    else
      in.count -= kdp_engine_outside(lane, &in, out, my->now(my)); /* opened */
  }
  kdp_engine_destroy(engine);
  kdp_out_destroy(storage);
  kdp_pool_destroy(pool);
  return status;
}
