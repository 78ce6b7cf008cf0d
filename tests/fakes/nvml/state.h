/* What gate.c needs of state.c: the file's content, under the lock. */
#ifndef FAKE_NVML_STATE_H
#define FAKE_NVML_STATE_H

#include "fake.h"

#include <pthread.h>

enum { MAX_FAULTS = 64 };
struct fault { char line[200], function[80]; int gpu, code, after, times; double sleep_ms; bool hang, hold; };

extern pthread_mutex_t lock;
extern struct fault faults[MAX_FAULTS];
extern int gpu_count, fault_count, cuda_version, epoch;
extern char log_path[4096], driver_version[80], nvml_version[80];

void use(const char *state, const char *log);
void reload(void); /* if the file has changed */
bool is_missing(const char *function);
bool slot_listed(int gpu, int slot);
void copy(char *to, size_t size, const char *from); /* cut to size */
void give_up(const char *why, const char *what) __attribute__((noreturn));

#endif
