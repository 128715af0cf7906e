#include "wireguard_world.h"

#include <string.h>

#include "wireguard/cookie.h"
#include "wireguard/device.h"

/* What a session may be older than REJECT_AFTER_TIME by on the wire: the initiator's begins when the response arrives.
 */
#define AGE_SLACK (5 * KDP_SECOND)

kdp_family wg_any_family(sim *world) {
  return sim_random_below(sim_random_of(world), 2) ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4;
}

/* ---- The watch ---- */

static wg_session *session_of(wg_world *wg, uint32_t receiver) {
  uint32_t at = (uint32_t)(sim_scatter(receiver) % WG_SESSIONS);
  while (wg->session[at].known && wg->session[at].receiver != receiver)
    at = (at + 1) % WG_SESSIONS;
  return &wg->session[at];
}

static void add_session(wg_world *wg, uint32_t receiver, uint32_t other, bool of_responder) {
  wg_session *session = session_of(wg, receiver);
  if (!session->known && wg->session_count++ > WG_SESSIONS / 2) sim_fail(wg->world, "the watch's table is full");
  *session = (wg_session){
      .receiver = receiver, .other = other, .known = true, .of_responder = of_responder, .born = sim_now(wg->world)};
}

static void watch_initiation(wg_device *from, const sim_datagram *datagram) {
  sim *world = from->wg->world;
  uint64_t now = sim_now(world);
  if (datagram->size != sizeof(kdp_wg_initiation)) sim_fail(world, "an initiation of %u bytes", datagram->size);
  uint64_t count = from->sent[KDP_WG_INITIATION];
  if (count < WG_RECENT) from->initiation[count] = now;
  if (from->one_peer && !from->wg->anything && count > 0 && now - from->last_initiation < KDP_WG_REKEY_TIMEOUT)
    sim_fail(world, "device %u: two initiations within %.3f s", from->number,
             (double)(now - from->last_initiation) / 1e9);
  from->last_initiation = now;
}

static void watch_response(wg_device *from, const sim_datagram *datagram) {
  if (datagram->size != sizeof(kdp_wg_response)) sim_fail(from->wg->world, "a response of %u bytes", datagram->size);
  uint32_t sender = kdp_load_le32(datagram->bytes + 4), receiver = kdp_load_le32(datagram->bytes + 8);
  add_session(from->wg, receiver, sender, true);
  add_session(from->wg, sender, receiver, false);
}

static void watch_transport(wg_device *from, const sim_datagram *datagram) {
  sim *world = from->wg->world;
  if (datagram->size < KDP_WG_TRANSPORT_MIN_SIZE) sim_fail(world, "a transport message of %u bytes", datagram->size);
  uint32_t text = datagram->size - KDP_WG_TRANSPORT_MIN_SIZE;
  if (text % KDP_WG_PADDING != 0 && text < 1000 && !from->wg->anything)
    sim_fail(world, "a text of %u bytes, not padded", text);
  wg_session *session = session_of(from->wg, kdp_load_le32(datagram->bytes + 4));
  if (!session->known) sim_fail(world, "device %u: data for an index that no handshake gave", from->number);
  if (session->of_responder && !session_of(from->wg, session->other)->used)
    sim_fail(world, "device %u: the responder sends with a key that is not confirmed", from->number);
  uint64_t counter = kdp_load_le64(datagram->bytes + 8);
  if (counter < session->newest)
    sim_fail(world, "device %u: counter %llu after %llu: a nonce is used twice", from->number,
             (unsigned long long)counter, (unsigned long long)session->newest - 1);
  if (!from->wg->anything && sim_now(world) - session->born > KDP_WG_REJECT_AFTER_TIME + AGE_SLACK)
    sim_fail(world, "device %u: a session is used for %.1f s", from->number,
             (double)(sim_now(world) - session->born) / 1e9);
  session->newest = counter + 1;
  session->used = true;
  if (text == 0)
    from->keepalives++;
  else
    from->data++;
  if (datagram->size > from->largest_message) from->largest_message = datagram->size;
}

