/* Bytes from hexadecimal text, for known answers. */
#ifndef KDP_TEST_HEX_H
#define KDP_TEST_HEX_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Writes the bytes of `text` to `bytes` and returns how many; aborts on anything else in it. */
static inline size_t hex_read(const char *text, uint8_t *bytes) {
  size_t size = strlen(text) / 2;
  for (size_t i = 0; i < size; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0 || text[2 * size] != 0) abort();
    bytes[i] = (uint8_t)(high << 4 | low);
  }
  return size;
}

#endif
