#include "net/replay_window.h"

#include <string.h>

enum { WORD_BITS = 64, WORD_SHIFT = 6 };

void kdp_replay_window_start(kdp_replay_window *window, uint64_t *word, uint32_t words) {
  memset(word, 0, words * sizeof *word);
  *window = (kdp_replay_window){.words = words, .word = word};
}

/* True when `counter` is ahead of all, or near enough behind that its bit has not been given to another. `next` is
   window->next, read once. */
static inline bool in_reach(const kdp_replay_window *window, uint64_t next, uint64_t counter) {
  if (counter >= next) return counter != UINT64_MAX;
  return next - 1 - counter <= (uint64_t)(window->words - 1) * WORD_BITS;
}

static inline uint32_t word_of(const kdp_replay_window *window, uint64_t counter) {
  return (uint32_t)(counter >> WORD_SHIFT) & (window->words - 1);
}

static inline uint64_t bit_of(uint64_t counter) {
  return UINT64_C(1) << (counter & (WORD_BITS - 1));
}

/* Beside a commit: whoever sees the new `next` sees the words that it cleared. A word that is cleared after `next` was
   read stood for counters that are out of reach by then. So nothing is refused here that a later check would let
   through. */
bool kdp_replay_window_check(const kdp_replay_window *window, uint64_t counter) {
  uint64_t next = __atomic_load_n(&window->next, __ATOMIC_ACQUIRE);
  if (!in_reach(window, next, counter)) return false;
  if (counter >= next) return true;
  return !(__atomic_load_n(&window->word[word_of(window, counter)], __ATOMIC_RELAXED) & bit_of(counter));
}

/* Words that the newest counter leaves behind on its way to `counter` stand for newer counters from now on. */
static void advance(kdp_replay_window *window, uint64_t counter) {
  uint64_t from = window->next == 0 ? 0 : (window->next - 1) >> WORD_SHIFT;
  uint64_t steps = (counter >> WORD_SHIFT) - from;
  if (steps > window->words) steps = window->words;
  for (uint64_t i = 1; i <= steps; i++)
    __atomic_store_n(&window->word[(uint32_t)(from + i) & (window->words - 1)], 0, __ATOMIC_RELAXED);
  __atomic_store_n(&window->next, counter + 1, __ATOMIC_RELEASE);
}

bool kdp_replay_window_commit(kdp_replay_window *window, uint64_t counter) {
  if (!in_reach(window, window->next, counter)) return false;
  if (counter >= window->next) advance(window, counter);
  uint64_t *word = &window->word[word_of(window, counter)], bit = bit_of(counter);
  if (*word & bit) return false;
  __atomic_store_n(word, *word | bit, __ATOMIC_RELAXED);
  return true;
}
