/* The runner: scenarios over seeds, in several processes, with one summary.

   simulate list
   simulate SCENARIO --seed N [--trace]       one seed; prints its trace hash
   simulate SCENARIO [--seeds COUNT] [--from N] [--jobs J]
   simulate check [--scale K | --seeds COUNT] [--jobs J] [--from N] [--stop]
                                              every scenario, its own number of seeds times K or COUNT, and what must
                                              occur in all of them

   Exit status: 0 all right, 1 a seed failed or something never occurred, 2 usage. */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scenario.h"

static const sim_suite *const SUITES[] = {&sim_echo_suite, &sim_wireguard_suite};
enum { SUITE_COUNT = sizeof SUITES / sizeof SUITES[0], MAX_JOBS = 64 };

typedef struct options {
  const char *command;
  uint64_t seed, from, seeds, scale, jobs;
  bool one, trace, stop;
} options;

/* What a child process tells: in memory that both see, so that it is there also after a crash. */
typedef struct report {
  sim_coverage coverage;
  uint64_t running; /* the seed that is being run */
  bool failed;
  char message[1000];
} report;

static void add(sim_coverage *sum, const sim_coverage *part) {
  const uint64_t *from = (const uint64_t *)part;
  uint64_t *to = (uint64_t *)sum;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
    to[i] += from[i];
}

/* Runs one seed; false: failed, with `message`. A failed world is left as it is: its engines may be in any state. */
static bool run_seed(const sim_scenario *scenario, uint64_t seed, bool trace, sim_coverage *coverage, char *message,
                     size_t size, uint64_t *hash) {
  jmp_buf jump;
  sim *world = sim_create(seed, trace);
  sim_catch(world, &jump, message, size);
  if (setjmp(jump)) return false;
  scenario->run(world);
  sim_coverage own;
  sim_collect(world, &own);
  sim_check_number(world, own.virtual_seconds, >=, scenario->virtual_seconds);
  sim_check_number(world, own.inner_sent, >=, scenario->inner_packets);
  sim_check_number(world, own.key_changes, >=, scenario->key_changes);
  add(coverage, &own);
  *hash = sim_trace_hash(world);
  sim_destroy(world);
  return true;
}

static int run_one(const sim_scenario *scenario, const options *options) {
  sim_coverage coverage = {0};
  char message[1000];
  uint64_t hash = 0;
  if (!run_seed(scenario, options->seed, options->trace, &coverage, message, sizeof message, &hash)) {
    printf("%s --seed %" PRIu64 ": FAILED %s\n", scenario->name, options->seed, message);
    return 1;
  }
  printf("%s --seed %" PRIu64 ": ok, trace hash %016" PRIx64 ", %" PRIu64 " of %" PRIu64 " packets delivered\n",
         scenario->name, options->seed, hash, coverage.inner_delivered, coverage.inner_sent);
  return 0;
}

