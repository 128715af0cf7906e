/* Each offload refused by the kernel, with the errors that it gives: no packet of the batch is lost, the fallback is
   scoped and told once, and what follows does not try again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "kdp/socket_address.h"
#include "support/kernel_faults_calls.h"
#include "support/rig.h"

static void open_rig(rig *r, void **state) {
  kernel_faults_clear();
  rig_open(r, false, (kdp_worker_config){.backend = rig_backend(state)});
  faults.write_fd = r->tun.fd;
}

enum { SEGMENT = 1380, FULL = 44, REST = 228, SEGMENTS = FULL + 1 };

/* A batch of 44 packets of 1,452 bytes and one of 260 to one destination, from one super-packet. All of them must come,
   once, in order, unchanged. */
static void one_batch(rig *r, uint64_t first_number) {
  static uint8_t frame[RIG_FRAME], copy[RIG_FRAME], datagram[RIG_FRAME];
  size_t size = rig_tcp_frame(r, false, FULL * SEGMENT + REST, SEGMENT, frame);
  memcpy(copy, frame, size);
  rig_write_frame(r, frame, size);
  size_t at = KDP_VIRTIO_SIZE + 40;
  for (uint64_t i = 0; i < SEGMENTS; i++) {
    uint64_t number = 0;
    ssize_t got = rig_receive(r, datagram, sizeof datagram, 2000);
    if (got < 0) fail_msg("segment %u did not come", (unsigned)i);
    assert_true(passthrough_read(datagram, (size_t)got, &number));
    assert_int_equal(number, first_number + i);
    size_t inner = (size_t)got - PASSTHROUGH_HEAD - PASSTHROUGH_TAIL;
    assert_true(rig_packet_is_right(datagram + PASSTHROUGH_HEAD, inner));
    assert_int_equal(inner - 40, i < FULL ? SEGMENT : REST);
    assert_memory_equal(datagram + PASSTHROUGH_HEAD + 40, copy + at, inner - 40);
    at += inner - 40;
  }
  rig_sync(r, NULL);
}

static void nothing_more_comes(rig *r) {
  uint8_t datagram[2048];
  assert_int_equal(rig_receive(r, datagram, sizeof datagram, 30), -1);
}

static uint32_t count_events(rig *r, kdp_event_kind kind) {
  uint32_t count = 0;
  kdp_event event;
  while (kdp_worker_next_event(r->worker, &event))
    count += event.kind == kind;
  return count;
}

static void a_refused_segmented_send_concerns_its_destination(void **state, int error) {
  rig r;
  open_rig(&r, state);
  faults.segmented_send = error;
  rig_start(&r);
  one_batch(&r, 0);
  nothing_more_comes(&r);
  assert_int_equal(faults.segmented_tries, 1);
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
  assert_int_equal(event.value, KDP_FALLBACK_NO_UDP_SEGMENT);
  assert_true(kdp_address_equal(&event.address, &r.engine.path.remote)); /* its scope */
  assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
  one_batch(&r, SEGMENTS);
  assert_int_equal(faults.segmented_tries, 1); /* not tried again */
  assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0);
  faults.segmented_send = 0;
  rig_move_wire(&r);
  one_batch(&r, 2 * SEGMENTS);
  assert_int_equal(faults.segmented_tries, 2); /* others are sent to as before */
  assert_int_equal(rig_close(&r), KDP_OK);
}

static void eio_leaves_its_destination_unsegmented_and_loses_nothing(void **state) {
  a_refused_segmented_send_concerns_its_destination(state, EIO);
}
static void einval_leaves_its_destination_unsegmented_and_loses_nothing(void **state) {
  a_refused_segmented_send_concerns_its_destination(state, EINVAL);
}

