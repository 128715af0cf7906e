#include "io/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/linux_compat.h"
#include "offload/virtio.h"

/* Asks for as much as may be had, and takes what the kernel gives. */
static void negotiate(kdp_tun *tun, uint32_t fallbacks) {
  tun->tso = tun->uso = false;
  if (!tun->vnet_header) return;
  /* A forced-off virtio header on a descriptor that has one already: the header stays, the offloads go. */
  if (fallbacks & KDP_FALLBACK_NO_VNET_HEADER) fallbacks |= KDP_FALLBACK_NO_TSO | KDP_FALLBACK_NO_USO;
  unsigned tso = fallbacks & KDP_FALLBACK_NO_TSO ? 0 : TUN_F_TSO4 | TUN_F_TSO6;
  unsigned uso = fallbacks & KDP_FALLBACK_NO_USO ? 0 : TUN_F_USO4 | TUN_F_USO6;
  unsigned ecn = tso ? TUN_F_TSO_ECN : 0;
  const unsigned attempts[] = {TUN_F_CSUM | tso | ecn | uso, TUN_F_CSUM | tso | ecn, TUN_F_CSUM | tso, TUN_F_CSUM, 0};
  for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
    if (ioctl(tun->fd, TUNSETOFFLOAD, (unsigned long)attempts[i]) != 0) continue;
    tun->tso = (attempts[i] & TUN_F_TSO4) != 0;
    tun->uso = (attempts[i] & TUN_F_USO4) != 0;
    return;
  }
}

static int set_header_size(int fd) {
  int size = KDP_VIRTIO_SIZE;
  return ioctl(fd, TUNSETVNETHDRSZ, &size);
}

static kdp_status fail_closing(int fd) {
  int error = errno;
  close(fd);
  errno = error;
  return KDP_SYSTEM;
}

static kdp_status open_queue(const char *name, uint32_t fallbacks, unsigned flags, kdp_tun *tun) {
  *tun = (kdp_tun){.fd = -1};
  if (strlen(name) >= IFNAMSIZ) {
    errno = ENAMETOOLONG;
    return KDP_SYSTEM;
  }
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return KDP_SYSTEM;
  struct ifreq request = {0};
  strcpy(request.ifr_name, name);
  bool header = !(fallbacks & KDP_FALLBACK_NO_VNET_HEADER);
  request.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | (header ? IFF_VNET_HDR : 0) | flags);
  if (ioctl(fd, TUNSETIFF, &request) != 0) return fail_closing(fd);
  if (header && set_header_size(fd) != 0) return fail_closing(fd);
  tun->fd = fd;
  memcpy(tun->name, request.ifr_name, sizeof tun->name);
  tun->vnet_header = header;
  negotiate(tun, fallbacks);
  return KDP_OK;
}

kdp_status kdp_tun_open(const char *name, uint32_t fallbacks, kdp_tun *tun) {
  return open_queue(name, fallbacks, 0, tun);
}

kdp_status kdp_tun_open_queues(const char *name, uint32_t fallbacks, uint32_t queues, kdp_tun *tun) {
  for (uint32_t i = 0; i < queues; i++) {
    kdp_status status = open_queue(i == 0 ? name : tun[0].name, fallbacks, IFF_MULTI_QUEUE, &tun[i]);
    if (status != KDP_OK) {
      int error = errno;
      while (i > 0)
        kdp_tun_close(&tun[--i]);
      errno = error;
      return status;
    }
  }
  return KDP_OK;
}

static bool make_non_blocking(int fd) {
  int status = fcntl(fd, F_GETFL);
  return status >= 0 && fcntl(fd, F_SETFL, status | O_NONBLOCK) == 0;
}

static bool is_packet_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

kdp_status kdp_tun_adopt(int fd, uint32_t fallbacks, kdp_tun *tun) {
  *tun = (kdp_tun){.fd = -1};
  struct ifreq request = {0};
  if (is_packet_socket(fd)) {
    if (!make_non_blocking(fd)) return KDP_SYSTEM;
    tun->fd = fd;
    return KDP_OK;
  }
  if (ioctl(fd, TUNGETIFF, &request) != 0) return KDP_SYSTEM;
  unsigned flags = (unsigned short)request.ifr_flags;
  if (!(flags & IFF_TUN) || !(flags & IFF_NO_PI)) return KDP_UNSUPPORTED;
  if (!make_non_blocking(fd)) return KDP_SYSTEM;
  bool header = (flags & IFF_VNET_HDR) != 0;
  if (header && set_header_size(fd) != 0) return KDP_SYSTEM;
  tun->fd = fd;
  memcpy(tun->name, request.ifr_name, sizeof tun->name);
  tun->vnet_header = header;
  negotiate(tun, fallbacks);
  return KDP_OK;
}

