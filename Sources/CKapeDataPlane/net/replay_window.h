/* The replay window of RFC 6479: a ring of 64-bit words, of a size chosen by its user. One for all protocols.
   A window of `words` words accepts counters down to (words - 1) * 64 behind the newest. Check before authentication
   (cheap refusal), commit after it: a forged packet moves nothing. Commits are for one thread at a time; a check may
   run beside one, and what it lets through that has been seen meanwhile the commit refuses. */
#ifndef KDP_NET_REPLAY_WINDOW_H
#define KDP_NET_REPLAY_WINDOW_H
#include "kdp/base.h"

typedef struct kdp_replay_window {
  uint64_t next;  /* newest counter accepted, plus one; 0: none yet */
  uint32_t words; /* a power of two, at least 2 */
  uint64_t *word; /* the owner's memory, `words` words */
} kdp_replay_window;

void kdp_replay_window_start(kdp_replay_window *window, uint64_t *word, uint32_t words);
/* Would it be accepted? Never for UINT64_MAX. */
bool kdp_replay_window_check(const kdp_replay_window *window, uint64_t counter) KDP_MUST_USE;
/* Accepts it: true once for each counter in the window. */
bool kdp_replay_window_commit(kdp_replay_window *window, uint64_t counter) KDP_MUST_USE;
#endif
