/* The peers of a device: by public key (a hash table of chains), and in the order in which they were added, which is
   the order of their numbers (an array). */
#ifndef KDP_WIREGUARD_PEER_TABLE_H
#define KDP_WIREGUARD_PEER_TABLE_H

#include "wireguard/peer.h"

typedef struct kdp_wg_peer_table {
  kdp_wg_peer **bucket;
  kdp_wg_peer **ordered;
  uint32_t bucket_count; /* a power of two, or 0 */
  uint32_t count;        /* live peers: those in `ordered` */
  uint32_t ordered_capacity;
  uint8_t hash_key[16]; /* so that nobody can choose keys that fall together */
} kdp_wg_peer_table;

void kdp_wg_peer_table_start(kdp_wg_peer_table *table, const kdp_host *host);
/* Room for `count` peers. NO_MEMORY leaves the table as it was. */
kdp_status kdp_wg_peer_table_reserve(kdp_wg_peer_table *table, uint32_t count, const kdp_host *host) KDP_MUST_USE;
void kdp_wg_peer_table_destroy(kdp_wg_peer_table *table, const kdp_host *host); /* not the peers */

kdp_wg_peer *kdp_wg_peer_table_find(const kdp_wg_peer_table *table, const uint8_t public_key[KDP_KEY_SIZE]);
/* By key only: it is not among the ordered yet. */
void kdp_wg_peer_table_insert(kdp_wg_peer_table *table, kdp_wg_peer *peer);
void kdp_wg_peer_table_remove(kdp_wg_peer_table *table, kdp_wg_peer *peer);
/* At the end of the order; its number is the highest. */
void kdp_wg_peer_table_append(kdp_wg_peer_table *table, kdp_wg_peer *peer);
void kdp_wg_peer_table_drop(kdp_wg_peer_table *table, kdp_wg_peer *peer); /* out of the order */
/* Position of the first peer with a number above `number`; `count` when there is none. */
uint32_t kdp_wg_peer_table_after(const kdp_wg_peer_table *table, uint64_t number);
kdp_wg_peer *kdp_wg_peer_table_numbered(const kdp_wg_peer_table *table, uint64_t number);

#endif
