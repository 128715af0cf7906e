/* Planning of sends: the packets of a wire batch, grouped by path and size, become messages for sendmmsg(2) or an
   io_uring. A group of more than one leaves as one segmented send (UDP_SEGMENT). Order within a path never changes. */
#ifndef KDP_IO_SEND_H
#define KDP_IO_SEND_H
#include <sys/socket.h>
#include <sys/uio.h>

#include "io/route_table.h"
#include "io/udp.h"
#include "kdp/batch.h"
#include "kdp/socket_address.h"

/* 128 since Linux 6.11, 64 before: a refused send of more than 64 lowers the limit before it turns segmentation off. */
enum { KDP_SEND_SEGMENTS = 128, KDP_SEND_SEGMENTS_OLD = 64, KDP_SEND_BYTES = 65507 };
enum { KDP_SEND_ITEMS = KDP_BATCH_CAPACITY, KDP_SEND_CONTROL = 96 };

typedef struct kdp_send_rules {
  bool usable[KDP_UDP_SOCKETS]; /* there is such a socket */
  bool full[KDP_UDP_SOCKETS];   /* it is full: what is for it waits */
  bool segment[KDP_UDP_SOCKETS];
  uint16_t segments_most;
  const kdp_route_table *routes;
} kdp_send_rules;

/* One message. */
typedef struct kdp_send_item {
  uint16_t first, count; /* packets: order[first], ... */
  uint16_t path;         /* index into the batch's paths */
  uint16_t segment;      /* size of all datagrams but the last; 0: one datagram */
  uint8_t socket;        /* KDP_UDP_IPV4 or KDP_UDP_IPV6 */
  uint8_t ecn;
  bool df;       /* to be sent with DF set */
  int32_t error; /* what became of it: 0, an errno, or KDP_SEND_NOT_TRIED */
} kdp_send_item;
enum { KDP_SEND_NOT_TRIED = -1 };

typedef struct kdp_send_plan {
  uint32_t item_count, packet_count; /* packet_count: packets of the batch that the plan covers, a prefix */
  kdp_send_item item[KDP_SEND_ITEMS];
  uint16_t order[KDP_BATCH_CAPACITY];
  struct mmsghdr message[KDP_SEND_ITEMS]; /* of each item */
  struct iovec iov[KDP_BATCH_CAPACITY];
  kdp_socket_address name[KDP_BATCH_PATHS];
  socklen_t name_size[KDP_BATCH_PATHS];
  _Alignas(struct cmsghdr) uint8_t control[KDP_SEND_ITEMS][KDP_SEND_CONTROL];
} kdp_send_plan;

/* By which socket a path leaves. */
static inline uint8_t kdp_send_socket(const kdp_path *path) {
  return path->remote.family == KDP_FAMILY_IPV6 ? KDP_UDP_IPV6 : KDP_UDP_IPV4;
}

/* Plans the first `limit` packets of the batch (fewer when the plan is full). Packets whose path has no address
   or port, or an address of a family without socket, or with one that is full, are items whose error is set already. */
void kdp_send_plan_make(kdp_send_plan *plan, const kdp_batch *batch, uint32_t limit, const kdp_send_rules *rules);

/* Adds what a message says besides its bytes: the source that `path` asks for, the ECN field and the segments' size
   (each unless 0) to msg_control, which has KDP_SEND_CONTROL bytes. */
void kdp_send_control(struct msghdr *message, const kdp_path *path, uint8_t ecn, uint16_t segment);

/* Sends one message with DF set: for this one the socket's option is changed. As sendmmsg(2). */
int kdp_send_with_df(int fd, bool ipv6, struct mmsghdr *message);

#endif
