/* AEAD by direct calls of the libraries, and of our own cipher code, each in the shapes it offers: what our table is
   measured against. One key for all packets, set once; nonces are each job's. Not for use: the tags are compared, but
   nothing is wiped. */
#ifndef BENCH_RAW_AEAD_H
#define BENCH_RAW_AEAD_H

#include "kdp/aead.h"

typedef struct raw_aead raw_aead;

typedef struct raw_way {
  const char *name; /* "intel-ipsec-mb, jobs" */
  kdp_aead_algorithm algorithm;
  void (*seal)(raw_aead *, kdp_aead_job *job, uint32_t count);
  uint32_t (*open)(raw_aead *, kdp_aead_job *job, uint32_t count); /* returns how many opened */
  bool (*usable)(const raw_aead *);
} raw_way;

raw_aead *raw_aead_make(const uint8_t key[32]);
void raw_aead_end(raw_aead *raw);

enum { RAW_WAYS_MOST = 16 };
/* The ways that this machine has for an algorithm; returns how many. */
uint32_t raw_ways(const raw_aead *raw, kdp_aead_algorithm algorithm, const raw_way *way[RAW_WAYS_MOST]);

#endif
