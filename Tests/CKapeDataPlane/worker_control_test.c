/* What other threads, and the engine, may ask of a worker. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/rig.h"

static void open_started(rig *r, void **state) {
  rig_open(r, false, (kdp_worker_config){.backend = rig_backend(state)});
  rig_start(r);
}

static void one_packet_passes(rig *r) {
  uint8_t packet[300], datagram[400];
  size_t size = rig_udp_packet(r, false, 0, sizeof packet, packet);
  rig_write_packet(r, packet, size);
  ssize_t got = rig_receive(r, datagram, sizeof datagram, 2000);
  assert_int_equal(got, size + PASSTHROUGH_HEAD + PASSTHROUGH_TAIL);
  assert_memory_equal(datagram + PASSTHROUGH_HEAD, packet, size);
}

/* ---- Commands ---- */

enum { SUBMITTERS = 4, EACH = 500 };

typedef struct counted {
  kdp_command command;
  unsigned submitter, number;
} counted;

static unsigned newest[SUBMITTERS], disorder, ran, stopped;

static void count_command(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                          bool stopping) {
  (void)worker, (void)engine, (void)out, (void)now;
  const counted *c = command->context;
  if (newest[c->submitter]++ != c->number) disorder++;
  ran++;
  stopped += stopping;
}

typedef struct submitter {
  kdp_worker *worker;
  counted command[EACH];
} submitter;

static void *submit_all(void *context) {
  submitter *s = context;
  for (unsigned i = 0; i < EACH; i++)
    kdp_worker_submit(s->worker, &s->command[i].command);
  return NULL;
}

static void prepare(submitter *all, kdp_worker *worker) {
  disorder = ran = stopped = 0;
  memset(newest, 0, sizeof newest);
  for (unsigned i = 0; i < SUBMITTERS; i++) {
    all[i].worker = worker;
    for (unsigned j = 0; j < EACH; j++) {
      counted *c = &all[i].command[j];
      *c = (counted){.command = {.run = count_command}, .submitter = i, .number = j};
      c->command.context = c;
    }
  }
}

static void commands_of_many_threads_run_once_and_in_order(void **state) {
  static submitter all[SUBMITTERS];
  rig r;
  open_started(&r, state);
  prepare(all, r.worker);
  pthread_t thread[SUBMITTERS];
  for (int i = 0; i < SUBMITTERS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, submit_all, &all[i]), 0);
  for (int i = 0; i < SUBMITTERS; i++)
    pthread_join(thread[i], NULL);
  rig_sync(&r, NULL); /* it is the last */
  assert_int_equal(rig_close(&r), KDP_OK);
  assert_int_equal(ran, SUBMITTERS * EACH);
  assert_int_equal(disorder, 0);
  assert_int_equal(stopped, 0);
}

static void commands_left_when_it_ends_are_told_so(void **state) {
  static submitter all[SUBMITTERS];
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  prepare(all, r.worker);
  submit_all(&all[0]);
  kdp_worker_stop(r.worker);
  rig_start(&r);
  assert_int_equal(kdp_worker_join(r.worker), KDP_OK);
  assert_int_equal(ran, EACH);
  assert_int_equal(stopped, EACH);
  submit_all(&all[1]); /* too late: run at once */
  assert_int_equal(ran, 2 * EACH);
  assert_int_equal(stopped, 2 * EACH);
  assert_int_equal(disorder, 0);
  kdp_worker_destroy(r.worker);
  close(r.tun.fd), close(r.frames), close(r.wire);
}

static void a_worker_that_never_ran_ends_its_commands(void **state) {
  static submitter all[SUBMITTERS];
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  prepare(all, r.worker);
  submit_all(&all[0]);
  kdp_worker_destroy(r.worker);
  assert_int_equal(stopped, EACH);
  close(r.tun.fd), close(r.frames), close(r.wire);
}

/* ---- The thread ---- */

static int niceness;

static void ask_niceness(rig *r, kdp_worker *worker) {
  (void)r, (void)worker;
  niceness = getpriority(PRIO_PROCESS, 0);
}