static sim_verdict watch(void *context, sim *world, sim_host *host, sim_datagram *datagram) {
  wg_world *wg = context;
  wg_device *from = sim_host_context(host);
  uint32_t type = datagram->size >= 4 ? kdp_load_le32(datagram->bytes) : 0;
  switch (type) {
  case KDP_WG_INITIATION: watch_initiation(from, datagram); break;
  case KDP_WG_RESPONSE: watch_response(from, datagram); break;
  case KDP_WG_COOKIE_REPLY:
    if (datagram->size != sizeof(kdp_wg_cookie_reply)) sim_fail(world, "a cookie reply of %u bytes", datagram->size);
    wg->cookies++;
    break;
  case KDP_WG_TRANSPORT: watch_transport(from, datagram); break;
  default: sim_fail(world, "device %u: a message of type %u and %u bytes", from->number, type, datagram->size);
  }
  from->sent[type]++;
  from->datagrams++;
  from->sent_bytes += datagram->size;
  from->last_sent = sim_now(world);
  memcpy(from->last_remote, datagram->destination.bytes, sizeof from->last_remote);
  from->last_remote_port = datagram->destination.port;
  return wg->filter ? wg->filter(wg, from, datagram) : SIM_PASS;
}

/* ---- Accounts ---- */

static uint64_t staged_now(const wg_device *device) {
  const kdp_wg_device *engine = kdp_wg_device_of(sim_host_engine(device->host));
  uint64_t staged = 0;
  for (uint32_t i = 0; i < engine->peers.count; i++)
    staged += engine->peers.ordered[i]->staged.count;
  return staged;
}

/* What came from the wire and was found authentic, whatever became of it then. */
static uint64_t authentic(const wg_device *device) {
  static const kdp_status STATUS[] = {KDP_OK, KDP_KEEPALIVE, KDP_WRONG_SOURCE, KDP_ECN_DROPPED, KDP_NOT_IP};
  uint64_t sum = 0;
  for (uint32_t i = 0; i < sizeof STATUS / sizeof STATUS[0]; i++)
    sum += sim_host_handed(device->host, true, STATUS[i]);
  return sum;
}

/* Each packet is accounted for once. */
static void check_device(const wg_device *device) {
  sim *world = device->wg->world;
  const sim_host *host = device->host;
  kdp_statistics statistics = wg_statistics(device);
  sim_check_number(world, statistics.wire_out.packets, ==, device->datagrams);
  sim_check_number(world, statistics.wire_out.bytes, ==, device->sent_bytes);
  sim_check_number(world, statistics.inside_in.packets, ==, sim_host_handed_total(host, false));
  sim_check_number(world, statistics.inside_out.packets, ==, sim_host_came_out(host));
  /* An inner packet that was taken was sent, waits, or was dropped while it waited. */
  uint64_t too_big_later = statistics.status[KDP_TOO_BIG] - sim_host_handed(host, false, KDP_TOO_BIG);
  sim_check_number(world, sim_host_handed(host, false, KDP_OK), ==,
                   device->data + staged_now(device) + statistics.status[KDP_STAGED_DROPPED] + too_big_later);
  sim_check_number(world, statistics.wire_in.packets, <=, authentic(device));
  if (device->wg->cookies == 0) sim_check_number(world, statistics.wire_in.packets, ==, authentic(device));
}

static void check_accounts(sim *world, void *context) {
  wg_world *wg = context;
  (void)world;
  for (uint32_t i = 0; i < wg->count; i++)
    check_device(&wg->device[i]);
}

/* ---- Devices ---- */

wg_world *wg_begin(sim *world) {
  wg_world *wg = sim_lend(world, sizeof *wg);
  wg->world = world;
  sim_set_filter(world, watch, wg);
  sim_at_end(world, check_accounts, wg);
  return wg;
}

static kdp_status create(void *context, const kdp_host *host, const kdp_limits *limits, kdp_now now,
                         kdp_engine **engine) {
  const wg_device *device = context;
  return kdp_wireguard_create(&device->config, limits, host, now, engine);
}

kdp_address wg_endpoint(const wg_device *device, kdp_family family) {
  return sim_host_address(device->host, family);
}

