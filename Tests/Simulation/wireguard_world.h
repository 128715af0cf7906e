/* WireGuard devices in a simulated network: making and joining them, and a watch over everything that they send, which
   holds it to what the paper asks of the wire. */
#ifndef SIM_WIREGUARD_WORLD_H
#define SIM_WIREGUARD_WORLD_H
#include "kdp/wireguard.h"
#include "scenario.h"
#include "wireguard/messages.h"

typedef struct wg_world wg_world;

enum { WG_MESSAGE_TYPES = 5, WG_RECENT = 512 };

typedef struct wg_device {
  wg_world *wg;
  sim_host *host;
  uint32_t number; /* from 1 */
  uint8_t private_key[KDP_KEY_SIZE], public_key[KDP_KEY_SIZE];
  kdp_wireguard_config config;
  kdp_address inner_ipv4, inner_ipv6;
  /* What it sent. */
  uint64_t sent[WG_MESSAGE_TYPES], sent_bytes, keepalives, datagrams, data;
  uint64_t last_sent, last_initiation;
  uint64_t initiation[WG_RECENT]; /* times of its first initiations */
  bool no_key;
  bool one_peer;            /* then the watch also holds it to the pace of initiations */
  uint32_t largest_message; /* bytes of the largest transport message */
  uint8_t last_remote[16];  /* where its last datagram went */
  uint16_t last_remote_port;
} wg_device;

/* The watch's view of one direction of a session, by the index that its messages carry. */
typedef struct wg_session {
  uint32_t receiver, other; /* other: the index of the opposite direction */
  bool known, of_responder; /* of_responder: it is the responder that sends with it */
  bool used;
  uint64_t newest, born; /* newest: counter plus one */
} wg_session;

enum { WG_SESSIONS = 16384 };

struct wg_world {
  sim *world;
  wg_device device[256];
  uint32_t count;
  wg_session session[WG_SESSIONS];
  uint32_t session_count;
  uint64_t cookies;
  /* A scenario's hand: asked after the watch has looked. */
  sim_verdict (*filter)(wg_world *wg, wg_device *from, sim_datagram *datagram);
  void *filter_context;
  bool anything; /* the clocks and calls are too wild for the watch to expect a pace */
};

wg_world *wg_begin(sim *world);

typedef struct wg_device_options {
  const char *name;
  uint16_t port; /* fixed when not 0 */
  uint16_t mtu;
  kdp_limits limits;
  bool no_ipv4, no_ipv6; /* addresses outside */
  bool no_key;           /* the private key comes later */
  uint64_t wall;
  uint32_t socket_queue;
  size_t memory_limit;
  uint32_t starve;
  void (*on_event)(sim_host *host, const kdp_event *event, void *device);
  bool (*on_inside)(sim_host *host, const uint8_t *bytes, uint32_t size, void *device);
} wg_device_options;

wg_device *wg_add(wg_world *wg, const wg_device_options *options);

typedef struct wg_peer_options {
  kdp_family endpoint; /* NONE: not told where the peer is */
  uint16_t keepalive;
  const uint8_t *preshared_key;
  bool no_prefixes; /* else the peer's inner addresses */
} wg_peer_options;

/* Makes `peer` a peer of `device`. */
void wg_peer(wg_device *device, const wg_device *peer, const wg_peer_options *options);
/* Both ways; `a` knows where `b` is, and `b` learns it. */
void wg_join(wg_device *a, wg_device *b, kdp_family outer, const uint8_t *preshared_key);
void wg_remove_peer(wg_device *device, const wg_device *peer);
void wg_set_key(wg_device *device);
/* A new engine, with a key (unless it had none) and without peers; what the watch counts begins anew. */
void wg_restart(wg_device *device);
kdp_status wg_apply(wg_device *device, const kdp_wireguard_change *change);
kdp_wireguard_peer_info wg_info(const wg_device *device, const wg_device *peer);
kdp_statistics wg_statistics(const wg_device *device);
kdp_address wg_endpoint(const wg_device *device, kdp_family family);

/* A flow from one device's inner address to the other's. */
typedef struct wg_flow_options {
  kdp_family inner;
  uint64_t start, interval;
  uint32_t burst, size_min, size_max;
  uint8_t ecn;
  sim_flow *answers;
} wg_flow_options;
sim_flow *wg_flow(wg_device *from, wg_device *to, const wg_flow_options *options);

/* Two joined devices with a flow each way: what most scenarios begin with. About two packets a second. */
typedef struct wg_pair {
  wg_world *wg;
  sim *world;
  wg_device *a, *b;
  sim_flow *up, *down; /* a to b, b to a */
  kdp_family outer;
  uint8_t preshared_key[KDP_KEY_SIZE];
} wg_pair;
wg_pair wg_pair_begin(sim *world, const sim_conditions *conditions);
/* The same over a family of the caller's. */
wg_pair wg_pair_begin_over(sim *world, const sim_conditions *conditions, kdp_family outer);
void wg_pair_silence(wg_pair *pair);

/* A datagram of random content whose MAC1 a device accepts: what anyone can make who knows its public key. With an
   ephemeral key of zero, if wanted. */
void wg_forge_initiation(sim *world, const wg_device *to, uint8_t message[148], bool low_order);

/* Which of the marks of sim_coverage are whose. */
extern const char *const wg_mark_names[];

void wg_before_call(sim_host *host, void *device);
kdp_family wg_any_family(sim *world);
static inline uint64_t wg_seconds(double seconds) {
  return (uint64_t)(seconds * 1e9);
}
#endif
