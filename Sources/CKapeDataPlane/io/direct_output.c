/* Sends and TUN writes by plain system calls, for the epoll backend and for what an io_uring does not do. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>

#include "io/worker_state.h"

void kdp_send_directly(kdp_worker *worker) {
  kdp_send_plan *plan = worker->send;
  uint32_t i = 0;
  while (i < plan->item_count) {
    kdp_send_item *item = &plan->item[i];
    if (item->error != KDP_SEND_NOT_TRIED) {
      i++;
      continue;
    }
    uint32_t run = 1;
    if (!item->df)
      while (i + run < plan->item_count && item[run].error == KDP_SEND_NOT_TRIED && item[run].socket == item->socket &&
             !item[run].df)
        run++;
    int sent;
    do {
      sent = item->df ? kdp_send_with_df(worker->udp.fd[item->socket], item->socket == KDP_UDP_IPV6, &plan->message[i])
                      : sendmmsg(worker->udp.fd[item->socket], &plan->message[i], run, MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent <= 0) {
      item->error = sent < 0 ? errno : EAGAIN;
      return;
    }
    /* Fewer than asked for: the next call says why. */
    for (int j = 0; j < sent; j++)
      plan->item[i++].error = 0;
  }
}

void kdp_write_directly(kdp_worker *worker) {
  kdp_write_plan *plan = worker->write;
  for (uint32_t i = 0; i < plan->join.run_count; i++) {
    const struct iovec *iov = &plan->iov[plan->item[i].first];
    ssize_t written;
    do {
      written = writev(worker->tun.fd, iov, plan->item[i].count);
    } while (written < 0 && errno == EINTR);
    plan->item[i].error = written < 0 ? errno : 0;
    if (written < 0) return;
  }
}
