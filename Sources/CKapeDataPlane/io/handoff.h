/* What a worker hands to the worker of lane 0: packets that only that lane may handle, and what only it may be told. A
   ring of bytes with one producer and one consumer; its memory is taken at creation, and what finds no room is the
   producer's to count. */
#ifndef KDP_IO_HANDOFF_H
#define KDP_IO_HANDOFF_H
#include "kdp/batch.h"

/* A power of two, and twice the largest packet: then an empty ring has room for it, wherever it begins. More than the
   128 packets that are staged for a peer without a session. */
enum { KDP_HANDOFF_BYTES = 256 << 10 };

typedef enum kdp_handoff_kind {
  KDP_HANDOFF_INSIDE = 1, /* a packet from the inside */
  KDP_HANDOFF_OUTSIDE,    /* a datagram from `path` */
  KDP_HANDOFF_PATH_MTU,   /* what `path` takes: the two bytes of an uint16_t */
  KDP_HANDOFF_EVENT       /* a kdp_event */
} kdp_handoff_kind;

/* Its bytes lie behind it. */
typedef struct kdp_handoff_record {
  uint32_t size;
  uint8_t kind, ecn;
  uint16_t sockets; /* EVENT: the producer's kdp_worker.sockets_taken */
  kdp_path path;
} kdp_handoff_record;

typedef struct kdp_handoff kdp_handoff;

kdp_status kdp_handoff_create(const kdp_host *host, kdp_handoff **handoff) KDP_MUST_USE;
void kdp_handoff_destroy(kdp_handoff *handoff); /* NULL is allowed; wipes */

/* The producer's. False: no room. */
bool kdp_handoff_push(kdp_handoff *handoff, const kdp_handoff_record *record, const void *bytes) KDP_MUST_USE;
/* After pushes, or to say that there is something else to look at: true when the consumer must be woken. Only the first
   call after kdp_handoff_listen says so. */
bool kdp_handoff_tell(kdp_handoff *handoff) KDP_MUST_USE;

/* The consumer's. After a wake-up and before it looks: from now on it wants to be woken again. */
void kdp_handoff_listen(kdp_handoff *handoff);
/* The oldest record, valid until it is popped; NULL: there is none. */
const kdp_handoff_record *kdp_handoff_peek(kdp_handoff *handoff);
static inline const uint8_t *kdp_handoff_bytes(const kdp_handoff_record *record) {
  return (const uint8_t *)(record + 1);
}
void kdp_handoff_pop(kdp_handoff *handoff);

#endif
