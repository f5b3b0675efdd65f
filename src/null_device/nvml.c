/* NVML: what PyTorch needs to name the processes in its message about memory. */
#include "null_device.h"

#include <stdio.h>
#include <unistd.h>

API int nvmlInit_v2(void) { return SUCCESS; }
API int nvmlShutdown(void) { return SUCCESS; }
API const char *nvmlErrorString(int code) { return code ? "unknown error" : "success"; }
API int nvmlSystemGetCudaDriverVersion_v2(int *out) { return *out = profile.cuda_version, SUCCESS; }
API int nvmlDeviceGetCount_v2(unsigned *out) { return *out = profile.devices, SUCCESS; }

/* A device's handle is its number plus one. */
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out) {
    *out = (handle)(uintptr_t)(index + 1);
    return index < (unsigned)profile.devices ? SUCCESS : 2;
}
API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, handle *out) {
    unsigned domain = 0, number = 1;
    sscanf(bus, "%x:%x", &domain, &number);
    return nvmlDeviceGetHandleByIndex_v2(number - 1, out);
}

struct process {
    unsigned pid;
    unsigned long long bytes;
};
API int nvmlDeviceGetComputeRunningProcesses(handle device, unsigned *count, struct process *out) {
    unsigned room = *count;
    *count = 1;
    if (!room || !out) {
        return 7; /* the array is too small */
    }
    out[0].pid = getpid();
    out[0].bytes = used_bytes((int)(uintptr_t)device - 1) + profile.context_bytes;
    return SUCCESS;
}

struct memory {
    unsigned long long total, available, used;
};
API int nvmlDeviceGetMemoryInfo(handle device, struct memory *out) {
    out->total = profile.total_bytes;
    out->used = used_bytes((int)(uintptr_t)device - 1) + profile.context_bytes;
    out->available = out->total > out->used ? out->total - out->used : 0;
    return SUCCESS;
}

/* There is no NVLink. */
API int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return 3; }
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return 3; }
