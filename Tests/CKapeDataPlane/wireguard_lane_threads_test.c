/* WireGuard's lanes at the same time: one thread each, as workers have them. What holds is checked packet by packet;
   when anything happens is the scheduler's choice, and VARIANT=tsan watches over what they share. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/wireguard_lane.h"

enum { BATCH = 64, PAYLOAD = 16, INNER = 28 + PAYLOAD, SEALED = 16 + 48 + 16, REACH = 8128 };

static const kdp_limits four_lanes = {.lanes = 4};

/* A failed check in a thread must not jump out of it. */
static void demand(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  abort();
}
#define DEMAND(condition) demand(condition, __FILE__ ": " #condition)

/* An inner packet that says who sealed it and which of that one's packets it is. */
static uint32_t numbered(uint8_t *bytes, const node *from, const node *to, uint32_t sealer, uint64_t number) {
  uint32_t size = node_packet(bytes, from, to, PAYLOAD);
  kdp_store_le32(bytes + 28, sealer);
  kdp_store_le64(bytes + 32, number);
  return size;
}

static bool is_whole(const uint8_t *bytes, uint32_t size, const node *from, const node *to) {
  uint8_t expected[INNER];
  if (size != INNER) return false;
  numbered(expected, from, to, kdp_load_le32(bytes + 28), kdp_load_le64(bytes + 32));
  return memcmp(bytes, expected, INNER) == 0;
}

static uint32_t carve(side_lane *l, kdp_packet *packet, const void *bytes, uint32_t size) {
  DEMAND(kdp_pool_take_packet(l->pool, KDP_WIREGUARD_HEAD, size, KDP_WIREGUARD_TAIL, packet));
  memcpy(packet->data, bytes, size);
  return size;
}

/* Seals `count` numbered packets; the sealed ones are in l->out->wire. */
static void seal_batch(side_lane *l, const node *to, uint32_t sealer, uint64_t first, uint32_t count,
                       kdp_packet *packet, kdp_now now) {
  uint8_t bytes[INNER];
  for (uint32_t i = 0; i < count; i++)
    carve(l, &packet[i], bytes, numbered(bytes, l->of, to, sealer, first + i));
  kdp_batch batch = {.packet = packet, .count = count, .capacity = count};
  DEMAND(kdp_engine_inside(l->lane, &batch, l->out, now) == count);
}

/* ---- Two seal, one opens ---- */

/* Datagrams on their way, with back pressure. */
typedef struct wire {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint8_t datagram[1024][SEALED];
  uint32_t first, count, writers;
} wire;

static void wire_put(wire *w, const kdp_batch *sealed) {
  for (uint32_t i = 0; i < sealed->count; i++) {
    DEMAND(sealed->packet[i].size == SEALED);
    pthread_mutex_lock(&w->lock);
    while (w->count == 1024)
      pthread_cond_wait(&w->changed, &w->lock);
    memcpy(w->datagram[(w->first + w->count++) % 1024], sealed->packet[i].data, SEALED);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
  }
}

static uint32_t wire_take(wire *w, uint8_t (*datagram)[SEALED], uint32_t most) {
  uint32_t taken = 0;
  pthread_mutex_lock(&w->lock);
  while (w->count == 0 && w->writers > 0)
    pthread_cond_wait(&w->changed, &w->lock);
  while (taken < most && w->count > 0) {
    memcpy(datagram[taken++], w->datagram[w->first++ % 1024], SEALED);
    w->count--;
  }
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
  return taken;
}

enum { ROUNDS = 150, SEALERS = 2, TOTAL = SEALERS * ROUNDS * BATCH };

typedef struct sealer {
  side_lane *l;
  const node *to;
  wire *wire;
  uint32_t number;
  kdp_now now;
} sealer;

static void *seal_on(void *context) {
  sealer *s = context;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    kdp_packet packet[BATCH];
    seal_batch(s->l, s->to, s->number, round * BATCH, BATCH, packet, s->now);
    for (uint32_t i = 0; i < BATCH; i++)
      DEMAND(packet[i].status == KDP_OK);
    DEMAND(s->l->out->wire.count == BATCH);
    wire_put(s->wire, &s->l->out->wire);
    side_lane_drain(s->l);
  }
  pthread_mutex_lock(&s->wire->lock);
  s->wire->writers--;
  pthread_cond_broadcast(&s->wire->changed);
  pthread_mutex_unlock(&s->wire->lock);
  return NULL;
}

