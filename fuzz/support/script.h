/* An input read as a script: numbers and bytes one after the other, zeros behind its end. And what a harness does when
   it finds something wrong. */
#ifndef KDP_FUZZ_SCRIPT_H
#define KDP_FUZZ_SCRIPT_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libFuzzer and replay.c call. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

typedef struct script {
  const uint8_t *at, *end;
} script;

static inline size_t script_left(const script *s) {
  return (size_t)(s->end - s->at);
}
/* Up to `size` bytes in place; how many there were goes to `got`. */
static inline const uint8_t *script_bytes(script *s, size_t size, size_t *got) {
  const uint8_t *bytes = s->at;
  *got = size < script_left(s) ? size : script_left(s);
  s->at += *got;
  return bytes;
}
static inline void script_copy(script *s, void *to, size_t size) {
  size_t got;
  const uint8_t *bytes = script_bytes(s, size, &got);
  memset(to, 0, size);
  if (got > 0) memcpy(to, bytes, got);
}
static inline uint8_t script_u8(script *s) {
  return s->at < s->end ? *s->at++ : 0;
}
static inline uint16_t script_u16(script *s) {
  uint16_t low = script_u8(s);
  return (uint16_t)(low | script_u8(s) << 8);
}
static inline uint32_t script_u32(script *s) {
  uint32_t low = script_u16(s);
  return low | (uint32_t)script_u16(s) << 16;
}
static inline uint64_t script_u64(script *s) {
  uint64_t low = script_u32(s);
  return low | (uint64_t)script_u32(s) << 32;
}

/* Memory of exactly that size, so that the sanitizer sees a step past its end. */
static inline uint8_t *exact_copy(const void *bytes, size_t size) {
  uint8_t *copy = malloc(size);
  CHECK(copy != NULL || size == 0);
  if (size > 0) memcpy(copy, bytes, size);
  return copy;
}
#endif
