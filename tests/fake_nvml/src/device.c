/* Readings of a GPU. */
#include "fake.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long u64;

static nvmlReturn_t text(const char *from, char *into, unsigned length) {
    NEED(into);
    if (strlen(from) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(into, from);
    return OK;
}

static nvmlReturn_t number(struct gpu *gpu, enum key key, double scale, unsigned *into) {
    NEED(into);
    if (!has(gpu, key)) return NOT_SUPPORTED;
    *into = (unsigned)bounded(llround(value(gpu, key) * scale), 0, 4294967295.0);
    return OK;
}

static nvmlReturn_t number64(struct gpu *gpu, enum key key, u64 *into) {
    NEED(into);
    if (!has(gpu, key)) return NOT_SUPPORTED;
    *into = (u64)fmax(value(gpu, key), 0);
    return OK;
}

static double percent(struct gpu *gpu, enum key key, double t) {
    return bounded(round(wave_at(&gpu->wave[key], t)), 0, 100);
}

/* ---- what it is */

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    DEVICE_CALL(device);
    if (!device->mig) return text(gpu->name, name, length);
    char whole[160];
    snprintf(whole, sizeof whole, "%s MIG 1g.18gb", gpu->name);
    return text(whole, name, length);
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    DEVICE_CALL(device);
    if (!device->mig) return text(gpu->uuid, uuid, length);
    char whole[96];
    snprintf(whole, sizeof whole, "MIG-00000000-0000-4000-9000-%06x%06x", gpu->index, device->mig);
    return text(whole, uuid, length);
}

API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length) {
    DEVICE_CALL(device);
    return text(gpu->serial, serial, length);
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci *pci) {
    DEVICE_CALL(device);
    NEED(pci);
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)gpu->index + 0x10;
    pci->id = 0x233510de;
    pci->subsystem = 0x18be10de;
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return OK;
}

API nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand) {
    DEVICE_CALL(device);
    NEED(brand);
    *brand = 14;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture) {
    DEVICE_CALL(device);
    NEED(architecture);
    *architecture = 9;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    DEVICE_CALL(device);
    NEED(major && minor);
    if (!has(gpu, COMPUTE_CAPABILITY)) return NOT_SUPPORTED;
    int tenths = (int)lround(value(gpu, COMPUTE_CAPABILITY) * 10);
    *major = tenths / 10, *minor = tenths % 10;
    return OK;
}

static nvmlReturn_t switched(unsigned *into, unsigned state) {
    NEED(into);
    *into = state;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *mode) {
    DEVICE_CALL(device);
    return switched(mode, 1);
}

API nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned *mode) {
    DEVICE_CALL(device);
    return switched(mode, 0);
}

API nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned *active) {
    DEVICE_CALL(device);
    return switched(active, 0);
}

API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode) {
    DEVICE_CALL(device);
    return switched(mode, 0);
}

API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    DEVICE_CALL(device);
    NEED(current && pending);
    *current = *pending = has(gpu, ECC_CORRECTED);
    return OK;
}

API nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    DEVICE_CALL(device);
    NEED(current && pending);
    return NOT_SUPPORTED; /* Windows alone has one */
}

API nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    DEVICE_CALL(device);
    NEED(current && pending);
    return NOT_SUPPORTED;
}

/* ---- MIG */

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    DEVICE_CALL(device);
    NEED(current && pending);
    *current = *pending = gpu->migs > 0;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    DEVICE_CALL(device);
    return switched(count, MAX_MIG);
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig) {
    DEVICE_CALL(device);
    NEED(mig);
    if ((int)index >= gpu->migs) return NOT_FOUND;
    *mig = &handles[gpu->index][index + 1];
    return OK;
}

API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is) {
    DEVICE_CALL(device);
    return switched(is, device->mig > 0);
}

API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    DEVICE_CALL(mig);
    NEED(device);
    if (!mig->mig) return INVALID_ARGUMENT;
    *device = &handles[gpu->index][0];
    return OK;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) {
    DEVICE_CALL(device);
    return device->mig ? switched(id, (unsigned)device->mig) : NOT_SUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) {
    DEVICE_CALL(device);
    return device->mig ? switched(id, 0) : NOT_SUPPORTED;
}

/* ---- how busy it is */

struct utilization { unsigned gpu, memory; };

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *utilization) {
    DEVICE_CALL(device);
    NEED(utilization);
    if (gpu->migs || !has(gpu, UTIL)) return NOT_SUPPORTED;
    utilization->gpu = (unsigned)percent(gpu, UTIL, fake_now());
    utilization->memory = has(gpu, MEMORY_UTIL) ? (unsigned)percent(gpu, MEMORY_UTIL, fake_now()) : 0;
    return OK;
}

