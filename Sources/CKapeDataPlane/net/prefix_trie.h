/* Longest-prefix match for IPv4 and IPv6: prefix to owner. A compressed binary trie in chunks of memory from the host;
   what a removed prefix leaves is used again, and all of it goes back with the trie; 56 bytes a prefix. Each owner's
   prefixes are linked, so that they can be listed and removed in their own number. Changes are all-or-nothing:
   kdp_trie_reserve takes the memory first, after which the promised insertions cannot fail. Not thread safe; many may
   look up while nobody changes it. */
#ifndef KDP_NET_PREFIX_TRIE_H
#define KDP_NET_PREFIX_TRIE_H
#include "kdp/base.h"
#include "kdp/status.h"

typedef struct kdp_trie kdp_trie;

/* An owner's list of prefixes; embed it in the owner, zeroed. It must stay where it is while `count` is not zero. All
   but `count` belong to the trie. */
typedef struct kdp_trie_owner {
  const kdp_trie *trie;
  uint32_t first, last;
  uint32_t count;
} kdp_trie_owner;

kdp_status kdp_trie_create(const kdp_host *host, kdp_trie **trie) KDP_MUST_USE;
/* Owners are not touched. NULL is allowed. */
void kdp_trie_destroy(kdp_trie *trie);

/* Sees to it that `count` more insertions cannot fail. OK or NO_MEMORY. */
kdp_status kdp_trie_reserve(kdp_trie *trie, uint32_t count) KDP_MUST_USE;
/* Gives the prefix to `owner`, taking it from whoever had it: that one is returned (NULL: nobody, or `owner` itself).
   The prefix must be normalised. Memory must have been reserved. */
kdp_trie_owner *kdp_trie_insert(kdp_trie *trie, const kdp_prefix *prefix, kdp_trie_owner *owner);
/* False when `owner` does not have it. */
bool kdp_trie_remove(kdp_trie *trie, const kdp_prefix *prefix, kdp_trie_owner *owner);
void kdp_trie_remove_owner(kdp_trie *trie, kdp_trie_owner *owner);

/* The owner of the longest prefix that covers the address (4 or 16 bytes), or NULL. */
kdp_trie_owner *kdp_trie_find(const kdp_trie *trie, kdp_family family, const uint8_t *address);
/* Exact match. */
kdp_trie_owner *kdp_trie_find_exact(const kdp_trie *trie, const kdp_prefix *prefix);
/* Prefixes of an owner from number `first` on, in order of insertion; returns how many were written. Getting to number
   `first` takes as many steps. */
uint32_t kdp_trie_list(const kdp_trie_owner *owner, uint32_t first, kdp_prefix *prefix, uint32_t capacity);
uint32_t kdp_trie_count(const kdp_trie *trie);
#endif
