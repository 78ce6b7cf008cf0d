/* How GPUs are connected, and nvmlDeviceGetFieldValues. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLE = 0, UINT = 1, ULL = 3 }; /* nvmlValueType_t */
enum { NODE = 40, SYSTEM = 50 };        /* nvmlGpuTopologyLevel_t */

int link_fault(D, unsigned link) {
    uint64_t links = 0, unused;
    int code = number(device, "nvlinks", &links);
    if (code) return code;
    return link < links ? OK : number(device, "nvlink_beyond", &unused);
}

#define LINK(NAME, KEY) \
    int NAME(D, unsigned link, unsigned *value) { \
        GATE(device); uint64_t wide = 0; code = link_fault(device, link); \
        if (!code) code = scoped(device, KEY, (int)link, &wide); \
        GIVE(value, unsigned); }
LINK(nvmlDeviceGetNvLinkState, "nvlink")
LINK(nvmlDeviceGetNvLinkVersion, "nvlink_version")
LINK(nvmlDeviceGetNvLinkRemoteDeviceType, "nvlink_type")

int nvmlDeviceGetNvLinkCapability(D, unsigned link, unsigned capability, unsigned *value) {
    GATE(device);
    uint64_t wide = 0;
    (void)capability;
    code = link_fault(device, link);
    if (!code) code = scoped(device, "nvlink_capability", (int)link, &wide);
    if (!code) *value = (unsigned)wide;
    return code;
}

int nvmlDeviceGetNvLinkErrorCounter(D, unsigned link, unsigned counter, uint64_t *value) {
    GATE(device);
    char key[48];
    snprintf(key, sizeof key, "nvlink_error.%u", counter);
    code = link_fault(device, link);
    return code ? code : scoped(device, key, (int)link, value);
}

/* topo@PEER, else by halves of the node: within a socket NODE, across SYS. */
int nvmlDeviceGetTopologyCommonAncestor(D, const struct device *peer, unsigned *level) {
    GATE(device);
    uint64_t wide;
    if (peer->gpu == device->gpu) { *level = 0; return OK; }
    if (scoped(device, "topo", peer->gpu, &wide)) wide = device->gpu * 2 / gpu_total() == peer->gpu * 2 / gpu_total() ? NODE : SYSTEM;
    *level = (unsigned)wide;
    return OK;
}

int nvmlDeviceGetP2PStatus(D, const struct device *peer, unsigned index, unsigned *status) {
    GATE(device);
    char key[48];
    uint64_t wide;
    snprintf(key, sizeof key, "p2p.%u", index);
    code = scoped(device, key, peer->gpu, &wide);
    if (!code) *status = (unsigned)wide;
    return code;
}

static void set_bits(const char *list, unsigned words, uint64_t *bits) { /* "0-3,8" */
    memset(bits, 0, words * sizeof *bits);
    for (char *end; *list; list = *end == ',' ? end + 1 : end) {
        unsigned long first = strtoul(list, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last && cpu < 64ul * words; cpu++) bits[cpu / 64] |= 1ull << cpu % 64;
    }
}

static int affinity(D, const char *key, unsigned words, uint64_t *bits) {
    char text[96];
    int code = text_of(device, key, EVERY, text, sizeof text);
    if (!code) set_bits(text, words, bits);
    return code;
}

int nvmlDeviceGetCpuAffinity(D, unsigned words, uint64_t *bits) { GATE(device); return affinity(device, "cpus", words, bits); }
int nvmlDeviceGetCpuAffinityWithinScope(D, unsigned words, uint64_t *bits, unsigned scope) {
    GATE(device);
    return scope > 1 ? INVALID_ARGUMENT : affinity(device, "cpus", words, bits);
}
int nvmlDeviceGetMemoryAffinity(D, unsigned words, uint64_t *bits, unsigned scope) {
    GATE(device);
    return scope > 1 ? INVALID_ARGUMENT : affinity(device, "memory_node", words, bits);
}

struct fabric { unsigned version; unsigned char cluster[16]; unsigned status, clique; unsigned char state; unsigned health; };
struct fabric_v3 { struct fabric v2; unsigned char summary; };
_Static_assert(sizeof(struct fabric) == 36 && sizeof(struct fabric_v3) == 40, "ABI");
int nvmlDeviceGetGpuFabricInfoV(D, struct fabric *info) {
    GATE(device);
    uint64_t state, status = 0, clique = 0, health = 0;
    bool third = info->version == (sizeof(struct fabric_v3) | 3u << 24);
    if (info->version != (sizeof *info | 2u << 24) && !third) return ARGUMENT_VERSION_MISMATCH;
    code = number(device, "fabric_state", &state);
    if (code) return code;
    number(device, "fabric_status", &status), number(device, "fabric_clique", &clique), number(device, "fabric_health", &health);
    *info = (struct fabric){info->version, {0}, (unsigned)status, (unsigned)clique, (unsigned char)state, (unsigned)health};
    string(device, "fabric_cluster", (char *)info->cluster, sizeof info->cluster);
    if (third) ((struct fabric_v3 *)info)->summary = 0;
    return OK;
}

