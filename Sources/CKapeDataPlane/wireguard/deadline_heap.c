#include "wireguard/deadline_heap.h"

#include <string.h>

#include "wireguard/peer.h"

kdp_status kdp_wg_heap_reserve(kdp_wg_heap *heap, uint32_t count, const kdp_host *host) {
  uint32_t capacity = heap->capacity ? heap->capacity : 8;
  if (count <= heap->capacity) return KDP_OK;
  while (capacity < count)
    capacity *= 2;
  kdp_wg_heap_node *node = host->allocate(host->context, capacity * sizeof *node);
  if (!node) return KDP_NO_MEMORY;
  uint32_t held = heap->count;
  if (held) memcpy(node, heap->node, held * sizeof *node);
  kdp_wg_heap_destroy(heap, host);
  *heap = (kdp_wg_heap){.node = node, .count = held, .capacity = capacity};
  return KDP_OK;
}

void kdp_wg_heap_destroy(kdp_wg_heap *heap, const kdp_host *host) {
  if (heap->node) host->release(host->context, heap->node, heap->capacity * sizeof *heap->node);
  *heap = (kdp_wg_heap){0};
}

static void place(kdp_wg_heap *heap, uint32_t at, kdp_wg_heap_node node) {
  heap->node[at] = node;
  node.peer->heap_index = at;
}

static void sift_up(kdp_wg_heap *heap, uint32_t at, kdp_wg_heap_node node) {
  while (at > 0 && heap->node[(at - 1) / 2].deadline > node.deadline) {
    place(heap, at, heap->node[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(heap, at, node);
}

static void sift_down(kdp_wg_heap *heap, uint32_t at, kdp_wg_heap_node node) {
  for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
    if (child + 1 < heap->count && heap->node[child + 1].deadline < heap->node[child].deadline) child++;
    if (heap->node[child].deadline >= node.deadline) break;
    place(heap, at, heap->node[child]);
  }
  place(heap, at, node);
}

void kdp_wg_heap_not_later(kdp_wg_heap *heap, kdp_wg_peer *peer, uint64_t deadline) {
  if (peer->heap_index == KDP_WG_NOT_IN_HEAP || heap->node[peer->heap_index].deadline > deadline)
    kdp_wg_heap_set(heap, peer, deadline);
}

void kdp_wg_heap_set(kdp_wg_heap *heap, kdp_wg_peer *peer, uint64_t deadline) {
  uint32_t at = peer->heap_index;
  if (deadline == KDP_NEVER) {
    if (at == KDP_WG_NOT_IN_HEAP) return;
    peer->heap_index = KDP_WG_NOT_IN_HEAP;
    kdp_wg_heap_node last = heap->node[--heap->count];
    if (last.peer == peer) return;
    /* The last node takes the place that came free. */
    if (at > 0 && heap->node[(at - 1) / 2].deadline > last.deadline)
      sift_up(heap, at, last);
    else
      sift_down(heap, at, last);
    return;
  }
  kdp_wg_heap_node node = {deadline, peer};
  if (at == KDP_WG_NOT_IN_HEAP) {
    sift_up(heap, heap->count++, node);
  } else if (deadline < heap->node[at].deadline) {
    sift_up(heap, at, node);
  } else {
    sift_down(heap, at, node);
  }
}