static void two_lanes_seal_for_one_session_while_a_third_opens(void **state) {
  (void)state;
  static wire w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .writers = SEALERS};
  static bool counter_seen[TOTAL + 16], packet_seen[SEALERS][ROUNDS * BATCH];
  node *a = node_make(1, NULL, &four_lanes), *b = node_make(2, NULL, &four_lanes);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  uint64_t base = node_peer_of(a, b)->current->send_counter, newest = 0, opened = 0, too_late = 0;
  sealer sealer[SEALERS];
  pthread_t thread[SEALERS];
  for (uint32_t i = 0; i < SEALERS; i++) {
    sealer[i] = (struct sealer){.l = side_lane_make(a, i + 1), .to = b, .wire = &w, .number = i, .now = now};
    assert_int_equal(pthread_create(&thread[i], NULL, seal_on, &sealer[i]), 0);
  }
  side_lane *l = side_lane_make(b, 1);
  kdp_path path = node_path(b, a);
  uint8_t datagram[BATCH][SEALED];
  for (uint32_t count; (count = wire_take(&w, datagram, BATCH)) > 0;) {
    kdp_packet packet[BATCH];
    for (uint32_t i = 0; i < count; i++)
      carve(l, &packet[i], datagram[i], SEALED);
    kdp_batch batch = {
        .packet = packet, .count = count, .capacity = BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
    assert_int_equal(kdp_engine_outside(l->lane, &batch, l->out, now), count);
    for (uint32_t i = 0; i < count; i++) {
      uint64_t counter = kdp_load_le64(datagram[i] + 8);
      assert_true(counter >= base && counter - base < TOTAL);
      assert_false(counter_seen[counter - base]);
      counter_seen[counter - base] = true;
      if (counter > newest) newest = counter;
      if (packet[i].status == KDP_OK) {
        opened++;
      } else { /* a thread that had to wait for a processor for that long */
        assert_int_equal(packet[i].status, KDP_REPLAYED);
        assert_true(newest - counter > REACH - BATCH);
        too_late++;
      }
    }
    for (uint32_t i = 0; i < l->out->inside.count; i++) {
      const kdp_packet *inner = &l->out->inside.packet[i];
      assert_true(is_whole(inner->data, inner->size, a, b));
      bool *seen = &packet_seen[kdp_load_le32(inner->data + 28)][kdp_load_le64(inner->data + 32)];
      assert_false(*seen);
      *seen = true;
    }
    side_lane_drain(l);
  }
  for (uint32_t i = 0; i < SEALERS; i++) {
    pthread_join(thread[i], NULL);
    side_lane_free(sealer[i].l);
  }
  assert_int_equal(opened + too_late, TOTAL);
  assert_int_equal(node_peer_of(a, b)->current->send_counter, base + TOTAL);
  kdp_wireguard_peer_info info;
  assert_int_equal(kdp_wireguard_find_peer(b->engine, a->public_key, &info), KDP_OK);
  assert_true(info.received_bytes >= opened * SEALED);
  side_lane_free(l);
  node_free(a);
  node_free(b);
}

/* ---- Two open the same ---- */

enum { TWICE = 12000 };

typedef struct opener {
  side_lane *l;
  const node *from;
  uint8_t (*datagram)[SEALED];
  atomic_uint *opened; /* of each datagram: how often */
  kdp_now now;
} opener;

