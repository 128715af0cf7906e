/* kdp/stats.h: counters that mean the same thing for every protocol. Monotonic; read relaxed. */
#ifndef KDP_STATS_H
#define KDP_STATS_H

#include "status.h"

typedef struct kdp_traffic {
  uint64_t packets, bytes;
} kdp_traffic;

typedef struct kdp_statistics {
  kdp_traffic inside_in;    /* IP packets taken from the inside */
  kdp_traffic inside_out;   /* IP packets given to the inside */
  kdp_traffic wire_in;      /* authenticated messages from the wire, whole message bytes (data, keepalive, handshake) */
  kdp_traffic wire_out;     /* messages to the wire, whole message bytes */
  uint64_t handshakes;      /* completed, both roles */
  uint64_t handshake_tries; /* first messages sent */
  uint64_t key_changes;     /* new keys put into use for sending */
  uint64_t roams;           /* endpoints that moved with an authenticated packet */
  uint64_t status[KDP_STATUS_COUNT];
} kdp_statistics;

#endif
