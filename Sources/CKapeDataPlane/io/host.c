#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "kdp/base.h"

static void *allocate(void *context, size_t size) {
  (void)context;
  return malloc(size);
}

static void release(void *context, void *memory, size_t size) {
  (void)context;
  (void)size;
  free(memory);
}

static void fill_random(void *context, void *bytes, size_t size) {
  (void)context;
  uint8_t *at = bytes;
  while (size > 0) {
    ssize_t got = getrandom(at, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      abort(); /* no entropy source: nothing secret can be made on this system */
    }
    at += got;
    size -= (size_t)got;
  }
}

kdp_host kdp_host_default(void) {
  return (kdp_host){.allocate = allocate, .release = release, .random = fill_random};
}
