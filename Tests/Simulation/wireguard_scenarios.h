/* The WireGuard scenarios, by file. */
#ifndef SIM_WIREGUARD_SCENARIOS_H
#define SIM_WIREGUARD_SCENARIOS_H
#include "simulation.h"

/* wireguard_traffic.c */
void wg_clean(sim *world);
void wg_rough(sim *world);
void wg_many_peers(sim *world);
void wg_starved(sim *world);
void wg_key_comes_later(sim *world);
void wg_mtu_sweep(sim *world);
void wg_strangers_inside(sim *world);
void wg_prefix_moves(sim *world);
/* wireguard_rekey.c */
void wg_rekey_storm(sim *world);
void wg_both_keep_alive(sim *world);
void wg_simultaneous(sim *world);
void wg_renewal_by_receiving(sim *world);
void wg_lost_confirmations(sim *world);
void wg_overlap(sim *world);
void wg_preshared_key_changes(sim *world);
void wg_restarts(sim *world);
/* wireguard_time.c */
void wg_idle_silence(sim *world);
void wg_persistent_keepalive(sim *world);
void wg_long_sleep(sim *world);
void wg_clock_back(sim *world);
void wg_partition(sim *world);
void wg_one_way(sim *world);
void wg_interface_down(sim *world);
/* wireguard_paths.c */
void wg_roaming(sim *world);
void wg_dead_port(sim *world);
void wg_nat_forgets(sim *world);
void wg_name_moves(sim *world);
/* wireguard_hostile.c */
void wg_replayed_session(sim *world);
void wg_late_packets(sim *world);
void wg_cookie_flood(sim *world);
void wg_cookie_from_elsewhere(sim *world);
void wg_hostile_datagrams(sim *world);
/* wireguard_monkey.c */
void wg_monkey(sim *world);

#endif
