/* The embedded tunnel: two of them that talk to each other, and one round an engine that does what the contract
   allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kdp/embed.h"
#include "support/wireguard_node.h"

/* ---- WireGuard at both ends ---- */

enum { KEPT = 1200, LARGEST = 60000 };

typedef struct kept {
  uint8_t *bytes;
  uint32_t size;
  kdp_path path;
  uint8_t ecn;
} kept;

/* A program with an embedded tunnel; `end` lends its keys and its address. */
typedef struct program {
  kdp_host host;
  size_t allocations;
  bool no_more;
  node *end;
  kdp_embed *tunnel;
  kept sent[KEPT], delivered[KEPT];
  uint32_t sent_count, delivered_count, connected, rebind, resolve, path_mtu;
} program;

static void *allocate(void *context, size_t size) {
  program *p = context;
  p->allocations++;
  return p->no_more ? NULL : malloc(size);
}

static void release(void *context, void *memory, size_t size) {
  program *p = context;
  (void)size;
  p->allocations--;
  free(memory);
}

static void fill_random(void *context, void *bytes, size_t size) {
  const program *p = context;
  p->end->host.random(p->end->host.context, bytes, size);
}

static program *make_program(uint8_t number) {
  program *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->end = node_make(number, NULL, NULL);
  p->host = (kdp_host){p, allocate, release, fill_random, NULL};
  kdp_engine *engine = NULL;
  const kdp_wireguard_config config = {.inside_mtu = UINT16_MAX};
  const kdp_limits limits = {0};
  assert_int_equal(kdp_wireguard_create(&config, &limits, &p->host, node_time(1000), &engine), KDP_OK);
  assert_int_equal(kdp_embed_create(engine, &p->host, &p->tunnel), KDP_OK);
  return p;
}

static void know(program *p, const program *other, uint16_t keepalive) {
  kdp_wireguard_prefix_change prefix = node_prefix(other->end);
  kdp_wireguard_peer_change peer = node_peer(other->end, true, &prefix, 1);
  peer.fields |= KDP_WIREGUARD_PEER_SET_KEEPALIVE;
  peer.keepalive_seconds = keepalive;
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memcpy(change.private_key, p->end->private_key, sizeof change.private_key);
  assert_int_equal(kdp_wireguard_apply(kdp_embed_engine(p->tunnel), &change, kdp_embed_out(p->tunnel), node_time(1000)),
                   KDP_OK);
}

static void forget(kept *list, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    free(list[i].bytes);
  *count = 0;
}

static void destroy_program(program *p) {
  kdp_embed_destroy(p->tunnel);
  assert_int_equal(p->allocations, 0);
  forget(p->sent, &p->sent_count);
  forget(p->delivered, &p->delivered_count);
  node_free(p->end);
  free(p);
}

static void keep(kept *list, uint32_t *count, const kdp_packet *packet) {
  assert_in_range(*count, 0, KEPT - 1);
  kept *k = &list[(*count)++];
  *k = (kept){.bytes = malloc(packet->size + 1), .size = packet->size, .ecn = packet->ecn};
  assert_non_null(k->bytes);
  memcpy(k->bytes, packet->data, packet->size);
}

/* A round; afterwards the tunnel holds no slot but the one that it carves from. */
static void run(program *p, kdp_now now) {
  kdp_embed_output output;
  while (kdp_embed_next(p->tunnel, now, &output)) {
    switch (output.kind) {
    case KDP_EMBED_SEND:
      keep(p->sent, &p->sent_count, &output.packet);
      p->sent[p->sent_count - 1].path = output.path;
      break;
    case KDP_EMBED_DELIVER: keep(p->delivered, &p->delivered_count, &output.packet); break;
    case KDP_EMBED_ACTION:
      p->rebind += output.action.kind == KDP_ACTION_REBIND;
      p->resolve += output.action.kind == KDP_ACTION_RESOLVE;
      p->path_mtu += output.action.kind == KDP_ACTION_PATH_MTU;
      break;
    case KDP_EMBED_EVENT: p->connected += output.event.kind == KDP_EVENT_CONNECTED; break;
    }
  }
  const kdp_pool *pool = kdp_embed_out(p->tunnel)->pool;
  assert_in_range(kdp_pool_slot_count(pool) - kdp_pool_free_count(pool), 0, 1);
}

