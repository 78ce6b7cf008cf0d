/* A libnvidia-ml.so.1 that is not there: what a driver would answer comes from a text file that a test rewrites while
 * the library is in use, and the faults are real: a call that hangs does hang, in C, on the thread that made it.
 *
 * Lines of the file ("#" begins a comment; a later line wins):
 *   gpus N | driver TEXT | nvml TEXT | cuda NUMBER     the node
 *   gpu I|* KEY VALUE          KEY as in defaults[]; KEY@SCOPE for one link or peer; mig.SLOT.KEY for a MIG device, which
 *                              exists when it has mig.SLOT.uuid; field.ID for what has no other key; gpm.ID a GPM metric.
 *                              VALUE -1 = NOT_SUPPORTED, !N = error code N
 *   gpu I|* proc PID BYTES [KIND SM MEM GI CI]         a process: KIND C, G or M(PS), SM and MEM in %, BYTES -1 unknown
 *   name PID TEXT              what nvmlSystemGetProcessName answers
 *   event SEQ I TYPE DATA [GI CI]                      delivered once to each event set made before the line came
 *   gpm_shortest_ms N          samples closer than this (100) make no metric
 *   epoch N                    another one begins to count after= and times= anew
 *   missing FUNCTION           as in an older library: FUNCTION_NOT_FOUND
 *   fault FUNCTION|* [gpu=I] [code=N] [sleep_ms=X] [after=N] [times=N] [hang] [hold]
 *     hang: until the line goes. hold: keeps the driver's lock meanwhile. after: from call N+1 on, times: N calls only.
 */
#define _GNU_SOURCE
#include "state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_PAIRS = 1024, MAX_PROCESSES = 16384, MAX_EVENTS = 4096, MAX_NAMES = 256 };

struct pair { char key[48], text[96]; };
struct gpu { int count; struct pair pairs[MAX_PAIRS]; };
struct name { unsigned pid; char text[96]; };