static void *start_with_another_niceness(void *context) {
  rig *r = context;
  int own = getpriority(PRIO_PROCESS, 0);
  /* Raised for the program, which Linux does thread by thread: this one keeps what it had. */
  if (setpriority(PRIO_PROCESS, (id_t)getpid(), own + 1) == 0) rig_start(r);
  return NULL;
}

static void it_is_as_nice_as_its_program(void **state) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state)});
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, start_with_another_niceness, &r), 0);
  pthread_join(thread, NULL);
  rig_sync(&r, ask_niceness);
  assert_int_equal(niceness, getpriority(PRIO_PROCESS, (id_t)getpid()));
  assert_int_equal(rig_close(&r), KDP_OK);
}

/* ---- Events ---- */

static void push_events(rig *r, kdp_worker *worker) {
  (void)worker;
  for (unsigned i = 0; i < 16; i++)
    r->engine.event[i] = (kdp_event){.kind = KDP_EVENT_CONNECTED, .value = 15 - i};
  r->engine.event_count = 16;
}

static void events_wake_their_reader_and_leave_nothing_behind(void **state) {
  rig r;
  open_started(&r, state);
  rig_sync(&r, push_events);
  for (unsigned i = 0; i < 16; i++) {
    kdp_event event;
    assert_true(rig_event(&r, KDP_EVENT_CONNECTED, &event));
    assert_int_equal(event.value, i);
    assert_int_equal(event.lost, 0);
  }
  /* The wake-up follows the events, so it may come when all are taken: the round that gave them must be over. */
  rig_sync(&r, NULL);
  kdp_event event;
  assert_false(kdp_worker_next_event(r.worker, &event));
  struct pollfd one = {.fd = kdp_worker_event_fd(r.worker), .events = POLLIN};
  assert_int_equal(poll(&one, 1, 20), 0);
  rig_close(&r);
}

/* ---- Sockets ---- */

static void the_port_can_be_changed_while_it_runs(void **state) {
  rig r;
  open_started(&r, state);
  one_packet_passes(&r);
  uint16_t first = kdp_worker_port(r.worker);
  assert_true(first != 0);
  assert_int_equal(rig_set_port(&r, 0), KDP_OK);
  uint16_t second = kdp_worker_port(r.worker);
  assert_true(second != 0 && second != first);
  one_packet_passes(&r);
  assert_int_equal(rig_set_port(&r, first), KDP_OK);
  assert_int_equal(kdp_worker_port(r.worker), first);
  assert_int_equal(rig_set_port(&r, first), KDP_OK); /* again the same: nothing to do */
  one_packet_passes(&r);
  rig_close(&r);
}

static void a_port_that_is_taken_leaves_the_old_one(void **state) {
  rig r;
  open_started(&r, state);
  int other = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  assert_int_equal(bind(other, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(other, (struct sockaddr *)&address, &size), 0);
  uint16_t before = kdp_worker_port(r.worker);
  assert_int_equal(rig_set_port(&r, ntohs(address.sin_port)), KDP_SYSTEM);
  assert_int_equal(errno, EADDRINUSE);
  assert_int_equal(kdp_worker_port(r.worker), before);
  one_packet_passes(&r);

  kdp_worker *second;
  kdp_host host = kdp_host_default();
  kdp_worker_config config = {
      .engine = &r.engine.engine, .tun = &r.tun, .backend = rig_backend(state), .listen_port = ntohs(address.sin_port)};
  assert_int_equal(kdp_worker_create(&config, &host, &second), KDP_SYSTEM);
  assert_int_equal(errno, EADDRINUSE);
  close(other);
  rig_close(&r);
}

static void both_families_have_the_same_port(void **state) {
  rig r;
  open_started(&r, state);
  uint16_t port = kdp_worker_port(r.worker);
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), one = 1;
    if (ipv6) assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one), 0);
    int bound = ipv6 ? bind(fd, (struct sockaddr *)&six, sizeof six) : bind(fd, (struct sockaddr *)&four, sizeof four);
    assert_int_equal(bound, -1);
    assert_int_equal(errno, EADDRINUSE);
    close(fd);
  }
  rig_close(&r);
}

static void one_family_can_be_left_out(void **state) {
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state), .no_ipv6 = true});
  rig_start(&r);
  one_packet_passes(&r);
  rig_close(&r);
  rig_open(&r, true, (kdp_worker_config){.backend = rig_backend(state), .no_ipv4 = true});
  rig_start(&r);
  one_packet_passes(&r);
  rig_close(&r);
}

