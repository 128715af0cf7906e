/* A worker with several threads: to its user one worker. In both shapes: a queue and sockets for each thread, and one
   thread a direction. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/handoff.h"
#include "support/kernel_faults_calls.h"
#include "support/rig.h"

typedef struct shape {
  uint32_t threads, queues;
} shape;
static const shape DIRECTIONS = {2, 1}, TWO_QUEUES = {2, 2}, FOUR_QUEUES = {4, 4};
static const shape *const SHAPES[] = {&DIRECTIONS, &TWO_QUEUES, &FOUR_QUEUES};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

static void open_shape(rig *r, void **state, const shape *s, bool ipv6) {
  kernel_faults_clear();
  rig_open(r, ipv6, (kdp_worker_config){.backend = rig_backend(state), .threads = s->threads, .queues = s->queues});
}

static void open_started(rig *r, void **state, const shape *s) {
  open_shape(r, state, s, false);
  rig_start(r);
}

/* ---- Packets with a number of their own ---- */

enum { PACKET = 300, NUMBER_AT = 28 };

static size_t numbered(rig *r, uint32_t number, uint8_t *packet) {
  size_t size = rig_udp_packet(r, false, 0, PACKET, packet);
  memcpy(packet + NUMBER_AT, &number, sizeof number); /* the checksum is nobody's business here */
  return size;
}

static uint32_t number_of(const uint8_t *packet) {
  uint32_t number;
  memcpy(&number, packet + NUMBER_AT, sizeof number);
  return number;
}

/* Writes `count` packets to the queues in turns and receives all of them, in whatever order. Sets by how many each came
   late at most, and returns how many lane 0 sealed. */
static uint32_t send_outwards(rig *r, uint32_t count, uint32_t *latest) {
  bool *seen = calloc(count, sizeof *seen);
  uint32_t by_first = 0, next = 0, highest = 0;
  *latest = 0;
  for (uint32_t got = 0; got < count;) {
    uint8_t packet[PACKET], datagram[RIG_FRAME];
    for (; next < count && next - got < 100; next++) {
      rig_use_queue(r, next % r->queues);
      size_t size = numbered(r, next, packet);
      rig_write_packet(r, packet, size);
    }
    ssize_t size = rig_receive(r, datagram, sizeof datagram, 2000);
    if (size < 0) fail_msg("%u of %u came", got, count);
    uint64_t sealed;
    assert_true(passthrough_read(datagram, (size_t)size, &sealed));
    assert_int_equal(size, PACKET + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL);
    uint32_t number = number_of(datagram + PASSTHROUGH_HEAD);
    assert_true(number < count);
    assert_false(seen[number]);
    seen[number] = true;
    by_first += sealed >> 56 == 0;
    if (number > highest) highest = number;
    if (highest - number > *latest) *latest = highest - number;
    got++;
  }
  free(seen);
  return by_first;
}

/* A frame from any queue. */
static ssize_t read_any_frame(rig *r, uint8_t *frame) {
  struct pollfd one[RIG_QUEUES];
  for (uint32_t i = 0; i < r->queues; i++)
    one[i] = (struct pollfd){.fd = r->ends[i], .events = POLLIN};
  if (poll(one, r->queues, 2000) <= 0) return -1;
  for (uint32_t i = 0; i < r->queues; i++)
    if (one[i].revents & POLLIN) return recv(r->ends[i], frame, RIG_FRAME, 0);
  return -1;
}