/* --- field values: field.ID where the file has it, else the key of the same fact --------------------------------- */

static const struct { unsigned first, last; int type; const char *key; bool link; } kinds[] = {
    {1, 2, UINT, "ecc_mode", false}, {3, 3, ULL, "ecc.0.0", false}, {4, 4, ULL, "ecc.1.0", false}, {5, 5, ULL, "ecc.0.1", false},
    {6, 6, ULL, "ecc.1.1", false}, {29, 29, UINT, "retired.0", false}, {30, 30, UINT, "retired.1", false},
    {31, 31, UINT, "retired_pending", false}, {82, 82, UINT, NULL, false}, {83, 83, ULL, "energy", false},
    {90, 90, UINT, "nvlink_speed", false}, {91, 91, UINT, "nvlinks", false}, {94, 94, UINT, "pcie_replay", false}, {95, 95, UINT, NULL, false},
    {138, 141, ULL, NULL, true}, {142, 142, UINT, "rows.correctable", false}, {143, 143, UINT, "rows.uncorrectable", false},
    {144, 144, UINT, "rows.pending", false}, {145, 145, UINT, "rows.failure", false}, {147, 147, UINT, NULL, false},
    {161, 163, ULL, NULL, true}, {164, 164, UINT, "nvlink_speed", true}, {165, 165, UINT, "nvlink", true},
    {166, 166, UINT, "nvlink_version", true}, {169, 183, UINT, NULL, false}, {185, 186, UINT, "power", false},
    {187, 187, UINT, "limit_min", false}, {188, 188, UINT, "limit_max", false}, {189, 189, UINT, "limit_default", false},
    {190, 190, UINT, "limit", false}, {191, 191, ULL, "energy", false}, {192, 192, UINT, "limit", false},
    {193, 196, UINT, NULL, false}, {197, 198, UINT, NULL, false}, {201, 222, ULL, NULL, true},
    {230, 230, UINT, "recovery_action", false}, {235, 250, ULL, NULL, true},
};

struct field { unsigned id, scope; int64_t timestamp_us, latency_us; unsigned type; int code; uint64_t value; };
_Static_assert(sizeof(struct field) == 40 && offsetof(struct field, code) == 28 && offsetof(struct field, value) == 32, "ABI");

static int field_at(D, unsigned id, const char *fallback, int scope, uint64_t *value) {
    char key[48];
    snprintf(key, sizeof key, "field.%u", id);
    int code = scoped(device, key, scope, value);
    return code == NOT_SUPPORTED && fallback ? scoped(device, fallback, scope, value) : code;
}

static int every_link(D, unsigned id, const char *fallback, uint64_t *sum) { /* scope UINT_MAX */
    uint64_t links = 0, value = 0;
    int code = number(device, "nvlinks", &links);
    *sum = 0;
    for (unsigned link = 0; !code && link < links; link++, *sum += code ? 0 : value)
        code = field_at(device, id, fallback, (int)link, &value);
    return code || !links ? NOT_SUPPORTED : OK;
}

static void answer(D, struct field *f) {
    size_t k = 0;
    uint64_t latency = 0;
    while (k < sizeof kinds / sizeof *kinds && (f->id < kinds[k].first || f->id > kinds[k].last)) k++;
    bool known = k < sizeof kinds / sizeof *kinds, link = known && kinds[k].link;
    const char *fallback = known ? kinds[k].key : NULL;
    f->type = known ? (unsigned)kinds[k].type : ULL;
    f->timestamp_us = now_us(false);
    scoped(device, "latency_us", (int)f->id, &latency);
    f->latency_us = (int64_t)latency;
    f->value = 0;
    if (link && f->scope == UINT32_MAX) f->code = every_link(device, f->id, fallback, &f->value);
    else {
        f->code = link ? link_fault(device, f->scope) : OK;
        if (!f->code) f->code = field_at(device, f->id, fallback, (int)f->scope, &f->value);
    }
}

int nvmlDeviceGetFieldValues(D, int count, struct field *fields) {
    GATE(device);
    for (int i = 0; i < count; i++) answer(device, &fields[i]);
    return OK;
}
