#include "io/handoff.h"

#include <stdatomic.h>
#include <string.h>

#include "core/wipe.h"

enum { HEADER = sizeof(kdp_handoff_record), ALIGNMENT = 4, CACHE_LINE = 64 };
_Static_assert(HEADER % ALIGNMENT == 0, "records are aligned");
_Static_assert(KDP_HANDOFF_BYTES >= 2 * (HEADER + 65536), "the largest packet fits from every place on");

/* Positions only rise; their remainder is the place in the ring. A record lies in one piece: one that does not fit
   before the ring's end begins anew at its start. What the two sides write is kept a cache line apart. */
struct kdp_handoff {
  kdp_host host;
  _Atomic(uint32_t) written;
  _Atomic(bool) told;
  uint8_t apart[CACHE_LINE];
  _Atomic(uint32_t) taken;
  uint8_t apart_too[CACHE_LINE];
  uint64_t bytes[KDP_HANDOFF_BYTES / sizeof(uint64_t)];
};

static uint8_t *at(kdp_handoff *handoff, uint32_t position) {
  return (uint8_t *)handoff->bytes + position % KDP_HANDOFF_BYTES;
}

static uint32_t length(uint32_t size) {
  return HEADER + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint32_t until_end(uint32_t position) {
  return KDP_HANDOFF_BYTES - position % KDP_HANDOFF_BYTES;
}

kdp_status kdp_handoff_create(const kdp_host *host, kdp_handoff **result) {
  kdp_handoff *handoff = host->allocate(host->context, sizeof *handoff);
  if (!handoff) return KDP_NO_MEMORY;
  handoff->host = *host;
  atomic_init(&handoff->written, 0);
  atomic_init(&handoff->taken, 0);
  atomic_init(&handoff->told, false);
  *result = handoff;
  return KDP_OK;
}

void kdp_handoff_destroy(kdp_handoff *handoff) {
  if (!handoff) return;
  kdp_host host = handoff->host;
  kdp_wipe(handoff->bytes, sizeof handoff->bytes);
  host.release(host.context, handoff, sizeof *handoff);
}

bool kdp_handoff_push(kdp_handoff *handoff, const kdp_handoff_record *record, const void *bytes) {
  if (record->size > KDP_HANDOFF_BYTES - HEADER - ALIGNMENT) return false;
  uint32_t written = atomic_load_explicit(&handoff->written, memory_order_relaxed);
  uint32_t taken = atomic_load_explicit(&handoff->taken, memory_order_acquire);
  uint32_t needed = length(record->size), end = until_end(written), skipped = needed > end ? end : 0;
  if (written - taken + skipped + needed > KDP_HANDOFF_BYTES) return false;
  if (skipped >= HEADER) memset(at(handoff, written), 0, HEADER); /* of no kind */
  uint8_t *place = at(handoff, written + skipped);
  memcpy(place, record, HEADER);
  memcpy(place + HEADER, bytes, record->size);
  atomic_store_explicit(&handoff->written, written + skipped + needed, memory_order_release);
  return true;
}

bool kdp_handoff_tell(kdp_handoff *handoff) {
  return !atomic_exchange_explicit(&handoff->told, true, memory_order_acq_rel);
}

void kdp_handoff_listen(kdp_handoff *handoff) {
  (void)atomic_exchange_explicit(&handoff->told, false, memory_order_acq_rel);
}

const kdp_handoff_record *kdp_handoff_peek(kdp_handoff *handoff) {
  uint32_t taken = atomic_load_explicit(&handoff->taken, memory_order_relaxed);
  uint32_t written = atomic_load_explicit(&handoff->written, memory_order_acquire);
  if (taken == written) return NULL;
  const kdp_handoff_record *record = (const void *)at(handoff, taken);
  uint32_t end = until_end(taken);
  if (end >= HEADER && record->kind != 0) return record;
  atomic_store_explicit(&handoff->taken, taken + end, memory_order_release);
  return (const void *)handoff->bytes;
}

void kdp_handoff_pop(kdp_handoff *handoff) {
  uint32_t taken = atomic_load_explicit(&handoff->taken, memory_order_relaxed);
  const kdp_handoff_record *record = (const void *)at(handoff, taken);
  atomic_store_explicit(&handoff->taken, taken + length(record->size), memory_order_release);
}
