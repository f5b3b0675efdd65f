/* Copies. The device holds no values: what the host reads from it is zero, unless the runner's hook
 * puts something else there, or the host has just copied it to the device and nothing has run since. */
#include "null_device.h"

/* The last copy to the device: PyTorch sends sizes through a collective, and reads them back. */
enum { KEPT_BYTES = 1 << 16 };
static struct {
    const char *at;
    size_t bytes;
    uint64_t launches; /* before it */
    char content[KEPT_BYTES];
} last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(const char *at, const void *from, size_t bytes) {
    pthread_mutex_lock(&lock);
    last.at = bytes <= KEPT_BYTES ? at : NULL;
    last.bytes = bytes;
    last.launches = snapviewer_launches();
    if (last.at) {
        memcpy(last.content, from, bytes);
    }
    pthread_mutex_unlock(&lock);
}

static int give_back(void *to, const char *from, size_t bytes) {
    pthread_mutex_lock(&lock);
    int is_kept = last.at && from >= last.at && bytes <= last.bytes && (size_t)(from - last.at) <= last.bytes - bytes &&
                  last.launches == snapviewer_launches();
    if (is_kept) {
        memcpy(to, last.content + (from - last.at), bytes);
    }
    pthread_mutex_unlock(&lock);
    return is_kept;
}

typedef void (*hook)(void *to, size_t bytes);
static hook read_hook;

API void snapviewer_on_read(hook function) { read_hook = function; }

static void copied_to_host(void *to, size_t bytes) {
    memset(to, 0, bytes);
    hook function = read_hook;
    if (function) {
        function(to, bytes);
    }
}

static int copy(void *to, const void *from, size_t bytes) {
    int is_from_device = device_of(from) >= 0;
    if (!bytes) {
        return SUCCESS;
    }
    if (device_of(to) >= 0) {
        keep(is_from_device ? NULL : to, from, is_from_device ? 0 : bytes);
    } else if (is_from_device) {
        if (!give_back(to, from, bytes)) {
            copied_to_host(to, bytes);
        }
    } else {
        memmove(to, from, bytes);
    }
    return SUCCESS;
}
API int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) { return (void)kind, copy(to, from, bytes); }
API int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, handle stream) {
    return (void)kind, (void)stream, copy(to, from, bytes);
}
API int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
API int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, handle stream) {
    return (void)stream, copy(to, from, bytes);
}
API int cudaMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                          int kind, handle stream) {
    (void)kind, (void)stream;
    for (size_t row = 0; row < height; row++) {
        copy(to + row * to_pitch, from + row * from_pitch, width);
    }
    return SUCCESS;
}

static int fill(void *at, int value, size_t bytes) {
    if (device_of(at) < 0) {
        memset(at, value, bytes);
    } else {
        keep(NULL, NULL, 0);
    }
    return SUCCESS;
}
API int cudaMemset(void *at, int value, size_t bytes) { return fill(at, value, bytes); }
API int cudaMemsetAsync(void *at, int value, size_t bytes, handle stream) { return (void)stream, fill(at, value, bytes); }
