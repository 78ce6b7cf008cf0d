/* A libnvidia-ml.so.1 that is not there: what a driver would answer comes from a text file that a test rewrites while
 * the library is in use, and the faults are real: a call that hangs does hang, in C, on the thread that made it.
 *
 * Lines of the file ("#" begins a comment):
 *   gpus N | driver TEXT | nvml TEXT
 *   gpu I|* KEY VALUE          VALUE -1 = NOT_SUPPORTED, KEY as in defaults[], or field.ID for nvmlDeviceGetFieldValues
 *   fault FUNCTION|* [gpu=I] [code=N] [sleep_ms=N] [after=N] [hang] [hold]
 *     hang: until the line goes. hold: keeps the driver's lock meanwhile. after: from call N+1 on.
 *
 * Another entry point is a line in "The table" below; another reading a line in defaults[].
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
       GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999 };
enum { MAX_GPUS = 16, MAX_PAIRS = 96, MAX_FAULTS = 64, MAGIC = 0x6e766d6c };

struct pair { char key[40], text[96]; };
struct gpu { int count; struct pair pairs[MAX_PAIRS]; };
struct fault { char line[160], function[80]; int gpu, code, sleep_ms, after; bool hang, hold; };
struct device { uint32_t magic; int index; };

static const struct pair defaults[] = {
    {"name", "NVIDIA H200"}, {"architecture", "9"}, {"brand", "14"},
    {"util", "0"}, {"mem_util", "0"},
    {"mem_total", "150754820096"}, {"mem_reserved", "629145600"}, {"mem_used", "0"},
    {"temp", "40"}, {"power", "120000"}, {"limit", "700000"}, {"energy", "1000000"}, {"reasons", "1"}, {"supported_reasons", "511"},
    {"clock.0", "1980"}, {"clock.1", "1980"}, {"clock.2", "3201"}, {"clock.3", "1545"},
    {"clock_max.0", "1980"}, {"clock_max.1", "1980"}, {"clock_max.2", "3201"}, {"clock_max.3", "1545"},
    {"field.82", "44"}, {"field.74", "0"}, {"field.76", "0"}, {"field.269", "0"}, {"field.270", "0"}, {"field.271", "0"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, driver_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu gpus[MAX_GPUS];
static struct device devices[MAX_GPUS];
static struct fault faults[MAX_FAULTS];
static struct { char line[160]; int count; } hits[MAX_FAULTS]; /* kept over a reload */
static int gpu_count, fault_count, hit_count, init_count;
static char state_path[4096], log_path[4096], driver_version[80], nvml_version[80];
static struct stat loaded;

static void copy(char *to, size_t size, const char *from) { /* cut to size */
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = 0;
}

/* --- the state file ------------------------------------------------------------------------------------------- */

static void put(struct gpu *gpu, const char *key, const char *text) {
    int i = 0;
    while (i < gpu->count && strcmp(gpu->pairs[i].key, key)) i++;
    if (i == MAX_PAIRS) { fprintf(stderr, "fake nvml: too many attributes\n"); abort(); }
    if (i == gpu->count) gpu->count++;
    copy(gpu->pairs[i].key, sizeof gpu->pairs[i].key, key);
    copy(gpu->pairs[i].text, sizeof gpu->pairs[i].text, text);
}

static void parse_fault(const char *line) {
    char words[160], *save = NULL;
    if (fault_count == MAX_FAULTS) { fprintf(stderr, "fake nvml: too many faults\n"); abort(); }
    struct fault *f = &faults[fault_count++];
    *f = (struct fault){.gpu = -1};
    copy(f->line, sizeof f->line, line);
    copy(words, sizeof words, line);
    strtok_r(words, " ", &save);
    copy(f->function, sizeof f->function, strtok_r(NULL, " ", &save));
    for (char *word; (word = strtok_r(NULL, " ", &save));) {
        if (sscanf(word, "gpu=%d", &f->gpu) || sscanf(word, "code=%d", &f->code) ||
            sscanf(word, "sleep_ms=%d", &f->sleep_ms) || sscanf(word, "after=%d", &f->after)) continue;
        if (!strcmp(word, "hang")) f->hang = true;
        else if (!strcmp(word, "hold")) f->hold = true;
        else { fprintf(stderr, "fake nvml: what is %s?\n", word); abort(); }
    }
}

