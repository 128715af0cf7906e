/* core [SECONDS]: engines in memory, no I/O. For each packet size and batch: ns per packet to seal (inside) and to open
   (outside) through the WireGuard engine, and for the same jobs by direct calls of the library and in the shape that is
   the fastest here, measured in turns; each is the median of many short turns. Cycles and instructions where perf_event
   counts them. JSON lines. core count SIZE BATCH ROUNDS: seals and opens ROUNDS batches and prints nothing: for
   callgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "raw_aead.h"
#include "side.h"

enum {
  MAX_BATCH = 64,
  MAX_SIZE = 9000,
  TURN_BYTES = 65536,
  MIN_TURNS = 15,
  MAX_TURNS = 4096,
  SEAL = 0,
  OPEN,
  RAW_SEAL,
  RAW_OPEN,
  WHATS
};

static const uint8_t inside_a[4] = {10, 0, 0, 1}, inside_b[4] = {10, 0, 0, 2};

static kdp_path path_to(int which) {
  kdp_path path = {.link = 1,
                   .remote = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, (uint8_t)which}}};
  return path;
}

/* Carries what is in from->out.wire to the other side. */
static void carry(side *from, side *to, int from_number) {
  kdp_path path = path_to(from_number);
  for (uint32_t i = 0; i < from->out->wire.count; i++)
    side_receive(to, from->out->wire.packet[i].data, from->out->wire.packet[i].size, &path, bench_now());
  kdp_batch_release(&from->out->wire, from->pool);
}

static void make_batch(side *s, kdp_packet *packet, uint32_t count, uint32_t size) {
  for (uint32_t i = 0; i < count; i++)
    side_packet(s, size, inside_a, inside_b, &packet[i]);
}

/* One packet after the other from a to b; `before` and `after` stand round the engine's calls. */
typedef struct probe {
  void (*before)(void *context);
  void (*after)(void *context, int what);
  void *context;
} probe;

static void engine_round(side *a, side *b, uint32_t size, uint32_t count, const probe *probe) {
  kdp_packet packet[MAX_BATCH], copy[MAX_BATCH];
  kdp_path path = path_to(1);
  make_batch(a, packet, count, size);
  kdp_batch in = {.packet = packet, .count = count, .capacity = MAX_BATCH};
  kdp_now now = bench_now();
  probe->before(probe->context);
  uint32_t taken = kdp_engine_inside(a->lane, &in, a->out, now);
  probe->after(probe->context, SEAL);
  bench_must(taken == count && a->out->wire.count == count, "not every packet was sealed");
  for (uint32_t i = 0; i < count; i++) {
    const kdp_packet *sent = &a->out->wire.packet[i];
    bench_must(kdp_pool_take_packet(b->pool, SIDE_ROOM, sent->size, SIDE_ROOM, &copy[i]), "the pool is empty");
    copy[i].path = 0;
    memcpy(copy[i].data, sent->data, sent->size);
  }
  kdp_batch_release(&a->out->wire, a->pool);
  kdp_batch wire = {
      .packet = copy, .count = count, .capacity = MAX_BATCH, .path = &path, .path_count = 1, .path_capacity = 1};
  probe->before(probe->context);
  taken = kdp_engine_outside(b->lane, &wire, b->out, now);
  probe->after(probe->context, OPEN);
  bench_must(taken == count && b->out->inside.count == count, "not every packet was opened");
  kdp_batch_release(&b->out->inside, b->pool);
  kdp_batch_release(&b->out->wire, b->pool);
}

