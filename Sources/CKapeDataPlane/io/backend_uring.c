/* The io_uring backend.

   The TUN is read by one multishot read, each socket by one multishot recvmsg, both into provided buffers: frames of
   the backend's own for the one, slots of the pool for the other. Sends and TUN writes of a flush are submitted
   together, as chains that stop at the first failure, and waited for in the same call, which also brings new input. So
   a busy round costs one system call or two, whatever it carries.

   Buffers are provided few at a time while frames are large, so that the same ones stay in the caches and the others
   stay untouched; more while frames are small. The ring has a single issuer, the worker's thread, and runs its
   completions only when that thread asks for them. Needs Linux 6.7 (multishot reads). */
#define _GNU_SOURCE /* struct mmsghdr, struct in6_pktinfo */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/wipe.h"
#include "io/linux_compat.h"
#include "io/worker_state.h"

enum { SQ_ENTRIES = 256, CQ_ENTRIES = 1024, CHAIN_MOST = 100 };
enum { FRAME_GROUP, RECEIVE_GROUP };
/* Rings of provided buffers: powers of two. */
enum { FRAMES = 32, FRAMES_LEAST = 2, RECEIVES = 16, RECEIVES_LEAST = 2 };
/* Frames above this size are reckoned as large. */
enum { LARGE = 8192 };
enum { FRAME_STRIDE = KDP_SLOT_SIZE };
/* Layout of a received message in its slot: header, name, control, payload. */
enum { NAME_SIZE = 32, RECEIVE_HEAD = sizeof(struct io_uring_recvmsg_out) + NAME_SIZE + KDP_UDP_CONTROL };
_Static_assert(RECEIVE_HEAD % 16 == 0, "payloads are aligned");
_Static_assert(NAME_SIZE >= sizeof(kdp_socket_address), "every name fits");

typedef enum tag {
  TAG_READ,
  TAG_RECEIVE, /* index: socket */
  TAG_SEND,    /* index: item */
  TAG_WRITE,   /* index: item */
  TAG_WAKE,
  TAG_TIMER,
  TAG_INSIDE_ROOM,
  TAG_WIRE_ROOM, /* index: socket */
  TAG_IGNORED
} tag;

typedef struct provided {
  struct io_uring_buf_ring *ring;
  uint32_t entries;
  uint32_t in_kernel, wanted;
  uint32_t small_run; /* small ones since the last large one */
} provided;

struct kdp_uring {
  struct io_uring ring;
  bool made, enabled, finished;
  uint32_t pending; /* sends and writes submitted and not completed */

  /* The TUN. */
  provided frame;
  uint8_t *frames;
  uint16_t free_frame[FRAMES];
  uint32_t free_count;
  uint32_t touched; /* frames from here on were never used */
  struct {
    uint16_t buffer;
    uint32_t size;
  } frame_queue[FRAMES]; /* read, not yet taken */
  uint32_t frame_first, frame_count;
  uint16_t held; /* the one that the loop looks at, or FRAMES */
  int read_error;
  bool read_armed;

  /* The sockets. */
  provided receive;
  kdp_slot slot[RECEIVES]; /* of buffers in the kernel */
  uint16_t free_id[RECEIVES];
  uint32_t free_id_count;
  struct {
    kdp_slot slot;
    uint32_t size;
  } receive_queue[RECEIVES];
  uint32_t receive_first, receive_count;
  struct msghdr shape;
  bool receive_armed[KDP_UDP_SOCKETS];

  /* Waking. */
  bool wake_armed, inside_room_armed, wire_room_armed[KDP_UDP_SOCKETS], timer_armed;
  uint64_t timer_at;
  uint32_t timer_generation;
  struct __kernel_timespec timer;
};

static uint64_t user_data(tag kind, uint32_t generation, uint32_t index) {
  return (uint64_t)kind << 56 | (uint64_t)(generation & 0xffffff) << 32 | index;
}

/* ---- Making ---- */

