/* rtt echo ADDRESS PORT | rtt probe ADDRESS PORT COUNT INTERVAL_US | rtt first ADDRESS PORT
   Round trips of small datagrams: `probe` sends COUNT of 64 bytes, one every INTERVAL_US, and prints the distribution
   in microseconds as one JSON line; those not back within a second are lost. `first` sends one a millisecond until
   the first is back, 10 s at most, and prints what CLOCK_REALTIME says then, in ns: a time since a start that another
   process knows. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int first_answer(int s) {
  uint64_t packet[8] = {0}, begin = now_ns();
  while (now_ns() - begin < 10000000000u) {
    struct pollfd readable = {s, POLLIN, 0};
    (void)!send(s, packet, sizeof packet, 0); /* refused until the interface has a route */
    if (poll(&readable, 1, 1) <= 0 || recv(s, packet, sizeof packet, MSG_DONTWAIT) <= 0) continue;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    printf("%lld%09ld\n", (long long)t.tv_sec, t.tv_nsec);
    return 0;
  }
  fprintf(stderr, "rtt: no answer within 10 s\n");
  return 1;
}

/* Enough points for a curve, close together where the tail is. */
static void print_distribution(const double *sample, long count) {
  printf(", \"distribution\": [");
  for (int i = 0; i <= 118; i++) {
    double q = i <= 99 ? i / 100.0 : i <= 108 ? 0.99 + (i - 99) / 1000.0 : 0.999 + (i - 108) / 10000.0;
    printf("%s[%.4f, %.1f]", i ? ", " : "", q, sample[(long)((double)(count - 1) * q)]);
  }
  printf("]");
}

int main(int count, char **argument) {
  int probing = count == 6 && strcmp(argument[1], "probe") == 0,
      first = count == 4 && strcmp(argument[1], "first") == 0;
  if (!probing && !first && !(count == 4 && strcmp(argument[1], "echo") == 0)) {
    fprintf(stderr,
            "usage: rtt echo ADDRESS PORT | rtt probe ADDRESS PORT COUNT INTERVAL_US | rtt first ADDRESS PORT\n");
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument[3]))};
  inet_pton(AF_INET, argument[2], &address.sin_addr);
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  uint64_t packet[8] = {0};
  if (first) {
    while (connect(s, (void *)&address, sizeof address) != 0) /* no route yet */
      nanosleep(&(struct timespec){0, 500000}, NULL);
    return first_answer(s);
  }
  if (!probing) {
    if (bind(s, (void *)&address, sizeof address) != 0) return 1;
    for (;;) {
      struct sockaddr_in from;
      socklen_t size = sizeof from;
      ssize_t got = recvfrom(s, packet, sizeof packet, 0, (void *)&from, &size);
      if (got > 0) sendto(s, packet, (size_t)got, 0, (void *)&from, size);
    }
  }
  if (connect(s, (void *)&address, sizeof address) != 0) return 1;
  long wanted = atol(argument[4]), sent = 0, back = 0;
  uint64_t interval = strtoull(argument[5], NULL, 10) * 1000, begin = now_ns(), last = 0;
  double *sample = calloc((size_t)wanted, sizeof *sample);
  if (!sample) return 1;
  while (back < wanted) {
    uint64_t now = now_ns(), next = begin + (uint64_t)sent * interval;
    if (sent < wanted && now >= next) {
      packet[0] = now;
      if (send(s, packet, sizeof packet, 0) > 0) last = now;
      sent++;
      continue;
    }
    if (sent == wanted && now > last + 1000000000u) break;
    uint64_t wait = sent < wanted ? next - now : 100000000u;
    struct pollfd readable = {s, POLLIN, 0};
    struct timespec patience = {(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
    if (ppoll(&readable, 1, &patience, NULL) > 0 && recv(s, packet, sizeof packet, MSG_DONTWAIT) > 0)
      sample[back++] = (double)(now_ns() - packet[0]) / 1000;
  }
  qsort(sample, (size_t)back, sizeof *sample, ascending);
  if (back == 0) return 1;
#define AT(q) sample[(long)((double)(back - 1) * (q))]
  printf("{\"sent\": %ld, \"back\": %ld, \"min\": %.1f, \"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"p999\": %.1f, "
         "\"max\": %.1f",
         sent, back, sample[0], AT(0.5), AT(0.9), AT(0.99), AT(0.999), sample[back - 1]);
  print_distribution(sample, back);
  printf("}\n");
  free(sample);
  return 0;
}
