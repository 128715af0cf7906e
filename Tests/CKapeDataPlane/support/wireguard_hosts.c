#define _GNU_SOURCE
#include "support/wireguard_hosts.h"

#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

kdp_address wireguard_hosts_address(bool inside, bool ipv6, uint8_t last_byte, uint16_t port) {
  kdp_address address = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = port};
  if (ipv6) {
    address.bytes[0] = 0xfd;
    address.bytes[1] = inside ? 0x77 : 0x99;
    address.bytes[15] = last_byte;
  } else {
    memcpy(address.bytes, (uint8_t[]){10, inside ? 77 : 99, 0, last_byte}, 4);
  }
  return address;
}

socklen_t wireguard_hosts_socket_address(bool inside, bool ipv6, uint8_t last_byte, uint16_t port,
                                         kdp_socket_address *address) {
  kdp_address plain = wireguard_hosts_address(inside, ipv6, last_byte, port);
  return kdp_socket_address_write(&plain, address);
}

typedef struct call {
  kdp_command command;
  wireguard_hosts *t;
  int host;
  wireguard_hosts_run *run;
  sem_t done;
} call;

static void run_call(kdp_command *command, kdp_worker *worker, kdp_engine *engine, kdp_out *out, kdp_now now,
                     bool stopping) {
  (void)worker, (void)engine;
  call *c = command->context;
  if (!stopping) c->run(c->t, c->host, out, now);
  sem_post(&c->done);
}

void wireguard_hosts_call(wireguard_hosts *t, int host, wireguard_hosts_run *run) {
  call c = {.command = {.run = run_call}, .t = t, .host = host, .run = run};
  c.command.context = &c;
  sem_init(&c.done, 0, 0);
  kdp_worker_submit(t->host[host].worker, &c.command);
  while (sem_wait(&c.done) != 0 && errno == EINTR)
    ;
  sem_destroy(&c.done);
}

static kdp_status status;
static uint8_t endpoint_byte;

static void configure(wireguard_hosts *t, int host, kdp_out *out, kdp_now now) {
  kdp_address four = wireguard_hosts_address(true, false, (uint8_t)(2 - host), 0);
  kdp_address six = wireguard_hosts_address(true, true, (uint8_t)(2 - host), 0);
  kdp_wireguard_prefix_change prefix[] = {{.prefix = {.family = four.family, .length = 32}},
                                          {.prefix = {.family = six.family, .length = 128}}};
  memcpy(prefix[0].prefix.bytes, four.bytes, 4);
  memcpy(prefix[1].prefix.bytes, six.bytes, 16);
  kdp_wireguard_peer_change peer = {
      .fields = KDP_WIREGUARD_PEER_SET_ENDPOINT,
      .endpoint = wireguard_hosts_address(false, t->underlay_ipv6, (uint8_t)(2 - host), WIREGUARD_HOSTS_PORT),
      .prefix = prefix,
      .prefix_count = 2};
  memcpy(peer.public_key, t->host[1 - host].public_key, KDP_KEY_SIZE);
  kdp_wireguard_change change = {.fields = KDP_WIREGUARD_SET_PRIVATE_KEY, .peer = &peer, .peer_count = 1};
  memcpy(change.private_key, t->host[host].private_key, KDP_KEY_SIZE);
  status = kdp_wireguard_apply(t->host[host].engine, &change, out, now);
}

static void move_peer(wireguard_hosts *t, int host, kdp_out *out, kdp_now now) {
  kdp_wireguard_peer_change peer = {
      .fields = KDP_WIREGUARD_PEER_SET_ENDPOINT | KDP_WIREGUARD_PEER_UPDATE_ONLY,
      .endpoint = wireguard_hosts_address(false, t->underlay_ipv6, endpoint_byte, WIREGUARD_HOSTS_PORT)};
  memcpy(peer.public_key, t->host[1 - host].public_key, KDP_KEY_SIZE);
  kdp_wireguard_change change = {.peer = &peer, .peer_count = 1};
  status = kdp_wireguard_apply(t->host[host].engine, &change, out, now);
}

void wireguard_hosts_move_peer(wireguard_hosts *t, int host, uint8_t last_byte) {
  endpoint_byte = last_byte;
  wireguard_hosts_call(t, host, move_peer);
  assert_int_equal(status, KDP_OK);
}

