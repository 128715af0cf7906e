#include "kdp/batch.h"

#include <string.h>
#include <sys/uio.h>

uint16_t kdp_batch_path(kdp_batch *batch, const kdp_path *path) {
  if (batch->path_count > 0 && kdp_path_equal(&batch->path[batch->path_count - 1], path))
    return (uint16_t)(batch->path_count - 1);
  if (batch->path_count >= batch->path_capacity) return UINT16_MAX;
  batch->path[batch->path_count] = *path;
  return batch->path_count++;
}

bool kdp_batch_push(kdp_batch *batch, const kdp_packet *packet) {
  if (batch->count >= batch->capacity) return false;
  batch->packet[batch->count++] = *packet;
  return true;
}

void kdp_batch_release(kdp_batch *batch, kdp_pool *pool) {
  /* Neighbours mostly share a slot: give its uses back in one go. */
  for (uint32_t i = 0; i < batch->count;) {
    kdp_slot slot = batch->packet[i].slot;
    uint32_t run = 1;
    while (i + run < batch->count && batch->packet[i + run].slot == slot)
      run++;
    kdp_pool_release_users(pool, slot, run);
    i += run;
  }
  batch->count = 0;
  batch->path_count = 0;
}

enum { OUT_ACTIONS = 64 };

struct kdp_out_storage {
  kdp_host host;
  kdp_out out;
  kdp_packet wire[KDP_BATCH_CAPACITY], inside[KDP_BATCH_CAPACITY];
  kdp_path path[KDP_BATCH_PATHS];
  kdp_action action[OUT_ACTIONS];
};

kdp_status kdp_out_create(kdp_pool *pool, const kdp_host *host, kdp_out_storage **result) {
  kdp_out_storage *storage = host->allocate(host->context, sizeof *storage);
  if (!storage) return KDP_NO_MEMORY;
  memset(storage, 0, sizeof *storage);
  storage->host = *host;
  storage->out = (kdp_out){
      .wire = {.packet = storage->wire,
               .capacity = KDP_BATCH_CAPACITY,
               .path = storage->path,
               .path_capacity = KDP_BATCH_PATHS},
      .inside = {.packet = storage->inside, .capacity = KDP_BATCH_CAPACITY},
      .action = storage->action,
      .action_capacity = OUT_ACTIONS,
      .pool = pool,
  };
  *result = storage;
  return KDP_OK;
}

kdp_out *kdp_out_of(kdp_out_storage *storage) {
  return &storage->out;
}

void kdp_out_destroy(kdp_out_storage *storage) {
  if (!storage) return;
  kdp_batch_release(&storage->out.wire, storage->out.pool);
  kdp_batch_release(&storage->out.inside, storage->out.pool);
  for (uint32_t i = 0; i < storage->out.action_count; i++)
    if (storage->out.action[i].kind == KDP_ACTION_HANDOFF)
      kdp_pool_release(storage->out.pool, storage->out.action[i].packet.slot);
  kdp_host host = storage->host;
  host.release(host.context, storage, sizeof *storage);
}

uint32_t kdp_batch_copy_in(kdp_batch *batch, kdp_pool *pool, kdp_room room, const struct iovec *iov, uint32_t count) {
  uint32_t taken = 0;
  for (; taken < count && batch->count < batch->capacity; taken++) {
    kdp_packet *packet = &batch->packet[batch->count];
    if (iov[taken].iov_len > UINT16_MAX) {
      *packet = (kdp_packet){.status = KDP_TOO_LONG, .slot = KDP_NO_SLOT};
    } else {
      uint32_t size = (uint32_t)iov[taken].iov_len;
      if (!kdp_pool_take_packet(pool, room.head, size, room.tail, packet)) break;
      if (size) memcpy(packet->data, iov[taken].iov_base, size);
    }
    batch->count++;
  }
  return taken;
}

uint32_t kdp_batch_copy_out(const kdp_batch *batch, struct iovec *iov, uint32_t count) {
  uint32_t written = 0;
  for (; written < batch->count && written < count; written++) {
    const kdp_packet *packet = &batch->packet[written];
    if (packet->size > iov[written].iov_len) break;
    if (packet->size) memcpy(iov[written].iov_base, packet->data, packet->size);
    iov[written].iov_len = packet->size;
  }
  return written;
}
