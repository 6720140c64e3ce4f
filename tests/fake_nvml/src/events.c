/* Event sets: Xid errors that the scenario injects. */
#include "fake.h"

#include <stdlib.h>
#include <time.h>

#define XID_CRITICAL 8ull

struct event_set { bool watched[MAX_GPUS]; int delivered[MAX_GPUS]; };
struct event { nvmlDevice_t device; unsigned long long type, data; unsigned gpu_instance, compute_instance; };

API nvmlReturn_t nvmlEventSetCreate(struct event_set **set) {
    SYSTEM_CALL(true);
    NEED(set);
    *set = calloc(1, sizeof **set);
    return OK;
}

API nvmlReturn_t nvmlEventSetFree(struct event_set *set) {
    SYSTEM_CALL(true);
    free(set);
    return OK;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    DEVICE_CALL(device);
    NEED(types);
    *types = XID_CRITICAL;
    return OK;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, struct event_set *set) {
    DEVICE_CALL(device);
    NEED(set);
    if (types & ~XID_CRITICAL) return NOT_SUPPORTED;
    set->watched[gpu->index] = true;
    return OK;
}

/* A set sees the Xid lines of a GPU in the order of the file, each once, also after the file was written again. */
static bool next_xid(struct event_set *set, struct event *event) {
    for (int i = 0; i < scenario.xids; ++i) {
        struct xid *xid = &scenario.xid[i];
        if (!set->watched[xid->gpu] || xid->ordinal != set->delivered[xid->gpu] || fake_now() < xid->after) continue;
        ++set->delivered[xid->gpu];
        *event = (struct event){&handles[xid->gpu][0], XID_CRITICAL, xid->code, ~0u, ~0u};
        return true;
    }
    return false;
}

API nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, struct event *event, unsigned timeout_ms) {
    SYSTEM_CALL(true);
    NEED(set && event);
    for (unsigned waited = 0;; waited += 250) {
        scenario_refresh();
        if (next_xid(set, event)) return OK;
        if (waited >= timeout_ms) return TIMEOUT;
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
        pthread_mutex_lock(&lock);
    }
}
