#include "wireguard/device.h"

kdp_now kdp_wg_clamp(kdp_wg_device *device, kdp_now now) {
  if (now.boot < device->lane.newest_boot) now.boot = device->lane.newest_boot;
  if (now.boot == 0) now.boot = 1;
  device->lane.newest_boot = now.boot;
  return now;
}

void kdp_wg_call_begin(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  device->call++;
  device->budget = device->limits.handshakes_per_call;
  if (now.boot >= kdp_wg_heap_first(&device->heap)) kdp_wg_timers_run(device, out, now);
  if (device->load_until != 0 && now.boot >= device->load_until) {
    device->load_until = 0;
    kdp_wg_tell_simple(device, KDP_EVENT_UNDER_LOAD, NULL, KDP_OK, 0, now);
  }
}

void kdp_wg_call_end(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  device->out_blocked = false;
  device->pool_retry = 0;
  if (device->work[0].first || device->work[1].first) kdp_wg_work_run(device, out, now);
}

kdp_event *kdp_wg_event(kdp_event *event, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_now now) {
  memset(event, 0, sizeof *event);
  event->kind = kind;
  event->boot = now.boot;
  event->peer = peer ? peer->number : 0;
  return event;
}

void kdp_wg_tell(kdp_wg_device *device, const kdp_event *event) {
  if (!kdp_event_queue_push(&device->events, event)) kdp_wg_count(device, KDP_EVENTS_LOST, 1);
}

void kdp_wg_tell_simple(kdp_wg_device *device, kdp_event_kind kind, const kdp_wg_peer *peer, kdp_status status,
                        uint64_t value, kdp_now now) {
  kdp_event event;
  kdp_wg_event(&event, kind, peer, now);
  event.status = status;
  event.value = value;
  kdp_wg_tell(device, &event);
}

bool kdp_wg_push_action(kdp_out *out, kdp_action_kind kind, const kdp_wg_peer *peer) {
  if (out->action_count >= out->action_capacity) return false;
  out->action[out->action_count++] = (kdp_action){.kind = kind,
                                                  .wire_count = out->wire.count,
                                                  .peer = peer->number,
                                                  .path = peer->path,
                                                  .packet.slot = KDP_NO_SLOT};
  return true;
}

bool kdp_wg_path_index(kdp_wg_device *device, kdp_wg_peer *peer, kdp_out *out, uint16_t *index) {
  if (peer->path_call != device->call) {
    uint16_t fresh = kdp_batch_path(&out->wire, &peer->path);
    if (fresh == UINT16_MAX) return false;
    peer->path_index = fresh;
    peer->path_call = device->call;
  }
  *index = peer->path_index;
  return true;
}
