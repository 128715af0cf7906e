/* The epoll backend: plain system calls, as few as can be.

   Readiness comes from epoll_wait, level triggered, and is asked for again only when what was learnt from the reads
   themselves is used up: recvmmsg that fills fewer messages than it was given has emptied its socket, and the TUN is
   read until it says that it is empty or as often as it had frames in the rounds before. */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "io/linux_compat.h"
#include "io/worker_state.h"

enum { TAG_INSIDE, TAG_IPV4, TAG_IPV6, TAG_WAKE, TAG_TIMER, TAGS };
enum { INSIDE_EXPECTED_MOST = 256, RECEIVE_HEAD = 64 };

static bool watch(kdp_worker *worker, int operation, int fd, uint32_t events, uint32_t tag) {
  struct epoll_event event = {.events = events, .data.u32 = tag};
  return epoll_ctl(worker->epoll.epoll, operation, fd, &event) == 0;
}

static kdp_status open_backend(kdp_worker *worker) {
  kdp_epoll *epoll = &worker->epoll;
  epoll->epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll->timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  epoll->armed = KDP_NEVER;
  epoll->inside_expected = 1;
  if (epoll->epoll < 0 || epoll->timer < 0 || !watch(worker, EPOLL_CTL_ADD, worker->wake, EPOLLIN, TAG_WAKE) ||
      !watch(worker, EPOLL_CTL_ADD, epoll->timer, EPOLLIN, TAG_TIMER) ||
      !watch(worker, EPOLL_CTL_ADD, worker->tun.fd, EPOLLIN, TAG_INSIDE))
    return KDP_SYSTEM;
  epoll->inside_watched = true;
  for (uint32_t i = 0; i < KDP_RECEIVES; i++) {
    epoll->message[i].msg_hdr = (struct msghdr){
        .msg_name = &epoll->name[i], .msg_iov = &epoll->iov[i], .msg_iovlen = 1, .msg_control = epoll->control[i]};
  }
  return KDP_OK;
}

static void close_backend(kdp_worker *worker) {
  if (worker->epoll.epoll >= 0) close(worker->epoll.epoll);
  if (worker->epoll.timer >= 0) close(worker->epoll.timer);
  worker->epoll.epoll = worker->epoll.timer = -1;
}

static void detach(kdp_worker *worker) {
  for (int i = 0; i < KDP_UDP_SOCKETS; i++)
    if (worker->udp.fd[i] >= 0) epoll_ctl(worker->epoll.epoll, EPOLL_CTL_DEL, worker->udp.fd[i], NULL);
}

static void attach(kdp_worker *worker) {
  worker->epoll.wire_unwatched = false;
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    worker->epoll.wants_wire_room[i] = false;
    if (worker->udp.fd[i] >= 0) (void)watch(worker, EPOLL_CTL_ADD, worker->udp.fd[i], EPOLLIN, TAG_IPV4 + (uint32_t)i);
  }
}

/* ---- Waiting ---- */

static void arm(kdp_epoll *epoll, uint64_t deadline) {
  /* Moved only when it must be earlier or has been used up; one that fires too early costs one idle round. */
  if (deadline >= epoll->armed && !epoll->fired) return;
  if (deadline == epoll->armed && deadline == KDP_NEVER) return;
  struct itimerspec at = {0};
  if (deadline != KDP_NEVER) {
    at.it_value.tv_sec = (time_t)(deadline / KDP_SECOND);
    at.it_value.tv_nsec = (long)(deadline % KDP_SECOND);
    if (at.it_value.tv_sec == 0 && at.it_value.tv_nsec == 0) at.it_value.tv_nsec = 1; /* zero would disarm it */
  }
  if (timerfd_settime(epoll->timer, TFD_TIMER_ABSTIME, &at, NULL) == 0) {
    epoll->armed = deadline;
    epoll->fired = false; /* setting it also takes back its readiness */
  }
}

/* What is watched follows what may be done: a TUN that is not to be read must not wake the worker. */
static void follow_flow(kdp_worker *worker) {
  kdp_epoll *epoll = &worker->epoll;
  bool inside_room = worker->inside_flow == KDP_FLOW_BLOCKED && worker->inside_retry == KDP_NEVER;
  bool inside_in = kdp_worker_may_read(worker);
  bool wire_in = kdp_worker_may_receive(worker);
  if (inside_in != epoll->inside_watched || inside_room != epoll->wants_inside_room) {
    uint32_t events = (inside_in ? (uint32_t)EPOLLIN : 0) | (inside_room ? (uint32_t)EPOLLOUT : 0);
    if (watch(worker, EPOLL_CTL_MOD, worker->tun.fd, events, TAG_INSIDE)) {
      epoll->inside_watched = inside_in;
      epoll->wants_inside_room = inside_room;
    }
  }
  for (int i = 0; i < KDP_UDP_SOCKETS; i++) {
    bool room = kdp_worker_wants_room(worker, i);
    if (room == epoll->wants_wire_room[i] && wire_in != epoll->wire_unwatched) continue;
    uint32_t events = (wire_in ? (uint32_t)EPOLLIN : 0) | (room ? (uint32_t)EPOLLOUT : 0);
    if (worker->udp.fd[i] >= 0) (void)watch(worker, EPOLL_CTL_MOD, worker->udp.fd[i], events, TAG_IPV4 + (uint32_t)i);
    epoll->wants_wire_room[i] = room;
  }
  epoll->wire_unwatched = !wire_in;
}

