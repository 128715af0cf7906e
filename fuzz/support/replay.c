/* Runs a harness over files and the files of folders: the committed corpora in ordinary tests, a crash by hand. */
#include <dirent.h>

#include "support/script.h"

static unsigned long inputs;

static void replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  long size = ftell(file);
  CHECK(size >= 0);
  rewind(file);
  uint8_t *bytes = malloc((size_t)size);
  CHECK(bytes != NULL || size == 0);
  CHECK(fread(bytes, 1, (size_t)size, file) == (size_t)size);
  fclose(file);
  fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
  LLVMFuzzerTestOneInput(bytes, (size_t)size);
  free(bytes);
  inputs++;
}

static void replay(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) {
    replay_file(path);
    return;
  }
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    CHECK(snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < (int)sizeof name);
    replay_file(name);
  }
  closedir(folder);
}

int main(int count, char **argument) {
  for (int i = 1; i < count; i++)
    replay(argument[i]);
  printf("%lu inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}