static nvmlReturn_t coder(struct gpu *gpu, enum key key, unsigned *utilization, unsigned *period) {
    NEED(period);
    *period = 200000;
    return number(gpu, key, 1, utilization);
}

API nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *utilization, unsigned *period) {
    DEVICE_CALL(device);
    return coder(gpu, ENCODER, utilization, period);
}

API nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *utilization, unsigned *period) {
    DEVICE_CALL(device);
    return coder(gpu, DECODER, utilization, period);
}

union value { double d; unsigned u; unsigned long ul; u64 ull; long long sll; int s; unsigned short us; };
struct sample { u64 time_us; union value value; };
enum { TYPE_DOUBLE, TYPE_UNSIGNED, TYPE_UNSIGNED_LONG, TYPE_U64 };
#define BUFFER 120

/* The driver's ring buffer: the last 120 samples, one a `sample-period`, those after `last_seen_us` handed out.
 * Without room the call tells the size of the buffer. */
API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned type, u64 last_seen_us, unsigned *value_type,
                                      unsigned *count, struct sample *samples) {
    DEVICE_CALL(device);
    NEED(value_type && count);
    static const enum key BY_TYPE[] = {POWER, UTIL, MEMORY_UTIL};
    if (type > 2 || gpu->migs || !has(gpu, SAMPLE_PERIOD) || !has(gpu, BY_TYPE[type])) return NOT_SUPPORTED;
    *value_type = TYPE_UNSIGNED;
    if (!samples) {
        *count = BUFFER;
        return OK;
    }
    double period = fmax(value(gpu, SAMPLE_PERIOD), 0.01), now = fake_now();
    double oldest = floor(now / period) - BUFFER + 1, seen = from_unix_us(last_seen_us) / period;
    unsigned room = *count, used = 0;
    if (last_seen_us) oldest = fmax(oldest, floor(seen + 1e-3) + 1);
    for (double tick = oldest; tick * period <= now && used < room; ++tick) {
        double reading = wave_at(&gpu->wave[BY_TYPE[type]], tick * period);
        samples[used].time_us = unix_us(tick * period);
        samples[used++].value.u = (unsigned)(type ? bounded(round(reading), 0, 100) : reading * 1000);
    }
    *count = used;
    return used ? OK : NOT_FOUND;
}

/* ---- memory */

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };

static nvmlReturn_t memory(nvmlDevice_t device, struct gpu *gpu, u64 *total, u64 *reserved, u64 *used) {
    if (!has(gpu, MEMORY_TOTAL) || !has(gpu, MEMORY_USED)) return NOT_SUPPORTED;
    *total = (u64)value(gpu, MEMORY_TOTAL);
    *reserved = has(gpu, MEMORY_RESERVED) ? (u64)value(gpu, MEMORY_RESERVED) : 0;
    *used = (u64)bounded(value(gpu, MEMORY_USED), 0, (double)*total - (double)*reserved);
    if (device->mig) *total /= (u64)gpu->migs, *reserved /= (u64)gpu->migs, *used /= (u64)gpu->migs;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *into) {
    DEVICE_CALL(device);
    NEED(into);
    u64 total, reserved, used;
    nvmlReturn_t result = memory(device, gpu, &total, &reserved, &used);
    if (result == OK) *into = (struct memory){total, total - used - reserved, used + reserved};
    return result;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *into) {
    DEVICE_CALL(device);
    NEED(into);
    if (into->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
    u64 total, reserved, used;
    nvmlReturn_t result = memory(device, gpu, &total, &reserved, &used);
    if (result == OK) *into = (struct memory_v2){into->version, total, reserved, total - used - reserved, used};
    return result;
}

API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, struct memory *into) {
    DEVICE_CALL(device);
    NEED(into);
    *into = (struct memory){274877906944ull, 274877906944ull - 2097152, 2097152};
    return OK;
}

/* ---- processes */

struct process_v2 { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; };

static nvmlReturn_t processes(struct gpu *gpu, char kind, unsigned *count, struct process_v2 *into) {
    NEED(count);
    unsigned room = *count, found = 0;
    for (int i = 0; i < gpu->processes; ++i) {
        if (gpu->process[i].kind != kind) continue;
        if (into && found < room)
            into[found] = (struct process_v2){gpu->process[i].pid, gpu->process[i].bytes, ~0u, ~0u};
        ++found;
    }
    *count = found;
    return found > (into ? room : 0) ? INSUFFICIENT_SIZE : OK;
}

#define PROCESSES(function, kind)                                                                              \
    API nvmlReturn_t function(nvmlDevice_t device, unsigned *count, struct process_v2 *into) {                 \
        DEVICE_CALL(device);                                                                                   \
        return processes(gpu, kind, count, into);                                                              \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 'c')
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 'c')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm')

