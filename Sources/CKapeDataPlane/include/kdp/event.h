/* kdp/event.h: what an engine tells its owner. Plain, no pointer, no secret. */
#ifndef KDP_EVENT_H
#define KDP_EVENT_H

#include "base.h"
#include "status.h"
#include "time.h"

/* Text and credentials stay behind a ticket until answered or its deadline, then are wiped. 0: none. */
typedef uint64_t kdp_ticket;

typedef enum kdp_event_kind {
  KDP_EVENT_HANDSHAKE_STARTED = 1, /* value: attempt number, from 1 */
  KDP_EVENT_CONNECTED,             /* first session of a peer that had none */
  KDP_EVENT_REKEYED,               /* a new session replaced one */
  KDP_EVENT_HANDSHAKE_FAILED,      /* gave up; status says why; value: attempts */
  KDP_EVENT_DISCONNECTED,          /* the last session expired; status says why */
  KDP_EVENT_ENDPOINT_CHANGED,      /* address: the new remote */
  KDP_EVENT_PREFIX_MOVED,          /* address and value (prefix length): taken from `other` by `peer` */
  KDP_EVENT_REBIND,                /* a new local port was asked for; status: OK, or UNSUPPORTED with a fixed port */
  KDP_EVENT_RESOLVE,               /* `peer`'s endpoint name should be looked up again */
  KDP_EVENT_UNDER_LOAD,            /* value 1 on entry, 0 on leaving */
  KDP_EVENT_CLOCK_BACK,            /* the wall clock is behind the newest stamp sent; value: ns behind */
  KDP_EVENT_FALLBACK,    /* io: an offload was turned off; value: kdp_fallback; address: its scope, if one path */
  KDP_EVENT_LINK_ERROR,  /* io: a socket error with an action; value: errno */
  KDP_EVENT_INSIDE_GONE, /* io: the inside (a TUN) is gone */
  KDP_EVENT_TICKET       /* something waits to be read or answered behind `ticket` */
} kdp_event_kind;

typedef struct kdp_event {
  uint16_t kind;   /* kdp_event_kind */
  uint16_t status; /* kdp_status */
  uint32_t lost;   /* events overwritten before this one, because nobody took them */
  uint64_t boot;   /* when, ns of the boot clock */
  uint64_t peer;   /* the engine's number of the peer or session, 0: none; never used twice in one engine */
  uint64_t other;
  uint64_t value;
  kdp_address address;
  kdp_ticket ticket;
} kdp_event;

#endif
