/* Random batches, seeded: every provider against the plain reference and so against each other; in place and not; the
   tag before or after the text; any alignment; memory that ends at a page that traps; batches with forgeries in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/wipe.h"
#include "support/guard.h"
#include "support/providers.h"
#include "support/reference_aead.h"
#include "support/rng.h"

enum { LARGEST = 65535, TAG = KDP_AEAD_TAG_SIZE, KEYS = 3, SEEDS = 36 };

/* One packet: what goes in, and what must come out. `tag_first`: the tag lies before the text on the wire. */
typedef struct packet {
  uint32_t size, aad_size;
  int key;
  bool in_place, tag_first;
  uint8_t nonce[12], tag[TAG];
  guard aad, text, sealed; /* `sealed` without the tag */
  guard wire;              /* text and tag together, where the providers work */
} packet;

static uint8_t *wire_text(const packet *p) {
  return p->wire.bytes + (p->tag_first ? TAG : 0);
}

static uint8_t *wire_tag(const packet *p) {
  return p->wire.bytes + (p->tag_first ? 0 : p->size);
}

static uint32_t random_size(rng *r) {
  switch (rng_below(r, 16)) {
  case 0: return 0;
  case 1: return rng_one_in(r, 4) ? LARGEST : LARGEST - rng_below(r, 300);
  case 2: return rng_below(r, LARGEST + 1);
  case 3:
  case 4:
  case 5: return rng_below(r, 2000);
  case 6:
  case 7: return 16 * rng_below(r, 100);
  default: return rng_below(r, 300);
  }
}

static packet packet_make(rng *r, kdp_aead_algorithm algorithm, uint8_t key[KEYS][32], uint32_t size) {
  packet p = {.size = size,
              .aad_size = rng_below(r, 4) ? rng_below(r, 33) : rng_below(r, 700),
              .key = (int)rng_below(r, KEYS),
              .in_place = rng_below(r, 2),
              .tag_first = rng_below(r, 2)};
  rng_fill(r, p.nonce, sizeof p.nonce);
  p.aad = guard_make(p.aad_size);
  p.text = guard_make(p.size);
  p.sealed = guard_make(p.size);
  p.wire = guard_make(p.size + TAG);
  rng_fill(r, p.aad.bytes, p.aad_size);
  rng_fill(r, p.text.bytes, p.size);
  reference_seal(algorithm, key[p.key], p.nonce, p.aad.bytes, p.aad_size, p.text.bytes, p.size, p.sealed.bytes, p.tag);
  return p;
}

static void packet_free(packet *p) {
  guard_free(&p->aad);
  guard_free(&p->text);
  guard_free(&p->sealed);
  guard_free(&p->wire);
}

static void check_packet(const packet *p, const kdp_aead_job *job, const char *what, uint64_t seed) {
  if (job->status != KDP_OK || memcmp(wire_text(p), what[0] == 's' ? p->sealed.bytes : p->text.bytes, p->size) != 0 ||
      memcmp(wire_tag(p), p->tag, TAG) != 0)
    fail_msg("%s, seed %llu: %u bytes, aad %u, in place %d, tag first %d", what, (unsigned long long)seed, p->size,
             p->aad_size, p->in_place, p->tag_first);
}