/* Datagrams of `from` to `to`, in as many rounds as it takes. */
static void pass(program *from, program *to, kdp_now now) {
  for (uint32_t i = 0; i < from->sent_count;) {
    const kept *datagram = &from->sent[i];
    assert_true(kdp_address_equal(&datagram->path.remote, &to->end->address));
    kdp_path path = node_path(to->end, from->end);
    kdp_status status = kdp_embed_outside(to->tunnel, datagram->bytes, datagram->size, &path, datagram->ecn);
    if (status == KDP_OK) i++;
    if (status != KDP_OK) {
      assert_int_equal(status, KDP_OUT_FULL);
      assert_true(kdp_embed_is_full(to->tunnel));
      run(to, now);
    }
  }
  forget(from->sent, &from->sent_count);
  run(to, now);
}

static void exchange(program *a, program *b, kdp_now now) {
  run(a, now);
  run(b, now);
  while (a->sent_count || b->sent_count) {
    pass(a, b, now);
    pass(b, a, now);
  }
}

static void connect_both(program *a, program *b, kdp_now now) {
  know(b, a, 0);
  know(a, b, 25);
  assert_int_equal(kdp_embed_deadline(a->tunnel), 0); /* what the configuration brought about waits */
  exchange(a, b, now);
  assert_int_equal(a->connected, 1);
  assert_int_equal(b->connected, 1);
}

/* Hands packets of about `payload` bytes in until `count` are, in as many rounds as it takes; returns the rounds. */
static uint32_t send_burst(program *from, const program *to, uint32_t count, uint32_t payload, kdp_now now) {
  static uint8_t packet[NODE_DATAGRAM];
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < count;) {
    uint32_t size = node_packet(packet, from->end, to->end, payload + i % 7);
    memcpy(packet + 28, &i, sizeof i);
    kdp_status status = kdp_embed_inside(from->tunnel, packet, size);
    if (status == KDP_OK) {
      i++;
    } else {
      assert_int_equal(status, KDP_OUT_FULL);
      run(from, now);
      rounds++;
    }
  }
  run(from, now);
  return rounds + 1;
}

static void expect_burst(const program *from, const program *to, uint32_t count, uint32_t payload) {
  static uint8_t packet[NODE_DATAGRAM];
  assert_int_equal(to->delivered_count, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t size = node_packet(packet, from->end, to->end, payload + i % 7);
    memcpy(packet + 28, &i, sizeof i);
    assert_int_equal(to->delivered[i].size, size);
    assert_memory_equal(to->delivered[i].bytes, packet, size);
  }
}

static void bursts_of_many_batches_arrive_in_order_and_whole(void **state) {
  (void)state;
  program *a = make_program(1), *b = make_program(2);
  kdp_now now = node_time(1000);
  connect_both(a, b, now);
  size_t allocations = a->allocations + b->allocations;
  a->no_more = b->no_more = true;
  enum { PACKETS = 1000, PAYLOAD = 1300 };
  assert_in_range(send_burst(a, b, PACKETS, PAYLOAD, now), 4, 10); /* full batches, not one by one */
  pass(a, b, now);
  expect_burst(a, b, PACKETS, PAYLOAD);
  exchange(a, b, now);
  send_burst(b, a, PACKETS, PAYLOAD, now);
  pass(b, a, now);
  expect_burst(b, a, PACKETS, PAYLOAD);
  assert_int_equal(a->allocations + b->allocations, allocations); /* nothing is allocated for packets */
  assert_int_equal(a->path_mtu, 1);
  destroy_program(a);
  destroy_program(b);
}

