/* Two kinds of nodes. An entry is a prefix that someone owns; all that hangs below it lies within it. A branch tests
   one bit; it knows no prefix, since whatever entry comes next on the way down is compared whole. So a look-up touches
   one small branch a level and the few entries that cover the address or end the way, and a trie of n entries has at
   most n - 1 branches: a chunk has as many of the one as of the other, and room for an entry is room for its branch. */
#include "net/prefix_trie.h"

#include <string.h>

#include "core/bytes.h"

/* A node's number: its slot, with the top bit set for a branch. Slot 0 is not given out: its number means none, and its
   branch holds the roots of both families. */
typedef uint32_t number;
enum { NONE = 0 };
static const number BRANCH = UINT32_C(1) << 31;

enum { SLOTS_SHIFT = 6, SLOTS = 1 << SLOTS_SHIFT, FIRST_TABLE = 4 };

/* An address or prefix, left-justified, in host order. */
typedef struct key {
  uint64_t high, low;
} key;

typedef struct branch {
  number child[2];
  uint8_t bit; /* from 0, the leftmost */
} branch;

typedef struct entry {
  key key;
  kdp_trie_owner *owner;
  number below;
  number next, previous; /* in the owner's list */
  uint8_t length, family;
} entry;

typedef struct chunk {
  branch branch[SLOTS];
  entry entry[SLOTS];
} chunk;

_Static_assert(sizeof(chunk) <= 56 * SLOTS, "the memory of a prefix");

struct kdp_trie {
  chunk **chunk;
  uint32_t chunk_count, table_size;
  uint32_t count;
  uint32_t entry_fresh, branch_fresh; /* slots from here on were never used */
  number entry_free, branch_free;     /* lists through `below` and child[0] */
  kdp_host host;
};

static inline entry *entry_at(const kdp_trie *trie, number at) {
  return &trie->chunk[at >> SLOTS_SHIFT]->entry[at & (SLOTS - 1)];
}

static inline branch *branch_at(const kdp_trie *trie, number at) {
  at &= ~BRANCH;
  return &trie->chunk[at >> SLOTS_SHIFT]->branch[at & (SLOTS - 1)];
}

static inline number *root_of(const kdp_trie *trie, unsigned family) {
  return &trie->chunk[0]->branch[0].child[family == KDP_FAMILY_IPV6];
}

static inline key key_of(unsigned family, const uint8_t *bytes) {
  if (family == KDP_FAMILY_IPV6) return (key){kdp_load_be64(bytes), kdp_load_be64(bytes + 8)};
  return (key){(uint64_t)kdp_load_be32(bytes) << 32, 0};
}

static inline unsigned bit_of(key k, unsigned bit) {
  return (bit < 64 ? k.high >> (63 - bit) : k.low >> (127 - bit)) & 1;
}

/* Bits from the left in which they agree, up to `limit`. */
static inline unsigned common_bits(key a, key b, unsigned limit) {
  uint64_t high = a.high ^ b.high, low = a.low ^ b.low;
  unsigned common = high ? (unsigned)__builtin_clzll(high) : low ? 64 + (unsigned)__builtin_clzll(low) : 128;
  return common < limit ? common : limit;
}

static inline bool covers(const entry *e, key k) {
  uint64_t high = e->key.high ^ k.high, low = e->key.low ^ k.low;
  if (e->length <= 64) return e->length == 0 || high >> (64 - e->length) == 0;
  return high == 0 && low >> (128 - e->length) == 0;
}

kdp_trie_owner *kdp_trie_find(const kdp_trie *trie, kdp_family family, const uint8_t *address) {
  key k = key_of(family, address);
  kdp_trie_owner *best = NULL;
  for (number at = *root_of(trie, family); at != NONE;) {
    if (at & BRANCH) {
      const branch *b = branch_at(trie, at);
      at = b->child[bit_of(k, b->bit)];
    } else {
      const entry *e = entry_at(trie, at);
      if (!covers(e, k)) break;
      best = e->owner;
      at = e->below;
    }
  }
  return best;
}

/* Where the number of an entry is written, and of the branch that it hangs from, if it hangs from one. */
typedef struct place {
  number *link;
  number *branch_link;
} place;

