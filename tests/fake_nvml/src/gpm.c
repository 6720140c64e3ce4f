/* GPU performance monitoring: means between two samples. */
#include "fake.h"

#include <stdlib.h>

struct gpm_sample { int gpu; double t; };
struct gpm_metric {
    unsigned id;
    nvmlReturn_t result;
    double value;
    struct { const char *short_name, *long_name, *unit; } info;
};
struct gpm_get {
    unsigned version, count;
    struct gpm_sample *before, *after;
    struct gpm_metric metric[];
};
struct gpm_support { unsigned version, supported; };

API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct gpm_support *support) {
    DEVICE_CALL(device);
    NEED(support);
    if (support->version != 1) return ARGUMENT_VERSION_MISMATCH;
    support->supported = has(gpu, GPM) && value(gpu, GPM) > 0;
    return OK;
}

API nvmlReturn_t nvmlGpmSampleAlloc(struct gpm_sample **sample) {
    SYSTEM_CALL(true);
    NEED(sample);
    *sample = malloc(sizeof **sample);
    **sample = (struct gpm_sample){-1, 0};
    return OK;
}

API nvmlReturn_t nvmlGpmSampleFree(struct gpm_sample *sample) {
    SYSTEM_CALL(true);
    free(sample);
    return OK;
}

static nvmlReturn_t take(struct gpu *gpu, struct gpm_sample *sample) {
    NEED(sample);
    if (!has(gpu, GPM) || value(gpu, GPM) <= 0) return NOT_SUPPORTED;
    *sample = (struct gpm_sample){gpu->index, fake_now()};
    return OK;
}

API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, struct gpm_sample *sample) {
    DEVICE_CALL(device);
    return take(gpu, sample);
}

API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned instance, struct gpm_sample *sample) {
    DEVICE_CALL(device);
    return (int)instance <= gpu->migs ? take(gpu, sample) : INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlGpmMetricsGet(struct gpm_get *get) {
    SYSTEM_CALL(true);
    NEED(get && get->before && get->after);
    if (get->version != 1) return ARGUMENT_VERSION_MISMATCH;
    if (get->before->gpu < 0 || get->before->gpu != get->after->gpu) return INVALID_ARGUMENT;
    double from = get->before->t, to = get->after->t;
    if (to - from < 0.1) return NO_DATA; /* NVML asks for at least 100 ms between the two */
    struct gpu *gpu = &scenario.gpu[get->before->gpu];
    for (unsigned i = 0; i < get->count; ++i) {
        struct gpm_metric *metric = &get->metric[i];
        static const struct { unsigned id; enum key key; double scale; } METRIC[] = {
            {1, GPM_GRAPHICS, 1}, {2, GPM_SM, 1}, {3, GPM_OCCUPANCY, 1}, {5, GPM_TENSOR, 1}, {10, GPM_DRAM, 1},
            {11, GPM_FP64, 1}, {12, GPM_FP32, 1}, {13, GPM_FP16, 1}, {20, PCIE_TX, 1 / 1024.0},
            {21, PCIE_RX, 1 / 1024.0}, {60, NVLINK_RX, 1 / 1024.0}, {61, NVLINK_TX, 1 / 1024.0},
        };
        metric->result = NOT_SUPPORTED;
        for (size_t j = 0; j < sizeof METRIC / sizeof *METRIC; ++j)
            if (METRIC[j].id == metric->id && has(gpu, METRIC[j].key)) {
                metric->value = wave_mean(&gpu->wave[METRIC[j].key], from, to) * METRIC[j].scale;
                metric->result = OK;
            }
    }
    return OK;
}
