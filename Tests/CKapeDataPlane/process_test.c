/* Pages of code given back to the system come back when they are needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kdp/aead.h"
#include "kdp/process.h"

static long resident_file_pages(void) {
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  char line[256];
  long kib = -1;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "RssFile: %ld", &kib) == 1) break;
  assert_int_equal(fclose(file), 0);
  return kib;
}

static void self_tests(void) {
  kdp_host host = kdp_host_default();
  kdp_aead_worker *worker = NULL;
  assert_int_equal(kdp_aead_worker_choose(NULL, &host, &worker), KDP_OK); /* runs them */
  kdp_aead_worker_destroy(worker);
}

static void what_ran_once_is_not_paid_for_any_more_and_runs_again(void **state) {
  (void)state;
  self_tests();
  long before = resident_file_pages();
  kdp_process_release_clean_pages();
  long after = resident_file_pages();
  assert_true(before > 0 && after > 0);
  assert_true(after < before);
  self_tests();
  kdp_process_release_clean_pages();
  self_tests();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_ran_once_is_not_paid_for_any_more_and_runs_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
