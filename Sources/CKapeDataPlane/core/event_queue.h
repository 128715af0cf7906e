/* A ring of events for one engine. When it is full the oldest event goes and the next one taken says how many were
 * lost. */
#ifndef KDP_CORE_EVENT_QUEUE_H
#define KDP_CORE_EVENT_QUEUE_H
#include "kdp/event.h"

enum { KDP_EVENT_QUEUE_CAPACITY = 256 };

typedef struct kdp_event_queue {
  kdp_event event[KDP_EVENT_QUEUE_CAPACITY];
  uint32_t first, count, lost;
} kdp_event_queue;

/* Returns false when an older event was overwritten. */
bool kdp_event_queue_push(kdp_event_queue *queue, const kdp_event *event);
bool kdp_event_queue_take(kdp_event_queue *queue, kdp_event *event);
#endif
