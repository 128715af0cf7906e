/* A WireGuard device for tests: an engine with its pool, its host and a clock of its own making. What it sends,
   delivers and tells is kept until the test has looked at it. Everything random comes from a seed. */
#ifndef KDP_TEST_WIREGUARD_NODE_H
#define KDP_TEST_WIREGUARD_NODE_H

#include "kdp/wireguard.h"
#include "support/rng.h"
#include "wireguard/device.h"

enum { NODE_KEPT = 1024, NODE_DATAGRAM = 66000 };

typedef struct kept_datagram {
  uint8_t *bytes;
  uint32_t size;
  kdp_path path; /* outside: where it goes */
  uint8_t ecn, flags;
} kept_datagram;

typedef struct node {
  kdp_host host;
  rng random;
  const uint8_t *fixed_random; /* these bytes come first, if any */
  size_t fixed_random_size;
  size_t allocated, allocated_most, allocations; /* bytes now, at most; calls so far */
  size_t fail_after;                             /* allocations that still succeed; SIZE_MAX: all */
  char keylog[4096];

  kdp_pool *pool;
  kdp_out_storage *storage;
  kdp_out *out;
  kdp_engine *engine;
  kdp_lane *lane;
  kdp_wg_device *device; /* the engine, seen from inside */
  kdp_address address;
  uint8_t private_key[32], public_key[32];

  kept_datagram sent[NODE_KEPT], delivered[NODE_KEPT];
  uint32_t sent_count, delivered_count;
  kdp_action action[64];
  uint32_t action_count;
  kdp_event event[NODE_KEPT];
  uint32_t event_count;
} node;

/* A device with key pair number `number`, at 192.0.2.`number` port 51820. Config and limits may be NULL. */
node *node_make(uint8_t number, const kdp_wireguard_config *config, const kdp_limits *limits);
void node_free(node *n);

/* Its own private key is set by node_make; this removes or sets one. */
kdp_status node_set_private_key(node *n, const uint8_t key[32], kdp_now now);

/* Adds or changes peer `other` with `fields` on top of the endpoint (when `known`) and the prefix 10.0.0.`number`/32.
 */
kdp_wireguard_peer_change node_peer(const node *other, bool endpoint, const kdp_wireguard_prefix_change *prefix,
                                    uint32_t prefix_count);
kdp_wireguard_prefix_change node_prefix(const node *other); /* 10.0.0.number/32 */
kdp_status node_apply(node *n, const kdp_wireguard_change *change, kdp_now now);
kdp_status node_add_peer(node *n, const node *other, bool endpoint, kdp_now now);
kdp_status node_set_keepalive(node *n, const node *other, uint16_t seconds, kdp_now now);

/* Calls of the engine; what comes out is kept. */
kdp_status node_send(node *n, const uint8_t *packet, uint32_t size, kdp_now now);
kdp_status node_send_to(node *n, const node *other, uint32_t payload, kdp_now now); /* an IPv4 UDP packet */
kdp_status node_receive(node *n, const void *bytes, uint32_t size, const kdp_path *path, kdp_now now);
void node_tick(node *n, kdp_now now);
/* Ticks at every deadline up to `until`; returns the time it has reached. */
kdp_now node_run(node *n, kdp_now now, uint64_t until);
void node_network_changed(node *n, kdp_now now);

/* The path along which `from` reaches `to`, as `to` sees it. */
kdp_path node_path(const node *to, const node *from);
/* Gives sent datagram `index` of `from` to `to`. */
kdp_status node_pass(node *from, uint32_t index, node *to, kdp_now now);
/* Passes everything both ways until both are quiet; what was passed is forgotten. */
void node_exchange(node *a, node *b, kdp_now now);
/* Ticks both at their deadlines up to `until` and passes everything at once; returns the time it has reached. */
kdp_now node_run_both(node *a, node *b, kdp_now now, uint64_t until);
void node_forget(node *n); /* sent, delivered, events and actions */
/* Both know each other and have a session that a began and both use. */
void node_connect(node *a, node *b, kdp_now now);
/* Sent messages of a type; the index of the last of them goes to `last` unless it is NULL. */
uint32_t node_count_sent(const node *n, kdp_wg_message_type type, uint32_t *last);
uint32_t node_count_events(const node *n, kdp_event_kind kind, kdp_event *last);
uint32_t node_count_actions(const node *n, kdp_action_kind kind, kdp_action *last);
uint64_t node_counted(const node *n, kdp_status status);
kdp_wg_peer *node_peer_of(node *n, const node *other);

/* An IPv4 or IPv6 UDP packet from node to node, checksums not filled in. */
uint32_t node_packet(uint8_t *to, const node *from, const node *target, uint32_t payload);

static inline kdp_now node_time(uint64_t milliseconds) {
  return (kdp_now){.boot = milliseconds * KDP_MILLISECOND,
                   .wall = UINT64_C(1700000000) * KDP_SECOND + milliseconds * KDP_MILLISECOND};
}
static inline kdp_now node_later(kdp_now now, uint64_t nanoseconds) {
  return (kdp_now){.boot = now.boot + nanoseconds, .wall = now.wall + nanoseconds};
}

#endif
