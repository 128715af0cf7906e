/* Networks that change under WireGuard: roaming, NATs, ports that die, names that move. */
#include <string.h>

#include "wireguard_scenarios.h"
#include "wireguard_world.h"

#define GOOD_NETWORK                                                                                                   \
  &(sim_conditions) {                                                                                                  \
    .delay = 20 * KDP_MILLISECOND                                                                                      \
  }

static bool same_bytes(const kdp_address *a, const kdp_address *b) {
  return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The endpoint follows the newest authenticated packet, and only that. */
void wg_roaming(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_random *random = sim_random_of(world);
  sim_capture(world, true);
  for (uint32_t i = 0; i < 12; i++) {
    sim_run_for(world, 60 * KDP_SECOND);
    /* A stranger sends what it overheard, and the same damaged, from an address of its own. */
    kdp_address stranger = pair.outer == KDP_FAMILY_IPV6 ? sim_ipv6(666, 1, 9) : sim_ipv4(203, 0, 113, 66, 9);
    kdp_address to = wg_endpoint(pair.b, pair.outer), before = wg_info(pair.b, pair.a).endpoint;
    for (uint32_t k = 0; k < 20; k++) {
      uint32_t index = (uint32_t)sim_random_below(random, sim_captured_count(world));
      const sim_captured *heard = sim_captured_at(world, index);
      if (heard->from != pair.a->host || sim_now(world) - heard->time < KDP_SECOND)
        continue; /* not the first one there */
      sim_inject(world, &stranger, &to, 0, heard->datagram->bytes, heard->datagram->size, 0);
      uint8_t damaged[2048];
      memcpy(damaged, heard->datagram->bytes, heard->datagram->size);
      damaged[sim_random_below(random, heard->datagram->size)] ^= 4;
      sim_inject(world, &stranger, &to, 0, damaged, heard->datagram->size, 0);
    }
    sim_run_for(world, KDP_MILLISECOND);
    kdp_address after = wg_info(pair.b, pair.a).endpoint;
    sim_check(world, kdp_address_equal(&before, &after));
    /* The real one moves, at times to the other port of call, told or not. */
    kdp_address next[2] = {sim_ipv4(198, 19, (uint8_t)i, 1, 0), sim_ipv6((uint16_t)(300 + i), 1, 0)};
    sim_host_move(pair.a->host, next, 2);
    if (sim_random_below(random, 2)) sim_host_network_changed(pair.a->host);
    uint64_t moved = sim_now(world);
    sim_run_for(world, 10 * KDP_SECOND);
    after = wg_info(pair.b, pair.a).endpoint;
    kdp_address wanted = wg_endpoint(pair.a, pair.outer);
    sim_check(world, same_bytes(&after, &wanted));
    sim_check_number(world, sim_flow_counts_of(pair.up).last_delivered, >, moved);
    sim_check_number(world, sim_flow_counts_of(pair.down).last_delivered, >, moved);
  }
  wg_pair_silence(&pair);
  sim_run_for(world, KDP_SECOND);
  sim_check_number(world, wg_statistics(pair.b).roams, ==, 12);
  sim_check_number(world, wg_statistics(pair.a).roams, ==, 0);
  sim_check_number(world, sim_host_events(pair.b->host, KDP_EVENT_ENDPOINT_CHANGED), >=, 12);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  /* Down, what went to the address that was left. */
  sim_check_number(world, down.sent - down.delivered, <=, 12 * 12);
}

/* A NAT drops everything from one local port: the third unanswered initiation brings another one. */
void wg_dead_port(sim *world) {
  bool fixed = sim_seed(world) % 4 == 0;
  wg_world *wg = wg_begin(world);
  wg_device *a = wg_add(wg, &(wg_device_options){.name = "a", .port = fixed ? 51000 : 0});
  wg_device *b = wg_add(wg, &(wg_device_options){.name = "b", .port = 51820});
  sim_host_conditions(a->host, GOOD_NETWORK);
  kdp_address outside = sim_ipv4(203, 0, 113, 1, 0);
  sim_host_nat(a->host, &outside);
  wg_join(a, b, KDP_FAMILY_IPV4, NULL);
  sim_flow *up = wg_flow(
      a, b, &(wg_flow_options){.inner = wg_any_family(world), .start = KDP_SECOND, .interval = KDP_SECOND, .burst = 3});
  /* Nothing but keepalives comes back: an other end that misses answers would try by itself, and be heard. */
  for (uint32_t round = 0; round < 4; round++) {
    sim_run_for(world, 100 * KDP_SECOND);
    uint64_t start = sim_now(world), rebinds = sim_host_actions(a->host, KDP_ACTION_REBIND);
    uint64_t tries = a->sent[1];
    sim_nat_drop_port(a->host, sim_host_port(a->host));
    sim_run_for(world, 60 * KDP_SECOND);
    if (fixed) {
      sim_check_number(world, sim_host_actions(a->host, KDP_ACTION_REBIND), ==, 0);
      sim_check(world, sim_host_events(a->host, KDP_EVENT_REBIND) > 0);
      sim_check_number(world, sim_flow_counts_of(up).last_delivered, <=, start + 50 * KDP_MILLISECOND);
      sim_nat_drop_port(a->host, 0);
      sim_run_for(world, 60 * KDP_SECOND);
      continue;
    }
    sim_check_number(world, sim_host_actions(a->host, KDP_ACTION_REBIND) - rebinds, ==, 1);
    sim_check_number(world, a->sent[1] - tries, >=, 3);
    /* A keepalive that was due, 15 s without an answer, three initiations 5 s apart: the next one leaves from another
       port, and within a round trip it goes on. */
    uint64_t third = a->initiation[tries + 2];
    sim_check_number(world, third - start, <=, 40 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(up).last_delivered, >, start + 40 * KDP_SECOND);
  }
  sim_run_for(world, 120 * KDP_SECOND);
  sim_check_number(world, sim_now(world) - sim_flow_counts_of(up).last_delivered, <, 5 * KDP_SECOND);
}

/* A NAT forgets its mapping: a persistent keepalive keeps it open, or else opens it again within its time. */
void wg_nat_forgets(sim *world) {
  wg_world *wg = wg_begin(world);
  wg_device *a = wg_add(wg, &(wg_device_options){.name = "a"});
  wg_device *b = wg_add(wg, &(wg_device_options){.name = "b", .port = 51820});
  sim_host_conditions(a->host, GOOD_NETWORK);
  kdp_address outside = sim_ipv4(203, 0, 113, 1, 0);
  sim_host_nat(a->host, &outside);
  wg_join(a, b, KDP_FAMILY_IPV4, NULL);
  wg_peer(a, b, &(wg_peer_options){.keepalive = 25});
  sim_flow *down = wg_flow(
      b, a, &(wg_flow_options){.inner = wg_any_family(world), .start = KDP_SECOND, .interval = KDP_SECOND, .burst = 4});
  for (uint32_t i = 0; i < 10; i++) {
    sim_run_for(world, 45 * KDP_SECOND + sim_random_below(sim_random_of(world), 20 * KDP_SECOND));
    sim_nat_forget(a->host);
    uint64_t forgot = sim_now(world);
    sim_run_for(world, 29 * KDP_SECOND); /* 25, and until the next packet down */
    sim_check_number(world, sim_flow_counts_of(down).last_delivered, >, forgot);
  }
  sim_check_number(world, wg_statistics(b).roams, >=, 10);
}

/* ---- A server with a name ---- */

typedef struct mover {
  wg_device *client, *server;
  uint64_t asked;
} mover;

static void look_up(sim *world, void *context) {
  mover *mover = context;
  (void)world;
  wg_peer(mover->client, mover->server, &(wg_peer_options){.endpoint = KDP_FAMILY_IPV4});
}

static void on_event(sim_host *host, const kdp_event *event, void *device) {
  wg_device *client = device;
  mover *mover = client->wg->filter_context;
  if (event->kind != KDP_EVENT_RESOLVE) return;
  mover->asked++;
  /* The name server takes its time; the answer is where the server is by then. */
  sim *world = sim_host_world(host);
  sim_at(world, sim_now(world) + 300 * KDP_MILLISECOND, look_up, mover);
}

/* A server whose address changes behind its name: after failed handshakes the name is looked up again, and followed. */
void wg_name_moves(sim *world) {
  mover *mover = sim_lend(world, sizeof *mover);
  wg_world *wg = wg_begin(world);
  wg->filter_context = mover;
  mover->client = wg_add(wg, &(wg_device_options){.name = "client", .on_event = on_event});
  mover->server = wg_add(wg, &(wg_device_options){.name = "server", .port = 51820});
  sim_host_conditions(mover->client->host, GOOD_NETWORK);
  wg_join(mover->client, mover->server, KDP_FAMILY_IPV4, NULL);
  sim_flow *up = wg_flow(
      mover->client, mover->server,
      &(wg_flow_options){.inner = wg_any_family(world), .start = KDP_SECOND, .interval = KDP_SECOND, .burst = 4});
  for (uint8_t i = 0; i < 4; i++) {
    sim_run_for(world, 140 * KDP_SECOND);
    sim_check_number(world, sim_now(world) - sim_flow_counts_of(up).last_delivered, <, 6 * KDP_SECOND);
    uint64_t asked = mover->asked;
    kdp_address next = sim_ipv4(198, 19, 200, i, 0);
    sim_host_move(mover->server->host, &next, 1);
    /* It was restarted, too: else it would be followed by what it still sends. */
    wg_restart(mover->server);
    wg_peer(mover->server, mover->client, &(wg_peer_options){.endpoint = KDP_FAMILY_NONE});
    sim_run_for(world, 60 * KDP_SECOND);
    sim_check_number(world, mover->asked, >, asked);
    sim_check_number(world, mover->asked - asked, <=, 3);
    sim_check_number(world, sim_now(world) - sim_flow_counts_of(up).last_delivered, <, 6 * KDP_SECOND);
  }
}
