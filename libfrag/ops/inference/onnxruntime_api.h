/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_ONNXRUNTIME_API_H
#define INFERENCE_ONNXRUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

/*
 * The part of ONNX Runtime's C API that frag uses, so that frag builds and is installed without it.
 * The API is a table of functions that only grows at its end, so each has a fixed place in it.
 * Source: onnxruntime_c_api.h of ONNX Runtime 1.29; the last place used here exists since 1.16.
 */
#define ORT_API_VERSION 16
/* The places of the table of that version, which are at least the greatest one below and 1. */
#define ORT_PLACES 264

typedef struct ort_status ort_status_t; /* NULL: success */
typedef struct ort_env ort_env_t;
typedef struct ort_session ort_session_t;
typedef struct ort_session_options ort_session_options_t;
typedef struct ort_run_options ort_run_options_t;
typedef struct ort_value ort_value_t;
typedef struct ort_type_info ort_type_info_t;
typedef struct ort_shape_info ort_shape_info_t;
typedef struct ort_memory_info ort_memory_info_t;
typedef struct ort_allocator ort_allocator_t;
typedef struct ort_binding ort_binding_t;
typedef struct ort_cuda_options ort_cuda_options_t;
typedef struct ort_tensorrt_options ort_tensorrt_options_t;

/* What OrtGetApiBase returns. */
struct ort_api_base {
	const void *const *(*get_api)(uint32_t version); /* NULL: it is older */
	const char *(*get_version)(void);
};

/* ONNXTensorElementDataType */
enum {
	ORT_FLOAT = 1,
	ORT_UINT8 = 2,
	ORT_INT8 = 3,
	ORT_UINT16 = 4,
	ORT_INT16 = 5,
	ORT_INT32 = 6,
	ORT_INT64 = 7,
	ORT_STRING = 8,
	ORT_BOOL = 9,
	ORT_FLOAT16 = 10,
	ORT_DOUBLE = 11,
	ORT_UINT32 = 12,
	ORT_UINT64 = 13,
	ORT_COMPLEX64 = 14,
	ORT_COMPLEX128 = 15,
	ORT_BFLOAT16 = 16,
	ORT_FLOAT8E4M3FN = 17,
	ORT_FLOAT8E4M3FNUZ = 18,
	ORT_FLOAT8E5M2 = 19,
	ORT_FLOAT8E5M2FNUZ = 20,
	ORT_UINT4 = 21,
	ORT_INT4 = 22,
};

/* ONNXType */
enum { ORT_TYPE_TENSOR = 1 };
/* OrtLoggingLevel */
enum { ORT_LOG_ERROR = 3, ORT_LOG_FATAL = 4 };
/* OrtAllocatorType and OrtMemType */
enum { ORT_DEVICE_ALLOCATOR = 0, ORT_ARENA_ALLOCATOR = 1, ORT_MEM_DEFAULT = 0 };