static void a_segmented_send_that_several_destinations_refuse_is_given_up(void **state) {
  const int errors[] = {EIO, EINVAL};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    rig r;
    open_rig(&r, state);
    faults.segmented_send = errors[i];
    rig_start(&r);
    for (uint64_t destination = 0; destination < 5; destination++) {
      one_batch(&r, destination * SEGMENTS);
      assert_int_equal(faults.segmented_tries, destination < 3 ? destination + 1 : 3);
      bool off = (kdp_worker_active_fallbacks(r.worker) & KDP_FALLBACK_NO_UDP_SEGMENT) != 0;
      assert_int_equal(off, destination >= 2);
      rig_move_wire(&r);
    }
    kdp_event event;
    for (int told = 0; told < 3; told++) {
      assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
      assert_int_equal(event.address.family, told < 2 ? KDP_FAMILY_IPV4 : KDP_FAMILY_NONE);
    }
    assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0);
    assert_int_equal(rig_close(&r), KDP_OK);
  }
}

/* Two of many have a way that cannot do it; each other one takes it, so it is not the socket. */
static void destinations_that_take_it_keep_it_on(void **state) {
  rig r;
  open_rig(&r, state);
  rig_start(&r);
  for (uint64_t destination = 0; destination < 8; destination++) {
    faults.segmented_send = destination % 2 == 0 ? EIO : 0;
    one_batch(&r, destination * SEGMENTS);
    rig_move_wire(&r);
  }
  assert_int_equal(faults.segmented_tries, 8);
  assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
  assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 4);
  assert_int_equal(rig_close(&r), KDP_OK);
}

static void new_sockets_try_again(rig *r, kdp_worker *worker) {
  r->connected = false;
  assert_int_equal(kdp_worker_set_port(worker, 0), KDP_OK);
}

static void a_destination_that_refused_is_tried_again_by_new_sockets(void **state) {
  rig r;
  open_rig(&r, state);
  faults.segmented_send = EIO;
  rig_start(&r);
  one_batch(&r, 0);
  faults.segmented_send = 0;
  one_batch(&r, SEGMENTS);
  assert_int_equal(faults.segmented_tries, 1);
  rig_sync(&r, new_sockets_try_again);
  one_batch(&r, 2 * SEGMENTS);
  assert_int_equal(faults.segmented_tries, 2);
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* Kernels before 6.11 take 64 segments: that is no reason to do without. */
static void einval_above_64_segments_only_lowers_the_limit(void **state) {
  rig r;
  open_rig(&r, state);
  faults.segments_most = 64;
  rig_start(&r);
  static uint8_t frame[RIG_FRAME], datagram[2048];
  size_t size = rig_tcp_frame(&r, false, 100 * 500, 500, frame);
  rig_write_frame(&r, frame, size);
  for (uint64_t i = 0; i < 100; i++) {
    uint64_t number = 0;
    ssize_t got = rig_receive(&r, datagram, sizeof datagram, 2000);
    assert_true(got > 0);
    assert_true(passthrough_read(datagram, (size_t)got, &number));
    assert_int_equal(number, i);
  }
  rig_sync(&r, NULL);
  assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
  assert_int_equal(faults.segmented_tries, 3); /* 100 refused, then 64 and 36 */
  rig_close(&r);
}

static void emsgsize_leaves_that_destination_unsegmented(void **state) {
  rig r;
  open_rig(&r, state);
  faults.segmented_send = EMSGSIZE;
  faults.segment_largest = 1252;
  rig_start(&r);
  one_batch(&r, 0);
  nothing_more_comes(&r);
  assert_int_equal(faults.segmented_tries, 1);
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
  assert_int_equal(event.value, KDP_FALLBACK_NO_UDP_SEGMENT);
  assert_true(kdp_address_equal(&event.address, &r.engine.path.remote)); /* its scope */
  assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
  one_batch(&r, SEGMENTS);
  assert_int_equal(faults.segmented_tries, 1);
  assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0);
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* As older kernels refuse a segment above the MTU: with the error that stands for all else, too. */
static void einval_of_a_route_with_a_small_mtu_is_a_matter_of_that_destination(void **state) {
  int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || unshare(CLONE_NEWNET) != 0 || system("ip link set lo mtu 1400 up") != 0) {
    if (home >= 0) (void)setns(home, CLONE_NEWNET);
    skip();
  }
  rig r;
  open_rig(&r, state);
  faults.segmented_send = EINVAL;
  faults.segment_largest = 1372;
  rig_start(&r);
  one_batch(&r, 0);
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
  assert_true(kdp_address_equal(&event.address, &r.engine.path.remote));
  assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
  assert_int_equal(r.engine.path_mtu, 1400);
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(setns(home, CLONE_NEWNET), 0);
  close(home);
}

