#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include "io/udp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/linux_compat.h"
#include "kdp/socket_address.h"

static bool enable(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

static void set_buffer(int fd, int forced, int plain) {
  if (!enable(fd, SOL_SOCKET, forced, KDP_UDP_BUFFER)) (void)enable(fd, SOL_SOCKET, plain, KDP_UDP_BUFFER);
}

static uint16_t port_of(int fd) {
  kdp_socket_address address;
  socklen_t size = sizeof address;
  kdp_address local;
  if (getsockname(fd, &address.any, &size) != 0) return 0;
  kdp_socket_address_read(&address, &local);
  return local.port;
}

static bool set_options(int fd, bool ipv6) {
  if (ipv6)
    return enable(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && enable(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
           enable(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
  return enable(fd, IPPROTO_IP, IP_PKTINFO, 1) && enable(fd, IPPROTO_IP, IP_RECVTOS, 1) &&
         enable(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
}

static void set_offloads(const kdp_udp_options *options, int index, int fd, kdp_udp *udp) {
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  udp->gro[index] = !options->no_gro && enable(fd, IPPROTO_UDP, UDP_GRO, 1);
  int value;
  socklen_t length = sizeof value;
  udp->segment[index] = !options->no_segment && getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &length) == 0;
}

static int failed(int fd) {
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/* A port that the kernel chose is given back by dissolving the association, also when there is none; one that was asked
   for by number never is. */
static bool forget_port(int fd) {
  struct sockaddr nobody = {.sa_family = AF_UNSPEC};
  return connect(fd, &nobody, sizeof nobody) == 0;
}

static int take(const kdp_udp_options *options, int index, kdp_udp *udp) {
  bool ipv6 = index == KDP_UDP_IPV6;
  if (options->given[index] < 0) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  int fd = fcntl(options->given[index], F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return -1;
  int flags = fcntl(fd, F_GETFL);
  bool ok = flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && set_options(fd, ipv6);
  if (ok && options->renew && port_of(fd) != 0) ok = forget_port(fd);
  if (ok && port_of(fd) == 0) {
    kdp_address any = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4};
    kdp_socket_address address;
    socklen_t size = kdp_socket_address_write(&any, &address);
    /* Refused once it has had a port, and by then it is set. */
    if (ipv6) (void)enable(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    ok = bind(fd, &address.any, size) == 0;
  }
  if (!ok) return failed(fd);
  set_offloads(options, index, fd, udp);
  return fd;
}

static int make(const kdp_udp_options *options, int index, uint16_t port, bool joins, kdp_udp *udp) {
  if (options->given) return take(options, index, udp);
  bool ipv6 = index == KDP_UDP_IPV6;
  int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  kdp_address any = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = port};
  kdp_socket_address address;
  socklen_t size = kdp_socket_address_write(&any, &address);
  bool ok = (!ipv6 || enable(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) && set_options(fd, ipv6);
  if (ok && options->fwmark) ok = enable(fd, SOL_SOCKET, SO_MARK, (int)options->fwmark);
  if (ok && joins) ok = enable(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (ok) ok = bind(fd, &address.any, size) == 0;
  /* Only now, so that a port that another process shares is refused, too. */
  if (ok && options->shared && !joins) ok = enable(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (!ok) return failed(fd);
  set_offloads(options, index, fd, udp);
  return fd;
}

/* The errors by which a system says that it does not have this family (built without, or disabled by sysctl). */
static bool is_absent(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
}

enum { PORT_ATTEMPTS = 100 };

kdp_status kdp_udp_open(const kdp_udp_options *options, kdp_udp *udp) {
  for (int attempt = 0;; attempt++) {
    *udp = (kdp_udp){.fd = {-1, -1}};
    int error = EAFNOSUPPORT;
    uint16_t port = options->port;
    if (!options->no_ipv4) {
      udp->fd[KDP_UDP_IPV4] = make(options, KDP_UDP_IPV4, port, false, udp);
      if (udp->fd[KDP_UDP_IPV4] >= 0) {
        port = port_of(udp->fd[KDP_UDP_IPV4]);
      } else {
        error = errno;
        if (!is_absent(error)) break;
      }
    }
    if (!options->no_ipv6) {
      udp->fd[KDP_UDP_IPV6] = make(options, KDP_UDP_IPV6, port, false, udp);
      if (udp->fd[KDP_UDP_IPV6] >= 0) {
        port = port_of(udp->fd[KDP_UDP_IPV6]);
      } else {
        error = errno;
        /* The kernel chose a port for IPv4 that is taken in IPv6: another one. */
        bool again = error == EADDRINUSE && options->port == 0 && attempt < PORT_ATTEMPTS;
        if (again || !is_absent(error)) {
          kdp_udp_close(udp);
          if (again) continue;
          errno = error;
          return KDP_SYSTEM;
        }
      }
    }
    udp->port = options->given && udp->fd[KDP_UDP_IPV4] >= 0 ? port_of(udp->fd[KDP_UDP_IPV4]) : port;
    if (udp->fd[KDP_UDP_IPV4] >= 0 || udp->fd[KDP_UDP_IPV6] >= 0) return KDP_OK;
    errno = error;
    break;
  }
  return KDP_SYSTEM;
}

kdp_status kdp_udp_join(const kdp_udp_options *options, const kdp_udp *first, kdp_udp *udp) {
  *udp = (kdp_udp){.fd = {-1, -1}, .port = first->port};
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    if (first->fd[i] < 0) continue;
    udp->fd[i] = make(options, i, first->port, true, udp);
    if (udp->fd[i] < 0) {
      kdp_udp_close(udp);
      return KDP_SYSTEM;
    }
  }
  return KDP_OK;
}

kdp_status kdp_udp_duplicate(const kdp_udp *first, kdp_udp *udp) {
  *udp = *first;
  udp->fd[KDP_UDP_IPV4] = udp->fd[KDP_UDP_IPV6] = -1;
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    if (first->fd[i] < 0) continue;
    udp->fd[i] = fcntl(first->fd[i], F_DUPFD_CLOEXEC, 0);
    if (udp->fd[i] < 0) {
      kdp_udp_close(udp);
      return KDP_SYSTEM;
    }
  }
  return KDP_OK;
}

void kdp_udp_close(kdp_udp *udp) {
  int error = errno;
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    if (udp->fd[i] >= 0) close(udp->fd[i]);
    udp->fd[i] = -1;
  }
  errno = error;
}

kdp_status kdp_udp_set_mark(const kdp_udp *udp, uint32_t fwmark) {
  for (int i = 0; i < KDP_UDP_SOCKETS; i++)
    if (udp->fd[i] >= 0 && !enable(udp->fd[i], SOL_SOCKET, SO_MARK, (int)fwmark)) return KDP_SYSTEM;
  return KDP_OK;
}

uint32_t kdp_udp_mark_of(int fd) {
  uint32_t mark = 0;
  socklen_t size = sizeof mark;
  return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &size) == 0 ? mark : 0;
}