static void wait_for_work(kdp_worker *worker, bool more, uint64_t deadline) {
  kdp_epoll *epoll = &worker->epoll;
  follow_flow(worker);
  if (epoll->more) more = true;
  if (deadline <= worker->now.boot) more = true;
  if (!more) arm(epoll, deadline);
  struct epoll_event event[TAGS];
  int count = epoll_wait(epoll->epoll, event, TAGS, more ? 0 : -1);
  kdp_count(&worker->count.waits, 1);
  worker->ready = 0;
  for (int i = 0; i < count; i++) {
    uint32_t events = event[i].events;
    switch (event[i].data.u32) {
    case TAG_INSIDE:
      if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) worker->ready |= KDP_READY_INSIDE;
      if (events & EPOLLOUT) worker->ready |= KDP_READY_INSIDE_ROOM;
      if (events & EPOLLERR) worker->gone = true;
      break;
    case TAG_IPV4:
    case TAG_IPV6:
      if (events & (EPOLLIN | EPOLLERR))
        worker->ready |= event[i].data.u32 == TAG_IPV4 ? KDP_READY_IPV4 : KDP_READY_IPV6;
      if (events & EPOLLOUT) worker->ready |= KDP_READY_WIRE_ROOM;
      break;
    case TAG_WAKE: kdp_worker_read_wake(worker); break;
    case TAG_TIMER: epoll->fired = true; break;
    default: break;
    }
  }
  /* More frames than were expected: expect more. */
  if (epoll->inside_capped && (worker->ready & KDP_READY_INSIDE) && epoll->inside_expected < INSIDE_EXPECTED_MOST)
    epoll->inside_expected *= 2;
  epoll->inside_capped = false;
  epoll->inside_got = 0;
  epoll->more = false;
}

/* ---- Input ---- */

static ssize_t read_frame(kdp_worker *worker, uint8_t **frame) {
  kdp_epoll *epoll = &worker->epoll;
  if (epoll->inside_got >= epoll->inside_expected) {
    epoll->inside_capped = true;
    return 0;
  }
  for (;;) {
    ssize_t size = read(worker->tun.fd, worker->frame_buffer, KDP_FRAME_SIZE);
    if (size > 0) {
      epoll->inside_got++;
      *frame = worker->frame_buffer;
      return size;
    }
    if (size == 0) {
      errno = EBADFD; /* a character device that ends is gone */
      return -1;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    epoll->inside_expected = epoll->inside_got ? epoll->inside_got : 1;
    return 0;
  }
}

static uint32_t receive(kdp_worker *worker, uint32_t socket, kdp_received *received, uint32_t capacity) {
  kdp_epoll *epoll = &worker->epoll;
  if (worker->udp.fd[socket] < 0) return 0;
  uint32_t count = 0;
  for (; count < capacity && count < KDP_RECEIVES; count++) {
    uint8_t *slot = kdp_pool_take_slot(worker->pool, &received[count].slot);
    if (!slot) break;
    received[count].data = slot + RECEIVE_HEAD;
    received[count].head = RECEIVE_HEAD;
    struct msghdr *message = &epoll->message[count].msg_hdr;
    message->msg_namelen = sizeof epoll->name[count];
    message->msg_controllen = KDP_UDP_CONTROL;
    message->msg_flags = 0;
    epoll->iov[count] = (struct iovec){slot + RECEIVE_HEAD, KDP_SLOT_SIZE - RECEIVE_HEAD};
  }
  int got = -1;
  if (count > 0) do {
      got = recvmmsg(worker->udp.fd[socket], epoll->message, count, MSG_DONTWAIT, NULL);
    } while (got < 0 && errno == EINTR);
  uint32_t filled = got > 0 ? (uint32_t)got : 0;
  /* Back in reverse, so that the next receive begins with the same, warm ones. */
  for (uint32_t i = count; i > filled; i--)
    kdp_pool_release(worker->pool, received[i - 1].slot);
  if (filled == count && count > 0) epoll->more = true;
  for (uint32_t i = 0; i < filled; i++) {
    received[i].size = epoll->message[i].msg_len;
    received[i].tail = KDP_SLOT_SIZE - RECEIVE_HEAD - received[i].size;
    kdp_received_describe(&received[i], &epoll->message[i].msg_hdr, worker->link);
  }
  return filled;
}

static void output(kdp_worker *worker, bool send, bool write) {
  if (write) kdp_write_directly(worker);
  if (send) kdp_send_directly(worker);
}

const kdp_backend_ops kdp_backend_epoll = {
    .kind = KDP_BACKEND_EPOLL,
    .open = open_backend,
    .close = close_backend,
    .detach = detach,
    .attach = attach,
    .wait = wait_for_work,
    .read = read_frame,
    .receive = receive,
    .output = output,
};