/* 60,000 bytes need a slot each: the pool is short long before the batch is full. */
static void packets_that_empty_the_pool_wait_outside_of_it(void **state) {
  (void)state;
  program *a = make_program(1), *b = make_program(2);
  kdp_now now = node_time(1000);
  connect_both(a, b, now);
  enum { PACKETS = 60 };
  assert_in_range(send_burst(a, b, PACKETS, LARGEST, now), 3, PACKETS / 2);
  pass(a, b, now);
  expect_burst(a, b, PACKETS, LARGEST);
  destroy_program(a);
  destroy_program(b);
}

static void what_is_too_long_is_refused_and_what_is_wrong_is_counted(void **state) {
  (void)state;
  static uint8_t bytes[UINT16_MAX + 1];
  program *a = make_program(1), *b = make_program(2);
  connect_both(a, b, node_time(1000));
  kdp_path path = node_path(a->end, b->end);
  assert_int_equal(kdp_embed_inside(a->tunnel, bytes, sizeof bytes), KDP_TOO_LONG);
  assert_int_equal(kdp_embed_inside(a->tunnel, bytes, (size_t)-1), KDP_TOO_LONG); /* read(2) has failed */
  assert_int_equal(kdp_embed_outside(a->tunnel, bytes, sizeof bytes, &path, 0), KDP_TOO_LONG);
  assert_int_equal(kdp_embed_inside(a->tunnel, bytes, 0), KDP_OK);
  assert_int_equal(kdp_embed_outside(a->tunnel, bytes, 0, &path, 0), KDP_OK);
  run(a, node_time(1000));
  kdp_statistics statistics;
  kdp_engine_statistics(kdp_embed_engine(a->tunnel), &statistics);
  assert_int_equal(statistics.status[KDP_TOO_SHORT], 2);
  assert_int_equal(a->sent_count, 0);
  destroy_program(a);
  destroy_program(b);
}

static void congestion_outside_comes_in(void **state) {
  (void)state;
  program *a = make_program(1), *b = make_program(2);
  kdp_now now = node_time(1000);
  connect_both(a, b, now);
  uint8_t packet[256];
  uint32_t size = node_packet(packet, a->end, b->end, 100);
  packet[1] = 2; /* ECT(0) */
  assert_int_equal(kdp_embed_inside(a->tunnel, packet, size), KDP_OK);
  run(a, now);
  assert_int_equal(a->sent_count, 1);
  assert_int_equal(a->sent[0].ecn, 2);
  a->sent[0].ecn = 3; /* on the way: congestion experienced */
  pass(a, b, now);
  assert_int_equal(b->delivered_count, 1);
  assert_int_equal(b->delivered[0].bytes[1] & 3, 3);
  destroy_program(a);
  destroy_program(b);
}

static void many_senders_are_more_paths_than_a_batch_has(void **state) {
  (void)state;
  program *a = make_program(1), *b = make_program(2);
  connect_both(a, b, node_time(1000));
  static const uint8_t junk[40] = {9};
  kdp_path path = node_path(a->end, b->end);
  uint32_t taken = 0;
  for (; taken < 2 * KDP_BATCH_PATHS; taken++) {
    path.remote.port = (uint16_t)(1000 + taken);
    if (kdp_embed_outside(a->tunnel, junk, sizeof junk, &path, 0) != KDP_OK) break;
  }
  assert_int_equal(taken, KDP_BATCH_PATHS);
  run(a, node_time(1000));
  assert_int_equal(kdp_embed_outside(a->tunnel, junk, sizeof junk, &path, 0), KDP_OK);
  run(a, node_time(1000));
  kdp_statistics statistics;
  kdp_engine_statistics(kdp_embed_engine(a->tunnel), &statistics);
  assert_int_equal(statistics.status[KDP_UNKNOWN_TYPE], KDP_BATCH_PATHS + 1);
  destroy_program(a);
  destroy_program(b);
}

