/* syscalls PID...: counts the system calls of processes, all their threads and those they start, from now until the end
   of its input; then prints one JSON list, a number for each. Says so and ends with 3 where the kernel has no
   tracepoint for them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROCESSES = 8, THREADS = 256 };

/* In a mount namespace of our own, so that nothing stays behind. */
static void mount_tracefs(void) {
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return;
  (void)mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
}

static long tracepoint(void) {
  FILE *file = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");
  long id = -1;
  if (!file) return -1;
  if (fscanf(file, "%ld", &id) != 1) id = -1;
  fclose(file);
  return id;
}

static int count_thread(long id, int thread) {
  struct perf_event_attr attributes = {
      .type = PERF_TYPE_TRACEPOINT, .size = sizeof attributes, .config = (uint64_t)id, .inherit = 1};
  return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int count_process(long id, const char *process, int fd[THREADS]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/task", process);
  DIR *tasks = opendir(path);
  int count = 0;
  if (!tasks) return 0;
  for (struct dirent *entry; (entry = readdir(tasks)) && count < THREADS;) {
    if (entry->d_name[0] == '.') continue;
    fd[count] = count_thread(id, atoi(entry->d_name));
    if (fd[count] >= 0) count++;
  }
  closedir(tasks);
  return count;
}

int main(int count, char **argument) {
  static int fd[PROCESSES][THREADS];
  int threads[PROCESSES];
  if (count < 2 || count > PROCESSES + 1) {
    fprintf(stderr, "usage: syscalls PID... (at most %d)\n", PROCESSES);
    return 2;
  }
  mount_tracefs();
  long id = tracepoint();
  for (int i = 1; i < count; i++) {
    threads[i - 1] = id < 0 ? 0 : count_process(id, argument[i], fd[i - 1]);
    if (threads[i - 1] > 0) continue;
    fprintf(stderr, "syscalls: the tracepoint raw_syscalls:sys_enter cannot be used here: %s\n", strerror(errno));
    return 3;
  }
  printf("counting\n");
  fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  for (int i = 0; i < count - 1; i++) {
    uint64_t sum = 0, value;
    for (int t = 0; t < threads[i]; t++)
      if (read(fd[i][t], &value, sizeof value) == sizeof value) sum += value;
    printf("%s%llu", i ? ", " : "[", (unsigned long long)sum);
  }
  printf("]\n");
  return 0;
}
