/* lanes [SECONDS]: WireGuard engines in memory on two threads, for packets of 64 and 1,420 bytes in batches of 64:

     seal           one thread seals
     seal two       two threads seal for one key pair, on two lanes of one engine
     seal apart     two threads seal, each with an engine of its own: what the machine lets two threads do
     open           one thread opens
     beside         one thread seals and one opens, on two lanes of one engine

   They take turns, a millisecond each. Rates are packets per second of the threads' processor time, two threads added;
   a turn in which a thread did not have a processor to itself says nothing, for then nothing was beside it: it is taken
   again. JSON lines: the rates of each turn of all rounds that were completed, and how many turns it took. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "side.h"

enum { BATCH = 64, STOCK = 8192, MAX_SEALED = 1500, TURN_US = 1000, MOST_TRIES = 100, MOST_ROUNDS = 400 };
#define LEAST_SHARE 0.9 /* of a turn that a thread must have had a processor for */

typedef enum turn { SEAL, SEAL_TWO, SEAL_APART, OPEN, BESIDE, TURNS } turn;

/* What one thread does for a turn. */
typedef struct job {
  side *side;
  const uint8_t *source, *destination; /* inner addresses of what it seals */
  bool opens;
  uint32_t size;
  pthread_barrier_t *start;
  atomic_bool *stop;
  uint64_t packets, cpu_ns, wall_ns;
} job;

/* Datagrams that wait to be opened, sealed before the turn. */
typedef struct stock {
  uint8_t datagram[STOCK][MAX_SEALED];
  uint32_t size, count;
} stock;

static const uint8_t a_inside[4] = {10, 0, 0, 1}, b_inside[4] = {10, 0, 0, 2};

static kdp_path path_of(uint8_t which) {
  return (kdp_path){.link = 1, .remote = {.family = KDP_FAMILY_IPV4, .port = 51820, .bytes = {192, 0, 2, which}}};
}

static uint64_t thread_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * KDP_SECOND + (uint64_t)t.tv_nsec;
}

static void seal_batch(side *s, const uint8_t *source, const uint8_t *destination, uint32_t size, kdp_now now) {
  kdp_packet packet[BATCH];
  for (uint32_t i = 0; i < BATCH; i++)
    side_packet(s, size, source, destination, &packet[i]);
  kdp_batch in = {.packet = packet, .count = BATCH, .capacity = BATCH};
  bench_must(kdp_engine_inside(s->lane, &in, s->out, now) == BATCH && s->out->wire.count >= BATCH,
             "packets were not sealed");
}

static void open_batch(side *s, const stock *stock, uint32_t first, kdp_path *path, kdp_now now) {
  kdp_packet packet[BATCH];
  for (uint32_t i = 0; i < BATCH; i++) {
    bench_must(kdp_pool_take_packet(s->pool, SIDE_ROOM, stock->size, SIDE_ROOM, &packet[i]), "the pool is empty");
    memcpy(packet[i].data, stock->datagram[first + i], stock->size);
    packet[i].path = 0;
  }
  kdp_batch in = {
      .packet = packet, .count = BATCH, .capacity = BATCH, .path = path, .path_count = 1, .path_capacity = 1};
  bench_must(kdp_engine_outside(s->lane, &in, s->out, now) == BATCH && s->out->inside.count == BATCH,
             "packets were not opened");
}

typedef struct work {
  job job;
  const stock *stock;
} work;

static void *run_job(void *context) {
  work *w = context;
  job *j = &w->job;
  kdp_path path = path_of(2);
  pthread_barrier_wait(j->start);
  kdp_now now = bench_now();
  uint64_t wall = bench_now_ns(), cpu = thread_ns();
  while (!atomic_load_explicit(j->stop, memory_order_relaxed)) {
    if (j->opens) {
      if (j->packets + BATCH > w->stock->count) break;
      open_batch(j->side, w->stock, (uint32_t)j->packets, &path, now);
    } else {
      seal_batch(j->side, j->source, j->destination, j->size, now);
    }
    j->packets += BATCH;
    side_drain(j->side);
  }
  j->cpu_ns = thread_ns() - cpu;
  j->wall_ns = bench_now_ns() - wall;
  return NULL;
}

/* Runs the jobs at the same time. False: one had to wait for a processor. */
static bool run_turn(work *work, uint32_t count, double *rate) {
  pthread_barrier_t start;
  pthread_t thread[2];
  atomic_bool stop = false;
  bool counts = true;
  pthread_barrier_init(&start, NULL, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    work[i].job.start = &start;
    work[i].job.stop = &stop;
    work[i].job.packets = 0;
    bench_must(pthread_create(&thread[i], NULL, run_job, &work[i]) == 0, "no thread");
  }
  pthread_barrier_wait(&start);
  nanosleep(&(struct timespec){.tv_nsec = TURN_US * 1000}, NULL);
  atomic_store(&stop, true);
  for (uint32_t i = 0; i < count; i++) {
    pthread_join(thread[i], NULL);
    const job *j = &work[i].job;
    rate[i] = (double)j->packets * 1e9 / (double)j->cpu_ns;
    counts &= (double)j->cpu_ns >= LEAST_SHARE * (double)j->wall_ns && j->packets > 0;
  }
  pthread_barrier_destroy(&start);
  return counts;
}

/* ---- Engines ---- */

/* a and b with a session that a began, both with two lanes. */
typedef struct tunnel {
  side a, a1, b; /* a1: lane 1 of a */
} tunnel;

