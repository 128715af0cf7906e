/* Strangers: replays of whole sessions, floods, cookies from elsewhere, and every kind of nonsense. */
#include <string.h>

#include "wireguard/cookie.h"
#include "wireguard_scenarios.h"
#include "wireguard_world.h"

#define GOOD_NETWORK                                                                                                   \
  &(sim_conditions) {                                                                                                  \
    .delay = 20 * KDP_MILLISECOND                                                                                      \
  }

/* ---- Replay ---- */

/* Everything that was ever said is said again, in order and shuffled, from where it came and from elsewhere. Nothing
   happens but counters. */
void wg_replayed_session(sim *world) {
  sim_random *random = sim_random_of(world);
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_capture(world, true);
  sim_run_until(world, 420 * KDP_SECOND);
  sim_capture(world, false);
  uint32_t count = sim_captured_count(world);
  sim_check_number(world, count, >=, 500);
  kdp_address stranger = pair.outer == KDP_FAMILY_IPV6 ? sim_ipv6(666, 1, 9) : sim_ipv4(203, 0, 113, 66, 9);
  kdp_address at_a = wg_info(pair.a, pair.b).endpoint, at_b = wg_info(pair.b, pair.a).endpoint;
  uint64_t inner = sim_flow_counts_of(pair.up).sent + sim_flow_counts_of(pair.down).sent;
  kdp_statistics a = wg_statistics(pair.a), b = wg_statistics(pair.b);
  bool shuffled = random && sim_seed(world) % 2, elsewhere = sim_seed(world) % 4 < 2;
  for (uint32_t i = 0; i < count; i++) {
    const sim_captured *said = sim_captured_at(world, shuffled ? (uint32_t)sim_random_below(random, count) : i);
    sim_inject(world, elsewhere ? &stranger : &said->datagram->source, &said->datagram->destination,
               said->datagram->ecn, said->datagram->bytes, said->datagram->size, 0);
    sim_run_for(world, 250 * KDP_MILLISECOND);
  }
  wg_pair_silence(&pair);
  sim_run_for(world, 30 * KDP_SECOND);
  kdp_address after_a = wg_info(pair.a, pair.b).endpoint, after_b = wg_info(pair.b, pair.a).endpoint;
  sim_check(world, kdp_address_equal(&at_a, &after_a) && kdp_address_equal(&at_b, &after_b));
  kdp_statistics later_a = wg_statistics(pair.a), later_b = wg_statistics(pair.b);
  uint64_t virtual_minutes = (sim_now(world) - 420 * KDP_SECOND) / (60 * KDP_SECOND);
  sim_check_number(world, later_a.handshakes - a.handshakes, <=, virtual_minutes / 2 + 2);
  sim_check_number(world, later_b.handshakes, ==, later_a.handshakes);
  uint64_t refused = 0;
  const kdp_status reasons[] = {KDP_REPLAYED,    KDP_STALE_TIMESTAMP,    KDP_UNKNOWN_SESSION,
                                KDP_KEY_EXPIRED, KDP_UNEXPECTED_MESSAGE, KDP_AUTHENTICATION_FAILED,
                                KDP_FLOOD};
  for (uint32_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
    refused += later_a.status[reasons[i]] - a.status[reasons[i]] + later_b.status[reasons[i]] - b.status[reasons[i]];
  sim_check_number(world, refused, ==, count);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.sent + down.sent, >, inner);
  sim_check_number(world, up.delivered, ==, up.sent);
  sim_check_number(world, down.delivered, ==, down.sent);
}

/* Someone keeps packets back and lets them go minutes later: good while their key is, and never after. */
static sim_verdict keep_back(wg_world *wg, wg_device *from, sim_datagram *datagram) {
  (void)from;
  sim_random *random = sim_random_of(wg->world);
  if (kdp_load_le32(datagram->bytes) != KDP_WG_TRANSPORT || sim_random_below(random, 10) != 0) return SIM_PASS;
  sim_inject(wg->world, &datagram->source, &datagram->destination, datagram->ecn, datagram->bytes, datagram->size,
             sim_random_below(random, 400 * KDP_SECOND));
  return SIM_DROP;
}

