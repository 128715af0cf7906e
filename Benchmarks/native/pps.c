/* pps recv ADDRESS PORT SECONDS | pps send ADDRESS PORT SECONDS SIZE RATE
   Small datagrams: `send` offers RATE a second (0: as many as it can) of SIZE bytes; `recv` counts those that arrive,
   from the first on, for SECONDS. One JSON line each. Sending goes in plain datagrams, one skb each, as an
   application's would. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, MAX_SIZE = 2048 };

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void prepare(struct mmsghdr *message, struct iovec *vector, char (*bytes)[MAX_SIZE], size_t size) {
  for (int i = 0; i < BATCH; i++) {
    vector[i] = (struct iovec){bytes[i], size};
    message[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vector[i], .msg_iovlen = 1}};
  }
}

int main(int count, char **argument) {
  int sending = count == 7 && strcmp(argument[1], "send") == 0;
  if (!sending && !(count == 5 && strcmp(argument[1], "recv") == 0)) {
    fprintf(stderr, "usage: pps recv ADDRESS PORT SECONDS | pps send ADDRESS PORT SECONDS SIZE RATE\n");
    return 2;
  }
  static char bytes[BATCH][MAX_SIZE];
  struct mmsghdr message[BATCH];
  struct iovec vector[BATCH];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument[3]))};
  inet_pton(AF_INET, argument[2], &address.sin_addr);
  double duration = atof(argument[4]);
  int s = socket(AF_INET, SOCK_DGRAM, 0), buffer = 8 << 20;
  setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
  long total = 0;
  if (sending) {
    size_t size = (size_t)atoi(argument[5]);
    double rate = atof(argument[6]);
    if (size > MAX_SIZE || connect(s, (void *)&address, sizeof address) != 0) return 1;
    prepare(message, vector, bytes, size);
    double begin = seconds_now();
    for (double now = begin; now - begin < duration; now = seconds_now()) {
      if (rate > 0 && (double)total > rate * (now - begin)) {
        nanosleep(&(struct timespec){0, 50000}, NULL);
        continue;
      }
      int sent = sendmmsg(s, message, rate > 0 ? 16 : BATCH, 0);
      if (sent > 0) total += sent;
    }
    printf("{\"sent\": %ld, \"seconds\": %.3f}\n", total, seconds_now() - begin);
    return 0;
  }
  struct timeval patience = {5, 0};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (bind(s, (void *)&address, sizeof address) != 0) return 1;
  prepare(message, vector, bytes, MAX_SIZE);
  int got = recvmmsg(s, message, 1, MSG_WAITFORONE, NULL);
  double begin = seconds_now();
  patience = (struct timeval){0, 200000};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (got > 0) total += got;
  while (got >= 0 && seconds_now() - begin < duration) {
    int more = recvmmsg(s, message, BATCH, MSG_WAITFORONE, NULL);
    if (more > 0) total += more;
  }
  printf("{\"received\": %ld, \"seconds\": %.3f}\n", total, seconds_now() - begin);
  return 0;
}
