/* Streams, events, and the capture of graphs.
 *
 * Everything is finished at once: an event that is asked for has always happened. A stream that is
 * being captured has the number of its capture; waiting for an event of a captured stream joins it.
 */
#include "null_device.h"

#define FIRST_HANDLE 0x10000000u
#define HANDLE_STEP 0x40u
enum { TRACKED = 1 << 16 }; /* handles beyond these are never captured */

static uint32_t handles, captures;
static uint32_t captured[TRACKED + 1]; /* by the number of a stream or an event */

handle new_handle(void) {
    uint32_t number = __atomic_fetch_add(&handles, 1, __ATOMIC_RELAXED);
    return (handle)(uintptr_t)(FIRST_HANDLE + number * (uint64_t)HANDLE_STEP);
}

static uint32_t *capture_slot(handle stream_or_event) {
    uintptr_t number = ((uintptr_t)stream_or_event - FIRST_HANDLE) / HANDLE_STEP;
    static uint32_t none;
    none = 0;
    return number < TRACKED ? &captured[number] : &none;
}
int capture_of(handle stream) { return (int)*capture_slot(stream); }

API int cudaStreamCreateWithPriority(handle *out, unsigned flags, int priority) {
    (void)flags, (void)priority;
    *out = new_handle();
    return SUCCESS;
}
API int cudaStreamCreateWithFlags(handle *out, unsigned flags) { return cudaStreamCreateWithPriority(out, flags, 0); }
API int cudaStreamCreate(handle *out) { return cudaStreamCreateWithPriority(out, 0, 0); }
API int cuStreamCreate(handle *out, unsigned flags) { return cudaStreamCreateWithPriority(out, flags, 0); }
API int cuStreamCreateWithPriority(handle *out, unsigned flags, int priority) {
    return cudaStreamCreateWithPriority(out, flags, priority);
}
API int cudaStreamGetPriority(handle stream, int *out) { return (void)stream, *out = 0, SUCCESS; }

API int cudaEventCreateWithFlags(handle *out, unsigned flags) {
    (void)flags;
    *out = new_handle();
    return SUCCESS;
}
API int cudaEventCreate(handle *out) { return cudaEventCreateWithFlags(out, 0); }
API int cuEventCreate(handle *out, unsigned flags) { return cudaEventCreateWithFlags(out, flags); }
API int cudaEventRecord(handle event, handle stream) { return *capture_slot(event) = capture_of(stream), SUCCESS; }
API int cudaEventRecordWithFlags(handle event, handle stream, unsigned flags) {
    return (void)flags, cudaEventRecord(event, stream);
}
/* Every measurement takes 1 ms: what compares kernels by their times divides by them. */
API int cudaEventElapsedTime(float *out, handle begin, handle end) { return (void)begin, (void)end, *out = 1, SUCCESS; }
API int cudaEventElapsedTime_v2(float *out, handle begin, handle end) { return cudaEventElapsedTime(out, begin, end); }
API int cuEventElapsedTime(float *out, handle begin, handle end) { return cudaEventElapsedTime(out, begin, end); }

API int cudaStreamWaitEvent(handle stream, handle event, unsigned flags) {
    (void)flags;
    if (capture_of(event)) {
        *capture_slot(stream) = capture_of(event);
    }
    return SUCCESS;
}

/* A function of the host runs at once. */
API int cudaLaunchHostFunc(handle stream, void (*function)(void *), void *data) {
    if (!capture_of(stream)) {
        function(data);
    }
    return SUCCESS;
}
API int cudaStreamAddCallback(handle stream, void (*function)(handle, int, void *), void *data, unsigned flags) {
    (void)flags;
    function(stream, SUCCESS, data);
    return SUCCESS;
}

API int cudaStreamBeginCapture(handle stream, int mode) {
    (void)mode;
    *capture_slot(stream) = __atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
API int cudaStreamBeginCaptureToGraph(handle stream, handle graph, const handle *nodes, const void *edges, size_t count, int mode) {
    return (void)graph, (void)nodes, (void)edges, (void)count, cudaStreamBeginCapture(stream, mode);
}
API int cudaStreamEndCapture(handle stream, handle *graph) {
    uint32_t capture = capture_of(stream);
    if (!capture) {
        return failed(INVALID_VALUE);
    }
    for (size_t i = 0; i < TRACKED; i++) {
        captured[i] = captured[i] == capture ? 0 : captured[i];
    }
    *graph = new_handle();
    return SUCCESS;
}
API int cudaStreamIsCapturing(handle stream, int *out) { return *out = capture_of(stream) != 0, SUCCESS; }

static int capture_info(handle stream, int *status, unsigned long long *id, handle *graph) {
    *status = capture_of(stream) != 0;
    if (id) {
        *id = capture_of(stream);
    }
    if (graph) {
        *graph = *status ? (handle)(uintptr_t)FIRST_HANDLE : NULL;
    }
    return SUCCESS;
}
static void no_dependencies(const handle **dependencies, size_t *count) {
    if (dependencies) {
        *dependencies = NULL;
    }
    if (count) {
        *count = 0;
    }
}
/* Since CUDA 13 with edges; before, this name had three arguments only. */
API int cudaStreamGetCaptureInfo(handle stream, int *status, unsigned long long *id, handle *graph,
                                 const handle **dependencies, const void **edges, size_t *count) {
    if (profile.cuda_version < 13000) {
        return capture_info(stream, status, id, NULL);
    }
    no_dependencies(dependencies, count);
    if (edges) {
        *edges = NULL;
    }
    return capture_info(stream, status, id, graph);
}
API int cudaStreamGetCaptureInfo_v2(handle stream, int *status, unsigned long long *id, handle *graph,
                                    const handle **dependencies, size_t *count) {
    no_dependencies(dependencies, count);
    return capture_info(stream, status, id, graph);
}
API int cudaStreamGetCaptureInfo_v3(handle stream, int *status, unsigned long long *id, handle *graph,
                                    const handle **dependencies, const void **edges, size_t *count) {
    no_dependencies(dependencies, count);
    if (edges) {
        *edges = NULL;
    }
    return capture_info(stream, status, id, graph);
}

API int cudaGraphInstantiateWithFlags(handle *out, handle graph, unsigned long long flags) {
    return (void)graph, (void)flags, *out = new_handle(), SUCCESS;
}
API int cudaGraphInstantiate(handle *out, handle graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(out, graph, flags);
}
/* One node, because PyTorch warns of empty graphs. */
API int cudaGraphGetNodes(handle graph, handle *nodes, size_t *count) {
    (void)graph;
    if (nodes && *count) {
        nodes[0] = (handle)(uintptr_t)FIRST_HANDLE;
    }
    *count = 1;
    return SUCCESS;
}
API int cudaGraphNodeGetDependencies(handle node, handle *dependencies, void *edges, size_t *count) {
    return (void)node, (void)dependencies, (void)edges, *count = 0, SUCCESS;
}
API int cudaGraphAddNode(handle *out) { return *out = new_handle(), SUCCESS; }
API int cudaGraphConditionalHandleCreate(unsigned long long *out) { return *out = 1, SUCCESS; }

/* PyTorch's relaxed capture mode comes back as it was. */
API int cudaThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int current;
    int before = current;
    current = *mode;
    *mode = before;
    return SUCCESS;
}
