/* cuDNN: convolutions by the older interface, batch norm, recurrent networks.
 *
 * Descriptors of tensors, filters and convolutions are left to the real library. Workspaces of
 * convolutions depend on the algorithm that cuDNN would choose: the profile sets one size for all.
 */
#include "null_device.h"


API int cudnnCreate(handle *out) { return *out = new_handle(), SUCCESS; }
API int cudnnGetStream(handle dnn, handle *out) { return (void)dnn, *out = NULL, SUCCESS; }

/* Convolutions: three directions with the same three questions. */
struct algorithm {
    int algorithm, status;
    float time;
    size_t workspace_bytes;
    int determinism, math, unused[3];
};

static int workspace(const char *what, size_t *out) {
    *out = profile.cudnn_workspace_bytes;
    guessed(what, *out);
    return SUCCESS;
}
static int choose(const char *what, int *count, struct algorithm *out) {
    memset(out, 0, sizeof *out);
    *out = (struct algorithm){.algorithm = 1, .determinism = 1};
    *count = 1;
    return workspace(what, &out->workspace_bytes);
}

#define CONVOLUTION(direction, what) \
    API int cudnnGetConvolution##direction##Algorithm_v7(handle dnn, handle a, handle b, handle c, handle d, int requested, \
                                                         int *count, struct algorithm *out) { \
        return (void)dnn, (void)a, (void)b, (void)c, (void)d, (void)requested, choose(what, count, out); \
    } \
    API int cudnnFindConvolution##direction##AlgorithmEx(handle dnn, handle a, void *x, handle b, void *w, handle c, handle d, \
                                                         void *y, int requested, int *count, struct algorithm *out) { \
        (void)dnn, (void)a, (void)x, (void)b, (void)w, (void)c, (void)d, (void)y, (void)requested; \
        return choose(what, count, out); \
    } \
    API int cudnnGetConvolution##direction##WorkspaceSize(handle dnn, handle a, handle b, handle c, handle d, int algorithm, \
                                                          size_t *out) { \
        return (void)dnn, (void)a, (void)b, (void)c, (void)d, (void)algorithm, workspace(what, out); \
    }
CONVOLUTION(Forward, "workspace of a convolution, forward")
CONVOLUTION(BackwardData, "workspace of a convolution, gradient of its input")
CONVOLUTION(BackwardFilter, "workspace of a convolution, gradient of its weight")

API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle dnn, int mode, int ops, handle x, handle z, handle y,
                                                                 handle scale, handle activation, size_t *out) {
    (void)dnn, (void)mode, (void)ops, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    return guessed("workspace of batch norm", 0), *out = 0, SUCCESS;
}
API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle dnn, int mode, int ops, handle x, handle y, handle dy, handle dz,
                                                          handle dx, handle scale, handle activation, size_t *out) {
    (void)dnn, (void)mode, (void)ops, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)scale, (void)activation;
    return guessed("workspace of batch norm", 0), *out = 0, SUCCESS;
}
API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle dnn, int mode, int ops, handle activation, handle x, size_t *out) {
    (void)dnn, (void)mode, (void)ops, (void)activation, (void)x;
    return guessed("reserve of batch norm", 0), *out = 0, SUCCESS;
}

API int cudnnDropoutGetStatesSize(handle dnn, size_t *out) {
    (void)dnn;
    *out = (size_t)profile.multiprocessors * 2048 * 8; /* a generator per thread */
    return guessed("states of dropout in a recurrent network", *out), SUCCESS;
}
API int cudnnGetCTCLossWorkspaceSize(handle dnn, handle probabilities, handle gradients, const int *labels, const int *label_lengths,
                                     const int *input_lengths, int algorithm, handle loss, size_t *out) {
    (void)dnn, (void)probabilities, (void)gradients, (void)labels, (void)label_lengths, (void)input_lengths;
    (void)algorithm, (void)loss;
    return guessed("workspace of CTC loss", 0), *out = 0, SUCCESS;
}
API int cudnnGetCTCLossWorkspaceSize_v8(handle dnn, int algorithm, handle loss, handle probabilities, handle gradients, size_t *out) {
    (void)dnn, (void)algorithm, (void)loss, (void)probabilities, (void)gradients;
    return guessed("workspace of CTC loss", 0), *out = 0, SUCCESS;
}
