#define _GNU_SOURCE /* dl_iterate_phdr */
#include "kdp/process.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that cannot be written were never changed (there are no text relocations in position-independent code), so
   that their pages can be had again from the file. What was relocated and made read-only afterwards is in a writable
   segment. */
static int release(struct dl_phdr_info *object, size_t size, void *context) {
  uintptr_t page = *(const uintptr_t *)context;
  (void)size;
  if (strncmp(object->dlpi_name, "linux-", 6) == 0) return 0; /* the kernel's own, in no file */
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
    uintptr_t start = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    (void)madvise((void *)start, end - start, MADV_DONTNEED); /* refused: then they stay */
  }
  return 0;
}

void kdp_process_release_clean_pages(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  dl_iterate_phdr(release, &page);
}
