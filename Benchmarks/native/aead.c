/* aead [SECONDS]: each provider through our table, and each library by direct calls, for ChaCha20-Poly1305 and
   AES-256-GCM: ns per packet to seal and to open in batches of 64, measured in turns; medians of many short turns. A
   new nonce each packet, one key, no additional data. One JSON line for each algorithm, size and way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw_aead.h"
#include "side.h"

enum {
  BATCH = 64,
  MAX_SIZE = 9000,
  TURNS_LEAST = 9,
  TURNS_MOST = 4096,
  REPEATS = 2,
  SEAL = 0,
  OPEN,
  DIRECTIONS,
  WAYS = 24
};

/* A way: one of our table's providers, or a library. */
typedef struct way {
  const char *kind, *name;
  kdp_aead_worker *worker; /* NULL: a library's */
  const kdp_aead *table;
  const uint8_t *key;
  raw_aead *raw;
  const raw_way *library;
  double sample[DIRECTIONS][TURNS_MOST];
} way;

static uint8_t memory[BATCH][MAX_SIZE + SIDE_ROOM] __attribute__((aligned(64)));
static const uint8_t raw_key[32] = {1};

static void prepare(kdp_aead_job *job, const uint8_t *key, uint32_t size, uint64_t *nonce) {
  for (uint32_t i = 0; i < BATCH; i++) {
    job[i] = (kdp_aead_job){
        .key = key, .source = memory[i], .destination = memory[i], .tag = memory[i] + size, .size = size};
    ++*nonce;
    memcpy(job[i].nonce + 4, nonce, 8);
  }
}

static void turn(way *way, uint32_t size, int number, uint64_t *nonce) {
  kdp_aead_job job[BATCH];
  uint64_t spent[DIRECTIONS] = {0};
  for (int i = 0; i < REPEATS; i++) {
    prepare(job, way->key, size, nonce);
    uint64_t t0 = bench_now_ns();
    if (way->worker)
      way->table->seal(way->worker, job, BATCH);
    else
      way->library->seal(way->raw, job, BATCH);
    uint64_t t1 = bench_now_ns();
    uint32_t opened =
        way->worker ? way->table->open(way->worker, job, BATCH) : way->library->open(way->raw, job, BATCH);
    uint64_t t2 = bench_now_ns();
    bench_must(opened == BATCH, "a packet did not open");
    spent[SEAL] += t1 - t0;
    spent[OPEN] += t2 - t1;
  }
  for (int direction = 0; direction < DIRECTIONS; direction++)
    way->sample[direction][number] = (double)spent[direction] / (REPEATS * BATCH);
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure(way *way, uint32_t count, const char *algorithm, uint32_t size, double seconds) {
  uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9), nonce = 0;
  int turns = 0;
  do {
    for (uint32_t i = 0; i < count; i++)
      turn(&way[i], size, turns, &nonce);
    turns++;
  } while ((bench_now_ns() < end || turns < TURNS_LEAST) && turns < TURNS_MOST);
  for (uint32_t i = 0; i < count; i++) {
    for (int direction = 0; direction < DIRECTIONS; direction++)
      qsort(way[i].sample[direction], (size_t)turns, sizeof(double), ascending);
    printf("{\"algorithm\": \"%s\", \"size\": %u, \"kind\": \"%s\", \"name\": \"%s\", \"seal_ns\": %.1f, "
           "\"open_ns\": %.1f}\n",
           algorithm, size, way[i].kind, way[i].name, way[i].sample[SEAL][turns / 2], way[i].sample[OPEN][turns / 2]);
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  static const kdp_aead_algorithm algorithms[] = {KDP_AEAD_CHACHA20_POLY1305, KDP_AEAD_AES_256_GCM};
  static const uint32_t sizes[] = {64, 512, 1424, 9000};
  static uint8_t expanded[KDP_AEAD_PROVIDER_COUNT][4096] __attribute__((aligned(64)));
  static way ways[WAYS];
  double seconds = argc > 1 ? atof(argv[1]) : 0.3;
  kdp_host host = kdp_host_default();
  kdp_aead_worker *worker[KDP_AEAD_PROVIDER_COUNT] = {0};
  for (int p = 0; p < KDP_AEAD_PROVIDER_COUNT; p++)
    if (kdp_aead_worker_create((kdp_aead_provider)p, &host, &worker[p]) != KDP_OK) worker[p] = NULL;
  raw_aead *raw = raw_aead_make(raw_key);
  for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
    uint32_t count = 0;
    const char *name = "";
    for (int p = 0; p < KDP_AEAD_PROVIDER_COUNT; p++) {
      if (!worker[p]) continue;
      const kdp_aead *table = kdp_aead_of(worker[p], algorithms[a]);
      bench_must(table->expanded_size <= sizeof expanded[p], "an expanded key is larger than expected");
      if (table->expanded_size) table->expand(worker[p], raw_key, expanded[p]);
      name = table->name;
      ways[count++] = (way){.kind = "table",
                            .name = kdp_aead_provider_name((kdp_aead_provider)p),
                            .worker = worker[p],
                            .table = table,
                            .key = table->expanded_size ? expanded[p] : raw_key};
    }
    const raw_way *library[RAW_WAYS_MOST];
    uint32_t libraries = raw_ways(raw, algorithms[a], library);
    for (uint32_t i = 0; i < libraries; i++)
      ways[count++] = (way){.kind = "raw", .name = library[i]->name, .key = raw_key, .raw = raw, .library = library[i]};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      measure(ways, count, name, sizes[s], seconds);
  }
  raw_aead_end(raw);
  for (int p = 0; p < KDP_AEAD_PROVIDER_COUNT; p++)
    kdp_aead_worker_destroy(worker[p]);
  return 0;
}
