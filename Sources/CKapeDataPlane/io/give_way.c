#include "io/give_way.h"

#include "kdp/time.h"

/* What was worked long ago is no reason to be away for long now. */
#define CREDIT_MOST (10 * KDP_MILLISECOND)

bool kdp_give_way_due(kdp_give_way *state, uint32_t frames, uint64_t worked) {
  state->credit += worked < CREDIT_MOST ? worked : CREDIT_MOST;
  if (state->credit > CREDIT_MOST) state->credit = CREDIT_MOST;
  return frames >= KDP_GIVE_WAY_FRAMES && state->credit >= state->cost;
}

void kdp_give_way_took(kdp_give_way *state, uint64_t ns) {
  state->credit -= ns < state->credit ? ns : state->credit;
  state->cost = (3 * state->cost + ns) / 4;
  /* Beyond what can be earned it would never be due again. */
  if (state->cost > CREDIT_MOST) state->cost = CREDIT_MOST;
}