static void parse_line(const char *line) {
    char who[16], key[40], text[96];
    if (sscanf(line, "gpus %d", &gpu_count) == 1) return;
    if (sscanf(line, "driver %79s", driver_version) == 1) return;
    if (sscanf(line, "nvml %79s", nvml_version) == 1) return;
    if (!strncmp(line, "fault ", 6)) { parse_fault(line); return; }
    if (sscanf(line, "gpu %15s %39s %95[^\n]", who, key, text) == 3) {
        for (int i = 0; i < MAX_GPUS; i++)
            if (who[0] == '*' || atoi(who) == i) put(&gpus[i], key, text);
    } else if (line[0] && line[0] != '#') { fprintf(stderr, "fake nvml: can't read line: %s\n", line); abort(); }
}

static void reload(void) {
    struct stat now;
    char line[160], text[96];
    if (!state_path[0] && getenv("FAKE_NVML_STATE")) copy(state_path, sizeof state_path, getenv("FAKE_NVML_STATE"));
    if (!log_path[0] && getenv("FAKE_NVML_LOG")) copy(log_path, sizeof log_path, getenv("FAKE_NVML_LOG"));
    if (stat(state_path, &now) || (now.st_ino == loaded.st_ino && now.st_size == loaded.st_size &&
        now.st_mtim.tv_sec == loaded.st_mtim.tv_sec && now.st_mtim.tv_nsec == loaded.st_mtim.tv_nsec)) return;
    FILE *file = fopen(state_path, "r");
    if (!file) return;
    loaded = now;
    gpu_count = fault_count = 0;
    strcpy(driver_version, "580.95.05");
    strcpy(nvml_version, "13.580.95.05");
    for (int i = 0; i < MAX_GPUS; i++) {
        gpus[i].count = 0;
        for (size_t d = 0; d < sizeof defaults / sizeof *defaults; d++) put(&gpus[i], defaults[d].key, defaults[d].text);
        snprintf(text, sizeof text, "GPU-%08x-0000-4000-8000-%012x", 0xfa000000u + i, i); put(&gpus[i], "uuid", text);
        snprintf(text, sizeof text, "00000000:%02X:00.0", 0x10 + i); put(&gpus[i], "pci", text);
        snprintf(text, sizeof text, "165002200%04d", i); put(&gpus[i], "serial", text);
        snprintf(text, sizeof text, "%d", i); put(&gpus[i], "minor", text);
    }
    while (fgets(line, sizeof line, file)) { line[strcspn(line, "\n")] = 0; parse_line(line); }
    fclose(file);
}

/* Called by a test in the same process; a subprocess uses the environment. */
void fake_nvml_use(const char *state, const char *log) {
    pthread_mutex_lock(&lock);
    copy(state_path, sizeof state_path, state);
    copy(log_path, sizeof log_path, log);
    memset(&loaded, 0, sizeof loaded);
    hit_count = init_count = 0;
    pthread_mutex_unlock(&lock);
}

int fake_nvml_init_count(void) { return init_count; }

/* --- the gate that every call passes --------------------------------------------------------------------------- */

