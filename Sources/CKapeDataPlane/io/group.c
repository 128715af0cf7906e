#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/group.h"

#include <errno.h>
#include <string.h>

#include "io/worker_state.h"

/* ---- The first's ---- */

kdp_status kdp_group_start(kdp_worker *first) {
  kdp_group *group = &first->group;
  if (group->running) return KDP_OK;
  group->running = true;
  for (uint32_t i = 0; i < group->count; i++) {
    kdp_status status = kdp_worker_start(group->other[i]);
    if (status == KDP_OK) continue;
    int error = errno;
    kdp_group_stop(first);
    errno = error;
    return status;
  }
  return KDP_OK;
}

void kdp_group_stop(kdp_worker *first) {
  kdp_group *group = &first->group;
  for (uint32_t i = 0; i < group->count; i++)
    kdp_worker_stop(group->other[i]);
  for (uint32_t i = 0; i < group->count; i++)
    (void)kdp_worker_join(group->other[i]);
  group->running = false;
}

static void run_call(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)engine, (void)out, (void)now;
  kdp_membership *me = command->context;
  if (!stopping) me->function(worker); /* what belongs to a thread that ends is let go with it */
  sem_post(me->done);
}

void kdp_group_call(kdp_worker *first, void (*function)(kdp_worker *other)) {
  const kdp_group *group = &first->group;
  if (!group->running) {
    for (uint32_t i = 0; i < group->count; i++)
      function(group->other[i]);
    return;
  }
  sem_t done;
  sem_init(&done, 0, 0);
  for (uint32_t i = 0; i < group->count; i++) {
    kdp_membership *member = &group->other[i]->membership;
    member->command = (kdp_command){.run = run_call, .context = member};
    member->function = function;
    member->done = &done;
    kdp_worker_submit(group->other[i], &member->command);
  }
  for (uint32_t i = 0; i < group->count; i++)
    while (sem_wait(&done) != 0 && errno == EINTR)
      ;
  sem_destroy(&done);
}

static bool may_take(const kdp_worker *first, const kdp_handoff_record *record) {
  switch ((kdp_handoff_kind)record->kind) {
  case KDP_HANDOFF_INSIDE: return kdp_worker_may_take_inside(first);
  case KDP_HANDOFF_OUTSIDE: return kdp_worker_may_take_outside(first);
  case KDP_HANDOFF_PATH_MTU:
  case KDP_HANDOFF_EVENT: return true;
  }
  return true;
}

/* An offload that the kernel does not have is said once, by whoever meets it first. What was found out with sockets
   that have been replaced since is no news: the new ones try again. */
static void take_event(kdp_worker *first, const kdp_handoff_record *record) {
  kdp_event event;
  memcpy(&event, kdp_handoff_bytes(record), sizeof event);
  if (event.kind == KDP_EVENT_FALLBACK && event.address.family == KDP_FAMILY_NONE) {
    bool of_sockets = event.value & (KDP_FALLBACK_NO_UDP_SEGMENT | KDP_FALLBACK_NO_UDP_GRO);
    if (!of_sockets || record->sockets == first->sockets_taken)
      kdp_worker_fall_back(first, (uint32_t)event.value, NULL);
    return;
  }
  kdp_event_channel_push(&first->events, &event);
  first->events_pushed = true;
}

/* Puts a copy of the packet into a batch of the first's. */
static bool take_packet(kdp_worker *first, const kdp_handoff_record *record, kdp_batch *batch) {
  kdp_packet packet;
  uint16_t path = 0;
  if (kdp_batch_room(batch) == 0) return false;
  if (batch->path && (path = kdp_batch_path(batch, &record->path)) == UINT16_MAX) return false;
  kdp_room room = kdp_engine_room(first->engine, NULL);
  if (!kdp_pool_take_packet(first->pool, room.head, record->size, room.tail, &packet)) return false;
  memcpy(packet.data, kdp_handoff_bytes(record), record->size);
  packet.path = path;
  packet.ecn = record->ecn;
  return kdp_batch_push(batch, &packet);
}

