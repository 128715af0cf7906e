/* The known-answer test that a provider must pass before it is used. */
#ifndef KDP_AEAD_SELF_TEST_H
#define KDP_AEAD_SELF_TEST_H
#include "kdp/aead.h"

/* Every algorithm: seal, open, refuse, mask. Takes some 20 microseconds and 4 KB of stack. */
bool kdp_aead_self_test(kdp_aead_worker *worker) KDP_MUST_USE;
#endif
