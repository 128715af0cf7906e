/* The pair of UDP sockets of a worker: both families on one port, as the kernel's WireGuard has it. Several workers may
   share a port, each with a pair of its own; the kernel spreads what comes in over them by address and port of its
   sender. */
#ifndef KDP_IO_UDP_H
#define KDP_IO_UDP_H
#include "kdp/base.h"
#include "kdp/status.h"

enum { KDP_UDP_IPV4, KDP_UDP_IPV6, KDP_UDP_SOCKETS };

/* Bytes of control messages that one receive can bring: packet info, TOS or traffic class, GRO size. */
enum { KDP_UDP_CONTROL = 128 };

/* Receive and send buffers asked for, bytes. What the kernel gives may be less without CAP_NET_ADMIN. */
enum { KDP_UDP_BUFFER = 7 << 20 };

typedef struct kdp_udp {
  int fd[KDP_UDP_SOCKETS]; /* -1: this family is not to be had */
  bool gro[KDP_UDP_SOCKETS];
  bool segment[KDP_UDP_SOCKETS]; /* the kernel knows UDP_SEGMENT */
  uint16_t port;
} kdp_udp;

typedef struct kdp_udp_options {
  uint16_t port; /* 0: any, the same for both */
  uint32_t fwmark;
  bool no_ipv4, no_ipv6, no_gro, no_segment;
  const int *given; /* use these in place of own ones; NULL: own ones */
  bool renew;       /* given ones: another port than they have */
  bool shared;      /* others are to join; the port is refused all the same when somebody has it already */
} kdp_udp_options;

/* SYSTEM with errno. A family that the system does not have is left out as long as there is the other. */
kdp_status kdp_udp_open(const kdp_udp_options *options, kdp_udp *udp) KDP_MUST_USE;
/* Another pair on the port of `first`, which was opened with `options` as shared. */
kdp_status kdp_udp_join(const kdp_udp_options *options, const kdp_udp *first, kdp_udp *udp) KDP_MUST_USE;
/* The same sockets under other descriptors. */
kdp_status kdp_udp_duplicate(const kdp_udp *first, kdp_udp *udp) KDP_MUST_USE;
static inline bool kdp_udp_is_open(const kdp_udp *udp) {
  return udp->fd[KDP_UDP_IPV4] >= 0 || udp->fd[KDP_UDP_IPV6] >= 0;
}
void kdp_udp_close(kdp_udp *udp);
uint32_t kdp_udp_mark_of(int fd); /* 0: none, or not to be known */
kdp_status kdp_udp_set_mark(const kdp_udp *udp, uint32_t fwmark) KDP_MUST_USE;

#endif