static void an_engine_gets_another_port_when_it_asks(void **state) {
  rig r;
  open_started(&r, state);
  uint16_t before = kdp_worker_port(r.worker);
  rig_ask_for_rebind(&r);
  one_packet_passes(&r);
  assert_true(kdp_worker_port(r.worker) != before);
  uint16_t fixed = kdp_worker_port(r.worker);
  assert_int_equal(rig_set_port(&r, fixed), KDP_OK);
  rig_ask_for_rebind(&r);
  one_packet_passes(&r);
  assert_int_equal(kdp_worker_port(r.worker), fixed); /* configured: it stays */
  rig_close(&r);
}

static void the_mark_can_be_set(void **state) {
  if (geteuid() != 0) skip();
  rig r;
  open_started(&r, state);
  assert_int_equal(kdp_worker_fwmark(r.worker), 0);
  assert_int_equal(rig_set_mark(&r, 0x1234), KDP_OK);
  assert_int_equal(kdp_worker_fwmark(r.worker), 0x1234);
  one_packet_passes(&r);
  rig_close(&r);
}

static uint16_t port_of_given(int fd) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  return ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                            : ((struct sockaddr_in6 *)&address)->sin6_port);
}

static void sockets_that_are_given_are_used_and_kept(void **state) {
  int given[] = {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET6, SOCK_DGRAM, 0)};
  uint32_t mark = geteuid() == 0 ? 0x55 : 0;
  if (mark) assert_int_equal(setsockopt(given[1], SOL_SOCKET, SO_MARK, &mark, sizeof mark), 0);
  rig r;
  for (int ipv6 = 0; ipv6 < 2; ipv6++) {
    rig_open(&r, ipv6, (kdp_worker_config){.backend = rig_backend(state), .sockets = given});
    rig_start(&r);
    one_packet_passes(&r);
    uint16_t before[] = {port_of_given(given[0]), port_of_given(given[1])};
    assert_true(before[0] != 0 && before[1] != 0);
    assert_int_equal(kdp_worker_port(r.worker), before[0]);
    assert_int_equal(kdp_worker_fwmark(r.worker), mark);
    assert_int_equal(rig_set_up(&r, false), KDP_OK);
    assert_int_equal(rig_set_up(&r, true), KDP_OK);
    one_packet_passes(&r);
    for (int i = 0; i < 2; i++)
      assert_int_equal(port_of_given(given[i]), before[i]);

    rig_ask_for_rebind(&r);
    one_packet_passes(&r);
    for (int i = 0; i < 2; i++) {
      assert_true(port_of_given(given[i]) != 0 && port_of_given(given[i]) != before[i]);
      before[i] = port_of_given(given[i]);
    }
    assert_int_equal(kdp_worker_port(r.worker), before[0]);
    rig_close(&r);

    /* The next worker goes on where this one was. */
    rig_open(&r, ipv6, (kdp_worker_config){.backend = rig_backend(state), .sockets = given});
    rig_start(&r);
    one_packet_passes(&r);
    for (int i = 0; i < 2; i++)
      assert_int_equal(port_of_given(given[i]), before[i]);
    rig_close(&r);
  }
  close(given[0]);
  close(given[1]);
}

static void what_given_sockets_have_cannot_be_changed(void **state) {
  int given[] = {socket(AF_INET, SOCK_DGRAM, 0), -1};
  rig r;
  rig_open(&r, false, (kdp_worker_config){.backend = rig_backend(state), .sockets = given});
  rig_start(&r);
  one_packet_passes(&r);
  uint16_t before = kdp_worker_port(r.worker);
  assert_int_equal(rig_set_port(&r, 5555), KDP_UNSUPPORTED);
  assert_int_equal(rig_set_mark(&r, 0x1234), KDP_UNSUPPORTED);
  assert_int_equal(rig_set_port(&r, 0), KDP_OK);
  assert_int_equal(kdp_worker_port(r.worker), before);
  one_packet_passes(&r);

  kdp_worker *second;
  kdp_host host = kdp_host_default();
  kdp_worker_config config = {
      .engine = &r.engine.engine, .tun = &r.tun, .backend = rig_backend(state), .listen_port = 5555, .sockets = given};
  assert_int_equal(kdp_worker_create(&config, &host, &second), KDP_INVALID_ARGUMENT);
  rig_close(&r);
  close(given[0]);
}

