/* Known answers for AEAD, all in hexadecimal. */
#ifndef KDP_TEST_AEAD_VECTORS_H
#define KDP_TEST_AEAD_VECTORS_H
#include "kdp/aead.h"

typedef struct aead_vector {
  const char *name; /* its source, or what is special about it */
  kdp_aead_algorithm algorithm;
  const char *key, *nonce, *aad, *text, *sealed, *tag;
} aead_vector;

extern const aead_vector aead_vectors[];
extern const size_t aead_vector_count;
#endif