/* Sends `count` datagrams from as many sockets as there are and reads what is in them from the inside. */
enum { PEERS = 32 };
static void send_inwards(rig *r, uint32_t count) {
  int peer[PEERS];
  bool *seen = calloc(count, sizeof *seen);
  struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(kdp_worker_port(r->worker))};
  for (int i = 0; i < PEERS; i++) {
    peer[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(peer[i], (struct sockaddr *)&to, sizeof to), 0);
  }
  uint32_t next = 0;
  for (uint32_t got = 0; got < count;) {
    uint8_t datagram[PACKET + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL], frame[RIG_FRAME];
    for (; next < count && next - got < 100; next++) {
      size_t size = numbered(r, next, datagram + PASSTHROUGH_HEAD);
      passthrough_write(datagram, size, next);
      assert_int_equal(send(peer[next % PEERS], datagram, sizeof datagram, 0), sizeof datagram);
    }
    ssize_t size = read_any_frame(r, frame);
    if (size < 0) fail_msg("%u of %u came", got, count);
    assert_int_equal(size, KDP_VIRTIO_SIZE + PACKET);
    uint32_t number = number_of(frame + KDP_VIRTIO_SIZE);
    assert_true(number < count);
    assert_false(seen[number]);
    seen[number] = true;
    got++;
  }
  for (int i = 0; i < PEERS; i++)
    close(peer[i]);
  free(seen);
}

static uint64_t sum_of_others(const rig *r, size_t field) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i + 1 < PASSTHROUGH_LANES; i++)
    sum += *(const uint64_t *)((const uint8_t *)&r->engine.other[i] + field);
  return sum;
}
#define OTHERS(r, field) sum_of_others(r, offsetof(passthrough_lane, field))

static void everything_passes(rig *r) {
  uint32_t latest;
  (void)send_outwards(r, 200, &latest);
  send_inwards(r, 200);
}

/* ---- The way of packets ---- */

static void one_thread_a_direction(void **state) {
  rig r;
  uint32_t latest;
  open_started(&r, state, &DIRECTIONS);
  assert_int_equal(send_outwards(&r, 2000, &latest), 0);
  assert_int_equal(latest, 0);
  send_inwards(&r, 2000);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(r.engine.sent, 0);
  assert_int_equal(r.engine.received, 2000);
  assert_int_equal(r.engine.other[0].sent, 2000);
  assert_int_equal(r.engine.other[0].received, 0);
  assert_int_equal(r.engine.damaged + OTHERS(&r, damaged), 0);
  assert_int_equal(r.engine.links_up, 1);
}

static void a_queue_and_sockets_each(void **state) {
  rig r;
  uint32_t latest;
  open_started(&r, state, &FOUR_QUEUES);
  assert_int_equal(send_outwards(&r, 2000, &latest), 500);
  send_inwards(&r, 2000);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(r.engine.sent, 500);
  assert_int_equal(r.engine.received + OTHERS(&r, received), 2000);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(r.engine.other[i].sent, 500);
    assert_true(r.engine.other[i].received > 0); /* 32 peers on four sockets */
  }
  assert_int_equal(r.engine.damaged + OTHERS(&r, damaged), 0);
  assert_int_equal(r.engine.links_up, 1);
}

static void what_is_handed_over_is_done_by_lane_0(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    uint32_t latest, others = SHAPES[i]->threads - 1;
    open_shape(&r, state, SHAPES[i], false);
    r.engine.hand_every = 5;
    rig_start(&r);
    uint32_t by_first = send_outwards(&r, 2000, &latest);
    send_inwards(&r, 2000);
    assert_int_equal(rig_close(&r), KDP_OK);
    uint64_t handed = OTHERS(&r, handed);
    assert_true(handed >= (SHAPES[i]->queues == 1 ? 400 : others * 2000 / SHAPES[i]->threads / 5));
    assert_int_equal(r.engine.sent, by_first);
    assert_int_equal(r.engine.sent + OTHERS(&r, sent), 2000);
    assert_int_equal(r.engine.received + OTHERS(&r, received), 2000);
    assert_int_equal(r.engine.damaged + OTHERS(&r, damaged), 0);
  }
}

/* Lane 0 has other things to do between `keep` and `release`, and sets another port at the end if it is told to. */
typedef struct holding {
  kdp_command command;
  sem_t held, go_on;
  bool set_port;
  kdp_status status;
} holding;

