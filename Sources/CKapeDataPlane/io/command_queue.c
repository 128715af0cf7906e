#include "io/command_queue.h"

/* The address of this marks a closed queue; it is never run. */
static kdp_command *closed_mark(kdp_command_queue *queue) {
  return (kdp_command *)(void *)queue;
}

kdp_command_push kdp_command_queue_push(kdp_command_queue *queue, kdp_command *command) {
  kdp_command *newest = atomic_load_explicit(&queue->stack, memory_order_relaxed);
  do {
    if (newest == closed_mark(queue)) return KDP_COMMAND_REFUSED;
    command->next = newest;
  } while (!atomic_compare_exchange_weak_explicit(&queue->stack, &newest, command, memory_order_release,
                                                  memory_order_relaxed));
  return newest ? KDP_COMMAND_QUEUED : KDP_COMMAND_QUEUED_FIRST;
}

/* Puts a stack of commands, newest first, behind those that wait. */
static void append(kdp_command_queue *queue, kdp_command *newest) {
  kdp_command *oldest = NULL;
  while (newest) {
    kdp_command *next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  kdp_command **end = &queue->oldest;
  while (*end)
    end = &(*end)->next;
  *end = oldest;
}

kdp_command *kdp_command_queue_take(kdp_command_queue *queue) {
  if (!queue->oldest) {
    kdp_command *newest = atomic_load_explicit(&queue->stack, memory_order_relaxed);
    if (!newest || newest == closed_mark(queue)) return NULL;
    append(queue, atomic_exchange_explicit(&queue->stack, NULL, memory_order_acquire));
  }
  kdp_command *command = queue->oldest;
  queue->oldest = command->next;
  command->next = NULL;
  return command;
}

bool kdp_command_queue_has_more(kdp_command_queue *queue) {
  if (queue->oldest) return true;
  kdp_command *newest = atomic_load_explicit(&queue->stack, memory_order_relaxed);
  return newest && newest != closed_mark(queue);
}

void kdp_command_queue_close(kdp_command_queue *queue) {
  kdp_command *newest = atomic_exchange_explicit(&queue->stack, closed_mark(queue), memory_order_acq_rel);
  if (newest != closed_mark(queue)) append(queue, newest);
}
