/* Output of a round: sends, TUN writes and actions, with all that can go wrong with them. Every failure either drops
   packets, counted, or changes something (an offload, a source address, a socket) and tries the same packets again. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>

#include "io/worker_state.h"

enum { UDP_HEADER = 8, IPV4_HEADER = 20, IPV6_HEADER = 40 };
/* Destinations in a row that refuse a segmented send, none between them that takes one: then it is not their matter. */
enum { SEGMENT_REFUSALS = 3 };
#define RETRY_DELAY (1 * KDP_MILLISECOND)
#define BAD_SOURCE_TIME (10 * KDP_SECOND)

static void count_status(kdp_worker *worker, kdp_status status, uint32_t packets) {
  kdp_count(&worker->count.status[status], packets);
}

/* ---- Sends ---- */

static bool is_bad_source(const kdp_worker *worker, const kdp_path *path) {
  for (int i = 0; i < KDP_BAD_SOURCES; i++) {
    const kdp_bad_source *bad = &worker->bad_source[i];
    if (bad->until > worker->now.boot && bad->ifindex == path->ifindex && kdp_address_equal(&bad->local, &path->local))
      return true;
  }
  return false;
}

static void clear_source(kdp_path *path) {
  path->local = (kdp_address){0};
  path->ifindex = 0;
}

static void clear_bad_sources(kdp_worker *worker, kdp_batch *wire) {
  for (int i = 0; i < KDP_BAD_SOURCES; i++) {
    if (worker->bad_source[i].until <= worker->now.boot) continue;
    for (uint32_t path = 0; path < wire->path_count; path++)
      if (is_bad_source(worker, &wire->path[path])) clear_source(&wire->path[path]);
    return;
  }
}

/* What the current run of attempts has changed, so that it can be taken back when it did not help. */
typedef struct attempt {
  bool cleared;
  uint16_t path;
  kdp_path before;
} attempt;

static void try_without_source(kdp_worker *worker, uint16_t index, attempt *last) {
  kdp_path *path = &worker->out->wire.path[index];
  *last = (attempt){true, index, *path};
  worker->bad_source[worker->bad_source_next] =
      (kdp_bad_source){path->local, path->ifindex, worker->now.boot + BAD_SOURCE_TIME};
  worker->bad_source_next = (worker->bad_source_next + 1) % KDP_BAD_SOURCES;
  clear_source(path);
}

static void source_was_right(kdp_worker *worker, attempt *last) {
  worker->bad_source_next = (worker->bad_source_next + KDP_BAD_SOURCES - 1) % KDP_BAD_SOURCES;
  worker->bad_source[worker->bad_source_next].until = 0;
  worker->out->wire.path[last->path] = last->before;
  last->cleared = false;
}

static uint32_t with_headers(const kdp_path *path, uint32_t size) {
  return size + UDP_HEADER + (path->remote.family == KDP_FAMILY_IPV6 ? IPV6_HEADER : IPV4_HEADER);
}

uint16_t kdp_worker_learn_mtu(kdp_worker *worker, const kdp_path *path) {
  uint16_t mtu = kdp_route_ask_mtu(path, worker->udp_options.fwmark);
  kdp_route_learn(&worker->routes, &path->remote, mtu, worker->now.boot);
  if (kdp_worker_is_first(worker)) {
    kdp_engine_path_mtu(worker->lane, path, mtu, worker->now);
  } else {
    kdp_group_hand_path_mtu(worker, path, mtu);
  }
  return mtu;
}

/* Datagrams of `size` bytes to this destination leave unsegmented from now on: they have to be fragmented. */
static void leave_unsegmented(kdp_worker *worker, const kdp_path *path, uint16_t size, uint16_t mtu) {
  kdp_route_refuse(&worker->routes, path, size, mtu, worker->now.boot);
  kdp_worker_event(worker, KDP_EVENT_FALLBACK, KDP_SEND_TOO_BIG, KDP_FALLBACK_NO_UDP_SEGMENT, &path->remote);
}

/* No word of why. The way to this destination may be what cannot do it (an interface without checksums of its own, a
   policy of IPsec), or the socket. */
