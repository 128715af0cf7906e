#include "io/event_channel.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool kdp_event_channel_open(kdp_event_channel *channel) {
  channel->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return channel->fd >= 0;
}

void kdp_event_channel_close(kdp_event_channel *channel) {
  if (channel->fd >= 0) close(channel->fd);
  channel->fd = -1;
}

uint32_t kdp_event_channel_room(const kdp_event_channel *channel) {
  uint32_t tail = atomic_load_explicit(&channel->tail, memory_order_relaxed);
  return KDP_EVENT_CHANNEL_CAPACITY - (tail - atomic_load_explicit(&channel->head, memory_order_acquire));
}

void kdp_event_channel_push(kdp_event_channel *channel, const kdp_event *event) {
  if (kdp_event_channel_room(channel) == 0) {
    atomic_fetch_add_explicit(&channel->lost, 1, memory_order_relaxed);
    return;
  }
  uint32_t tail = atomic_load_explicit(&channel->tail, memory_order_relaxed);
  channel->event[tail % KDP_EVENT_CHANNEL_CAPACITY] = *event;
  atomic_store_explicit(&channel->tail, tail + 1, memory_order_release);
}

void kdp_event_channel_notify(kdp_event_channel *channel) {
  uint64_t one = 1;
  /* Refused only when the counter is at its end, and then the descriptor is readable anyway. */
  ssize_t written = write(channel->fd, &one, sizeof one);
  (void)written;
}

static bool take(kdp_event_channel *channel, kdp_event *event) {
  uint32_t head = atomic_load_explicit(&channel->head, memory_order_relaxed);
  if (head == atomic_load_explicit(&channel->tail, memory_order_acquire)) return false;
  *event = channel->event[head % KDP_EVENT_CHANNEL_CAPACITY];
  event->lost += atomic_exchange_explicit(&channel->lost, 0, memory_order_relaxed);
  atomic_store_explicit(&channel->head, head + 1, memory_order_release);
  return true;
}

bool kdp_event_channel_take(kdp_event_channel *channel, kdp_event *event) {
  if (take(channel, event)) return true;
  uint64_t count;
  ssize_t cleared = read(channel->fd, &count, sizeof count);
  /* What was pushed before the descriptor was cleared must not be forgotten. */
  return cleared > 0 && take(channel, event);
}