void wg_late_packets(sim *world) {
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  pair.wg->filter = keep_back;
  sim_run_for(world, 600 * KDP_SECOND);
  wg_pair_silence(&pair); /* no new session comes: the last one is kept, but not for longer than it may be used */
  sim_run_for(world, 400 * KDP_SECOND);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.longest_delay, >, 60 * KDP_SECOND);
  sim_check_number(world, up.longest_delay, <, KDP_WG_REJECT_AFTER_TIME + KDP_SECOND);
  sim_check_number(world, down.longest_delay, <, KDP_WG_REJECT_AFTER_TIME + KDP_SECOND);
  sim_check(world, wg_statistics(pair.a).status[KDP_KEY_EXPIRED] + wg_statistics(pair.b).status[KDP_KEY_EXPIRED] > 0);
  sim_check_number(world, up.delivered * 100, >, up.sent * 90);
}

/* ---- Floods ---- */

/* Someone who can receive at its address, and so gets cookies. */
typedef struct attacker {
  kdp_wg_cookie cookie;
  const wg_device *target;
  uint64_t cookies;
} attacker;

static void take_cookie(sim_host *host, const sim_datagram *datagram, void *context) {
  attacker *attacker = context;
  if (datagram->size != sizeof(kdp_wg_cookie_reply)) return;
  kdp_wg_cookie_reply reply;
  memcpy(&reply, datagram->bytes, sizeof reply);
  uint64_t boot = sim_now(sim_host_world(host)) + 1;
  if (kdp_wg_cookie_consume(&attacker->cookie, attacker->target->public_key, &reply, boot) == KDP_OK)
    attacker->cookies++;
}

typedef struct flood {
  wg_pair pair;
  sim_host *host;
  attacker attacker;
  kdp_address source;
  uint32_t burst;
  uint64_t until, sent;
} flood;

/* A burst of initiations that are garbage behind a right MAC1, and MAC2 where a cookie is known. */
static void burst(sim *world, void *context) {
  flood *flood = context;
  if (sim_now(world) >= flood->until) return;
  kdp_address to = wg_endpoint(flood->pair.b, flood->pair.outer);
  for (uint32_t i = 0; i < flood->burst; i++) {
    uint8_t message[148];
    sim_random_fill(sim_random_of(world), message, sizeof message);
    kdp_store_le32(message, KDP_WG_INITIATION);
    kdp_wg_macs_write(&flood->attacker.cookie, message, sizeof message, sim_now(world) + 1);
    kdp_address from = flood->source;
    if (i % 2 == 0) from.bytes[3] = (uint8_t)sim_random_below(sim_random_of(world), 256); /* half are from nowhere */
    sim_inject(world, &from, &to, 0, message, sizeof message, 0);
    flood->sent++;
  }
  sim_at(world, sim_now(world) + 200 * KDP_MILLISECOND, burst, flood);
}

static void begin_flood(flood *flood, uint64_t duration) {
  flood->until = sim_now(flood->pair.world) + duration;
  burst(flood->pair.world, flood);
}

static flood *make_flood(sim *world) {
  flood *flood = sim_lend(world, sizeof *flood);
  flood->pair = wg_pair_begin(world, GOOD_NETWORK);
  flood->burst = 64;
  flood->source = flood->pair.outer == KDP_FAMILY_IPV6 ? sim_ipv6(666, 1, 9) : sim_ipv4(203, 0, 113, 66, 9);
  flood->attacker.target = flood->pair.b;
  kdp_wg_cookie_start(&flood->attacker.cookie, flood->pair.b->public_key);
  flood->host = sim_host_add(world, &(sim_host_config){.name = "attacker",
                                                       .context = &flood->attacker,
                                                       .address = {flood->source},
                                                       .address_count = 1,
                                                       .port = 9,
                                                       .on_datagram = take_cookie});
  return flood;
}

/* Under a flood those who are there go on, and who comes in then gets in by way of a cookie. The flooder's own cookie
   buys it 20 messages a second and no more. */
