/* The gate that every call passes: log, faults, handles. And the calls that are about the node. */
#define _GNU_SOURCE
#include "state.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x6e766d6c, MAX_HITS = 1024 };

static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device cards[MAX_GPUS], mig_devices[MAX_GPUS][MAX_SLOTS];
static struct { char line[200]; int count; } hits[MAX_HITS]; /* kept over a reload */
static int hit_count, hits_epoch, counters[COUNTERS];

struct device *card(int gpu) { return &cards[gpu]; }
struct device *mig_device(int gpu, int slot) { return &mig_devices[gpu][slot]; }

/* Called by a test in the same process; a subprocess uses the environment. */
void fake_nvml_use(const char *state, const char *log) {
    pthread_mutex_lock(&lock);
    use(state, log);
    memset(counters, 0, sizeof counters);
    hit_count = 0;
    pthread_mutex_unlock(&lock);
}

int fake_nvml_count(int which) { return count(which, 0); }

int count(enum counter which, int add) {
    pthread_mutex_lock(&lock);
    int sum = counters[which] += add;
    pthread_mutex_unlock(&lock);
    return sum;
}

void nap_ms(double ms) {
    long nanoseconds = (long)(ms * 1e6);
    nanosleep(&(struct timespec){nanoseconds / 1000000000L, nanoseconds % 1000000000L}, NULL);
}

int64_t now_us(bool since_boot) {
    struct timespec now;
    clock_gettime(since_boot ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static bool due(const struct fault *f) { /* under lock */
    int i = 0;
    if (!f->after && !f->times) return true;
    if (hits_epoch != epoch) hit_count = 0, hits_epoch = epoch;
    while (i < hit_count && strcmp(hits[i].line, f->line)) i++;
    if (i == hit_count) {
        if (hit_count == MAX_HITS) give_up("too many counted faults", f->line);
        copy(hits[i].line, sizeof hits[i].line, f->line);
        hits[hit_count++].count = 0;
    }
    int call = ++hits[i].count;
    return call > f->after && (!f->times || call <= f->after + f->times);
}

static bool still_there(const char *line) {
    bool found = false;
    pthread_mutex_lock(&lock);
    reload();
    for (int i = 0; i < fault_count; i++) found = found || !strcmp(faults[i].line, line);
    pthread_mutex_unlock(&lock);
    return found;
}

static int suffer(const struct fault *f) {
    if (f->hold) pthread_mutex_lock(&driver_lock);
    if (f->sleep_ms > 0) nap_ms(f->sleep_ms);
    while (f->hang && still_there(f->line)) nap_ms(5);
    if (f->hold) pthread_mutex_unlock(&driver_lock);
    return f->code;
}

static bool concerns(const struct fault *f, const char *function, int gpu) {
    return (!strcmp(f->function, "*") || !strcmp(f->function, function)) && (f->gpu < 0 || f->gpu == gpu);
}

static int standing(const char *function, const struct device *device, int gpu) { /* under lock */
    if (is_missing(function)) return FUNCTION_NOT_FOUND;
    if (!counters[INITS] && strcmp(function, "nvmlInitWithFlags")) return UNINITIALIZED;
    if (device && gpu < 0) return INVALID_ARGUMENT;
    if (gpu >= gpu_count) return GPU_IS_LOST;
    bool taken_away = device && device->slot >= 0 && !slot_listed(gpu, device->slot);
    return taken_away ? INVALID_ARGUMENT : OK;
}

int gate(const char *function, const struct device *device) {
    struct fault hit = {.gpu = -1};
    bool faulty = false;
    pthread_mutex_lock(&driver_lock); /* waits while a fault holds it */
    pthread_mutex_unlock(&driver_lock);
    pthread_mutex_lock(&lock);
    reload();
    int gpu = device && device->magic == MAGIC ? device->gpu : -1;
    FILE *log = log_path[0] ? fopen(log_path, "a") : NULL;
    if (log) { fprintf(log, "%d %s %d\n", gettid(), function, gpu); fclose(log); }
    int code = standing(function, device, gpu);
    for (int i = 0; i < fault_count && !faulty; i++) {
        faulty = concerns(&faults[i], function, gpu) && due(&faults[i]);
        if (faulty) hit = faults[i];
    }
    pthread_mutex_unlock(&lock);
    int suffered = faulty ? suffer(&hit) : OK;
    return suffered ? suffered : code;
}

int standing_fault(const char *function) {
    struct fault hit = {.gpu = -1};
    bool faulty = false;
    pthread_mutex_lock(&lock);
    reload();
    int code = counters[INITS] ? OK : UNINITIALIZED;
    for (int i = 0; i < fault_count && !faulty; i++) {
        faulty = concerns(&faults[i], function, -1) && !faults[i].after && !faults[i].times;
        if (faulty) hit = faults[i];
    }
    pthread_mutex_unlock(&lock);
    int suffered = faulty ? suffer(&hit) : OK;
    return suffered ? suffered : code;
}

/* --- the node -------------------------------------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) {
    GATE(NULL);
    if (flags) return INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    counters[INITS]++;
    for (int i = 0; i < MAX_GPUS; i++) {
        cards[i] = (struct device){MAGIC, i, -1};
        for (int s = 0; s < MAX_SLOTS; s++) mig_devices[i][s] = (struct device){MAGIC, i, s};
    }
    pthread_mutex_unlock(&lock);
    return OK;
}

int nvmlShutdown(void) { GATE(NULL); count(INITS, -1); return OK; }

static int node_text(const char *text, char *buffer, unsigned size) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned size) { GATE(NULL); return node_text(driver_version, buffer, size); }
int nvmlSystemGetNVMLVersion(char *buffer, unsigned size) { GATE(NULL); return node_text(nvml_version, buffer, size); }
int nvmlSystemGetCudaDriverVersion(int *version) { GATE(NULL); *version = cuda_version; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { GATE(NULL); *version = cuda_version; return OK; }
int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size) { GATE(NULL); return process_name(pid, name, size); }

const char *nvmlErrorString(int code) {
    static const char *const strings[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized",
        "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
        "GPU access blocked by the operating system", "Driver/library version mismatch", "In use by another client",
        "Insufficient Memory", "No data", "The requested vgpu operation is not available on target device because ECC is enabled",
        "Insufficient Resources", "Freq Not Supported", "Argument Version Mismatch", "Deprecated", "Not Ready", "GPU Not Found",
        "Invalid State",
    };
    return code >= 0 && code < (int)(sizeof strings / sizeof *strings) ? strings[code] : "Unknown Error";
}
