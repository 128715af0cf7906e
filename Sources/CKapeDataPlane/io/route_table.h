/* Destinations whose route refused a segmented send: as too large (EMSGSIZE), or at all. Few, and mostly none: a small
   table that costs nothing while it is empty. */
#ifndef KDP_IO_ROUTE_TABLE_H
#define KDP_IO_ROUTE_TABLE_H
#include "kdp/base.h"
#include "kdp/time.h"

enum { KDP_ROUTES = 64 };
/* After which a route's MTU is asked for again. */
#define KDP_ROUTE_RECHECK (600 * KDP_SECOND)

typedef struct kdp_route {
  kdp_path path;
  uint16_t mtu;     /* what the route said, 0: nothing */
  uint16_t largest; /* larger datagrams leave unsegmented */
  uint64_t recheck; /* boot clock */
} kdp_route;

typedef struct kdp_route_table {
  kdp_route route[KDP_ROUTES];
  uint32_t count;
} kdp_route_table;

/* The largest datagram that may be part of a segmented send to `remote`; UINT16_MAX when nothing is known against it.
 */
uint16_t kdp_route_largest(const kdp_route_table *table, const kdp_address *remote);
/* A segmented send of datagrams of `size` bytes was refused; `mtu` is what the route says now. The entry that was
   touched longest ago goes when the table is full. */
void kdp_route_refuse(kdp_route_table *table, const kdp_path *path, uint16_t size, uint16_t mtu, uint64_t boot);
/* No datagram to this destination may be part of a segmented send, until its MTU is another or there are new sockets.
 */
void kdp_route_refuse_all(kdp_route_table *table, const kdp_path *path, uint16_t mtu, uint64_t boot);
void kdp_route_forget_refused(kdp_route_table *table); /* of those that refused all: there are new sockets */
/* What the route to `remote` says at `boot`. Another MTU than before, or none when the entry was due to be asked
   again, takes back what was refused. */
void kdp_route_learn(kdp_route_table *table, const kdp_address *remote, uint16_t mtu, uint64_t boot);
/* When the next route is to be asked again; KDP_NEVER. */
uint64_t kdp_route_deadline(const kdp_route_table *table);

/* What the kernel takes for the MTU of the way to path->remote: 0 when it does not say. Makes a socket and closes it.
 */
uint16_t kdp_route_ask_mtu(const kdp_path *path, uint32_t fwmark);

#endif