struct process_utilization { unsigned pid; u64 time_us; unsigned sm, memory, encoder, decoder; };

API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct process_utilization *into,
                                                 unsigned *count, u64 last_seen_us) {
    DEVICE_CALL(device);
    NEED(count);
    (void)last_seen_us;
    if (gpu->migs) return NOT_SUPPORTED;
    unsigned room = *count;
    *count = (unsigned)gpu->processes;
    if (!gpu->processes) return NOT_FOUND;
    if (!into || room < *count) return INSUFFICIENT_SIZE;
    for (int i = 0; i < gpu->processes; ++i)
        into[i] = (struct process_utilization){gpu->process[i].pid, unix_us(fake_now()),
                                               (unsigned)(percent(gpu, UTIL, fake_now()) / gpu->processes),
                                               (unsigned)(percent(gpu, MEMORY_UTIL, fake_now()) / gpu->processes), 0, 0};
    return OK;
}

/* ---- heat, power, clocks */

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *celsius) {
    DEVICE_CALL(device);
    return sensor ? INVALID_ARGUMENT : number(gpu, TEMPERATURE, 1, celsius);
}

struct temperature { unsigned version, sensor; int celsius; };

API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, struct temperature *temperature) {
    DEVICE_CALL(device);
    NEED(temperature);
    if (temperature->version != 0x100000C) return ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensor) return INVALID_ARGUMENT;
    return number(gpu, TEMPERATURE, 1, (unsigned *)&temperature->celsius);
}

API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned type, unsigned *celsius) {
    DEVICE_CALL(device);
    switch (type) {
    case 0: return number(gpu, SHUTDOWN, 1, celsius);
    case 1: return number(gpu, SLOWDOWN, 1, celsius);
    case 3: return number(gpu, GPU_MAX, 1, celsius);
    default: return NOT_SUPPORTED;
    }
}

API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *percent_of_maximum) {
    DEVICE_CALL(device);
    return number(gpu, FAN, 1, percent_of_maximum);
}

API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    DEVICE_CALL(device);
    return number(gpu, POWER, 1000, milliwatts);
}

API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatts) {
    DEVICE_CALL(device);
    return number(gpu, POWER_LIMIT, 1000, milliwatts);
}

API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
    DEVICE_CALL(device);
    return number(gpu, POWER_LIMIT, 1000, milliwatts);
}

API nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned *milliwatts) {
    DEVICE_CALL(device);
    return number(gpu, POWER_LIMIT_DEFAULT, 1000, milliwatts);
}

API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, u64 *millijoules) {
    DEVICE_CALL(device);
    NEED(millijoules);
    if (!has(gpu, POWER)) return NOT_SUPPORTED;
    *millijoules = (u64)counter_value(gpu, COUNT_ENERGY);
    return OK;
}

API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz) {
    DEVICE_CALL(device);
    return number(gpu, type == 2 ? MEMORY_CLOCK : SM_CLOCK, 1, mhz);
}

API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz) {
    DEVICE_CALL(device);
    return number(gpu, type == 2 ? MEMORY_CLOCK_MAX : SM_CLOCK_MAX, 1, mhz);
}

API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned *state) {
    DEVICE_CALL(device);
    return number(gpu, PSTATE, 1, state);
}

API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, u64 *reasons) {
    DEVICE_CALL(device);
    return number64(gpu, REASONS, reasons);
}

API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, u64 *reasons) {
    DEVICE_CALL(device);
    return number64(gpu, REASONS, reasons);
}

struct violation { u64 reference_us, violation_ns; };

API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned policy, struct violation *violation) {
    DEVICE_CALL(device);
    NEED(violation);
    if (policy > 1) return NOT_SUPPORTED;
    violation->reference_us = unix_us(fake_now());
    return number64(gpu, policy ? THERMAL_VIOLATION : POWER_VIOLATION, &violation->violation_ns);
}

/* ---- links */

API nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    DEVICE_CALL(device);
    return number(gpu, PCIE_GEN, 1, generation);
}

API nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    DEVICE_CALL(device);
    return number(gpu, PCIE_GEN_MAX, 1, generation);
}

API nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    DEVICE_CALL(device);
    return number(gpu, PCIE_WIDTH, 1, width);
}

API nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    DEVICE_CALL(device);
    return number(gpu, PCIE_WIDTH_MAX, 1, width);
}

API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned counter, unsigned *kib_per_second) {
    DEVICE_CALL(device);
    return number(gpu, counter ? PCIE_RX : PCIE_TX, 1, kib_per_second);
}

API nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned *replays) {
    DEVICE_CALL(device);
    return number(gpu, PCIE_REPLAYS, 1, replays);
}

