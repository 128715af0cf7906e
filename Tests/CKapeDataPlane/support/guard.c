#include "support/guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static guard make(size_t size, int at_front) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t inner = (size + page - 1) / page * page;
  guard made = {.size = size, .map_size = inner + 2 * page};
  made.map = mmap(NULL, made.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made.map == MAP_FAILED) abort();
  uint8_t *start = (uint8_t *)made.map + page;
  if (inner > 0 && mprotect(start, inner, PROT_READ | PROT_WRITE) != 0) abort();
  made.bytes = at_front ? start : start + inner - size;
  return made;
}

guard guard_make(size_t size) {
  return make(size, 0);
}

guard guard_make_front(size_t size) {
  return make(size, 1);
}

guard guard_copy(const void *bytes, size_t size) {
  guard made = make(size, 0);
  if (size > 0) memcpy(made.bytes, bytes, size);
  return made;
}

void guard_free(guard *guarded) {
  munmap(guarded->map, guarded->map_size);
  *guarded = (guard){0};
}
