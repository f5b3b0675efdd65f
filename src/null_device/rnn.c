/* cuDNN's recurrent networks: the sizes follow from the descriptor. Weights are exact, because PyTorch
 * checks them; the work and reserve spaces are guesses. */
#define _GNU_SOURCE
#include "null_device.h"

#include <dlfcn.h>

struct network {
    int cell, biases, directions, dtype;
    int64_t inputs, hidden, projected, layers;
};
struct data {
    int64_t steps, batch;
};

API int cudnnCreateRNNDescriptor(handle *out) { return *out = calloc(1, sizeof(struct network)), *out ? SUCCESS : OUT_OF_MEMORY; }
API int cudnnDestroyRNNDescriptor(handle network) { return free(network), SUCCESS; }
API int cudnnSetRNNDescriptor_v8(struct network *out, int algorithm, int cell, int bias_mode, int direction_mode, int input_mode,
                                 int dtype, int precision, int math, int inputs, int hidden, int projected, int layers,
                                 handle dropout, unsigned flags) {
    (void)algorithm, (void)input_mode, (void)precision, (void)math, (void)dropout, (void)flags;
    static const int biases[] = {0, 1, 2, 1};
    *out = (struct network){cell, biases[bias_mode & 3], direction_mode + 1, dtype, inputs, hidden, projected, layers};
    return SUCCESS;
}

API int cudnnCreateRNNDataDescriptor(handle *out) { return *out = calloc(1, sizeof(struct data)), *out ? SUCCESS : OUT_OF_MEMORY; }
API int cudnnDestroyRNNDataDescriptor(handle data) { return free(data), SUCCESS; }
API int cudnnSetRNNDataDescriptor(struct data *out, int dtype, int layout, int steps, int batch) {
    (void)dtype, (void)layout;
    *out = (struct data){steps, batch};
    return SUCCESS;
}

/* Cells: plain with ReLU or tanh, LSTM, GRU. */
static int64_t gates(const struct network *of) { return of->cell < 2 ? 1 : of->cell == 2 ? 4 : 3; }
static int64_t element_bytes(const struct network *of) { return of->dtype == 1 ? 8 : of->dtype == 0 ? 4 : 2; } /* double, float, half */
static int64_t outputs(const struct network *of) { return of->projected < of->hidden ? of->projected : of->hidden; }
static int64_t layer_inputs(const struct network *of, int64_t layer) {
    return layer < of->directions ? of->inputs : outputs(of) * of->directions;
}
static int is_projected(const struct network *of) { return of->projected < of->hidden; }

static int64_t layer_weights(const struct network *of, int64_t layer) {
    int64_t each = gates(of) * of->hidden * (layer_inputs(of, layer) + outputs(of));
    return each + (is_projected(of) ? of->hidden * of->projected : 0);
}
static int64_t weights_before(const struct network *of, int64_t layer) {
    int64_t sum = 0;
    for (int64_t i = 0; i < layer; i++) {
        sum += layer_weights(of, i);
    }
    return sum;
}
static int64_t layer_biases(const struct network *of) { return of->biases * gates(of) * of->hidden; }

API int cudnnGetRNNWeightSpaceSize(handle dnn, const struct network *of, size_t *out) {
    (void)dnn;
    int64_t layers = of->layers * of->directions;
    *out = (size_t)((weights_before(of, layers) + layers * layer_biases(of)) * element_bytes(of));
    return SUCCESS;
}

API int cudnnGetRNNTempSpaceSizes(handle dnn, const struct network *of, int mode, const struct data *data, size_t *work, size_t *reserve) {
    (void)dnn;
    size_t cells = (size_t)(data->steps * data->batch * of->layers * of->directions * of->hidden * element_bytes(of));
    if (work) {
        guessed("work space of a recurrent network", *work = cells * gates(of));
    }
    if (reserve) {
        guessed("reserve of a recurrent network", *reserve = mode ? cells * (gates(of) + 2) : 0);
    }
    return SUCCESS;
}

static void describe(handle out, int dtype, int64_t rows, int64_t columns) {
    /* PyTorch's libraries are not in the global scope: ask the one that is loaded. */
    void *dnn = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_NOLOAD);
    dnn = dnn ? dnn : dlopen("libcudnn.so.8", RTLD_LAZY | RTLD_NOLOAD);
    int (*set)(handle, int, int, const int *, const int *) = dlsym(dnn ? dnn : RTLD_DEFAULT, "cudnnSetTensorNdDescriptor");
    int sizes[] = {1, (int)rows, (int)columns}, strides[] = {(int)(rows * columns), (int)columns, 1};
    if (set) {
        set(out, dtype, 3, sizes, strides);
    }
}

/* Matrix `id` of a layer: the inputs' first, then the recurrent ones, then the projection. The caller may
 * want only the matrix, or only the bias. */
API int cudnnGetRNNWeightParams(handle dnn, const struct network *of, int layer, size_t bytes, char *weights, int id, handle matrix,
                                char **matrix_at, handle bias, char **bias_at) {
    (void)dnn, (void)bytes;
    int64_t of_input = of->hidden * layer_inputs(of, layer), of_hidden = of->hidden * outputs(of), count = gates(of);
    int64_t at = weights_before(of, layer);
    int is_input = id < count, is_last = id >= 2 * count;
    at += is_input ? id * of_input : count * of_input + (id - count) * of_hidden;
    int64_t rows = is_last ? of->projected : of->hidden;
    int64_t columns = is_last ? of->hidden : is_input ? layer_inputs(of, layer) : outputs(of);
    if (matrix_at) {
        describe(matrix, of->dtype, rows, columns);
        *matrix_at = weights + at * element_bytes(of);
    }
    int has_bias = !is_last && (of->biases == 2 || (of->biases == 1 && is_input));
    int64_t biases = weights_before(of, of->layers * of->directions) + layer * layer_biases(of) + id * of->hidden;
    if (bias_at) {
        *bias_at = has_bias ? weights + biases * element_bytes(of) : NULL;
    }
    if (bias_at && has_bias) {
        describe(bias, of->dtype, of->hidden, 1);
    }
    return SUCCESS;
}