static void run_batch(kdp_aead_worker *worker, kdp_aead_algorithm algorithm, const uint8_t *const expanded[KEYS],
                      packet *packets, uint32_t count, rng *r, uint64_t seed) {
  const kdp_aead *aead = kdp_aead_of(worker, algorithm);
  guard jobs = guard_make(count * sizeof(kdp_aead_job));
  kdp_aead_job *job = (void *)jobs.bytes;
  for (uint32_t i = 0; i < count; i++) {
    packet *p = &packets[i];
    memset(p->wire.bytes, 0x5a, p->wire.size);
    if (p->in_place) memcpy(wire_text(p), p->text.bytes, p->size);
    job[i] = (kdp_aead_job){.key = expanded[p->key],
                            .source = p->in_place ? wire_text(p) : p->text.bytes,
                            .destination = wire_text(p),
                            .tag = wire_tag(p),
                            .aad = p->aad_size != 0 ? p->aad.bytes : NULL,
                            .size = p->size,
                            .aad_size = p->aad_size,
                            .status = KDP_STATUS_COUNT};
    memcpy(job[i].nonce, p->nonce, sizeof p->nonce);
  }
  aead->seal(worker, job, count);
  for (uint32_t i = 0; i < count; i++)
    check_packet(&packets[i], &job[i], "seal", seed);

  for (uint32_t i = 0; i < count; i++) {
    packet *p = &packets[i];
    if (!p->in_place) memset(wire_text(p), 0x5a, p->size);
    job[i].source = p->in_place ? wire_text(p) : p->sealed.bytes;
    job[i].status = KDP_STATUS_COUNT;
  }
  assert_int_equal(aead->open(worker, job, count), count);
  for (uint32_t i = 0; i < count; i++)
    check_packet(&packets[i], &job[i], "open", seed);

  /* Once more with about a third forged: those and no others are refused, and are wiped. */
  uint64_t forged[4] = {0};
  uint32_t forged_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    packet *p = &packets[i];
    if (p->in_place) memcpy(wire_text(p), p->sealed.bytes, p->size);
    if (!rng_one_in(r, 3)) continue;
    forged[i / 64] |= UINT64_C(1) << i % 64;
    forged_count++;
    uint8_t bit = (uint8_t)(1 << rng_below(r, 8));
    if (p->in_place && p->size > 0 && rng_below(r, 2))
      wire_text(p)[rng_below(r, p->size)] ^= bit;
    else
      wire_tag(p)[rng_below(r, TAG)] ^= bit;
  }
  assert_int_equal(aead->open(worker, job, count), count - forged_count);
  for (uint32_t i = 0; i < count; i++) {
    if (!(forged[i / 64] >> i % 64 & 1)) {
      check_packet(&packets[i], &job[i], "open among forgeries", seed);
      continue;
    }
    assert_int_equal(job[i].status, KDP_AUTHENTICATION_FAILED);
    assert_true(kdp_is_zero(wire_text(&packets[i]), packets[i].size));
  }
  guard_free(&jobs);
}

static void random_batches_agree_with_the_reference_and_between_providers(void **state) {
  const providers *all = *state;
  static packet packets[200];
  static _Alignas(64) uint8_t room[KEYS][PROVIDERS_EXPANDED_SIZE];
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    rng r = {seed};
    kdp_aead_algorithm algorithm = (kdp_aead_algorithm)(seed % KDP_AEAD_ALGORITHM_COUNT);
    uint8_t key[KEYS][32];
    rng_fill(&r, key, sizeof key);
    uint32_t count = rng_one_in(&r, 8) ? 65 + rng_below(&r, 136) : 1 + rng_below(&r, KDP_AEAD_MAX_BATCH);
    /* Bulk is packets of one size. */
    uint32_t common = rng_one_in(&r, 3) ? rng_below(&r, 9000) : 0;
    for (uint32_t i = 0; i < count; i++)
      packets[i] = packet_make(&r, algorithm, key, common && !rng_one_in(&r, 30) ? common : random_size(&r));
    for (int p = 0; p < all->count; p++) {
      const uint8_t *expanded[KEYS];
      for (int k = 0; k < KEYS; k++)
        expanded[k] = providers_key(all->worker[p], algorithm, key[k], room[k]);
      run_batch(all->worker[p], algorithm, expanded, packets, count, &r, seed);
    }
    for (uint32_t i = 0; i < count; i++)
      packet_free(&packets[i]);
  }
}

/* Every size up to 600, every piece of memory exactly as long as it is said to be, at the trap's edge; so all
   alignments occur. */
