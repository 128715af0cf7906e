/* The echo engine in the network: what a first set of scenarios for a new protocol looks like. */
#include <string.h>

#include "echo_engine.h"
#include "scenario.h"

typedef struct pair {
  echo_config client_config, server_config;
  sim_host *client, *server;
  sim_flow *up, *down;
} pair;

static kdp_status create(void *context, const kdp_host *host, const kdp_limits *limits, kdp_now now,
                         kdp_engine **engine) {
  return echo_create(context, limits, host, now, engine);
}

/* A client and a server, and a flow each way. */
static void make_pair(sim *world, pair *pair, kdp_family family) {
  bool v6 = family == KDP_FAMILY_IPV6;
  kdp_address client = v6 ? sim_ipv6(1, 1, 0) : sim_ipv4(192, 0, 2, 1, 0);
  kdp_address server = v6 ? sim_ipv6(2, 1, 4500) : sim_ipv4(198, 51, 100, 1, 4500);
  uint64_t key = sim_seed(world) * 77 + 5;
  pair->client_config = (echo_config){.remote = server, .key = key};
  pair->server_config = (echo_config){.server = true, .key = key};
  pair->server = sim_host_add(world, &(sim_host_config){.name = "server",
                                                        .create = create,
                                                        .context = &pair->server_config,
                                                        .address = {server},
                                                        .address_count = 1,
                                                        .port = 4500});
  pair->client = sim_host_add(world, &(sim_host_config){.name = "client",
                                                        .create = create,
                                                        .context = &pair->client_config,
                                                        .address = {client},
                                                        .address_count = 1});
  kdp_address inner_client = v6 ? sim_ipv4(10, 7, 0, 2, 1000) : sim_ipv6(7, 2, 1000);
  kdp_address inner_server = v6 ? sim_ipv4(10, 7, 0, 1, 2000) : sim_ipv6(7, 1, 2000);
  pair->up = sim_flow_add(world, &(sim_flow_config){.from = pair->client,
                                                    .to = pair->server,
                                                    .source = inner_client,
                                                    .destination = inner_server,
                                                    .size_min = 60,
                                                    .size_max = 1400,
                                                    .start = 2 * KDP_SECOND,
                                                    .interval = 500 * KDP_MILLISECOND,
                                                    .burst = 4,
                                                    .ecn = 2});
  pair->down = sim_flow_add(world, &(sim_flow_config){.from = pair->server,
                                                      .to = pair->client,
                                                      .source = inner_server,
                                                      .destination = inner_client,
                                                      .size_min = 60,
                                                      .size_max = 1400,
                                                      .start = 3 * KDP_SECOND,
                                                      .interval = KDP_SECOND,
                                                      .burst = 4});
}

static kdp_family any_family(sim *world) {
  return sim_random_below(sim_random_of(world), 2) ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4;
}

