#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "kdp/embed_linux.h"

#include <errno.h>
#include <sys/socket.h>

#include "io/receive.h"
#include "io/route_table.h"
#include "io/send.h"
#include "kdp/worker.h"

kdp_status kdp_embed_wireguard(const kdp_wireguard_config *config, const kdp_wireguard_change *change,
                               kdp_embed **result) {
  const kdp_wireguard_config defaults = {0};
  const kdp_limits limits = {0};
  kdp_host host = kdp_host_default();
  kdp_engine *engine = NULL;
  kdp_embed *tunnel = NULL;
  kdp_status status = kdp_wireguard_create(config ? config : &defaults, &limits, &host, kdp_now_read(), &engine);
  if (status != KDP_OK) return status;
  status = kdp_embed_create(engine, &host, &tunnel);
  if (status != KDP_OK) {
    kdp_engine_destroy(engine);
    return status;
  }
  status = kdp_wireguard_apply(engine, change, kdp_embed_out(tunnel), kdp_now_read());
  if (status != KDP_OK) {
    kdp_embed_destroy(tunnel);
    return status;
  }
  *result = tunnel;
  return KDP_OK;
}

static bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

kdp_status kdp_embed_prepare(int udp) {
  int family = 0;
  socklen_t size = sizeof family;
  if (getsockopt(udp, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) return KDP_SYSTEM;
  bool done = family == AF_INET6
                  ? set(udp, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && set(udp, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
                        set(udp, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT)
                  : set(udp, IPPROTO_IP, IP_PKTINFO, 1) && set(udp, IPPROTO_IP, IP_RECVTOS, 1) &&
                        set(udp, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
  return done ? KDP_OK : KDP_SYSTEM;
}

/* What a socket says of a datagram that left it before; the next call goes on. */
static bool is_about_a_send(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN ||
         error == EMSGSIZE || error == EPROTO || error == ENOPROTOOPT || error == EACCES;
}

kdp_status kdp_embed_receive(kdp_embed *tunnel, int udp) {
  uint8_t bytes[UINT16_MAX];
  _Alignas(struct cmsghdr) uint8_t control[KDP_UDP_CONTROL];
  while (!kdp_embed_is_full(tunnel)) {
    kdp_socket_address name;
    struct iovec iov = {bytes, sizeof bytes};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof name,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t size = recvmsg(udp, &message, MSG_DONTWAIT);
    if (size < 0) {
      if (errno == EINTR || is_about_a_send(errno)) continue;
      return errno == EAGAIN ? KDP_OK : KDP_SYSTEM;
    }
    kdp_received received = {.data = bytes, .size = (uint32_t)size};
    kdp_received_describe(&received, &message, 0);
    if (!received.truncated)
      (void)kdp_embed_outside(tunnel, bytes, (size_t)size, &received.path, received.ecn); /* it is not full */
  }
  return KDP_OK;
}

/* Errors by which the source that a path asks for may be to blame: an address or an interface that is gone. */
static bool may_be_the_source(int error) {
  return error == EINVAL || error == EADDRNOTAVAIL || error == ENODEV || error == ENXIO || error == ENETUNREACH ||
         error == EHOSTUNREACH;
}

static int send_once(int udp, const kdp_packet *packet, const kdp_path *path) {
  kdp_socket_address name;
  struct iovec iov = {packet->data, packet->size};
  _Alignas(struct cmsghdr) uint8_t control[KDP_SEND_CONTROL];
  struct mmsghdr message = {.msg_hdr = {.msg_name = &name,
                                        .msg_namelen = kdp_socket_address_write(&path->remote, &name),
                                        .msg_iov = &iov,
                                        .msg_iovlen = 1,
                                        .msg_control = control}};
  kdp_send_control(&message.msg_hdr, path, packet->ecn, 0);
  int sent;
  do {
    sent = packet->flags & KDP_DF ? kdp_send_with_df(udp, path->remote.family == KDP_FAMILY_IPV6, &message)
                                  : sendmmsg(udp, &message, 1, MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

static void learn_mtu(kdp_embed *tunnel, int udp, const kdp_path *path) {
  int mark = 0;
  socklen_t size = sizeof mark;
  (void)getsockopt(udp, SOL_SOCKET, SO_MARK, &mark, &size); /* stays 0 */
  uint16_t mtu = kdp_route_ask_mtu(path, (uint32_t)mark);
  kdp_engine_path_mtu(kdp_embed_lane(tunnel), path, mtu, kdp_now_read());
}

kdp_status kdp_embed_send(kdp_embed *tunnel, int udp, const kdp_embed_output *output) {
  if (output->kind == KDP_EMBED_ACTION && output->action.kind == KDP_ACTION_PATH_MTU)
    learn_mtu(tunnel, udp, &output->action.path);
  if (output->kind != KDP_EMBED_SEND) return KDP_OK;
  kdp_path path = output->path;
  int error = 0;
  for (int copies = output->packet.flags & KDP_THRICE ? 3 : 1; copies > 0; copies--) {
    error = send_once(udp, &output->packet, &path);
    if (may_be_the_source(error) && (path.ifindex || path.local.family)) {
      path.ifindex = 0;
      path.local = (kdp_address){0};
      error = send_once(udp, &output->packet, &path);
    }
  }
  if (error == EMSGSIZE) learn_mtu(tunnel, udp, &path);
  errno = error;
  return error == 0 ? KDP_OK : error == EMSGSIZE ? KDP_SEND_TOO_BIG : KDP_SEND_REFUSED;
}