void wg_cookie_flood(sim *world) {
  flood *flood = make_flood(world);
  wg_pair *pair = &flood->pair;
  sim_run_until(world, 60 * KDP_SECOND);
  sim_check_number(world, sim_host_events(pair->b->host, KDP_EVENT_UNDER_LOAD), ==, 0);
  size_t memory = sim_host_memory(pair->b->host);
  begin_flood(flood, 300 * KDP_SECOND);
  uint64_t newcomer_tries = 0;
  for (uint32_t i = 0; i < 3; i++) {
    sim_run_for(world, 60 * KDP_SECOND);
    wg_device *newcomer = wg_add(pair->wg, &(wg_device_options){.name = "newcomer"});
    sim_host_conditions(newcomer->host, GOOD_NETWORK);
    pair->b->one_peer = false;
    wg_join(newcomer, pair->b, pair->outer, NULL);
    sim_flow *flow = wg_flow(newcomer, pair->b, &(wg_flow_options){.inner = KDP_FAMILY_IPV4});
    sim_flow_send(flow, 1);
    sim_run_for(world, 12 * KDP_SECOND);
    sim_check_number(world, sim_flow_counts_of(flow).delivered, ==, 1);
    newcomer_tries += newcomer->sent[1];
  }
  sim_check_number(world, newcomer_tries, >=, 6); /* the first ones were answered with a cookie */
  sim_run_for(world, 330 * KDP_SECOND);
  kdp_statistics b = wg_statistics(pair->b);
  sim_check(world, flood->attacker.cookies > 0);
  sim_check(world, b.status[KDP_COOKIE_SENT] > 0 && b.status[KDP_RATE_LIMITED] > 0);
  /* What of the flood was worked on: before it counted as load, 20 a second of its one source, and that of the random
     sources none, for they never see a cookie. */
  sim_check_number(world, b.status[KDP_AUTHENTICATION_FAILED] + b.status[KDP_LOW_ORDER_KEY], <=, 300 * 20 + 400);
  sim_check_number(world, b.status[KDP_AUTHENTICATION_FAILED], >=, 300 * 10);
  sim_check_number(world, sim_host_memory(pair->b->host), <=, memory + 64 * 1024);      /* the newcomers */
  sim_check_number(world, sim_host_events(pair->b->host, KDP_EVENT_UNDER_LOAD), ==, 2); /* on, and off again */
  sim_flow_counts up = sim_flow_counts_of(pair->up), down = sim_flow_counts_of(pair->down);
  /* A rekey under load takes its cookie and 5 s; nothing is lost by it. */
  sim_check_number(world, up.sent - up.delivered, <=, 4);
  sim_check_number(world, down.sent - down.delivered, <=, 4);
}

/* ---- A cookie from elsewhere ---- */

typedef struct diversion {
  flood *flood;
  kdp_address elsewhere;
  uint64_t diverted, plain, with_mac2;
} diversion;

/* Cookie replies are taken off the wire and arrive twice, from somewhere else; initiations are looked at for MAC2. */
static sim_verdict divert(wg_world *wg, wg_device *from, sim_datagram *datagram) {
  diversion *diversion = wg->filter_context;
  uint32_t type = kdp_load_le32(datagram->bytes);
  if (type == KDP_WG_INITIATION && from == diversion->flood->pair.a) {
    bool zero = true;
    for (uint32_t i = 132; i < 148; i++)
      zero &= datagram->bytes[i] == 0;
    if (zero)
      diversion->plain++;
    else
      diversion->with_mac2++;
  }
  kdp_address a = wg_endpoint(diversion->flood->pair.a, diversion->flood->pair.outer);
  if (type != KDP_WG_COOKIE_REPLY || !kdp_address_equal(&datagram->destination, &a)) return SIM_PASS;
  diversion->diverted++;
  for (uint64_t i = 1; i <= 2; i++)
    sim_inject(wg->world, &diversion->elsewhere, &datagram->destination, 0, datagram->bytes, datagram->size,
               i * 20 * KDP_MILLISECOND);
  return SIM_DROP;
}

void wg_cookie_from_elsewhere(sim *world) {
  diversion *diversion = sim_lend(world, sizeof *diversion);
  diversion->flood = make_flood(world);
  wg_pair *pair = &diversion->flood->pair;
  diversion->elsewhere = pair->outer == KDP_FAMILY_IPV6 ? sim_ipv6(777, 1, 9) : sim_ipv4(203, 0, 113, 77, 9);
  pair->wg->filter = divert;
  pair->wg->filter_context = diversion;
  begin_flood(diversion->flood, 590 * KDP_SECOND); /* from the start: already the first initiation gets a cookie */
  sim_run_until(world, 600 * KDP_SECOND);
  sim_check(world, diversion->diverted > 0);
  sim_check(world, diversion->plain > 0 && diversion->with_mac2 > 0);
  /* The second copies changed nothing. */
  sim_check_number(world, wg_statistics(pair->a).status[KDP_BAD_COOKIE], ==, diversion->diverted);
  kdp_address endpoint = wg_info(pair->a, pair->b).endpoint, b = wg_endpoint(pair->b, pair->outer);
  sim_check(world, kdp_address_equal(&endpoint, &b));
  sim_check(world, wg_info(pair->a, pair->b).has_session);
  sim_check_number(world, sim_host_events(pair->a->host, KDP_EVENT_ENDPOINT_CHANGED), ==, 0);
  sim_check(world, sim_now(world) - sim_flow_counts_of(pair->up).last_delivered < 10 * KDP_SECOND);
}

/* ---- Nonsense ---- */

