/* Devices: how many, their properties and attributes; errors; versions. */
#include "null_device.h"

#include <stdio.h>

__thread int current_device;
static __thread int last_error;

int failed(int code) {
    if (code) {
        last_error = code;
    }
    return code;
}

API int cudaGetLastError(void) {
    int code = last_error;
    last_error = SUCCESS;
    return code;
}
API int cudaPeekAtLastError(void) { return last_error; }

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {SUCCESS, "cudaSuccess", "no error"},
    {INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
};

API const char *cudaGetErrorName(int code) {
    for (size_t i = 0; i < COUNT(errors); i++) {
        if (errors[i].code == code) {
            return errors[i].name;
        }
    }
    return "cudaErrorUnknown";
}
API const char *cudaGetErrorString(int code) {
    for (size_t i = 0; i < COUNT(errors); i++) {
        if (errors[i].code == code) {
            return errors[i].text;
        }
    }
    return "unknown error";
}
API int cuGetErrorString(int code, const char **out) { return *out = cudaGetErrorString(code), SUCCESS; }
API int cuGetErrorName(int code, const char **out) { return *out = cudaGetErrorName(code), SUCCESS; }

API int cudaRuntimeGetVersion(int *out) { return *out = profile.cuda_version, SUCCESS; }
API int cudaDriverGetVersion(int *out) { return *out = profile.cuda_version, SUCCESS; }
API int cuDriverGetVersion(int *out) { return *out = profile.cuda_version, SUCCESS; }

API int cuInit(unsigned flags) { return (void)flags, SUCCESS; }
API int cudaGetDeviceCount(int *out) { return *out = profile.devices, SUCCESS; }
API int cuDeviceGetCount(int *out) { return *out = profile.devices, SUCCESS; }
API int cudaGetDevice(int *out) { return *out = current_device, SUCCESS; }
API int cudaSetDevice(int device) {
    if (device < 0 || device >= profile.devices) {
        return failed(INVALID_DEVICE);
    }
    current_device = device;
    return SUCCESS;
}
API int cuDeviceGet(int *out, int ordinal) {
    *out = ordinal;
    return ordinal >= 0 && ordinal < profile.devices ? SUCCESS : INVALID_DEVICE;
}
API int cuDeviceGetName(char *out, int length, int device) {
    (void)device;
    snprintf(out, length, "%s", profile.name);
    return SUCCESS;
}
API int cuDeviceTotalMem_v2(size_t *out, int device) { return (void)device, *out = profile.total_bytes, SUCCESS; }
API int cuDeviceGetUuid(char out[16], int device) {
    memset(out, 0, 16);
    out[0] = (char)(device + 1);
    return SUCCESS;
}
API int cuDeviceGetUuid_v2(char out[16], int device) { return cuDeviceGetUuid(out, device); }
API int cudaDeviceGetPCIBusId(char *out, int length, int device) {
    snprintf(out, length, "0000:%02X:00.0", device + 1);
    return SUCCESS;
}
API int cudaDeviceCanAccessPeer(int *out, int device, int peer) { return *out = device != peer, SUCCESS; }
API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, SUCCESS; }

/* Contexts: a device has one, whose handle is its number plus one. */
static handle context_of(int device) { return (handle)(uintptr_t)(device + 1); }
API int cuDevicePrimaryCtxRetain(handle *out, int device) { return *out = context_of(device), SUCCESS; }
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    return (void)device, *flags = 0, *active = 1, SUCCESS;
}
API int cuCtxGetCurrent(handle *out) { return *out = context_of(current_device), SUCCESS; }
API int cuCtxGetDevice(int *out) { return *out = current_device, SUCCESS; }
API int cuCtxSetCurrent(handle context) { return context ? cudaSetDevice((int)(uintptr_t)context - 1) : SUCCESS; }
API int cuCtxPushCurrent_v2(handle context) { return cuCtxSetCurrent(context); }
API int cuCtxPopCurrent_v2(handle *out) { return out ? cuCtxGetCurrent(out) : SUCCESS; }