static void child(const sim_scenario *scenario, uint64_t from, uint64_t count, uint64_t job, uint64_t jobs,
                  report *report) {
  for (uint64_t i = job; i < count; i += jobs) {
    uint64_t hash;
    report->running = from + i;
    if (!run_seed(scenario, from + i, false, &report->coverage, report->message, sizeof report->message, &hash)) {
      report->failed = true;
      _exit(1);
    }
  }
  exit(0); /* not _exit: a leak check runs at exit */
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say_failure(const sim_scenario *scenario, const report *report, int status) {
  if (report->failed)
    printf("%s --seed %" PRIu64 ": FAILED %s\n", scenario->name, report->running, report->message);
  else if (WIFSIGNALED(status))
    printf("%s --seed %" PRIu64 ": FAILED with signal %d\n", scenario->name, report->running, WTERMSIG(status));
  else
    printf("%s --seed %" PRIu64 ": FAILED with exit status %d\n", scenario->name, report->running, WEXITSTATUS(status));
  printf("  replay: Tests/Simulation/run %s --seed %" PRIu64 " --trace\n", scenario->name, report->running);
}

/* All seeds of a scenario; false when one failed. */
static bool run_seeds(const sim_scenario *scenario, uint64_t from, uint64_t count, uint64_t jobs, sim_coverage *sum) {
  double start = seconds_now();
  report *reports = mmap(NULL, jobs * sizeof *reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (reports == MAP_FAILED) abort();
  pid_t pid[MAX_JOBS];
  fflush(stdout);
  for (uint64_t job = 0; job < jobs; job++) {
    pid[job] = fork();
    if (pid[job] < 0) abort();
    if (pid[job] == 0) child(scenario, from, count, job, jobs, &reports[job]);
  }
  bool good = true;
  sim_coverage own = {0};
  for (uint64_t job = 0; job < jobs; job++) {
    int status = 0;
    waitpid(pid[job], &status, 0);
    add(&own, &reports[job].coverage);
    if (status == 0) continue;
    say_failure(scenario, &reports[job], status);
    good = false;
  }
  munmap(reports, jobs * sizeof *reports);
  add(sum, &own);
  printf("%-28s %6" PRIu64 " seeds %9" PRIu64 " s virtual %9" PRIu64 " packets %7" PRIu64 " handshakes %6.1f s\n",
         scenario->name, own.seeds, own.virtual_seconds, own.inner_sent, own.handshakes, seconds_now() - start);
  return good;
}

/* ---- What occurred ---- */

static const char *const EVENT_NAMES[SIM_EVENT_KINDS] = {"",
                                                         "HANDSHAKE_STARTED",
                                                         "CONNECTED",
                                                         "REKEYED",
                                                         "HANDSHAKE_FAILED",
                                                         "DISCONNECTED",
                                                         "ENDPOINT_CHANGED",
                                                         "PREFIX_MOVED",
                                                         "REBIND",
                                                         "RESOLVE",
                                                         "UNDER_LOAD",
                                                         "CLOCK_BACK",
                                                         "FALLBACK",
                                                         "LINK_ERROR",
                                                         "INSIDE_GONE",
                                                         "TICKET"};
static const char *const ACTION_NAMES[SIM_ACTION_KINDS] = {"",        "OPEN",    "CLOSE",   "REBIND",
                                                           "RESOLVE", "HANDOFF", "PATH_MTU"};

static bool listed(const uint16_t *list, unsigned value) {
  for (; list && *list != UINT16_MAX; list++)
    if (*list == value) return true;
  return false;
}

/* One line; false when it is bound to occur and never did. */
static bool line(const char *group, const char *name, uint64_t times, bool bound) {
  if (times == 0 && !bound) return true;
  printf("  %-7s %-24s %12" PRIu64 "%s\n", group, name, times, times == 0 ? "  NEVER OCCURRED" : "");
  return times > 0;
}

static bool summarise(const sim_suite *suite, const sim_coverage *sum, bool enough) {
  bool good = true;
  const sim_expectation *expect = &suite->expect;
  printf("%s: %" PRIu64 " seeds, %" PRIu64 " hours of virtual time, %" PRIu64 " of %" PRIu64
         " inner packets delivered, %" PRIu64 " datagrams, %" PRIu64 " rounds\n",
         suite->name, sum->seeds, sum->virtual_seconds / 3600, sum->inner_delivered, sum->inner_sent, sum->datagrams,
         sum->rounds);
  for (unsigned i = 1; i < SIM_EVENT_KINDS; i++)
    good &= line("event", EVENT_NAMES[i], sum->event[i], listed(expect->event, i));
  for (unsigned i = 1; i < SIM_ACTION_KINDS; i++)
    good &= line("action", ACTION_NAMES[i], sum->action[i], listed(expect->action, i));
  for (unsigned i = 0; i < KDP_STATUS_COUNT; i++)
    good &= line("status", kdp_status_describe((kdp_status)i)->name, sum->status[i], listed(expect->status, i));
  for (unsigned i = 0; expect->mark && expect->mark[i]; i++)
    good &= line("timer", expect->mark[i], sum->mark[i], true);
  return good || !enough; /* a few seeds need not meet everything */
}

static int check(const options *options) {
  bool good = true;
  double start = seconds_now();
  for (unsigned s = 0; s < SUITE_COUNT; s++) {
    sim_coverage sum = {0};
    bool whole = true;
    for (uint32_t i = 0; i < SUITES[s]->count; i++) {
      const sim_scenario *scenario = &SUITES[s]->scenario[i];
      uint64_t seeds = options->seeds ? options->seeds : scenario->seeds * options->scale;
      whole &= run_seeds(scenario, options->from, seeds, options->jobs, &sum);
      if (options->stop && !whole) return 1;
    }
    good &= summarise(SUITES[s], &sum, options->seeds == 0) && whole;
  }
  printf("%s in %.1f s\n", good ? "ok" : "FAILED", seconds_now() - start);
  return good ? 0 : 1;
}

/* ---- Command line ---- */

static int list(void) {
  for (unsigned s = 0; s < SUITE_COUNT; s++)
    for (uint32_t i = 0; i < SUITES[s]->count; i++)
      printf("%-28s %s\n", SUITES[s]->scenario[i].name, SUITES[s]->scenario[i].about);
  return 0;
}

static const sim_scenario *find(const char *name) {
  for (unsigned s = 0; s < SUITE_COUNT; s++)
    for (uint32_t i = 0; i < SUITES[s]->count; i++)
      if (strcmp(SUITES[s]->scenario[i].name, name) == 0) return &SUITES[s]->scenario[i];
  return NULL;
}

static bool read_number(const char *text, uint64_t *number) {
  char *end;
  *number = strtoull(text, &end, 0);
  return *text && !*end;
}

static bool read_options(int count, char **argument, options *options) {
  if (count < 2) return false;
  options->command = argument[1];
  for (int i = 2; i < count; i++) {
    if (strcmp(argument[i], "--trace") == 0) {
      options->trace = true;
      continue;
    }
    if (strcmp(argument[i], "--stop") == 0) {
      options->stop = true;
      continue;
    }
    if (i + 1 == count) return false;
    const char *name = argument[i++];
    uint64_t *into = NULL;
    if (strcmp(name, "--seed") == 0) into = &options->seed, options->one = true;
    if (strcmp(name, "--seeds") == 0) into = &options->seeds;
    if (strcmp(name, "--from") == 0) into = &options->from;
    if (strcmp(name, "--scale") == 0) into = &options->scale;
    if (strcmp(name, "--jobs") == 0) into = &options->jobs;
    if (!into || !read_number(argument[i], into)) return false;
  }
  return options->jobs > 0 && options->jobs <= MAX_JOBS;
}

int main(int count, char **argument) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  options options = {.from = 1, .scale = 1, .jobs = cores > 0 && cores <= MAX_JOBS ? (uint64_t)cores : 1};
  if (!read_options(count, argument, &options)) {
    fprintf(stderr, "usage: simulate list | check [--scale K | --seeds COUNT] [--from N] [--jobs J] [--stop]\n"
                    "       simulate SCENARIO [--seed N [--trace]] [--seeds COUNT] [--from N] [--jobs J]\n");
    return 2;
  }
  if (strcmp(options.command, "list") == 0) return list();
  if (strcmp(options.command, "check") == 0) return check(&options);
  const sim_scenario *scenario = find(options.command);
  if (!scenario) {
    fprintf(stderr, "simulate: no scenario \"%s\"; `simulate list` names them\n", options.command);
    return 2;
  }
  if (options.one) return run_one(scenario, &options);
  sim_coverage sum = {0};
  return run_seeds(scenario, options.from, options.seeds ? options.seeds : scenario->seeds, options.jobs, &sum) ? 0 : 1;
}