#define ORT_STATUS ort_status_t *
/* X(place, result, name, arguments) */
#define ORT_FUNCTIONS(X)                                                                           \
	X(2, const char *, GetErrorMessage, (const ort_status_t *))                                \
	X(3, ORT_STATUS, CreateEnv, (int, const char *, ort_env_t **))                             \
	X(7, ORT_STATUS, CreateSession,                                                            \
	  (const ort_env_t *, const char *, const ort_session_options_t *, ort_session_t **))      \
	X(10, ORT_STATUS, CreateSessionOptions, (ort_session_options_t **))                        \
	X(22, ORT_STATUS, SetSessionLogSeverityLevel, (ort_session_options_t *, int))              \
	X(24, ORT_STATUS, SetIntraOpNumThreads, (ort_session_options_t *, int))                    \
	X(30, ORT_STATUS, SessionGetInputCount, (const ort_session_t *, size_t *))                 \
	X(31, ORT_STATUS, SessionGetOutputCount, (const ort_session_t *, size_t *))                \
	X(33, ORT_STATUS, SessionGetInputTypeInfo,                                                 \
	  (const ort_session_t *, size_t, ort_type_info_t **))                                     \
	X(34, ORT_STATUS, SessionGetOutputTypeInfo,                                                \
	  (const ort_session_t *, size_t, ort_type_info_t **))                                     \
	X(36, ORT_STATUS, SessionGetInputName,                                                     \
	  (const ort_session_t *, size_t, ort_allocator_t *, char **))                             \
	X(37, ORT_STATUS, SessionGetOutputName,                                                    \
	  (const ort_session_t *, size_t, ort_allocator_t *, char **))                             \
	X(39, ORT_STATUS, CreateRunOptions, (ort_run_options_t **))                                \
	X(49, ORT_STATUS, CreateTensorWithDataAsOrtValue,                                          \
	  (const ort_memory_info_t *, void *, size_t, const int64_t *, size_t, int,                \
	   ort_value_t **))                                                                        \
	X(51, ORT_STATUS, GetTensorMutableData, (ort_value_t *, void **))                          \
	X(55, ORT_STATUS, CastTypeInfoToTensorInfo,                                                \
	  (const ort_type_info_t *, const ort_shape_info_t **))                                    \
	X(56, ORT_STATUS, GetOnnxTypeFromTypeInfo, (const ort_type_info_t *, int *))               \
	X(60, ORT_STATUS, GetTensorElementType, (const ort_shape_info_t *, int *))                 \
	X(61, ORT_STATUS, GetDimensionsCount, (const ort_shape_info_t *, size_t *))                \
	X(62, ORT_STATUS, GetDimensions, (const ort_shape_info_t *, int64_t *, size_t))            \
	X(63, ORT_STATUS, GetSymbolicDimensions,                                                   \
	  (const ort_shape_info_t *, const char **, size_t))                                       \
	X(65, ORT_STATUS, GetTensorTypeAndShape, (const ort_value_t *, ort_shape_info_t **))       \
	X(68, ORT_STATUS, CreateMemoryInfo, (const char *, int, int, int, ort_memory_info_t **))   \
	X(76, ORT_STATUS, AllocatorFree, (ort_allocator_t *, void *))                              \
	X(78, ORT_STATUS, GetAllocatorWithDefaultOptions, (ort_allocator_t **))                    \
	X(93, void, ReleaseStatus, (ort_status_t *))                                               \
	X(94, void, ReleaseMemoryInfo, (ort_memory_info_t *))                                      \
	X(95, void, ReleaseSession, (ort_session_t *))                                             \
	X(96, void, ReleaseValue, (ort_value_t *))                                                 \
	X(97, void, ReleaseRunOptions, (ort_run_options_t *))                                      \
	X(98, void, ReleaseTypeInfo, (ort_type_info_t *))                                          \
	X(99, void, ReleaseTensorTypeAndShapeInfo, (ort_shape_info_t *))                           \
	X(100, void, ReleaseSessionOptions, (ort_session_options_t *))                             \
	X(130, ORT_STATUS, AddSessionConfigEntry,                                                  \
	  (ort_session_options_t *, const char *, const char *))                                   \
	X(133, ORT_STATUS, RunWithBinding,                                                         \
	  (ort_session_t *, const ort_run_options_t *, const ort_binding_t *))                     \
	X(134, ORT_STATUS, CreateIoBinding, (ort_session_t *, ort_binding_t **))                   \
	X(135, void, ReleaseIoBinding, (ort_binding_t *))                                          \
	X(136, ORT_STATUS, BindInput, (ort_binding_t *, const char *, const ort_value_t *))        \
	X(137, ORT_STATUS, BindOutput, (ort_binding_t *, const char *, const ort_value_t *))       \
	X(138, ORT_STATUS, BindOutputToDevice,                                                     \
	  (ort_binding_t *, const char *, const ort_memory_info_t *))                              \
	X(140, ORT_STATUS, GetBoundOutputValues,                                                   \
	  (const ort_binding_t *, ort_allocator_t *, ort_value_t ***, size_t *))                   \
	X(165, ORT_STATUS, AddRunConfigEntry, (ort_run_options_t *, const char *, const char *))   \
	X(170, ORT_STATUS, SessionOptionsAppendExecutionProvider_TensorRT_V2,                      \
	  (ort_session_options_t *, const ort_tensorrt_options_t *))                               \
	X(171, ORT_STATUS, CreateTensorRTProviderOptions, (ort_tensorrt_options_t **))             \
	X(172, ORT_STATUS, UpdateTensorRTProviderOptions,                                          \
	  (ort_tensorrt_options_t *, const char *const *, const char *const *, size_t))            \
	X(174, void, ReleaseTensorRTProviderOptions, (ort_tensorrt_options_t *))                   \
	X(204, ORT_STATUS, SessionOptionsAppendExecutionProvider_CUDA_V2,                          \
	  (ort_session_options_t *, const ort_cuda_options_t *))                                   \
	X(205, ORT_STATUS, CreateCUDAProviderOptions, (ort_cuda_options_t **))                     \
	X(206, ORT_STATUS, UpdateCUDAProviderOptions,                                              \
	  (ort_cuda_options_t *, const char *const *, const char *const *, size_t))                \
	X(208, void, ReleaseCUDAProviderOptions, (ort_cuda_options_t *))                           \
	X(261, ORT_STATUS, UpdateTensorRTProviderOptionsWithValue,                                 \
	  (ort_tensorrt_options_t *, const char *, void *))                                        \
	X(263, ORT_STATUS, UpdateCUDAProviderOptionsWithValue,                                     \
	  (ort_cuda_options_t *, const char *, void *))

#endif
