/* Functions that are looked up by name while the program runs. */
#define _GNU_SOURCE
#include "null_device.h"

#include <dlfcn.h>
#include <stdio.h>

/* The names that were asked for and do not exist, for the runner to report. */
static char missing[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

API const char *snapviewer_missing(void) { return missing; }

static void report(const char *name) {
    pthread_mutex_lock(&lock);
    size_t length = strlen(missing);
    if (!strstr(missing, name)) {
        snprintf(missing + length, sizeof missing - length, "%s ", name);
    }
    pthread_mutex_unlock(&lock);
}

/* The newest version of a function: with a suffix where the driver has one. */
static void *driver_function(const char *name) {
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    char full[128];
    for (size_t i = 0; i < COUNT(suffixes); i++) {
        snprintf(full, sizeof full, "%s%s", name, suffixes[i]);
        void *found = dlsym(RTLD_DEFAULT, full);
        if (found) {
            return found;
        }
    }
    report(name);
    return NULL;
}

static int entry_point(const char *name, void **out, int *status) {
    *out = driver_function(name);
    if (status) {
        *status = *out ? 0 : 1;
    }
    return SUCCESS;
}
API int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
    return (void)flags, entry_point(name, out, status);
}
API int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags, int *status) {
    return (void)version, (void)flags, entry_point(name, out, status);
}
API int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags, int *status) {
    (void)version, (void)flags;
    entry_point(name, out, status);
    return *out ? SUCCESS : 500; /* not found */
}
API int cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

/* Sharing memory between processes and devices: PyTorch looks these up before it knows whether it needs them. */
API int cuMemExportToShareableHandle(void) { return NOT_SUPPORTED; }
API int cuMemImportFromShareableHandle(void) { return NOT_SUPPORTED; }
API int cuMulticastCreate(void) { return NOT_SUPPORTED; }
API int cuMulticastAddDevice(void) { return NOT_SUPPORTED; }
API int cuMulticastBindMem(void) { return NOT_SUPPORTED; }
API int cuMemsetD32Async(void) { return SUCCESS; }
API int cuStreamWriteValue32(void) { return SUCCESS; }