static void turn_segments_off(kdp_worker *worker, const kdp_send_item *item, const kdp_path *path, uint16_t mtu) {
  if (++worker->segment_refusals[item->socket] < SEGMENT_REFUSALS) {
    kdp_route_refuse_all(&worker->routes, path, mtu, worker->now.boot);
    kdp_worker_event(worker, KDP_EVENT_FALLBACK, KDP_UNSUPPORTED, KDP_FALLBACK_NO_UDP_SEGMENT, &path->remote);
    return;
  }
  worker->udp.segment[item->socket] = false;
  kdp_worker_fall_back(worker, KDP_FALLBACK_NO_UDP_SEGMENT, NULL);
}

/* Decides about a failed item. True: its packets are to be tried again (perhaps only when there is room). */
static bool keep_failed(kdp_worker *worker, const kdp_send_item *item, attempt *last) {
  const kdp_batch *wire = &worker->out->wire;
  const kdp_path path = wire->path[item->path];
  bool has_source = path.local.family != KDP_FAMILY_NONE || path.ifindex != 0;
  bool source_tried = last->cleared && last->path == item->path;
  kdp_status status = KDP_SEND_REFUSED;
  switch (item->error) {
  case EAGAIN: worker->socket_full[item->socket] = true; return true;
  case ENOBUFS:
  case ENOMEM:
    worker->wire_flow = KDP_FLOW_BLOCKED;
    worker->wire_retry = worker->now.boot + RETRY_DELAY;
    return true;
  case EMSGSIZE:
    if (item->segment) {
      leave_unsegmented(worker, &path, item->segment, kdp_worker_learn_mtu(worker, &path));
      return true;
    }
    (void)kdp_worker_learn_mtu(worker, &path);
    status = KDP_SEND_TOO_BIG;
    break;
  case EINVAL:
  case EIO: {
    if (item->error == EINVAL && has_source) {
      try_without_source(worker, item->path, last);
      return true;
    }
    if (source_tried) source_was_right(worker, last);
    if (!item->segment) break;
    uint16_t mtu = kdp_worker_learn_mtu(worker, &path);
    if (item->error == EINVAL && mtu != 0 && with_headers(&path, item->segment) > mtu) {
      /* Older kernels say this, too, of segments above the MTU. */
      leave_unsegmented(worker, &path, item->segment, mtu);
    } else if (item->error == EINVAL && item->count > KDP_SEND_SEGMENTS_OLD) {
      worker->segments_most = KDP_SEND_SEGMENTS_OLD;
    } else {
      turn_segments_off(worker, item, &path, mtu);
    }
    return true;
  }
  case EADDRNOTAVAIL:
  case ENODEV:
  case ENXIO:
    if (has_source) {
      try_without_source(worker, item->path, last);
      return true;
    }
    if (kdp_worker_bind_anew(worker, item->error)) return true;
    break;
  case EBADF:
  case ENOTSOCK:
    if (kdp_worker_bind_anew(worker, item->error)) return true;
    break;
  case ENETUNREACH:
  case EHOSTUNREACH:
    /* The interface that the peer was last heard on may have lost its routes. */
    if (path.ifindex != 0) {
      try_without_source(worker, item->path, last);
      return true;
    }
    break;
  default: break;
  }
  count_status(worker, status, item->count);
  return false;
}

/* Takes the packets that are done out of the front `limit` packets of the batch; returns how many are left of them. */
static uint32_t remove_done(kdp_worker *worker, kdp_batch *batch, uint32_t limit, const bool *done) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < limit; i++) {
    if (done[i]) {
      kdp_pool_release(worker->pool, batch->packet[i].slot);
    } else {
      batch->packet[kept++] = batch->packet[i];
    }
  }
  for (uint32_t i = limit; i < batch->count; i++)
    batch->packet[kept + i - limit] = batch->packet[i];
  batch->count -= limit - kept;
  if (batch->count == 0) batch->path_count = 0;
  return kept;
}

