#include "core/event_queue.h"

bool kdp_event_queue_push(kdp_event_queue *queue, const kdp_event *event) {
  bool kept = true;
  if (queue->count == KDP_EVENT_QUEUE_CAPACITY) {
    queue->first = (queue->first + 1) % KDP_EVENT_QUEUE_CAPACITY;
    queue->count--;
    queue->lost++;
    kept = false;
  }
  queue->event[(queue->first + queue->count) % KDP_EVENT_QUEUE_CAPACITY] = *event;
  queue->count++;
  return kept;
}

bool kdp_event_queue_take(kdp_event_queue *queue, kdp_event *event) {
  if (queue->count == 0) return false;
  *event = queue->event[queue->first];
  event->lost = queue->lost;
  queue->lost = 0;
  queue->first = (queue->first + 1) % KDP_EVENT_QUEUE_CAPACITY;
  queue->count--;
  return true;
}
