/* What a name server answers: any bytes, and a right answer with bytes changed. */
#include "kdp/resolve.h"
#include "support/script.h"

static const char NAME[] = "a.bc";

static void read_as(const uint8_t *bytes, size_t size, kdp_family family, uint16_t identifier) {
  kdp_resolve_answer answer = {.response = -1};
  bool cut;
  bool is_answer = kdp_resolve_read(bytes, size, identifier, NAME, family, &answer, &cut);
  CHECK(answer.count <= KDP_RESOLVE_ADDRESSES_MAX);
  /* A record takes 15 bytes at least, with its four of address. */
  CHECK(answer.count <= size / 15);
  if (!is_answer) CHECK(answer.count == 0 && answer.response == -1 && !cut);
  if (is_answer) CHECK(answer.response >= 0 && answer.response <= 15);
  if (cut || answer.response > 0) CHECK(answer.count == 0);
  for (uint32_t i = 0; i < answer.count; i++) {
    CHECK(answer.address[i].family == (uint8_t)family && answer.address[i].port == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const uint8_t question[] = {0x12, 0x34, 0x81, 0x80, 0, 1, 0, 9, 0, 0, 0, 0, 1, 'a', 2, 'b', 'c', 0, 0};
  if (size < 2) return 0;
  kdp_family family = bytes[0] & 1 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4;
  read_as(bytes + 1, size - 1, family, 0x1234);
  /* The question is right, the rest is the input's. */
  size_t whole = sizeof question + 3 + size - 1;
  uint8_t *answer = malloc(whole);
  CHECK(answer != NULL);
  memcpy(answer, question, sizeof question);
  answer[sizeof question] = family == KDP_FAMILY_IPV6 ? 28 : 1;
  answer[sizeof question + 1] = 0;
  answer[sizeof question + 2] = 1;
  memcpy(answer + sizeof question + 3, bytes + 1, size - 1);
  read_as(answer, whole, family, 0x1234);
  free(answer);
  return 0;
}
