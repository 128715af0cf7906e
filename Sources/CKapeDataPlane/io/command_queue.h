/* Commands to a worker: many submitters, one taker, no lock. Submitters push onto a stack with one compare-and-swap;
   the taker takes all of it with one exchange and turns it round. A closed queue gives a command back to its submitter.
 */
#ifndef KDP_IO_COMMAND_QUEUE_H
#define KDP_IO_COMMAND_QUEUE_H
#include <stdatomic.h>

#include "kdp/worker.h"

typedef struct kdp_command_queue {
  _Atomic(kdp_command *) stack; /* newest first */
  kdp_command *oldest;          /* the taker's own, in order */
} kdp_command_queue;

typedef enum kdp_command_push {
  KDP_COMMAND_QUEUED,
  KDP_COMMAND_QUEUED_FIRST, /* the taker must be woken */
  KDP_COMMAND_REFUSED       /* closed: the submitter runs it itself, as stopping */
} kdp_command_push;

kdp_command_push kdp_command_queue_push(kdp_command_queue *queue, kdp_command *command);
/* The taker's: the oldest command, or NULL. */
kdp_command *kdp_command_queue_take(kdp_command_queue *queue);
/* The taker's: is there one? After false, whoever pushes next is told to wake the taker. */
bool kdp_command_queue_has_more(kdp_command_queue *queue);
/* The taker's: from now on pushes are refused; what is left can still be taken. */
void kdp_command_queue_close(kdp_command_queue *queue);

#endif
