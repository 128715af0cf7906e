/* The worker's loop: rounds of commands, inside to wire, wire to inside, timers and events, each run to completion. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "io/worker_state.h"
#include "offload/order.h"
#include "offload/split.h"

/* Packets that one round takes from the inside before they go on: enough for the cipher's batches, few enough to stay
   in the caches. */
enum { INSIDE_TARGET = 64 };

/* Shows the engine what is in `batch`; what it does not take stays. */
static void push(kdp_worker *worker, kdp_batch *batch, uint32_t (*call)(kdp_lane *, kdp_batch *, kdp_out *, kdp_now)) {
  kdp_batch view = *batch;
  bool stuck = false;
  while (view.count > 0) {
    uint32_t taken = call(worker->lane, &view, worker->out, worker->now);
    view.packet += taken;
    view.count -= taken;
    kdp_output_flush(worker);
    if (taken > 0) {
      stuck = false;
      continue;
    }
    if (!kdp_worker_has_wire_room(worker) || worker->inside_flow == KDP_FLOW_BLOCKED) break;
    if (stuck) { /* all output is drained and still it takes nothing: it must not stop the rest */
      kdp_count(&worker->count.status[KDP_POOL_EMPTY], 1);
      kdp_pool_release(worker->pool, view.packet->slot);
      view.packet++;
      view.count--;
    }
    stuck = !stuck;
  }
  if (view.count > 0 && view.packet != batch->packet)
    memmove(batch->packet, view.packet, view.count * sizeof *view.packet);
  batch->count = view.count;
  if (batch->count == 0) batch->path_count = 0;
}

/* ---- Inside to wire ---- */

static void split(kdp_worker *worker, bool *full) {
  kdp_virtio header = {0};
  const uint8_t *bytes = worker->frame;
  uint32_t size = worker->frame_size;
  kdp_status status = KDP_TOO_SHORT;
  if (worker->tun.vnet_header && size >= KDP_VIRTIO_SIZE) {
    memcpy(&header, bytes, KDP_VIRTIO_SIZE);
    bytes += KDP_VIRTIO_SIZE;
    size -= KDP_VIRTIO_SIZE;
    status = KDP_OK;
  } else if (!worker->tun.vnet_header) {
    status = KDP_OK;
  }
  if (status == KDP_OK)
    status = kdp_split_copy(&header, bytes, size, kdp_engine_room(worker->engine, NULL), worker->pool, &worker->inside);
  bool retry = status == KDP_OUT_FULL || status == KDP_POOL_EMPTY;
  bool others_hold_slots = worker->inside.count > 0 || worker->outside.count > 0 || worker->received_count > 0 ||
                           worker->out->wire.count > 0 || worker->out->inside.count > 0;
  if (retry && others_hold_slots) {
    *full = true; /* there will be room */
    return;
  }
  worker->frame_size = 0;
  if (status != KDP_OK) kdp_count(&worker->count.status[status], 1);
}

static void take_inside(kdp_worker *worker) {
  bool full = false;
  while (!full && worker->inside.count < INSIDE_TARGET) {
    if (worker->frame_size == 0) {
      if (!worker->reads_inside) break; /* what there is was handed over */
      ssize_t size = worker->backend->read(worker, &worker->frame);
      if (size <= 0) {
        if (size < 0) worker->gone = errno != ENOMEM && errno != ENOBUFS; /* what else a TUN says, it says for good */
        break;
      }
      kdp_count(&worker->count.tun_reads, 1);
      worker->frames_read++;
      worker->frame_size = (uint32_t)size;
    }
    split(worker, &full);
  }
  kdp_order_flows(&worker->inside);
  push(worker, &worker->inside, kdp_engine_inside);
}

/* ---- Wire to inside ---- */