static bool take_record(kdp_worker *first, const kdp_handoff_record *record) {
  switch ((kdp_handoff_kind)record->kind) {
  case KDP_HANDOFF_INSIDE: return take_packet(first, record, &first->inside);
  case KDP_HANDOFF_OUTSIDE: return take_packet(first, record, &first->outside);
  case KDP_HANDOFF_PATH_MTU: {
    uint16_t mtu;
    memcpy(&mtu, kdp_handoff_bytes(record), sizeof mtu);
    kdp_engine_path_mtu(first->lane, &record->path, mtu, first->now);
    return true;
  }
  case KDP_HANDOFF_EVENT: take_event(first, record); return true;
  }
  return true;
}

void kdp_group_listen(kdp_worker *first) {
  for (uint32_t i = 0; i < first->group.count; i++)
    kdp_handoff_listen(first->group.other[i]->membership.handoff);
}

void kdp_group_take(kdp_worker *first) {
  for (uint32_t i = 0; i < first->group.count; i++) {
    kdp_membership *member = &first->group.other[i]->membership;
    const kdp_handoff_record *record;
    while ((record = kdp_handoff_peek(member->handoff)) && may_take(first, record) && take_record(first, record))
      kdp_handoff_pop(member->handoff);
    int error = atomic_exchange_explicit(&member->socket_error, 0, memory_order_relaxed);
    if (error) (void)kdp_worker_bind_anew(first, error);
    if (atomic_load_explicit(&member->ended, memory_order_relaxed)) first->gone = true;
  }
}

bool kdp_group_has_more(const kdp_worker *first) {
  for (uint32_t i = 0; i < first->group.count; i++) {
    kdp_membership *member = &first->group.other[i]->membership;
    const kdp_handoff_record *record = kdp_handoff_peek(member->handoff);
    if (record && may_take(first, record)) return true;
    if (atomic_load_explicit(&member->socket_error, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&member->ended, memory_order_relaxed))
      return true;
  }
  return false;
}

/* ---- The others' ---- */

static void hand(kdp_worker *other, const kdp_handoff_record *record, const void *bytes) {
  other->membership.handed = true;
  if (!kdp_handoff_push(other->membership.handoff, record, bytes))
    kdp_count(&other->count.status[KDP_HANDOVER_FULL], 1);
}

void kdp_group_hand_packet(kdp_worker *other, const kdp_action *action) {
  const kdp_packet *packet = &action->packet;
  other->membership.handed = true;
  if (packet->size == 0) return;
  kdp_handoff_record record = {.size = packet->size,
                               .kind = action->from_inside ? KDP_HANDOFF_INSIDE : KDP_HANDOFF_OUTSIDE,
                               .ecn = packet->ecn,
                               .path = action->path};
  hand(other, &record, packet->data);
  kdp_pool_release(other->pool, packet->slot);
}

void kdp_group_hand_path_mtu(kdp_worker *other, const kdp_path *path, uint16_t mtu) {
  hand(other, &(kdp_handoff_record){.size = sizeof mtu, .kind = KDP_HANDOFF_PATH_MTU, .path = *path}, &mtu);
}

void kdp_group_hand_event(kdp_worker *other, const kdp_event *event) {
  kdp_handoff_record record = {.size = sizeof *event, .kind = KDP_HANDOFF_EVENT, .sockets = other->sockets_taken};
  hand(other, &record, event);
}

void kdp_group_hand_socket_error(kdp_worker *other, int error) {
  atomic_store_explicit(&other->membership.socket_error, error, memory_order_relaxed);
  other->membership.handed = true;
}

static void wake_first(kdp_worker *other) {
  if (kdp_handoff_tell(other->membership.handoff)) kdp_worker_wake(other->membership.first);
}

void kdp_group_tell(kdp_worker *other) {
  if (!other->membership.handed) return;
  other->membership.handed = false;
  wake_first(other);
}

void kdp_group_end(kdp_worker *other) {
  if (atomic_load_explicit(&other->stop, memory_order_relaxed)) return;
  atomic_store_explicit(&other->membership.ended, true, memory_order_relaxed);
  wake_first(other);
}
