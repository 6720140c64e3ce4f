/* Calls that name no GPU: init, versions, enumeration. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nvmlReturn_t start(void) {
    ++init_count;
    return OK;
}

API nvmlReturn_t nvmlInit_v2(void) {
    SYSTEM_CALL(false);
    return start();
}

API nvmlReturn_t nvmlInit(void) {
    SYSTEM_CALL(false);
    return start();
}

API nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    SYSTEM_CALL(false);
    (void)flags;
    return start();
}

API nvmlReturn_t nvmlShutdown(void) {
    SYSTEM_CALL(true);
    --init_count;
    return OK;
}

API const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case RESET_REQUIRED: return "GPU requires reset";
    case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NO_DATA: return "No data";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

static nvmlReturn_t text(const char *from, char *into, unsigned length) {
    NEED(into);
    if (strlen(from) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(into, from);
    return OK;
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    SYSTEM_CALL(true);
    return text(scenario.driver, version, length);
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    SYSTEM_CALL(false); /* the library knows its own version also where it does not start */
    return text(scenario.nvml, version, length);
}

static nvmlReturn_t cuda(int *version) {
    NEED(version);
    *version = scenario.cuda;
    return OK;
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    SYSTEM_CALL(true);
    return cuda(version);
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    SYSTEM_CALL(true);
    return cuda(version);
}

API nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    SYSTEM_CALL(true);
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file) return NOT_FOUND;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    fclose(file);
    line[strcspn(line, "\n")] = 0;
    return text(line, name, length);
}

/* A GPU that is gone leaves no gap: the ones after it move up, as they do when the driver comes back without it. */
static int position(unsigned index) {
    for (int i = 0; i < scenario.gpus; ++i)
        if (!scenario.gpu[i].gone && index-- == 0) return i;
    return -1;
}

static bool lost(int gpu) {
    double after = scenario.gpu[gpu].lost_after;
    return after >= 0 && fake_now() >= after;
}

static nvmlReturn_t count(unsigned *devices) {
    NEED(devices);
    *devices = 0;
    for (int i = 0; i < scenario.gpus; ++i) *devices += !scenario.gpu[i].gone;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *devices) {
    SYSTEM_CALL(true);
    return count(devices);
}

API nvmlReturn_t nvmlDeviceGetCount(unsigned *devices) {
    SYSTEM_CALL(true);
    return count(devices);
}

static nvmlReturn_t hand_out(int gpu, nvmlDevice_t *device) {
    NEED(device);
    *device = NULL;
    if (gpu < 0) return NOT_FOUND;
    if (lost(gpu)) return GPU_IS_LOST;
    *device = &handles[gpu][0];
    return OK;
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device) {
    int gpu = position(index);
    return gpu < 0 ? INVALID_ARGUMENT : hand_out(gpu, device);
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    SYSTEM_CALL(true);
    return by_index(index, device);
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
    SYSTEM_CALL(true);
    return by_index(index, device);
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    SYSTEM_CALL(true);
    NEED(uuid);
    int found = -1;
    for (int i = 0; i < scenario.gpus; ++i)
        if (!scenario.gpu[i].gone && strcmp(scenario.gpu[i].uuid, uuid) == 0) found = i;
    return hand_out(found, device);
}

API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    SYSTEM_CALL(true);
    NEED(serial);
    int found = -1;
    for (int i = 0; i < scenario.gpus; ++i)
        if (!scenario.gpu[i].gone && strcmp(scenario.gpu[i].serial, serial) == 0) found = i;
    return hand_out(found, device);
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    SYSTEM_CALL(true);
    NEED(bus_id);
    const char *colon = strchr(bus_id, ':');
    int gpu = colon ? (int)strtol(colon + 1, NULL, 16) - 0x10 : -1;
    bool there = gpu >= 0 && gpu < scenario.gpus && !scenario.gpu[gpu].gone;
    return hand_out(there ? gpu : -1, device);
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    DEVICE_CALL(device);
    NEED(index);
    *index = 0;
    for (int i = 0; i < gpu->index; ++i) *index += !scenario.gpu[i].gone;
    return OK;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
    DEVICE_CALL(device);
    NEED(minor);
    *minor = (unsigned)gpu->index;
    return OK;
}