static void down_closes_the_sockets_and_up_gives_the_port_back(void **state) {
  rig r;
  open_started(&r, state);
  one_packet_passes(&r);
  uint16_t port = kdp_worker_port(r.worker);
  assert_int_equal(rig_set_up(&r, false), KDP_OK);
  uint8_t packet[300], datagram[400];
  size_t size = rig_udp_packet(&r, false, 0, sizeof packet, packet);
  rig_write_packet(&r, packet, size);
  assert_int_equal(rig_receive(&r, datagram, sizeof datagram, 50), -1);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  int other = socket(AF_INET, SOCK_DGRAM, 0);
  assert_int_equal(bind(other, (struct sockaddr *)&address, sizeof address), 0); /* it is free */
  close(other);
  assert_int_equal(rig_set_up(&r, true), KDP_OK);
  assert_int_equal(kdp_worker_port(r.worker), port);
  assert_true(rig_receive(&r, datagram, sizeof datagram, 2000) > 0); /* what had waited in the TUN */
  one_packet_passes(&r);
  rig_close(&r);
  assert_int_equal(r.engine.links_up, 2);
  assert_int_equal(r.engine.links_down, 1);
}

/* ---- Time, end ---- */

static void arm_engine(rig *r, kdp_worker *worker) {
  (void)worker;
  r->engine.deadline = kdp_now_read().boot + 50 * KDP_MILLISECOND;
}
static void arm_engine_sooner(rig *r, kdp_worker *worker) {
  (void)worker;
  r->engine.deadline = kdp_now_read().boot + 5 * KDP_MILLISECOND;
}

static void an_engine_is_called_at_its_deadline(void **state) {
  rig r;
  open_started(&r, state);
  for (uint64_t i = 0; i < 3; i++) {
    rig_sync(&r, arm_engine);
    if (i == 1) rig_sync(&r, arm_engine_sooner);
    for (int tries = 0; r.engine.ticks <= i && tries < 1000; tries++)
      usleep(10000); /* nothing here wakes the worker */
  }
  kdp_io_statistics statistics;
  kdp_worker_statistics(r.worker, &statistics);
  assert_true(statistics.waits < 30); /* it slept in between */
  rig_close(&r);
  assert_int_equal(r.engine.ticks, 3);
  assert_int_equal(r.engine.damaged, 0);
}

static void an_inside_that_ends_ends_the_run(void **state) {
  rig r;
  open_started(&r, state);
  one_packet_passes(&r);
  close(r.frames);
  r.frames = -1;
  kdp_event event;
  assert_true(rig_event(&r, KDP_EVENT_INSIDE_GONE, &event));
  assert_int_equal(rig_close(&r), KDP_CLOSED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(commands_of_many_threads_run_once_and_in_order),
      cmocka_unit_test(commands_left_when_it_ends_are_told_so),
      cmocka_unit_test(a_worker_that_never_ran_ends_its_commands),
      cmocka_unit_test(it_is_as_nice_as_its_program),
      cmocka_unit_test(events_wake_their_reader_and_leave_nothing_behind),
      cmocka_unit_test(the_port_can_be_changed_while_it_runs),
      cmocka_unit_test(a_port_that_is_taken_leaves_the_old_one),
      cmocka_unit_test(both_families_have_the_same_port),
      cmocka_unit_test(one_family_can_be_left_out),
      cmocka_unit_test(an_engine_gets_another_port_when_it_asks),
      cmocka_unit_test(the_mark_can_be_set),
      cmocka_unit_test(sockets_that_are_given_are_used_and_kept),
      cmocka_unit_test(what_given_sockets_have_cannot_be_changed),
      cmocka_unit_test(down_closes_the_sockets_and_up_gives_the_port_back),
      cmocka_unit_test(an_engine_is_called_at_its_deadline),
      cmocka_unit_test(an_inside_that_ends_ends_the_run),
  };
  return rig_run_with_each_backend("worker control", tests, sizeof tests / sizeof tests[0]);
}
