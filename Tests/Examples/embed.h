/* What the program round an embedded tunnel has: packets, a socket, clocks. */
#ifndef KAPE_EXAMPLES_EMBED_H
#define KAPE_EXAMPLES_EMBED_H

#include <sys/uio.h>

#include "kdp.h"

typedef enum embed_event_kind { EMBED_STOP, EMBED_PACKET, EMBED_DATAGRAM, EMBED_DEADLINE } embed_event_kind;

typedef struct embed_event {
  embed_event_kind kind;
  struct iovec bytes;
  kdp_path path; /* of a datagram */
} embed_event;

typedef struct embed_host {
  embed_event (*wait)(struct embed_host *host, uint64_t deadline);
  void (*send)(struct embed_host *host, const kdp_packet *datagram, const kdp_path *path);
  void (*deliver)(struct embed_host *host, const kdp_packet *packet);
  kdp_now (*now)(struct embed_host *host);
} embed_host;

kdp_status embed(embed_host *my, const kdp_wireguard_change *peers);

#endif
