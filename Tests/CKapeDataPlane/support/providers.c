#include "support/providers.h"

#include <stdio.h>
#include <stdlib.h>

#include "aead/worker.h"

#if defined(__x86_64__) && __has_include(<intel-ipsec-mb.h>)
enum { HAS_IPSEC_MB = 1 };
#else
enum { HAS_IPSEC_MB = 0 };
#endif

providers providers_open(void) {
  providers opened = {.count = 0};
  kdp_host host = kdp_host_default();
  for (int i = 0; i < KDP_AEAD_PROVIDER_COUNT; i++) {
    kdp_aead_worker *worker = NULL;
    kdp_status status = kdp_aead_worker_create((kdp_aead_provider)i, &host, &worker);
    if (status == KDP_OK) {
      opened.worker[opened.count++] = worker;
      continue;
    }
    const char *name = kdp_aead_provider_name((kdp_aead_provider)i);
    bool may_be_missing = i == KDP_AEAD_AVX512 || (i == KDP_AEAD_IPSEC_MB && !HAS_IPSEC_MB);
    if (!may_be_missing || status != KDP_UNSUPPORTED) {
      fprintf(stderr, "%s: %s\n", name, kdp_status_describe(status)->text);
      abort();
    }
    printf("%s: not on this machine or not in this build\n", name);
  }
  /* Once more with no batch too small for it. */
  kdp_aead_worker *worker = NULL;
  if (kdp_aead_avx512_open(0, &host, &worker) == KDP_OK) opened.worker[opened.count++] = worker;
  return opened;
}

void providers_close(providers *opened) {
  while (opened->count > 0)
    kdp_aead_worker_destroy(opened->worker[--opened->count]);
}

const uint8_t *providers_key(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, const uint8_t *raw,
                             uint8_t expanded[PROVIDERS_EXPANDED_SIZE]) {
  const kdp_aead *aead = kdp_aead_of(worker, algorithm);
  if (aead->expanded_size == 0) return raw;
  if (aead->expanded_size > PROVIDERS_EXPANDED_SIZE) abort();
  aead->expand(worker, raw, expanded);
  return expanded;
}