/* What real messages become by one change: a bit, the length, the type, the index. */
static uint32_t spoil(sim_random *random, uint8_t *bytes, uint32_t size, uint32_t capacity) {
  switch (sim_random_below(random, 5)) {
  case 0: bytes[sim_random_below(random, size)] ^= (uint8_t)(1u << sim_random_below(random, 8)); return size;
  case 1: return (uint32_t)sim_random_below(random, size);
  case 2: {
    uint32_t longer = size + 1 + (uint32_t)sim_random_below(random, 64);
    if (longer > capacity) longer = capacity;
    sim_random_fill(random, bytes + size, longer - size);
    return longer;
  }
  case 3: bytes[0] = (uint8_t)sim_random_below(random, 8); return size;
  default: bytes[1 + sim_random_below(random, 15)] ^= (uint8_t)(1 + sim_random_below(random, 255)); return size;
  }
}

/* Datagrams of every size and of spoiled messages: each is counted as something, nothing is delivered for it, and an
   initiation after them is answered. */
void wg_hostile_datagrams(sim *world) {
  static _Thread_local uint8_t bytes[65536];
  sim_random *random = sim_random_of(world);
  wg_pair pair = wg_pair_begin(world, GOOD_NETWORK);
  sim_capture(world, true);
  sim_run_for(world, 60 * KDP_SECOND);
  kdp_address stranger = pair.outer == KDP_FAMILY_IPV6 ? sim_ipv6(666, 1, 9) : sim_ipv4(203, 0, 113, 66, 9);
  const wg_device *target[2] = {pair.a, pair.b};
  sim_host_receive_limit(pair.b->host, 10000);
  for (uint32_t i = 0; i < 1200; i++) {
    const wg_device *to_device = target[i % 2];
    kdp_address to = wg_endpoint(to_device, pair.outer);
    uint32_t size;
    if (i % 30 == 1) {
      /* An ephemeral key of low order behind a right MAC1. */
      size = 148;
      wg_forge_initiation(world, to_device, bytes, i % 60 == 1);
      if (i % 60 != 1) bytes[20] ^= 1; /* and the others' MAC1 is wrong */
    } else if (i % 3 == 0) {
      size = i % 9 == 0 ? (uint32_t)sim_random_below(random, 65508) : (uint32_t)sim_random_below(random, 200);
      sim_random_fill(random, bytes, size);
      if (size >= 4 && i % 2) kdp_store_le32(bytes, (uint32_t)sim_random_below(random, 6));
    } else {
      const sim_captured *said = sim_captured_at(world, (uint32_t)sim_random_below(random, sim_captured_count(world)));
      memcpy(bytes, said->datagram->bytes, said->datagram->size);
      size = spoil(random, bytes, said->datagram->size, sizeof bytes);
    }
    sim_inject(world, &stranger, &to, (uint8_t)sim_random_below(random, 4), bytes, size, 0);
    sim_run_for(world, 500 * KDP_MILLISECOND);
  }
  wg_pair_silence(&pair);
  sim_run_for(world, 200 * KDP_SECOND);
  /* Counted, each: what reached an engine is what the hosts sent each other and what was injected. */
  sim_check_number(world, sim_host_handed_total(pair.a->host, true), ==, sim_host_sent(pair.b->host) + 600);
  sim_check_number(world, sim_host_handed_total(pair.b->host, true), ==, sim_host_sent(pair.a->host) + 600);
  uint64_t good = 0;
  for (uint32_t i = 0; i < 2; i++)
    good += sim_host_handed(target[i]->host, true, KDP_OK) + sim_host_handed(target[i]->host, true, KDP_KEEPALIVE);
  sim_check_number(world, good, ==, sim_host_sent(pair.a->host) + sim_host_sent(pair.b->host));
  sim_check(world,
            wg_statistics(pair.b).status[KDP_LOW_ORDER_KEY] + wg_statistics(pair.a).status[KDP_LOW_ORDER_KEY] == 20);
  sim_check(world, wg_statistics(pair.b).status[KDP_TRUNCATED] > 0);
  sim_check(world, wg_statistics(pair.b).status[KDP_BAD_MAC1] >= 20);
  sim_flow_counts up = sim_flow_counts_of(pair.up), down = sim_flow_counts_of(pair.down);
  sim_check_number(world, up.delivered, ==, up.sent);
  sim_check_number(world, down.delivered, ==, down.sent);
  uint64_t before = pair.b->sent[2];
  sim_flow_send(pair.up, 1);
  sim_run_for(world, KDP_SECOND);
  sim_check_number(world, pair.b->sent[2], ==, before + 1);
}