static void carry(side *from, side *to, uint8_t from_number, kdp_now now) {
  kdp_path path = path_of(from_number);
  for (uint32_t i = 0; i < from->out->wire.count; i++)
    side_receive(to, from->out->wire.packet[i].data, from->out->wire.packet[i].size, &path, now);
  side_drain(from);
}

static void connect_both(tunnel *t, const kdp_host *host) {
  uint8_t private_key[2][KDP_KEY_SIZE];
  kdp_now now = bench_now();
  kdp_address to_a = path_of(1).remote, to_b = path_of(2).remote;
  kdp_prefix a_prefix = {.family = KDP_FAMILY_IPV4, .length = 32}, b_prefix = a_prefix;
  memcpy(a_prefix.bytes, a_inside, 4);
  memcpy(b_prefix.bytes, b_inside, 4);
  host->random(host->context, private_key, sizeof private_key);
  side_make(&t->a, private_key[0], 1, 2, 1420, NULL, host, now);
  side_make(&t->b, private_key[1], 1, 2, 1420, NULL, host, now);
  side_make_lane(&t->a1, &t->a, 1, host);
  side_add_peer(&t->a, t->b.public_key, NULL, &to_b, &b_prefix, 1, now);
  side_add_peer(&t->b, t->a.public_key, NULL, &to_a, &a_prefix, 1, now);
  side_send(&t->a, a_inside, b_inside, now);
  carry(&t->a, &t->b, 1, now); /* initiation */
  carry(&t->b, &t->a, 2, now); /* response */
  carry(&t->a, &t->b, 1, now); /* the packet that waited */
  bench_must(t->b.out->inside.count == 1, "the handshake does not complete");
  side_drain(&t->b);
}

static void end_both(tunnel *t) {
  side_end(&t->a1, false);
  side_end(&t->a, false);
  side_end(&t->b, false);
}

static void fill_stock(stock *stock, side *from, uint32_t size) {
  kdp_now now = bench_now();
  for (stock->count = 0; stock->count < STOCK;) {
    seal_batch(from, b_inside, a_inside, size, now);
    for (uint32_t i = 0; i < BATCH; i++) {
      const kdp_packet *packet = &from->out->wire.packet[i];
      stock->size = packet->size;
      memcpy(stock->datagram[stock->count++], packet->data, packet->size);
    }
    side_drain(from);
  }
}

/* ---- Rounds ---- */

/* False: the machine was too busy. */
static bool run_round(tunnel *t, tunnel *other, stock *stock, uint32_t size, double rate[TURNS][2], uint32_t *tries) {
  work seals = {.job = {.side = &t->a, .source = a_inside, .destination = b_inside, .size = size}};
  work seals_1 = seals, apart = seals, opens = {.job = {.side = &t->a1, .opens = true}, .stock = stock};
  seals_1.job.side = &t->a1;
  apart.job.side = &other->a1;
  for (int turn = 0; turn < TURNS; turn++) {
    work both[2] = {seals, seals_1};
    uint32_t count = 2;
    switch ((enum turn)turn) {
    case SEAL: count = 1; break;
    case SEAL_TWO: break;
    case SEAL_APART: both[1] = apart; break;
    case OPEN: both[0] = opens, count = 1; break;
    case BESIDE: both[1] = opens; break;
    case TURNS: break;
    }
    bool counts = false;
    for (int i = 0; i < MOST_TRIES && !counts; i++) {
      if (turn == OPEN || turn == BESIDE) fill_stock(stock, &t->b, size);
      counts = run_turn(both, count, rate[turn]);
      ++*tries;
    }
    if (!counts) return false;
  }
  return true;
}

static void print_list(const char *name, double (*rate)[TURNS][2], uint32_t count, turn turn, bool first, bool second) {
  printf(", \"%s\": [", name);
  for (uint32_t i = 0; i < count; i++)
    printf("%s%.0f", i ? ", " : "", (first ? rate[i][turn][0] : 0) + (second ? rate[i][turn][1] : 0));
  printf("]");
}

int main(int argc, char **argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 3;
  static const uint32_t sizes[] = {64, 1420};
  static double rate[MOST_ROUNDS][TURNS][2];
  stock *stock = malloc(sizeof *stock);
  kdp_host host = kdp_host_default();
  bench_must(stock != NULL && seconds > 0 && seconds <= 50, "usage: lanes [SECONDS], up to 50 (sessions last 120 s)");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    tunnel one = {0}, other = {0};
    connect_both(&one, &host);
    connect_both(&other, &host);
    uint32_t rounds = 0, tries = 0;
    uint64_t end = bench_now_ns() + (uint64_t)(seconds * 1e9);
    while (rounds < MOST_ROUNDS && (tries == 0 || bench_now_ns() < end))
      rounds += run_round(&one, &other, stock, sizes[i], rate[rounds], &tries);
    printf("{\"size\": %u, \"batch\": %u, \"turns\": %u, \"rounds\": %u", sizes[i], BATCH, tries, rounds);
    print_list("seal", rate, rounds, SEAL, true, false);
    print_list("seal two", rate, rounds, SEAL_TWO, true, true);
    print_list("seal apart", rate, rounds, SEAL_APART, true, true);
    print_list("open", rate, rounds, OPEN, true, false);
    print_list("beside, seal", rate, rounds, BESIDE, true, false);
    print_list("beside, open", rate, rounds, BESIDE, false, true);
    printf("}\n");
    fflush(stdout);
    end_both(&one);
    end_both(&other);
  }
  free(stock);
  return 0;
}
