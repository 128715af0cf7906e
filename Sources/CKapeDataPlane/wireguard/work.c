/* What peers wait for: initiations and flushes, each in a list in order of arrival. They are worked off at the end of
   every call as far as the budget of asymmetric operations, the room in `out` and the pool go; the rest makes the
   deadline `now`. An initiation that must wait does not hold up a flush. */
#include "wireguard/device.h"

enum { INITIATIONS = 0, FLUSHES = 1 };

static int list_of(enum kdp_wg_work work) {
  return work == KDP_WG_WORK_INITIATE ? INITIATIONS : FLUSHES;
}

void kdp_wg_work_add(kdp_wg_device *device, kdp_wg_peer *peer, enum kdp_wg_work work) {
  if (peer->work & work) return;
  int which = list_of(work);
  kdp_wg_work_list *list = &device->work[which];
  kdp_wg_link *link = &peer->work_link[which];
  peer->work |= (uint8_t)work;
  link->before = list->last;
  link->after = NULL;
  if (list->last)
    list->last->work_link[which].after = peer;
  else
    list->first = peer;
  list->last = peer;
}

void kdp_wg_work_remove(kdp_wg_device *device, kdp_wg_peer *peer, enum kdp_wg_work work) {
  if (!(peer->work & work)) return;
  int which = list_of(work);
  kdp_wg_work_list *list = &device->work[which];
  kdp_wg_link *link = &peer->work_link[which];
  peer->work &= (uint8_t)~work;
  if (link->before)
    link->before->work_link[which].after = link->after;
  else
    list->first = link->after;
  if (link->after)
    link->after->work_link[which].before = link->before;
  else
    list->last = link->before;
}

void kdp_wg_owe_keepalive(kdp_wg_device *device, kdp_wg_peer *peer) {
  peer->keepalive_owed = true;
  kdp_wg_work_add(device, peer, KDP_WG_WORK_FLUSH);
}

/* False: what comes behind has to wait as well. */
static bool done(kdp_wg_device *device, kdp_status status, kdp_now now) {
  if (status == KDP_OUT_FULL) device->out_blocked = true;
  if (status == KDP_POOL_EMPTY) {
    kdp_wg_count(device, status, 1);
    device->pool_retry = now.boot + KDP_WG_POOL_RETRY;
  }
  return status != KDP_OUT_FULL && status != KDP_POOL_EMPTY;
}

void kdp_wg_work_run(kdp_wg_device *device, kdp_out *out, kdp_now now) {
  for (kdp_wg_peer *peer; (peer = device->work[FLUSHES].first);) {
    if (!done(device, kdp_wg_flush(device, peer, out, now), now)) break;
    kdp_wg_work_remove(device, peer, KDP_WG_WORK_FLUSH);
  }
  for (kdp_wg_peer *peer; (peer = device->work[INITIATIONS].first);) {
    if (device->budget == 0) {
      device->out_blocked = true;
      break;
    }
    if (!done(device, kdp_wg_send_initiation(device, peer, out, now), now)) break;
    kdp_wg_work_remove(device, peer, KDP_WG_WORK_INITIATE);
  }
}
