#define _GNU_SOURCE
#include "support/kernel_faults.h"

#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "offload/virtio.h"

kernel_faults faults;

void kernel_faults_clear(void) {
  faults.segmented_send = faults.segment_largest = faults.segments_most = faults.send = faults.send_times = 0;
  faults.full_family = 0;
  faults.source = faults.joined_write = faults.joined_type = faults.write = faults.write_times = 0;
  faults.uring = 0;
  faults.write_fd = -1;
  faults.segmented_tries = faults.send_faults = faults.write_faults = 0;
}

static const struct cmsghdr *find(const struct msghdr *message, int level, int type) {
  struct msghdr view = *message;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&view); c; c = CMSG_NXTHDR(&view, c))
    if (c->cmsg_level == level && c->cmsg_type == type) return c;
  return NULL;
}

static int send_rule(const struct msghdr *message, const struct cmsghdr *segment) {
  if (faults.send_times > 0) return faults.send;
  if (faults.full_family && message->msg_name &&
      ((const struct sockaddr *)message->msg_name)->sa_family == faults.full_family)
    return EAGAIN;
  if (faults.source &&
      (find(message, IPPROTO_IP, IP_PKTINFO) != NULL || find(message, IPPROTO_IPV6, IPV6_PKTINFO) != NULL))
    return faults.source;
  if (!segment) return 0;
  uint16_t size;
  memcpy(&size, CMSG_DATA(segment), sizeof size);
  if (faults.segmented_send && size > faults.segment_largest) return faults.segmented_send;
  size_t total = 0;
  for (size_t i = 0; i < message->msg_iovlen; i++)
    total += message->msg_iov[i].iov_len;
  return faults.segments_most && total > (size_t)faults.segments_most * size ? EINVAL : 0;
}

int kernel_faults_send(const struct msghdr *message, bool tried) {
  const struct cmsghdr *segment = find(message, IPPROTO_UDP, UDP_SEGMENT);
  int error = send_rule(message, segment);
  if (tried) {
    if (segment) faults.segmented_tries++;
    if (error) faults.send_faults++;
    if (error && faults.send_times > 0) faults.send_times--;
  }
  return error;
}

static int write_rule(int fd, const struct iovec *iov, int count) {
  if (fd != faults.write_fd) return 0;
  if (faults.write_times > 0) {
    faults.write_times--;
    return faults.write;
  }
  if (!faults.joined_write || count < 1 || iov[0].iov_len < KDP_VIRTIO_SIZE) return 0;
  kdp_virtio header;
  memcpy(&header, iov[0].iov_base, KDP_VIRTIO_SIZE);
  return header.gso_type == faults.joined_type ? faults.joined_write : 0;
}

int kernel_faults_write(int fd, const struct iovec *iov, int count) {
  int error = write_rule(fd, iov, count);
  if (error) faults.write_faults++;
  return error;
}
