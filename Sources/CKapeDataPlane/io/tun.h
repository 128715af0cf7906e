/* TUN: what the worker needs beyond kdp/worker.h. */
#ifndef KDP_IO_TUN_H
#define KDP_IO_TUN_H
#include "kdp/worker.h"

/* Limits the super-packets that the kernel hands out so that each, sealed, fits one segmented send: as many whole
   segments as a UDP datagram's 65,507 bytes hold. Only a matter of speed: failure is ignored. */
void kdp_tun_limit_gso(const kdp_tun *tun, uint16_t inside_mtu, uint16_t growth);

/* The sizes behind kdp_tun_limit_gso, bytes of a super-packet with all of its headers. */
typedef struct kdp_gso_limit {
  uint32_t ipv4, ipv6;
} kdp_gso_limit;
kdp_gso_limit kdp_gso_limit_for(uint16_t inside_mtu, uint16_t growth);

#endif
