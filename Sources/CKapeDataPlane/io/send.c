#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/send.h"

#include <errno.h>
#include <string.h>

#include "io/linux_compat.h"

enum { NONE = UINT16_MAX };

/* Equal paths may stand in the batch more than once; each is represented by its first. */
static void find_representatives(const kdp_batch *batch, uint16_t *same) {
  for (uint16_t i = 0; i < batch->path_count; i++) {
    same[i] = i;
    for (uint16_t j = 0; j < i; j++) {
      if (same[j] == j && kdp_path_equal(&batch->path[j], &batch->path[i])) {
        same[i] = j;
        break;
      }
    }
  }
}

static void *add_control(struct msghdr *message, int level, int type, size_t size) {
  struct cmsghdr *control = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);
  control->cmsg_level = level;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(size);
  message->msg_controllen += CMSG_SPACE(size);
  return CMSG_DATA(control);
}

void kdp_send_control(struct msghdr *message, const kdp_path *path, uint8_t ecn, uint16_t segment) {
  bool ipv6 = path->remote.family == KDP_FAMILY_IPV6;
  if (segment) memcpy(add_control(message, IPPROTO_UDP, UDP_SEGMENT, sizeof segment), &segment, sizeof segment);
  if (path->local.family == KDP_FAMILY_IPV4 && !ipv6) {
    struct in_pktinfo info = {.ipi_ifindex = (int)path->ifindex};
    memcpy(&info.ipi_spec_dst, path->local.bytes, 4);
    memcpy(add_control(message, IPPROTO_IP, IP_PKTINFO, sizeof info), &info, sizeof info);
  } else if (path->local.family == KDP_FAMILY_IPV6 && ipv6) {
    struct in6_pktinfo info = {.ipi6_ifindex = path->ifindex};
    memcpy(&info.ipi6_addr, path->local.bytes, 16);
    memcpy(add_control(message, IPPROTO_IPV6, IPV6_PKTINFO, sizeof info), &info, sizeof info);
  }
  if (ecn) {
    int value = ecn;
    memcpy(add_control(message, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS, sizeof value), &value,
           sizeof value);
  }
  if (message->msg_controllen == 0) message->msg_control = NULL;
}
_Static_assert(CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)) <=
                   KDP_SEND_CONTROL,
               "all control messages of a send fit");

static void write_message(kdp_send_plan *plan, uint32_t index, const kdp_batch *batch, uint32_t *iov_used) {
  kdp_send_item *item = &plan->item[index];
  struct iovec *iov = &plan->iov[*iov_used];
  uint32_t pieces = 0;
  for (uint32_t i = 0; i < item->count; i++) {
    const kdp_packet *packet = &batch->packet[plan->order[item->first + i]];
    if (pieces && (uint8_t *)iov[pieces - 1].iov_base + iov[pieces - 1].iov_len == packet->data) {
      iov[pieces - 1].iov_len += packet->size;
    } else {
      iov[pieces++] = (struct iovec){packet->data, packet->size};
    }
  }
  *iov_used += pieces;
  struct msghdr *message = &plan->message[index].msg_hdr;
  *message = (struct msghdr){.msg_name = &plan->name[item->path],
                             .msg_namelen = plan->name_size[item->path],
                             .msg_iov = iov,
                             .msg_iovlen = pieces,
                             .msg_control = plan->control[index]};
  kdp_send_control(message, &batch->path[item->path], item->ecn, item->segment);
}