wg_device *wg_add(wg_world *wg, const wg_device_options *options) {
  if (wg->count == sizeof wg->device / sizeof wg->device[0]) sim_fail(wg->world, "too many devices");
  wg_device *device = &wg->device[wg->count++];
  uint8_t n = (uint8_t)wg->count;
  device->wg = wg;
  device->number = n;
  device->one_peer = true;
  device->config = (kdp_wireguard_config){.inside_mtu = options->mtu, .fixed_port = options->port != 0};
  device->inner_ipv4 = sim_ipv4(10, 77, 0, n, 0);
  device->inner_ipv6 = (kdp_address){.family = KDP_FAMILY_IPV6, .bytes = {0xfd, 0x77, [15] = n}};
  sim_random keys = {sim_scatter(sim_seed(wg->world) * 101 + n)};
  sim_random_fill(&keys, device->private_key, sizeof device->private_key);
  kdp_wireguard_public_key(device->private_key, device->public_key);
  sim_host_config config = {.name = options->name,
                            .create = create,
                            .context = device,
                            .limits = options->limits,
                            .port = options->port,
                            .wall = options->wall,
                            .socket_queue = options->socket_queue,
                            .memory_limit = options->memory_limit,
                            .starve = options->starve,
                            .on_event = options->on_event,
                            .on_inside = options->on_inside,
                            .before_call = wg_before_call};
  if (!options->no_ipv4) config.address[config.address_count++] = sim_ipv4(198, 18, 0, n, 0);
  if (!options->no_ipv6) config.address[config.address_count++] = sim_ipv6(n, 1, 0);
  device->host = sim_host_add(wg->world, &config);
  device->no_key = options->no_key;
  if (!device->no_key) wg_set_key(device);
  return device;
}

kdp_status wg_apply(wg_device *device, const kdp_wireguard_change *change) {
  kdp_out *out = sim_host_output(device->host);
  kdp_status status = kdp_wireguard_apply(sim_host_engine(device->host), change, out, sim_host_now(device->host));
  sim_host_flush(device->host);
  return status;
}

void wg_set_key(wg_device *device) {
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
  memcpy(change.private_key, device->private_key, KDP_KEY_SIZE);
  sim_check_number(device->wg->world, wg_apply(device, &change), ==, KDP_OK);
}

void wg_restart(wg_device *device) {
  sim_host_restart(device->host);
  memset(device->sent, 0, sizeof device->sent);
  device->sent_bytes = device->keepalives = device->datagrams = device->data = device->last_initiation = 0;
  if (!device->no_key) wg_set_key(device);
}

static kdp_prefix host_prefix(const kdp_address *address) {
  kdp_prefix prefix = {.family = address->family, .length = address->family == KDP_FAMILY_IPV6 ? 128 : 32};
  memcpy(prefix.bytes, address->bytes, prefix.length / 8);
  return prefix;
}

void wg_peer(wg_device *device, const wg_device *peer, const wg_peer_options *options) {
  kdp_wireguard_prefix_change prefix[2] = {{.prefix = host_prefix(&peer->inner_ipv4)},
                                           {.prefix = host_prefix(&peer->inner_ipv6)}};
  kdp_wireguard_peer_change peer_change = {.fields = KDP_WIREGUARD_PEER_SET_KEEPALIVE,
                                           .keepalive_seconds = options->keepalive,
                                           .prefix = options->no_prefixes ? NULL : prefix,
                                           .prefix_count = options->no_prefixes ? 0 : 2};
  memcpy(peer_change.public_key, peer->public_key, KDP_KEY_SIZE);
  if (options->preshared_key) {
    peer_change.fields |= KDP_WIREGUARD_PEER_SET_PRESHARED_KEY;
    memcpy(peer_change.preshared_key, options->preshared_key, KDP_KEY_SIZE);
  }
  if (options->endpoint != KDP_FAMILY_NONE) {
    peer_change.fields |= KDP_WIREGUARD_PEER_SET_ENDPOINT;
    peer_change.endpoint = wg_endpoint(peer, options->endpoint);
  }
  kdp_wireguard_change change = {.peer = &peer_change, .peer_count = 1};
  sim_check_number(device->wg->world, wg_apply(device, &change), ==, KDP_OK);
}

void wg_join(wg_device *a, wg_device *b, kdp_family outer, const uint8_t *preshared_key) {
  wg_peer(b, a, &(wg_peer_options){.preshared_key = preshared_key});
  wg_peer(a, b, &(wg_peer_options){.endpoint = outer, .preshared_key = preshared_key});
}

void wg_remove_peer(wg_device *device, const wg_device *peer) {
  kdp_wireguard_peer_change peer_change = {.fields = KDP_WIREGUARD_PEER_REMOVE};
  memcpy(peer_change.public_key, peer->public_key, KDP_KEY_SIZE);
  kdp_wireguard_change change = {.peer = &peer_change, .peer_count = 1};
  sim_check_number(device->wg->world, wg_apply(device, &change), ==, KDP_OK);
}

