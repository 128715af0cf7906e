/* The replay window against a list of every counter it ever accepted. */
#include "net/replay_window.h"
#include "support/script.h"

enum { MOST_WORDS = 16, MOST_STEPS = 600 };

typedef struct oracle {
  uint64_t accepted[MOST_STEPS];
  uint32_t count;
  uint64_t reach; /* how far behind the newest a counter may be */
} oracle;

static uint64_t newest_of(const oracle *o) {
  uint64_t newest = 0;
  for (uint32_t i = 0; i < o->count; i++)
    if (o->accepted[i] > newest) newest = o->accepted[i];
  return newest;
}

static bool expected(const oracle *o, uint64_t counter) {
  if (counter == UINT64_MAX) return false;
  if (o->count == 0) return true;
  uint64_t newest = newest_of(o);
  if (counter <= newest && newest - counter > o->reach) return false;
  for (uint32_t i = 0; i < o->count; i++)
    if (o->accepted[i] == counter) return false;
  return true;
}

static uint64_t next_counter(script *s, const oracle *o) {
  uint64_t newest = newest_of(o);
  switch (script_u8(s) % 8) {
  case 0: return newest + 1;
  case 1: return newest + script_u8(s);
  case 2: return newest - script_u8(s);
  case 3: return newest - script_u16(s);
  case 4: return newest + script_u16(s);
  case 5: return newest - o->reach - 1 + script_u8(s) % 3;
  case 6: return script_u64(s);
  default: return UINT64_MAX - script_u8(s);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  script s = {bytes, bytes + size};
  uint32_t words = UINT32_C(2) << script_u8(&s) % 4;
  uint64_t *memory = malloc(words * sizeof *memory);
  CHECK(memory != NULL);
  memset(memory, 0xa5, words * sizeof *memory);
  kdp_replay_window window;
  kdp_replay_window_start(&window, memory, words);
  oracle o = {.reach = (uint64_t)(words - 1) * 64};
  for (int step = 0; step < MOST_STEPS && script_left(&s) > 0; step++) {
    uint64_t counter = next_counter(&s, &o);
    bool wanted = expected(&o, counter);
    CHECK(kdp_replay_window_check(&window, counter) == wanted);
    CHECK(kdp_replay_window_check(&window, counter) == wanted); /* asking changes nothing */
    if (script_u8(&s) % 4 == 0) continue;                       /* it was forged */
    CHECK(kdp_replay_window_commit(&window, counter) == wanted);
    if (wanted) o.accepted[o.count++] = counter;
  }
  free(memory);
  return 0;
}