static void *open_all(void *context) {
  opener *o = context;
  kdp_path path = node_path(o->l->of, o->from);
  for (uint32_t at = 0; at < TWICE; at += BATCH) {
    uint32_t count = TWICE - at < BATCH ? TWICE - at : BATCH;
    kdp_packet packet[BATCH];
    for (uint32_t i = 0; i < count; i++)
      carve(o->l, &packet[i], o->datagram[at + i], SEALED);
    kdp_batch batch = {
        .packet = packet, .count = count, .capacity = BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
    DEMAND(kdp_engine_outside(o->l->lane, &batch, o->l->out, o->now) == count);
    for (uint32_t i = 0; i < count; i++) {
      DEMAND(packet[i].status == KDP_OK || packet[i].status == KDP_REPLAYED);
      if (packet[i].status == KDP_OK) atomic_fetch_add(&o->opened[at + i], 1);
    }
    side_lane_drain(o->l);
  }
  return NULL;
}

/* Both get every datagram in order: whoever is first opens it, so that none is lost and none opened twice. */
static void a_datagram_given_to_two_lanes_is_opened_once(void **state) {
  (void)state;
  static uint8_t datagram[TWICE][SEALED];
  static atomic_uint opened[TWICE];
  node *a = node_make(1, NULL, &four_lanes), *b = node_make(2, NULL, &four_lanes);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  side_lane *seals = side_lane_make(a, 1);
  for (uint32_t at = 0; at < TWICE;) {
    kdp_packet packet[BATCH];
    seal_batch(seals, b, 0, at, TWICE - at < BATCH ? TWICE - at : BATCH, packet, now);
    for (uint32_t i = 0; i < seals->out->wire.count; i++)
      memcpy(datagram[at++], seals->out->wire.packet[i].data, SEALED);
    side_lane_drain(seals);
  }
  opener opener[2];
  pthread_t thread[2];
  for (uint32_t i = 0; i < 2; i++) {
    opener[i] =
        (struct opener){.l = side_lane_make(b, i + 1), .from = a, .datagram = datagram, .opened = opened, .now = now};
    assert_int_equal(pthread_create(&thread[i], NULL, open_all, &opener[i]), 0);
  }
  for (uint32_t i = 0; i < 2; i++) {
    pthread_join(thread[i], NULL);
    side_lane_free(opener[i].l);
  }
  for (uint32_t i = 0; i < TWICE; i++)
    assert_int_equal(atomic_load(&opened[i]), 1);
  assert_int_equal(node_counted(b, KDP_REPLAYED), TWICE);
  side_lane_free(seals);
  node_free(a);
  node_free(b);
}

/* ---- The last counters ---- */

typedef struct last_user {
  side_lane *l;
  const node *to;
  pthread_barrier_t *start;
  atomic_uint *sent, *dropped;
  kdp_now now;
} last_user;

enum { LAST = 70, LAST_ROUNDS = 300 };

static void *use_last(void *context) {
  last_user *u = context;
  for (int round = 0; round < LAST_ROUNDS; round++) {
    kdp_packet packet[BATCH];
    pthread_barrier_wait(u->start);
    seal_batch(u->l, u->to, 0, 0, BATCH, packet, u->now);
    uint32_t handed_over = 0, sent = u->l->out->wire.count;
    for (uint32_t i = 0; i < BATCH; i++)
      handed_over += packet[i].status == KDP_HANDED_OVER;
    for (uint32_t i = 0; i < sent; i++)
      DEMAND(kdp_load_le64(u->l->out->wire.packet[i].data + 8) < KDP_WG_REJECT_AFTER_MESSAGES);
    atomic_fetch_add(u->sent, sent);
    atomic_fetch_add(u->dropped, BATCH - sent - handed_over);
    side_lane_drain(u->l);
    pthread_barrier_wait(u->start);
    pthread_barrier_wait(u->start);
  }
  return NULL;
}

/* Both lanes may see enough counters left and take more than there are: none beyond the last is sent, and what is
   dropped is counted. */
static void a_session_used_up_by_two_lanes_at_once_sends_no_more_than_it_may(void **state) {
  (void)state;
  node *a = node_make(1, NULL, &four_lanes), *b = node_make(2, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  kdp_wg_key_pair *session = node_peer_of(a, b)->current;
  atomic_uint sent, dropped;
  uint64_t all_dropped = 0;
  pthread_barrier_t start;
  assert_int_equal(pthread_barrier_init(&start, NULL, 3), 0);
  last_user user[2];
  pthread_t thread[2];
  for (uint32_t i = 0; i < 2; i++) {
    user[i] = (last_user){
        .l = side_lane_make(a, i + 1), .to = b, .start = &start, .sent = &sent, .dropped = &dropped, .now = now};
    assert_int_equal(pthread_create(&thread[i], NULL, use_last, &user[i]), 0);
  }
  for (int round = 0; round < LAST_ROUNDS; round++) {
    session->send_counter = KDP_WG_REJECT_AFTER_MESSAGES - LAST;
    atomic_store(&sent, 0);
    atomic_store(&dropped, 0);
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&start);
    assert_in_range(atomic_load(&sent), BATCH, LAST);
    if (session->send_counter >= KDP_WG_REJECT_AFTER_MESSAGES) assert_int_equal(atomic_load(&sent), LAST);
    all_dropped += atomic_load(&dropped);
    pthread_barrier_wait(&start);
  }
  for (uint32_t i = 0; i < 2; i++) {
    pthread_join(thread[i], NULL);
    side_lane_free(user[i].l);
  }
  pthread_barrier_destroy(&start);
  assert_int_equal(node_counted(a, KDP_KEY_EXPIRED), all_dropped);
  session->send_counter = 100;
  node_free(a);
  node_free(b);
}

/* ---- Everything at once ---- */

/* What lanes hand over, for the thread of lane 0. */
typedef struct mail {
  node *to;
  bool inside;
  kdp_path path;
  uint32_t size;
  uint8_t bytes[SEALED + 200];
} mail;

enum { MAILS = 256, STEPS = 1000, AFTERWARDS = 200, A_STEP = 512, NUMBERS = (STEPS + AFTERWARDS) * A_STEP };

typedef struct world {
  node *a, *b;
  pthread_mutex_t lock;
  mail mail[MAILS];
  uint32_t mail_first, mail_count;
  atomic_uint done;
  _Atomic(uint64_t) sealed[2]; /* numbers used */
  _Atomic(uint64_t) clock;     /* ms */
  _Atomic(uint64_t) granted;   /* numbers that may be sealed so far: about as much data as there is disturbance */
  atomic_uint port;            /* of both, as the other sees it on the lanes */
  atomic_uchar *seen[2];       /* inner packets delivered, by sealer and number */
  atomic_uint delivered[2];
} world;

static void deliver(world *w, const uint8_t *bytes, uint32_t size, const node *from, const node *to) {
  DEMAND(is_whole(bytes, size, from, to));
  uint32_t sealer = kdp_load_le32(bytes + 28);
  uint64_t number = kdp_load_le64(bytes + 32);
  DEMAND(sealer < 2 && number < NUMBERS);
  DEMAND(atomic_exchange(&w->seen[sealer][number], 1) == 0);
}

static void post(world *w, side_lane *l) {
  pthread_mutex_lock(&w->lock);
  for (uint32_t i = 0; i < l->out->action_count; i++) {
    const kdp_action *action = &l->out->action[i];
    DEMAND(action->kind == KDP_ACTION_HANDOFF);
    if (action->packet.size == 0 || w->mail_count == MAILS) continue;
    mail *m = &w->mail[(w->mail_first + w->mail_count++) % MAILS];
    *m = (mail){.to = l->of, .inside = action->from_inside, .path = action->path, .size = action->packet.size};
    DEMAND(m->size <= sizeof m->bytes);
    memcpy(m->bytes, action->packet.data, m->size);
  }
  pthread_mutex_unlock(&w->lock);
}

typedef struct direction {
  world *w;
  uint32_t sealer;
  node *from, *to;
  side_lane *seals, *opens;
} direction;

static void *carry(void *context) {
  direction *d = context;
  world *w = d->w;
  rng r = {d->sealer + 7};
  for (uint64_t number = 0; !atomic_load(&w->done);) {
    if (number + BATCH > atomic_load(&w->granted)) {
      sched_yield();
      continue;
    }
    kdp_packet packet[BATCH], copy[BATCH];
    uint32_t count = 1 + rng_below(&r, BATCH);
    kdp_now now = node_time(atomic_load(&w->clock));
    seal_batch(d->seals, d->to, d->sealer, number, count, packet, now);
    number += count;
    atomic_store(&w->sealed[d->sealer], number);
    for (uint32_t i = 0; i < count; i++)
      DEMAND(packet[i].status == KDP_OK || packet[i].status == KDP_HANDED_OVER ||
             packet[i].status == KDP_HANDOVER_FULL);
    kdp_path path = node_path(d->to, d->from);
    path.remote.port = (uint16_t)atomic_load(&w->port);
    uint32_t sealed = d->seals->out->wire.count;
    for (uint32_t i = 0; i < sealed; i++)
      carve(d->opens, &copy[i], d->seals->out->wire.packet[i].data, d->seals->out->wire.packet[i].size);
    if (sealed > 0) {
      kdp_batch batch = {
          .packet = copy, .count = sealed, .capacity = BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
      DEMAND(kdp_engine_outside(d->opens->lane, &batch, d->opens->out, now) == sealed);
      for (uint32_t i = 0; i < sealed; i++)
        DEMAND(copy[i].status == KDP_OK || copy[i].status == KDP_HANDED_OVER || copy[i].status == KDP_HANDOVER_FULL ||
               copy[i].status == KDP_UNKNOWN_SESSION || copy[i].status == KDP_KEY_EXPIRED ||
               copy[i].status == KDP_WRONG_SOURCE);
    }
    for (uint32_t i = 0; i < d->opens->out->inside.count; i++)
      deliver(w, d->opens->out->inside.packet[i].data, d->opens->out->inside.packet[i].size, d->from, d->to);
    atomic_fetch_add(&w->delivered[d->sealer], d->opens->out->inside.count);
    post(w, d->seals);
    post(w, d->opens);
    side_lane_drain(d->seals);
    side_lane_drain(d->opens);
  }
  return NULL;
}

/* Data goes on beside the changes: neither runs far ahead of the other. */
static void keep_pace(world *w) {
  uint64_t granted = atomic_fetch_add(&w->granted, A_STEP);
  for (int i = 0; i < 2; i++)
    while (atomic_load(&w->sealed[i]) + A_STEP < granted)
      sched_yield();
}

/* ICMP errors of lane 0 are not what a lane sealed. */
static void look_at_delivered(world *w, node *n, const node *from) {
  for (uint32_t i = 0; i < n->delivered_count; i++)
    if (n->delivered[i].size == INNER && n->delivered[i].bytes[9] == 17)
      deliver(w, n->delivered[i].bytes, n->delivered[i].size, from, n);
  node_forget(n);
}

static void work_off(world *w, kdp_now now) {
  for (int i = 0; i < 200; i++) {
    mail m;
    pthread_mutex_lock(&w->lock);
    bool any = w->mail_count > 0;
    if (any) {
      m = w->mail[w->mail_first++ % MAILS];
      w->mail_count--;
    }
    pthread_mutex_unlock(&w->lock);
    if (!any) break;
    if (m.inside)
      (void)node_send(m.to, m.bytes, m.size, now);
    else
      (void)node_receive(m.to, m.bytes, m.size, &m.path, now);
  }
  node_tick(w->a, now);
  node_tick(w->b, now);
  node_exchange(w->a, w->b, now);
  look_at_delivered(w, w->a, w->b);
  look_at_delivered(w, w->b, w->a);
}

static void remove_peer(node *n, const node *other, kdp_now now) {
  kdp_wireguard_peer_change change = node_peer(other, false, NULL, 0);
  change.fields = KDP_WIREGUARD_PEER_REMOVE;
  assert_int_equal(node_apply(n, &(kdp_wireguard_change){.peer = &change, .peer_count = 1}, now), KDP_OK);
}

static void replace_with_the_same(node *n, const node *other, kdp_now now) {
  kdp_wireguard_prefix_change prefix = node_prefix(other);
  kdp_wireguard_peer_change peer = node_peer(other, true, &prefix, 1);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_REPLACE_PEERS, .peer = &peer, .peer_count = 1};
  assert_int_equal(node_apply(n, &change, now), KDP_OK);
}

/* Many peers that are nobody come and go: tables grow and the tries change. */
static void crowd(node *n, rng *r, kdp_now now) {
  enum { CROWD = 40 };
  kdp_wireguard_prefix_change prefix[CROWD] = {0};
  kdp_wireguard_peer_change peer[CROWD] = {0};
  for (uint32_t i = 0; i < CROWD; i++) {
    prefix[i].prefix = (kdp_prefix){.family = KDP_FAMILY_IPV4, .length = 24, .bytes = {10, 9, (uint8_t)i}};
    rng_fill(r, peer[i].public_key, KDP_KEY_SIZE);
    peer[i].prefix = &prefix[i];
    peer[i].prefix_count = 1;
  }
  assert_int_equal(node_apply(n, &(kdp_wireguard_change){.peer = peer, .peer_count = CROWD}, now), KDP_OK);
}

static void disturb(world *w, rng *r, kdp_now now) {
  node *n = rng_one_in(r, 2) ? w->a : w->b, *other = n == w->a ? w->b : w->a;
  kdp_path path = node_path(n, other);
  kdp_wireguard_device_info device;
  kdp_wireguard_peer_info info;
  kdp_statistics statistics;
  uint64_t cursor = 0;
  switch (rng_below(r, 14)) {
  case 0: remove_peer(n, other, now); break;
  case 1: replace_with_the_same(n, other, now); break;
  case 2: crowd(n, r, now); break;
  case 3: atomic_store(&w->port, 50000 + rng_below(r, 4)); break;
  case 4:
    kdp_engine_link_down(n->lane, 0, 0, n->out, now);
    node_tick(n, now);
    kdp_engine_link_up(n->lane, 0, KDP_LINK_DATAGRAM, &path, n->out, now);
    break;
  case 5: node_network_changed(n, now); break;
  case 6: kdp_engine_path_mtu(n->lane, &path, (uint16_t)(rng_one_in(r, 2) ? 1400 : 0), now); break;
  case 7: kdp_engine_set_inside_mtu(n->engine, (uint16_t)(1280 + rng_below(r, 200))); break;
  case 8:
    kdp_engine_statistics(n->engine, &statistics);
    kdp_wireguard_device(n->engine, &device);
    while (kdp_wireguard_next_peer(n->engine, &cursor, &info))
      ;
    break;
  case 9: assert_int_equal(node_set_private_key(n, n->private_key, now), KDP_OK); break;
  default: { /* most of all: new keys */
    kdp_wg_peer *peer = node_peer_of(n, other);
    if (peer) kdp_wg_want_handshake(n->device, peer, now.boot);
    break;
  }
  }
  if (!node_peer_of(n, other)) assert_int_equal(node_add_peer(n, other, true, now), KDP_OK);
}

static void lanes_carry_data_while_lane_0_changes_everything(void **state) {
  (void)state;
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  for (int i = 0; i < 2; i++) {
    w->seen[i] = calloc(NUMBERS, 1);
    assert_non_null(w->seen[i]);
  }
  pthread_mutex_init(&w->lock, NULL);
  w->a = node_make(1, NULL, &four_lanes);
  w->b = node_make(2, NULL, &four_lanes);
  rng r = {11};
  uint64_t clock = 1000;
  atomic_store(&w->clock, clock);
  atomic_store(&w->port, 51820);
  node_connect(w->a, w->b, node_time(clock));
  direction d[2] = {{.w = w, .sealer = 0, .from = w->a, .to = w->b}, {.w = w, .sealer = 1, .from = w->b, .to = w->a}};
  pthread_t thread[2];
  for (int i = 0; i < 2; i++) {
    d[i].seals = side_lane_make(d[i].from, 1);
    d[i].opens = side_lane_make(d[i].to, 2);
    assert_int_equal(pthread_create(&thread[i], NULL, carry, &d[i]), 0);
  }
  for (int step = 0; step < STEPS; step++) {
    clock += 25 + rng_below(&r, 1500);
    atomic_store(&w->clock, clock);
    keep_pace(w);
    disturb(w, &r, node_time(clock));
    for (int i = 0; i < 3; i++)
      work_off(w, node_time(clock));
  }
  /* And afterwards all is well: without disturbance the lanes soon carry again by themselves. */
  atomic_store(&w->port, 51820); /* where lane 0's messages come from */
  uint32_t before[2] = {atomic_load(&w->delivered[0]), atomic_load(&w->delivered[1])};
  for (int i = 0; i < AFTERWARDS; i++) {
    if (atomic_load(&w->delivered[0]) > before[0] + A_STEP && atomic_load(&w->delivered[1]) > before[1] + A_STEP) break;
    atomic_store(&w->clock, clock += 100);
    keep_pace(w);
    work_off(w, node_time(clock));
  }
  atomic_store(&w->done, 1);
  for (int i = 0; i < 2; i++) {
    pthread_join(thread[i], NULL);
    side_lane_free(d[i].seals);
    side_lane_free(d[i].opens);
  }
  kdp_statistics at_a, at_b;
  kdp_engine_statistics(w->a->engine, &at_a);
  kdp_engine_statistics(w->b->engine, &at_b);
  assert_true(atomic_load(&w->delivered[0]) > before[0] + A_STEP && atomic_load(&w->delivered[1]) > before[1] + A_STEP);
  assert_true(at_a.key_changes > 50 && at_b.key_changes > 50);
  assert_true(at_a.roams + at_b.roams > 10);
  assert_true(at_a.status[KDP_HANDED_OVER] > 100);
  node_free(w->a);
  node_free(w->b);
  for (int i = 0; i < 2; i++)
    free(w->seen[i]);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

/* ---- A flood ---- */

typedef struct steady {
  direction *d;
  atomic_uint rounds;
} steady;

enum { STEADY_ROUNDS = 400 };

/* Lane 1 of a to lane 1 of b: every packet has to pass. */
static void *carry_steadily(void *context) {
  steady *s = context;
  kdp_path path = node_path(s->d->to, s->d->from);
  for (uint32_t round = 0; round < STEADY_ROUNDS; round++) {
    kdp_packet packet[BATCH], copy[BATCH];
    seal_batch(s->d->seals, s->d->to, 0, round * BATCH, BATCH, packet, node_time(1000));
    DEMAND(s->d->seals->out->wire.count == BATCH);
    for (uint32_t i = 0; i < BATCH; i++)
      carve(s->d->opens, &copy[i], s->d->seals->out->wire.packet[i].data, SEALED);
    kdp_batch batch = {
        .packet = copy, .count = BATCH, .capacity = BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
    DEMAND(kdp_engine_outside(s->d->opens->lane, &batch, s->d->opens->out, node_time(1000)) == BATCH);
    DEMAND(s->d->opens->out->inside.count == BATCH);
    side_lane_drain(s->d->seals);
    side_lane_drain(s->d->opens);
    atomic_fetch_add(&s->rounds, 1);
  }
  return NULL;
}

/* Lane 0 of a works on handshakes of peers that begin again and again, and of strangers, without an end; the session of
   lane 1 goes on below it, packet by packet. */
static void a_flood_of_handshakes_on_lane_0_stops_nothing_on_lane_1(void **state) {
  (void)state;
  enum { FRIENDS = 6 };
  node *a = node_make(1, NULL, &four_lanes), *b = node_make(2, NULL, &four_lanes), *friend[FRIENDS];
  node *stranger = node_make(100, NULL, NULL);
  kdp_now now = node_time(1000);
  node_connect(a, b, now);
  for (int i = 0; i < FRIENDS; i++) {
    friend[i] = node_make((uint8_t)(10 + i), NULL, NULL);
    assert_int_equal(node_add_peer(a, friend[i], false, now), KDP_OK);
    assert_int_equal(node_add_peer(friend[i], a, true, now), KDP_OK);
  }
  assert_int_equal(node_add_peer(stranger, a, true, now), KDP_OK);
  assert_int_equal(node_send_to(stranger, a, 1, now), KDP_OK);
  direction d = {.from = a, .to = b, .seals = side_lane_make(a, 1), .opens = side_lane_make(b, 1)};
  steady s = {.d = &d};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, carry_steadily, &s), 0);
  uint64_t answered = 0;
  kdp_path from_stranger = node_path(a, stranger);
  for (uint64_t at = 1000; atomic_load(&s.rounds) < STEADY_ROUNDS || answered < 50; at += 6000) {
    kdp_now then = {.boot = now.boot, .wall = node_time(at).wall};
    (void)node_receive(a, stranger->sent[0].bytes, stranger->sent[0].size, &from_stranger, then);
    node *f = friend[at / 6000 % FRIENDS];
    kdp_wg_peer *peer = node_peer_of(f, a);
    kdp_path path = node_path(a, f);
    kdp_wg_timers_stop(f->device, peer);
    peer->handshake_sent = 0;
    node_peer_of(a, f)->initiation_consumed = 0; /* as if time had passed, which would end the session of lane 1 */
    a->device->load_until = a->device->load_messages = 0;
    kdp_wg_want_handshake(f->device, peer, now.boot);
    node_tick(f, then);
    uint32_t last = 0;
    if (node_count_sent(f, KDP_WG_INITIATION, &last) > 0)
      answered += node_receive(a, f->sent[last].bytes, f->sent[last].size, &path, then) == KDP_OK;
    node_forget(f);
    node_forget(a);
  }
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&s.rounds), STEADY_ROUNDS);
  assert_true(answered >= 50);
  side_lane_free(d.seals);
  side_lane_free(d.opens);
  for (int i = 0; i < FRIENDS; i++)
    node_free(friend[i]);
  node_free(stranger);
  node_free(a);
  node_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_lanes_seal_for_one_session_while_a_third_opens),
      cmocka_unit_test(a_datagram_given_to_two_lanes_is_opened_once),
      cmocka_unit_test(a_session_used_up_by_two_lanes_at_once_sends_no_more_than_it_may),
      cmocka_unit_test(lanes_carry_data_while_lane_0_changes_everything),
      cmocka_unit_test(a_flood_of_handshakes_on_lane_0_stops_nothing_on_lane_1),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
