#include "aead/worker.h"

#include "aead/self_test.h"
#include "core/wipe.h"

enum { ALIGNMENT = 64 };

static const char *const provider_name[KDP_AEAD_PROVIDER_COUNT] = {
    [KDP_AEAD_OPENSSL] = "openssl", [KDP_AEAD_IPSEC_MB] = "ipsec-mb", [KDP_AEAD_AVX512] = "avx512"};

/* Best first. Our own code for AVX-512 takes a sixth less time than ipsec-mb for full packets and less than half for
   small ones (docs/performance.md). ipsec-mb is ahead of libcrypto for both ciphers on every x86-64 that has AES
   instructions, with SSE as with AVX-512; where it is not it refuses to open. */
static const kdp_aead_provider preference[KDP_AEAD_PROVIDER_COUNT] = {KDP_AEAD_AVX512, KDP_AEAD_IPSEC_MB,
                                                                      KDP_AEAD_OPENSSL};

kdp_aead_worker *kdp_aead_worker_allocate(size_t size, kdp_aead_provider provider, const kdp_host *host) {
  size_t memory_size = size + ALIGNMENT - 1;
  void *memory = host->allocate(host->context, memory_size);
  if (memory == NULL) return NULL;
  memset(memory, 0, memory_size);
  kdp_aead_worker *worker = (void *)(((uintptr_t)memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
  worker->host = *host;
  worker->memory = memory;
  worker->memory_size = memory_size;
  worker->provider = provider;
  return worker;
}

kdp_status kdp_aead_worker_create(kdp_aead_provider provider, const kdp_host *host, kdp_aead_worker **worker) {
  *worker = NULL;
  kdp_aead_worker *opened = NULL;
  kdp_status status = KDP_UNSUPPORTED;
  switch (provider) {
  case KDP_AEAD_OPENSSL: status = kdp_aead_openssl_open(host, &opened); break;
  case KDP_AEAD_IPSEC_MB: status = kdp_aead_ipsec_mb_open(host, &opened); break;
  case KDP_AEAD_AVX512: status = kdp_aead_avx512_open(KDP_AEAD_AVX512_FEWEST, host, &opened); break;
  case KDP_AEAD_PROVIDER_COUNT: break;
  }
  if (status != KDP_OK) return status;
  if (!kdp_aead_self_test(opened)) {
    kdp_aead_worker_destroy(opened);
    return KDP_SELF_TEST_FAILED;
  }
  *worker = opened;
  return KDP_OK;
}

kdp_status kdp_aead_worker_choose(const char *name, const kdp_host *host, kdp_aead_worker **worker) {
  *worker = NULL;
  kdp_status status = KDP_UNSUPPORTED;
  if (name != NULL && name[0] != '\0') {
    for (int i = 0; i < KDP_AEAD_PROVIDER_COUNT; i++)
      if (strcmp(name, provider_name[i]) == 0) status = kdp_aead_worker_create((kdp_aead_provider)i, host, worker);
    return status;
  }
  for (int i = 0; i < KDP_AEAD_PROVIDER_COUNT && status != KDP_OK; i++)
    status = kdp_aead_worker_create(preference[i], host, worker);
  return status;
}

void kdp_aead_worker_destroy(kdp_aead_worker *worker) {
  if (worker == NULL) return;
  worker->close(worker);
  kdp_host host = worker->host;
  void *memory = worker->memory;
  size_t size = worker->memory_size;
  kdp_wipe(memory, size);
  host.release(host.context, memory, size);
}

void kdp_aead_worker_forget(kdp_aead_worker *worker) {
  worker->forget(worker);
}

const kdp_aead *kdp_aead_of(const kdp_aead_worker *worker, kdp_aead_algorithm algorithm) {
  return &worker->table[algorithm];
}

kdp_aead_provider kdp_aead_worker_provider(const kdp_aead_worker *worker) {
  return worker->provider;
}

const char *kdp_aead_provider_name(kdp_aead_provider provider) {
  return (unsigned)provider < KDP_AEAD_PROVIDER_COUNT ? provider_name[provider] : "unknown";
}

const char *kdp_aead_worker_version(const kdp_aead_worker *worker) {
  return worker->version;
}
