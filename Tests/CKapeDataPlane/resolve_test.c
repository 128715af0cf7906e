/* Looking up names at a server of the test's own, on loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "kdp/resolve.h"

/* ---- A name server with one name ---- */

typedef enum manner { ANSWERS, CUTS, REFUSES, NO_SUCH_NAME, NO_IPV6, LIES, SILENT } manner;

typedef struct server {
  manner manner;
  int datagrams, streams;
  uint16_t port;
  int asked, asked_by_stream;
  pthread_t thread;
} server;

/* The response to a question with one address, 192.0.2.7 or 2001:db8::7, behind an alias. */
static size_t respond(const uint8_t *question, size_t size, manner manner, bool stream, uint8_t *response) {
  size_t end = 12;
  while (end < size && question[end])
    end += question[end] + 1u;
  end += 5;
  if (end > size) return 0;
  uint16_t type = kdp_load_be16(question + end - 4);
  memcpy(response, question, end);
  kdp_store_be16(response + 2, 0x8180);
  kdp_store_be32(response + 8, 0);
  if (manner == CUTS && !stream) kdp_store_be16(response + 2, 0x8380);
  if (manner == REFUSES) kdp_store_be16(response + 2, 0x8185);
  if (manner == NO_SUCH_NAME) kdp_store_be16(response + 2, 0x8183);
  if (manner == LIES) response[12 + 1] ^= 1; /* another name */
  bool empty =
      (manner == CUTS && !stream) || manner == REFUSES || manner == NO_SUCH_NAME || (manner == NO_IPV6 && type == 28);
  kdp_store_be16(response + 6, empty ? 0 : 2);
  if (empty) return end;
  kdp_writer writer = kdp_writer_make(response + end, 200);
  static const uint8_t alias[] = {0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 4, 1, 'x', 0xc0, 12};
  static const uint8_t ipv4[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 7};
  static const uint8_t ipv6[] = {0xc0, 12,   0, 28, 0, 1, 0, 0, 0, 9, 0, 16, 0x20, 1,
                                 0xd,  0xb8, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0,    7};
  kdp_write_copy(&writer, alias, sizeof alias);
  if (type == 1) kdp_write_copy(&writer, ipv4, sizeof ipv4);
  if (type == 28) kdp_write_copy(&writer, ipv6, sizeof ipv6);
  return (size_t)(writer.at - response);
}

static void *serve_datagrams(void *context) {
  server *self = context;
  uint8_t question[600], response[600];
  for (;;) {
    struct sockaddr_in from;
    socklen_t from_size = sizeof from;
    ssize_t size = recvfrom(self->datagrams, question, sizeof question, 0, (struct sockaddr *)&from, &from_size);
    if (size < 12) return NULL; /* the test's word to end */
    self->asked++;
    if (self->manner == SILENT) continue;
    size_t response_size = respond(question, (size_t)size, self->manner, false, response);
    sendto(self->datagrams, response, response_size, 0, (struct sockaddr *)&from, from_size);
    if (self->manner != CUTS) continue;
    int stream = accept(self->streams, NULL, NULL);
    uint8_t length[2];
    if (recv(stream, length, 2, MSG_WAITALL) == 2 &&
        recv(stream, question, kdp_load_be16(length), MSG_WAITALL) == kdp_load_be16(length)) {
      self->asked_by_stream++;
      response_size = respond(question, kdp_load_be16(length), self->manner, true, response);
      kdp_store_be16(length, (uint16_t)response_size);
      send(stream, length, 2, MSG_NOSIGNAL);
      send(stream, response, response_size, MSG_NOSIGNAL);
    }
    close(stream);
  }
}

/* A port of the kernel's choice for datagrams may be another program's for streams. */
static bool bind_both(server *self) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  self->datagrams = socket(AF_INET, SOCK_DGRAM, 0);
  self->streams = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(self->datagrams, (struct sockaddr *)&address, sizeof address) == 0 &&
      getsockname(self->datagrams, (struct sockaddr *)&address, &size) == 0 &&
      bind(self->streams, (struct sockaddr *)&address, sizeof address) == 0) {
    self->port = ntohs(address.sin_port);
    return true;
  }
  close(self->datagrams);
  close(self->streams);
  return false;
}

static kdp_address begin(server *self, manner manner) {
  *self = (server){.manner = manner};
  bool bound = false;
  for (int i = 0; i < 100 && !bound; i++)
    bound = bind_both(self);
  assert_true(bound);
  assert_int_equal(listen(self->streams, 4), 0);
  assert_int_equal(pthread_create(&self->thread, NULL, serve_datagrams, self), 0);
  return (kdp_address){.family = KDP_FAMILY_IPV4, .port = self->port, .bytes = {127, 0, 0, 1}};
}

static void end(server *self) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = {
      .sin_family = AF_INET, .sin_port = htons(self->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to);
  pthread_join(self->thread, NULL);
  close(fd);
  close(self->datagrams);
  close(self->streams);
}

static kdp_status look_up(server *self, manner manner, kdp_resolve_answer *answer) {
  kdp_address address = begin(self, manner);
  kdp_resolve_config config = {.server = &address, .server_count = 1, .timeout_ms = 150};
  kdp_status status = kdp_resolve("vpn.example.net", &config, answer);
  end(self);
  return status;
}