static void cut(kdp_worker *worker) {
  while (worker->received_first < worker->received_count) {
    kdp_received *received = &worker->received[worker->received_first];
    bool too_many = kdp_received_count(received) > worker->outside.capacity;
    if (received->truncated || too_many) {
      kdp_count(&worker->count.status[received->truncated ? KDP_TRUNCATED : KDP_TOO_LONG], 1);
      kdp_pool_release(worker->pool, received->slot);
    } else if (!kdp_received_cut(received, worker->pool, &worker->outside)) {
      return;
    } else if (kdp_received_count(received) > 1) {
      kdp_count(&worker->count.joined_reads, 1);
    }
    worker->received_first++;
  }
  worker->received_first = worker->received_count = 0;
}

static void push_outside(kdp_worker *worker) {
  push(worker, &worker->outside, kdp_engine_outside);
  worker->outside_waits = worker->outside.count > 0 && !kdp_worker_has_wire_room(worker);
}

static void take_outside(kdp_worker *worker) {
  for (uint32_t socket = 0; socket < KDP_UDP_SOCKETS; socket++) {
    if (!(worker->ready & (socket == KDP_UDP_IPV4 ? KDP_READY_IPV4 : KDP_READY_IPV6))) continue;
    if (worker->received_count > 0) break;
    worker->received_count = worker->backend->receive(worker, socket, worker->received, KDP_RECEIVES);
    kdp_count(&worker->count.udp_reads, worker->received_count);
    do {
      cut(worker);
      push_outside(worker);
    } while (worker->received_count > 0 && worker->outside.count == 0);
  }
}

/* ---- The rest of a round ---- */

static void run_commands(kdp_worker *worker) {
  for (int i = 0; i < KDP_COMMANDS_PER_ROUND; i++) {
    kdp_command *command = kdp_command_queue_take(&worker->commands);
    if (!command) return;
    command->run(command, worker, worker->engine, worker->out, worker->now, false);
    kdp_output_flush(worker);
  }
}

static void forward_events(kdp_worker *worker) {
  kdp_event event;
  while (kdp_event_channel_room(&worker->events) > 0 && kdp_engine_next_event(worker->engine, &event)) {
    kdp_event_channel_push(&worker->events, &event);
    worker->events_pushed = true;
  }
  if (worker->events_pushed) {
    worker->events_pushed = false;
    kdp_event_channel_notify(&worker->events);
  }
}

/* Asks again for the MTU of routes that once refused a segmented send. */
static void recheck_routes(kdp_worker *worker) {
  kdp_route_table *table = &worker->routes;
  for (uint32_t i = 0; i < table->count;) {
    kdp_route *route = &table->route[i];
    if (route->recheck > worker->now.boot) {
      i++;
      continue;
    }
    kdp_path path = route->path; /* the entry may go with the answer */
    kdp_worker_learn_mtu(worker, &path);
  }
}

