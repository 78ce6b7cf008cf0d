/* Devices and their scalar readings. Another reading is a line in the table and one in defaults[] of state.c. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

STRING(nvmlDeviceGetName, "name")
STRING(nvmlDeviceGetUUID, "uuid")
STRING(nvmlDeviceGetSerial, "serial")
STRING(nvmlDeviceGetVbiosVersion, "vbios")
NUMBER(nvmlDeviceGetMinorNumber, unsigned, "minor")
NUMBER(nvmlDeviceGetBrand, unsigned, "brand")
NUMBER(nvmlDeviceGetArchitecture, unsigned, "architecture")
NUMBER(nvmlDeviceGetVirtualizationMode, unsigned, "virtualization")
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence")
NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
NUMBER(nvmlDeviceGetPerformanceState, unsigned, "pstate")
NUMBER(nvmlDeviceGetFanSpeed, unsigned, "fan")
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit")
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, "limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, "limit_default")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "limit_min", "limit_max")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, uint64_t, "energy")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, uint64_t, "reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, uint64_t, "reasons")
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, uint64_t, "supported_reasons")
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, uint64_t, "supported_reasons")
NUMBERED(nvmlDeviceGetClockInfo, "clock")
NUMBERED(nvmlDeviceGetMaxClockInfo, "clock_max")
NUMBERED(nvmlDeviceGetTemperatureThreshold, "threshold")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie_gen")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie_gen_max")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie_gen_gpu_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieSpeed, unsigned, "pcie_speed")
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned, "pcie_replay")
NUMBER(nvmlDeviceGetNumaNodeId, unsigned, "numa_node")
PAIR(nvmlDeviceGetEccMode, "ecc_mode", "ecc_mode")
PAIR(nvmlDeviceGetCudaComputeCapability, "capability_major", "capability_minor")

/* --- which devices there are --- */

int nvmlDeviceGetCount_v2(unsigned *count) { GATE(NULL); *count = (unsigned)gpu_total(); return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
    bool known = index < (unsigned)gpu_total();
    GATE(known ? card((int)index) : NULL);
    known = index < (unsigned)gpu_total(); /* the gate reads the file anew */
    if (!known) return INVALID_ARGUMENT;
    *device = card((int)index);
    return OK;
}

static bool is_called(const struct device *device, const char *key, const char *wanted) {
    char text[96];
    return !text_of(device, key, EVERY, text, sizeof text) && !strcmp(text, wanted);
}

static int find(const char *key, const char *wanted, struct device **device) {
    for (int gpu = 0; gpu < gpu_total(); gpu++)
        for (int slot = -1; slot < MAX_SLOTS; slot++) {
            struct device *candidate = slot < 0 ? card(gpu) : mig_device(gpu, slot);
            if (is_called(candidate, key, wanted)) { *device = candidate; return OK; }
        }
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **device) { GATE(NULL); return find("uuid", uuid, device); }
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device) { GATE(NULL); return find("pci", pci, device); }
int nvmlDeviceGetIndex(D, unsigned *index) {
    GATE(device);
    *index = (unsigned)(device->slot < 0 ? device->gpu : device->slot);
    return OK;
}

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };
_Static_assert(sizeof(struct pci) == 68, "ABI");

static void pci_of(const char *bus_id, struct pci *pci) {
    snprintf(pci->bus_id, sizeof pci->bus_id, "%s", bus_id);
    sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->legacy, sizeof pci->legacy, "%s", strlen(bus_id) > 4 ? bus_id + 4 : bus_id);
}