static void nap(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

static bool due(const struct fault *f) { /* under lock */
    int i = 0;
    if (!f->after) return true;
    while (i < hit_count && strcmp(hits[i].line, f->line)) i++;
    if (i == hit_count) {
        if (hit_count == MAX_FAULTS) return true;
        copy(hits[i].line, sizeof hits[i].line, f->line);
        hits[hit_count++].count = 0;
    }
    return ++hits[i].count > f->after;
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
    if (f->sleep_ms) nap(f->sleep_ms);
    while (f->hang && still_there(f->line)) nap(5);
    if (f->hold) pthread_mutex_unlock(&driver_lock);
    return f->code;
}

/* Log, state of the library and of the device, fault. device may be NULL for a call about the node. */
static int gate(const char *function, const struct device *device, bool needs_init) {
    struct fault hit = {.gpu = -1};
    bool faulty = false;
    int code = OK;
    pthread_mutex_lock(&driver_lock); /* waits while a fault holds it */
    pthread_mutex_unlock(&driver_lock);
    pthread_mutex_lock(&lock);
    reload();
    int index = device && device->magic == MAGIC ? device->index : -1;
    FILE *log = log_path[0] ? fopen(log_path, "a") : NULL;
    if (log) { fprintf(log, "%d %s %d\n", gettid(), function, index); fclose(log); }
    if (needs_init && !init_count) code = UNINITIALIZED;
    else if (device && device->magic != MAGIC) code = INVALID_ARGUMENT;
    else if (index >= gpu_count) code = GPU_IS_LOST;
    for (int i = 0; i < fault_count && !faulty; i++) {
        const struct fault *f = &faults[i];
        faulty = (!strcmp(f->function, "*") || !strcmp(f->function, function)) && (f->gpu < 0 || f->gpu == index) && due(f);
        if (faulty) hit = *f;
    }
    pthread_mutex_unlock(&lock);
    int suffered = faulty ? suffer(&hit) : OK;
    return suffered ? suffered : code;
}

static bool text_of(const struct device *device, const char *key, char *text, size_t size) {
    bool found = false;
    pthread_mutex_lock(&lock);
    const struct gpu *gpu = &gpus[device->index];
    for (int i = 0; i < gpu->count && !found; i++) {
        found = !strcmp(gpu->pairs[i].key, key) && strcmp(gpu->pairs[i].text, "-1");
        if (found) copy(text, size, gpu->pairs[i].text);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int number(const struct device *device, const char *key, uint64_t *value) {
    char text[96];
    if (!text_of(device, key, text, sizeof text)) return NOT_SUPPORTED;
    *value = strtoull(text, NULL, 10);
    return OK;
}

static int string(const struct device *device, const char *key, char *buffer, unsigned size) {
    char text[96];
    if (!text_of(device, key, text, sizeof text)) return NOT_SUPPORTED;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

static int numbered(const struct device *device, const char *key, unsigned which, unsigned *value) {
    char full[40];
    uint64_t wide;
    snprintf(full, sizeof full, "%s.%u", key, which);
    int code = number(device, full, &wide);
    if (!code) *value = (unsigned)wide;
    return code;
}

/* --- The table: one entry point a line ------------------------------------------------------------------------- */

#define D const struct device *device
#define GATE(needs) int code = gate(__func__, needs, true); if (code) return code
#define NUMBER(NAME, TYPE, KEY) \
    int NAME(D, TYPE *value) { GATE(device); uint64_t wide = 0; code = number(device, KEY, &wide); \
                               *value = (TYPE)wide; return code; }
#define STRING(NAME, KEY) int NAME(D, char *buffer, unsigned size) { GATE(device); return string(device, KEY, buffer, size); }
#define NUMBERED(NAME, KEY) \
    int NAME(D, unsigned which, unsigned *value) { GATE(device); return numbered(device, KEY, which, value); }

STRING(nvmlDeviceGetName, "name")
STRING(nvmlDeviceGetUUID, "uuid")
STRING(nvmlDeviceGetSerial, "serial")
NUMBER(nvmlDeviceGetMinorNumber, unsigned, "minor")
NUMBER(nvmlDeviceGetBrand, unsigned, "brand")
NUMBER(nvmlDeviceGetArchitecture, unsigned, "architecture")
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, uint64_t, "energy")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, "reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, "reasons")
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, uint64_t, "supported_reasons")
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, uint64_t, "supported_reasons")
NUMBERED(nvmlDeviceGetClockInfo, "clock")
NUMBERED(nvmlDeviceGetMaxClockInfo, "clock_max")

/* --- The rest, each with a shape of its own -------------------------------------------------------------------- */

int nvmlInitWithFlags(unsigned flags) {
    int code = gate(__func__, NULL, false);
    if (code || flags) return code ? code : INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    init_count++;
    for (int i = 0; i < MAX_GPUS; i++) devices[i] = (struct device){MAGIC, i};
    pthread_mutex_unlock(&lock);
    return OK;
}

int nvmlShutdown(void) {
    GATE(NULL);
    pthread_mutex_lock(&lock);
    init_count--;
    pthread_mutex_unlock(&lock);
    return OK;
}

const char *nvmlErrorString(int code) { return code == UNKNOWN ? "Unknown Error" : "an error of the fake"; }

static int node_text(const char *text, char *buffer, unsigned size) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned size) { GATE(NULL); return node_text(driver_version, buffer, size); }
int nvmlSystemGetNVMLVersion(char *buffer, unsigned size) { GATE(NULL); return node_text(nvml_version, buffer, size); }
int nvmlDeviceGetCount_v2(unsigned *count) { GATE(NULL); *count = (unsigned)gpu_count; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
    bool known = index < (unsigned)gpu_count;
    GATE(known ? &devices[index] : NULL);
    if (!known) return INVALID_ARGUMENT;
    *device = &devices[index];
    return OK;
}