static void run_hold(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)engine, (void)out, (void)now, (void)stopping;
  holding *h = command->context;
  sem_post(&h->held);
  while (sem_wait(&h->go_on) != 0 && errno == EINTR)
    ;
  if (h->set_port) h->status = kdp_worker_set_port(worker, 0);
  sem_post(&h->held);
}

static void keep(holding *h, rig *r) {
  *h = (holding){.command = {.run = run_hold, .context = h}};
  sem_init(&h->held, 0, 0), sem_init(&h->go_on, 0, 0);
  kdp_worker_submit(r->worker, &h->command);
  while (sem_wait(&h->held) != 0 && errno == EINTR)
    ;
}

static void release(holding *h) {
  sem_post(&h->go_on);
  while (sem_wait(&h->held) != 0 && errno == EINTR)
    ;
  sem_destroy(&h->held), sem_destroy(&h->go_on);
}

static void await_reads(const rig *r, uint64_t count) {
  kdp_io_statistics statistics = {0};
  for (int i = 0; i < 5000 && statistics.tun_reads < count; i++) {
    usleep(1000);
    kdp_worker_statistics(r->worker, &statistics);
  }
  assert_true(statistics.tun_reads >= count);
}

/* As many packets as are staged for a peer, of the usual size: with one thread none would be lost. */
static void a_burst_finds_room_however_busy_lane_0_is(void **state) {
  enum { BURST = 128, SIZE = 1420 };
  rig r;
  holding h;
  open_shape(&r, state, &DIRECTIONS, false);
  r.engine.hand_every = 1;
  rig_start(&r);
  for (uint32_t round = 0; round < 3; round++) {
    keep(&h, &r);
    for (uint32_t i = 0; i < BURST; i++) {
      uint8_t packet[SIZE];
      (void)rig_udp_packet(&r, false, 0, SIZE, packet);
      memcpy(packet + NUMBER_AT, &i, sizeof i);
      rig_write_packet(&r, packet, SIZE);
    }
    await_reads(&r, (round + 1) * BURST);
    release(&h);
    for (uint32_t i = 0; i < BURST; i++) {
      uint8_t datagram[RIG_FRAME];
      assert_true(rig_receive(&r, datagram, sizeof datagram, 2000) > 0);
      assert_int_equal(number_of(datagram + PASSTHROUGH_HEAD), i);
    }
  }
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.status[KDP_HANDOVER_FULL], 0);
  rig_close(&r);
}

static void what_finds_no_room_is_dropped_and_counted(void **state) {
  enum { MANY = 2000 };
  rig r;
  holding h;
  open_shape(&r, state, &DIRECTIONS, false);
  r.engine.hand_every = 1;
  rig_start(&r);
  keep(&h, &r);
  for (uint32_t i = 0; i < MANY; i++) {
    uint8_t packet[PACKET];
    size_t size = numbered(&r, i, packet);
    rig_write_packet(&r, packet, size);
  }
  await_reads(&r, MANY);
  release(&h);
  uint32_t came = 0;
  for (uint8_t datagram[RIG_FRAME]; rig_receive(&r, datagram, sizeof datagram, came < 100 ? 2000 : 200) > 0; came++)
    assert_int_equal(number_of(datagram + PASSTHROUGH_HEAD), came); /* the oldest, in order */
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_true(came > KDP_HANDOFF_BYTES / (PACKET + 100) && came < MANY);
  assert_int_equal(statistics.status[KDP_HANDOVER_FULL], MANY - came);
  everything_passes(&r);
  rig_close(&r);
}

static void an_idle_worker_sleeps(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    everything_passes(&r);
    usleep(20000);
    kdp_io_statistics before, after;
    kdp_worker_statistics(r.worker, &before);
    usleep(200000);
    kdp_worker_statistics(r.worker, &after);
    assert_int_equal(after.rounds, before.rounds);
    assert_int_equal(after.waits, before.waits);
    rig_close(&r);
  }
}

static uint64_t rounds_of_first;
static void note_rounds(rig *r, kdp_worker *worker) {
  (void)worker;
  rounds_of_first = r->engine.quiescent; /* one a round of lane 0 */
}