/* ---- Errors of sends that are no matter of offload ---- */

static void a_full_socket_makes_the_batch_wait(void **state, int error) {
  rig r;
  open_rig(&r, state);
  faults.send = error;
  faults.send_times = 5;
  rig_start(&r);
  one_batch(&r, 0);
  one_batch(&r, SEGMENTS);
  nothing_more_comes(&r);
  assert_int_equal(faults.send_faults, 5);
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.status[KDP_SEND_REFUSED], 0);
  rig_close(&r);
}

static void eagain_makes_the_batch_wait(void **state) {
  a_full_socket_makes_the_batch_wait(state, EAGAIN);
}
static void enobufs_makes_the_batch_wait(void **state) {
  a_full_socket_makes_the_batch_wait(state, ENOBUFS);
}

static uint16_t port_before;
static void note_port(rig *r, kdp_worker *worker) {
  (void)r;
  port_before = kdp_worker_port(worker);
}

static void an_unreachable_peer_costs_its_packets_only(void **state) {
  const int errors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EPERM};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    rig r;
    open_rig(&r, state);
    faults.send = errors[i];
    faults.send_times = 1;
    rig_start(&r);
    rig_sync(&r, note_port);
    static uint8_t frame[RIG_FRAME];
    rig_write_frame(&r, frame, rig_tcp_frame(&r, false, FULL * SEGMENT + REST, SEGMENT, frame));
    rig_sync(&r, NULL);
    one_batch(&r, SEGMENTS); /* the first is gone, the second comes */
    kdp_io_statistics statistics;
    kdp_worker_statistics(r.worker, &statistics);
    assert_int_equal(statistics.status[KDP_SEND_REFUSED], SEGMENTS);
    assert_int_equal(kdp_worker_port(r.worker), port_before);
    assert_int_equal(count_events(&r, KDP_EVENT_LINK_ERROR), 0);
    rig_close(&r);
  }
}

static void a_broken_socket_is_bound_anew(void **state) {
  const int errors[] = {EADDRNOTAVAIL, ENODEV, EBADF};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    rig r;
    open_rig(&r, state);
    faults.send = errors[i];
    faults.send_times = 1;
    rig_start(&r);
    one_batch(&r, 0);
    kdp_event event;
    assert_true(rig_event(&r, KDP_EVENT_LINK_ERROR, &event));
    assert_int_equal(event.value, errors[i]);
    assert_int_equal(event.status, KDP_OK);
    rig_close(&r);
  }
}

static void let_no_descriptor_be_made(bool none) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  static rlim_t usual;
  if (none) usual = limit.rlim_cur;
  limit.rlim_cur = none ? 3 : usual;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A fixed port has to be given up before it can be had again: when there is no socket to be had just then, there is one
   later. */
