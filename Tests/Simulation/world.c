/* The world: virtual time, what is due, the trace, the end. */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_random_fill(sim_random *random, void *bytes, size_t size) {
  uint8_t *at = bytes;
  while (size > 0) {
    uint64_t word = sim_random_next(random);
    size_t part = size < sizeof word ? size : sizeof word;
    memcpy(at, &word, part);
    at += part;
    size -= part;
  }
}

void *sim_allocate(size_t size) {
  void *memory = calloc(1, size);
  if (!memory) abort();
  return memory;
}

void *sim_grow(void *array, uint32_t count, uint32_t *capacity, size_t element) {
  if (count < *capacity) return array;
  *capacity = *capacity ? *capacity * 2 : 16;
  array = realloc(array, *capacity * element);
  if (!array) abort();
  return array;
}

sim *sim_create(uint64_t seed, bool trace) {
  sim *world = sim_allocate(sizeof *world);
  world->seed = seed;
  world->random.state = sim_scatter(seed + 1);
  world->hash = sim_scatter(seed);
  world->trace = trace;
  return world;
}

void sim_destroy(sim *world) {
  for (uint32_t i = 0; i < world->host_count; i++)
    sim_host_free(world->host[i]);
  for (uint32_t i = 0; i < world->flow_count; i++)
    sim_flow_free(world->flow[i]);
  for (uint32_t i = 0; i < world->due_count; i++) {
    const sim_due *due = &world->due[i];
    if (due->kind == SIM_DUE_ARRIVAL || due->kind == SIM_DUE_DELIVERY) free(due->datagram);
    if (due->kind == SIM_DUE_CALL && due->owned) free(due->context);
  }
  for (uint32_t i = 0; i < world->captured_count; i++)
    free(world->captured[i].datagram);
  for (uint32_t i = 0; i < world->lent_count; i++)
    free(world->lent[i]);
  free(world->lent);
  free(world->captured);
  free(world->due);
  free(world->host);
  free(world->flow);
  free(world);
}

uint64_t sim_seed(const sim *world) {
  return world->seed;
}
uint64_t sim_now(const sim *world) {
  return world->now;
}
sim_random *sim_random_of(sim *world) {
  return &world->random;
}
uint64_t sim_trace_hash(const sim *world) {
  return world->hash;
}

/* ---- What is due ---- */

static bool before(const sim_due *a, const sim_due *b) {
  return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void sim_schedule(sim *world, sim_due due) {
  due.order = world->order++;
  if (due.time < world->now) due.time = world->now;
  world->due = sim_grow(world->due, world->due_count, &world->due_capacity, sizeof due);
  uint32_t at = world->due_count++;
  while (at > 0 && before(&due, &world->due[(at - 1) / 2])) {
    world->due[at] = world->due[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  world->due[at] = due;
}

static sim_due take_due(sim *world) {
  sim_due first = world->due[0], last = world->due[--world->due_count];
  uint32_t at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= world->due_count) break;
    if (child + 1 < world->due_count && before(&world->due[child + 1], &world->due[child])) child++;
    if (!before(&world->due[child], &last)) break;
    world->due[at] = world->due[child];
    at = child;
  }
  world->due[at] = last;
  return first;
}

static void run_one(sim *world) {
  sim_due due = take_due(world);
  world->now = due.time;
  switch (due.kind) {
  case SIM_DUE_ARRIVAL: sim_arrive(world, due.datagram); break;
  case SIM_DUE_DELIVERY: sim_deliver(world, due.to, due.datagram, due.port); break;
  case SIM_DUE_ROUND: sim_host_round(due.host); break;
  case SIM_DUE_CALL: due.call(world, due.context); break;
  case SIM_DUE_FLOW: sim_flow_due(due.flow); break;
  }
}

void sim_run_until(sim *world, uint64_t time) {
  while (world->due_count > 0 && world->due[0].time <= time)
    run_one(world);
  if (world->now < time) world->now = time;
}

bool sim_run_while_not(sim *world, uint64_t time, bool (*until)(void *), void *context) {
  while (!until(context)) {
    if (world->due_count == 0 || world->due[0].time > time) {
      if (world->now < time) world->now = time;
      return until(context);
    }
    run_one(world);
  }
  return true;
}

void sim_at(sim *world, uint64_t time, void (*call)(sim *, void *), void *context) {
  sim_schedule(world, (sim_due){.time = time, .kind = SIM_DUE_CALL, .call = call, .context = context});
}

/* ---- Trace ---- */

static void mix(sim *world, uint64_t value) {
  world->hash = (world->hash ^ value) * UINT64_C(0x9fb21c651e98df25);
  world->hash ^= world->hash >> 32;
}

void sim_note(sim *world, const char *what, uint64_t a, uint64_t b, uint64_t c) {
  mix(world, world->now);
  for (const char *at = what; *at; at++)
    mix(world, (uint8_t)*at);
  mix(world, a);
  mix(world, b);
  mix(world, c);
  if (world->trace)
    printf("%14.6f %-18s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (double)world->now / 1e9, what, a, b, c);
}

void sim_note_bytes(sim *world, const char *what, const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  uint64_t digest = size;
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    digest = (digest ^ word) * UINT64_C(0x9fb21c651e98df25);
    digest ^= digest >> 29;
  }
  uint64_t rest = 0;
  if (size) memcpy(&rest, at, size);
  sim_note(world, what, sim_scatter(digest ^ rest), 0, 0);
}

void *sim_lend(sim *world, size_t size) {
  world->lent = sim_grow(world->lent, world->lent_count, &world->lent_capacity, sizeof *world->lent);
  return world->lent[world->lent_count++] = sim_allocate(size);
}

void sim_mark(sim *world, unsigned mark) {
  if (mark < SIM_MARKS) world->mark[mark]++;
}

void sim_catch(sim *world, void *jump, char *message, size_t size) {
  world->jump = jump;
  world->message = message;
  world->message_size = size;
}

void sim_fail(sim *world, const char *format, ...) {
  char text[800];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (world->jump) {
    snprintf(world->message, world->message_size, "at %.6f s: %s", (double)world->now / 1e9, text);
    longjmp(*world->jump, 1);
  }
  fprintf(stderr, "seed %" PRIu64 " at %.6f s: %s\n", world->seed, (double)world->now / 1e9, text);
  abort();
}

void sim_at_end(sim *world, void (*call)(sim *, void *), void *context) {
  world->at_end = call;
  world->at_end_context = context;
}

void sim_collect(sim *world, sim_coverage *coverage) {
  if (world->at_end) world->at_end(world, world->at_end_context);
  for (uint32_t i = 0; i < world->host_count; i++)
    sim_host_collect(world->host[i], &world->stopped);
  for (uint32_t i = 0; i < world->flow_count; i++)
    sim_flow_collect(world->flow[i], &world->stopped);
  world->stopped.seeds = 1;
  world->stopped.virtual_seconds = world->now / KDP_SECOND;
  world->stopped.datagrams = world->datagrams;
  world->stopped.rounds = world->rounds;
  memcpy(world->stopped.mark, world->mark, sizeof world->mark);
  *coverage = world->stopped;
}
