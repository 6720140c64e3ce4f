/* Entering a call: the journal of calls, the faults of the scenario, the lock; and counters that go on counting. */
#include "fake.h"

#include <string.h>
#include <time.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct handle handles[MAX_GPUS][MAX_MIG + 1];
int init_count;

__attribute__((constructor)) static void number_handles(void) {
    for (int gpu = 0; gpu < MAX_GPUS; ++gpu)
        for (int mig = 0; mig <= MAX_MIG; ++mig) handles[gpu][mig] = (struct handle){gpu, mig};
}

/* ---- the journal, for tests: how often was a function called, and was a null handle ever passed */

#define MAX_FUNCTIONS 256
static struct { const char *name; unsigned calls[MAX_GPUS + 1]; } journal[MAX_FUNCTIONS];
static unsigned null_handles;

static void count(const char *function, int gpu) {
    for (int i = 0; i < MAX_FUNCTIONS; ++i) {
        if (!journal[i].name) journal[i].name = function;
        if (journal[i].name == function || strcmp(journal[i].name, function) == 0) {
            ++journal[i].calls[gpu < 0 ? MAX_GPUS : gpu];
            return;
        }
    }
}

/* Calls of `function` on GPU `gpu` so far; -1: the calls that name no GPU; -2: all of them. */
API unsigned fakeNvmlCalls(const char *function, int gpu) {
    unsigned found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_FUNCTIONS && journal[i].name; ++i)
        if (strcmp(journal[i].name, function) == 0 || strcmp(function, "*") == 0)
            for (int j = 0; j <= MAX_GPUS; ++j)
                if (gpu == -2 || j == (gpu < 0 ? MAX_GPUS : gpu)) found += journal[i].calls[j];
    pthread_mutex_unlock(&lock);
    return found;
}

API unsigned fakeNvmlNullHandles(void) { return null_handles; }

/* ---- faults */

static const struct rule *rule_for(const char *function, int gpu, bool hang) {
    double now = fake_now();
    for (int i = scenario.rules - 1; i >= 0; --i) { /* the last line wins */
        const struct rule *rule = &scenario.rule[i];
        if (rule->hang != hang || (rule->gpu >= 0 && rule->gpu != gpu) || now < rule->after) continue;
        if (rule->function[0] == '*' || strcmp(rule->function, function) == 0) return rule;
    }
    return NULL;
}

static void hang_as_told(const char *function, int gpu) { /* ends early when the scenario drops the fault */
    double waited = 0;
    for (;;) {
        const struct rule *rule = rule_for(function, gpu, true);
        if (!rule || waited >= rule->seconds) return;
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        waited += 0.01;
        pthread_mutex_lock(&lock);
        scenario_refresh();
    }
}

static nvmlReturn_t enter(const char *function, int gpu) {
    scenario_refresh();
    count(function, gpu);
    hang_as_told(function, gpu);
    if (gpu >= 0 && scenario.gpu[gpu].lost_after >= 0 && fake_now() >= scenario.gpu[gpu].lost_after) return GPU_IS_LOST;
    const struct rule *rule = rule_for(function, gpu, false);
    return rule ? rule->error : OK;
}

/* Both return with the lock held, whatever the result: the caller's guard gives it back. */
nvmlReturn_t enter_system(const char *function, bool needs_init) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = enter(function, -1);
    return result == OK && needs_init && !init_count ? UNINITIALIZED : result;
}

nvmlReturn_t enter_device(const char *function, nvmlDevice_t device, struct gpu **gpu) {
    pthread_mutex_lock(&lock);
    bool known = device >= &handles[0][0] && device <= &handles[MAX_GPUS - 1][MAX_MIG];
    null_handles += !device;
    nvmlReturn_t result = enter(function, known ? device->gpu : -1);
    if (!init_count) return UNINITIALIZED;
    if (!known) return INVALID_ARGUMENT;
    *gpu = &scenario.gpu[device->gpu];
    return result;
}

void leave(int *guard) {
    (void)guard;
    pthread_mutex_unlock(&lock);
}

/* ---- counters: what the rates add up to; energy in mJ from watts, the others in KiB from KiB/s */

static struct { double total[COUNTERS], at; bool begun; } counted[MAX_GPUS];

double counter_value(struct gpu *gpu, enum counter which) {
    static const enum key RATE[COUNTERS] = {POWER, PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX};
    double now = fake_now(), from = counted[gpu->index].begun ? counted[gpu->index].at : now;
    for (int i = 0; i < COUNTERS; ++i)
        if (now > from)
            counted[gpu->index].total[i] +=
                wave_mean(&gpu->wave[RATE[i]], from, now) * (now - from) * (i == COUNT_ENERGY ? 1000 : 1);
    counted[gpu->index].at = now;
    counted[gpu->index].begun = true;
    return counted[gpu->index].total[which];
}

void counter_set(int gpu, enum counter which, double value) { counted[gpu].total[which] = value; }
