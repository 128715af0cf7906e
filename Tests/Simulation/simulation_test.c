/* The simulator itself: it replays, its network does what its conditions say, and it finds engines that break the
   contract. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "echo_engine.h"
#include "scenario.h"

/* ---- Replay ---- */

static uint64_t hash_of(const sim_scenario *scenario, uint64_t seed) {
  sim *world = sim_create(seed, false);
  scenario->run(world);
  sim_coverage coverage;
  sim_collect(world, &coverage);
  uint64_t hash = sim_trace_hash(world);
  sim_destroy(world);
  return hash;
}

static void given_the_same_seed_every_scenario_replays_exactly(void **state) {
  (void)state;
  const sim_suite *const suites[] = {&sim_echo_suite, &sim_wireguard_suite};
  for (uint32_t s = 0; s < sizeof suites / sizeof suites[0]; s++)
    for (uint32_t i = 0; i < suites[s]->count; i++) {
      const sim_scenario *scenario = &suites[s]->scenario[i];
      if (hash_of(scenario, 3) != hash_of(scenario, 3)) fail_msg("%s goes two ways", scenario->name);
    }
}

static void given_another_seed_another_run(void **state) {
  (void)state;
  for (uint32_t i = 0; i < sim_echo_suite.count; i++)
    assert_true(hash_of(&sim_echo_suite.scenario[i], 3) != hash_of(&sim_echo_suite.scenario[i], 4));
}

/* ---- The network ---- */

typedef struct counter {
  uint64_t got, marked, damaged, shortened;
  uint64_t first, last;
} counter;

static void count_datagram(sim_host *host, const sim_datagram *datagram, void *context) {
  counter *counter = context;
  if (counter->got++ == 0) counter->first = sim_now(sim_host_world(host));
  counter->last = sim_now(sim_host_world(host));
  counter->marked += datagram->ecn == 3;
  counter->shortened += datagram->size != 100;
  uint32_t ones = 0;
  for (uint32_t i = 0; i < datagram->size; i++)
    ones += (uint32_t)__builtin_popcount(datagram->bytes[i]);
  counter->damaged += ones != 0;
}

enum { OFFERED = 10000 };

static counter offer(const sim_conditions *conditions) {
  counter counter = {0};
  sim *world = sim_create(7, false);
  sim_host *host = sim_host_add(world, &(sim_host_config){.name = "sink",
                                                          .context = &counter,
                                                          .address = {sim_ipv4(192, 0, 2, 1, 0)},
                                                          .address_count = 1,
                                                          .on_datagram = count_datagram});
  *sim_host_in(host) = *conditions;
  uint8_t zero[100] = {0};
  kdp_address from = sim_ipv4(192, 0, 2, 9, 9), to = sim_ipv4(192, 0, 2, 1, 1);
  for (uint32_t i = 0; i < OFFERED; i++)
    sim_inject(world, &from, &to, 2, zero, sizeof zero, 0);
  sim_run_for(world, 10 * KDP_SECOND);
  sim_destroy(world);
  return counter;
}

static void assert_about(uint64_t value, uint64_t expected) {
  assert_in_range(value, expected * 9 / 10, expected * 11 / 10);
}

static void the_network_keeps_to_its_conditions(void **state) {
  (void)state;
  counter clean = offer(&(sim_conditions){.delay = KDP_SECOND});
  assert_int_equal(clean.got, OFFERED);
  assert_int_equal(clean.first, KDP_SECOND);
  assert_int_equal(clean.last, KDP_SECOND);
  assert_int_equal(clean.damaged + clean.shortened + clean.marked, 0);
  assert_about(offer(&(sim_conditions){.loss = 20 * SIM_PERCENT}).got, OFFERED * 8 / 10);
  assert_about(offer(&(sim_conditions){.duplicate = 20 * SIM_PERCENT}).got, OFFERED * 12 / 10);
  assert_about(offer(&(sim_conditions){.corrupt = 20 * SIM_PERCENT}).damaged, OFFERED * 2 / 10);
  assert_about(offer(&(sim_conditions){.truncate = 20 * SIM_PERCENT}).shortened, OFFERED * 2 / 10);
  assert_about(offer(&(sim_conditions){.congestion = 20 * SIM_PERCENT}).marked, OFFERED * 2 / 10);
  assert_int_equal(offer(&(sim_conditions){.down = true}).got, 0);
  assert_int_equal(offer(&(sim_conditions){.mtu = 128}).got, OFFERED);
  assert_int_equal(offer(&(sim_conditions){.mtu = 127, .oversize = SIM_BLACK_HOLE}).got, 0);
  counter jitter = offer(&(sim_conditions){.delay = KDP_SECOND, .jitter = KDP_SECOND});
  assert_true(jitter.first < KDP_SECOND + KDP_SECOND / 100);
  assert_true(jitter.last > 2 * KDP_SECOND - KDP_SECOND / 100);
}