static void lost_sockets_are_made_again_as_soon_as_they_can_be(void **state) {
  rig r;
  open_rig(&r, state);
  uint16_t port = kdp_worker_port(r.worker);
  rig_start(&r);
  assert_int_equal(rig_close(&r), KDP_OK);
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state), .listen_port = port});
  faults.send = EBADF;
  faults.send_times = 1;
  rig_start(&r);
  rig_sync(&r, NULL);
  static uint8_t packet[600];
  let_no_descriptor_be_made(true);
  rig_write_packet(&r, packet, rig_udp_packet(&r, false, 0, 100, packet));
  kdp_event event;
  bool told = rig_event(&r, KDP_EVENT_LINK_ERROR, &event);
  let_no_descriptor_be_made(false);
  assert_true(told);
  assert_int_equal(event.status, KDP_SYSTEM);
  assert_true(rig_event(&r, KDP_EVENT_LINK_ERROR, &event)); /* though nothing is sent */
  assert_int_equal(event.status, KDP_OK);
  assert_int_equal(kdp_worker_port(r.worker), port);
  one_batch(&r, 1);
  rig_close(&r);
}

/* The address that a peer was heard on is gone: the packets leave from another, still segmented. */
static void a_source_address_that_is_gone_is_left_out(void **state) {
  const int errors[] = {EINVAL, EADDRNOTAVAIL};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    rig r;
    open_rig(&r, state);
    r.engine.path.local = (kdp_address){.family = KDP_FAMILY_IPV4, .bytes = {127, 0, 0, 9}};
    faults.source = errors[i];
    rig_start(&r);
    one_batch(&r, 0);
    one_batch(&r, SEGMENTS);
    assert_int_equal(kdp_worker_active_fallbacks(r.worker), 0);
    assert_int_equal(faults.send_faults, 1); /* remembered: not tried with every batch */
    rig_close(&r);
  }
}

/* EINVAL for segmentation, while there is a sticky source too: the source is not blamed for good. */
static void a_refused_segmented_send_keeps_its_source(void **state) {
  rig r;
  open_rig(&r, state);
  r.engine.path.local = (kdp_address){.family = KDP_FAMILY_IPV4, .bytes = {127, 0, 0, 1}};
  faults.segmented_send = EINVAL;
  rig_start(&r);
  one_batch(&r, 0);
  assert_int_equal(faults.segmented_tries, 2); /* with the source, and without it */
  faults.segmented_send = 0;
  faults.source = ECONNREFUSED; /* seen if the source is still used */
  static uint8_t frame[RIG_FRAME];
  rig_write_packet(&r, frame, rig_udp_packet(&r, false, 0, 100, frame));
  uint8_t datagram[2048];
  assert_int_equal(rig_receive(&r, datagram, sizeof datagram, 50), -1);
  assert_true(faults.send_faults > 2);
  rig_close(&r);
}

/* ---- One family's socket is full ---- */

static kdp_path to_ipv6(rig *r, int *fd) {
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  socklen_t size = sizeof six;
  *fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (*fd < 0 || bind(*fd, (struct sockaddr *)&six, size) != 0) {
    rig_close(r);
    skip();
  }
  assert_int_equal(getsockname(*fd, (struct sockaddr *)&six, &size), 0);
  kdp_path path = {0};
  kdp_socket_address name = {.ipv6 = six};
  kdp_socket_address_read(&name, &path.remote);
  return path;
}

static void use_scratch_path(rig *r, kdp_worker *worker) {
  (void)worker;
  r->engine.path = *(const kdp_path *)r->scratch;
}

/* The worker has read `frames` from the TUN, and the engine has had them. */
static bool has_taken(rig *r, uint64_t frames) {
  kdp_io_statistics statistics;
  for (int tries = 0; tries < 2000; tries++) {
    kdp_worker_statistics(r->worker, &statistics);
    if (statistics.tun_reads >= frames) {
      rig_sync(r, NULL);
      return true;
    }
    usleep(1000);
  }
  return false;
}

static void use_path(rig *r, kdp_path *path) {
  r->scratch = path;
  rig_sync(r, use_scratch_path);
}

static bool arrives(int fd, uint64_t number) {
  uint8_t datagram[2048];
  uint64_t got_number = 0;
  struct timeval limit = {.tv_sec = 2};
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  ssize_t got;
  do {
    got = recv(fd, datagram, sizeof datagram, 0);
  } while (got < 0 && errno == EINTR); /* an io_uring wakes the thread that made it */
  return got > 0 && passthrough_read(datagram, (size_t)got, &got_number) && got_number == number;
}

