/* Kernels: registered, asked about, launched, and never run. */
#include "null_device.h"

int kernel_architecture; /* 0 until the runner sets it: as the device */

API void snapviewer_set_architecture(int architecture) { kernel_architecture = architecture; }

static uint64_t launches;
API uint64_t snapviewer_launches(void) { return __atomic_load_n(&launches, __ATOMIC_RELAXED); }
static int launched(void) { return __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED), SUCCESS; }

API handle *__cudaRegisterFatBinary(void *binary) {
    static handle registered;
    return (void)binary, &registered;
}
API int __cudaPushCallConfiguration(void) { return SUCCESS; }
API int __cudaPopCallConfiguration(void *grid, void *block, size_t *shared, handle *stream) {
    memset(grid, 0, 12);
    memset(block, 0, 12);
    return *shared = 0, *stream = NULL, SUCCESS;
}
API int __cudaGetKernel(handle *out, const void *function) { return *out = (handle)function, SUCCESS; }

API int cudaLaunchKernel(void) { return launched(); }
API int __cudaLaunchKernel(void) { return launched(); }
API int cudaLaunchKernelExC(void) { return launched(); }
API int cudaLaunchCooperativeKernel(void) { return launched(); }
API int cuLaunchKernel(void) { return launched(); }
API int cuLaunchKernelEx(void) { return launched(); }
API int cuLaunchCooperativeKernel(void) { return launched(); }

struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared_bytes;
};
API int cudaFuncGetAttributes(struct function_attributes *out, const void *function) {
    (void)function;
    int architecture = kernel_architecture ? kernel_architecture : profile.capability;
    memset(out, 0, sizeof *out);
    out->max_threads = 1024;
    out->registers = 32;
    out->ptx_version = out->binary_version = architecture;
    out->max_dynamic_shared_bytes = 48 << 10;
    return SUCCESS;
}
API int cuFuncGetAttribute(int *out, int which, handle function) {
    (void)function;
    int architecture = kernel_architecture ? kernel_architecture : profile.capability;
    *out = which == 0 ? 1024 : which == 4 ? 32 : which == 5 || which == 6 ? architecture : 0;
    return SUCCESS;
}

API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out) { return *out = 2, SUCCESS; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out) { return *out = 2, SUCCESS; }
API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out) { return *out = 2, SUCCESS; }
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out) { return *out = 2, SUCCESS; }
API int cuOccupancyMaxActiveClusters(int *out) { return *out = 1, SUCCESS; }

API int cuModuleLoad(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuModuleLoadData(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuModuleLoadDataEx(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuModuleGetFunction(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuLibraryLoadData(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuLibraryGetKernel(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuKernelGetFunction(handle *out) { return *out = new_handle(), SUCCESS; }
API int cudaLibraryLoadData(handle *out) { return *out = new_handle(), SUCCESS; }
API int cudaLibraryGetKernel(handle *out) { return *out = new_handle(), SUCCESS; }
API int cuLinkCreate_v2(unsigned count, void *options, void **values, handle *out) {
    return (void)count, (void)options, (void)values, *out = new_handle(), SUCCESS;
}
API int cuLinkComplete(handle state, void **cubin, size_t *bytes) {
    static char none[8];
    return (void)state, *cubin = none, *bytes = sizeof none, SUCCESS;
}

/* What launchers of Triton's kernels call, by name or linked to it. */
struct tensor_map {
    uint64_t words[16];
};
API int cuTensorMapEncodeTiled(struct tensor_map *out) { return memset(out, 0, sizeof *out), SUCCESS; }
API int cuTensorMapEncodeIm2col(struct tensor_map *out) { return memset(out, 0, sizeof *out), SUCCESS; }
API int cuModuleUnload(void) { return SUCCESS; }
API int cuLinkAddData_v2(void) { return SUCCESS; }
API int cuFuncSetAttribute(void) { return SUCCESS; }
API int cuFuncSetCacheConfig(void) { return SUCCESS; }
API int cuCtxGetLimit(size_t *out) { return *out = 0, SUCCESS; }
API int cuCtxSetLimit(void) { return SUCCESS; }

API int cudaGetSymbolAddress(void **out) { return *out = first_address(), SUCCESS; }