kdp_wireguard_peer_info wg_info(const wg_device *device, const wg_device *peer) {
  kdp_wireguard_peer_info info = {0};
  kdp_status status = kdp_wireguard_find_peer(sim_host_engine(device->host), peer->public_key, &info);
  sim_check_number(device->wg->world, status, ==, KDP_OK);
  return info;
}

kdp_statistics wg_statistics(const wg_device *device) {
  kdp_statistics statistics;
  kdp_engine_statistics(sim_host_engine(device->host), &statistics);
  return statistics;
}

sim_flow *wg_flow(wg_device *from, wg_device *to, const wg_flow_options *options) {
  bool v6 = options->inner == KDP_FAMILY_IPV6;
  kdp_address source = v6 ? from->inner_ipv6 : from->inner_ipv4, destination = v6 ? to->inner_ipv6 : to->inner_ipv4;
  source.port = 1000;
  destination.port = 2000;
  return sim_flow_add(from->wg->world, &(sim_flow_config){.from = from->host,
                                                          .to = to->host,
                                                          .source = source,
                                                          .destination = destination,
                                                          .size_min = options->size_min ? options->size_min : 60,
                                                          .size_max = options->size_max ? options->size_max : 1420,
                                                          .start = sim_now(from->wg->world) + options->start,
                                                          .interval = options->interval,
                                                          .burst = options->burst,
                                                          .ecn = options->ecn,
                                                          .answers = options->answers});
}

wg_pair wg_pair_begin(sim *world, const sim_conditions *conditions) {
  return wg_pair_begin_over(world, conditions, wg_any_family(world));
}

wg_pair wg_pair_begin_over(sim *world, const sim_conditions *conditions, kdp_family outer) {
  wg_pair pair = {.wg = wg_begin(world), .world = world, .outer = outer};
  sim_random *random = sim_random_of(world);
  pair.a = wg_add(pair.wg, &(wg_device_options){.name = "a"});
  pair.b = wg_add(pair.wg, &(wg_device_options){.name = "b", .port = 51820});
  bool with_key = sim_random_below(random, 2);
  if (with_key) sim_random_fill(random, pair.preshared_key, KDP_KEY_SIZE);
  sim_host_conditions(pair.a->host, conditions);
  wg_join(pair.a, pair.b, pair.outer, with_key ? pair.preshared_key : NULL);
  pair.up =
      wg_flow(pair.a, pair.b,
              &(wg_flow_options){
                  .inner = wg_any_family(world), .start = KDP_SECOND, .interval = KDP_SECOND, .burst = 4, .ecn = 2});
  pair.down = wg_flow(
      pair.b, pair.a,
      &(wg_flow_options){.inner = wg_any_family(world), .start = 2 * KDP_SECOND, .interval = KDP_SECOND, .burst = 3});
  return pair;
}

void wg_pair_silence(wg_pair *pair) {
  sim_flow_stop(pair->up);
  sim_flow_stop(pair->down);
}

void wg_forge_initiation(sim *world, const wg_device *to, uint8_t message[148], bool low_order) {
  kdp_wg_cookie cookie;
  sim_random_fill(sim_random_of(world), message, 148);
  kdp_store_le32(message, KDP_WG_INITIATION);
  if (low_order) memset(message + 8, 0, KDP_KEY_SIZE);
  kdp_wg_cookie_start(&cookie, to->public_key);
  kdp_wg_macs_write(&cookie, message, 148, 0);
}

/* ---- Looking inside ---- */

/* Timers by name, in the order of kdp_wg_timer; what a seed met of them is in the coverage's marks. */
const char *const wg_mark_names[] = {"WIPE",      "SESSION_END",          "GIVE_UP", "RETRANSMIT", "NEW_HANDSHAKE",
                                     "KEEPALIVE", "PERSISTENT_KEEPALIVE", NULL};

void wg_before_call(sim_host *host, void *context) {
  const wg_device *device = context;
  const kdp_wg_device *engine = kdp_wg_device_of(sim_host_engine(host));
  uint64_t boot = sim_host_now(host).boot;
  if (kdp_wg_heap_first(&engine->heap) > boot) return;
  for (uint32_t i = 0; i < engine->peers.count; i++)
    for (unsigned timer = 0; timer < KDP_WG_TIMER_COUNT; timer++)
      if (engine->peers.ordered[i]->timer[timer] <= boot) sim_mark(device->wg->world, timer);
}