/* The entry of exactly this prefix; link NULL: there is none. */
static place place_of(const kdp_trie *trie, unsigned family, key k, unsigned length) {
  place p = {root_of(trie, family), NULL};
  while (*p.link != NONE) {
    if (*p.link & BRANCH) {
      branch *b = branch_at(trie, *p.link);
      if (b->bit >= length) break;
      p.branch_link = p.link;
      p.link = &b->child[bit_of(k, b->bit)];
    } else {
      entry *e = entry_at(trie, *p.link);
      if (e->length == length && e->key.high == k.high && e->key.low == k.low) return p;
      if (e->length >= length) break;
      p.branch_link = NULL;
      p.link = &e->below;
    }
  }
  return (place){NULL, NULL};
}

kdp_trie_owner *kdp_trie_find_exact(const kdp_trie *trie, const kdp_prefix *prefix) {
  place p = place_of(trie, prefix->family, key_of(prefix->family, prefix->bytes), prefix->length);
  return p.link ? entry_at(trie, *p.link)->owner : NULL;
}

/* How many bits the prefix shares with what is in the trie, on the way that it would take. */
static unsigned shared_bits(const kdp_trie *trie, number at, key k, unsigned length) {
  const entry *last = NULL;
  while (at != NONE) {
    if (at & BRANCH) {
      const branch *b = branch_at(trie, at);
      at = b->child[bit_of(k, b->bit)]; /* any side, once past the prefix's own bits */
    } else {
      last = entry_at(trie, at);
      if (last->length >= length || !covers(last, k)) break;
      at = last->below;
    }
  }
  if (!last) return 0;
  return common_bits(k, last->key, last->length < length ? last->length : length);
}

static void list_append(kdp_trie *trie, kdp_trie_owner *owner, number at) {
  entry *e = entry_at(trie, at);
  e->owner = owner;
  e->next = NONE;
  e->previous = owner->count ? owner->last : NONE;
  if (owner->count)
    entry_at(trie, owner->last)->next = at;
  else
    owner->first = at;
  owner->last = at;
  owner->count++;
  owner->trie = trie;
}

static void list_take(kdp_trie *trie, number at) {
  entry *e = entry_at(trie, at);
  kdp_trie_owner *owner = e->owner;
  if (e->previous != NONE)
    entry_at(trie, e->previous)->next = e->next;
  else
    owner->first = e->next;
  if (e->next != NONE)
    entry_at(trie, e->next)->previous = e->previous;
  else
    owner->last = e->previous;
  owner->count--;
}

static number take_entry(kdp_trie *trie) {
  number at = trie->entry_free;
  if (at != NONE)
    trie->entry_free = entry_at(trie, at)->below;
  else
    at = trie->entry_fresh++;
  trie->count++;
  return at;
}

static number take_branch(kdp_trie *trie) {
  number at = trie->branch_free;
  if (at != NONE)
    trie->branch_free = branch_at(trie, at)->child[0];
  else
    at = trie->branch_fresh++ | BRANCH;
  return at;
}

kdp_trie_owner *kdp_trie_insert(kdp_trie *trie, const kdp_prefix *prefix, kdp_trie_owner *owner) {
  key k = key_of(prefix->family, prefix->bytes);
  unsigned length = prefix->length, shared = shared_bits(trie, *root_of(trie, prefix->family), k, length);
  number *link = root_of(trie, prefix->family);
  while (*link != NONE) {
    if (*link & BRANCH) {
      branch *b = branch_at(trie, *link);
      if (b->bit >= shared) break;
      link = &b->child[bit_of(k, b->bit)];
    } else {
      entry *e = entry_at(trie, *link);
      if (e->length > shared) break;
      if (e->length == length) { /* it is there: all its bits are shared */
        kdp_trie_owner *before = e->owner;
        if (before == owner) return NULL;
        list_take(trie, *link);
        list_append(trie, owner, *link);
        return before;
      }
      link = &e->below;
    }
  }
  number fresh = take_entry(trie), rest = *link;
  *entry_at(trie, fresh) = (entry){.key = k, .length = (uint8_t)length, .family = prefix->family, .below = NONE};
  if (rest == NONE || shared == length) {
    entry_at(trie, fresh)->below = rest;
    *link = fresh;
  } else {
    number fork = take_branch(trie);
    branch *b = branch_at(trie, fork);
    unsigned side = bit_of(k, shared);
    b->bit = (uint8_t)shared;
    b->child[side] = fresh;
    b->child[!side] = rest;
    *link = fork;
  }
  list_append(trie, owner, fresh);
  return NULL;
}