static int threads_per_multiprocessor(void) {
    int capability = profile.capability;
    return capability == 75 ? 1024 : capability == 86 || capability == 89 || capability >= 120 ? 1536 : 2048;
}

/* Attributes have the same numbers in the runtime and the driver. */
static int attribute(int which, int device) {
    switch (which) {
    case 1: case 2: case 3: return 1024; /* threads per block; its first two dimensions */
    case 4: return 64;
    case 5: return INT32_MAX; /* dimensions of a grid */
    case 6: case 7: return 65535;
    case 8: return 48 << 10;  /* shared memory per block */
    case 9: return 64 << 10;  /* constant memory */
    case 10: return 32;       /* warp */
    case 11: return INT32_MAX; /* pitch */
    case 12: case 82: return 64 << 10; /* registers per block, per multiprocessor */
    case 13: return 1500000;  /* clock */
    case 14: return 512;      /* alignment of textures */
    case 16: return profile.multiprocessors;
    case 33: return device + 1; /* PCI bus */
    case 36: return 1500000;  /* clock of the memory */
    case 37: return 5120;     /* width of the memory's bus */
    case 38: return profile.l2_bytes;
    case 39: return threads_per_multiprocessor();
    case 40: return 2;        /* copy engines */
    case 75: return profile.capability / 10;
    case 76: return profile.capability % 10;
    case 81: return profile.shared_bytes;
    case 97: return profile.shared_bytes - 1024; /* shared memory per block, opt in */
    case 106: return threads_per_multiprocessor() / 64;
    case 108: case 109: return profile.l2_bytes / 2;
    case 111: return 1024;    /* reserved shared memory per block */
    case 15: case 19: case 31: case 41: case 78: case 79: case 80: case 83: case 89: case 90: case 91: case 95:
    case 99: case 102: case 103: case 115: return 1; /* what every such GPU supports */
    default: return 0;
    }
}
API int cudaDeviceGetAttribute(int *out, int which, int device) { return *out = attribute(which, device), SUCCESS; }
API int cuDeviceGetAttribute(int *out, int which, int device) { return *out = attribute(which, device), SUCCESS; }
API int cuDeviceComputeCapability(int *major, int *minor, int device) {
    return (void)device, *major = profile.capability / 10, *minor = profile.capability % 10, SUCCESS;
}

/* The properties, in the order of their structure: ints by the attribute that they equal, and the rest.
 * CUDA 13 dropped some. */
enum { NAME = -1, UUID = -2, TOTAL = -3, ZERO = -4 };
static const struct {
    int16_t what;
    uint8_t unit, count, is_in_13;
} properties[] = {
    {NAME, 1, 255, 1}, {ZERO, 1, 1, 1}, {UUID, 1, 16, 1}, {ZERO, 1, 8, 1}, {ZERO, 4, 1, 1}, {TOTAL, 8, 1, 1},
    {8, 8, 1, 1}, {12, 4, 1, 1}, {10, 4, 1, 1}, {11, 8, 1, 1}, {1, 4, 1, 1}, {2, 4, 1, 1}, {3, 4, 1, 1}, {4, 4, 1, 1},
    {5, 4, 1, 1}, {6, 4, 1, 1}, {7, 4, 1, 1}, {13, 4, 1, 0}, {9, 8, 1, 1}, {75, 4, 1, 1}, {76, 4, 1, 1},
    {14, 8, 1, 1}, {51, 8, 1, 1}, {15, 4, 1, 0}, {16, 4, 1, 1}, {17, 4, 1, 0}, {18, 4, 1, 1}, {19, 4, 1, 1},
    {20, 4, 1, 0}, {ZERO, 4, 2, 1}, {ZERO, 4, 1, 0}, {ZERO, 4, 37, 1} /* textures and surfaces */, {14, 8, 1, 1},
    {31, 4, 1, 1}, {32, 4, 1, 1}, {33, 4, 1, 1}, {34, 4, 1, 1}, {50, 4, 1, 1}, {35, 4, 1, 1}, {40, 4, 1, 1},
    {41, 4, 1, 1}, {36, 4, 1, 0}, {37, 4, 1, 1}, {38, 4, 1, 1}, {108, 4, 1, 1}, {39, 4, 1, 1}, {78, 4, 1, 1},
    {79, 4, 1, 1}, {80, 4, 1, 1}, {81, 8, 1, 1}, {82, 4, 1, 1}, {83, 4, 1, 1}, {84, 4, 1, 1}, {85, 4, 1, 1},
    {86, 4, 1, 1}, {87, 4, 1, 0}, {88, 4, 1, 1}, {89, 4, 1, 1}, {90, 4, 1, 1}, {91, 4, 1, 1}, {95, 4, 1, 1},
    {96, 4, 1, 0}, {97, 8, 1, 1}, {100, 4, 1, 1}, {101, 4, 1, 1}, {106, 4, 1, 1}, {109, 4, 1, 1}, {111, 8, 1, 1},
    {99, 4, 1, 1},
};

