/* Reads the scenario file, again whenever it changes, and keeps the time. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct scenario scenario;

/* %P stands for a phase of the GPU's own, so that eight GPUs do not draw eight equal curves. */
static const struct { const char *name, *standard; } KEY[KEYS] = {
    [UTIL] = {"util", "sine 88 9 31 %P + noise 0 3"},
    [MEMORY_UTIL] = {"memory-util", "sine 46 10 31 %P + noise 0 2"},
    [MEMORY_TOTAL] = {"memory-total", "150754820096"},
    [MEMORY_USED] = {"memory-used", "sine 60G 512M 47 %P"},
    [MEMORY_RESERVED] = {"memory-reserved", "512M"},
    [TEMPERATURE] = {"temperature", "sine 58 6 61 %P"},
    [MEMORY_TEMPERATURE] = {"memory-temperature", "sine 66 5 61 %P"},
    [POWER] = {"power", "sine 520 90 31 %P + noise 0 15"},
    [POWER_INSTANT] = {"power-instant", "sine 520 95 31 %P + noise 0 25"},
    [POWER_LIMIT] = {"power-limit", "700"},
    [POWER_LIMIT_DEFAULT] = {"power-limit-default", "700"},
    [SM_CLOCK] = {"sm-clock", "1980"},
    [MEMORY_CLOCK] = {"memory-clock", "3201"},
    [SM_CLOCK_MAX] = {"sm-clock-max", "1980"},
    [MEMORY_CLOCK_MAX] = {"memory-clock-max", "3201"},
    [REASONS] = {"reasons", "0"},
    [PSTATE] = {"pstate", "0"},
    [SLOWDOWN] = {"slowdown", "89"},
    [SHUTDOWN] = {"shutdown", "95"},
    [GPU_MAX] = {"gpu-max", "87"},
    [PCIE_GEN] = {"pcie-gen", "5"},
    [PCIE_GEN_MAX] = {"pcie-gen-max", "5"},
    [PCIE_WIDTH] = {"pcie-width", "16"},
    [PCIE_WIDTH_MAX] = {"pcie-width-max", "16"},
    [PCIE_TX] = {"pcie-tx", "sine 300000 200000 31 %P"},
    [PCIE_RX] = {"pcie-rx", "sine 900000 400000 31 %P"},
    [PCIE_REPLAYS] = {"pcie-replays", "0"},
    [NVLINKS] = {"nvlinks", "18"},
    [NVLINK_TX] = {"nvlink-tx", "sine 4000000 2000000 31 %P"},
    [NVLINK_RX] = {"nvlink-rx", "sine 4000000 2000000 31 %P"},
    [ECC_CORRECTED] = {"ecc-corrected", "0"},
    [ECC_UNCORRECTED] = {"ecc-uncorrected", "0"},
    [REMAP_CORRECTED] = {"remap-corrected", "0"},
    [REMAP_UNCORRECTED] = {"remap-uncorrected", "0"},
    [REMAP_PENDING] = {"remap-pending", "0"},
    [REMAP_FAILED] = {"remap-failed", "0"},
    [FAN] = {"fan", "none"},
    [THERMAL_VIOLATION] = {"thermal-violation", "0"},
    [POWER_VIOLATION] = {"power-violation", "ramp 0 1000000"},
    [ENCODER] = {"encoder", "0"},
    [DECODER] = {"decoder", "0"},
    [COMPUTE_CAPABILITY] = {"compute-capability", "9.0"},
    [SAMPLE_PERIOD] = {"sample-period", "0.2"},
    [PCIE_COUNTER_BITS] = {"pcie-counter-bits", "64"},
    [GPM] = {"gpm", "1"},
    [GPM_GRAPHICS] = {"gpm-graphics", "sine 88 9 31 %P"},
    [GPM_SM] = {"gpm-sm", "sine 62 12 31 %P"},
    [GPM_OCCUPANCY] = {"gpm-occupancy", "sine 33 8 31 %P"},
    [GPM_TENSOR] = {"gpm-tensor", "sine 21 6 31 %P"},
    [GPM_DRAM] = {"gpm-dram", "sine 38 9 31 %P"},
    [GPM_FP64] = {"gpm-fp64", "0"},
    [GPM_FP32] = {"gpm-fp32", "sine 17 4 31 %P"},
    [GPM_FP16] = {"gpm-fp16", "sine 5 2 31 %P"},
};
static const char *const COUNTER[COUNTERS] = {"energy", "pcie-tx", "pcie-rx", "nvlink-tx", "nvlink-rx"};