static void addresses_of_both_families_are_found_behind_an_alias(void **state) {
  (void)state;
  server self;
  kdp_resolve_answer answer;
  assert_int_equal(look_up(&self, ANSWERS, &answer), KDP_OK);
  assert_int_equal(answer.count, 2);
  assert_int_equal(answer.address[0].family, KDP_FAMILY_IPV4);
  assert_memory_equal(answer.address[0].bytes, ((uint8_t[]){192, 0, 2, 7}), 4);
  assert_int_equal(answer.address[1].family, KDP_FAMILY_IPV6);
  assert_int_equal(answer.address[1].bytes[15], 7);
  assert_int_equal(self.asked, 2);
}

static void a_cut_answer_is_fetched_over_a_stream(void **state) {
  (void)state;
  server self;
  kdp_resolve_answer answer;
  assert_int_equal(look_up(&self, CUTS, &answer), KDP_OK);
  assert_int_equal(answer.count, 2);
  assert_int_equal(self.asked_by_stream, 2);
}

static void a_name_without_one_family_is_found_by_the_other(void **state) {
  (void)state;
  server self;
  kdp_resolve_answer answer;
  assert_int_equal(look_up(&self, NO_IPV6, &answer), KDP_OK);
  assert_int_equal(answer.count, 1);
}

static void a_name_that_does_not_exist_is_asked_for_once(void **state) {
  (void)state;
  server self;
  kdp_resolve_answer answer;
  assert_int_equal(look_up(&self, NO_SUCH_NAME, &answer), KDP_NOT_FOUND);
  assert_int_equal(self.asked, 1);
}

static void refusals_lies_and_silence_are_failures_to_ask(void **state) {
  (void)state;
  static const manner manners[] = {REFUSES, LIES, SILENT};
  for (int i = 0; i < 3; i++) {
    server self;
    kdp_resolve_answer answer;
    assert_int_equal(look_up(&self, manners[i], &answer), KDP_SYSTEM);
    assert_int_equal(answer.count, 0);
    assert_int_equal(self.asked, 4); /* two rounds, two families */
    if (manners[i] == REFUSES) assert_int_equal(answer.response, 5);
    if (manners[i] != REFUSES) assert_int_equal(answer.code, ETIMEDOUT);
  }
}

static void the_next_server_is_asked_when_one_is_dead(void **state) {
  (void)state;
  server self;
  kdp_resolve_answer answer;
  kdp_address servers[2] = {{.family = KDP_FAMILY_IPV4, .port = 9, .bytes = {127, 0, 0, 1}}};
  servers[1] = begin(&self, ANSWERS);
  kdp_resolve_config config = {.server = servers, .server_count = 2, .timeout_ms = 150};
  assert_int_equal(kdp_resolve("vpn.example.net.", &config, &answer), KDP_OK);
  assert_int_equal(answer.count, 2);
  end(&self);
}

static void any_bytes_are_survived(void **state) {
  (void)state;
  uint8_t question[] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 2, 'b', 'c', 0, 0, 1, 0, 1};
  uint8_t whole[600], bytes[600];
  size_t size = respond(question, sizeof question, ANSWERS, false, whole);
  uint64_t seed = 7;
  for (int round = 0; round < 50000; round++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    size_t cut = round % 3 ? size : (seed >> 40) % (size + 1);
    memcpy(bytes, whole, cut);
    for (int i = 0; cut && i < round % 4; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      bytes[(seed >> 33) % cut] = (uint8_t)(seed >> 50);
    }
    uint8_t *exact = test_malloc(cut + 1); /* so that the sanitizer sees a step too far */
    memcpy(exact + 1, bytes, cut);
    kdp_resolve_answer answer = {0};
    bool is_cut;
    (void)kdp_resolve_read(exact + 1, cut, 0x1234, "a.bc", KDP_FAMILY_IPV4, &answer, &is_cut);
    assert_true(answer.count <= 2); /* there are two records */
    test_free(exact);
  }
}

static void what_cannot_be_asked_is_refused(void **state) {
  (void)state;
  kdp_resolve_answer answer;
  kdp_address server = {.family = KDP_FAMILY_IPV4, .port = 9, .bytes = {127, 0, 0, 1}};
  kdp_resolve_config config = {.server = &server, .server_count = 0};
  assert_int_equal(kdp_resolve("a.example", &config, &answer), KDP_INVALID_ARGUMENT);
  config.server_count = 1;
  char name[400];
  memset(name, 'a', sizeof name);
  name[sizeof name - 1] = 0;
  assert_int_equal(kdp_resolve(name, &config, &answer), KDP_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_of_both_families_are_found_behind_an_alias),
      cmocka_unit_test(a_cut_answer_is_fetched_over_a_stream),
      cmocka_unit_test(a_name_without_one_family_is_found_by_the_other),
      cmocka_unit_test(a_name_that_does_not_exist_is_asked_for_once),
      cmocka_unit_test(refusals_lies_and_silence_are_failures_to_ask),
      cmocka_unit_test(the_next_server_is_asked_when_one_is_dead),
      cmocka_unit_test(any_bytes_are_survived),
      cmocka_unit_test(what_cannot_be_asked_is_refused),
  };
  return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