static int device_properties(char *out, int device) {
    int is_13 = profile.cuda_version >= 13000;
    if (device < 0 || device >= profile.devices) {
        return failed(INVALID_DEVICE);
    }
    size_t at = 0;
    for (size_t i = 0; i < COUNT(properties); i++) {
        int what = properties[i].what, unit = properties[i].unit;
        if (is_13 && !properties[i].is_in_13) {
            continue;
        }
        at = (at + unit - 1) / unit * unit;
        memset(out + at, 0, (size_t)unit * properties[i].count);
        if (what == NAME) {
            snprintf(out + at, 255, "%s", profile.name);
        } else if (what == UUID) {
            cuDeviceGetUuid(out + at, device);
        } else if (what == TOTAL) {
            memcpy(out + at, &profile.total_bytes, 8);
        } else if (what != ZERO) {
            int64_t value = attribute(what, device);
            memcpy(out + at, &value, unit); /* little-endian on every system that this is built for */
        }
        at += (size_t)unit * properties[i].count;
    }
    return SUCCESS;
}
API int cudaGetDeviceProperties(char *out, int device) { return device_properties(out, device); }
API int cudaGetDeviceProperties_v2(char *out, int device) { return device_properties(out, device); }

struct pointer_attributes {
    int type, device;
    void *device_pointer, *host_pointer;
};
API int cudaPointerGetAttributes(struct pointer_attributes *out, const void *address) {
    int device = device_of(address), pinned = device < 0 && is_pinned(address);
    memset(out, 0, sizeof *out);
    out->type = device >= 0 ? 2 : pinned;
    out->device = device >= 0 ? device : pinned ? current_device : -2;
    out->device_pointer = device >= 0 || pinned ? (void *)address : NULL;
    out->host_pointer = device >= 0 ? NULL : (void *)address;
    return SUCCESS;
}
API int cuPointerGetAttribute(void *out, int which, void *address) {
    int device = device_of(address);
    if (which == 1) { /* the context */
        *(handle *)out = context_of(device < 0 ? 0 : device);
    } else if (which == 2) { /* host or device */
        *(int *)out = device < 0 ? 1 : 2;
    } else if (which == 3 || which == 4) { /* its address on the device, or the host */
        *(void **)out = address;
    } else if (which == 9) { /* ordinal */
        *(int *)out = device < 0 ? 0 : device;
    } else {
        return NOT_SUPPORTED;
    }
    return device < 0 && !is_pinned(address) ? INVALID_VALUE : SUCCESS;
}
API int cuPointerGetAttributes(unsigned count, const int *which, void **out, void *address) {
    int code = SUCCESS;
    for (unsigned i = 0; i < count && !code; i++) {
        code = cuPointerGetAttribute(out[i], which[i], address);
    }
    return code;
}