/* A full socket of one family: what is for the other leaves, whether it came before, together with it or later, and
   however much waits; in the end everything has come, in order. */
static void a_full_socket_does_not_hold_up_the_other_family(void **state) {
  enum { ROUNDS = 100 };
  rig r;
  open_rig(&r, state);
  int six;
  kdp_path ipv4 = r.engine.path, ipv6 = to_ipv6(&r, &six);
  faults.full_family = AF_INET;
  rig_start(&r);
  static uint8_t packet[600];
  uint64_t number = 0;
  for (int round = 0; round < ROUNDS; round++) {
    use_path(&r, &ipv4);
    rig_write_packet(&r, packet, rig_udp_packet(&r, false, 0, 100, packet));
    if (!has_taken(&r, number + 1)) fail_msg("packet %d by IPv4 was not taken", round);
    use_path(&r, &ipv6);
    rig_write_packet(&r, packet, rig_udp_packet(&r, false, 0, 100, packet));
    if (!arrives(six, number + 1)) fail_msg("packet %d by IPv6 did not come", round);
    number += 2;
  }
  assert_int_equal(rig_receive(&r, packet, sizeof packet, 0), -1);
  faults.full_family = 0;
  for (uint64_t round = 0; round < ROUNDS; round++)
    assert_true(arrives(r.wire, 2 * round));
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_int_equal(statistics.status[KDP_SEND_REFUSED], 0);
  close(six);
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* More destinations wait than a batch has paths, again and again: paths of what has left are used again. */
static void paths_of_what_has_left_are_free_for_others(void **state) {
  rig r;
  open_rig(&r, state);
  int six;
  kdp_path ipv6 = to_ipv6(&r, &six);
  faults.full_family = AF_INET;
  rig_start(&r);
  static uint8_t packet[600];
  rig_write_packet(&r, packet, rig_udp_packet(&r, false, 0, 100, packet));
  assert_true(has_taken(&r, 1));
  for (uint64_t i = 0; i < 3 * KDP_BATCH_PATHS; i++) {
    ipv6.local = (kdp_address){.family = KDP_FAMILY_IPV6, .bytes = {[15] = 1}, .port = (uint16_t)i};
    use_path(&r, &ipv6);
    rig_write_packet(&r, packet, rig_udp_packet(&r, false, 0, 100, packet));
    if (!arrives(six, i + 1)) fail_msg("packet %d by IPv6 did not come", (int)i);
  }
  faults.full_family = 0;
  assert_true(arrives(r.wire, 0));
  close(six);
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* ---- TUN writes ---- */

static void send_run(rig *r, uint8_t (*packet)[600], size_t size, uint32_t count, uint32_t first) {
  for (uint32_t i = 0; i < count; i++) {
    uint8_t datagram[1024];
    memcpy(datagram + PASSTHROUGH_HEAD, packet[i], size);
    passthrough_write(datagram, size, first + i);
    rig_send(r, datagram, size + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL);
  }
}

static uint32_t read_singles(rig *r, uint8_t (*packet)[600], size_t size, uint32_t count, uint32_t *joined) {
  static uint8_t frame[RIG_FRAME];
  uint32_t next = 0;
  while (next < count) {
    ssize_t got = rig_read_frame(r, frame, 2000);
    if (got < 0) return next;
    kdp_virtio header;
    memcpy(&header, frame, sizeof header);
    if (header.gso_type != KDP_VIRTIO_GSO_NONE) {
      for (size_t at = KDP_VIRTIO_SIZE + header.header_size; at < (size_t)got; at += size - header.header_size) {
        assert_memory_equal(frame + at, packet[next] + header.header_size, size - header.header_size);
        next++;
      }
      ++*joined;
      continue;
    }
    assert_int_equal(got, KDP_VIRTIO_SIZE + size);
    assert_memory_equal(frame + KDP_VIRTIO_SIZE, packet[next], size); /* headers as they were: not a joined one's */
    next++;
  }
  return next;
}

enum { RUN = 40, UDP_SIZE = 528 };

static void hold(rig *r, kdp_worker *worker) {
  /* While the worker is here, what the test has sent piles up and is received in one go. */
  (void)worker;
  static uint8_t(*packet)[600];
  packet = (uint8_t(*)[600])r->scratch;
  send_run(r, packet, UDP_SIZE, RUN, 0);
}

static void make_run(rig *r, uint8_t (*packet)[600]) {
  for (uint32_t i = 0; i < RUN; i++)
    rig_udp_packet(r, false, 0, UDP_SIZE, packet[i]);
  r->scratch = packet;
}

static void a_refused_joined_write_is_written_singly(void **state) {
  static uint8_t packet[RUN][600];
  rig r;
  open_rig(&r, state);
  make_run(&r, packet);
  faults.joined_write = EINVAL;
  faults.joined_type = KDP_VIRTIO_GSO_UDP_L4;
  rig_start(&r);
  uint32_t joined = 0;
  rig_sync(&r, hold);
  assert_int_equal(read_singles(&r, packet, UDP_SIZE, RUN, &joined), RUN);
  assert_int_equal(joined, 0);
  assert_int_equal(faults.write_faults, 1);
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
  assert_int_equal(event.value, KDP_FALLBACK_NO_USO);
  rig_sync(&r, hold);
  assert_int_equal(read_singles(&r, packet, UDP_SIZE, RUN, &joined), RUN);
  assert_int_equal(faults.write_faults, 1); /* not tried again */
  assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0);
  rig_close(&r);
}

static void a_full_tun_makes_the_packets_wait(void **state) {
  const int errors[] = {EAGAIN, ENOBUFS};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    static uint8_t packet[RUN][600];
    rig r;
    open_rig(&r, state);
    make_run(&r, packet);
    faults.write = errors[i];
    faults.write_times = 3;
    rig_start(&r);
    uint32_t joined = 0;
    rig_sync(&r, hold);
    assert_int_equal(read_singles(&r, packet, UDP_SIZE, RUN, &joined), RUN);
    assert_int_equal(faults.write_faults, 3);
    rig_sync(&r, NULL);
    kdp_io_statistics statistics;
    kdp_worker_statistics(r.worker, &statistics);
    assert_int_equal(statistics.status[KDP_INSIDE_REFUSED], 0);
    rig_close(&r);
  }
}