static void traffic_of_one_thread_does_not_wake_the_others(void **state) {
  rig r;
  uint32_t latest;
  open_started(&r, state, &DIRECTIONS);
  everything_passes(&r);
  rig_sync(&r, note_rounds);
  uint64_t before = rounds_of_first;
  (void)send_outwards(&r, 1000, &latest);
  rig_sync(&r, note_rounds);
  assert_true(rounds_of_first - before <= 2);
  rig_close(&r);
}

static void counters_are_those_of_all_threads(void **state) {
  rig r;
  uint32_t latest;
  open_started(&r, state, &TWO_QUEUES);
  (void)send_outwards(&r, 500, &latest);
  send_inwards(&r, 400);
  kdp_io_statistics statistics = {0};
  for (int i = 0; i < 2000 && statistics.tun_writes < 400; i++) { /* a write is counted when it is done */
    usleep(1000);
    kdp_worker_statistics(r.worker, &statistics);
  }
  assert_int_equal(statistics.tun_reads, 500);
  assert_int_equal(statistics.tun_writes, 400);
  rig_close(&r);
}

/* ---- The port ---- */

static kdp_status create_on(rig *r, void **state, const shape *s, uint16_t port) {
  kdp_host host = kdp_host_default();
  kdp_worker *worker = NULL;
  kdp_worker_config config = {.engine = &r->engine.engine,
                              .threads = s->threads,
                              .tun = r->queue,
                              .queues = s->queues,
                              .backend = rig_backend(state),
                              .listen_port = port};
  kdp_status status = kdp_worker_create(&config, &host, &worker);
  int error = errno;
  if (status == KDP_OK) kdp_worker_destroy(worker);
  errno = error;
  return status;
}

static int bind_socket(uint16_t *port, bool shared) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
  socklen_t size = sizeof address;
  if (shared) assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one), 0);
  if (bind(fd, (struct sockaddr *)&address, size) != 0) {
    close(fd);
    return -1;
  }
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  *port = ntohs(address.sin_port);
  return fd;
}

static void a_port_that_anybody_has_is_refused(void **state) {
  rig r;
  open_shape(&r, state, &FOUR_QUEUES, false);
  for (int shared = 0; shared < 2; shared++) {
    uint16_t port = 0;
    int fd = bind_socket(&port, shared);
    for (int i = 0; i < SHAPE_COUNT; i++) {
      assert_int_equal(create_on(&r, state, SHAPES[i], port), KDP_SYSTEM);
      assert_int_equal(errno, EADDRINUSE);
    }
    close(fd);
    assert_int_equal(create_on(&r, state, &FOUR_QUEUES, port), KDP_OK);
  }
  uint16_t ours = kdp_worker_port(r.worker);
  for (int i = 0; i < SHAPE_COUNT; i++) { /* nor do two workers share one */
    assert_int_equal(create_on(&r, state, SHAPES[i], ours), KDP_SYSTEM);
    assert_int_equal(errno, EADDRINUSE);
  }
  assert_int_equal(create_on(&r, state, &(shape){1, 1}, ours), KDP_SYSTEM);
  assert_int_equal(errno, EADDRINUSE);
  rig_start(&r);
  rig_close(&r);
}

static void one_thread_shares_no_port(void **state) {
  rig r;
  open_started(&r, state, &(shape){1, 1});
  uint16_t port = kdp_worker_port(r.worker);
  assert_int_equal(bind_socket(&port, true), -1);
  rig_close(&r);
  open_started(&r, state, &DIRECTIONS);
  port = kdp_worker_port(r.worker);
  assert_int_equal(bind_socket(&port, true), -1);
  rig_close(&r);
}