/* Accounts for the plan's results. Returns how many of the first `limit` packets are left. */
static uint32_t settle_sends(kdp_worker *worker, uint32_t limit, attempt *last) {
  kdp_batch *wire = &worker->out->wire;
  const kdp_send_plan *plan = worker->send;
  bool done[KDP_BATCH_CAPACITY] = {false};
  uint32_t sent = 0, segmented = 0, finished = 0;
  for (uint32_t i = 0; i < plan->item_count; i++) {
    const kdp_send_item *item = &plan->item[i];
    if (item->error == KDP_SEND_NOT_TRIED) continue;
    if (item->error == 0) {
      sent++;
      if (item->segment) {
        segmented++;
        worker->segment_refusals[item->socket] = 0;
      }
    } else if (keep_failed(worker, item, last)) {
      continue;
    }
    finished += item->count;
    for (uint32_t j = 0; j < item->count; j++)
      done[plan->order[item->first + j]] = true;
  }
  kdp_count(&worker->count.udp_sends, sent);
  kdp_count(&worker->count.segmented_sends, segmented);
  if (finished == wire->count && limit == wire->count && sent == plan->item_count) {
    kdp_batch_release(wire, worker->pool);
    return 0;
  }
  return remove_done(worker, wire, limit, done);
}

/* The front of the wire batch has become shorter: actions stand closer to it. */
static void move_actions(kdp_out *out, uint32_t removed) {
  for (uint32_t i = 0; i < out->action_count; i++)
    out->action[i].wire_count = out->action[i].wire_count > removed ? out->action[i].wire_count - removed : 0;
}

static void plan_sends(kdp_worker *worker, uint32_t limit) {
  clear_bad_sources(worker, &worker->out->wire);
  kdp_send_rules rules = {.segments_most = worker->segments_most, .routes = &worker->routes};
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    rules.usable[i] = worker->udp.fd[i] >= 0;
    rules.segment[i] = worker->udp.segment[i];
    rules.full[i] = worker->socket_full[i];
  }
  kdp_send_plan_make(worker->send, &worker->out->wire, limit, &rules);
}

/* ---- Actions ---- */

static void rebind(kdp_worker *worker) {
  if (!worker->up || worker->udp_options.port != 0) return;
  kdp_udp_options options = worker->udp_options;
  options.renew = true;
  if (kdp_worker_bind(worker, &options) != KDP_OK)
    kdp_worker_event(worker, KDP_EVENT_LINK_ERROR, KDP_SYSTEM, (uint64_t)errno, NULL);
}

static void apply(kdp_worker *worker, const kdp_action *action) {
  bool of_others = action->kind == KDP_ACTION_HANDOFF;
  bool of_all = action->kind == KDP_ACTION_PATH_MTU;
  if (!of_all && of_others == kdp_worker_is_first(worker)) {
    if (of_others) kdp_pool_release(worker->pool, action->packet.slot);
    return count_status(worker, KDP_UNSUPPORTED, 1);
  }
  switch ((kdp_action_kind)action->kind) {
  case KDP_ACTION_REBIND: return rebind(worker);
  case KDP_ACTION_OPEN: /* this worker has its one datagram link, always */
    kdp_engine_link_down(worker->lane, action->path.link, EOPNOTSUPP, worker->out, worker->now);
    return;
  case KDP_ACTION_PATH_MTU: (void)kdp_worker_learn_mtu(worker, &action->path); return;
  case KDP_ACTION_HANDOFF: return kdp_group_hand_packet(worker, action);
  case KDP_ACTION_CLOSE:
  case KDP_ACTION_RESOLVE: /* names are looked up by whoever reads the engine's event */ return;
  }
}

/* ---- TUN writes ---- */

/* True: the run's packets are to be tried again. */
static bool keep_unwritten(kdp_worker *worker, uint32_t index, int error) {
  const kdp_join_run *run = &worker->write->join.run[index];
  switch (error) {
  case EAGAIN:
    worker->inside_flow = KDP_FLOW_BLOCKED;
    worker->inside_retry = KDP_NEVER;
    return true;
  case ENOBUFS:
  case ENOMEM:
    worker->inside_flow = KDP_FLOW_BLOCKED;
    worker->inside_retry = worker->now.boot + RETRY_DELAY;
    return true;
  case EINVAL:
    if (run->count < 2) return false;
    kdp_worker_fall_back(
        worker, run->header.gso_type == KDP_VIRTIO_GSO_UDP_L4 ? KDP_FALLBACK_NO_USO : KDP_FALLBACK_NO_TSO, NULL);
    return true;
  case EBADFD:
  case EBADF:
  case ENODEV: worker->gone = true; return false;
  default: return false;
  }
}

static void plan_writes(kdp_worker *worker) {
  uint32_t off = worker->fallbacks;
  bool join = !(off & (KDP_FALLBACK_NO_TUN_JOIN | KDP_FALLBACK_NO_VNET_HEADER));
  kdp_join_rules rules = {.tcp = join && !(off & KDP_FALLBACK_NO_TSO),
                          .udp = join && worker->tun.uso && !(off & KDP_FALLBACK_NO_USO)};
  kdp_write_plan_make(worker->write, &worker->out->inside, rules, worker->tun.vnet_header);
}