static void open_host(wireguard_hosts *t, int host, kdp_backend backend, uint32_t fallbacks) {
  wireguard_host *h = &t->host[host];
  on_host(&t->hosts, host);
  if (kdp_tun_open("kt0", fallbacks, &h->tun) != KDP_OK) fail_msg("TUN: %s", strerror(errno));
  on_host_run(
      &t->hosts, host,
      "ip link set kt0 mtu 1420 up && ip addr add 10.77.0.%d/24 dev kt0 && ip addr add fd77::%d/64 dev kt0 nodad",
      host + 1, host + 1);
  /* An address takes a moment to be of use, also without duplicate address detection. */
  on_host_run(&t->hosts, host,
              "while ip -6 addr show to fd00::/8 tentative | grep -q . || "
              "! ip -6 route show table local | grep -q 'fd77::%d dev kt0'; do sleep 0.02; done",
              host + 1);
  kdp_host memory = kdp_host_default();
  kdp_wireguard_config engine = {.fixed_port = true};
  kdp_limits limits = {0};
  assert_int_equal(kdp_wireguard_create(&engine, &limits, &memory, kdp_now_read(), &h->engine), KDP_OK);
  kdp_worker_config config = {.engine = h->engine,
                              .tun = &h->tun,
                              .backend = backend,
                              .fallbacks = fallbacks,
                              .listen_port = WIREGUARD_HOSTS_PORT};
  kdp_status made = kdp_worker_create(&config, &memory, &h->worker);
  if (made != KDP_OK) fail_msg("worker: %s, %s", kdp_status_describe(made)->name, strerror(errno));
  assert_int_equal(kdp_worker_start(h->worker), KDP_OK);
}

void wireguard_hosts_open(wireguard_hosts *t, kdp_backend backend, bool underlay_ipv6, uint32_t fallbacks) {
  memset(t, 0, sizeof *t);
  t->underlay_ipv6 = underlay_ipv6;
  two_hosts_open(&t->hosts);
  for (int host = 0; host < HOSTS; host++) {
    memset(t->host[host].private_key, 0x11 * (host + 1), KDP_KEY_SIZE);
    kdp_wireguard_public_key(t->host[host].private_key, t->host[host].public_key);
    open_host(t, host, backend, fallbacks);
  }
  for (int host = 0; host < HOSTS; host++) {
    wireguard_hosts_call(t, host, configure);
    assert_int_equal(status, KDP_OK);
  }
}

void wireguard_hosts_close(wireguard_hosts *t) {
  for (int host = 0; host < HOSTS; host++) {
    wireguard_host *h = &t->host[host];
    kdp_worker_stop(h->worker);
    assert_int_equal(kdp_worker_join(h->worker), KDP_OK);
    kdp_worker_destroy(h->worker);
    kdp_engine_destroy(h->engine);
    kdp_tun_close(&h->tun);
  }
  two_hosts_close(&t->hosts);
}

int wireguard_hosts_udp(wireguard_hosts *t, int host, bool ipv6, uint16_t port) {
  on_host(&t->hosts, host);
  int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
  assert_true(fd >= 0);
  struct timeval limit = {.tv_sec = 1};
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  if (ipv6) assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one), 0);
  if (port == 0) return fd;
  kdp_address any = {.family = ipv6 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4, .port = port};
  kdp_socket_address address;
  socklen_t size = kdp_socket_address_write(&any, &address);
  assert_int_equal(bind(fd, &address.any, size), 0);
  return fd;
}

void wireguard_hosts_pass(wireguard_hosts *t, int from, bool ipv6) {
  int receiver = wireguard_hosts_udp(t, 1 - from, ipv6, 7), sender = wireguard_hosts_udp(t, from, ipv6, 0);
  kdp_socket_address target;
  socklen_t size = wireguard_hosts_socket_address(true, ipv6, (uint8_t)(2 - from), 7, &target);
  uint8_t bytes[16];
  assert_int_equal(sendto(sender, "through it", 10, 0, &target.any, size), 10);
  ssize_t got = -1;
  for (int second = 0; got < 0 && second < 15; second++)
    got = recv(receiver, bytes, sizeof bytes, 0);
  if (got < 0) fail_msg("nothing came from host %d, IPv%d, over IPv%d", from, ipv6 ? 6 : 4, t->underlay_ipv6 ? 6 : 4);
  assert_int_equal(got, 10);
  assert_memory_equal(bytes, "through it", 10);
  close(sender);
  close(receiver);
}