static uint64_t sooner(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t next_deadline(const kdp_worker *worker) {
  uint64_t deadline = kdp_engine_deadline(worker->lane);
  /* The engine was called at its deadline: what it still has to say waits for room on the wire. */
  if (!kdp_worker_has_wire_room(worker) && deadline <= worker->now.boot) deadline = KDP_NEVER;
  if (worker->wire_flow == KDP_FLOW_BLOCKED) deadline = sooner(deadline, worker->wire_retry);
  if (worker->inside_flow == KDP_FLOW_BLOCKED) deadline = sooner(deadline, worker->inside_retry);
  if (worker->routes.count) deadline = sooner(deadline, kdp_route_deadline(&worker->routes));
  if (kdp_worker_has_lost_sockets(worker)) deadline = sooner(deadline, worker->rebind_after);
  return deadline;
}

static void unblock(kdp_worker *worker) {
  bool flush = false;
  if (worker->ready & KDP_READY_WIRE_ROOM) {
    worker->socket_full[KDP_UDP_IPV4] = worker->socket_full[KDP_UDP_IPV6] = false;
    flush = true;
  }
  if (worker->wire_flow == KDP_FLOW_BLOCKED && worker->wire_retry <= worker->now.boot) {
    worker->wire_flow = KDP_FLOW_OPEN;
    flush = true;
  }
  if (flush) worker->outside_waits = false; /* though what comes from the inside may block the wire again, first */
  if (worker->inside_flow == KDP_FLOW_BLOCKED &&
      ((worker->ready & KDP_READY_INSIDE_ROOM) || worker->inside_retry <= worker->now.boot)) {
    worker->inside_flow = KDP_FLOW_OPEN;
    flush = true;
  }
  if (flush) kdp_output_flush(worker);
}

static void give_way(kdp_worker *worker) {
  uint32_t frames = worker->frames_read;
  worker->frames_read = 0;
  if (frames < KDP_GIVE_WAY_FRAMES) return;
  uint64_t before = kdp_now_read().boot;
  if (!kdp_give_way_due(&worker->give_way, frames, before - worker->now.boot)) return;
  sched_yield();
  kdp_give_way_took(&worker->give_way, kdp_now_read().boot - before);
}

static void run_round(kdp_worker *worker) {
  worker->now = kdp_now_read();
  run_commands(worker);
  if (kdp_worker_has_lost_sockets(worker)) (void)kdp_worker_bind_anew(worker, EBADF);
  unblock(worker);
  kdp_group_take(worker);
  /* What confirms a session comes before what is to be sent by it. */
  if (worker->group.count > 0 && worker->outside.count > 0 && kdp_worker_may_take_outside(worker)) push_outside(worker);
  bool leftover_inside = worker->inside.count > 0 || worker->frame_size > 0;
  if (kdp_worker_may_take_inside(worker) && (leftover_inside || (worker->ready & KDP_READY_INSIDE)))
    take_inside(worker);
  bool leftover_outside = worker->outside.count > 0 || worker->received_count > 0;
  if (kdp_worker_may_take_outside(worker) &&
      (leftover_outside || (worker->ready & (KDP_READY_IPV4 | KDP_READY_IPV6)))) {
    if (leftover_outside) {
      cut(worker);
      push_outside(worker);
    }
    if (worker->outside.count == 0 && worker->received_count == 0) take_outside(worker);
  }
  if (kdp_engine_deadline(worker->lane) <= worker->now.boot) {
    kdp_engine_tick(worker->lane, worker->out, worker->now);
    kdp_output_flush(worker);
  }
  if (worker->routes.count && kdp_route_deadline(&worker->routes) <= worker->now.boot) recheck_routes(worker);
  give_way(worker);
  kdp_lane_quiescent(worker->lane, worker->now);
  if (kdp_worker_is_first(worker)) {
    forward_events(worker);
  } else {
    kdp_group_tell(worker);
  }
  kdp_count(&worker->count.rounds, 1);
}

/* Is there work at hand that no descriptor will tell of? */
static bool has_more(kdp_worker *worker) {
  if (kdp_worker_may_take_inside(worker) && (worker->inside.count > 0 || worker->frame_size > 0)) return true;
  if (kdp_worker_may_take_outside(worker) && (worker->outside.count > 0 || worker->received_count > 0)) return true;
  if (kdp_group_has_more(worker)) return true;
  /* A wake-up may have been taken for commands that a full round left behind. */
  return kdp_command_queue_has_more(&worker->commands);
}

static void begin(kdp_worker *worker) {
  kdp_path path = {.link = worker->link};
  kdp_engine_link_up(worker->lane, worker->link, KDP_LINK_DATAGRAM, &path, worker->out, worker->now);
  kdp_output_flush(worker);
}

static void end(kdp_worker *worker) {
  if (worker->gone) kdp_worker_event(worker, KDP_EVENT_INSIDE_GONE, KDP_CLOSED, 0, NULL);
  forward_events(worker);
}

kdp_status kdp_loop_run(kdp_worker *worker) {
  worker->now = kdp_now_read();
  if (kdp_worker_is_first(worker)) begin(worker);
  while (!atomic_load_explicit(&worker->stop, memory_order_acquire) && !worker->gone) {
    worker->backend->wait(worker, has_more(worker), next_deadline(worker));
    run_round(worker);
  }
  if (kdp_worker_is_first(worker)) end(worker);
  return worker->gone ? KDP_CLOSED : KDP_OK;
}