/* ---- Engines that break the contract, and must be found ---- */

/* Wraps the echo engine and does one thing wrong. */
typedef enum fault {
  NO_FAULT,
  LEAKS_A_SLOT,
  FORGETS_A_STATUS,
  CONSUMES_NOTHING,
  CONSUMES_TOO_MUCH,
  ALLOCATES_LATE,
  LEAKS_MEMORY,
  STANDS_STILL,
  COUNTS_BACKWARDS,
  CHANGES_A_BYTE,
  DELIVERS_TWICE,
  INVENTS_A_PACKET,
  SENDS_TO_NOWHERE,
  SAME_SIZE_WRONGLY,
  FAULT_COUNT
} fault;

typedef struct faulty {
  kdp_engine engine;
  kdp_lane lane;
  kdp_engine *inner;
  kdp_host host;
  fault fault;
  uint64_t calls;
  uint8_t *kept;
  uint8_t last[2048];
  uint32_t last_size;
} faulty;

static faulty *faulty_of(kdp_lane *lane) {
  return (faulty *)lane->engine;
}
static kdp_lane *inner_lane(const kdp_lane *lane) {
  return kdp_engine_lane(((const faulty *)lane->engine)->inner, 0);
}

static uint32_t faulty_inside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  faulty *faulty = faulty_of(lane);
  bool due = ++faulty->calls > 20; /* the session is up by then */
  if (due && faulty->fault == CONSUMES_NOTHING) return 0;
  uint32_t before = out->wire.count;
  uint32_t consumed = kdp_engine_inside(inner_lane(lane), in, out, now);
  if (!due || consumed == 0) return consumed;
  if (faulty->fault == CONSUMES_TOO_MUCH) return in->count + 1;
  if (faulty->fault == FORGETS_A_STATUS) in->packet[0].status = KDP_MALFORMED;
  if (faulty->fault == ALLOCATES_LATE) faulty->kept = faulty->host.allocate(faulty->host.context, 16);
  if (out->wire.count == before) return consumed;
  kdp_packet *packet = &out->wire.packet[before];
  if (faulty->fault == LEAKS_A_SLOT) kdp_pool_retain(out->pool, packet->slot, 1);
  if (faulty->fault == SENDS_TO_NOWHERE) out->wire.path[packet->path].remote.family = KDP_FAMILY_NONE;
  if (faulty->fault == SAME_SIZE_WRONGLY) packet->flags |= KDP_SAME_SIZE;
  return consumed;
}

static uint32_t faulty_outside(kdp_lane *lane, kdp_batch *in, kdp_out *out, kdp_now now) {
  faulty *faulty = faulty_of(lane);
  uint32_t consumed = kdp_engine_outside(inner_lane(lane), in, out, now);
  if (out->inside.count == 0 || ++faulty->calls < 20) return consumed;
  kdp_packet *packet = &out->inside.packet[0];
  if (faulty->fault == CHANGES_A_BYTE) packet->data[packet->size - 1] ^= 1;
  if (faulty->fault == INVENTS_A_PACKET) packet->data[packet->size > 60 ? 48 : 28] ^= 1; /* the flow's mark */
  if (faulty->fault == DELIVERS_TWICE) {
    if (faulty->last_size) {
      memcpy(packet->data, faulty->last, faulty->last_size);
      packet->size = faulty->last_size;
    } else if (packet->size <= sizeof faulty->last) {
      memcpy(faulty->last, packet->data, packet->size);
      faulty->last_size = packet->size;
    }
  }
  return consumed;
}

