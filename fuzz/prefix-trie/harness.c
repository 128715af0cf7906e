/* The prefix tries against a plain list: insertions that move prefixes between owners, removals, finds, listings, and
   memory that runs out while it is reserved. */
#include "net/prefix_trie.h"
#include "support/script.h"

enum { OWNERS = 5, MOST = 300 };

typedef struct entry {
  kdp_prefix prefix;
  int owner;
  uint64_t order; /* of insertion */
} entry;

typedef struct world {
  kdp_trie *trie;
  kdp_trie_owner owner[OWNERS];
  entry entries[MOST];
  uint32_t count;
  uint64_t order;
  long live;
  int refuse_after; /* allocations that succeed still; -1: all */
} world;

static void *allocate(void *context, size_t size) {
  world *w = context;
  if (w->refuse_after == 0) return NULL;
  if (w->refuse_after > 0) w->refuse_after--;
  w->live += (long)size;
  return malloc(size);
}

static void release(void *context, void *memory, size_t size) {
  ((world *)context)->live -= (long)size;
  free(memory);
}

static bool covers(const kdp_prefix *prefix, const uint8_t *address) {
  for (int bit = 0; bit < prefix->length; bit++)
    if ((prefix->bytes[bit / 8] ^ address[bit / 8]) >> (7 - bit % 8) & 1) return false;
  return true;
}

static entry *exact(world *w, const kdp_prefix *prefix) {
  for (uint32_t i = 0; i < w->count; i++)
    if (memcmp(&w->entries[i].prefix, prefix, sizeof *prefix) == 0) return &w->entries[i];
  return NULL;
}

/* Few distinct bits, so that prefixes nest and meet. */
static kdp_prefix read_prefix(script *s) {
  kdp_prefix prefix = {.family = script_u8(s) % 2 ? KDP_FAMILY_IPV6 : KDP_FAMILY_IPV4};
  int most = prefix.family == KDP_FAMILY_IPV4 ? 32 : 128;
  uint8_t form = script_u8(s);
  prefix.length = (uint8_t)(script_u8(s) % (most + 1));
  for (int i = 0; i < most / 8; i++)
    prefix.bytes[i] = form % 3 == 0 ? script_u8(s) : form % 3 == 1 ? (uint8_t)(form & 0x80 ? 0xff : 0) : form;
  if (form % 3 == 1) prefix.bytes[script_u8(s) % (most / 8)] ^= script_u8(s);
  CHECK(kdp_prefix_normalise(&prefix));
  return prefix;
}

static void insert(world *w, script *s) {
  kdp_prefix prefix = read_prefix(s);
  int owner = script_u8(s) % OWNERS;
  if (w->count == MOST) return;
  w->refuse_after = script_u8(s) % 8 == 0 ? script_u8(s) % 3 : -1;
  kdp_status status = kdp_trie_reserve(w->trie, 1 + script_u8(s) % 4);
  w->refuse_after = -1;
  if (status != KDP_OK) {
    CHECK(status == KDP_NO_MEMORY);
    return;
  }
  w->refuse_after = 0; /* a promised insertion needs nothing */
  kdp_trie_owner *before = kdp_trie_insert(w->trie, &prefix, &w->owner[owner]);
  w->refuse_after = -1;
  entry *known = exact(w, &prefix);
  if (known != NULL && known->owner == owner) {
    CHECK(before == NULL);
    return;
  }
  CHECK(before == (known != NULL ? &w->owner[known->owner] : NULL));
  if (known == NULL) known = &w->entries[w->count++];
  *known = (entry){prefix, owner, ++w->order};
}

static void forget(world *w, entry *known) {
  *known = w->entries[--w->count];
}