static const struct { const char *name; nvmlReturn_t code; } ERRORS[] = {
    {"uninitialized", UNINITIALIZED}, {"invalid-argument", INVALID_ARGUMENT}, {"not-supported", NOT_SUPPORTED},
    {"no-permission", NO_PERMISSION}, {"not-found", NOT_FOUND}, {"driver-not-loaded", DRIVER_NOT_LOADED},
    {"timeout", TIMEOUT}, {"function-not-found", FUNCTION_NOT_FOUND}, {"gpu-is-lost", GPU_IS_LOST},
    {"reset-required", RESET_REQUIRED}, {"version-mismatch", LIB_RM_VERSION_MISMATCH}, {"no-data", NO_DATA},
    {"gpu-not-found", GPU_NOT_FOUND}, {"unknown", UNKNOWN},
};

nvmlReturn_t error_by_name(const char *name) {
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; ++i)
        if (strcmp(ERRORS[i].name, name) == 0) return ERRORS[i].code;
    return atoi(name);
}

static void standard_gpu(struct gpu *gpu, int index) {
    for (int key = 0; key < KEYS; ++key) wave_free(&gpu->wave[key]);
    memset(gpu, 0, sizeof *gpu);
    gpu->index = index;
    gpu->lost_after = -1;
    strcpy(gpu->name, "NVIDIA H200");
    snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-00000000-0000-4000-8000-%012x", index);
    snprintf(gpu->serial, sizeof gpu->serial, "16502240%05d", index);
    for (int key = 0; key < KEYS; ++key) {
        char text[128], phase[24];
        const char *mark = strstr(KEY[key].standard, "%P");
        snprintf(phase, sizeof phase, "%.1f", index * 3.7);
        if (mark)
            snprintf(text, sizeof text, "%.*s%s%s", (int)(mark - KEY[key].standard), KEY[key].standard, phase, mark + 2);
        else
            snprintf(text, sizeof text, "%s", KEY[key].standard);
        wave_parse(text, &gpu->wave[key]);
    }
}

static void unquote(const char *text, char *into, size_t size) {
    size_t used = 0;
    if (*text == '"') ++text;
    for (; *text && *text != '"' && used + 1 < size; ++text) {
        if (*text != '\\') {
            into[used++] = *text;
            continue;
        }
        switch (*++text) {
        case 'x': {
            char digits[3] = {text[1], text[1] ? text[2] : 0, 0};
            into[used++] = (char)strtol(digits, NULL, 16);
            text += 2;
            break;
        }
        case 'e': into[used++] = '\033'; break;
        case 'n': into[used++] = '\n'; break;
        default: into[used++] = *text;
        }
    }
    into[used] = 0;
}

static void complain(int number, const char *line) {
    fprintf(stderr, "fake NVML: scenario line %d is not understood: %s\n", number, line);
}

static double after_of(char *rest) { /* cuts "after SECONDS" off the end */
    char *mark = strstr(rest, "after ");
    if (!mark) return 0;
    double seconds = atof(mark + 6);
    *mark = 0;
    return seconds;
}

static bool add_rule(int gpu, bool hang, char *rest) {
    struct rule rule = {.gpu = gpu, .hang = hang, .after = after_of(rest)};
    char what[64] = "";
    if (scenario.rules == MAX_RULES || sscanf(rest, "%63s %63s", rule.function, what) != 2) return false;
    if (hang)
        rule.seconds = atof(what);
    else
        rule.error = error_by_name(what);
    scenario.rule[scenario.rules++] = rule;
    return true;
}

static bool system_line(const char *key, char *rest) {
    if (strcmp(key, "gpus") == 0) scenario.gpus = (int)bounded(atoi(rest), 0, MAX_GPUS);
    else if (strcmp(key, "driver") == 0) snprintf(scenario.driver, sizeof scenario.driver, "%s", rest);
    else if (strcmp(key, "nvml") == 0) snprintf(scenario.nvml, sizeof scenario.nvml, "%s", rest);
    else if (strcmp(key, "cuda") == 0) scenario.cuda = atoi(rest);
    else if (strcmp(key, "time") == 0) scenario.frozen_at = atof(rest);
    else if (strcmp(key, "fail") == 0) return add_rule(-1, false, rest);
    else if (strcmp(key, "hang") == 0) return add_rule(-1, true, rest);
    else return false;
    return true;
}

