/* What one receive brought, and cutting it into datagrams. */
#ifndef KDP_IO_RECEIVE_H
#define KDP_IO_RECEIVE_H
#include <sys/socket.h>

#include "kdp/batch.h"
#include "kdp/socket_address.h"

/* One receive: a datagram, or a run of datagrams that the kernel joined (UDP_GRO). */
typedef struct kdp_received {
  kdp_slot slot;
  uint8_t *data;
  uint32_t size;
  uint16_t head;    /* free bytes before */
  uint32_t tail;    /* and behind */
  uint32_t segment; /* size of all datagrams but the last; `size` when there is one */
  kdp_path path;
  uint8_t ecn;
  bool truncated; /* the kernel cut the payload or what describes it: not to be used */
} kdp_received;

/* Reads addresses and control messages of a receive into `received`, whose slot, data, size, head and tail are set. */
void kdp_received_describe(kdp_received *received, const struct msghdr *message, kdp_link link);

/* Number of datagrams in it: at least one, a datagram may be empty. */
uint32_t kdp_received_count(const kdp_received *received);

/* Appends the datagrams to the batch; each takes one use of the slot, the caller's own use is among them. False when
   the batch has too little room for packets or paths; then nothing was appended. */
bool kdp_received_cut(const kdp_received *received, kdp_pool *pool, kdp_batch *batch) KDP_MUST_USE;

#endif