static void clean(sim *world) {
  pair pair;
  make_pair(world, &pair, any_family(world));
  sim_host_conditions(pair.client, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  sim_run_until(world, 600 * KDP_SECOND);
  sim_flow_stop(pair.up);
  sim_flow_stop(pair.down);
  sim_run_for(world, KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  sim_check_number(world, down.delivered, ==, down.sent);
  sim_check_number(world, up.late + down.late, ==, 0);
  sim_check_number(world, up.longest_delay, <, 100 * KDP_MILLISECOND);
  sim_check_number(world, sim_host_events(pair.client, KDP_EVENT_CONNECTED), ==, 1);
  /* Quiet now: probes and nothing else, one an end in ten seconds at most. */
  uint64_t before = sim_host_sent(pair.client) + sim_host_sent(pair.server);
  sim_run_for(world, 100 * KDP_SECOND);
  sim_check_number(world, sim_host_sent(pair.client) + sim_host_sent(pair.server) - before, <=, 44);
}

static void rough(sim *world) {
  pair pair;
  make_pair(world, &pair, any_family(world));
  sim_host_conditions(pair.client, &(sim_conditions){.delay = 15 * KDP_MILLISECOND,
                                                     .jitter = 30 * KDP_MILLISECOND,
                                                     .loss = 5 * SIM_PERCENT,
                                                     .duplicate = 5 * SIM_PERCENT,
                                                     .reorder = 5 * SIM_PERCENT,
                                                     .reorder_delay = 200 * KDP_MILLISECOND,
                                                     .corrupt = 2 * SIM_PERCENT,
                                                     .truncate = SIM_PERCENT,
                                                     .congestion = 5 * SIM_PERCENT});
  sim_run_until(world, 700 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up);
  sim_check_number(world, up.delivered * 10, >, up.sent * 8);
}

static void cut_and_move(sim *world) {
  pair pair;
  make_pair(world, &pair, KDP_FAMILY_IPV4);
  sim_host_conditions(pair.client, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  sim_run_until(world, 120 * KDP_SECOND);
  sim_host_out(pair.client)->down = sim_host_in(pair.client)->down = true;
  sim_run_for(world, 60 * KDP_SECOND);
  sim_check_number(world, sim_host_events(pair.client, KDP_EVENT_DISCONNECTED), ==, 1);
  sim_host_out(pair.client)->down = sim_host_in(pair.client)->down = false;
  uint64_t back = sim_now(world);
  sim_run_for(world, 120 * KDP_SECOND);
  sim_check_number(world, sim_host_events(pair.client, KDP_EVENT_CONNECTED), ==, 2);
  kdp_address moved = sim_ipv4(203, 0, 113, 9, 0);
  sim_host_move(pair.client, &moved, 1);
  sim_host_network_changed(pair.client);
  sim_run_for(world, 200 * KDP_SECOND);
  sim_check_number(world, sim_host_events(pair.server, KDP_EVENT_ENDPOINT_CHANGED), >=, 1);
  sim_host_suspend(pair.client, 3600 * KDP_SECOND);
  sim_run_for(world, 3600 * KDP_SECOND);
  sim_run_for(world, 100 * KDP_SECOND);
  sim_host_restart(pair.server); /* the client goes on with a session that nobody knows, until it misses answers */
  sim_run_for(world, 100 * KDP_SECOND);
  sim_host_restart(pair.client); /* says hello in the middle of the server's session */
  sim_run_for(world, 100 * KDP_SECOND);
  sim_flow_counts down = sim_flow_counts_of(pair.down);
  sim_check_number(world, down.last_delivered, >, back + 4000 * KDP_SECOND);
}

static void noise(sim *world) {
  pair pair;
  make_pair(world, &pair, KDP_FAMILY_IPV4);
  sim_random *random = sim_random_of(world);
  static _Thread_local uint8_t bytes[65535];
  kdp_address from = sim_ipv4(203, 0, 113, 66, 9), to = sim_host_address(pair.server, KDP_FAMILY_IPV4);
  for (uint32_t i = 0; i < 600; i++) {
    uint32_t size = (uint32_t)sim_random_below(random, i % 8 == 0 ? sizeof bytes + 1 : 64);
    sim_random_fill(random, bytes, size);
    if (size > 0 && i % 2) bytes[0] = (uint8_t)sim_random_below(random, 7);
    sim_inject(world, &from, &to, 0, bytes, size, sim_random_below(random, KDP_SECOND / 2));
    uint8_t inner[64];
    sim_random_fill(random, inner, sizeof inner);
    inner[0] = 0x70;
    if (i % 4 == 0) sim_host_inside(pair.client, inner, (uint32_t)sim_random_below(random, sizeof inner));
    sim_run_for(world, KDP_SECOND);
  }
  sim_flow_stop(pair.up);
  sim_run_for(world, KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up);
  sim_check_number(world, up.delivered, >=, up.sent - 4); /* the first burst may be before the welcome */
  sim_check_number(world, sim_host_handed_total(pair.server, true), >=, up.delivered + 600);
}

static const sim_scenario SCENARIOS[] = {
    {"echo-clean", "a good network: everything arrives, in order, and quiet is quiet", clean, 20, 600, 1000, 1},
    {"echo-rough", "loss, duplicates, reordering, damage and congestion", rough, 40, 600, 1000, 1},
    {"echo-cut-and-move", "partition, roaming, suspend, and ends that restart", cut_and_move, 20, 600, 1000, 1},
    {"echo-noise", "datagrams and inner packets of nonsense", noise, 20, 600, 1000, 1},
};

static const uint16_t EVENTS[] = {KDP_EVENT_HANDSHAKE_STARTED, KDP_EVENT_CONNECTED,        KDP_EVENT_REKEYED,
                                  KDP_EVENT_DISCONNECTED,      KDP_EVENT_ENDPOINT_CHANGED, UINT16_MAX};
static const uint16_t STATUSES[] = {
    KDP_OK,          KDP_TOO_SHORT,       KDP_UNKNOWN_TYPE, KDP_MALFORMED, KDP_REPLAYED,    KDP_AUTHENTICATION_FAILED,
    KDP_NO_ENDPOINT, KDP_UNKNOWN_SESSION, KDP_NOT_IP,       KDP_KEEPALIVE, KDP_ECN_DROPPED, KDP_UNEXPECTED_MESSAGE,
    UINT16_MAX};

const sim_suite sim_echo_suite = {
    "echo", SCENARIOS, sizeof SCENARIOS / sizeof SCENARIOS[0], {.event = EVENTS, .status = STATUSES}};