static void the_port_changes_for_all(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    everything_passes(&r);
    uint16_t first = kdp_worker_port(r.worker);
    assert_int_equal(rig_set_port(&r, 0), KDP_OK);
    uint16_t second = kdp_worker_port(r.worker), free_again = first;
    assert_true(second != first);
    int fd = bind_socket(&free_again, false);
    assert_true(fd >= 0); /* no thread has it any more */
    everything_passes(&r);
    assert_int_equal(rig_set_port(&r, first), KDP_SYSTEM); /* taken now: all keep what they have */
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(kdp_worker_port(r.worker), second);
    everything_passes(&r);
    close(fd);
    assert_int_equal(rig_set_port(&r, first), KDP_OK);
    everything_passes(&r);
    assert_int_equal(rig_close(&r), KDP_OK);
  }
}

static void the_interface_goes_down_and_up_for_all(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    everything_passes(&r);
    uint16_t port = kdp_worker_port(r.worker);
    assert_int_equal(rig_set_up(&r, false), KDP_OK);
    int fd = bind_socket(&port, false);
    assert_true(fd >= 0);
    close(fd);
    for (uint32_t queue = 0; queue < r.queues; queue++) {
      uint8_t packet[PACKET], datagram[RIG_FRAME];
      rig_use_queue(&r, queue);
      size_t size = numbered(&r, queue, packet);
      rig_write_packet(&r, packet, size);
      assert_int_equal(rig_receive(&r, datagram, sizeof datagram, 20), -1);
    }
    assert_int_equal(rig_set_up(&r, true), KDP_OK);
    assert_int_equal(kdp_worker_port(r.worker), port);
    for (uint32_t queue = 0; queue < r.queues; queue++) { /* what had waited in the TUN */
      uint8_t datagram[RIG_FRAME];
      assert_true(rig_receive(&r, datagram, sizeof datagram, 2000) > 0);
    }
    everything_passes(&r);
    assert_int_equal(rig_close(&r), KDP_OK);
    assert_int_equal(r.engine.links_up, 2);
    assert_int_equal(r.engine.links_down, 1);
  }
}

static void all_get_another_port_when_the_engine_asks(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_shape(&r, state, SHAPES[i], false);
    r.engine.hand_every = 1; /* so that lane 0 has something to send */
    rig_start(&r);
    uint16_t before = kdp_worker_port(r.worker);
    rig_ask_for_rebind(&r);
    everything_passes(&r);
    assert_true(kdp_worker_port(r.worker) != before);
    rig_close(&r);
  }
}

static void the_mark_is_set_on_all(void **state) {
  if (geteuid() != 0) skip();
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    assert_int_equal(rig_set_mark(&r, 0x1234), KDP_OK);
    uint32_t marked = 0;
    for (int fd = 3; fd < 256; fd++) {
      int mark;
      socklen_t size = sizeof mark;
      if (getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &size) == 0 && mark == 0x1234) marked++;
    }
    assert_int_equal(marked, 2 * SHAPES[i]->threads); /* both families */
    everything_passes(&r);
    rig_close(&r);
  }
}

static void ports_change_while_packets_pass(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_shape(&r, state, SHAPES[i], false);
    r.engine.hand_every = 3;
    rig_start(&r);
    for (uint32_t round = 0; round < 30; round++) {
      uint8_t packet[PACKET], datagram[RIG_FRAME];
      for (uint32_t n = 0; n < 50; n++) {
        rig_use_queue(&r, n % r.queues);
        size_t size = numbered(&r, n, packet);
        rig_write_packet(&r, packet, size);
      }
      assert_int_equal(rig_set_port(&r, 0), KDP_OK);
      for (uint32_t n = 0; n < 50; n++) /* sent by the old sockets or by the new ones, but sent */
        assert_true(rig_receive(&r, datagram, sizeof datagram, 2000) > 0);
    }
    everything_passes(&r);
    assert_int_equal(rig_close(&r), KDP_OK);
  }
}

/* ---- What goes wrong on another lane ---- */