static int find(const char *key, const char *wanted, struct device **device) {
    char text[96];
    for (int i = 0; i < gpu_count; i++)
        if (text_of(&devices[i], key, text, sizeof text) && !strcmp(text, wanted)) { *device = &devices[i]; return OK; }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device) { GATE(NULL); return find("uuid", uuid, device); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device) { GATE(NULL); return find("pci", pci, device); }
int nvmlDeviceGetIndex(D, unsigned *index) { GATE(device); *index = (unsigned)device->index; return OK; }

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };
_Static_assert(sizeof(struct pci) == 68, "ABI");
int nvmlDeviceGetPciInfo_v3(D, struct pci *pci) {
    GATE(device);
    memset(pci, 0, sizeof *pci);
    code = string(device, "pci", pci->bus_id, sizeof pci->bus_id);
    if (code) return code;
    sscanf(pci->bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    memcpy(pci->legacy, pci->bus_id + 4, 12);
    pci->device_id = 0x233510de;
    return OK;
}

struct memory { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
_Static_assert(sizeof(struct memory_v2) == 40, "ABI");
static int memory_of(D, uint64_t *total, uint64_t *reserved, uint64_t *used) {
    int code = number(device, "mem_total", total);
    if (!code) code = number(device, "mem_reserved", reserved);
    return code ? code : number(device, "mem_used", used);
}
int nvmlDeviceGetMemoryInfo_v2(D, struct memory_v2 *memory) {
    GATE(device);
    if (memory->version != (sizeof *memory | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    code = memory_of(device, &memory->total, &memory->reserved, &memory->used);
    if (!code) memory->free = memory->total - memory->reserved - memory->used;
    return code;
}
int nvmlDeviceGetMemoryInfo(D, struct memory *memory) { /* v1 counts what is reserved as used */
    GATE(device);
    uint64_t reserved;
    code = memory_of(device, &memory->total, &reserved, &memory->used);
    if (!code) memory->used += reserved, memory->free = memory->total - memory->used;
    return code;
}

struct utilization { unsigned gpu, memory; };
_Static_assert(sizeof(struct utilization) == 8, "ABI");
int nvmlDeviceGetUtilizationRates(D, struct utilization *rates) {
    GATE(device);
    uint64_t gpu, memory;
    code = number(device, "util", &gpu);
    if (!code) code = number(device, "mem_util", &memory);
    if (!code) *rates = (struct utilization){(unsigned)gpu, (unsigned)memory};
    return code;
}

int nvmlDeviceGetTemperature(D, unsigned sensor, unsigned *celsius) {
    GATE(device);
    uint64_t wide;
    if (sensor) return INVALID_ARGUMENT;
    code = number(device, "temp", &wide);
    if (!code) *celsius = (unsigned)wide;
    return code;
}

struct temperature { unsigned version, sensor; int celsius; };
_Static_assert(sizeof(struct temperature) == 12, "ABI");
int nvmlDeviceGetTemperatureV(D, struct temperature *temperature) {
    GATE(device);
    uint64_t wide;
    if (temperature->version != (sizeof *temperature | 1u << 24)) return ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensor) return INVALID_ARGUMENT;
    code = number(device, "temp", &wide);
    if (!code) temperature->celsius = (int)wide;
    return code;
}

struct field { unsigned id, scope; int64_t timestamp_us, latency_us; unsigned type; int code; uint64_t value; };
_Static_assert(sizeof(struct field) == 40, "ABI");
int nvmlDeviceGetFieldValues(D, int count, struct field *fields) { /* the memory temperature is an unsigned int */
    GATE(device);
    for (int i = 0; i < count; i++) {
        struct field *f = &fields[i];
        char key[40];
        snprintf(key, sizeof key, "field.%u", f->id);
        f->type = f->id == 82 ? 1 : 3;
        f->latency_us = 1;
        f->code = number(device, key, &f->value);
    }
    return OK;
}
