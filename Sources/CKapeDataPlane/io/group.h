/* The threads of a worker beyond the first. The first is the one that others know: it owns the port and everything that
   is said to the engine's lane 0. What the others meet of that they hand to it, through a ring each; what it wants of
   them it has them do between two of their rounds, and waits for that, which is a round at most. Nobody waits for it.
 */
#ifndef KDP_IO_GROUP_H
#define KDP_IO_GROUP_H
#include <semaphore.h>
#include <stdatomic.h>

#include "io/handoff.h"
#include "kdp/worker.h"

/* What one of these threads has to do with the first. */
typedef struct kdp_membership {
  kdp_worker *first; /* NULL: it is the first itself */
  kdp_handoff *handoff;
  bool handed;                      /* something since the first was told */
  _Atomic(bool) ended;              /* its run has, by itself */
  _Atomic(int) socket_error;        /* its sockets are broken, errno; 0: no */
  kdp_command command;              /* the first's call that is under way */
  void (*function)(kdp_worker *me); /* what it calls */
  sem_t *done;
} kdp_membership;

typedef struct kdp_group {
  kdp_worker **other;
  uint32_t count, capacity;
  bool running;
} kdp_group;

/* The first's: */
kdp_status kdp_group_start(kdp_worker *first) KDP_MUST_USE;
void kdp_group_stop(kdp_worker *first);
/* Has every other thread call `function` on its own worker, and waits for all of them. */
void kdp_group_call(kdp_worker *first, void (*function)(kdp_worker *other));
/* A wake-up was taken, wherever in a round that was: the next is wanted. */
void kdp_group_listen(kdp_worker *first);
/* Takes what was handed over, as far as there is room for it. */
void kdp_group_take(kdp_worker *first);
/* Is there something left that could be taken now? */
bool kdp_group_has_more(const kdp_worker *first);

/* The others': */
/* A HANDOFF action of the engine. The packet's slot is given back. */
void kdp_group_hand_packet(kdp_worker *other, const kdp_action *action);
void kdp_group_hand_path_mtu(kdp_worker *other, const kdp_path *path, uint16_t mtu);
void kdp_group_hand_event(kdp_worker *other, const kdp_event *event);
void kdp_group_hand_socket_error(kdp_worker *other, int error);
/* At the end of a round: wakes the first if something was handed over. */
void kdp_group_tell(kdp_worker *other);
/* At the end of the run. */
void kdp_group_end(kdp_worker *other);

#endif
