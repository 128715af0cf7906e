/* WireGuard and time: silence, keepalives, sleep, clocks that jump, and networks that come back. */
#include <string.h>

#include "wireguard_scenarios.h"
#include "wireguard_world.h"

#define GOOD_NETWORK                                                                                                   \
  &(sim_conditions) {                                                                                                  \
    .delay = 20 * KDP_MILLISECOND                                                                                      \
  }

static uint64_t sent(const wg_pair *pair) {
  return sim_host_sent(pair->a->host) + sim_host_sent(pair->b->host);
}

/* One packet, and nothing to answer: one empty packet 10 s later, and then silence, for an hour. */
void wg_idle_silence(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_run_until(world, 500 * KDP_SECOND); /* a session that has seen traffic */
  wg_pair_silence(&pair);
  sim_run_for(world, 200 * KDP_SECOND);
  for (uint32_t i = 0; i < 3; i++) {
    sim_flow_send(pair.up, 1);
    sim_run_for(world, 2 * KDP_SECOND); /* a handshake, if the session is over */
    sim_flow_send(pair.up, 1);
    uint64_t start = sim_now(world), before = sent(&pair), keepalives = pair.b->keepalives;
    sim_run_for(world, 7 * KDP_SECOND);
    sim_check_number(world, sent(&pair) - before, <=, 1);
    sim_run_for(world, 4 * KDP_SECOND);
    sim_check_number(world, pair.b->keepalives - keepalives, ==, 1);
    sim_check_number(world, pair.b->last_sent, >=, start + 7 * KDP_SECOND);
    sim_check_number(world, pair.b->last_sent, <=, start + 10 * KDP_SECOND + 30 * KDP_MILLISECOND);
    before = sent(&pair);
    sim_run_for(world, 3600 * KDP_SECOND);
    sim_check_number(world, sent(&pair) - before, ==, 0);
  }
}

/* A persistent keepalive of 25 s from one side, nothing from the other: one packet in 25 s, and the session is held. */
void wg_persistent_keepalive(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  wg_pair_silence(&pair);
  wg_peer(pair.a, pair.b, &(wg_peer_options){.keepalive = 25});
  sim_run_for(world, 10 * KDP_SECOND);
  sim_check_number(world, sim_host_events(pair.a->host, KDP_EVENT_CONNECTED), ==, 1); /* at once, unasked */
  uint64_t keepalives = pair.a->keepalives, initiations = pair.a->sent[1];
  sim_run_for(world, 600 * KDP_SECOND);
  sim_check_number(world, pair.a->keepalives - keepalives, >=, 22);
  sim_check_number(world, pair.a->keepalives - keepalives, <=, 31);
  sim_check_number(world, pair.a->sent[1] - initiations, >=, 3);
  sim_check_number(world, pair.a->sent[1] - initiations, <=, 6);
  /* Traffic takes its place. */
  keepalives = pair.a->keepalives;
  sim_flow_resume(pair.up, KDP_SECOND);
  sim_flow_resume(pair.down, KDP_SECOND);
  sim_run_for(world, 300 * KDP_SECOND);
  sim_check_number(world, pair.a->keepalives - keepalives, <=, 6);
  sim_check_number(world, sim_flow_counts_of(pair.down).delivered, >=, 100);
  /* Switched off: silent. */
  wg_pair_silence(&pair);
  wg_peer(pair.a, pair.b, &(wg_peer_options){.keepalive = 0});
  sim_run_for(world, 30 * KDP_SECOND);
  uint64_t before = sent(&pair);
  sim_run_for(world, 300 * KDP_SECOND);
  sim_check_number(world, sent(&pair) - before, ==, 0);
}