static uint64_t faulty_deadline(const kdp_lane *lane) {
  const faulty *faulty = (const struct faulty *)lane->engine;
  return faulty->fault == STANDS_STILL && faulty->calls > 20 ? 1 : kdp_engine_deadline(inner_lane(lane));
}
static void faulty_tick(kdp_lane *lane, kdp_out *out, kdp_now now) {
  kdp_engine_tick(inner_lane(lane), out, now);
}
static kdp_room faulty_room(const kdp_engine *engine, const kdp_path *path) {
  return kdp_engine_room(((const faulty *)engine)->inner, path);
}
static kdp_lane *faulty_lane(kdp_engine *engine, uint32_t index) {
  return index == 0 ? &((faulty *)engine)->lane : NULL;
}
static bool faulty_event(kdp_engine *engine, kdp_event *event) {
  return kdp_engine_next_event(((faulty *)engine)->inner, event);
}
static void faulty_statistics(const kdp_engine *engine, kdp_statistics *statistics) {
  const faulty *faulty = (const struct faulty *)engine;
  kdp_engine_statistics(faulty->inner, statistics);
  if (faulty->fault == COUNTS_BACKWARDS) statistics->inside_in.packets = UINT32_MAX - statistics->inside_in.packets;
}
static void faulty_destroy(kdp_engine *engine) {
  faulty *faulty = (struct faulty *)engine;
  kdp_engine_destroy(faulty->inner);
  if (faulty->fault != LEAKS_MEMORY) faulty->host.release(faulty->host.context, faulty, sizeof *faulty);
}

static const kdp_engine_ops FAULTY_OPS = {.name = "faulty",
                                          .destroy = faulty_destroy,
                                          .room = faulty_room,
                                          .lane = faulty_lane,
                                          .inside = faulty_inside,
                                          .outside = faulty_outside,
                                          .deadline = faulty_deadline,
                                          .tick = faulty_tick,
                                          .next_event = faulty_event,
                                          .statistics = faulty_statistics};

typedef struct faulty_config {
  fault fault;
  echo_config echo;
} faulty_config;

static kdp_status create_faulty(void *context, const kdp_host *host, const kdp_limits *limits, kdp_now now,
                                kdp_engine **engine) {
  const faulty_config *config = context;
  faulty *faulty = host->allocate(host->context, sizeof *faulty);
  memset(faulty, 0, sizeof *faulty);
  faulty->engine.ops = &FAULTY_OPS;
  faulty->lane.engine = &faulty->engine;
  faulty->host = *host;
  faulty->fault = config->fault;
  *engine = &faulty->engine;
  return echo_create(&config->echo, limits, host, now, &faulty->inner);
}

static sim_host *add_faulty(sim *world, faulty_config *config, const char *name, kdp_address address) {
  return sim_host_add(world, &(sim_host_config){.name = name,
                                                .create = create_faulty,
                                                .context = config,
                                                .address = {address},
                                                .address_count = 1,
                                                .port = address.port,
                                                .roomy = true});
}

/* Runs a client and a server that have the fault, until the simulator complains or the end. */
static bool complains(fault fault) {
  jmp_buf jump;
  char message[1000] = "";
  sim *world = sim_create(11, false);
  sim_catch(world, &jump, message, sizeof message);
  if (setjmp(jump)) return message[0] != 0;
  kdp_address server = sim_ipv4(192, 0, 2, 1, 4500), client = sim_ipv4(192, 0, 2, 2, 4501);
  faulty_config server_config = {fault, {.server = true}}, client_config = {fault, {.remote = server}};
  sim_host *b = add_faulty(world, &server_config, "server", server);
  sim_host *a = add_faulty(world, &client_config, "client", client);
  sim_flow_add(world, &(sim_flow_config){.from = a,
                                         .to = b,
                                         .source = sim_ipv4(10, 0, 0, 1, 1),
                                         .destination = sim_ipv4(10, 0, 0, 2, 2),
                                         .size_min = 80,
                                         .size_max = 1000,
                                         .start = KDP_SECOND,
                                         .interval = KDP_SECOND,
                                         .burst = 3});
  sim_run_until(world, 100 * KDP_SECOND);
  sim_coverage coverage;
  sim_collect(world, &coverage);
  sim_host_stop(a);
  sim_host_stop(b);
  sim_destroy(world);
  return false;
}

/* In a process of its own: a world that failed is left as it is. */
static bool finds(fault fault) {
  pid_t child = fork();
  if (child == 0) _exit(complains(fault) ? 1 : 0);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

static void every_breach_of_the_contract_is_found(void **state) {
  (void)state;
  assert_false(finds(NO_FAULT));
  for (fault fault = NO_FAULT + 1; fault < FAULT_COUNT; fault++)
    if (!finds(fault)) fail_msg("fault %d was not found", fault);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(given_the_same_seed_every_scenario_replays_exactly),
      cmocka_unit_test(given_another_seed_another_run),
      cmocka_unit_test(the_network_keeps_to_its_conditions),
      cmocka_unit_test(every_breach_of_the_contract_is_found),
  };
  return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
