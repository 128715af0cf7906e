/* Secrets: wiped so that the compiler cannot leave it out, compared in constant time. */
#ifndef KDP_CORE_WIPE_H
#define KDP_CORE_WIPE_H
#include "kdp/base.h"

void kdp_wipe(void *bytes, size_t size);
/* True when equal; time depends on `size` only. */
bool kdp_equal_secret(const void *a, const void *b, size_t size) KDP_MUST_USE;
bool kdp_is_zero(const void *bytes, size_t size) KDP_MUST_USE; /* constant time */
#endif