static const struct pair defaults[] = { /* an idle H200 in a healthy node */
    {"name", "NVIDIA H200"}, {"architecture", "9"}, {"brand", "14"}, {"capability_major", "9"}, {"capability_minor", "0"},
    {"vbios", "96.00.99.00.01"}, {"pci_device_id", "590680286"}, {"virtualization", "0"}, {"addressing_mode", "0"},
    {"persistence", "1"}, {"compute_mode", "0"}, {"pstate", "0"},
    {"util", "0"}, {"mem_util", "0"}, {"encoder", "0"}, {"decoder", "0"}, {"jpg", "0"}, {"ofa", "0"}, {"fan", "-1"},
    {"mem_total", "150754820096"}, {"mem_reserved", "629145600"}, {"mem_used", "0"},
    {"bar1_total", "274877906944"}, {"bar1_used", "1048576"},
    {"temp", "40"}, {"threshold.0", "92"}, {"threshold.1", "89"}, {"threshold.2", "95"}, {"threshold.3", "87"}, {"margin", "47"},
    {"power", "120000"}, {"limit", "700000"}, {"limit_default", "700000"}, {"limit_min", "200000"}, {"limit_max", "700000"},
    {"energy", "1000000"}, {"reasons", "1"}, {"supported_reasons", "511"},
    {"clock.0", "1980"}, {"clock.1", "1980"}, {"clock.2", "3201"}, {"clock.3", "1545"},
    {"clock_max.0", "1980"}, {"clock_max.1", "1980"}, {"clock_max.2", "3201"}, {"clock_max.3", "1545"},
    {"pcie_gen", "5"}, {"pcie_gen_max", "5"}, {"pcie_gen_gpu_max", "5"}, {"pcie_width", "16"}, {"pcie_width_max", "16"},
    {"pcie_speed", "32000"}, {"pcie_replay", "0"}, {"pcie_kbps.0", "0"}, {"pcie_kbps.1", "0"}, {"pcie_sample_ms", "20"},
    {"ecc_mode", "1"}, {"ecc.0.0", "0"}, {"ecc.0.1", "0"}, {"ecc.1.0", "0"}, {"ecc.1.1", "0"}, /* .type.counter */
    {"ecc_at.0.0", "0"}, {"ecc_at.0.1", "0"}, {"ecc_at.1.0", "0"}, {"ecc_at.1.1", "0"},        /* @location */
    {"rows.correctable", "0"}, {"rows.uncorrectable", "0"}, {"rows.pending", "0"}, {"rows.failure", "0"},
    {"rows.max", "3072"}, {"rows.high", "0"}, {"rows.partial", "0"}, {"rows.low", "0"}, {"rows.none", "0"},
    {"retired.0", "-1"}, {"retired.1", "-1"}, {"retired_pending", "-1"}, /* rows took the place of pages with Ampere */
    {"mig", "0"}, {"mig_max", "7"},
    {"nvlinks", "18"}, {"nvlink", "1"}, {"nvlink_version", "6"}, {"nvlink_speed", "26562"}, {"nvlink_beyond", "!3"},
    {"nvlink_type", "2"}, {"nvlink_pci", "00000000:C0:00.0"}, {"nvlink_capability", "1"},
    {"nvlink_error.0", "0"}, {"nvlink_error.1", "0"}, {"nvlink_error.2", "0"}, {"nvlink_error.3", "0"},
    {"cpus", "0-15"}, {"numa_node", "-1"}, {"memory_node", "0"},
    {"p2p.0", "0"}, {"p2p.1", "0"}, {"p2p.2", "0"}, {"p2p.3", "0"}, {"p2p.4", "0"},
    {"fabric_state", "3"}, {"fabric_status", "0"}, {"fabric_clique", "0"}, {"fabric_health", "0"},
    {"recovery_action", "0"}, {"events", "415"}, {"latency_us", "1"},
    {"gpm", "1"}, {"gpm.1", "0"}, {"gpm.2", "0"}, {"gpm.3", "0"}, {"gpm.4", "0"}, {"gpm.5", "0"}, {"gpm.6", "0"}, {"gpm.7", "0"},
    {"gpm.9", "0"}, {"gpm.10", "0"}, {"gpm.11", "0"}, {"gpm.12", "0"}, {"gpm.13", "0"}, {"gpm.20", "0"}, {"gpm.21", "0"},
    {"gpm.60", "0"}, {"gpm.61", "0"},
    {"field.74", "0"}, {"field.76", "0"}, {"field.82", "44"}, {"field.269", "0"}, {"field.270", "0"}, {"field.271", "0"},
    {"field.95", "0"}, {"field.138", "0"}, {"field.139", "0"}, {"field.140", "0"}, {"field.141", "0"},
    {"field.161", "0"}, {"field.162", "0"}, {"field.163", "0"}, {"field.169", "0"}, {"field.173", "0"}, {"field.174", "0"},
    {"field.175", "0"}, {"field.176", "0"}, {"field.177", "0"}, {"field.178", "0"}, {"field.179", "0"}, {"field.180", "0"},
    {"field.182", "0"}, {"field.183", "0"}, {"field.197", "0"}, {"field.198", "0"},
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu gpus[MAX_GPUS];
struct fault faults[MAX_FAULTS];
static struct process processes[MAX_PROCESSES];
static struct event events[MAX_EVENTS];
static struct name names[MAX_NAMES];
int gpu_count, fault_count, cuda_version, epoch;
char log_path[4096], driver_version[80], nvml_version[80];
static int process_count, event_count, name_count;
static char state_path[4096], missing[4096];
static double shortest_ms;
static struct stat loaded;

void copy(char *to, size_t size, const char *from) { /* cut to size */
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = 0;
}

void give_up(const char *why, const char *what) {
    fprintf(stderr, "fake nvml: %s: %s\n", why, what);
    abort();
}

/* --- the state file ------------------------------------------------------------------------------------------- */

static const char *pair_of(const struct gpu *gpu, const char *key) {
    for (int i = 0; i < gpu->count; i++)
        if (!strcmp(gpu->pairs[i].key, key)) return gpu->pairs[i].text;
    return NULL;
}

static void put(struct gpu *gpu, const char *key, const char *text) {
    int i = 0;
    while (i < gpu->count && strcmp(gpu->pairs[i].key, key)) i++;
    if (i == MAX_PAIRS) give_up("too many attributes", key);
    if (i == gpu->count) gpu->count++;
    copy(gpu->pairs[i].key, sizeof gpu->pairs[i].key, key);
    copy(gpu->pairs[i].text, sizeof gpu->pairs[i].text, text);
}

static void put_process(int gpu, const char *text) {
    struct process p = {.gpu = gpu, .kind = 'C', .gi = UINT32_MAX, .ci = UINT32_MAX};
    if (process_count == MAX_PROCESSES) give_up("too many processes", text);
    long long bytes = 0;
    if (sscanf(text, "%u %lld %c %u %u %u %u", &p.pid, &bytes, &p.kind, &p.sm, &p.memory, &p.gi, &p.ci) < 2)
        give_up("can't read process", text);
    p.bytes = (uint64_t)bytes;
    processes[process_count++] = p;
}

static void parse_fault(const char *line) {
    char words[200], *save = NULL;
    if (fault_count == MAX_FAULTS) give_up("too many faults", line);
    struct fault *f = &faults[fault_count++];
    *f = (struct fault){.gpu = -1};
    copy(f->line, sizeof f->line, line);
    copy(words, sizeof words, line);
    strtok_r(words, " ", &save);
    copy(f->function, sizeof f->function, strtok_r(NULL, " ", &save));
    for (char *word; (word = strtok_r(NULL, " ", &save));) {
        if (sscanf(word, "gpu=%d", &f->gpu) || sscanf(word, "code=%d", &f->code) || sscanf(word, "sleep_ms=%lf", &f->sleep_ms) ||
            sscanf(word, "after=%d", &f->after) || sscanf(word, "times=%d", &f->times)) continue;
        if (!strcmp(word, "hang")) f->hang = true;
        else if (!strcmp(word, "hold")) f->hold = true;
        else give_up("what is", word);
    }
}

static bool parse_event(const char *line) {
    struct event e = {.gi = UINT32_MAX, .ci = UINT32_MAX};
    if (sscanf(line, "event %lu %d %lu %lu %u %u", &e.seq, &e.gpu, &e.type, &e.data, &e.gi, &e.ci) < 4) return false;
    if (event_count == MAX_EVENTS) give_up("too many events", line);
    events[event_count++] = e;
    return true;
}

static bool parse_name(const char *line) {
    struct name n;
    if (sscanf(line, "name %u %95[^\n]", &n.pid, n.text) != 2) return false;
    if (name_count == MAX_NAMES) give_up("too many names", line);
    names[name_count++] = n;
    return true;
}

static void parse_line(const char *line) {
    char who[16], key[80], text[96];
    if (sscanf(line, "gpus %d", &gpu_count) == 1 || sscanf(line, "driver %79s", driver_version) == 1 ||
        sscanf(line, "nvml %79s", nvml_version) == 1 || sscanf(line, "cuda %d", &cuda_version) == 1 || sscanf(line, "epoch %d", &epoch) == 1 ||
        sscanf(line, "gpm_shortest_ms %lf", &shortest_ms) == 1 || parse_event(line) || parse_name(line)) return;
    if (!strncmp(line, "fault ", 6)) { parse_fault(line); return; }
    if (sscanf(line, "missing %79s", key) == 1) {
        if (strlen(missing) + strlen(key) + 2 > sizeof missing) give_up("too many missing", key);
        strcat(strcat(missing, key), " ");
    } else if (sscanf(line, "gpu %15s %47s %95[^\n]", who, key, text) == 3) {
        for (int i = 0; i < MAX_GPUS; i++) {
            if (who[0] != '*' && atoi(who) != i) continue;
            if (!strcmp(key, "proc")) put_process(i, text);
            else put(&gpus[i], key, text);
        }
    } else if (line[0] && line[0] != '#') give_up("can't read line", line);
}

static void forget(void) {
    char text[96];
    gpu_count = fault_count = process_count = event_count = name_count = 0;
    missing[0] = 0;
    cuda_version = 13000;
    shortest_ms = 100;
    strcpy(driver_version, "580.95.05");
    strcpy(nvml_version, "13.580.95.05");
    for (int i = 0; i < MAX_GPUS; i++) {
        gpus[i].count = 0;
        snprintf(text, sizeof text, "GPU-%08x-0000-4000-8000-%012x", 0xfa000000u + i, i); put(&gpus[i], "uuid", text);
        snprintf(text, sizeof text, "00000000:%02X:00.0", 0x10 + i); put(&gpus[i], "pci", text);
        snprintf(text, sizeof text, "165002200%04d", i); put(&gpus[i], "serial", text);
        snprintf(text, sizeof text, "%d", i); put(&gpus[i], "minor", text);
    }
}

void reload(void) {
    struct stat now;
    char line[200];
    if (!state_path[0] && getenv("FAKE_NVML_STATE")) copy(state_path, sizeof state_path, getenv("FAKE_NVML_STATE"));
    if (!log_path[0] && getenv("FAKE_NVML_LOG")) copy(log_path, sizeof log_path, getenv("FAKE_NVML_LOG"));
    if (stat(state_path, &now) || (now.st_ino == loaded.st_ino && now.st_size == loaded.st_size &&
        now.st_mtim.tv_sec == loaded.st_mtim.tv_sec && now.st_mtim.tv_nsec == loaded.st_mtim.tv_nsec)) return;
    FILE *file = fopen(state_path, "r");
    if (!file) return;
    loaded = now;
    forget();
    while (fgets(line, sizeof line, file)) { line[strcspn(line, "\n")] = 0; parse_line(line); }
    fclose(file);
}

bool is_missing(const char *function) {
    const char *at = missing;
    for (size_t n = strlen(function); (at = strstr(at, function)); at++)
        if ((at == missing || at[-1] == ' ') && at[n] == ' ') return true;
    return false;
}

void use(const char *state, const char *log) {
    copy(state_path, sizeof state_path, state);
    copy(log_path, sizeof log_path, log);
    memset(&loaded, 0, sizeof loaded);
}

/* --- what the file says ------------------------------------------------------------------------------------------ */

int text_of(const struct device *device, const char *key, int scope, char *text, size_t size) {
    char full[64], narrow[80];
    const char *found = NULL;
    if (device->slot < 0) copy(full, sizeof full, key);
    else snprintf(full, sizeof full, "mig.%d.%s", device->slot, key);
    snprintf(narrow, sizeof narrow, "%s@%d", full, scope);
    pthread_mutex_lock(&lock);
    const struct gpu *gpu = &gpus[device->gpu];
    if (scope != EVERY) found = pair_of(gpu, narrow);
    if (!found) found = pair_of(gpu, full);
    for (size_t i = 0; !found && device->slot < 0 && i < sizeof defaults / sizeof *defaults; i++)
        if (!strcmp(defaults[i].key, full)) found = defaults[i].text;
    int code = !found || !strcmp(found, "-1") ? NOT_SUPPORTED : found[0] == '!' ? atoi(found + 1) : OK;
    if (!code) copy(text, size, found);
    pthread_mutex_unlock(&lock);
    return code;
}

int scoped(const struct device *device, const char *key, int scope, uint64_t *value) {
    char text[96];
    int code = text_of(device, key, scope, text, sizeof text);
    if (!code) *value = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    return code;
}

int real(const struct device *device, const char *key, double *value) {
    char text[96];
    int code = text_of(device, key, EVERY, text, sizeof text);
    if (!code) *value = strtod(text, NULL);
    return code;
}

int number(const struct device *device, const char *key, uint64_t *value) { return scoped(device, key, EVERY, value); }

int numbered(const struct device *device, const char *key, unsigned which, uint64_t *value) {
    char full[48];
    snprintf(full, sizeof full, "%s.%u", key, which);
    return number(device, full, value);
}

int string(const struct device *device, const char *key, char *buffer, unsigned size) {
    char text[96];
    int code = text_of(device, key, EVERY, text, sizeof text);
    if (code) return code;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return OK;
}

int process_at(int position, struct process *process) {
    pthread_mutex_lock(&lock);
    bool there = position < process_count;
    if (there) *process = processes[position];
    pthread_mutex_unlock(&lock);
    return there ? OK : NOT_FOUND;
}

int event_after(uint64_t seq, struct event *event) {
    int code = NOT_FOUND;
    pthread_mutex_lock(&lock);
    reload();
    for (int i = 0; i < event_count; i++)
        if (events[i].seq > seq && (code || events[i].seq < event->seq)) { *event = events[i]; code = OK; }
    pthread_mutex_unlock(&lock);
    return code;
}

uint64_t last_event(void) {
    uint64_t last = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < event_count; i++) last = events[i].seq > last ? events[i].seq : last;
    pthread_mutex_unlock(&lock);
    return last;
}

int process_name(unsigned pid, char *buffer, unsigned size) {
    int code = NOT_FOUND;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < name_count; i++)
        if (names[i].pid == pid) { copy(buffer, size, names[i].text); code = OK; }
    pthread_mutex_unlock(&lock);
    return code;
}

int gpu_total(void) { return gpu_count; }
double gpm_shortest_ms(void) { return shortest_ms; }

bool slot_listed(int gpu, int slot) {
    char key[32];
    snprintf(key, sizeof key, "mig.%d.uuid", slot);
    return pair_of(&gpus[gpu], key);
}

bool slot_used(int gpu, int slot) {
    pthread_mutex_lock(&lock);
    bool used = slot_listed(gpu, slot);
    pthread_mutex_unlock(&lock);
    return used;
}