static void settle_writes(kdp_worker *worker) {
  kdp_batch *inside = &worker->out->inside;
  const kdp_write_plan *plan = worker->write;
  bool done[KDP_BATCH_CAPACITY] = {false}, down = false;
  uint32_t written = 0, joined = 0, refused = 0;
  for (uint32_t i = 0; i < plan->join.run_count; i++) {
    const kdp_join_run *run = &plan->join.run[i];
    int error = plan->item[i].error;
    if (error == KDP_WRITE_NOT_TRIED && down) error = EIO;
    if (error == 0) {
      written++;
      if (run->count > 1) joined++;
    } else if (error == KDP_WRITE_NOT_TRIED || keep_unwritten(worker, i, error)) {
      if (run->count > 1) kdp_join_undo(inside, &plan->join, i);
      continue;
    } else {
      refused += run->count;
      /* The interface is down, or gone: the rest would fare no better. */
      down = error == EIO || worker->gone;
    }
    for (uint32_t j = 0; j < run->count; j++)
      done[plan->join.order[run->first + j]] = true;
  }
  kdp_count(&worker->count.tun_writes, written);
  kdp_count(&worker->count.joined_writes, joined);
  if (refused) count_status(worker, KDP_INSIDE_REFUSED, refused);
  if (written == plan->join.run_count) {
    kdp_batch_release(inside, worker->pool);
  } else {
    remove_done(worker, inside, inside->count, done);
  }
}

/* ---- All of it ---- */

/* Whether there is something to send among the first `limit` packets, besides what waits for a socket that is full. */
static bool may_send(const kdp_worker *worker, uint32_t limit) {
  const kdp_batch *wire = &worker->out->wire;
  if (worker->wire_flow == KDP_FLOW_BLOCKED) return false;
  if (!worker->socket_full[KDP_UDP_IPV4] && !worker->socket_full[KDP_UDP_IPV6]) return limit > 0;
  for (uint32_t i = 0; i < limit; i++)
    if (!worker->socket_full[kdp_send_socket(&wire->path[wire->packet[i].path])]) return true;
  return false;
}

/* An action that is about a link has to wait for what leaves on it before. */
static bool is_in_order(const kdp_action *action) {
  return action->kind == KDP_ACTION_OPEN || action->kind == KDP_ACTION_CLOSE || action->kind == KDP_ACTION_REBIND;
}

/* Paths of packets that have left make room for others while some wait. */
static void drop_unused_paths(kdp_batch *wire) {
  uint16_t place[KDP_BATCH_PATHS], kept = 0;
  bool used[KDP_BATCH_PATHS] = {false};
  for (uint32_t i = 0; i < wire->count; i++)
    used[wire->packet[i].path] = true;
  for (uint16_t i = 0; i < wire->path_count; i++) {
    place[i] = kept;
    if (used[i]) wire->path[kept++] = wire->path[i];
  }
  for (uint32_t i = 0; i < wire->count; i++)
    wire->packet[i].path = place[wire->packet[i].path];
  wire->path_count = kept;
}

void kdp_output_flush(kdp_worker *worker) {
  kdp_out *out = worker->out;
  attempt last = {0};
  for (;;) {
    uint32_t limit = out->action_count ? out->action[0].wire_count : out->wire.count;
    bool write = out->inside.count > 0 && worker->inside_flow == KDP_FLOW_OPEN;
    bool send = may_send(worker, limit);
    if (write || send) {
      if (write) plan_writes(worker);
      if (send) plan_sends(worker, limit);
      worker->backend->output(worker, send, write);
      if (write) settle_writes(worker);
      if (send) move_actions(out, limit - settle_sends(worker, limit, &last));
    } else if (out->action_count > 0 && (limit == 0 || !is_in_order(&out->action[0]))) {
      kdp_action action = out->action[0];
      out->action_count--;
      for (uint32_t i = 0; i < out->action_count; i++)
        out->action[i] = out->action[i + 1];
      apply(worker, &action);
    } else {
      break;
    }
  }
  if (out->wire.count > 0) drop_unused_paths(&out->wire);
}