static void take_a_new_port(rig *r, kdp_worker *worker) {
  r->connected = false;
  assert_int_equal(kdp_worker_set_port(worker, 0), KDP_OK);
}

/* What waits in new sockets may not wake a worker that cannot hand it on. */
static void a_full_tun_and_new_sockets_do_not_make_the_worker_spin(void **state) {
  static uint8_t packet[RUN][600];
  rig r;
  open_rig(&r, state);
  make_run(&r, packet);
  faults.write = ENOBUFS;
  faults.write_times = 1 << 30;
  rig_start(&r);
  rig_sync(&r, hold);
  rig_sync(&r, NULL);
  rig_sync(&r, take_a_new_port);
  send_run(&r, packet, UDP_SIZE, RUN, RUN);
  kdp_io_statistics before, after;
  usleep(20000);
  kdp_worker_statistics(r.worker, &before);
  usleep(200000);
  kdp_worker_statistics(r.worker, &after);
  assert_true(after.rounds - before.rounds <= 600); /* it tries again each millisecond */
  rig_close(&r);
}

static void an_interface_that_is_down_costs_its_packets_only(void **state) {
  static uint8_t packet[RUN][600];
  rig r;
  open_rig(&r, state);
  make_run(&r, packet);
  faults.write = EIO;
  faults.write_times = 1000;
  rig_start(&r);
  rig_sync(&r, hold);
  for (int i = 0; i < 100; i++) {
    kdp_io_statistics statistics;
    kdp_worker_statistics(r.worker, &statistics);
    if (statistics.status[KDP_INSIDE_REFUSED] == RUN) break;
    assert_true(i < 99);
    rig_sync(&r, NULL);
    usleep(10000);
  }
  faults.write_times = 0;
  uint32_t joined = 0;
  rig_sync(&r, hold);
  assert_int_equal(read_singles(&r, packet, UDP_SIZE, RUN, &joined), RUN);
  rig_close(&r);
}

