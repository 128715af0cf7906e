/* kdp/process.h: what a program that runs a tunnel can do about its own process. Linux. */
#ifndef KDP_PROCESS_H
#define KDP_PROCESS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unmaps the pages of code and constants of the program and its libraries, as they are in their files: those that are
   still needed come back by themselves, a minor fault each. For after something large that runs once (starting, the
   self tests of ciphers): the process is then charged for what it uses. Any thread, at any time. */
void kdp_process_release_clean_pages(void);

#ifdef __cplusplus
}
#endif
#endif
