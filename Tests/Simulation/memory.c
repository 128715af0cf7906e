#include "memory.h"

#include <stdlib.h>
#include <string.h>

enum { MARK = 0x5a17ed };

/* In front of each block; 16 bytes, so that the block keeps malloc's alignment. */
typedef struct block_head {
  size_t size;
  uint64_t mark;
} block_head;

static void *allocate(void *context, size_t size) {
  sim_memory *memory = context;
  if (memory->sealed) sim_fail(memory->world, "%s: took %zu bytes during a data call", memory->owner, size);
  memory->allocations++;
  if (memory->fail_from && memory->allocations >= memory->fail_from) return NULL;
  if (memory->limit && memory->held + size > memory->limit) return NULL;
  block_head *head = malloc(sizeof *head + size);
  if (!head) return NULL;
  *head = (block_head){size, MARK};
  memset(head + 1, 0xa5, size);
  memory->held += size;
  memory->blocks++;
  if (memory->held > memory->peak) memory->peak = memory->held;
  return head + 1;
}

static void release(void *context, void *block, size_t size) {
  sim_memory *memory = context;
  if (!block) return;
  block_head *head = (block_head *)block - 1;
  if (head->mark != MARK) sim_fail(memory->world, "%s: released what it did not take", memory->owner);
  if (head->size != size)
    sim_fail(memory->world, "%s: released %zu bytes of a block of %zu", memory->owner, size, head->size);
  head->mark = 0;
  memory->held -= size;
  memory->blocks--;
  free(head);
}

static void fill_random(void *context, void *bytes, size_t size) {
  sim_memory *memory = context;
  sim_random_fill(&memory->random, bytes, size);
}

kdp_host sim_memory_host(sim_memory *memory) {
  return (kdp_host){.context = memory, .allocate = allocate, .release = release, .random = fill_random};
}
