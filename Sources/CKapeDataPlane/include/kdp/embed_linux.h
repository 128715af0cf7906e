/* kdp/embed_linux.h: an embedded tunnel (embed.h) over a UDP socket of the caller's, on Linux. */
#ifndef KDP_EMBED_LINUX_H
#define KDP_EMBED_LINUX_H

#include "embed.h"
#include "wireguard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A WireGuard engine with `change` applied, in a tunnel, over malloc, getrandom(2) and the system's clocks. `config`
   NULL: the defaults. Fails as kdp_wireguard_create, kdp_wireguard_apply and kdp_embed_create do. */
kdp_status kdp_embed_wireguard(const kdp_wireguard_config *config, const kdp_wireguard_change *change,
                               kdp_embed **tunnel) KDP_MUST_USE __attribute__((nonnull(2, 3)));

/* Lets the socket tell what a path and the ECN field are known by, and fragment where it has to, as the kernel's
   WireGuard does. It may be bound, connected, or neither. Without this call datagrams pass, too, but answers may leave
   from another address than the one that was asked, and congestion goes unnoticed. SYSTEM, with errno. */
kdp_status kdp_embed_prepare(int udp) KDP_MUST_USE;

/* Hands in the datagrams that wait in the socket, without waiting for any, as far as there is room. OK, or SYSTEM with
   errno for an error other than those that a datagram sent before has brought about (ECONNREFUSED and the like). */
kdp_status kdp_embed_receive(kdp_embed *tunnel, int udp) KDP_NONNULL;

/* Carries out what concerns the socket: sends a datagram, or asks the route of a path what it takes and tells the
   engine. Other kinds are left to the caller, and OK. SEND_TOO_BIG: larger than its route takes, which the engine
   knows from now on. SEND_REFUSED, with errno: lost, as datagrams can be. */
kdp_status kdp_embed_send(kdp_embed *tunnel, int udp, const kdp_embed_output *output) KDP_NONNULL;

#ifdef __cplusplus
}
#endif
#endif