void kdp_tun_close(kdp_tun *tun) {
  if (tun->fd >= 0) close(tun->fd);
  tun->fd = -1;
}

/* TCP fills a super-packet with (limit - MAX_TCP_HEADER - 1) / mss segments (tcp_tso_autosize and
   sk_setup_caps in the kernel). MAX_TCP_HEADER is 256 to 320, depending on how the kernel was configured. */
enum { TCP_RESERVE = 321, DATAGRAM = 65507, IPV4_TCP = 40, IPV6_TCP = 60, TCP_TIMESTAMPS = 12, SEGMENTS_MOST = 128 };

kdp_gso_limit kdp_gso_limit_for(uint16_t inside_mtu, uint16_t growth) {
  uint32_t sealed = (uint32_t)inside_mtu + growth;
  uint32_t segments = DATAGRAM / sealed;
  if (segments > SEGMENTS_MOST) segments = SEGMENTS_MOST;
  if (segments < 1) segments = 1;
  /* Room for that many segments without timestamps, not for one more with them, when a segment is larger than what the
     timestamps of all of them save. */
  kdp_gso_limit limit = {segments * (inside_mtu - IPV4_TCP), segments * (inside_mtu - IPV6_TCP)};
  uint32_t ipv4_most = (segments + 1) * (inside_mtu - IPV4_TCP - TCP_TIMESTAMPS) - 1;
  uint32_t ipv6_most = (segments + 1) * (inside_mtu - IPV6_TCP - TCP_TIMESTAMPS) - 1;
  if (limit.ipv4 > ipv4_most) limit.ipv4 = ipv4_most;
  if (limit.ipv6 > ipv6_most) limit.ipv6 = ipv6_most;
  limit.ipv4 += TCP_RESERVE;
  limit.ipv6 += TCP_RESERVE;
  return limit;
}

static void add_u32(struct nlmsghdr *message, unsigned short type, uint32_t value) {
  struct rtattr *attribute = (struct rtattr *)((uint8_t *)message + NLMSG_ALIGN(message->nlmsg_len));
  attribute->rta_type = type;
  attribute->rta_len = RTA_LENGTH(sizeof value);
  memcpy(RTA_DATA(attribute), &value, sizeof value);
  message->nlmsg_len = NLMSG_ALIGN(message->nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

static void set_link(int netlink, unsigned index, const unsigned short *type, const uint32_t *value, unsigned count) {
  struct {
    struct nlmsghdr header;
    struct ifinfomsg link;
    uint8_t attributes[64];
  } request = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
                          .nlmsg_type = RTM_NEWLINK,
                          .nlmsg_flags = NLM_F_REQUEST},
               .link = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index}};
  for (unsigned i = 0; i < count; i++)
    add_u32(&request.header, type[i], value[i]);
  if (send(netlink, &request, request.header.nlmsg_len, 0) < 0) return; /* only a matter of speed */
}

void kdp_tun_limit_gso(const kdp_tun *tun, uint16_t inside_mtu, uint16_t growth) {
  if (!tun->tso || inside_mtu < 576) return;
  unsigned index = if_nametoindex(tun->name);
  int netlink = index ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) : -1;
  if (netlink < 0) return;
  kdp_gso_limit limit = kdp_gso_limit_for(inside_mtu, growth);
  /* In three messages: an older kernel refuses what it does not know, and with it all of that message. */
  static const unsigned short both = KDP_IFLA_GSO_MAX_SIZE, ipv4 = KDP_IFLA_GSO_IPV4_MAX_SIZE,
                              segments = KDP_IFLA_GSO_MAX_SEGS;
  static const uint32_t most = SEGMENTS_MOST;
  set_link(netlink, index, &both, &limit.ipv6, 1);
  set_link(netlink, index, &ipv4, &limit.ipv4, 1);
  set_link(netlink, index, &segments, &most, 1);
  close(netlink);
}
