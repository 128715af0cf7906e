/* pps recv ADDRESS PORT SECONDS | pps send ADDRESS PORT SECONDS SIZE RATE [ADDRESSES]
   Small datagrams: `send` offers RATE a second (0: as many as it can) of SIZE bytes; `recv` counts those that arrive,
   from the first on until 300 ms without one, SECONDS at most. One JSON line each. Sending goes in plain datagrams, one
   skb each, as an application's would; with ADDRESSES they go in turn to that many, from ADDRESS upwards. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
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
  int sending = (count == 7 || count == 8) && strcmp(argument[1], "send") == 0;
  if (!sending && !(count == 5 && strcmp(argument[1], "recv") == 0)) {
    fprintf(stderr, "usage: pps recv ADDRESS PORT SECONDS | pps send ADDRESS PORT SECONDS SIZE RATE [ADDRESSES]\n");
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
    uint32_t addresses = count == 8 ? (uint32_t)atoi(argument[7]) : 1, first = ntohl(address.sin_addr.s_addr);
    static struct sockaddr_in destination[BATCH];
    if (size > MAX_SIZE || addresses < 1) return 1;
    if (addresses == 1 && connect(s, (void *)&address, sizeof address) != 0) return 1;
    prepare(message, vector, bytes, size);
    double begin = seconds_now();
    for (double now = begin; now - begin < duration; now = seconds_now()) {
      if (rate > 0 && (double)total > rate * (now - begin)) {
        nanosleep(&(struct timespec){0, 50000}, NULL);
        continue;
      }
      for (uint32_t i = 0; addresses > 1 && i < BATCH; i++) {
        destination[i] = address;
        destination[i].sin_addr.s_addr = htonl(first + (uint32_t)((uint64_t)total + i) % addresses);
        message[i].msg_hdr.msg_name = &destination[i];
        message[i].msg_hdr.msg_namelen = sizeof destination[i];
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
  double begin = seconds_now(), last = begin;
  patience = (struct timeval){0, 300000};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (; got > 0 && last - begin < duration; got = recvmmsg(s, message, BATCH, MSG_WAITFORONE, NULL)) {
    total += got;
    last = seconds_now();
  }
  printf("{\"received\": %ld, \"seconds\": %.3f}\n", total, last - begin);
  return 0;
}