/* Nobody answers: the timers run from deadline to deadline, and what the engine asks for comes out. */
static void timers_run_and_actions_are_told(void **state) {
  (void)state;
  program *a = make_program(1), *b = make_program(2);
  kdp_now now = node_time(1000);
  know(a, b, 25);
  run(a, now);
  while (now.boot < 30 * KDP_SECOND) {
    uint64_t deadline = kdp_embed_deadline(a->tunnel);
    assert_in_range(deadline, now.boot + 1, KDP_NEVER - 1);
    int wait = kdp_embed_timeout(a->tunnel, now);
    assert_true(now.boot + (uint64_t)wait * KDP_MILLISECOND >= deadline);
    assert_true(now.boot + (uint64_t)(wait - 1) * KDP_MILLISECOND < deadline);
    now = node_later(now, deadline - now.boot);
    assert_int_equal(kdp_embed_timeout(a->tunnel, now), 0);
    run(a, now);
  }
  assert_in_range(a->sent_count, 5, 7);
  assert_int_equal(a->rebind, 1);
  assert_int_equal(a->resolve, 1);
  destroy_program(a);
  destroy_program(b);
}

/* ---- A scripted engine ---- */

typedef struct scripted {
  kdp_engine engine;
  kdp_lane lane;
  uint32_t inside_calls, ticks, quiescents, most;
  bool destroyed;
} scripted;

static void script_destroy(kdp_engine *engine) {
  ((scripted *)engine)->destroyed = true;
}
static kdp_room script_room(const kdp_engine *engine, const kdp_path *path) {
  (void)engine;
  (void)path;
  return (kdp_room){.head = 8, .tail = 8};
}
static kdp_lane *script_lane(kdp_engine *engine, uint32_t index) {
  return index == 0 ? &((scripted *)engine)->lane : NULL;
}
/* Three a call go through as they are, each with an action behind it. */
static uint32_t script_inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  scripted *s = (scripted *)lane->engine;
  (void)now;
  s->inside_calls++;
  if (in->count > s->most) s->most = in->count;
  uint32_t done = 0;
  for (; done < in->count && done < 3; done++) {
    kdp_path path = {.link = in->packet[done].data[0]};
    kdp_packet packet = in->packet[done];
    packet.path = kdp_batch_path(&out->wire, &path);
    assert_true(kdp_batch_push(&out->wire, &packet));
    out->action[out->action_count++] =
        (kdp_action){.kind = KDP_ACTION_RESOLVE, .wire_count = out->wire.count, .peer = path.link};
  }
  return done;
}
static uint32_t script_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  (void)lane;
  (void)now;
  assert_true(kdp_batch_push(&out->inside, &in->packet[0]));
  return 1;
}
static uint64_t script_deadline(const kdp_lane *lane) {
  (void)lane;
  return 0; /* never done */
}
static void script_tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  scripted *s = (scripted *)lane->engine;
  (void)now;
  s->ticks++;
  out->action[out->action_count++] = (kdp_action){.kind = KDP_ACTION_REBIND};
}
static void script_quiescent(kdp_lane *lane, kdp_now now) {
  (void)now;
  ((scripted *)lane->engine)->quiescents++;
}
static bool script_event(kdp_engine *engine, kdp_event *event) {
  (void)engine;
  (void)event;
  return false;
}
static const kdp_engine_ops script = {.name = "script",
                                      .destroy = script_destroy,
                                      .room = script_room,
                                      .lane = script_lane,
                                      .inside = script_inside,
                                      .outside = script_outside,
                                      .deadline = script_deadline,
                                      .tick = script_tick,
                                      .quiescent = script_quiescent,
                                      .next_event = script_event};

