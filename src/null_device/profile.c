/* The device that the runner declares: `key=value` lines in $SNAPVIEWER_NULL_DEVICE. */
#include "null_device.h"

struct profile profile = {
    .name = "snapviewer null device",
    .total_bytes = (size_t)80 << 30,
    .context_bytes = 0,
    .capability = 80,
    .multiprocessors = 108,
    .devices = 1,
    .cuda_version = 13000,
    .l2_bytes = 40 << 20,
    .shared_bytes = 164 << 10,
    .cudnn_workspace_bytes = 0,
};

static int64_t number(const char *text, int64_t low, int64_t high) {
    int64_t value = strtoll(text, NULL, 10);
    return value < low ? low : value > high ? high : value;
}

static void set(const char *key, const char *value) {
    if (!strcmp(key, "name")) {
        strncpy(profile.name, value, sizeof profile.name - 1);
    } else if (!strcmp(key, "total_bytes")) {
        profile.total_bytes = number(value, 0, (int64_t)1 << 42);
    } else if (!strcmp(key, "context_bytes")) {
        profile.context_bytes = number(value, 0, (int64_t)1 << 42);
    } else if (!strcmp(key, "capability")) {
        profile.capability = number(value, 10, 999);
    } else if (!strcmp(key, "multiprocessors")) {
        profile.multiprocessors = number(value, 1, 4096);
    } else if (!strcmp(key, "devices")) {
        profile.devices = number(value, 0, MAX_DEVICES);
    } else if (!strcmp(key, "cuda_version")) {
        profile.cuda_version = number(value, 11000, 99000);
    } else if (!strcmp(key, "l2_bytes")) {
        profile.l2_bytes = number(value, 1, INT32_MAX);
    } else if (!strcmp(key, "shared_bytes")) {
        profile.shared_bytes = number(value, 1, INT32_MAX);
    } else if (!strcmp(key, "cudnn_workspace_bytes")) {
        profile.cudnn_workspace_bytes = number(value, 0, (int64_t)1 << 40);
    }
}

/* Again after the environment has changed, which only helps before CUDA is initialized. */
__attribute__((constructor)) API void snapviewer_read_profile(void) {
    const char *declared = getenv("SNAPVIEWER_NULL_DEVICE");
    char *lines = declared ? strdup(declared) : NULL;
    char *rest = NULL;
    for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (equals) {
            *equals = 0;
            set(line, equals + 1);
        }
    }
    free(lines);
}