static void remove_at(kdp_trie *trie, place p) {
  number at = *p.link;
  entry *e = entry_at(trie, at);
  list_take(trie, at);
  *p.link = e->below;
  if (*p.link == NONE && p.branch_link) { /* a branch with one child is none */
    number fork = *p.branch_link;
    branch *b = branch_at(trie, fork);
    *p.branch_link = b->child[p.link == &b->child[0]];
    b->child[0] = trie->branch_free;
    trie->branch_free = fork;
  }
  e->owner = NULL;
  e->below = trie->entry_free;
  trie->entry_free = at;
  trie->count--;
}

bool kdp_trie_remove(kdp_trie *trie, const kdp_prefix *prefix, kdp_trie_owner *owner) {
  place p = place_of(trie, prefix->family, key_of(prefix->family, prefix->bytes), prefix->length);
  if (!p.link || entry_at(trie, *p.link)->owner != owner) return false;
  remove_at(trie, p);
  return true;
}

void kdp_trie_remove_owner(kdp_trie *trie, kdp_trie_owner *owner) {
  while (owner->count > 0) {
    const entry *e = entry_at(trie, owner->first);
    remove_at(trie, place_of(trie, e->family, e->key, e->length));
  }
}

static kdp_prefix prefix_of(const entry *e) {
  kdp_prefix prefix = {.family = e->family, .length = e->length};
  if (e->family == KDP_FAMILY_IPV6) {
    kdp_store_be64(prefix.bytes, e->key.high);
    kdp_store_be64(prefix.bytes + 8, e->key.low);
  } else {
    kdp_store_be32(prefix.bytes, (uint32_t)(e->key.high >> 32));
  }
  return prefix;
}

uint32_t kdp_trie_list(const kdp_trie_owner *owner, uint32_t first, kdp_prefix *prefix, uint32_t capacity) {
  if (first >= owner->count) return 0;
  number at = owner->first;
  for (uint32_t i = 0; i < first; i++)
    at = entry_at(owner->trie, at)->next;
  uint32_t written = 0;
  for (; at != NONE && written < capacity; written++) {
    const entry *e = entry_at(owner->trie, at);
    prefix[written] = prefix_of(e);
    at = e->next;
  }
  return written;
}

uint32_t kdp_trie_count(const kdp_trie *trie) {
  return trie->count;
}

static bool grow_table(kdp_trie *trie) {
  uint32_t size = trie->table_size ? trie->table_size * 2 : FIRST_TABLE;
  chunk **table = trie->host.allocate(trie->host.context, size * sizeof *table);
  if (!table) return false;
  if (trie->chunk) {
    memcpy(table, trie->chunk, trie->chunk_count * sizeof *table);
    trie->host.release(trie->host.context, trie->chunk, trie->table_size * sizeof *table);
  }
  trie->chunk = table;
  trie->table_size = size;
  return true;
}

static bool add_chunk(kdp_trie *trie) {
  if (trie->chunk_count == trie->table_size && !grow_table(trie)) return false;
  chunk *fresh = trie->host.allocate(trie->host.context, sizeof *fresh);
  if (!fresh) return false;
  trie->chunk[trie->chunk_count++] = fresh;
  return true;
}

kdp_status kdp_trie_reserve(kdp_trie *trie, uint32_t count) {
  uint64_t slots = (uint64_t)trie->count + count + 1;
  if (slots > BRANCH) return KDP_NO_MEMORY;
  while ((uint64_t)trie->chunk_count * SLOTS < slots)
    if (!add_chunk(trie)) return KDP_NO_MEMORY;
  return KDP_OK;
}

kdp_status kdp_trie_create(const kdp_host *host, kdp_trie **out) {
  kdp_trie *trie = host->allocate(host->context, sizeof *trie);
  if (!trie) return KDP_NO_MEMORY;
  *trie = (kdp_trie){.host = *host, .entry_fresh = 1, .branch_fresh = 1};
  if (!add_chunk(trie)) {
    kdp_trie_destroy(trie);
    return KDP_NO_MEMORY;
  }
  trie->chunk[0]->branch[0] = (branch){{NONE, NONE}, 0};
  *out = trie;
  return KDP_OK;
}

void kdp_trie_destroy(kdp_trie *trie) {
  if (!trie) return;
  kdp_host host = trie->host;
  for (uint32_t i = 0; i < trie->chunk_count; i++)
    host.release(host.context, trie->chunk[i], sizeof *trie->chunk[i]);
  if (trie->chunk) host.release(host.context, trie->chunk, trie->table_size * sizeof *trie->chunk);
  host.release(host.context, trie, sizeof *trie);
}
