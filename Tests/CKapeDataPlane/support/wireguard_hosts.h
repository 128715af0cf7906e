/* WireGuard between two hosts as users have it: on each a TUN of the kernel's, the engine and a worker. Inside are
   10.77.0.1 and .2, fd77::1 and ::2 (on `kt0`, MTU 1420, whole /24 and /64, of which only these two have a peer);
   outside the addresses of two_hosts.h, port 4500. */
#ifndef KDP_TEST_WIREGUARD_HOSTS_H
#define KDP_TEST_WIREGUARD_HOSTS_H
#include <sys/socket.h>

#include "kdp/socket_address.h"
#include "kdp/wireguard.h"
#include "kdp/worker.h"
#include "support/two_hosts.h"

typedef struct wireguard_host {
  kdp_tun tun;
  kdp_engine *engine;
  kdp_worker *worker;
  uint8_t private_key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE];
} wireguard_host;

typedef struct wireguard_hosts {
  two_hosts hosts;
  wireguard_host host[HOSTS];
  bool underlay_ipv6;
} wireguard_hosts;

enum { WIREGUARD_HOSTS_PORT = 4500 };

void wireguard_hosts_open(wireguard_hosts *t, kdp_backend backend, bool underlay_ipv6, uint32_t fallbacks);
void wireguard_hosts_close(wireguard_hosts *t);

/* On the worker's thread of a host; returns when it is done. */
typedef void wireguard_hosts_run(wireguard_hosts *t, int host, kdp_out *out, kdp_now now);
void wireguard_hosts_call(wireguard_hosts *t, int host, wireguard_hosts_run *run);
/* The other end's endpoint, from now on: its last byte. */
void wireguard_hosts_move_peer(wireguard_hosts *t, int host, uint8_t last_byte);

/* An address: `inside` or of the wire; `last_byte` is 1 or 2 for the two hosts. */
kdp_address wireguard_hosts_address(bool inside, bool ipv6, uint8_t last_byte, uint16_t port);
socklen_t wireguard_hosts_socket_address(bool inside, bool ipv6, uint8_t last_byte, uint16_t port,
                                         kdp_socket_address *address);
/* A UDP socket on a host, bound to `port` unless that is 0, whose calls wait a second at most. */
int wireguard_hosts_udp(wireguard_hosts *t, int host, bool ipv6, uint16_t port);
/* A datagram goes from one host to the other through the tunnel, handshake included; fails when it does not. */
void wireguard_hosts_pass(wireguard_hosts *t, int from, bool ipv6);

#endif