static void raw_round(const raw_way *way, raw_aead *raw, uint32_t size, uint32_t count, const probe *probe) {
  static uint8_t text[MAX_BATCH][MAX_SIZE + SIDE_ROOM] __attribute__((aligned(64)));
  static uint64_t nonce;
  kdp_aead_job job[MAX_BATCH];
  uint32_t padded = (size + 15) & ~15u;
  if (padded > MAX_SIZE) padded = MAX_SIZE;
  for (uint32_t i = 0; i < count; i++) {
    job[i] = (kdp_aead_job){.source = text[i], .destination = text[i], .tag = text[i] + padded, .size = padded};
    nonce++;
    memcpy(job[i].nonce + 4, &nonce, 8);
  }
  probe->before(probe->context);
  way->seal(raw, job, count);
  probe->after(probe->context, RAW_SEAL);
  probe->before(probe->context);
  uint32_t opened = way->open(raw, job, count);
  probe->after(probe->context, RAW_OPEN);
  bench_must(opened == count, "a raw packet did not open");
}

/* ---- Time ---- */

typedef struct stopwatch {
  uint64_t begin, spent[WHATS];
} stopwatch;

static void start(void *context) {
  ((stopwatch *)context)->begin = bench_now_ns();
}

static void stop(void *context, int what) {
  stopwatch *watch = context;
  watch->spent[what] += bench_now_ns() - watch->begin;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct setting {
  side *a, *b;
  raw_aead *raw;
  uint32_t size, count;
} setting;

/* The fastest of a few tries of each. */
static const raw_way *fastest_way(const setting *s) {
  const raw_way *way[RAW_WAYS_MOST], *best = NULL;
  uint64_t least = UINT64_MAX;
  uint32_t count = raw_ways(s->raw, KDP_AEAD_CHACHA20_POLY1305, way);
  for (int try = 0; try < 20; try++)
    for (uint32_t i = 0; i < count; i++) {
      stopwatch watch = {0};
      probe probe = {start, stop, &watch};
      raw_round(way[i], s->raw, s->size, s->count, &probe);
      uint64_t spent = watch.spent[RAW_SEAL] + watch.spent[RAW_OPEN];
      if (spent >= least) continue;
      least = spent;
      best = way[i];
    }
  return best;
}

static void measure_time(const setting *s, const raw_way *way, double seconds, double median[WHATS]) {
  static double sample[WHATS][MAX_TURNS];
  int turns = 0;
  uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
  while ((bench_now_ns() < end || turns < MIN_TURNS) && turns < MAX_TURNS) {
    stopwatch watch = {0};
    probe probe = {start, stop, &watch};
    int rounds = 1 + TURN_BYTES / (int)(s->size * s->count); /* short: few turns are interrupted */
    for (int i = 0; i < rounds; i++) {
      engine_round(s->a, s->b, s->size, s->count, &probe);
      raw_round(way, s->raw, s->size, s->count, &probe);
    }
    for (int what = 0; what < WHATS; what++)
      sample[what][turns] = (double)watch.spent[what] / (rounds * (double)s->count);
    turns++;
  }
  for (int what = 0; what < WHATS; what++) {
    qsort(sample[what], (size_t)turns, sizeof sample[what][0], ascending);
    median[what] = sample[what][turns / 2];
  }
}

/* ---- Counts ---- */

typedef struct tally {
  const counters *counters;
  counted begin, sum[WHATS];
} tally;

static void count_from(void *context) {
  tally *t = context;
  t->begin = counters_read(t->counters);
}

static void count_to(void *context, int what) {
  tally *t = context;
  counted now = counters_read(t->counters);
  t->sum[what].cycles += now.cycles - t->begin.cycles;
  t->sum[what].instructions += now.instructions - t->begin.instructions;
}

static void print_counts(const setting *s, const counters *counters) {
  enum { ROUNDS = 200 };
  tally tally = {.counters = counters};
  probe probe = {count_from, count_to, &tally};
  double packets = ROUNDS * (double)s->count;
  for (int i = 0; i < ROUNDS; i++)
    engine_round(s->a, s->b, s->size, s->count, &probe);
  printf(", \"seal_cycles\": %.0f, \"open_cycles\": %.0f, \"seal_instructions\": %.0f, \"open_instructions\": %.0f",
         (double)tally.sum[SEAL].cycles / packets, (double)tally.sum[OPEN].cycles / packets,
         (double)tally.sum[SEAL].instructions / packets, (double)tally.sum[OPEN].instructions / packets);
}

static void nothing_before(void *context) {
  (void)context;
}
static void nothing_after(void *context, int what) {
  (void)context, (void)what;
}

static void connect_sides(side *a, side *b, const kdp_host *host) {
  kdp_now now = bench_now();
  uint8_t key[2][KDP_KEY_SIZE];
  host->random(host->context, key, sizeof key);
  side_make(a, key[0], 0, 1, MAX_SIZE, NULL, host, now);
  side_make(b, key[1], 0, 1, MAX_SIZE, NULL, host, now);
  kdp_address at_a = path_to(1).remote, at_b = path_to(2).remote;
  kdp_prefix of_a = {KDP_FAMILY_IPV4, 32, {10, 0, 0, 1}}, of_b = {KDP_FAMILY_IPV4, 32, {10, 0, 0, 2}};
  side_add_peer(a, b->public_key, NULL, &at_b, &of_b, 1, now);
  side_add_peer(b, a->public_key, NULL, &at_a, &of_a, 1, now);
  side_send(a, inside_a, inside_b, now);
  carry(a, b, 1); /* initiation */
  carry(b, a, 2); /* response */
  carry(a, b, 1); /* the packet that waited */
  bench_must(b->out->inside.count == 1, "the handshake did not come about");
  side_drain(a);
  side_drain(b);
}

int main(int argc, char **argv) {
  kdp_host host = kdp_host_default();
  side a = {0}, b = {0};
  setting s = {.a = &a, .b = &b};
  connect_sides(&a, &b, &host);
  if (argc == 5 && strcmp(argv[1], "count") == 0) {
    probe none = {nothing_before, nothing_after, NULL};
    s.size = (uint32_t)atoi(argv[2]);
    s.count = (uint32_t)atoi(argv[3]);
    bench_must(s.size >= 20 && s.size <= MAX_SIZE && s.count >= 1 && s.count <= MAX_BATCH, "size or batch");
    for (int i = 0; i < atoi(argv[4]); i++)
      engine_round(&a, &b, s.size, s.count, &none);
    return 0;
  }
  double seconds = argc > 1 ? atof(argv[1]) : 0.3;
  counters counters;
  bool counts = counters_open(&counters);
  kdp_aead_worker *worker; /* only to learn which provider the engines have chosen */
  bench_must(kdp_aead_worker_choose(getenv("KAPE_AEAD"), &host, &worker) == KDP_OK, "no such AEAD provider");
  const char *provider = kdp_aead_provider_name(kdp_aead_worker_provider(worker));
  kdp_aead_worker_destroy(worker);
  static const uint8_t raw_key[32] = {1};
  s.raw = raw_aead_make(raw_key);
  static const uint32_t sizes[] = {64, 256, 512, 1420, 9000}, batches[] = {1, 8, 64};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof batches / sizeof *batches; j++) {
      s.size = sizes[i];
      s.count = batches[j];
      double ns[WHATS];
      const raw_way *way = fastest_way(&s);
      measure_time(&s, way, seconds, ns);
      printf("{\"provider\": \"%s\", \"size\": %u, \"batch\": %u, \"seal_ns\": %.1f, \"open_ns\": %.1f, "
             "\"raw\": \"%s\", \"raw_seal_ns\": %.1f, \"raw_open_ns\": %.1f, \"raw_over_engine\": %.3f",
             provider, s.size, s.count, ns[SEAL], ns[OPEN], way->name, ns[RAW_SEAL], ns[RAW_OPEN],
             (ns[RAW_SEAL] + ns[RAW_OPEN]) / (ns[SEAL] + ns[OPEN]));
      if (counts) print_counts(&s, &counters);
      printf("}\n");
      fflush(stdout);
    }
  if (counts) counters_close(&counters);
  raw_aead_end(s.raw);
  side_end(&a, false);
  side_end(&b, false);
  return 0;
}