static void nothing_is_read_or_written_past_its_end(void **state) {
  const providers *all = *state;
  static _Alignas(64) uint8_t room[PROVIDERS_EXPANDED_SIZE];
  rng r = {77};
  for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++) {
    kdp_aead_algorithm algorithm = (kdp_aead_algorithm)a;
    guard raw_key = guard_make(reference_key_size(algorithm));
    rng_fill(&r, raw_key.bytes, raw_key.size);
    for (uint32_t size = 0; size <= 600; size += size < 300 ? 1 : 7) {
      uint32_t aad_size = size % 50;
      guard aad = guard_make(aad_size), text = guard_make(size), tag = guard_make(TAG);
      guard want = guard_make(size), out = guard_make(size), out_front = guard_make_front(size);
      uint8_t want_tag[TAG], nonce[12];
      rng_fill(&r, aad.bytes, aad_size);
      rng_fill(&r, text.bytes, size);
      rng_fill(&r, nonce, sizeof nonce);
      reference_seal(algorithm, raw_key.bytes, nonce, aad.bytes, aad_size, text.bytes, size, want.bytes, want_tag);
      for (int p = 0; p < all->count; p++) {
        kdp_aead_worker *worker = all->worker[p];
        const kdp_aead *aead = kdp_aead_of(worker, algorithm);
        kdp_aead_job job = {.key = providers_key(worker, algorithm, raw_key.bytes, room),
                            .source = text.bytes,
                            .destination = out.bytes,
                            .tag = tag.bytes,
                            .aad = aad.bytes,
                            .size = size,
                            .aad_size = aad_size};
        memcpy(job.nonce, nonce, sizeof nonce);
        aead->seal(worker, &job, 1);
        assert_memory_equal(out.bytes, want.bytes, size);
        assert_memory_equal(tag.bytes, want_tag, TAG);
        job.source = out.bytes;
        job.destination = out_front.bytes;
        assert_int_equal(aead->open(worker, &job, 1), 1);
        assert_memory_equal(out_front.bytes, text.bytes, size);
        job.source = out_front.bytes;
        aead->seal(worker, &job, 1);
        assert_memory_equal(out_front.bytes, want.bytes, size);
      }
      guard_free(&aad);
      guard_free(&text);
      guard_free(&tag);
      guard_free(&want);
      guard_free(&out);
      guard_free(&out_front);
    }
    guard_free(&raw_key);
  }
}

static void empty_text_and_empty_additional_data_need_no_memory(void **state) {
  const providers *all = *state;
  static _Alignas(64) uint8_t room[PROVIDERS_EXPANDED_SIZE];
  const uint8_t key[32] = {9}, text[1] = {7};
  for (int p = 0; p < all->count; p++)
    for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++)
      for (uint32_t size = 0; size <= 1; size++)
        for (uint32_t aad_size = 0; aad_size <= 1; aad_size++) {
          uint8_t want[1], want_tag[TAG], tag[TAG], out[1], back[1];
          reference_seal((kdp_aead_algorithm)a, key, key, text, aad_size, text, size, want, want_tag);
          const kdp_aead *aead = kdp_aead_of(all->worker[p], (kdp_aead_algorithm)a);
          kdp_aead_job job = {.key = providers_key(all->worker[p], aead->algorithm, key, room),
                              .source = size ? text : NULL,
                              .destination = size ? out : NULL,
                              .tag = tag,
                              .aad = aad_size ? text : NULL,
                              .size = size,
                              .aad_size = aad_size};
          memcpy(job.nonce, key, sizeof job.nonce);
          aead->seal(all->worker[p], &job, 1);
          assert_int_equal(job.status, KDP_OK);
          assert_memory_equal(out, want, size);
          assert_memory_equal(tag, want_tag, TAG);
          job.source = size ? out : NULL;
          job.destination = size ? back : NULL;
          assert_int_equal(aead->open(all->worker[p], &job, 1), 1);
          assert_memory_equal(back, text, size);
          tag[15] ^= 1;
          assert_int_equal(aead->open(all->worker[p], &job, 1), 0);
          aead->seal(all->worker[p], &job, 0);
          assert_int_equal(aead->open(all->worker[p], &job, 0), 0);
        }
}

static void the_longest_additional_data_is_authenticated_to_its_last_byte(void **state) {
  const providers *all = *state;
  static _Alignas(64) uint8_t room[PROVIDERS_EXPANDED_SIZE];
  static uint8_t aad[LARGEST];
  rng r = {5};
  rng_fill(&r, aad, sizeof aad);
  for (int p = 0; p < all->count; p++)
    for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++) {
      uint8_t key[32] = {1}, text[20] = {2}, want[20], out[20], want_tag[TAG], tag[TAG];
      reference_seal((kdp_aead_algorithm)a, key, key, aad, sizeof aad, text, sizeof text, want, want_tag);
      const kdp_aead *aead = kdp_aead_of(all->worker[p], (kdp_aead_algorithm)a);
      kdp_aead_job job = {.key = providers_key(all->worker[p], aead->algorithm, key, room),
                          .source = text,
                          .destination = out,
                          .tag = tag,
                          .aad = aad,
                          .size = sizeof text,
                          .aad_size = sizeof aad};
      memcpy(job.nonce, key, sizeof job.nonce);
      aead->seal(all->worker[p], &job, 1);
      assert_memory_equal(out, want, sizeof want);
      assert_memory_equal(tag, want_tag, TAG);
      job.source = out;
      aad[sizeof aad - 1] ^= 1;
      assert_int_equal(aead->open(all->worker[p], &job, 1), 0);
      aad[sizeof aad - 1] ^= 1;
    }
}