static bool make_buffers(struct io_uring *ring, provided *buffers, uint32_t entries, uint32_t least, int group) {
  void *memory =
      mmap(NULL, entries * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  *buffers = (provided){.ring = memory, .entries = entries, .wanted = least};
  io_uring_buf_ring_init(buffers->ring);
  struct io_uring_buf_reg request = {
      .ring_addr = (uint64_t)(uintptr_t)memory, .ring_entries = entries, .bgid = (uint16_t)group};
  int error = io_uring_register_buf_ring(ring, &request, 0);
  if (error < 0) errno = -error;
  return error == 0;
}

static bool supports_what_it_takes(struct io_uring *ring) {
  struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
  if (!probe) return false;
  bool supported = io_uring_opcode_supported(probe, KDP_IORING_OP_READ_MULTISHOT) != 0;
  io_uring_free_probe(probe);
  return supported;
}

bool kdp_backend_available(kdp_backend backend) {
  if (backend != KDP_BACKEND_URING) return true;
  struct io_uring ring;
  int error = io_uring_queue_init(2, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
  if (error < 0) {
    errno = -error;
    return false;
  }
  bool supported = supports_what_it_takes(&ring);
  io_uring_queue_exit(&ring);
  errno = supported ? 0 : ENOSYS;
  return supported;
}

static kdp_status open_backend(kdp_worker *worker) {
  kdp_uring *uring = worker->host.allocate(worker->host.context, sizeof *uring);
  if (!uring) return KDP_NO_MEMORY;
  memset(uring, 0, sizeof *uring);
  worker->uring = uring;
  uring->frames = worker->host.allocate(worker->host.context, (size_t)FRAMES * FRAME_STRIDE);
  if (!uring->frames) return KDP_NO_MEMORY;
  struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                                IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED,
                                       .cq_entries = CQ_ENTRIES};
  int error = io_uring_queue_init_params(SQ_ENTRIES, &uring->ring, &parameters);
  if (error < 0) {
    errno = -error;
    return KDP_UNSUPPORTED;
  }
  uring->made = true;
  errno = ENOSYS;
  if (!supports_what_it_takes(&uring->ring)) return KDP_UNSUPPORTED;
  if (!make_buffers(&uring->ring, &uring->frame, FRAMES, FRAMES_LEAST, FRAME_GROUP) ||
      !make_buffers(&uring->ring, &uring->receive, RECEIVES, RECEIVES_LEAST, RECEIVE_GROUP))
    return KDP_UNSUPPORTED;
  for (uint16_t i = 0; i < FRAMES; i++)
    uring->free_frame[i] = (uint16_t)(FRAMES - 1 - i);
  for (uint16_t i = 0; i < RECEIVES; i++)
    uring->free_id[i] = (uint16_t)(RECEIVES - 1 - i);
  uring->free_count = FRAMES;
  uring->free_id_count = RECEIVES;
  uring->held = FRAMES;
  uring->shape = (struct msghdr){.msg_namelen = NAME_SIZE, .msg_controllen = KDP_UDP_CONTROL};
  return KDP_OK;
}

static void close_backend(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  if (!uring) return;
  if (uring->made) io_uring_queue_exit(&uring->ring);
  if (uring->frame.ring) munmap(uring->frame.ring, FRAMES * sizeof(struct io_uring_buf));
  if (uring->receive.ring) munmap(uring->receive.ring, RECEIVES * sizeof(struct io_uring_buf));
  if (uring->frames) kdp_wipe(uring->frames, (size_t)uring->touched * FRAME_STRIDE);
  if (uring->frames) worker->host.release(worker->host.context, uring->frames, (size_t)FRAMES * FRAME_STRIDE);
  worker->host.release(worker->host.context, uring, sizeof *uring);
  worker->uring = NULL;
}

/* ---- Completions ---- */

static void note_size(provided *buffers, uint32_t size, uint32_t least) {
  if (size <= LARGE) {
    buffers->small_run++;
  } else {
    buffers->small_run = 0;
    buffers->wanted = least;
  }
}

/* All buffers were used up: more of them, when all that they held was small. Buffers that a large frame has touched
   once stay in memory. */
static void note_exhausted(provided *buffers) {
  if (buffers->small_run >= 2 * buffers->wanted && buffers->wanted < buffers->entries) buffers->wanted *= 2;
}

static void complete_read(kdp_uring *uring, const struct io_uring_cqe *cqe) {
  if (!(cqe->flags & IORING_CQE_F_MORE)) uring->read_armed = false;
  if (cqe->flags & IORING_CQE_F_BUFFER) {
    uint16_t buffer = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    uring->frame.in_kernel--;
    if (cqe->res > 0) {
      uint32_t at = (uring->frame_first + uring->frame_count++) % FRAMES;
      uring->frame_queue[at].buffer = buffer;
      uring->frame_queue[at].size = (uint32_t)cqe->res;
      note_size(&uring->frame, (uint32_t)cqe->res, FRAMES_LEAST);
    } else {
      uring->free_frame[uring->free_count++] = buffer;
    }
  }
  if (cqe->res == -ENOBUFS) {
    note_exhausted(&uring->frame);
  } else if (cqe->res == 0) {
    uring->read_error = EBADFD; /* a character device that ends is gone */
  } else if (cqe->res < 0 && cqe->res != -ECANCELED && cqe->res != -EINTR && cqe->res != -EAGAIN) {
    uring->read_error = -cqe->res;
  }
}

static void complete_receive(kdp_worker *worker, uint32_t socket, const struct io_uring_cqe *cqe) {
  kdp_uring *uring = worker->uring;
  if (!(cqe->flags & IORING_CQE_F_MORE)) uring->receive_armed[socket] = false;
  if (cqe->flags & IORING_CQE_F_BUFFER) {
    uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
    uring->receive.in_kernel--;
    uring->free_id[uring->free_id_count++] = id;
    if (cqe->res >= RECEIVE_HEAD) {
      uint32_t at = (uring->receive_first + uring->receive_count++) % RECEIVES;
      uring->receive_queue[at].slot = uring->slot[id];
      uring->receive_queue[at].size = (uint32_t)cqe->res - RECEIVE_HEAD;
      note_size(&uring->receive, (uint32_t)cqe->res, RECEIVES_LEAST);
    } else {
      kdp_pool_release(worker->pool, uring->slot[id]);
    }
  }
  if (cqe->res == -ENOBUFS) note_exhausted(&uring->receive);
}

static int32_t error_of(int32_t result) {
  if (result == -ECANCELED) return KDP_SEND_NOT_TRIED; /* one before it in the chain failed */
  return result < 0 ? -result : 0;
}
_Static_assert((int)KDP_SEND_NOT_TRIED == (int)KDP_WRITE_NOT_TRIED, "one mark for both");

static void complete(kdp_worker *worker, const struct io_uring_cqe *cqe) {
  kdp_uring *uring = worker->uring;
  uint32_t index = (uint32_t)cqe->user_data, generation = (uint32_t)(cqe->user_data >> 32) & 0xffffff;
  switch ((tag)(cqe->user_data >> 56)) {
  case TAG_READ: complete_read(uring, cqe); break;
  case TAG_RECEIVE: complete_receive(worker, index, cqe); break;
  case TAG_SEND:
    worker->send->item[index].error = error_of(cqe->res);
    uring->pending--;
    break;
  case TAG_WRITE:
    worker->write->item[index].error = error_of(cqe->res);
    uring->pending--;
    break;
  case TAG_WAKE:
    uring->wake_armed = false;
    kdp_worker_read_wake(worker);
    break;
  case TAG_TIMER:
    if (generation == (uring->timer_generation & 0xffffff)) uring->timer_armed = false;
    break;
  case TAG_INSIDE_ROOM:
    uring->inside_room_armed = false;
    worker->ready |= KDP_READY_INSIDE_ROOM;
    break;
  case TAG_WIRE_ROOM:
    uring->wire_room_armed[index] = false;
    worker->ready |= KDP_READY_WIRE_ROOM;
    break;
  case TAG_IGNORED: break;
  }
}

static void reap(kdp_worker *worker) {
  struct io_uring *ring = &worker->uring->ring;
  struct io_uring_cqe *cqe;
  unsigned head, count = 0;
  io_uring_for_each_cqe(ring, head, cqe) {
    complete(worker, cqe);
    count++;
  }
  io_uring_cq_advance(ring, count);
}

/* Submits what is prepared and waits for `count` completions; 0: only takes what is there. */
static void enter(kdp_worker *worker, unsigned count) {
  kdp_uring *uring = worker->uring;
  if (!uring->enabled) {
    /* liburing 2.3 declares io_uring_enable_rings and forgets to export it. */
    syscall(__NR_io_uring_register, uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
    uring->enabled = true;
  }
  if (count > 0) {
    io_uring_submit_and_wait(&uring->ring, count);
  } else {
    io_uring_submit_and_get_events(&uring->ring);
  }
  kdp_count(&worker->count.waits, 1);
  reap(worker);
}

static struct io_uring_sqe *prepare(kdp_worker *worker) {
  struct io_uring_sqe *sqe;
  while (!(sqe = io_uring_get_sqe(&worker->uring->ring)))
    enter(worker, 0);
  return sqe;
}

/* ---- Arming ---- */

static void provide_frames(kdp_uring *uring) {
  int added = 0;
  /* What waits here counts too: the kernel's own queue is the place for more. */
  while (uring->frame.in_kernel + uring->frame_count < uring->frame.wanted && uring->free_count > 0) {
    uint16_t buffer = uring->free_frame[--uring->free_count];
    if (buffer >= uring->touched) uring->touched = buffer + 1u;
    io_uring_buf_ring_add(uring->frame.ring, uring->frames + (size_t)buffer * FRAME_STRIDE, KDP_FRAME_SIZE, buffer,
                          FRAMES - 1, added++);
    uring->frame.in_kernel++;
  }
  if (added) io_uring_buf_ring_advance(uring->frame.ring, added);
}

static void provide_slots(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  int added = 0;
  while (uring->receive.in_kernel + uring->receive_count < uring->receive.wanted && uring->free_id_count > 0) {
    kdp_slot slot;
    uint8_t *data = kdp_pool_take_slot(worker->pool, &slot);
    if (!data) break;
    uint16_t id = uring->free_id[--uring->free_id_count];
    uring->slot[id] = slot;
    io_uring_buf_ring_add(uring->receive.ring, data, KDP_SLOT_SIZE, id, RECEIVES - 1, added++);
    uring->receive.in_kernel++;
  }
  if (added) io_uring_buf_ring_advance(uring->receive.ring, added);
}

static void arm_input(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  if (kdp_worker_may_read(worker) && !uring->read_error) {
    provide_frames(uring);
    if (!uring->read_armed && uring->frame.in_kernel > 0) {
      struct io_uring_sqe *sqe = prepare(worker);
      io_uring_prep_rw(KDP_IORING_OP_READ_MULTISHOT, sqe, worker->tun.fd, NULL, 0, (uint64_t)-1);
      sqe->flags = IOSQE_BUFFER_SELECT;
      sqe->buf_group = FRAME_GROUP;
      sqe->user_data = user_data(TAG_READ, 0, 0);
      uring->read_armed = true;
    }
  }
  if (!kdp_worker_may_receive(worker)) return;
  provide_slots(worker);
  for (uint32_t i = 0; i < KDP_UDP_SOCKETS; i++) {
    if (worker->udp.fd[i] < 0 || uring->receive_armed[i] || uring->receive.in_kernel == 0) continue;
    struct io_uring_sqe *sqe = prepare(worker);
    io_uring_prep_recvmsg_multishot(sqe, worker->udp.fd[i], &uring->shape, 0);
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = RECEIVE_GROUP;
    sqe->user_data = user_data(TAG_RECEIVE, 0, i);
    uring->receive_armed[i] = true;
  }
}

static void arm_poll(kdp_worker *worker, int fd, unsigned events, uint64_t data, bool *armed) {
  if (*armed || fd < 0) return;
  struct io_uring_sqe *sqe = prepare(worker);
  io_uring_prep_poll_add(sqe, fd, events);
  sqe->user_data = data;
  *armed = true;
}

static void arm_waking(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  arm_poll(worker, worker->wake, POLLIN, user_data(TAG_WAKE, 0, 0), &uring->wake_armed);
  if (worker->inside_flow == KDP_FLOW_BLOCKED && worker->inside_retry == KDP_NEVER)
    arm_poll(worker, worker->tun.fd, POLLOUT, user_data(TAG_INSIDE_ROOM, 0, 0), &uring->inside_room_armed);
  for (uint32_t i = 0; i < KDP_UDP_SOCKETS; i++)
    if (kdp_worker_wants_room(worker, (int)i))
      arm_poll(worker, worker->udp.fd[i], POLLOUT, user_data(TAG_WIRE_ROOM, 0, i), &uring->wire_room_armed[i]);
}

static void arm_timer(kdp_worker *worker, uint64_t deadline) {
  kdp_uring *uring = worker->uring;
  /* Moved only when it must be earlier; one that fires too early costs one idle round. */
  if (deadline == KDP_NEVER || (uring->timer_armed && deadline >= uring->timer_at)) return;
  if (uring->timer_armed) {
    struct io_uring_sqe *sqe = prepare(worker);
    io_uring_prep_timeout_remove(sqe, user_data(TAG_TIMER, uring->timer_generation, 0), 0);
    sqe->user_data = user_data(TAG_IGNORED, 0, 0);
  }
  uring->timer_generation++;
  uring->timer = (struct __kernel_timespec){(long long)(deadline / KDP_SECOND), (long long)(deadline % KDP_SECOND)};
  struct io_uring_sqe *sqe = prepare(worker);
  io_uring_prep_timeout(sqe, &uring->timer, 0, IORING_TIMEOUT_ABS | IORING_TIMEOUT_BOOTTIME);
  sqe->user_data = user_data(TAG_TIMER, uring->timer_generation, 0);
  uring->timer_armed = true;
  uring->timer_at = deadline;
}

static void wait_for_work(kdp_worker *worker, bool more, uint64_t deadline) {
  kdp_uring *uring = worker->uring;
  worker->ready = 0;
  arm_input(worker);
  arm_waking(worker);
  bool may_read = kdp_worker_may_read(worker), may_receive = kdp_worker_may_receive(worker);
  bool input = (may_read && (uring->frame_count > 0 || uring->read_error)) || (may_receive && uring->receive_count > 0);
  if (!input) {
    if (more || deadline <= worker->now.boot) {
      enter(worker, 0);
    } else {
      arm_timer(worker, deadline);
      enter(worker, 1);
    }
  }
  if (uring->frame_count > 0 || uring->read_error) worker->ready |= KDP_READY_INSIDE;
  if (uring->receive_count > 0) worker->ready |= KDP_READY_IPV4;
}

/* ---- Input ---- */

static ssize_t read_frame(kdp_worker *worker, uint8_t **frame) {
  kdp_uring *uring = worker->uring;
  if (uring->held < FRAMES) uring->free_frame[uring->free_count++] = uring->held;
  uring->held = FRAMES;
  if (uring->frame_count == 0) {
    if (!uring->read_error) return 0;
    errno = uring->read_error;
    uring->read_error = 0;
    return -1;
  }
  uring->held = uring->frame_queue[uring->frame_first].buffer;
  ssize_t size = (ssize_t)uring->frame_queue[uring->frame_first].size;
  uring->frame_first = (uring->frame_first + 1) % FRAMES;
  uring->frame_count--;
  *frame = uring->frames + (size_t)uring->held * FRAME_STRIDE;
  return size;
}

static uint32_t receive(kdp_worker *worker, uint32_t socket, kdp_received *received, uint32_t capacity) {
  (void)socket; /* what came in on both is in one queue */
  kdp_uring *uring = worker->uring;
  uint32_t count = 0;
  for (; count < capacity && uring->receive_count > 0; count++) {
    kdp_slot slot = uring->receive_queue[uring->receive_first].slot;
    uint32_t size = uring->receive_queue[uring->receive_first].size;
    uring->receive_first = (uring->receive_first + 1) % RECEIVES;
    uring->receive_count--;
    uint8_t *data = kdp_pool_slot_data(worker->pool, slot);
    struct io_uring_recvmsg_out out;
    memcpy(&out, data, sizeof out);
    struct msghdr message = {.msg_name = data + sizeof out,
                             .msg_namelen = out.namelen,
                             .msg_control = data + sizeof out + NAME_SIZE,
                             .msg_controllen = out.controllen,
                             .msg_flags = (int)out.flags};
    received[count] = (kdp_received){.slot = slot,
                                     .data = data + RECEIVE_HEAD,
                                     .size = size,
                                     .head = RECEIVE_HEAD,
                                     .tail = KDP_SLOT_SIZE - RECEIVE_HEAD - size};
    kdp_received_describe(&received[count], &message, worker->link);
  }
  return count;
}

/* ---- Output ---- */

/* Prepares some of the sends from *next on, as one chain. */
static void prepare_sends(kdp_worker *worker, uint32_t *next) {
  kdp_send_plan *plan = worker->send;
  struct io_uring_sqe *last = NULL;
  for (uint32_t count = 0; *next < plan->item_count && count < CHAIN_MOST; ++*next) {
    kdp_send_item *item = &plan->item[*next];
    if (item->error != KDP_SEND_NOT_TRIED) continue;
    if (last) last->flags |= IOSQE_IO_LINK;
    last = prepare(worker);
    io_uring_prep_sendmsg(last, worker->udp.fd[item->socket], &plan->message[*next].msg_hdr, MSG_DONTWAIT);
    last->user_data = user_data(TAG_SEND, 0, *next);
    worker->uring->pending++;
    count++;
  }
}

static void prepare_writes(kdp_worker *worker, uint32_t *next) {
  kdp_write_plan *plan = worker->write;
  struct io_uring_sqe *last = NULL;
  for (uint32_t count = 0; *next < plan->join.run_count && count < CHAIN_MOST; ++*next, count++) {
    if (last) last->flags |= IOSQE_IO_LINK;
    last = prepare(worker);
    io_uring_prep_writev(last, worker->tun.fd, &plan->iov[plan->item[*next].first], plan->item[*next].count,
                         (uint64_t)-1);
    last->user_data = user_data(TAG_WRITE, 0, *next);
    worker->uring->pending++;
  }
}

static bool send_failed(const kdp_send_plan *plan, uint32_t end) {
  for (uint32_t i = 0; i < end; i++)
    if (plan->item[i].error == KDP_SEND_NOT_TRIED) return true;
  return end > 0 && plan->item[end - 1].error != 0;
}

static bool write_failed(const kdp_write_plan *plan, uint32_t end) {
  return end > 0 && plan->item[end - 1].error != 0;
}

static void output(kdp_worker *worker, bool send, bool write) {
  kdp_uring *uring = worker->uring;
  const kdp_send_plan *sends = worker->send;
  if (send)
    for (uint32_t i = 0; i < sends->item_count; i++)
      if (sends->item[i].df) { /* a probe: socket options round one send */
        kdp_send_directly(worker);
        send = false;
        break;
      }
  uint32_t next_send = 0, next_write = 0;
  while (send || write) {
    if (write) prepare_writes(worker, &next_write);
    if (send) prepare_sends(worker, &next_send);
    arm_input(worker); /* buffers that have come back go along */
    while (uring->pending > 0)
      enter(worker, uring->pending);
    write = write && next_write < worker->write->join.run_count && !write_failed(worker->write, next_write);
    send = send && next_send < sends->item_count && !send_failed(sends, next_send);
  }
}

/* ---- Letting go ---- */

static bool is_armed(const kdp_uring *uring, bool all) {
  bool sockets = false;
  for (int i = 0; i < KDP_UDP_SOCKETS; i++)
    sockets = sockets || uring->receive_armed[i] || uring->wire_room_armed[i];
  if (!all) return sockets;
  return sockets || uring->read_armed || uring->wake_armed || uring->inside_room_armed || uring->timer_armed;
}

static void cancel(kdp_worker *worker, uint64_t data, bool armed) {
  if (!armed) return;
  struct io_uring_sqe *sqe = prepare(worker);
  io_uring_prep_cancel64(sqe, data, 0);
  sqe->user_data = user_data(TAG_IGNORED, 0, 0);
}

/* A request holds its descriptor: a closed socket would go on receiving, and its port would stay taken. */
static void detach(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  for (uint32_t i = 0; i < KDP_UDP_SOCKETS; i++) {
    cancel(worker, user_data(TAG_RECEIVE, 0, i), uring->receive_armed[i]);
    cancel(worker, user_data(TAG_WIRE_ROOM, 0, i), uring->wire_room_armed[i]);
  }
  while (is_armed(uring, false))
    enter(worker, 1);
}

static void attach(kdp_worker *worker) {
  (void)worker; /* armed with the next wait */
}

static void finish(kdp_worker *worker) {
  kdp_uring *uring = worker->uring;
  cancel(worker, user_data(TAG_READ, 0, 0), uring->read_armed);
  cancel(worker, user_data(TAG_WAKE, 0, 0), uring->wake_armed);
  cancel(worker, user_data(TAG_INSIDE_ROOM, 0, 0), uring->inside_room_armed);
  if (uring->timer_armed) {
    struct io_uring_sqe *sqe = prepare(worker);
    io_uring_prep_timeout_remove(sqe, user_data(TAG_TIMER, uring->timer_generation, 0), 0);
    sqe->user_data = user_data(TAG_IGNORED, 0, 0);
  }
  detach(worker);
  while (is_armed(uring, true))
    enter(worker, 1);
  uring->finished = true;
}

const kdp_backend_ops kdp_backend_uring = {
    .kind = KDP_BACKEND_URING,
    .open = open_backend,
    .close = close_backend,
    .detach = detach,
    .attach = attach,
    .wait = wait_for_work,
    .read = read_frame,
    .receive = receive,
    .output = output,
    .finish = finish,
};