static void output_comes_in_its_order_and_a_round_ends(void **state) {
  (void)state;
  scripted s = {.engine.ops = &script};
  s.lane.engine = &s.engine;
  kdp_host host = kdp_host_default();
  kdp_embed *tunnel = NULL;
  assert_int_equal(kdp_embed_create(&s.engine, &host, &tunnel), KDP_OK);
  const kdp_path nowhere = {0};
  const kdp_now now = node_time(1000);
  kdp_embed_output output;
  for (int round = 0; round < 3; round++) {
    for (uint8_t i = 0; i < 8; i++)
      assert_int_equal(kdp_embed_inside(tunnel, &i, 1), KDP_OK);
    uint8_t in = 100;
    assert_int_equal(kdp_embed_outside(tunnel, &in, 1, &nowhere, 0), KDP_OK);
    assert_int_equal(kdp_embed_deadline(tunnel), 0);

    assert_true(kdp_embed_next(tunnel, now, &output));
    assert_int_equal(output.kind, KDP_EMBED_DELIVER);
    assert_int_equal(output.packet.data[0], 100);
    for (uint8_t i = 0; i < 8; i++) {
      assert_true(kdp_embed_next(tunnel, now, &output));
      assert_int_equal(output.kind, KDP_EMBED_SEND);
      assert_int_equal(output.packet.data[0], i);
      assert_int_equal(output.packet.head, 8);
      assert_int_equal(output.path.link, i);
      /* What a caller hands in while it carries out what went before is part of this round, and takes nothing away. */
      if (i == 7) assert_int_equal(kdp_embed_inside(tunnel, &in, 1), KDP_OK);
      assert_int_equal(output.packet.data[0], i);
      assert_true(kdp_embed_next(tunnel, now, &output));
      assert_int_equal(output.kind, KDP_EMBED_ACTION);
      assert_int_equal(output.action.peer, i);
    }
    assert_true(kdp_embed_next(tunnel, now, &output));
    assert_int_equal(output.packet.data[0], 100);
    assert_true(kdp_embed_next(tunnel, now, &output)); /* its action */
    assert_true(kdp_embed_next(tunnel, now, &output));
    assert_int_equal(output.action.kind, KDP_ACTION_REBIND); /* of the tick */
    assert_int_equal(s.quiescents, round);
    assert_false(kdp_embed_next(tunnel, now, &output)); /* though the engine would go on for ever */
    assert_int_equal(s.ticks, round + 1);
    assert_int_equal(s.quiescents, round + 1);
    assert_int_equal(s.inside_calls, 4 * (round + 1)); /* 3, 3, 2, and the one that came late */
  }
  assert_int_equal(s.most, 8);
  kdp_embed_destroy(tunnel);
  assert_true(s.destroyed);
}

/* A program that ends in the middle of a round. */
static void it_can_be_destroyed_at_any_moment(void **state) {
  (void)state;
  for (uint32_t calls = 0; calls < 20; calls++) {
    program *a = make_program(1), *b = make_program(2);
    connect_both(a, b, node_time(1000));
    uint8_t packet[256];
    uint32_t size = node_packet(packet, a->end, b->end, 100);
    for (int i = 0; i < 10; i++)
      assert_int_equal(kdp_embed_inside(a->tunnel, packet, size), KDP_OK);
    kdp_embed_output output;
    for (uint32_t i = 0; i < calls && kdp_embed_next(a->tunnel, node_time(1000), &output); i++)
      ;
    destroy_program(a);
    destroy_program(b);
  }
  kdp_embed_destroy(NULL);
}

static void without_memory_the_engine_stays_the_callers(void **state) {
  (void)state;
  scripted s = {.engine.ops = &script};
  s.lane.engine = &s.engine;
  program p = {.no_more = true};
  kdp_host host = {&p, allocate, release, fill_random, NULL};
  kdp_embed *tunnel = NULL;
  assert_int_equal(kdp_embed_create(&s.engine, &host, &tunnel), KDP_NO_MEMORY);
  assert_false(s.destroyed);
  assert_null(tunnel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bursts_of_many_batches_arrive_in_order_and_whole),
      cmocka_unit_test(packets_that_empty_the_pool_wait_outside_of_it),
      cmocka_unit_test(what_is_too_long_is_refused_and_what_is_wrong_is_counted),
      cmocka_unit_test(congestion_outside_comes_in),
      cmocka_unit_test(many_senders_are_more_paths_than_a_batch_has),
      cmocka_unit_test(timers_run_and_actions_are_told),
      cmocka_unit_test(output_comes_in_its_order_and_a_round_ends),
      cmocka_unit_test(it_can_be_destroyed_at_any_moment),
      cmocka_unit_test(without_memory_the_engine_stays_the_callers),
  };
  return cmocka_run_group_tests_name("embedded tunnel", tests, NULL, NULL);
}