static void sizes_out_of_range_are_refused_without_stopping_the_batch(void **state) {
  const providers *all = *state;
  static _Alignas(64) uint8_t room[PROVIDERS_EXPANDED_SIZE];
  for (int p = 0; p < all->count; p++)
    for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++) {
      const kdp_aead *aead = kdp_aead_of(all->worker[p], (kdp_aead_algorithm)a);
      uint8_t key[32] = {1}, text[4][8] = {{0}}, tag[4][TAG] = {{0}};
      kdp_aead_job job[4];
      for (int i = 0; i < 4; i++)
        job[i] = (kdp_aead_job){.key = providers_key(all->worker[p], aead->algorithm, key, room),
                                .source = text[i],
                                .destination = text[i],
                                .tag = tag[i],
                                .aad = text[i],
                                .size = 8};
      job[1].size = 65536;
      job[2].aad_size = UINT32_MAX;
      aead->seal(all->worker[p], job, 4);
      const kdp_status want[4] = {KDP_OK, KDP_INVALID_ARGUMENT, KDP_INVALID_ARGUMENT, KDP_OK};
      for (int i = 0; i < 4; i++)
        assert_int_equal(job[i].status, want[i]);
      assert_true(kdp_is_zero(text[1], 8) && kdp_is_zero(tag[1], TAG) && kdp_is_zero(text[2], 8));
      assert_int_equal(aead->open(all->worker[p], job, 4), 2);
      for (int i = 0; i < 4; i++)
        assert_int_equal(job[i].status, want[i]);
    }
}

static void masks_agree_for_every_batch_length(void **state) {
  const providers *all = *state;
  rng r = {11};
  for (int a = 0; a < KDP_AEAD_ALGORITHM_COUNT; a++)
    for (uint32_t count = 1; count <= KDP_AEAD_MAX_BATCH; count++) {
      guard key = guard_make(reference_key_size((kdp_aead_algorithm)a));
      guard samples = guard_make(count * 16u), masks = guard_make(count * 16u);
      rng_fill(&r, key.bytes, key.size);
      rng_fill(&r, samples.bytes, samples.size);
      const uint8_t *sample[KDP_AEAD_MAX_BATCH];
      for (uint32_t i = 0; i < count; i++)
        sample[i] = samples.bytes + 16 * i;
      for (int p = 0; p < all->count; p++) {
        kdp_aead_of(all->worker[p], (kdp_aead_algorithm)a)
            ->mask(all->worker[p], key.bytes, sample, (uint8_t(*)[16])masks.bytes, count);
        for (uint32_t i = 0; i < count; i++) {
          uint8_t want[16];
          reference_mask((kdp_aead_algorithm)a, key.bytes, sample[i], want);
          assert_memory_equal(masks.bytes + 16 * i, want, 16);
        }
      }
      guard_free(&key);
      guard_free(&samples);
      guard_free(&masks);
    }
}

static int open_all(void **state) {
  static providers all;
  all = providers_open();
  *state = &all;
  return 0;
}

static int close_all(void **state) {
  providers_close(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_batches_agree_with_the_reference_and_between_providers),
      cmocka_unit_test(nothing_is_read_or_written_past_its_end),
      cmocka_unit_test(empty_text_and_empty_additional_data_need_no_memory),
      cmocka_unit_test(the_longest_additional_data_is_authenticated_to_its_last_byte),
      cmocka_unit_test(sizes_out_of_range_are_refused_without_stopping_the_batch),
      cmocka_unit_test(masks_agree_for_every_batch_length),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