static void broken_sockets_are_replaced_for_all(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    everything_passes(&r);
    uint16_t before = kdp_worker_port(r.worker);
    faults.send = EBADF;
    faults.send_times = 1;
    uint8_t packet[PACKET];
    rig_use_queue(&r, r.queues - 1);
    size_t size = numbered(&r, 0, packet);
    rig_write_packet(&r, packet, size);
    kdp_event event;
    assert_true(rig_event(&r, KDP_EVENT_LINK_ERROR, &event));
    assert_int_equal(event.value, EBADF);
    assert_int_equal(event.status, KDP_OK);
    rig_sync(&r, NULL);
    assert_true(kdp_worker_port(r.worker) != before);
    everything_passes(&r);
    rig_close(&r);
  }
}

static void a_fallback_is_told_once(void **state) {
  rig r;
  static uint8_t frame[RIG_FRAME];
  open_shape(&r, state, &FOUR_QUEUES, false);
  faults.segmented_send = EIO;
  rig_start(&r);
  /* Three destinations that refuse it: then each thread has found it for all. */
  for (int destination = 0; destination < 3; destination++) {
    for (uint32_t queue = 0; queue < r.queues; queue++) {
      size_t size = rig_tcp_frame(&r, false, 20000, 1380, frame);
      rig_use_queue(&r, queue);
      rig_write_frame(&r, frame, size);
      uint8_t datagram[RIG_FRAME];
      for (int i = 0; i < 15; i++)
        assert_true(rig_receive(&r, datagram, sizeof datagram, 2000) > 0);
    }
    rig_move_wire(&r);
  }
  kdp_event event;
  do {
    assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
    assert_int_equal(event.value, KDP_FALLBACK_NO_UDP_SEGMENT);
  } while (event.address.family != KDP_FAMILY_NONE);
  assert_true(kdp_worker_active_fallbacks(r.worker) & KDP_FALLBACK_NO_UDP_SEGMENT);
  usleep(20000);
  rig_sync(&r, NULL);
  uint32_t more = 0;
  while (kdp_worker_next_event(r.worker, &event))
    more += event.kind == KDP_EVENT_FALLBACK && event.address.family == KDP_FAMILY_NONE;
  assert_int_equal(more, 0);
  rig_close(&r);
}

static void send_three_refused(rig *r, holding *h) {
  static uint8_t frame[RIG_FRAME];
  rig_use_queue(r, 1);
  for (int destination = 0; destination < 3; destination++) {
    if (destination == 2) keep(h, r);
    size_t size = rig_tcp_frame(r, false, 20000, 1380, frame);
    rig_write_frame(r, frame, size);
    for (int i = 0; i < 15; i++) {
      uint8_t datagram[RIG_FRAME];
      assert_true(rig_receive(r, datagram, sizeof datagram, 2000) > 0);
    }
    if (destination < 2) rig_move_wire(r);
  }
}

/* What another lane has found out about sockets is told to lane 0 after these have been replaced. */
static void a_fallback_of_old_sockets_is_not_one_of_the_new(void **state) {
  for (int set_port = 0; set_port < 2; set_port++) {
    rig r;
    holding h;
    open_shape(&r, state, &TWO_QUEUES, false);
    faults.segmented_send = EIO;
    rig_start(&r);
    send_three_refused(&r, &h);
    faults.segmented_send = 0;
    h.set_port = set_port;
    release(&h);
    rig_sync(&r, NULL);
    rig_sync(&r, NULL);
    assert_int_equal(kdp_worker_active_fallbacks(r.worker) & KDP_FALLBACK_NO_UDP_SEGMENT,
                     set_port ? 0 : KDP_FALLBACK_NO_UDP_SEGMENT);
    uint32_t told = 0;
    for (kdp_event event; kdp_worker_next_event(r.worker, &event);)
      told += event.kind == KDP_EVENT_FALLBACK && event.address.family == KDP_FAMILY_NONE;
    assert_int_equal(told, set_port ? 0 : 1);
    everything_passes(&r);
    rig_close(&r);
  }
}

