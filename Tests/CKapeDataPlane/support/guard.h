/* Memory between two pages that trap: a read or write one byte past either end of the whole, or past the end of
   `bytes`, ends the test. */
#ifndef KDP_TEST_GUARD_H
#define KDP_TEST_GUARD_H
#include <stddef.h>
#include <stdint.h>

typedef struct guard {
  uint8_t *bytes; /* `size` bytes, the last of them just before the trap */
  size_t size;
  void *map;
  size_t map_size;
} guard;

/* Zeroed. Aborts when the system has no memory. */
guard guard_make(size_t size);
/* The same, but it is the first byte that has the trap before it. */
guard guard_make_front(size_t size);
/* A copy of `bytes` that ends at the trap. */
guard guard_copy(const void *bytes, size_t size);
void guard_free(guard *guarded);
#endif