void kdp_send_plan_make(kdp_send_plan *plan, const kdp_batch *batch, uint32_t limit, const kdp_send_rules *rules) {
  uint16_t same[KDP_BATCH_PATHS], largest[KDP_BATCH_PATHS];
  uint16_t open[KDP_BATCH_PATHS]; /* the item of a path that may still grow */
  uint32_t bytes[KDP_SEND_ITEMS];
  uint16_t last[KDP_SEND_ITEMS], next[KDP_BATCH_CAPACITY]; /* chains of packets, until `order` is known */

  find_representatives(batch, same);
  for (uint16_t i = 0; i < batch->path_count; i++) {
    if (same[i] != i) continue;
    const kdp_address *remote = &batch->path[i].remote;
    open[i] = NONE;
    plan->name_size[i] = remote->port ? kdp_socket_address_write(remote, &plan->name[i]) : 0;
    largest[i] = rules->routes->count ? kdp_route_largest(rules->routes, remote) : UINT16_MAX;
  }

  uint32_t items = 0, count = 0;
  for (; count < limit; count++) {
    const kdp_packet *packet = &batch->packet[count];
    uint16_t path = same[packet->path];
    bool alone = (packet->flags & (KDP_DF | KDP_THRICE)) != 0 || packet->size == 0;
    next[count] = NONE;
    uint16_t current = open[path];
    if (current != NONE) {
      kdp_send_item *item = &plan->item[current];
      if (!alone && packet->size <= item->segment && packet->ecn == item->ecn && item->count < rules->segments_most &&
          bytes[current] + packet->size <= KDP_SEND_BYTES) {
        next[last[current]] = (uint16_t)count;
        last[current] = (uint16_t)count;
        item->count++;
        bytes[current] += packet->size;
        if (packet->size < item->segment) open[path] = NONE;
        continue;
      }
      open[path] = NONE;
    }
    uint32_t copies = packet->flags & KDP_THRICE ? 3 : 1;
    if (items + copies > KDP_SEND_ITEMS) break;
    uint8_t socket = kdp_send_socket(&batch->path[path]);
    for (uint32_t copy = 0; copy < copies; copy++) {
      /* Until its members are counted, `first` is the packet that the item's chain begins with. */
      plan->item[items] = (kdp_send_item){.first = (uint16_t)count,
                                          .count = 1,
                                          .path = path,
                                          .segment = (uint16_t)(packet->size <= UINT16_MAX ? packet->size : 0),
                                          .socket = socket,
                                          .ecn = packet->ecn,
                                          .df = (packet->flags & KDP_DF) != 0,
                                          .error = !plan->name_size[path]   ? EDESTADDRREQ
                                                   : !rules->usable[socket] ? EAFNOSUPPORT
                                                   : rules->full[socket]    ? EAGAIN
                                                                            : KDP_SEND_NOT_TRIED};
      bytes[items] = packet->size;
      last[items] = (uint16_t)count;
      items++;
    }
    if (!alone && rules->segment[socket] && packet->size <= largest[path] && packet->size < KDP_SEND_BYTES)
      open[path] = (uint16_t)(items - 1);
  }

  uint32_t ordered = 0, iov_used = 0;
  for (uint32_t i = 0; i < items; i++) {
    kdp_send_item *item = &plan->item[i];
    uint16_t packet = item->first;
    bool repeats = i > 0 && (batch->packet[packet].flags & KDP_THRICE) && last[i - 1] == packet;
    if (item->count == 1) item->segment = 0;
    if (repeats) { /* the same packet again: it shares the place of the copy before it */
      item->first = plan->item[i - 1].first;
      uint32_t shared = iov_used - 1;
      write_message(plan, i, batch, &shared);
      continue;
    }
    item->first = (uint16_t)ordered;
    for (; packet != NONE; packet = next[packet])
      plan->order[ordered++] = packet;
    write_message(plan, i, batch, &iov_used);
  }
  plan->item_count = items;
  plan->packet_count = count;
}

int kdp_send_with_df(int fd, bool ipv6, struct mmsghdr *message) {
  int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, name = ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER;
  int probe = IP_PMTUDISC_PROBE, ordinary = IP_PMTUDISC_DONT;
  _Static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE && IP_PMTUDISC_DONT == IPV6_PMTUDISC_DONT, "one value each");
  if (setsockopt(fd, level, name, &probe, sizeof probe) != 0) return -1;
  int result = sendmmsg(fd, message, 1, MSG_DONTWAIT);
  int error = errno;
  (void)setsockopt(fd, level, name, &ordinary, sizeof ordinary); /* it was just possible */
  errno = error;
  return result;
}