/* Ten hours of sleep: old keys are gone, one handshake follows, and no burst. */
void wg_long_sleep(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  wg_peer(pair.a, pair.b, &(wg_peer_options){.keepalive = 25});
  uint64_t sleep = 36000 * KDP_SECOND;
  for (uint32_t i = 0; i < 3; i++) {
    sim_run_for(world, 300 * KDP_SECOND + sim_random_below(sim_random_of(world), 20 * KDP_SECOND));
    sim_flow_stop(pair.down); /* else the other side, awake, would try all night */
    sim_host_suspend(pair.a->host, sleep);
    sim_run_for(world, sleep - 1);
    uint64_t initiations = pair.a->sent[1], before = sim_host_sent(pair.a->host);
    uint64_t delivered = sim_flow_counts_of(pair.up).delivered, woke = sim_now(world) + 1;
    sim_run_for(world, 1);
    if (i % 2) sim_host_network_changed(pair.a->host);
    sim_run_for(world, KDP_MILLISECOND);
    uint64_t deadline = kdp_engine_deadline(kdp_engine_lane(sim_host_engine(pair.a->host), 0));
    sim_check_number(world, deadline, <=, sim_host_now(pair.a->host).boot + wg_seconds(5.34));
    sim_run_for(world, 5 * KDP_SECOND);
    sim_check_number(world, pair.a->sent[1] - initiations, ==, 1);
    sim_check_number(world, pair.a->initiation[initiations] - woke, <=, 2 * KDP_MILLISECOND);
    sim_check_number(world, sim_flow_counts_of(pair.up).delivered, >, delivered);
    sim_check_number(world, sim_host_sent(pair.a->host) - before, <=, 40);
    sim_flow_resume(pair.down, KDP_SECOND);
  }
  /* Without anything to say and without the call: the persistent keepalive alone brings it back. */
  wg_pair_silence(&pair);
  sim_host_suspend(pair.a->host, sleep);
  uint64_t initiations = pair.a->sent[1];
  sim_run_for(world, sleep + 5 * KDP_SECOND);
  sim_check_number(world, pair.a->sent[1] - initiations, ==, 1);
  sim_check(world, wg_info(pair.a, pair.b).has_session);
}

/* The wall clock goes back six years and forward again; stamps rise all the same. */
void wg_clock_back(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  int64_t years = -6 * 365 * 86400 * (int64_t)KDP_SECOND;
  sim_run_for(world, 150 * KDP_SECOND);
  sim_host_step_wall(pair.a->host, years);
  sim_run_for(world, 300 * KDP_SECOND);
  sim_check(world, sim_host_events(pair.a->host, KDP_EVENT_CLOCK_BACK) > 0);
  sim_check_number(world, wg_statistics(pair.b).status[KDP_STALE_TIMESTAMP], ==, 0);
  /* A restart with what was kept goes on above it. */
  uint64_t newest = kdp_wireguard_newest_stamp(sim_host_engine(pair.a->host));
  pair.a->config.newest_stamp = newest;
  wg_restart(pair.a);
  wg_peer(pair.a, pair.b, &(wg_peer_options){.endpoint = pair.outer, .preshared_key = pair.preshared_key});
  sim_run_for(world, 100 * KDP_SECOND);
  sim_check_number(world, wg_statistics(pair.b).status[KDP_STALE_TIMESTAMP], ==, 0);
  sim_check(world, wg_info(pair.a, pair.b).has_session);
  sim_check(world, kdp_wireguard_newest_stamp(sim_host_engine(pair.a->host)) > newest);
  /* Without it the other side refuses, until the clock is right. It has nothing to say by itself. */
  sim_flow_stop(pair.down);
  sim_run_for(world, 30 * KDP_SECOND);
  pair.a->config.newest_stamp = 0;
  wg_restart(pair.a);
  wg_peer(pair.a, pair.b, &(wg_peer_options){.endpoint = pair.outer, .preshared_key = pair.preshared_key});
  sim_run_for(world, 200 * KDP_SECOND);
  sim_check(world, wg_statistics(pair.b).status[KDP_STALE_TIMESTAMP] > 0);
  sim_check(world, !wg_info(pair.a, pair.b).has_session);
  sim_host_step_wall(pair.a->host, -years);
  sim_flow_resume(pair.down, KDP_SECOND);
  sim_run_for(world, 60 * KDP_SECOND);
  sim_check(world, wg_info(pair.a, pair.b).has_session);
  /* Small steps of the boot clock the wrong way change nothing either. */
  for (uint32_t i = 0; i < 20; i++) {
    sim_host_step_boot(pair.a->host, -(int64_t)sim_random_below(sim_random_of(world), 30 * KDP_MILLISECOND));
    sim_run_for(world, KDP_SECOND);
  }
  sim_run_for(world, 60 * KDP_SECOND);
  sim_check_number(world, sim_now(world) - sim_flow_counts_of(pair.up).last_delivered, <, 8 * KDP_SECOND);
}

static void cut(wg_device *device, bool out, bool in) {
  sim_host_out(device->host)->down = out;
  sim_host_in(device->host)->down = in;
}

