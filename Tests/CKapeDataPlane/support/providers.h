/* Every AEAD provider that this build and machine have, for tests that run against each of them. */
#ifndef KDP_TEST_PROVIDERS_H
#define KDP_TEST_PROVIDERS_H
#include "kdp/aead.h"

typedef struct providers {
  kdp_aead_worker *worker[KDP_AEAD_PROVIDER_COUNT + 1];
  int count;
} providers;

/* Aborts when one that the build has does not open. */
providers providers_open(void);
void providers_close(providers *opened);

/* A key as jobs of that provider take it: expanded where it wants that. `expanded` has room for the largest. */
enum { PROVIDERS_EXPANDED_SIZE = 2048 };
const uint8_t *providers_key(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, const uint8_t *raw,
                             uint8_t expanded[PROVIDERS_EXPANDED_SIZE]);
#endif
