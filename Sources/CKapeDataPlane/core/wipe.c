#include "core/wipe.h"

#include <string.h>

void kdp_wipe(void *bytes, size_t size) {
  if (size == 0) return;
  memset(bytes, 0, size);
  /* The compiler must assume that the bytes are read here, so the memset stays. */
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

bool kdp_equal_secret(const void *a, const void *b, size_t size) {
  const volatile uint8_t *left = a, *right = b;
  uint8_t difference = 0;
  for (size_t i = 0; i < size; i++)
    difference |= (uint8_t)(left[i] ^ right[i]);
  return difference == 0;
}

bool kdp_is_zero(const void *bytes, size_t size) {
  const volatile uint8_t *byte = bytes;
  uint8_t any = 0;
  for (size_t i = 0; i < size; i++)
    any |= byte[i];
  return any == 0;
}