static bool gpu_line(struct gpu *gpu, const char *key, const char *given) {
    char rest[2048];
    snprintf(rest, sizeof rest, "%s", given);
    for (int i = 0; i < KEYS; ++i)
        if (strcmp(KEY[i].name, key) == 0) return wave_parse(rest, &gpu->wave[i]);
    if (strcmp(key, "name") == 0) unquote(rest, gpu->name, sizeof gpu->name);
    else if (strcmp(key, "uuid") == 0) unquote(rest, gpu->uuid, sizeof gpu->uuid);
    else if (strcmp(key, "gone") == 0) gpu->gone = true;
    else if (strcmp(key, "lost") == 0) gpu->lost_after = after_of(rest);
    else if (strcmp(key, "mig") == 0) gpu->migs = (int)bounded(atoi(rest), 0, MAX_MIG);
    else if (strcmp(key, "fail") == 0) return add_rule(gpu->index, false, rest);
    else if (strcmp(key, "hang") == 0) return add_rule(gpu->index, true, rest);
    else if (strcmp(key, "no-processes") == 0) gpu->processes = 0;
    else if (strcmp(key, "process") == 0) {
        char bytes[32] = "", kind[16] = "compute", *end = NULL;
        unsigned pid = 0;
        if (gpu->processes == MAX_PROCESSES || sscanf(rest, "%u %31s %15s", &pid, bytes, kind) < 2) return false;
        struct process process = {pid, ~0ull, kind[0]};
        if (strcmp(bytes, "none")) {
            process.bytes = strtoull(bytes, &end, 0);
            process.bytes <<= *end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0;
        }
        gpu->process[gpu->processes++] = process;
    } else if (strcmp(key, "xid") == 0) {
        double after = after_of(rest);
        if (scenario.xids == MAX_XIDS) return false;
        struct xid xid = {gpu->index, strtoull(rest, NULL, 0), after, 0};
        for (int i = 0; i < scenario.xids; ++i) xid.ordinal += scenario.xid[i].gpu == gpu->index;
        scenario.xid[scenario.xids++] = xid;
    } else if (strcmp(key, "counter") == 0) {
        char name[32] = "", number[32] = "";
        if (sscanf(rest, "%31s %31s", name, number) != 2) return false;
        for (int i = 0; i < COUNTERS; ++i)
            if (strcmp(COUNTER[i], name) == 0) return counter_set(gpu->index, i, atof(number)), true;
        return false;
    } else return false;
    return true;
}

static bool selects(const char *selector, int index) { /* "*", "3", "0-3", "0,2,5-7" */
    if (*selector == '*') return true;
    for (const char *part = selector; part && *part;) {
        int from = atoi(part), to = from;
        const char *comma = strchr(part, ','), *dash = strchr(part, '-');
        if (dash && (!comma || dash < comma)) to = atoi(dash + 1);
        if (index >= from && index <= to) return true;
        part = comma ? comma + 1 : NULL;
    }
    return false;
}

static void play_line(char *line, int number) {
    char whole[2048], first[64] = "", second[64] = "", third[64] = "";
    snprintf(whole, sizeof whole, "%s", line);
    int used = 0;
    bool understood = true;
    if (sscanf(line, "%63s %63s %n", first, second, &used) < 2) return complain(number, whole);
    if (strcmp(first, "system") == 0) understood = system_line(second, line + used);
    else if (strcmp(first, "gpu") == 0) {
        int more = 0;
        if (sscanf(line + used, "%63s %n", third, &more) < 1) return complain(number, whole);
        for (int i = 0; i < MAX_GPUS; ++i)
            if (selects(second, i)) understood &= gpu_line(&scenario.gpu[i], third, line + used + more);
    } else understood = false;
    if (!understood) complain(number, whole);
}

static void scenario_read(FILE *file) {
    scenario.gpus = 1;
    scenario.rules = scenario.xids = 0;
    scenario.cuda = 12080;
    scenario.frozen_at = -1;
    strcpy(scenario.driver, "570.124.06");
    strcpy(scenario.nvml, "12.570.124.06");
    for (int i = 0; i < MAX_GPUS; ++i) standard_gpu(&scenario.gpu[i], i);
    char line[2048];
    for (int number = 1; file && fgets(line, sizeof line, file); ++number) {
        char *start = line + strspn(line, " \t"), *end = start + strlen(start);
        while (end > start && strchr(" \t\r\n", end[-1])) *--end = 0;
        if (*start && *start != '#') play_line(start, number);
    }
}

void scenario_refresh(void) {
    static struct stat seen;
    static bool loaded;
    struct stat now = {0};
    const char *path = getenv("FAKE_NVML_SCENARIO");
    bool present = path && stat(path, &now) == 0;
    if (loaded && (!present || (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
                                now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)))
        return;
    FILE *file = present ? fopen(path, "r") : NULL;
    scenario_read(file);
    if (file) fclose(file);
    seen = now;
    loaded = true;
}

static double wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double began(void) {
    static double at;
    if (at == 0) at = wall();
    return at;
}

double fake_now(void) {
    double at = began();
    return scenario.frozen_at >= 0 ? scenario.frozen_at : wall() - at;
}

unsigned long long unix_us(double t) { return (unsigned long long)((began() + t) * 1e6); }
double from_unix_us(unsigned long long us) { return (double)us / 1e6 - began(); }