static void what_a_path_takes_is_told_to_lane_0(void **state) {
  rig r;
  static uint8_t frame[RIG_FRAME];
  open_shape(&r, state, &DIRECTIONS, false);
  faults.segmented_send = EMSGSIZE;
  rig_start(&r);
  size_t size = rig_tcp_frame(&r, false, 20000, 1380, frame);
  rig_write_frame(&r, frame, size);
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event)); /* of this destination */
  assert_int_equal(event.address.family, KDP_FAMILY_IPV4);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_true(r.engine.path_mtu_calls > 0);
  assert_true(r.engine.path_mtu > 0);
}

static void a_queue_that_ends_ends_the_run(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_started(&r, state, SHAPES[i]);
    everything_passes(&r);
    uint32_t last = r.queues - 1;
    close(r.ends[last]);
    r.ends[last] = -1;
    if (last == 0) r.frames = -1;
    kdp_event event;
    assert_true(rig_event(&r, KDP_EVENT_INSIDE_GONE, &event));
    assert_int_equal(rig_close(&r), KDP_CLOSED);
  }
}

/* ---- Making ---- */

static void threads_must_go_with_lanes_and_queues(void **state) {
  rig r;
  open_shape(&r, state, &FOUR_QUEUES, false);
  assert_int_equal(create_on(&r, state, &(shape){5, 4}, 0), KDP_INVALID_ARGUMENT);
  assert_int_equal(create_on(&r, state, &(shape){2, 4}, 0), KDP_INVALID_ARGUMENT);
  assert_int_equal(create_on(&r, state, &(shape){3, 1}, 0), KDP_INVALID_ARGUMENT);
  assert_int_equal(create_on(&r, state, &(shape){1, 2}, 0), KDP_INVALID_ARGUMENT);
  r.engine.lanes = 3;
  assert_int_equal(create_on(&r, state, &(shape){4, 4}, 0), KDP_INVALID_ARGUMENT);
  assert_int_equal(create_on(&r, state, &(shape){0, 0}, 0), KDP_OK);
  rig_start(&r);
  rig_close(&r);
}

static uint32_t open_descriptors(void) {
  uint32_t count = 0;
  for (int fd = 0; fd < 256; fd++) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    count += getsockname(fd, (struct sockaddr *)&address, &size) == 0 || errno == ENOTSOCK;
  }
  return count;
}

static void a_worker_that_never_ran_leaves_nothing(void **state) {
  uint32_t before = open_descriptors();
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    open_shape(&r, state, SHAPES[i], false);
    kdp_worker_destroy(r.worker);
    for (uint32_t queue = 0; queue < r.queues; queue++)
      close(r.queue[queue].fd), close(r.ends[queue]);
    close(r.wire);
  }
  assert_int_equal(open_descriptors(), before);
}

