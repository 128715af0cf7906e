/* Ordinary life of WireGuard: traffic, many peers, sizes, prefixes. */
#include <string.h>

#include "wireguard_scenarios.h"
#include "wireguard_world.h"

#define GOOD_NETWORK                                                                                                   \
  &(sim_conditions) {                                                                                                  \
    .delay = 20 * KDP_MILLISECOND                                                                                      \
  }

/* Nothing is lost, not even across five changes of key; nothing is said that need not be. */
void wg_clean(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_run_until(world, 700 * KDP_SECOND);
  wg_pair_silence(&pair);
  sim_run_for(world, 30 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  /* The other side does not know where to send before it has heard: at most its first burst waits or is refused. */
  sim_check_number(world, down.delivered, ==, down.sent);
  sim_check_number(world, up.late + down.late, ==, 0);
  sim_check_number(world, up.longest_delay, <, 200 * KDP_MILLISECOND);
  sim_check_number(world, down.longest_delay, <, 200 * KDP_MILLISECOND);
  kdp_statistics a = wg_statistics(pair.a), b = wg_statistics(pair.b);
  sim_check_number(world, a.key_changes, >=, 6); /* at 0, 120, 240, 360, 480, 600 s */
  sim_check_number(world, a.handshakes, ==, b.handshakes);
  /* One initiation for each 120 s, by the first initiator alone while it has data to send. */
  sim_check_number(world, a.handshake_tries + b.handshake_tries, <=, 8);
  sim_check_number(world, a.status[KDP_AUTHENTICATION_FAILED] + b.status[KDP_AUTHENTICATION_FAILED], ==, 0);
  sim_check_number(world, a.status[KDP_REPLAYED] + b.status[KDP_REPLAYED], ==, 0);
  sim_check_number(world, a.status[KDP_UNKNOWN_SESSION] + b.status[KDP_UNKNOWN_SESSION], ==, 0);
  sim_check_number(world, sim_host_events(pair.a->host, KDP_EVENT_CONNECTED), ==, 1);
  sim_check_number(world, sim_host_events(pair.b->host, KDP_EVENT_CONNECTED), ==, 1);
  /* Bytes of a peer count whole messages, as the kernel's do. */
  kdp_wireguard_peer_info info = wg_info(pair.a, pair.b), other = wg_info(pair.b, pair.a);
  sim_check_number(world, info.sent_bytes, ==, pair.a->sent_bytes);
  sim_check_number(world, other.received_bytes, ==, pair.a->sent_bytes);
  sim_check_number(world, other.sent_bytes, ==, pair.b->sent_bytes);
  sim_check_number(world, info.received_bytes, ==, pair.b->sent_bytes);
  sim_check_number(world, pair.a->largest_message, <=, 1420 + 32);
}

void wg_rough(sim *world) {
  sim_conditions conditions = {.delay = 10 * KDP_MILLISECOND,
                               .jitter = 60 * KDP_MILLISECOND,
                               .loss = 8 * SIM_PERCENT,
                               .duplicate = 5 * SIM_PERCENT,
                               .reorder = 10 * SIM_PERCENT,
                               .reorder_delay = 400 * KDP_MILLISECOND,
                               .corrupt = 2 * SIM_PERCENT,
                               .truncate = SIM_PERCENT,
                               .congestion = 12 * SIM_PERCENT};
  wg_pair pair = wg_pair_begin(world, &conditions);
  sim_run_until(world, 700 * KDP_SECOND);
  wg_pair_silence(&pair);
  sim_run_for(world, 60 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  /* Each way meets the conditions once: 8 % loss, 3 % damage, and what the congestion marks cost. */
  sim_check_number(world, up.delivered * 100, >, up.sent * 80);
  sim_check_number(world, down.delivered * 100, >, down.sent * 75);
  /* Congestion is carried inside where the flow can take it, and is a loss where it cannot (RFC 6040). */
  sim_check(world, up.marked > 0 && down.marked == 0);
  sim_check(world, wg_statistics(pair.a).status[KDP_ECN_DROPPED] > 0);
}

/* A gateway with many peers, all through it at once, some to each other by way of nobody. */
void wg_many_peers(sim *world) {
  enum { CLIENTS = 40 };
  wg_world *wg = wg_begin(world);
  /* A few handshakes a call, so that the herd does not stall the rest. */
  uint32_t budget = 1 + (uint32_t)sim_random_below(sim_random_of(world), 4);
  wg_device *gateway =
      wg_add(wg, &(wg_device_options){.name = "gateway", .port = 51820, .limits = {.handshakes_per_call = budget}});
  sim_host_deafen(gateway->host, sim_seed(world) % 2); /* half of the time nobody takes its events */
  gateway->one_peer = false;
  sim_flow *up[CLIENTS], *down[CLIENTS];
  for (uint32_t i = 0; i < CLIENTS; i++) {
    wg_device *client = wg_add(wg, &(wg_device_options){.name = "client"});
    sim_host_conditions(client->host,
                        &(sim_conditions){.delay = sim_random_below(sim_random_of(world), 50) * KDP_MILLISECOND,
                                          .jitter = 5 * KDP_MILLISECOND});
    wg_join(client, gateway, wg_any_family(world), NULL);
    /* All at once: everyone comes back after a power cut. */
    up[i] = wg_flow(client, gateway,
                    &(wg_flow_options){.inner = wg_any_family(world),
                                       .start = KDP_SECOND,
                                       .interval = 20 * KDP_SECOND,
                                       .burst = 2,
                                       .size_max = 300});
    down[i] = wg_flow(gateway, client, &(wg_flow_options){.inner = wg_any_family(world), .answers = up[i]});
  }
  sim_run_until(world, 650 * KDP_SECOND);
  for (uint32_t i = 0; i < CLIENTS; i++) {
    sim_flow_stop(up[i]);
  }
  sim_run_for(world, 30 * KDP_SECOND);
  for (uint32_t i = 0; i < CLIENTS; i++) {
    sim_check_number(world, sim_flow_counts_of(up[i]).delivered, ==, sim_flow_counts_of(up[i]).sent);
    sim_check_number(world, sim_flow_counts_of(down[i]).delivered, ==, sim_flow_counts_of(up[i]).sent);
  }
  kdp_wireguard_device_info info;
  kdp_wireguard_device(sim_host_engine(gateway->host), &info);
  sim_check_number(world, info.peer_count, ==, CLIENTS);
  /* Most of them go, and nothing of the others changes. */
  for (uint32_t i = 0; i < CLIENTS; i += 2)
    wg_remove_peer(gateway, &wg->device[1 + i]);
  kdp_statistics statistics = wg_statistics(gateway);
  uint64_t handshakes = statistics.handshakes;
  sim_check(world, (statistics.status[KDP_EVENTS_LOST] > 0) == (sim_seed(world) % 2));
  for (uint32_t i = 1; i < CLIENTS; i += 2)
    sim_flow_send(up[i], 1);
  sim_run_for(world, KDP_SECOND);
  for (uint32_t i = 1; i < CLIENTS; i += 2)
    sim_check_number(world, sim_flow_counts_of(up[i]).delivered, ==, sim_flow_counts_of(up[i]).sent);
  sim_check_number(world, wg_statistics(gateway).handshakes - handshakes, <=, CLIENTS / 2);
}

/* Pools that are empty at times: packets are lost and counted, and nothing stands still. */
void wg_starved(sim *world) {
  wg_world *wg = wg_begin(world);
  wg_device *a = wg_add(wg, &(wg_device_options){.name = "a", .starve = 20 * SIM_PERCENT});
  wg_device *b = wg_add(wg, &(wg_device_options){.name = "b", .port = 51820, .starve = 20 * SIM_PERCENT});
  sim_host_conditions(a->host, GOOD_NETWORK);
  wg_join(a, b, wg_any_family(world), NULL);
  sim_flow *up = wg_flow(
      a, b, &(wg_flow_options){.inner = wg_any_family(world), .start = KDP_SECOND, .interval = KDP_SECOND, .burst = 4});
  sim_flow *down = wg_flow(b, a, &(wg_flow_options){.inner = wg_any_family(world), .answers = up});
  sim_run_until(world, 700 * KDP_SECOND);
  sim_flow_stop(up);
  sim_run_for(world, 20 * KDP_SECOND);
  /* Nothing of the data path needs a slot of its own but staged packets, which wait. */
  sim_check_number(world, sim_flow_counts_of(up).delivered, ==, sim_flow_counts_of(up).sent);
  sim_check_number(world, sim_flow_counts_of(down).delivered, ==, sim_flow_counts_of(down).sent);
  sim_check_number(world, wg_statistics(a).key_changes, >=, 5);
}

/* A peer that is there before the private key is: set-up in any order. */
void wg_key_comes_later(sim *world) {
  wg_world *wg = wg_begin(world);
  wg_device *a = wg_add(wg, &(wg_device_options){.name = "a", .no_key = true});
  wg_device *b = wg_add(wg, &(wg_device_options){.name = "b", .port = 51820});
  sim_host_conditions(a->host, GOOD_NETWORK);
  wg_join(a, b, wg_any_family(world), NULL);
  sim_check(world, !wg_info(a, b).has_session);
  sim_flow *up = wg_flow(a, b, &(wg_flow_options){.inner = wg_any_family(world)});
  sim_flow_send(up, 1);
  sim_run_for(world, 10 * KDP_SECOND);
  sim_check_number(world, wg_statistics(a).status[KDP_NO_KEY], ==, 1);
  sim_check_number(world, a->sent[1], ==, 0);
  wg_set_key(a);
  sim_flow_send(up, 1);
  sim_run_for(world, KDP_SECOND);
  sim_check_number(world, a->sent[1], ==, 1);
  sim_check_number(world, sim_flow_counts_of(up).delivered, ==, 1);
  /* Another key: the sessions end, and with the old key back there is another handshake. */
  for (uint32_t i = 0; i < 5; i++) {
    sim_flow_resume(up, 200 * KDP_MILLISECOND);
    sim_run_for(world, 60 * KDP_SECOND);
    sim_flow_stop(up);
    sim_run_for(world, KDP_SECOND);
    kdp_wireguard_change none = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY};
    sim_check_number(world, wg_apply(a, &none), ==, KDP_OK);
    sim_check(world, !wg_info(a, b).has_session);
    sim_check_number(world, sim_host_events(a->host, KDP_EVENT_DISCONNECTED), ==, i + 1);
    uint64_t delivered = sim_flow_counts_of(up).delivered;
    sim_flow_send(up, 3);
    sim_run_for(world, 60 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(up).delivered, ==, delivered);
    wg_set_key(a);
  }
}

/* ---- Path MTU ---- */

typedef struct sweep {
  wg_pair pair;
  sim_flow *bulk;
} sweep;

/* A TCP sender would do this: smaller packets after each packet-too-big. */
static void obey(sim *world, void *context) {
  sweep *sweep = context;
  uint32_t mtu = sim_host_icmp_mtu(sweep->pair.a->host);
  if (mtu) sim_flow_resize(sweep->bulk, mtu, mtu);
  sim_at(world, sim_now(world) + 10 * KDP_MILLISECOND, obey, sweep);
}

/* For every path MTU from 1280 to 1500 that the path answers with, bulk traffic gets through at the largest size. */
void wg_mtu_sweep(sim *world) {
  sweep *sweep = sim_lend(world, sizeof *sweep);
  sweep->pair = wg_pair_begin_over(world, GOOD_NETWORK, sim_seed(world) % 2 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4);
  wg_pair *pair = &sweep->pair;
  wg_pair_silence(pair);
  bool v6 = pair->outer == KDP_FAMILY_IPV6;
  uint16_t mtu = (uint16_t)(1280 + (sim_seed(world) * 7 + sim_random_below(sim_random_of(world), 7)) % 221);
  sim_host_out(pair->a->host)->mtu = mtu;
  sim_host_out(pair->a->host)->oversize = SIM_ANSWER;
  kdp_family inner = wg_any_family(world);
  kdp_address source = inner == KDP_FAMILY_IPV6 ? pair->a->inner_ipv6 : pair->a->inner_ipv4;
  kdp_address destination = inner == KDP_FAMILY_IPV6 ? pair->b->inner_ipv6 : pair->b->inner_ipv4;
  source.port = destination.port = 5001;
  sweep->bulk = sim_flow_add(world, &(sim_flow_config){.from = pair->a->host,
                                                       .to = pair->b->host,
                                                       .source = source,
                                                       .destination = destination,
                                                       .size_min = 1420,
                                                       .size_max = 1420,
                                                       .start = KDP_SECOND,
                                                       .interval = 400 * KDP_MILLISECOND,
                                                       .df = true});
  obey(world, sweep);
  sim_run_until(world, 660 * KDP_SECOND);
  sim_flow_counts bulk = sim_flow_counts_of(sweep->bulk);
  uint32_t limit = mtu - (v6 ? 48u : 28u) - 32; /* padding never goes beyond it */
  uint32_t told = sim_host_icmp_mtu(pair->a->host);
  /* An IPv6 packet of 1280 bytes must pass whatever the path: it is sent, and the host fragments the outer datagram,
     which this path, with its don't-fragment temper, does not let it. */
  bool never = inner == KDP_FAMILY_IPV6 && limit < 1280;
  if (never) {
    sim_check_number(world, told, ==, 1280);
  } else {
    sim_check_number(world, told, ==, limit < 1420 ? limit : 0);
    /* Lost: what was on the way before the path answered, now and after it was asked again. */
    sim_check_number(world, bulk.sent - bulk.delivered, <=, 8);
  }
}

/* ---- Who may send what ---- */

/* Packets from addresses that are not the peer's, to nobody, and to a peer without an endpoint; and what is no packet.
 */
void wg_strangers_inside(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  wg_device *lost = wg_add(pair.wg, &(wg_device_options){.name = "lost"});
  wg_peer(pair.a, lost, &(wg_peer_options){.endpoint = KDP_FAMILY_NONE});
  pair.a->one_peer = false;
  sim_flow_config config = {.from = pair.a->host,
                            .to = pair.b->host,
                            .size_min = 80,
                            .size_max = 900,
                            .start = 5 * KDP_SECOND,
                            .interval = 2 * KDP_SECOND,
                            .refused = true};
  struct {
    kdp_address source, destination;
  } wrong[] = {
      {sim_ipv4(10, 77, 0, 77, 1), pair.b->inner_ipv4},  /* a source that is not a's */
      {sim_ipv6(99, 9, 1), pair.b->inner_ipv6},          /* the same in IPv6 */
      {pair.a->inner_ipv4, sim_ipv4(203, 0, 113, 5, 1)}, /* to nobody */
      {pair.a->inner_ipv6, sim_ipv6(98, 9, 1)},          /* the same */
      {pair.a->inner_ipv4, lost->inner_ipv4},            /* to a peer that is nowhere */
  };
  sim_flow *flow[5];
  for (uint32_t i = 0; i < 5; i++) {
    config.source = wrong[i].source;
    config.destination = wrong[i].destination;
    flow[i] = sim_flow_add(world, &config);
  }
  sim_random *random = sim_random_of(world);
  for (uint32_t i = 0; i < 620; i++) {
    uint8_t junk[100];
    sim_random_fill(random, junk, sizeof junk);
    if (i % 2) junk[0] = (uint8_t)(i % 4 == 1 ? 0x45 : 0x60);
    junk[2] = junk[4] = 0xff; /* a length that it does not have */
    if (i % 3 == 0)
      sim_host_inside(pair.a->host, junk, (uint32_t)sim_random_below(random, 20));
    else
      sim_host_inside(pair.a->host, junk, (uint32_t)sim_random_below(random, sizeof junk + 1));
    sim_run_for(world, KDP_SECOND);
  }
  for (uint32_t i = 0; i < 5; i++)
    sim_flow_stop(flow[i]);
  wg_pair_silence(&pair);
  sim_run_for(world, 10 * KDP_SECOND);
  kdp_statistics a = wg_statistics(pair.a), b = wg_statistics(pair.b);
  sim_check_number(world, b.status[KDP_WRONG_SOURCE], ==,
                   sim_flow_counts_of(flow[0]).sent + sim_flow_counts_of(flow[1]).sent);
  sim_check_number(world, a.status[KDP_NO_ROUTE], >=,
                   sim_flow_counts_of(flow[2]).sent + sim_flow_counts_of(flow[3]).sent);
  sim_check_number(world, a.status[KDP_NO_ENDPOINT], ==, sim_flow_counts_of(flow[4]).sent);
  sim_check(world, a.status[KDP_NOT_IP] >= 200);
  /* Each of those is answered with an ICMP error, where the caller left room for it. */
  uint64_t refused =
      sim_flow_counts_of(flow[2]).sent + sim_flow_counts_of(flow[3]).sent + sim_flow_counts_of(flow[4]).sent;
  sim_check_number(world, sim_host_icmp_errors(pair.a->host), <=, refused);
  sim_check_number(world, sim_host_icmp_errors(pair.a->host) * 10, >=, refused * 9);
  sim_check_number(world, sim_flow_counts_of(pair.up).delivered, ==, sim_flow_counts_of(pair.up).sent);
}

/* A prefix that a second peer claims moves to it, and does not go back by itself. */
void wg_prefix_moves(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  wg_device *c = wg_add(pair.wg, &(wg_device_options){.name = "c", .port = 51820});
  pair.a->one_peer = false;
  wg_join(pair.a, c, pair.outer, NULL);
  kdp_address inner = pair.a->inner_ipv4, outside = sim_ipv4(198, 51, 100, 7, 7);
  inner.port = 7;
  sim_flow_config config = {
      .from = pair.a->host, .source = inner, .destination = outside, .size_min = 100, .size_max = 200};
  config.to = pair.b->host;
  sim_flow *to_b = sim_flow_add(world, &config);
  config.to = c->host;
  sim_flow *to_c = sim_flow_add(world, &config);
  config.refused = true;
  sim_flow *to_nobody = sim_flow_add(world, &config);
  kdp_wireguard_prefix_change all = {.prefix = {.family = KDP_FAMILY_IPV4}};
  wg_device *owner[2] = {pair.b, c};
  uint64_t moved = 0;
  for (uint32_t round = 0; round < 10; round++) {
    for (uint32_t i = 0; i < 2; i++) {
      kdp_wireguard_peer_change peer = {.prefix = &all, .prefix_count = 1};
      memcpy(peer.public_key, owner[i]->public_key, KDP_KEY_SIZE);
      sim_check_number(world, wg_apply(pair.a, &(kdp_wireguard_change){.peer = &peer, .peer_count = 1}), ==, KDP_OK);
      moved += i;
      sim_flow_send(i == 0 ? to_b : to_c, 3);
      sim_run_for(world, 30 * KDP_SECOND);
    }
    sim_check_number(world, sim_host_events(pair.a->host, KDP_EVENT_PREFIX_MOVED), ==, moved);
    wg_remove_peer(pair.a, c);
    sim_flow_send(to_nobody, 1);
    sim_run_for(world, 10 * KDP_SECOND);
    wg_join(pair.a, c, pair.outer, NULL);
  }
  sim_check_number(world, sim_flow_counts_of(to_b).delivered, ==, 30);
  sim_check_number(world, sim_flow_counts_of(to_c).delivered, ==, 30);
  sim_check_number(world, wg_statistics(pair.a).status[KDP_NO_ROUTE], ==, 10);
  sim_check_number(world, sim_flow_counts_of(pair.up).delivered + 4, >=, sim_flow_counts_of(pair.up).sent);
}
