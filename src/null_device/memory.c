/* Memory: addresses, the capacity of each device, virtual memory, pinned host memory.
 *
 * Each device has a range of addresses that is reserved and never touched. A range is handed out first
 * fit, in steps of 2 MiB, so that two runs have the same addresses. Physical bytes are counted apart
 * from addresses: expandable segments reserve more addresses than there is memory.
 */
#define _GNU_SOURCE
#include "null_device.h"

#include <sys/mman.h>

#define RANGE_BASE ((uintptr_t)16 << 40)
#define RANGE_BYTES ((uintptr_t)4 << 40) /* per device */

struct range {
    uintptr_t address;
    size_t bytes;
    handle physical; /* what is mapped here, for virtual memory */
    struct range *next;
};

struct physical {
    size_t bytes;
    int device;
    int references; /* the handle itself, and each mapping */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *reserved[MAX_DEVICES]; /* in order of address */
static struct range *mappings, *pinned;
static size_t used[MAX_DEVICES];

__attribute__((constructor)) static void reserve_addresses(void) {
#ifdef MAP_FIXED_NOREPLACE
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    /* If it fails, the addresses are only unlikely to be used by others. */
    (void)!mmap((void *)RANGE_BASE, RANGE_BYTES * MAX_DEVICES, PROT_NONE, flags, -1, 0);
#endif
}

int device_of(const void *address) {
    uintptr_t at = (uintptr_t)address;
    return at < RANGE_BASE || at >= RANGE_BASE + RANGE_BYTES * MAX_DEVICES ? -1 : (int)((at - RANGE_BASE) / RANGE_BYTES);
}

/* An address of the first device that is never handed out. */
void *first_address(void) { return (void *)RANGE_BASE; }

static size_t rounded(size_t bytes) { return (bytes + GRANULE - 1) / GRANULE * GRANULE; }

static struct range *insert(struct range **link, uintptr_t address, size_t bytes) {
    struct range *made = calloc(1, sizeof *made);
    if (made) {
        *made = (struct range){.address = address, .bytes = bytes, .next = *link};
        *link = made;
    }
    return made;
}

static struct range *take(struct range **list, uintptr_t address) {
    for (struct range **link = list; *link; link = &(*link)->next) {
        if ((*link)->address == address) {
            struct range *found = *link;
            *link = found->next;
            return found;
        }
    }
    return NULL;
}

/* The first gap that is large enough; 0 if there is none. */
static uintptr_t reserve(int device, size_t bytes) {
    uintptr_t at = RANGE_BASE + (uintptr_t)device * RANGE_BYTES + GRANULE;
    struct range **link = &reserved[device];
    for (; *link && (*link)->address - at < bytes; link = &(*link)->next) {
        at = (*link)->address + (*link)->bytes;
    }
    uintptr_t end = RANGE_BASE + (uintptr_t)(device + 1) * RANGE_BYTES;
    return bytes <= end - at && insert(link, at, bytes) ? at : 0;
}

static int has_room(int device, size_t bytes) {
    size_t usable = profile.total_bytes > profile.context_bytes ? profile.total_bytes - profile.context_bytes : 0;
    return bytes <= usable && used[device] <= usable - bytes;
}

size_t used_bytes(int device) {
    pthread_mutex_lock(&lock);
    size_t bytes = used[device];
    pthread_mutex_unlock(&lock);
    return bytes;
}

static int allocate(void **out, size_t bytes) {
    if (!out) {
        return INVALID_VALUE;
    }
    *out = NULL;
    if (!bytes) {
        return SUCCESS;
    }
    if (bytes > RANGE_BYTES) {
        return OUT_OF_MEMORY;
    }
    bytes = rounded(bytes);
    pthread_mutex_lock(&lock);
    uintptr_t at = has_room(current_device, bytes) ? reserve(current_device, bytes) : 0;
    used[current_device] += at ? bytes : 0;
    pthread_mutex_unlock(&lock);
    *out = (void *)at;
    return at ? SUCCESS : OUT_OF_MEMORY;
}

static int release(void *address) {
    if (!address) {
        return SUCCESS;
    }
    int device = device_of(address);
    if (device < 0) {
        return INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    struct range *found = take(&reserved[device], (uintptr_t)address);
    used[device] -= found ? found->bytes : 0;
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? SUCCESS : INVALID_VALUE;
}

API int cudaMalloc(void **out, size_t bytes) { return failed(allocate(out, bytes)); }
API int cudaMallocAsync(void **out, size_t bytes, handle stream) { return (void)stream, failed(allocate(out, bytes)); }
API int cudaMallocFromPoolAsync(void **out, size_t bytes, handle pool, handle stream) {
    return (void)pool, (void)stream, failed(allocate(out, bytes));
}
API int cudaFree(void *address) { return failed(release(address)); }
API int cudaFreeAsync(void *address, handle stream) { return (void)stream, failed(release(address)); }
API int cuMemAlloc_v2(void **out, size_t bytes) { return allocate(out, bytes); }
API int cuMemFree_v2(void *address) { return release(address); }

API int cudaMemGetInfo(size_t *available, size_t *total) {
    size_t taken = used_bytes(current_device) + profile.context_bytes;
    *total = profile.total_bytes;
    *available = taken < *total ? *total - taken : 0;
    return SUCCESS;
}
API int cuMemGetInfo_v2(size_t *available, size_t *total) { return cudaMemGetInfo(available, total); }

API int cuMemGetAddressRange_v2(void **base, size_t *bytes, void *address) {
    int device = device_of(address), code = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct range *each = device < 0 ? NULL : reserved[device]; each; each = each->next) {
        if ((uintptr_t)address - each->address < each->bytes) {
            code = SUCCESS;
            if (base) {
                *base = (void *)each->address;
            }
            if (bytes) {
                *bytes = each->bytes;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}
API int cuMemGetAddressRange(void **base, size_t *bytes, void *address) {
    return cuMemGetAddressRange_v2(base, bytes, address);
}

/* Virtual memory. A location in the driver's properties is two ints, after two others. */
struct allocation_properties {
    int type, handle_types, location_type, location_id;
};

API int cuMemAddressReserve(void **out, size_t bytes, size_t alignment, void *hint, unsigned long long flags) {
    (void)alignment, (void)hint, (void)flags;
    if (bytes > RANGE_BYTES) {
        return OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    uintptr_t at = reserve(current_device, rounded(bytes));
    pthread_mutex_unlock(&lock);
    *out = (void *)at;
    return at ? SUCCESS : OUT_OF_MEMORY;
}

API int cuMemAddressFree(void *address, size_t bytes) {
    (void)bytes;
    int device = device_of(address);
    pthread_mutex_lock(&lock);
    struct range *found = device < 0 ? NULL : take(&reserved[device], (uintptr_t)address);
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? SUCCESS : INVALID_VALUE;
}

API int cuMemCreate(handle *out, size_t bytes, const struct allocation_properties *properties, unsigned long long flags) {
    (void)flags;
    int device = properties->location_id;
    if (device < 0 || device >= profile.devices || bytes % GRANULE) {
        return INVALID_VALUE;
    }
    struct physical *made = calloc(1, sizeof *made);
    pthread_mutex_lock(&lock);
    int fits = made && has_room(device, bytes);
    used[device] += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    if (!fits) {
        free(made);
        return OUT_OF_MEMORY;
    }
    *made = (struct physical){.bytes = bytes, .device = device, .references = 1};
    *out = made;
    return SUCCESS;
}

/* Called with the lock held. */
static void drop(struct physical *physical) {
    if (!--physical->references) {
        used[physical->device] -= physical->bytes;
        free(physical);
    }
}

API int cuMemRelease(handle physical) {
    pthread_mutex_lock(&lock);
    drop(physical);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

API int cuMemMap(void *address, size_t bytes, size_t offset, handle physical, unsigned long long flags) {
    (void)offset, (void)flags;
    pthread_mutex_lock(&lock);
    struct range *made = insert(&mappings, (uintptr_t)address, bytes);
    if (made) {
        made->physical = physical;
        ((struct physical *)physical)->references++;
    }
    pthread_mutex_unlock(&lock);
    return made ? SUCCESS : OUT_OF_MEMORY;
}

/* One call may cover several mappings. */
API int cuMemUnmap(void *address, size_t bytes) {
    uintptr_t begin = (uintptr_t)address;
    pthread_mutex_lock(&lock);
    for (struct range **link = &mappings; *link;) {
        struct range *each = *link;
        if (each->address - begin < bytes) {
            *link = each->next;
            drop(each->physical);
            free(each);
        } else {
            link = &each->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

API int cuMemSetAccess(void *address, size_t bytes, const void *descriptors, size_t count) {
    return (void)address, (void)bytes, (void)descriptors, (void)count, SUCCESS;
}

API int cuMemGetAllocationGranularity(size_t *out, const void *properties, int option) {
    (void)properties, (void)option;
    *out = GRANULE;
    return SUCCESS;
}

API int cuMemGetAllocationPropertiesFromHandle(struct allocation_properties *out, handle physical) {
    memset(out, 0, 32);
    *out = (struct allocation_properties){1, 0, 1, ((struct physical *)physical)->device};
    return SUCCESS;
}

API int cuMemRetainAllocationHandle(handle *out, void *address) {
    int code = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (struct range *each = mappings; each; each = each->next) {
        if ((uintptr_t)address - each->address < each->bytes) {
            *out = each->physical;
            ((struct physical *)each->physical)->references++;
            code = SUCCESS;
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Pinned host memory is ordinary memory: pages that nobody touches cost nothing. */
static int pin(void *address, size_t bytes) {
    pthread_mutex_lock(&lock);
    struct range *made = insert(&pinned, (uintptr_t)address, bytes);
    pthread_mutex_unlock(&lock);
    return made ? SUCCESS : OUT_OF_MEMORY;
}

int is_pinned(const void *address) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (struct range *each = pinned; each && !found; each = each->next) {
        found = (uintptr_t)address - each->address < each->bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

API int cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    void *made = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED || pin(made, bytes ? bytes : 1)) {
        return failed(OUT_OF_MEMORY);
    }
    *out = made;
    return SUCCESS;
}
API int cudaMallocHost(void **out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }

API int cudaFreeHost(void *address) {
    pthread_mutex_lock(&lock);
    struct range *found = take(&pinned, (uintptr_t)address);
    pthread_mutex_unlock(&lock);
    if (found) {
        munmap(address, found->bytes);
    }
    free(found);
    return failed(found || !address ? SUCCESS : INVALID_VALUE);
}

API int cudaHostRegister(void *address, size_t bytes, unsigned flags) { return (void)flags, failed(pin(address, bytes)); }

API int cudaHostUnregister(void *address) {
    pthread_mutex_lock(&lock);
    struct range *found = take(&pinned, (uintptr_t)address);
    pthread_mutex_unlock(&lock);
    free(found);
    return failed(found ? SUCCESS : INVALID_VALUE);
}

API int cudaHostGetDevicePointer(void **out, void *address, unsigned flags) {
    (void)flags;
    *out = address;
    return SUCCESS;
}
API int cudaHostGetFlags(unsigned *out, void *address) {
    (void)address;
    *out = 0;
    return SUCCESS;
}