/* ---- io_uring ---- */

static void a_refused_io_uring_becomes_epoll_and_says_so_once(void **state) {
  (void)state;
  const int errors[] = {EPERM, ENOSYS};
  for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
    kernel_faults_clear();
    faults.uring = errors[i];
    rig r;
    rig_open(&r, false, (kdp_worker_config){.backend = KDP_BACKEND_URING});
    rig_start(&r);
    assert_int_equal(kdp_worker_backend(r.worker), KDP_BACKEND_EPOLL);
    kdp_event event;
    assert_true(rig_event(&r, KDP_EVENT_FALLBACK, &event));
    assert_int_equal(event.value, KDP_FALLBACK_NO_URING);
    one_batch(&r, 0);
    assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0);
    assert_true(kdp_worker_active_fallbacks(r.worker) & KDP_FALLBACK_NO_URING);
    rig_close(&r);
  }
}

static void io_uring_can_be_ruled_out(void **state) {
  (void)state;
  kernel_faults_clear();
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = KDP_BACKEND_URING, .fallbacks = KDP_FALLBACK_NO_URING});
  rig_start(&r);
  assert_int_equal(kdp_worker_backend(r.worker), KDP_BACKEND_EPOLL);
  one_batch(&r, 0);
  assert_int_equal(count_events(&r, KDP_EVENT_FALLBACK), 0); /* it was asked for */
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(eio_leaves_its_destination_unsegmented_and_loses_nothing),
      cmocka_unit_test(einval_leaves_its_destination_unsegmented_and_loses_nothing),
      cmocka_unit_test(a_segmented_send_that_several_destinations_refuse_is_given_up),
      cmocka_unit_test(destinations_that_take_it_keep_it_on),
      cmocka_unit_test(a_destination_that_refused_is_tried_again_by_new_sockets),
      cmocka_unit_test(einval_above_64_segments_only_lowers_the_limit),
      cmocka_unit_test(emsgsize_leaves_that_destination_unsegmented),
      cmocka_unit_test(einval_of_a_route_with_a_small_mtu_is_a_matter_of_that_destination),
      cmocka_unit_test(eagain_makes_the_batch_wait),
      cmocka_unit_test(enobufs_makes_the_batch_wait),
      cmocka_unit_test(an_unreachable_peer_costs_its_packets_only),
      cmocka_unit_test(a_broken_socket_is_bound_anew),
      cmocka_unit_test(lost_sockets_are_made_again_as_soon_as_they_can_be),
      cmocka_unit_test(a_source_address_that_is_gone_is_left_out),
      cmocka_unit_test(a_refused_segmented_send_keeps_its_source),
      cmocka_unit_test(a_full_socket_does_not_hold_up_the_other_family),
      cmocka_unit_test(paths_of_what_has_left_are_free_for_others),
      cmocka_unit_test(a_refused_joined_write_is_written_singly),
      cmocka_unit_test(a_full_tun_makes_the_packets_wait),
      cmocka_unit_test(a_full_tun_and_new_sockets_do_not_make_the_worker_spin),
      cmocka_unit_test(an_interface_that_is_down_costs_its_packets_only),
      cmocka_unit_test(a_refused_io_uring_becomes_epoll_and_says_so_once),
      cmocka_unit_test(io_uring_can_be_ruled_out),
  };
  return rig_run_with_each_backend("worker fallbacks", tests, sizeof tests / sizeof tests[0]);
}