static void remove_one(world *w, script *s) {
  kdp_prefix prefix = read_prefix(s);
  if (w->count > 0 && script_u8(s) % 2) prefix = w->entries[script_u8(s) % w->count].prefix;
  entry *known = exact(w, &prefix);
  int owner = known != NULL && script_u8(s) % 4 ? known->owner : script_u8(s) % OWNERS;
  bool wanted = known != NULL && known->owner == owner;
  CHECK(kdp_trie_remove(w->trie, &prefix, &w->owner[owner]) == wanted);
  if (wanted) forget(w, known);
}

static void remove_owner(world *w, int owner) {
  kdp_trie_remove_owner(w->trie, &w->owner[owner]);
  CHECK(w->owner[owner].count == 0);
  for (uint32_t i = 0; i < w->count;)
    if (w->entries[i].owner == owner)
      forget(w, &w->entries[i]);
    else
      i++;
}

static void find(world *w, script *s) {
  kdp_prefix at = read_prefix(s);
  if (w->count > 0 && script_u8(s) % 2) at = w->entries[script_u8(s) % w->count].prefix;
  uint8_t flip = script_u8(s);
  at.bytes[flip % (at.family == KDP_FAMILY_IPV4 ? 4 : 16)] ^= script_u8(s);
  const entry *longest = NULL;
  for (uint32_t i = 0; i < w->count; i++) {
    const entry *e = &w->entries[i];
    if (e->prefix.family == at.family && covers(&e->prefix, at.bytes) &&
        (longest == NULL || e->prefix.length > longest->prefix.length))
      longest = e;
  }
  uint8_t *address = exact_copy(at.bytes, at.family == KDP_FAMILY_IPV4 ? 4 : 16);
  CHECK(kdp_trie_find(w->trie, (kdp_family)at.family, address) == (longest ? &w->owner[longest->owner] : NULL));
  free(address);
}

/* In parts, as a caller with little room does it: every prefix once, in the order of insertion. */
static void list(world *w, int owner, uint32_t room) {
  kdp_prefix prefix[7];
  uint64_t order = 0;
  uint32_t first = 0, listed = 0;
  do {
    listed = kdp_trie_list(&w->owner[owner], first, prefix, room);
    CHECK(listed <= room);
    for (uint32_t i = 0; i < listed; i++) {
      const entry *known = exact(w, &prefix[i]);
      CHECK(known != NULL && known->owner == owner && known->order > order);
      order = known->order;
    }
    first += listed;
  } while (listed == room);
  CHECK(first == w->owner[owner].count);
}

static void check_counts(world *w) {
  uint32_t sum = 0;
  for (int i = 0; i < OWNERS; i++)
    sum += w->owner[i].count;
  CHECK(sum == w->count && kdp_trie_count(w->trie) == w->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static world w;
  memset(&w, 0, sizeof w);
  w.refuse_after = -1;
  kdp_host host = {.context = &w, .allocate = allocate, .release = release};
  script s = {bytes, bytes + size};
  if (script_u8(&s) % 16 == 0) {
    w.refuse_after = 0;
    CHECK(kdp_trie_create(&host, &w.trie) == KDP_NO_MEMORY);
    w.refuse_after = -1;
  }
  CHECK(kdp_trie_create(&host, &w.trie) == KDP_OK);
  while (script_left(&s) > 0) {
    switch (script_u8(&s) % 8) {
    case 0:
    case 1:
    case 2: insert(&w, &s); break;
    case 3: remove_one(&w, &s); break;
    case 4: remove_owner(&w, script_u8(&s) % OWNERS); break;
    case 5: list(&w, script_u8(&s) % OWNERS, 1 + script_u8(&s) % 7); break;
    default: find(&w, &s); break;
    }
    check_counts(&w);
  }
  for (uint32_t i = 0; i < w.count; i++)
    CHECK(kdp_trie_find_exact(w.trie, &w.entries[i].prefix) == &w.owner[w.entries[i].owner]);
  for (int i = 0; i < OWNERS; i++)
    list(&w, i, 7);
  kdp_trie_destroy(w.trie);
  CHECK(w.live == 0);
  return 0;
}
