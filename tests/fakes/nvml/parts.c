/* What runs on a device or is made of it: processes, MIG devices, profiling samples, events. */
#include "fake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- processes --------------------------------------------------------------------------------------------------- */

struct process_info { unsigned pid; uint64_t bytes; unsigned gi, ci; };
struct process_use { unsigned pid; uint64_t at_us; unsigned sm, memory, encoder, decoder; };
_Static_assert(sizeof(struct process_info) == 24 && sizeof(struct process_use) == 32, "ABI");

static bool runs_on(D, const struct process *p) {
    uint64_t gi = UINT32_MAX;
    if (device->slot >= 0) number(device, "gi", &gi);
    return p->gpu == device->gpu && (device->slot < 0 || p->gi == gi);
}

static int running(D, char kind, unsigned *count, struct process_info *infos) {
    unsigned room = infos ? *count : 0, found = 0;
    struct process p;
    for (int i = 0; !process_at(i, &p); i++) {
        if (p.kind != kind || !runs_on(device, &p)) continue;
        if (found < room) infos[found] = (struct process_info){p.pid, p.bytes, p.gi, p.ci};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

#define RUNNING(NAME, KIND) \
    int NAME(D, unsigned *count, struct process_info *infos) { GATE(device); return running(device, KIND, count, infos); }
RUNNING(nvmlDeviceGetComputeRunningProcesses_v2, 'C')
RUNNING(nvmlDeviceGetComputeRunningProcesses_v3, 'C')
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G')
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G')
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M')
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M')

int nvmlDeviceGetProcessUtilization(D, struct process_use *uses, unsigned *count, uint64_t last_seen_us) {
    GATE(device);
    unsigned room = uses ? *count : 0, found = 0;
    uint64_t now = (uint64_t)now_us(false);
    struct process p;
    if (mig_on(device)) return NOT_SUPPORTED;
    for (int i = 0; now > last_seen_us && !process_at(i, &p); i++) {
        if (!runs_on(device, &p) || !(p.sm || p.memory)) continue;
        if (found < room) uses[found] = (struct process_use){p.pid, now, p.sm, p.memory, 0, 0};
        found++;
    }
    *count = found;
    return !found ? NOT_FOUND : found > room ? INSUFFICIENT_SIZE : OK;
}

/* --- MIG --------------------------------------------------------------------------------------------------------- */

bool mig_on(D) {
    uint64_t mode = 0;
    return device->slot < 0 && !number(device, "mig", &mode) && mode == 1;
}

int nvmlDeviceGetMigMode(D, unsigned *current, unsigned *pending) {
    GATE(device);
    uint64_t now = 0, then = 0;
    code = number(device, "mig", &now);
    if (code) return code;
    if (number(device, "mig_pending", &then)) then = now;
    *current = (unsigned)now, *pending = (unsigned)then;
    return OK;
}

NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, "mig_max")
NUMBER(nvmlDeviceGetGpuInstanceId, unsigned, "gi")
NUMBER(nvmlDeviceGetComputeInstanceId, unsigned, "ci")

int nvmlDeviceIsMigDeviceHandle(D, unsigned *is_mig) { GATE(device); *is_mig = device->slot >= 0; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(D, unsigned index, struct device **mig) {
    GATE(device);
    uint64_t max = 0;
    code = number(device, "mig_max", &max);
    if (code) return code;
    if (device->slot >= 0 || index >= max || index >= MAX_SLOTS) return INVALID_ARGUMENT;
    if (!mig_on(device) || !slot_used(device->gpu, (int)index)) return NOT_FOUND;
    *mig = mig_device(device->gpu, (int)index);
    return OK;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(D, struct device **parent) {
    GATE(device);
    if (device->slot < 0) return INVALID_ARGUMENT;
    *parent = card(device->gpu);
    return OK;
}

struct attributes { unsigned sms, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices; uint64_t megabytes; };
_Static_assert(sizeof(struct attributes) == 40, "ABI");
int nvmlDeviceGetAttributes_v2(D, struct attributes *attributes) {
    GATE(device);
    uint64_t sms, slices, bytes;
    if (device->slot < 0) return NOT_SUPPORTED;
    code = number(device, "sms", &sms);
    if (!code) code = number(device, "slices", &slices);
    if (!code) code = number(device, "mem_total", &bytes);
    if (!code) *attributes = (struct attributes){.sms = (unsigned)sms, .copy_engines = 1, .decoders = 1, .jpegs = 1,
        .gpu_slices = (unsigned)slices, .compute_slices = (unsigned)slices, .megabytes = bytes >> 20};
    return code;
}

/* --- profiling (GPM): never two calls at once, as the real one may crash then ---------------------------------------- */

enum { MAX_SAMPLES = 512, SAMPLE = 0x73616d70 };
struct sample { uint32_t magic; const struct device *device; int64_t at_us; };
struct metric { unsigned id; int code; double value; const char *texts[3]; };
struct metrics { unsigned version, count; struct sample *first, *second; struct metric metrics[]; };
struct support { unsigned version, supported; };
_Static_assert(sizeof(struct metric) == 40 && sizeof(struct metrics) == 24 && sizeof(struct support) == 8, "ABI");

static struct sample samples[MAX_SAMPLES];
static int inside;

static void enter_gpm(const char *function) {
    if (!__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) return;
    count(GPM_OVERLAPS, 1);
    fprintf(stderr, "fake nvml: %s while another GPM call is in progress\n", function);
}

static void leave_gpm(const int *unused) { (void)unused; __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST); }

#define GPM __attribute__((cleanup(leave_gpm))) const int alone = 0; (void)alone; enter_gpm(__func__)

int nvmlGpmQueryDeviceSupport(D, struct support *support) {
    GPM; GATE(device);
    uint64_t yes = 0;
    if (support->version != 1) return ARGUMENT_VERSION_MISMATCH;
    code = number(device, "gpm", &yes);
    if (!code) support->supported = (unsigned)yes;
    return code;
}

int nvmlGpmSampleAlloc(struct sample **sample) {
    GPM; GATE(NULL);
    int i = 0;
    while (i < MAX_SAMPLES && samples[i].magic == SAMPLE) i++;
    if (i == MAX_SAMPLES) return MEMORY;
    samples[i] = (struct sample){.magic = SAMPLE};
    *sample = &samples[i];
    count(SAMPLES, 1);
    return OK;
}

int nvmlGpmSampleFree(struct sample *sample) {
    GPM; GATE(NULL);
    if (sample->magic != SAMPLE) return INVALID_ARGUMENT;
    sample->magic = 0;
    count(SAMPLES, -1);
    return OK;
}

static int take(D, struct sample *sample) {
    uint64_t yes = 0;
    if (sample->magic != SAMPLE) return INVALID_ARGUMENT;
    if (number(card(device->gpu), "gpm", &yes) || !yes) return NOT_SUPPORTED;
    sample->device = device;
    sample->at_us = now_us(true);
    return OK;
}

int nvmlGpmSampleGet(D, struct sample *sample) { GPM; GATE(device); return take(device, sample); }

int nvmlGpmMigSampleGet(D, unsigned gi, struct sample *sample) {
    GPM; GATE(device);
    uint64_t wide;
    for (int slot = 0; slot < MAX_SLOTS; slot++) {
        const struct device *mig = mig_device(device->gpu, slot);
        if (!number(mig, "gi", &wide) && wide == gi) return take(mig, sample);
    }
    return NOT_FOUND;
}

int nvmlGpmMetricsGet(struct metrics *all) {
    GPM; GATE(NULL);
    const struct sample *first = all->first, *second = all->second;
    if (all->version != 1) return ARGUMENT_VERSION_MISMATCH;
    if (!first || !second || first->magic != SAMPLE || second->magic != SAMPLE) return INVALID_ARGUMENT;
    if (!first->at_us || !second->at_us || first->device != second->device) return INVALID_ARGUMENT;
    if ((double)(second->at_us - first->at_us) < 1e3 * gpm_shortest_ms()) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < all->count; i++) {
        struct metric *m = &all->metrics[i];
        char key[48];
        snprintf(key, sizeof key, "gpm.%u", m->id);
        m->value = 0;
        m->code = real(second->device, key, &m->value);
    }
    return OK;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

enum { MAX_SETS = 64, SET = 0x73657473 };
struct set { uint32_t magic; uint64_t seen, masks[MAX_GPUS]; };
struct event_data { struct device *device; uint64_t type, data; unsigned gi, ci; };
_Static_assert(sizeof(struct event_data) == 32, "ABI");

static struct set sets[MAX_SETS];

NUMBER(nvmlDeviceGetSupportedEventTypes, uint64_t, "events")

int nvmlEventSetCreate(struct set **set) {
    GATE(NULL);
    int i = 0;
    while (i < MAX_SETS && sets[i].magic == SET) i++;
    if (i == MAX_SETS) return MEMORY;
    sets[i] = (struct set){.magic = SET, .seen = last_event()};
    *set = &sets[i];
    count(EVENT_SETS, 1);
    return OK;
}

int nvmlEventSetFree(struct set *set) {
    GATE(NULL);
    if (set->magic != SET) return INVALID_ARGUMENT;
    set->magic = 0;
    count(EVENT_SETS, -1);
    return OK;
}

int nvmlDeviceRegisterEvents(D, uint64_t mask, struct set *set) {
    GATE(device);
    uint64_t supported = 0;
    code = number(device, "events", &supported);
    if (code) return code;
    if (set->magic != SET) return INVALID_ARGUMENT;
    if (mask & ~supported) return NOT_SUPPORTED;
    set->masks[device->gpu] |= mask;
    return OK;
}

static bool deliver(struct set *set, struct event_data *data) {
    struct event e;
    while (!event_after(set->seen, &e)) {
        set->seen = e.seq;
        if (e.gpu < 0 || e.gpu >= MAX_GPUS || !(set->masks[e.gpu] & e.type)) continue;
        *data = (struct event_data){card(e.gpu), e.type, e.data, e.gi, e.ci};
        return true;
    }
    return false;
}

int nvmlEventSetWait_v2(struct set *set, struct event_data *data, unsigned timeout_ms) {
    GATE(NULL);
    int64_t until = now_us(true) + 1000ll * timeout_ms;
    if (set->magic != SET) return INVALID_ARGUMENT;
    while (!deliver(set, data)) {
        if (now_us(true) >= until) return TIMEOUT;
        nap_ms(2);
        code = standing_fault(__func__);
        if (code) return code;
    }
    return OK;
}