/* A network that is gone for minutes: attempts of 90 s, a report, what was staged is dropped; and traffic at once when
   it is back. */
void wg_partition(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_run_for(world, 300 * KDP_SECOND);
  for (uint32_t i = 0; i < 3; i++) {
    cut(pair.a, true, true);
    uint64_t tries = pair.a->sent[1], failures = sim_host_events(pair.a->host, KDP_EVENT_HANDSHAKE_FAILED);
    sim_run_for(world, 400 * KDP_SECOND);
    sim_check(world, sim_host_events(pair.a->host, KDP_EVENT_HANDSHAKE_FAILED) > failures);
    sim_check(world, !wg_info(pair.a, pair.b).has_session);
    /* One try in 5 s and a bit, and never more. */
    sim_check_number(world, pair.a->sent[1] - tries, <=, 81);
    sim_check_number(world, pair.a->sent[1] - tries, >=, 60);
    cut(pair.a, false, false);
    uint64_t back = sim_now(world);
    sim_run_for(world, 12 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(pair.up).last_delivered, >, back);
    sim_run_for(world, 100 * KDP_SECOND);
    sim_check_number(world, sim_now(world) - sim_flow_counts_of(pair.down).last_delivered, <, 8 * KDP_SECOND);
  }
  sim_check(world, wg_statistics(pair.a).status[KDP_STAGED_DROPPED] > 0);
  /* After hours without a session every key is wiped. */
  cut(pair.a, true, true);
  wg_pair_silence(&pair);
  sim_run_for(world, 1000 * KDP_SECOND);
  cut(pair.a, false, false);
}

/* One direction only is gone: each side finds out. */
void wg_one_way(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_run_for(world, 200 * KDP_SECOND);
  for (uint32_t i = 0; i < 4; i++) {
    uint64_t tries_a = pair.a->sent[1], tries_b = pair.b->sent[1];
    cut(pair.a, i % 2 == 0, i % 2 == 1);
    sim_run_for(world, 40 * KDP_SECOND);
    /* 15 s after the first unanswered packet a handshake is tried. */
    sim_check(world, pair.a->sent[1] + pair.b->sent[1] > tries_a + tries_b);
    cut(pair.a, false, false);
    sim_run_for(world, 100 * KDP_SECOND);
    sim_check_number(world, sim_now(world) - sim_flow_counts_of(pair.up).last_delivered, <, 8 * KDP_SECOND);
    sim_check_number(world, sim_now(world) - sim_flow_counts_of(pair.down).last_delivered, <, 8 * KDP_SECOND);
  }
}

/* The interface is taken down, for seconds or for long, and up again: silent while it is down, whatever is configured,
   and back at once. */
void wg_interface_down(sim *world) {
  sim_random *random = sim_random_of(world);
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  bool alive = sim_seed(world) % 2;
  wg_peer(pair.a, pair.b, &(wg_peer_options){.keepalive = alive ? 25 : 0});
  for (uint32_t i = 0; i < 8; i++) {
    sim_run_for(world, 60 * KDP_SECOND + sim_random_below(random, 60 * KDP_SECOND));
    if (i % 2) cut(pair.a, true, true); /* with packets staged and an attempt under way */
    sim_run_for(world, i % 2 ? 30 * KDP_SECOND : 0);
    sim_host_link(pair.a->host, false);
    cut(pair.a, false, false);
    sim_check(world, !wg_info(pair.a, pair.b).has_session);
    sim_run_for(world, KDP_SECOND);
    wg_peer(pair.a, pair.b, &(wg_peer_options){.endpoint = pair.outer, .keepalive = 0});
    wg_peer(pair.a, pair.b, &(wg_peer_options){.keepalive = alive ? 25 : 0});
    if (sim_random_below(random, 2)) sim_host_network_changed(pair.a->host);
    sim_run_for(world, sim_random_below(random, i % 2 ? 10 * KDP_SECOND : 300 * KDP_SECOND));
    uint64_t tries = pair.a->sent[1], up = sim_now(world);
    pair.a->last_initiation = 0; /* an interface that comes up does not wait for what was before */
    sim_host_link(pair.a->host, true);
    sim_run_for(world, 100 * KDP_MILLISECOND);
    if (alive) sim_check_number(world, pair.a->sent[1] - tries, ==, 1);
    sim_run_for(world, 10 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(pair.up).last_delivered, >, up);
    sim_check_number(world, sim_flow_counts_of(pair.down).last_delivered, >, up);
  }
}