static uint32_t worker_threads(void) {
  uint32_t count = 0;
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent *task; (task = readdir(tasks));) {
    char path[300], name[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (!file) continue;
    count += fgets(name, sizeof name, file) && strncmp(name, "kape-", 5) == 0;
    fclose(file);
  }
  closedir(tasks);
  return count;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
static sem_t let_go;
static void *wait_for_the_end(void *context) {
  (void)context;
  while (sem_wait(&let_go) != 0 && errno == EINTR)
    ;
  return NULL;
}

static size_t address_space(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%zu", &pages), 1);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}
#endif

/* A thread that is not to be had is told at the start, and those that were to be had end. */
static void without_all_of_its_threads_it_does_not_start(void **state) {
#ifdef SANITIZED
  (void)state;
  skip(); /* they need address space of their own with every thread */
#else
  enum { HOARDERS = 32 };
  pthread_t hoarder[HOARDERS];
  rig r;
  open_shape(&r, state, &FOUR_QUEUES, false);
  /* Stacks of threads that have ended are kept for others: these take them. */
  sem_init(&let_go, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  for (int i = 0; i < HOARDERS; i++)
    assert_int_equal(pthread_create(&hoarder[i], &attributes, wait_for_the_end, NULL), 0);
  struct rlimit before, tight;
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  tight = before;
  tight.rlim_cur = address_space() + (400 << 10); /* one stack, not two */
  assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
  kdp_status status = kdp_worker_start(r.worker);
  int error = errno;
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  assert_int_equal(status, KDP_SYSTEM);
  assert_int_equal(error, EAGAIN);
  assert_int_equal(worker_threads(), 0);
  assert_int_equal(kdp_worker_join(r.worker), KDP_INVALID_ARGUMENT); /* there is nothing to wait for */
  kdp_worker_destroy(r.worker);
  for (uint32_t queue = 0; queue < r.queues; queue++)
    close(r.queue[queue].fd), close(r.ends[queue]);
  close(r.wire);
  for (int i = 0; i < HOARDERS; i++)
    sem_post(&let_go);
  for (int i = 0; i < HOARDERS; i++)
    pthread_join(hoarder[i], NULL);
  pthread_attr_destroy(&attributes);
  sem_destroy(&let_go);
#endif
}

static void change_port_after_the_end_of_another(rig *r, kdp_worker *worker) {
  close(r->ends[1]);
  r->ends[1] = -1;
  while (worker_threads() > 1)
    usleep(1000);
  r->call.status = kdp_worker_set_port(worker, 0);
}

/* The first does not know yet that there is one that will never take the sockets made for it. */
static void sockets_for_a_thread_that_has_ended_are_closed(void **state) {
  uint32_t before = open_descriptors();
  rig r;
  open_started(&r, state, &TWO_QUEUES);
  everything_passes(&r);
  rig_sync(&r, change_port_after_the_end_of_another);
  assert_int_equal(r.call.status, KDP_OK);
  assert_int_equal(rig_close(&r), KDP_CLOSED);
  assert_int_equal(open_descriptors(), before);
}

static void both_families_reach_every_thread(void **state) {
  for (int i = 0; i < SHAPE_COUNT; i++) {
    rig r;
    uint32_t latest;
    open_shape(&r, state, SHAPES[i], true);
    rig_start(&r);
    (void)send_outwards(&r, 400, &latest);
    assert_int_equal(rig_close(&r), KDP_OK);
    assert_int_equal(r.engine.sent + OTHERS(&r, sent), 400);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_thread_a_direction),
      cmocka_unit_test(a_queue_and_sockets_each),
      cmocka_unit_test(what_is_handed_over_is_done_by_lane_0),
      cmocka_unit_test(a_burst_finds_room_however_busy_lane_0_is),
      cmocka_unit_test(what_finds_no_room_is_dropped_and_counted),
      cmocka_unit_test(an_idle_worker_sleeps),
      cmocka_unit_test(traffic_of_one_thread_does_not_wake_the_others),
      cmocka_unit_test(counters_are_those_of_all_threads),
      cmocka_unit_test(a_port_that_anybody_has_is_refused),
      cmocka_unit_test(one_thread_shares_no_port),
      cmocka_unit_test(the_port_changes_for_all),
      cmocka_unit_test(the_interface_goes_down_and_up_for_all),
      cmocka_unit_test(all_get_another_port_when_the_engine_asks),
      cmocka_unit_test(the_mark_is_set_on_all),
      cmocka_unit_test(ports_change_while_packets_pass),
      cmocka_unit_test(broken_sockets_are_replaced_for_all),
      cmocka_unit_test(a_fallback_is_told_once),
      cmocka_unit_test(a_fallback_of_old_sockets_is_not_one_of_the_new),
      cmocka_unit_test(what_a_path_takes_is_told_to_lane_0),
      cmocka_unit_test(a_queue_that_ends_ends_the_run),
      cmocka_unit_test(threads_must_go_with_lanes_and_queues),
      cmocka_unit_test(a_worker_that_never_ran_leaves_nothing),
      cmocka_unit_test(without_all_of_its_threads_it_does_not_start),
      cmocka_unit_test(sockets_for_a_thread_that_has_ended_are_closed),
      cmocka_unit_test(both_families_reach_every_thread),
  };
  return rig_run_with_each_backend("worker group", tests, sizeof tests / sizeof tests[0]);
}
