/* A WireGuard tunnel in a program of yours: IP packets at `inside` (a TUN, say), datagrams at `udp`, a UDP socket. */
#include "kdp.h"
#include <poll.h>
#include <unistd.h>
kdp_status embed(int inside, int udp, const kdp_wireguard_change *peers) {
  struct pollfd ready[] = {{inside, POLLIN, 0}, {udp, POLLIN, 0}};
  uint8_t bytes[UINT16_MAX];
  kdp_embed *tunnel = NULL;
  kdp_status status = kdp_embed_wireguard(NULL, peers, &tunnel);
  for (ssize_t size = 1; !status && size > 0 && poll(ready, 2, kdp_embed_timeout(tunnel, kdp_now_read())) >= 0;) {
    if (ready[0].revents && (size = read(inside, bytes, sizeof bytes)) > 0) kdp_embed_inside(tunnel, bytes, size);
    if (ready[1].revents) status = kdp_embed_receive(tunnel, udp);
    for (kdp_embed_output next; kdp_embed_next(tunnel, kdp_now_read(), &next);) {
      kdp_embed_send(tunnel, udp, &next); /* what concerns the socket: datagrams, and what their routes take */
      if (next.kind == KDP_EMBED_DELIVER) size = write(inside, next.packet.data, next.packet.size);
    }
  }
  kdp_embed_destroy(tunnel);
  return status;
}
