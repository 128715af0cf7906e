#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/receive.h"

#include <string.h>

#include "io/linux_compat.h"

static void read_int(const struct cmsghdr *control, int *value) {
  if (control->cmsg_len >= CMSG_LEN(sizeof *value)) memcpy(value, CMSG_DATA(control), sizeof *value);
}

static void read_control(kdp_received *received, const struct cmsghdr *control) {
  int value = 0;
  if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
    read_int(control, &value);
    if (value > 0) received->segment = (uint32_t)value;
  } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
    struct in_pktinfo info;
    if (control->cmsg_len < CMSG_LEN(sizeof info)) return;
    memcpy(&info, CMSG_DATA(control), sizeof info);
    received->path.ifindex = (uint32_t)info.ipi_ifindex;
    received->path.local.family = KDP_FAMILY_IPV4;
    memcpy(received->path.local.bytes, &info.ipi_spec_dst, 4);
  } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
    struct in6_pktinfo info;
    if (control->cmsg_len < CMSG_LEN(sizeof info)) return;
    memcpy(&info, CMSG_DATA(control), sizeof info);
    received->path.ifindex = info.ipi6_ifindex;
    received->path.local.family = KDP_FAMILY_IPV6;
    memcpy(received->path.local.bytes, &info.ipi6_addr, 16);
  } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
    if (control->cmsg_len >= CMSG_LEN(1)) received->ecn = *CMSG_DATA(control) & 3;
  } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS) {
    read_int(control, &value);
    received->ecn = value & 3;
  }
}

void kdp_received_describe(kdp_received *received, const struct msghdr *message, kdp_link link) {
  received->segment = received->size;
  received->ecn = 0;
  received->truncated = (message->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  received->path = (kdp_path){.link = link};
  kdp_socket_address_read(message->msg_name, &received->path.remote);
  if (received->truncated) return;
  /* CMSG_NXTHDR takes a message that it may write to. */
  struct msghdr view = *message;
  for (struct cmsghdr *control = CMSG_FIRSTHDR(&view); control; control = CMSG_NXTHDR(&view, control))
    read_control(received, control);
}

uint32_t kdp_received_count(const kdp_received *received) {
  if (received->segment == 0 || received->segment >= received->size) return 1;
  return (received->size + received->segment - 1) / received->segment;
}

bool kdp_received_cut(const kdp_received *received, kdp_pool *pool, kdp_batch *batch) {
  uint32_t count = kdp_received_count(received);
  if (kdp_batch_room(batch) < count) return false;
  uint16_t path = kdp_batch_path(batch, &received->path);
  if (path == UINT16_MAX) return false;
  kdp_pool_retain(pool, received->slot, count - 1);
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t size = received->size - at;
    bool last = i + 1 == count;
    if (!last) size = received->segment;
    batch->packet[batch->count++] = (kdp_packet){
        .data = received->data + at,
        .size = size,
        .head = i == 0 ? received->head : 0,
        .tail = (uint16_t)(last ? (received->tail > UINT16_MAX ? UINT16_MAX : received->tail) : 0),
        .path = path,
        .ecn = received->ecn,
        .flags = i > 0 && size == received->segment ? KDP_SAME_SIZE : 0,
        .slot = received->slot,
    };
    at += size;
  }
  return true;
}
