/* The null device: a GPU that hands out addresses and computes nothing.
 *
 * The library is preloaded into a process that runs PyTorch. It defines what PyTorch imports from the
 * CUDA runtime and driver, cuBLAS, cuDNN and NVML. Memory is counted against a capacity, kernels are
 * never run, and what is copied from the device is zero. Functions that are not written here are
 * generated for the installed PyTorch (python/snapviewer/capture/stub_library.py).
 *
 * Layouts and numbers are facts of the interface, per major version of CUDA. No header of NVIDIA's is used.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_DEVICES = 16 };
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_SUPPORTED = 801 };

#define GRANULE ((size_t)2 << 20) /* the driver's unit of device memory */

typedef void *handle;

/* What the runner declares, in the environment (profile.c). */
struct profile {
    char name[128];
    size_t total_bytes;   /* what the device reports as its memory */
    size_t context_bytes; /* taken by the CUDA context before the first allocation */
    int capability;       /* 80 for 8.0 */
    int multiprocessors;
    int devices;
    int cuda_version; /* 12040 for 12.4 */
    int l2_bytes;
    int shared_bytes; /* of shared memory per multiprocessor */
    size_t cudnn_workspace_bytes;
};
extern struct profile profile;

/* The newest architecture that PyTorch was built for and the device can run (kernels.c). */
extern int kernel_architecture;
API uint64_t snapviewer_launches(void);

extern __thread int current_device;
int failed(int code); /* remember the error for cudaGetLastError, and return it */

/* A new handle that is never null. Handles are numbers, so that two runs have the same ones. */
handle new_handle(void);

/* memory.c */
int device_of(const void *address); /* -1 for host memory */
void *first_address(void);
int is_pinned(const void *address);
size_t used_bytes(int device);

/* streams.c */
int capture_of(handle stream); /* 0 if the stream is not being captured */

/* guesses.c */
void guessed(const char *what, size_t bytes);