API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *active) {
    DEVICE_CALL(device);
    NEED(active);
    if (!has(gpu, NVLINKS) || link >= value(gpu, NVLINKS)) return NOT_SUPPORTED;
    *active = 1;
    return OK;
}

/* ---- errors of the memory */

API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned error, unsigned counter, u64 *count) {
    DEVICE_CALL(device);
    (void)counter;
    return number64(gpu, error ? ECC_UNCORRECTED : ECC_CORRECTED, count);
}

API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned error, unsigned counter,
                                                 unsigned location, u64 *count) {
    DEVICE_CALL(device);
    (void)counter, (void)location;
    return number64(gpu, error ? ECC_UNCORRECTED : ECC_CORRECTED, count);
}

API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
                                           unsigned *pending, unsigned *failed) {
    DEVICE_CALL(device);
    nvmlReturn_t result = number(gpu, REMAP_CORRECTED, 1, corrected);
    if (result == OK) result = number(gpu, REMAP_UNCORRECTED, 1, uncorrected);
    if (result == OK) result = number(gpu, REMAP_PENDING, 1, pending);
    if (result == OK) result = number(gpu, REMAP_FAILED, 1, failed);
    return result;
}

/* ---- field values: one call for many readings, each with a result of its own */

struct field {
    uint32_t id, scope;
    int64_t time_us, latency_us;
    unsigned type;
    nvmlReturn_t result;
    union value value;
};

static void field_u64(struct field *field, bool supported, double reading) {
    field->result = supported ? OK : NOT_SUPPORTED;
    field->type = TYPE_U64;
    field->value.ull = (u64)fmax(reading, 0);
}

static void field_unsigned(struct field *field, struct gpu *gpu, enum key key, double scale) {
    field->type = TYPE_UNSIGNED;
    field->result = number(gpu, key, scale, &field->value.u);
}

static void pcie_bytes(struct field *field, struct gpu *gpu, bool supported, enum counter which) {
    field_u64(field, supported && has(gpu, PCIE_COUNTER_BITS), counter_value(gpu, which) * 1024);
    if (value(gpu, PCIE_COUNTER_BITS) < 64) field->value.ull &= 0xffffffffu;
}

API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, struct field *fields) {
    DEVICE_CALL(device);
    NEED(fields && count > 0);
    bool nvlink = has(gpu, NVLINKS) && value(gpu, NVLINKS) > 0;
    for (struct field *field = fields; field < fields + count; ++field) {
        field->time_us = (int64_t)unix_us(fake_now());
        field->latency_us = 0;
        field->value.ull = 0;
        switch (field->id) {
        case 3: field_u64(field, has(gpu, ECC_CORRECTED), value(gpu, ECC_CORRECTED)); break;
        case 4: field_u64(field, has(gpu, ECC_UNCORRECTED), value(gpu, ECC_UNCORRECTED)); break;
        case 74: field_u64(field, has(gpu, POWER_VIOLATION), value(gpu, POWER_VIOLATION)); break;
        case 75: field_u64(field, has(gpu, THERMAL_VIOLATION), value(gpu, THERMAL_VIOLATION)); break;
        case 82: field_unsigned(field, gpu, MEMORY_TEMPERATURE, 1); break;
        case 83: field_u64(field, has(gpu, POWER), counter_value(gpu, COUNT_ENERGY)); break;
        case 91: field_unsigned(field, gpu, NVLINKS, 1); break;
        case 94: field_unsigned(field, gpu, PCIE_REPLAYS, 1); break;
        case 138: field_u64(field, nvlink && has(gpu, NVLINK_TX), counter_value(gpu, COUNT_NVLINK_TX)); break;
        case 139: field_u64(field, nvlink && has(gpu, NVLINK_RX), counter_value(gpu, COUNT_NVLINK_RX)); break;
        case 142: field_unsigned(field, gpu, REMAP_CORRECTED, 1); break;
        case 143: field_unsigned(field, gpu, REMAP_UNCORRECTED, 1); break;
        case 144: field_unsigned(field, gpu, REMAP_PENDING, 1); break;
        case 145: field_unsigned(field, gpu, REMAP_FAILED, 1); break;
        case 185: field_unsigned(field, gpu, POWER, 1000); break;
        case 186: field_unsigned(field, gpu, POWER_INSTANT, 1000); break;
        case 189: field_unsigned(field, gpu, POWER_LIMIT_DEFAULT, 1000); break;
        case 190: field_unsigned(field, gpu, POWER_LIMIT, 1000); break;
        case 197: pcie_bytes(field, gpu, has(gpu, PCIE_TX), COUNT_PCIE_TX); break;
        case 198: pcie_bytes(field, gpu, has(gpu, PCIE_RX), COUNT_PCIE_RX); break;
        default: field->result = NOT_SUPPORTED;
        }
    }
    return OK;
}
