/* cuBLAS, cuBLASLt, cuFFT, cuSOLVER, cuSPARSE: handles, and answers that must not be left unset.
 *
 * PyTorch allocates cuBLAS's workspace itself, by the capability of the device. Work areas of the
 * others are answered with 0: they are not modelled.
 */
#include "null_device.h"

API int cublasCreate_v2(handle *out) { return *out = new_handle(), SUCCESS; }
API int cublasGetPointerMode_v2(handle blas, int *out) { return (void)blas, *out = 0, SUCCESS; }
API int cublasGetMathMode(handle blas, int *out) { return (void)blas, *out = 0, SUCCESS; }
API size_t cublasLtGetVersion(void) { return (size_t)profile.cuda_version * 10; }
API int cublasGetVersion_v2(handle blas, int *out) { return (void)blas, *out = profile.cuda_version * 10, SUCCESS; }
API const char *cublasGetStatusString(int code) { return code ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS"; }

struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int unused[4];
};
API int cublasLtMatmulAlgoGetHeuristic(handle blas, handle operation, handle a, handle b, handle c, handle d, handle preference,
                                       int requested, struct heuristic *out, int *count) {
    (void)blas, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)requested;
    memset(out, 0, sizeof *out);
    return *count = 1, SUCCESS;
}

API int cufftCreate(int *out) { return *out = 1, SUCCESS; }
API int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *in, long long in_stride, long long in_distance,
                            int in_type, long long *to, long long to_stride, long long to_distance, int to_type,
                            long long batch, size_t *work_bytes, int type) {
    (void)plan, (void)rank, (void)n, (void)in, (void)in_stride, (void)in_distance, (void)in_type, (void)to;
    (void)to_stride, (void)to_distance, (void)to_type, (void)batch, (void)type;
    return *work_bytes = 0, SUCCESS;
}

/* `name(…)` whose argument number 4, 5, … is the size to return. */
typedef void *any;
#define SIZE_4(name, type) API int name(any a, any b, any c, type *out) { return (void)a, (void)b, (void)c, *out = 0, SUCCESS; }
#define SIZE_5(name, type) \
    API int name(any a, any b, any c, any d, type *out) { return (void)a, (void)b, (void)c, (void)d, *out = 0, SUCCESS; }
#define SIZE_6(name, type) \
    API int name(any a, any b, any c, any d, any e, type *out) { \
        return (void)a, (void)b, (void)c, (void)d, (void)e, *out = 0, SUCCESS; \
    }
#define SIZE_8(name, type) \
    API int name(any a, any b, any c, any d, any e, any f, any g, type *out) { \
        return (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, *out = 0, SUCCESS; \
    }
#define SIZE_10(name, type) \
    API int name(any a, any b, any c, any d, any e, any f, any g, any h, any i, type *out) { \
        return (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i, *out = 0, SUCCESS; \
    }
#define SIZE_11(name, type) \
    API int name(any a, any b, any c, any d, any e, any f, any g, any h, any i, any j, type *out) { \
        return (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i, (void)j, *out = 0, SUCCESS; \
    }
#define SIZE_12(name, type) \
    API int name(any a, any b, any c, any d, any e, any f, any g, any h, any i, any j, any k, type *out) { \
        return (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i, (void)j, (void)k, *out = 0, SUCCESS; \
    }
#define SOLVER(letter, orthogonal, hermitian) \
    SIZE_4(cusolverDn##letter##gesvd_bufferSize, int) \
    SIZE_5(cusolverDn##letter##sytrf_bufferSize, int) \
    SIZE_6(cusolverDn##letter##getrf_bufferSize, int) \
    SIZE_6(cusolverDn##letter##potrf_bufferSize, int) \
    SIZE_6(cusolverDn##letter##geqrf_bufferSize, int) \
    SIZE_8(cusolverDn##letter##orthogonal##gqr_bufferSize, int) \
    SIZE_12(cusolverDn##letter##orthogonal##mqr_bufferSize, int) \
    SIZE_8(cusolverDn##letter##hermitian##evd_bufferSize, int)
SOLVER(S, or, sy)
SOLVER(D, or, sy)
SOLVER(C, un, he)
SOLVER(Z, un, he)

SIZE_10(cusparseSpMV_bufferSize, size_t)
SIZE_11(cusparseSpMM_bufferSize, size_t)
SIZE_11(cusparseSDDMM_bufferSize, size_t)
