/* What the parts of the fake library share. The state file is described in state.c. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10,
       FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15, MEMORY = 20, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };
enum { MAX_GPUS = 16, MAX_SLOTS = 8, MAX_LINKS = 36, EVERY = -1 };

struct device { uint32_t magic; int gpu, slot; }; /* slot: of a MIG device, -1 for the card */
struct process { int gpu; unsigned pid; uint64_t bytes; char kind; unsigned sm, memory, gi, ci; };
struct event { uint64_t seq; int gpu; uint64_t type, data; unsigned gi, ci; };

/* --- gate.c and state.c --- */

/* Log, state of the library and of the device, fault. device is NULL for a call about the node. */
int gate(const char *function, const struct device *device);
/* A fault that holds without after= or times=, for a call that waits. */
int standing_fault(const char *function);
void nap_ms(double ms);

/* The value of KEY@SCOPE, else of KEY; scope EVERY asks for KEY only. A MIG device has the card's keys mig.SLOT.KEY. */
int text_of(const struct device *device, const char *key, int scope, char *text, size_t size);
int scoped(const struct device *device, const char *key, int scope, uint64_t *value);
int real(const struct device *device, const char *key, double *value);
int number(const struct device *device, const char *key, uint64_t *value);
int numbered(const struct device *device, const char *key, unsigned which, uint64_t *value); /* KEY.WHICH */
int string(const struct device *device, const char *key, char *buffer, unsigned size);

int gpu_total(void);
struct device *card(int gpu);
struct device *mig_device(int gpu, int slot);
bool slot_used(int gpu, int slot);
double gpm_shortest_ms(void);
int process_at(int position, struct process *process); /* OK, or NOT_FOUND beyond the last */
int event_after(uint64_t seq, struct event *event);    /* the next one in order, or NOT_FOUND */
uint64_t last_event(void);
int process_name(unsigned pid, char *buffer, unsigned size);
int link_fault(const struct device *device, unsigned link); /* links.c: beyond the last link */
bool mig_on(const struct device *device);                    /* parts.c: a card that is split */
int64_t now_us(bool since_boot);

/* What a test counts, e.g. live samples; count() adds and answers the sum. */
enum counter { INITS, SAMPLES, EVENT_SETS, GPM_OVERLAPS, COUNTERS };
int count(enum counter which, int add);

/* --- one entry point a line --- */

#define D const struct device *device
#define GATE(needs) int code = gate(__func__, needs); if (code) return code
#define GIVE(target, TYPE) return code ? code : (*(target) = (TYPE)wide, OK)
#define NUMBER(NAME, TYPE, KEY) \
    int NAME(D, TYPE *value) { GATE(device); uint64_t wide = 0; code = number(device, KEY, &wide); GIVE(value, TYPE); }
#define STRING(NAME, KEY) int NAME(D, char *buffer, unsigned size) { GATE(device); return string(device, KEY, buffer, size); }
#define NUMBERED(NAME, KEY) \
    int NAME(D, unsigned which, unsigned *value) { \
        GATE(device); uint64_t wide = 0; code = numbered(device, KEY, which, &wide); GIVE(value, unsigned); }
#define PAIR(NAME, ONE, OTHER) \
    int NAME(D, unsigned *one, unsigned *other) { \
        GATE(device); uint64_t first = 0, wide = 0; code = number(device, ONE, &first); \
        if (!code) code = number(device, OTHER, &wide); \
        *one = (unsigned)first; GIVE(other, unsigned); }

#endif
