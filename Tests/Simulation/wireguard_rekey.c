/* Changes of key: many, at once, half lost, with another preshared key, and after a restart. */
#include <string.h>

#include "wireguard/device.h"
#include "wireguard_scenarios.h"
#include "wireguard_world.h"

/* Asks an engine for a new session with a peer, as its own timers would: not part of the public interface. */
static void want_handshake(wg_device *device, const wg_device *peer) {
  kdp_wg_device *engine = kdp_wg_device_of(sim_host_engine(device->host));
  kdp_wg_peer *found = kdp_wg_peer_table_find(&engine->peers, peer->public_key);
  sim_check(device->wg->world, found != NULL);
  kdp_wg_want_handshake(engine, found, sim_host_now(device->host).boot);
  sim_host_flush(device->host);
}

/* An hour with both ends starting a new handshake at the same moment every 15 s. Nobody notices. */
void wg_rekey_storm(sim *world) {
  bool good = sim_seed(world) % 2;
  sim_conditions conditions = {.delay = 20 * KDP_MILLISECOND};
  if (!good) {
    conditions.loss = 10 * SIM_PERCENT;
    conditions.reorder = 20 * SIM_PERCENT;
    conditions.reorder_delay = 300 * KDP_MILLISECOND;
  }
  wg_pair pair = wg_pair_begin(world, &conditions);
  for (uint32_t i = 0; i < 240; i++) {
    sim_run_for(world, 15 * KDP_SECOND);
    want_handshake(pair.a, pair.b);
    want_handshake(pair.b, pair.a);
  }
  wg_pair_silence(&pair);
  sim_run_for(world, 20 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  kdp_statistics a = wg_statistics(pair.a), b = wg_statistics(pair.b);
  uint64_t refused = a.status[KDP_UNKNOWN_SESSION] + b.status[KDP_UNKNOWN_SESSION] + a.status[KDP_KEY_EXPIRED] +
                     b.status[KDP_KEY_EXPIRED];
  sim_check_number(world, a.status[KDP_AUTHENTICATION_FAILED] + b.status[KDP_AUTHENTICATION_FAILED], ==, 0);
  sim_check_number(world, a.key_changes, >=, 200);
  sim_check_number(world, b.key_changes, >=, 200);
  if (good) {
    /* Two sessions at once push out the one before: what was under way with that is lost, a packet now and then. */
    sim_check_number(world, refused, <=, 40);
    sim_check_number(world, up.sent - up.delivered, <=, 40);
    sim_check_number(world, down.sent - down.delivered, <=, 40);
  } else {
    sim_check_number(world, up.delivered * 100, >, up.sent * 86);
    sim_check_number(world, down.delivered * 100, >, down.sent * 86);
    sim_check_number(world, refused * 100, <, (up.sent + down.sent) * 2);
  }
}

/* Both ends keep alive and have nothing to say, started with an offset: no war of handshakes. */
void wg_both_keep_alive(sim *world) {
  static const double OFFSET[] = {0, 7, 12.5, 24.99};
  bool lossy = sim_seed(world) % 8 >= 4;
  wg_world *wg = wg_begin(world);
  wg_device *a = wg_add(wg, &(wg_device_options){.name = "a", .port = 51820});
  wg_device *b = wg_add(wg, &(wg_device_options){.name = "b", .port = 51820});
  sim_host_conditions(a->host, &(sim_conditions){.delay = 20 * KDP_MILLISECOND, .loss = lossy ? SIM_PERCENT : 0});
  kdp_family outer = wg_any_family(world);
  wg_peer(a, b, &(wg_peer_options){.endpoint = outer, .keepalive = 25});
  sim_run_for(world, wg_seconds(OFFSET[sim_seed(world) % 4]));
  wg_peer(b, a, &(wg_peer_options){.endpoint = outer, .keepalive = 25});
  sim_run_for(world, 30 * KDP_SECOND);
  uint64_t before = a->sent[1] + b->sent[1];
  /* At all times a session works in each direction: a probe of one packet each way every minute. */
  sim_flow *up = wg_flow(a, b, &(wg_flow_options){.inner = KDP_FAMILY_IPV4});
  sim_flow *down = wg_flow(b, a, &(wg_flow_options){.inner = KDP_FAMILY_IPV6});
  for (uint32_t i = 0; i < 10; i++) {
    sim_run_for(world, 60 * KDP_SECOND);
    sim_flow_send(up, 1);
    sim_flow_send(down, 1);
  }
  sim_run_for(world, 2 * KDP_SECOND);
  uint64_t most = lossy ? 10 : 6;
  sim_check_number(world, a->sent[1], <=, most);
  sim_check_number(world, b->sent[1], <=, most);
  sim_check_number(world, a->sent[1] + b->sent[1] - before, <=, 2 * most);
  if (!lossy) {
    sim_check_number(world, sim_flow_counts_of(up).delivered, ==, 10);
    sim_check_number(world, sim_flow_counts_of(down).delivered, ==, 10);
  }
  for (uint32_t i = 1; i < a->sent[1] && i < WG_RECENT; i++)
    sim_check_number(world, a->initiation[i] - a->initiation[i - 1], >=, 5 * KDP_SECOND);
}

static sim_verdict drop_initiations_of_b(wg_world *wg, wg_device *from, sim_datagram *datagram) {
  return from == &wg->device[1] && kdp_load_le32(datagram->bytes) == KDP_WG_INITIATION ? SIM_DROP : SIM_PASS;
}

/* Both ends begin in the same instant, again and again, with the first packets of both crossing. At times one end's
   initiation is lost: then what it staged goes out with the other's session. */
void wg_simultaneous(sim *world) {
  sim_random *random = sim_random_of(world);
  wg_pair pair = wg_pair_begin(
      world, &(sim_conditions){.delay = 5 * KDP_MILLISECOND + sim_random_below(random, 200) * KDP_MILLISECOND});
  wg_peer(pair.b, pair.a, &(wg_peer_options){.endpoint = pair.outer});
  wg_pair_silence(&pair);
  sim_run_until(world, KDP_SECOND);
  for (uint32_t i = 0; i < 12; i++) {
    /* Long enough for the session to be over: both must begin anew. */
    sim_flow_send(pair.up, 50);
    if (i % 2) sim_run_for(world, sim_random_below(random, 100) * KDP_MILLISECOND);
    sim_flow_send(pair.down, 50);
    pair.wg->filter = i % 3 == 2 ? drop_initiations_of_b : NULL;
    sim_run_for(world, 2 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(pair.up).delivered, ==, sim_flow_counts_of(pair.up).sent);
    sim_check_number(world, sim_flow_counts_of(pair.down).delivered, ==, sim_flow_counts_of(pair.down).sent);
    sim_run_for(world, 185 * KDP_SECOND);
  }
  sim_check_number(world, pair.a->sent[1], <=, 12 * 2);
  sim_check_number(world, pair.b->sent[1], <=, 12 * 2);
}

/* A session that was quiet until its last 15 s, and then only receives: its initiator renews it at once. */
void wg_renewal_by_receiving(sim *world) {
  sim_random *random = sim_random_of(world);
  wg_pair pair = wg_pair_begin(world, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  wg_pair_silence(&pair);
  sim_run_until(world, 3 * KDP_SECOND);
  for (uint32_t i = 0; i < 10; i++) {
    uint64_t start = sim_now(world), tries = pair.a->sent[1];
    sim_flow_send(pair.up, 60);
    sim_run_for(world, 120 * KDP_SECOND);
    sim_check_number(world, pair.a->sent[1], ==, tries + 1);
    /* Before 165 s nothing happens for a packet that comes. */
    bool early = sim_random_below(random, 2);
    uint64_t age = early ? 130 * KDP_SECOND + sim_random_below(random, 20 * KDP_SECOND)
                         : 166 * KDP_SECOND + sim_random_below(random, 13 * KDP_SECOND);
    sim_run_until(world, start + age);
    sim_flow_send(pair.down, 60);
    sim_run_for(world, 200 * KDP_MILLISECOND);
    sim_check_number(world, pair.a->sent[1], ==, tries + (early ? 1 : 2));
    sim_run_for(world, 400 * KDP_SECOND); /* until it is over */
    sim_check_number(world, pair.b->sent[1], ==, 0);
    sim_check_number(world, sim_flow_counts_of(pair.down).delivered, ==, sim_flow_counts_of(pair.down).sent);
  }
}

/* ---- Lost confirmations ---- */

typedef struct loser {
  wg_device *initiator;
  uint64_t responses, dropped;
  uint32_t to_drop;
} loser;

/* Drops the first packets of the initiator after each response: the responder's key stays unconfirmed. */
static sim_verdict lose_confirmation(wg_world *wg, wg_device *from, sim_datagram *datagram) {
  loser *loser = wg->filter_context;
  uint32_t type = kdp_load_le32(datagram->bytes);
  if (type == KDP_WG_RESPONSE) {
    loser->initiator = NULL;
    for (uint32_t i = 0; i < wg->count; i++)
      if (&wg->device[i] != from) loser->initiator = &wg->device[i];
    loser->to_drop = 1 + (uint32_t)sim_random_below(sim_random_of(wg->world), 4);
    loser->responses++;
  }
  if (type == KDP_WG_TRANSPORT && from == loser->initiator && loser->to_drop > 0) {
    loser->to_drop--;
    loser->dropped++;
    return SIM_DROP;
  }
  return SIM_PASS;
}

void wg_lost_confirmations(sim *world) {
  loser loser = {0};
  wg_pair pair = wg_pair_begin(world, &(sim_conditions){.delay = 30 * KDP_MILLISECOND});
  pair.wg->filter = lose_confirmation;
  pair.wg->filter_context = &loser;
  sim_run_until(world, 900 * KDP_SECOND);
  pair.wg->filter = NULL;
  wg_pair_silence(&pair);
  sim_run_for(world, 30 * KDP_SECOND);
  sim_check_number(world, loser.responses, >=, 5);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  /* Only what was dropped is lost, up; down nothing at all: the old key serves until the new one is confirmed. */
  sim_check_number(world, up.sent - up.delivered, <=, loser.dropped);
  sim_check_number(world, down.delivered, ==, down.sent);
}

/* ---- Overlap ---- */

/* A third of the data takes up to ten seconds longer. */
static sim_verdict delay_some(wg_world *wg, wg_device *from, sim_datagram *datagram) {
  (void)from;
  sim_random *random = sim_random_of(wg->world);
  if (kdp_load_le32(datagram->bytes) != KDP_WG_TRANSPORT || sim_random_below(random, 3) != 0) return SIM_PASS;
  sim_inject(wg->world, &datagram->source, &datagram->destination, datagram->ecn, datagram->bytes, datagram->size,
             sim_random_below(random, 10 * KDP_SECOND));
  return SIM_DROP;
}

/* Packets under the old key that come after the change of keys are good on both ends: none is lost. */
void wg_overlap(sim *world) {
  wg_pair pair = wg_pair_begin(world, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  pair.wg->filter = delay_some;
  sim_flow_resume(pair.up, 300 * KDP_MILLISECOND);
  sim_flow_resume(pair.down, 300 * KDP_MILLISECOND);
  sim_run_until(world, 620 * KDP_SECOND);
  wg_pair_silence(&pair);
  sim_run_for(world, 30 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  sim_check_number(world, down.delivered, ==, down.sent);
  sim_check(world, up.late > 100 && down.late > 100);
  kdp_statistics a = wg_statistics(pair.a), b = wg_statistics(pair.b);
  sim_check_number(world, a.status[KDP_UNKNOWN_SESSION] + b.status[KDP_UNKNOWN_SESSION], ==, 0);
}

/* ---- Other keys ---- */

void wg_preshared_key_changes(sim *world) {
  wg_pair pair = wg_pair_begin(world, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  uint8_t key[KDP_KEY_SIZE];
  for (uint32_t i = 0; i < 4; i++) {
    sim_run_for(world, 100 * KDP_SECOND);
    sim_random_fill(sim_random_of(world), key, sizeof key);
    uint64_t handshakes = wg_statistics(pair.a).handshakes;
    wg_peer(pair.a, pair.b, &(wg_peer_options){.preshared_key = key});
    wg_peer(pair.b, pair.a, &(wg_peer_options){.preshared_key = key});
    /* The session goes on; the next handshake uses it. */
    sim_check_number(world, wg_statistics(pair.a).handshakes, ==, handshakes);
    sim_run_for(world, 60 * KDP_SECOND);
  }
  wg_pair_silence(&pair);
  sim_run_for(world, 10 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  sim_check_number(world, down.delivered, ==, down.sent);
  /* One end alone: the next handshake fails at the response, the session ends with its time, and says so. */
  key[0] ^= 1;
  wg_peer(pair.b, pair.a, &(wg_peer_options){.preshared_key = key});
  sim_flow_resume(pair.up, KDP_SECOND);
  sim_run_for(world, 300 * KDP_SECOND);
  sim_check(world, wg_statistics(pair.a).status[KDP_AUTHENTICATION_FAILED] > 0);
  sim_check(world, sim_host_events(pair.a->host, KDP_EVENT_DISCONNECTED) > 0);
  sim_check(world, sim_host_events(pair.a->host, KDP_EVENT_HANDSHAKE_FAILED) > 0);
  sim_check(world, !wg_info(pair.a, pair.b).has_session);
  /* Put right: works again with the next attempt. */
  key[0] ^= 1;
  wg_peer(pair.b, pair.a, &(wg_peer_options){.preshared_key = key});
  sim_flow_stop(pair.up);
  sim_run_for(world, 100 * KDP_SECOND);
  uint64_t before = sim_flow_counts_of(pair.up).delivered;
  sim_flow_send(pair.up, 1);
  sim_run_for(world, KDP_SECOND);
  sim_check_number(world, sim_flow_counts_of(pair.up).delivered, >, before);
}

/* Either end loses its state, at any moment; the other one finds out by itself. */
void wg_restarts(sim *world) {
  wg_pair pair = wg_pair_begin(world, &(sim_conditions){.delay = 20 * KDP_MILLISECOND});
  const uint8_t *key = pair.preshared_key;
  for (uint32_t i = 0; i < 8; i++) {
    sim_run_for(world, 60 * KDP_SECOND + sim_random_below(sim_random_of(world), 30 * KDP_SECOND));
    bool first = i % 2 == 0;
    wg_restart(first ? pair.a : pair.b);
    if (first)
      wg_peer(pair.a, pair.b, &(wg_peer_options){.endpoint = pair.outer, .preshared_key = key});
    else
      wg_peer(pair.b, pair.a, &(wg_peer_options){.preshared_key = key});
    sim_run_for(world, 25 * KDP_SECOND);
    /* 15 s without an answer, a handshake, and it goes on. */
    uint64_t now = sim_now(world);
    sim_check_number(world, now - sim_flow_counts_of(pair.up).last_delivered, <, 8 * KDP_SECOND);
    sim_check_number(world, now - sim_flow_counts_of(pair.down).last_delivered, <, 8 * KDP_SECOND);
  }
}
