/* The sockets of a worker's threads: all on one port, bound and replaced by the first of them. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>

#include "io/worker_state.h"

#define REBIND_INTERVAL (1 * KDP_SECOND)

static void show_sockets(kdp_worker *worker) {
  atomic_store_explicit(&worker->shown_port, worker->udp.port, memory_order_relaxed);
  atomic_store_explicit(&worker->shown_fwmark, worker->udp_options.fwmark, memory_order_relaxed);
}

static bool has_on_all(const kdp_udp *udp, const bool *offload) {
  for (int i = 0; i < KDP_UDP_SOCKETS; i++)
    if (udp->fd[i] >= 0 && !offload[i]) return false;
  return true;
}

/* New sockets try again what old ones had turned off; what the kernel does not have is said once. */
static void note_offloads(kdp_worker *worker) {
  if (!worker->udp_options.no_segment) {
    if (has_on_all(&worker->udp, worker->udp.segment)) {
      kdp_worker_regain(worker, KDP_FALLBACK_NO_UDP_SEGMENT);
    } else {
      kdp_worker_fall_back(worker, KDP_FALLBACK_NO_UDP_SEGMENT, NULL);
    }
  }
  if (!worker->udp_options.no_gro && !has_on_all(&worker->udp, worker->udp.gro))
    kdp_worker_fall_back(worker, KDP_FALLBACK_NO_UDP_GRO, NULL);
}

/* ---- Of one thread ---- */

static void let_go(kdp_worker *worker) {
  if (!kdp_udp_is_open(&worker->udp)) return;
  worker->backend->detach(worker);
  kdp_udp_close(&worker->udp);
  worker->wire_flow = KDP_FLOW_OPEN;
  worker->socket_full[KDP_UDP_IPV4] = worker->socket_full[KDP_UDP_IPV6] = false;
  worker->outside_waits = false;
}

static void take(kdp_worker *worker, const kdp_udp_options *options) {
  const kdp_worker *first = worker->membership.first;
  let_go(worker);
  worker->udp = worker->next_udp;
  worker->next_udp.fd[KDP_UDP_IPV4] = worker->next_udp.fd[KDP_UDP_IPV6] = -1;
  worker->udp_options = *options;
  worker->udp_options.renew = false;
  worker->sockets_taken = first ? first->sockets_taken : (uint16_t)(worker->sockets_taken + 1);
  worker->segment_refusals[KDP_UDP_IPV4] = worker->segment_refusals[KDP_UDP_IPV6] = 0;
  kdp_route_forget_refused(&worker->routes);
  worker->backend->attach(worker);
  note_offloads(worker);
}

/* Called on the others, while the first waits and so does not change. */
static void follow(kdp_worker *other) {
  const kdp_worker *first = other->membership.first;
  other->up = first->up;
  if (kdp_udp_is_open(&first->udp)) {
    take(other, &first->udp_options);
  } else {
    let_go(other);
  }
}

static void follow_mark(kdp_worker *other) {
  other->udp_options.fwmark = other->membership.first->udp_options.fwmark;
  /* The first had its mark set: nothing else can be wrong with this one. */
  (void)kdp_udp_set_mark(&other->udp, other->udp_options.fwmark);
}

/* ---- Of all ---- */

static void discard_next(kdp_worker *worker) {
  kdp_udp_close(&worker->next_udp);
  for (uint32_t i = 0; i < worker->group.count; i++)
    kdp_udp_close(&worker->group.other[i]->next_udp);
}

static kdp_status open_next(kdp_worker *worker, const kdp_udp_options *options) {
  kdp_udp *first = &worker->next_udp;
  kdp_status status = kdp_udp_open(options, first);
  for (uint32_t i = 0; status == KDP_OK && i < worker->group.count; i++) {
    kdp_udp *other = &worker->group.other[i]->next_udp;
    status = options->shared ? kdp_udp_join(options, first, other) : kdp_udp_duplicate(first, other);
  }
  if (status != KDP_OK) discard_next(worker);
  return status;
}

static void take_next(kdp_worker *worker, const kdp_udp_options *options) {
  take(worker, options);
  show_sockets(worker);
  kdp_group_call(worker, follow);
  discard_next(worker); /* what was for a thread that has ended */
}

kdp_status kdp_worker_bind(kdp_worker *worker, const kdp_udp_options *options) {
  bool same_port =
      !options->given && kdp_udp_is_open(&worker->udp) && options->port != 0 && options->port == worker->udp.port;
  if (same_port) kdp_worker_unbind(worker); /* the port must be free before it can be had again */
  if (open_next(worker, options) == KDP_OK) {
    take_next(worker, options);
    return KDP_OK;
  }
  int error = errno;
  kdp_udp_options before = worker->udp_options;
  if (same_port && open_next(worker, &before) == KDP_OK) take_next(worker, &before);
  errno = error;
  return KDP_SYSTEM;
}

void kdp_worker_unbind(kdp_worker *worker) {
  let_go(worker);
  kdp_group_call(worker, follow);
}

bool kdp_worker_bind_anew(kdp_worker *worker, int error) {
  if (!worker->up || worker->now.boot < worker->rebind_after) return false;
  worker->rebind_after = worker->now.boot + REBIND_INTERVAL;
  if (!kdp_worker_is_first(worker)) {
    kdp_group_hand_socket_error(worker, error);
    return false;
  }
  kdp_udp_options options = worker->udp_options;
  options.renew = true;
  kdp_status status = kdp_worker_bind(worker, &options);
  kdp_worker_event(worker, KDP_EVENT_LINK_ERROR, status, (uint64_t)error, NULL);
  return status == KDP_OK;
}

kdp_status kdp_worker_set_fwmark(kdp_worker *worker, uint32_t fwmark) {
  if (worker->udp_options.given) return fwmark == worker->udp_options.fwmark ? KDP_OK : KDP_UNSUPPORTED;
  kdp_status status = kdp_udp_set_mark(&worker->udp, fwmark);
  if (status != KDP_OK) {
    int error = errno;
    (void)kdp_udp_set_mark(&worker->udp, worker->udp_options.fwmark);
    errno = error;
    return status;
  }
  worker->udp_options.fwmark = fwmark;
  atomic_store_explicit(&worker->shown_fwmark, fwmark, memory_order_relaxed);
  kdp_group_call(worker, follow_mark);
  return KDP_OK;
}
