/* A fake NVML that plays a scenario file. See ../README.md for the format.
 *
 * The structures follow the ABI that nvidia-ml-py declares in pynvml.py; names are NVML's own. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#define MAX_GPUS 64
#define MAX_RULES 256
#define MAX_PROCESSES 64
#define MAX_MIG 7
#define MAX_TERMS 6
#define MAX_POINTS 64
#define MAX_XIDS 64

typedef int nvmlReturn_t;
enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    RESET_REQUIRED = 16, LIB_RM_VERSION_MISMATCH = 18, NO_DATA = 21, ARGUMENT_VERSION_MISMATCH = 25,
    GPU_NOT_FOUND = 28, UNKNOWN = 999,
};

/* ---- values that vary in time: a sum of terms, or nothing (NOT_SUPPORTED) */

enum shape { CONSTANT, SINE, SQUARE, SAW, RAMP, NOISE, POINTS };
struct term {
    enum shape shape;
    double a, b, c, d;
    int points;
    double at[MAX_POINTS], value[MAX_POINTS];
};
struct wave {
    bool present;
    int terms;
    struct term *term;
};

bool wave_parse(const char *text, struct wave *into);
void wave_free(struct wave *wave);
double wave_at(const struct wave *wave, double t);
double wave_mean(const struct wave *wave, double from, double to);

/* ---- the scenario */

enum key {
    UTIL, MEMORY_UTIL, MEMORY_TOTAL, MEMORY_USED, MEMORY_RESERVED, TEMPERATURE, MEMORY_TEMPERATURE, POWER,
    POWER_INSTANT, POWER_LIMIT, POWER_LIMIT_DEFAULT, SM_CLOCK, MEMORY_CLOCK, SM_CLOCK_MAX, MEMORY_CLOCK_MAX,
    REASONS, PSTATE, SLOWDOWN, SHUTDOWN, GPU_MAX, PCIE_GEN, PCIE_GEN_MAX, PCIE_WIDTH, PCIE_WIDTH_MAX, PCIE_TX,
    PCIE_RX, PCIE_REPLAYS, NVLINKS, NVLINK_TX, NVLINK_RX, ECC_CORRECTED, ECC_UNCORRECTED, REMAP_CORRECTED,
    REMAP_UNCORRECTED, REMAP_PENDING, REMAP_FAILED, FAN, THERMAL_VIOLATION, POWER_VIOLATION, ENCODER, DECODER,
    COMPUTE_CAPABILITY, SAMPLE_PERIOD, PCIE_COUNTER_BITS, GPM, GPM_GRAPHICS, GPM_SM, GPM_OCCUPANCY, GPM_TENSOR, GPM_DRAM, GPM_FP64,
    GPM_FP32, GPM_FP16, KEYS,
};
enum counter { COUNT_ENERGY, COUNT_PCIE_TX, COUNT_PCIE_RX, COUNT_NVLINK_TX, COUNT_NVLINK_RX, COUNTERS };

struct process { unsigned pid; unsigned long long bytes; char kind; };
struct mig_instance { unsigned long long total, used; };

struct gpu {
    int index;
    char name[96], uuid[96], serial[32];
    bool gone;
    double lost_after; /* < 0: never */
    struct wave wave[KEYS];
    int processes;
    struct process process[MAX_PROCESSES];
    int migs;
};

struct rule { /* a fault: fails with `error`, or hangs for `seconds` */
    int gpu; /* -1: every GPU and the calls that name none */
    char function[64];
    bool hang;
    nvmlReturn_t error;
    double seconds, after;
};
struct xid { int gpu; unsigned long long code; double after; int ordinal; };

struct scenario {
    int gpus;
    char driver[80], nvml[80];
    int cuda;
    double frozen_at; /* < 0: time runs */
    struct gpu gpu[MAX_GPUS];
    int rules, xids;
    struct rule rule[MAX_RULES];
    struct xid xid[MAX_XIDS];
};
extern struct scenario scenario;

void scenario_refresh(void); /* with the lock held: read the file again if it changed */
nvmlReturn_t error_by_name(const char *name);
double fake_now(void); /* seconds since the library was first used, or the frozen time */
unsigned long long unix_us(double t);
double from_unix_us(unsigned long long us);

/* ---- state that outlives a change of the scenario */

struct handle { int gpu, mig; };
typedef struct handle *nvmlDevice_t;
extern struct handle handles[MAX_GPUS][MAX_MIG + 1]; /* [gpu][0] is the GPU, the rest MIG instances */
extern int init_count;
double counter_value(struct gpu *gpu, enum counter which);
void counter_set(int gpu, enum counter which, double value);

/* ---- entering a call: count it, play its faults, take the lock */

nvmlReturn_t enter_system(const char *function, bool needs_init);
nvmlReturn_t enter_device(const char *function, nvmlDevice_t device, struct gpu **gpu);
void leave(int *guard);
extern pthread_mutex_t lock;

#define SYSTEM_CALL(needs_init)                                                                                \
    __attribute__((cleanup(leave))) int guard_ = 0;                                                            \
    {                                                                                                          \
        nvmlReturn_t entered_ = enter_system(__func__, needs_init);                                            \
        if (entered_ != OK) return entered_;                                                                   \
    }
#define DEVICE_CALL(device)                                                                                    \
    __attribute__((cleanup(leave))) int guard_ = 0;                                                            \
    struct gpu *gpu = NULL;                                                                                    \
    {                                                                                                          \
        nvmlReturn_t entered_ = enter_device(__func__, device, &gpu);                                          \
        if (entered_ != OK) return entered_;                                                                   \
    }
#define NEED(pointer)                                                                                          \
    if (!(pointer)) return INVALID_ARGUMENT

static inline bool has(const struct gpu *gpu, enum key key) { return gpu->wave[key].present; }
static inline double value(const struct gpu *gpu, enum key key) { return wave_at(&gpu->wave[key], fake_now()); }
static inline double bounded(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

#endif