int nvmlDeviceGetPciInfo_v3(D, struct pci *pci) {
    GATE(device);
    char text[96];
    uint64_t id = 0;
    code = text_of(device, "pci", EVERY, text, sizeof text);
    if (code) return code;
    memset(pci, 0, sizeof *pci);
    pci_of(text, pci);
    number(device, "pci_device_id", &id);
    pci->device_id = (unsigned)id;
    return OK;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(D, unsigned link, struct pci *pci) {
    GATE(device);
    char text[96];
    code = link_fault(device, link);
    if (!code) code = text_of(device, "nvlink_pci", (int)link, text, sizeof text);
    if (code) return code;
    memset(pci, 0, sizeof *pci);
    pci_of(text, pci);
    return OK;
}

/* --- readings of more than one number --- */

struct memory { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
_Static_assert(sizeof(struct memory) == 24 && sizeof(struct memory_v2) == 40, "ABI");

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

int nvmlDeviceGetBAR1MemoryInfo(D, struct memory *bar1) {
    GATE(device);
    code = number(device, "bar1_total", &bar1->total);
    if (!code) code = number(device, "bar1_used", &bar1->used);
    if (!code) bar1->free = bar1->total - bar1->used;
    return code;
}

struct utilization { unsigned gpu, memory; };
_Static_assert(sizeof(struct utilization) == 8, "ABI");
int nvmlDeviceGetUtilizationRates(D, struct utilization *rates) {
    GATE(device);
    uint64_t gpu, memory;
    if (mig_on(device)) return NOT_SUPPORTED;
    code = number(device, "util", &gpu);
    if (!code) code = number(device, "mem_util", &memory);
    if (!code) *rates = (struct utilization){(unsigned)gpu, (unsigned)memory};
    return code;
}

#define CODEC(NAME, KEY) \
    int NAME(D, unsigned *percent, unsigned *period_us) { \
        GATE(device); uint64_t wide = 0; *period_us = 167000; code = number(device, KEY, &wide); GIVE(percent, unsigned); }
CODEC(nvmlDeviceGetEncoderUtilization, "encoder")
CODEC(nvmlDeviceGetDecoderUtilization, "decoder")
CODEC(nvmlDeviceGetJpgUtilization, "jpg")
CODEC(nvmlDeviceGetOfaUtilization, "ofa")

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

struct versioned { unsigned version, value; };
_Static_assert(sizeof(struct versioned) == 8, "ABI");
#define VERSIONED(NAME, KEY) \
    int NAME(D, struct versioned *answer) { \
        GATE(device); uint64_t wide = 0; \
        if (answer->version != (sizeof *answer | 1u << 24)) return ARGUMENT_VERSION_MISMATCH; \
        code = number(device, KEY, &wide); GIVE(&answer->value, unsigned); }
VERSIONED(nvmlDeviceGetMarginTemperature, "margin")
VERSIONED(nvmlDeviceGetAddressingMode, "addressing_mode")

int nvmlDeviceGetPcieThroughput(D, unsigned direction, unsigned *kb_per_second) { /* blocks as the real one does */
    GATE(device);
    uint64_t wide, ms = 0;
    number(device, "pcie_sample_ms", &ms);
    code = numbered(device, "pcie_kbps", direction, &wide);
    if (code) return code;
    nap_ms((double)ms);
    *kb_per_second = (unsigned)wide;
    return OK;
}

/* --- memory errors --- */

static int ecc(D, const char *what, unsigned type, unsigned counter, int location, uint64_t *value) {
    char key[48];
    uint64_t on = 0;
    int code = number(device, "ecc_mode", &on);
    if (code || !on) return code ? code : NOT_SUPPORTED;
    snprintf(key, sizeof key, "%s.%u.%u", what, type, counter);
    return scoped(device, key, location, value);
}

int nvmlDeviceGetTotalEccErrors(D, unsigned type, unsigned counter, uint64_t *value) {
    GATE(device);
    return ecc(device, "ecc", type, counter, EVERY, value);
}

int nvmlDeviceGetMemoryErrorCounter(D, unsigned type, unsigned counter, unsigned location, uint64_t *value) {
    GATE(device);
    return ecc(device, "ecc_at", type, counter, (int)location, value);
}

static int five(D, const char *const keys[], unsigned *values, int count) {
    for (int i = 0; i < count; i++) {
        uint64_t wide = 0;
        int code = number(device, keys[i], &wide);
        if (code) return code;
        values[i] = (unsigned)wide;
    }
    return OK;
}

int nvmlDeviceGetRemappedRows(D, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failure) {
    GATE(device);
    static const char *const keys[] = {"rows.correctable", "rows.uncorrectable", "rows.pending", "rows.failure"};
    unsigned values[4];
    if (mig_on(device)) return NOT_SUPPORTED;
    code = five(device, keys, values, 4);
    if (!code) *correctable = values[0], *uncorrectable = values[1], *pending = values[2], *failure = values[3];
    return code;
}

struct histogram { unsigned values[5]; };
_Static_assert(sizeof(struct histogram) == 20, "ABI");
int nvmlDeviceGetRowRemapperHistogram(D, struct histogram *histogram) {
    GATE(device);
    static const char *const keys[] = {"rows.max", "rows.high", "rows.partial", "rows.low", "rows.none"};
    return mig_on(device) ? NOT_SUPPORTED : five(device, keys, histogram->values, 5);
}

static int retired(D, unsigned cause, unsigned *count, uint64_t *addresses, uint64_t *times) {
    uint64_t pages = 0;
    int code = numbered(device, "retired", cause, &pages);
    unsigned room = *count;
    if (code) return code;
    *count = (unsigned)pages;
    if (room < pages) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < pages; i++) {
        if (addresses) addresses[i] = 0x10000ull * (i + 1);
        if (times) times[i] = 1700000000ull + i;
    }
    return OK;
}

int nvmlDeviceGetRetiredPages(D, unsigned cause, unsigned *count, uint64_t *addresses) {
    GATE(device);
    return retired(device, cause, count, addresses, NULL);
}

int nvmlDeviceGetRetiredPages_v2(D, unsigned cause, unsigned *count, uint64_t *addresses, uint64_t *times) {
    GATE(device);
    return retired(device, cause, count, addresses, times);
}

NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, "retired_pending")
