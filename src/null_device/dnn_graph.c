/* cuDNN's graph interface, by which PyTorch calls cuDNN's attention.
 *
 * A descriptor is accepted whatever is set on it, the heuristic finds one engine, and the workspace of
 * its plan is what the profile sets. The real library cannot answer: the CUDA runtime inside it only
 * accepts NVIDIA's own driver.
 */
#include "null_device.h"

/* Attributes, and the types of their values. */
enum { HEURISTIC_RESULTS = 202, ENGINE_WORKSPACE_BYTES = 303, ENGINE_SHARED_BYTES = 304, PLAN_WORKSPACE_BYTES = 402 };
enum { INT64 = 3 };

API int cudnnBackendCreateDescriptor(int type, handle *out) { return (void)type, *out = new_handle(), SUCCESS; }

API int cudnnBackendGetAttribute(handle of, int attribute, int type, int64_t room, int64_t *count, void *out) {
    (void)of;
    if (count) {
        *count = attribute == HEURISTIC_RESULTS || type == INT64;
    }
    if (!out || room < 1) {
        return SUCCESS;
    }
    if (attribute == PLAN_WORKSPACE_BYTES) {
        guessed("workspace of cuDNN's attention", profile.cudnn_workspace_bytes);
    }
    if (attribute == PLAN_WORKSPACE_BYTES || attribute == ENGINE_WORKSPACE_BYTES) {
        *(int64_t *)out = (int64_t)profile.cudnn_workspace_bytes;
    } else if (attribute == ENGINE_SHARED_BYTES) {
        *(int32_t *)out = 0;
    } else if (type == INT64) {
        *(int64_t *)out = 0;
    }
    return SUCCESS;
}
