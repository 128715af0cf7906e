#include "wireguard/device.h"

kdp_now kdp_wg_clamp(kdp_wg_device *device, kdp_now now) {
  if (now.boot < device->lane[0].base.newest_boot) now.boot = device->lane[0].base.newest_boot;
  if (now.boot == 0) now.boot = 1;
  device->lane[0].base.newest_boot = now.boot;
  return now;
}

void kdp_wg_call_begin(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  device->lane[0].call++;
  device->budget = device->limits.handshakes_per_call;
  if (kdp_wg_notes_wait(device)) kdp_wg_notes_collect(device, out, now);
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

kdp_now kdp_wg_begin(kdp_wg_lane *lane, kdp_out *out, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  if (kdp_wg_is_lane_0(lane)) {
    now = kdp_wg_clamp(device, now);
    kdp_wg_call_begin(device, out, now);
    return now;
  }
  kdp_lane_enter(&device->gate, &device->gate.door[lane->base.index]);
  lane->call++;
  /* Lane 0 may have read its clock later than this lane: no session is from the future. */
  if (now.boot < device->newest_birth) now.boot = device->newest_birth;
  return now;
}

void kdp_wg_end(kdp_wg_lane *lane, kdp_out *out, kdp_now now) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  if (kdp_wg_is_lane_0(lane)) {
    kdp_wg_call_end(device, out, now);
    return;
  }
  kdp_lane_leave(&device->gate.door[lane->base.index]);
  if (lane->wake) kdp_wg_wake_lane_0(lane, out);
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

bool kdp_wg_path_index(kdp_wg_lane *lane, kdp_wg_peer *peer, kdp_out *out, uint16_t *index) {
  if (!kdp_wg_is_lane_0(lane)) {
    kdp_wg_path_place *place = &lane->place[peer->number % KDP_BATCH_PATHS];
    if (place->peer != peer || place->call != lane->call) {
      uint16_t fresh = kdp_batch_path(&out->wire, &peer->path);
      if (fresh == UINT16_MAX) return false;
      *place = (kdp_wg_path_place){.peer = peer, .call = lane->call, .index = fresh};
    }
    *index = place->index;
    return true;
  }
  if (peer->path_call != lane->call) {
    uint16_t fresh = kdp_batch_path(&out->wire, &peer->path);
    if (fresh == UINT16_MAX) return false;
    peer->path_index = fresh;
    peer->path_call = lane->call;
  }
  *index = peer->path_index;
  return true;
}

kdp_status kdp_wg_hand_over(kdp_packet *packet, const kdp_path *path, kdp_out *out) {
  if (out->action_capacity == 0) return KDP_HANDOVER_FULL;
  if (out->action_count >= out->action_capacity) return KDP_AGAIN;
  kdp_action *action = &out->action[out->action_count++];
  *action = (kdp_action){.kind = KDP_ACTION_HANDOFF, .from_inside = !path, .packet = *packet};
  if (path) action->path = *path;
  return KDP_HANDED_OVER;
}

void kdp_wg_wake_lane_0(kdp_wg_lane *lane, kdp_out *out) {
  kdp_wg_device *device = kdp_wg_device_of_lane(&lane->base);
  if (out->action_count >= out->action_capacity) return;
  lane->wake = false;
  if (atomic_exchange(&device->noted.attention, 1)) return; /* another lane has told it */
  out->action[out->action_count++] = (kdp_action){.kind = KDP_ACTION_HANDOFF, .packet.slot = KDP_NO_SLOT};
}

void kdp_wg_clear_source(kdp_wg_device *device, kdp_wg_peer *peer) {
  peer->path_call = 0;
  if (peer->path.ifindex == 0 && peer->path.local.family == KDP_FAMILY_NONE) return;
  kdp_wg_change_begin(device);
  peer->path.ifindex = 0;
  peer->path.local = (kdp_address){0};
  kdp_wg_change_end(device);
}
