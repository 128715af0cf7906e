/* Events from a worker to the one thread that consumes them: a ring of one producer and one consumer, and an eventfd
   that is readable while there is something in it. When it is full the producer keeps what it has (the engine's own
   queue counts what is lost). */
#ifndef KDP_IO_EVENT_CHANNEL_H
#define KDP_IO_EVENT_CHANNEL_H
#include <stdatomic.h>

#include "kdp/event.h"

enum { KDP_EVENT_CHANNEL_CAPACITY = 256 }; /* a power of two */

typedef struct kdp_event_channel {
  int fd;                       /* eventfd, or -1 */
  _Atomic(uint32_t) head, tail; /* taken, written */
  _Atomic(uint32_t) lost;       /* refused pushes, told by the next event taken */
  kdp_event event[KDP_EVENT_CHANNEL_CAPACITY];
} kdp_event_channel;

/* False with errno when no eventfd is to be had. */
bool kdp_event_channel_open(kdp_event_channel *channel) KDP_MUST_USE;
void kdp_event_channel_close(kdp_event_channel *channel);

/* The producer's. */
uint32_t kdp_event_channel_room(const kdp_event_channel *channel);
/* Without room the event is counted as lost. */
void kdp_event_channel_push(kdp_event_channel *channel, const kdp_event *event);
/* Wakes the consumer; once after a number of pushes. */
void kdp_event_channel_notify(kdp_event_channel *channel);

/* The consumer's. After false the descriptor is not readable until something new comes, but for the wake-up of pushes
   whose events were taken before it. */
bool kdp_event_channel_take(kdp_event_channel *channel, kdp_event *event);

#endif
