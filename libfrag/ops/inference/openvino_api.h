/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_OPENVINO_API_H
#define INFERENCE_OPENVINO_API_H

#include <stddef.h>
#include <stdint.h>

/*
 * The part of OpenVINO's C API that frag uses, so that frag builds and is installed without
 * OpenVINO. Source: openvino/c of OpenVINO 2026.4; the element types are numbered so since 2024.4.
 */
typedef struct ov_core ov_core_t;
typedef struct ov_model ov_model_t;
typedef struct ov_compiled_model ov_compiled_model_t;
typedef struct ov_infer_request ov_infer_request_t;
typedef struct ov_output_const_port ov_output_const_port_t;
typedef struct ov_tensor ov_tensor_t;

typedef struct {
	const char *buildNumber;
	const char *description;
} ov_version_t;
typedef struct {
	int64_t rank;
	int64_t *dims;
} ov_shape_t;
typedef struct {
	int64_t min, max;
} ov_dimension_t;
typedef struct {
	ov_dimension_t rank;
	ov_dimension_t *dims;
} ov_partial_shape_t;
typedef struct {
	void (*callback_func)(void *args);
	void *args;
} ov_callback_t;

/* ov_element_type_e */
enum {
	OV_BOOLEAN = 1,
	OV_BF16 = 2,
	OV_F16 = 3,
	OV_F32 = 4,
	OV_F64 = 5,
	OV_I4 = 6,
	OV_I8 = 7,
	OV_I16 = 8,
	OV_I32 = 9,
	OV_I64 = 10,
	OV_U1 = 11,
	OV_U2 = 12,
	OV_U3 = 13,
	OV_U4 = 14,
	OV_U6 = 15,
	OV_U8 = 16,
	OV_U16 = 17,
	OV_U32 = 18,
	OV_U64 = 19,
	OV_NF4 = 20,
	OV_F8E4M3 = 21,
	OV_F8E5M2 = 22,
	OV_STRING = 23,
	OV_F4E2M1 = 24,
	OV_F8E8M0 = 25,
};

/* X(result, name without ov_, arguments); a result of type int is an ov_status_e, 0 for success */
#define OV_FUNCTIONS(X)                                                                            \
	X(int, get_openvino_version, (ov_version_t *))                                             \
	X(void, version_free, (ov_version_t *))                                                    \
	X(const char *, get_last_err_msg, (void))                                                  \
	X(void, free, (const char *))                                                              \
	X(int, core_create, (ov_core_t **))                                                        \
	X(int, core_read_model, (const ov_core_t *, const char *, const char *, ov_model_t **))    \
	X(int, core_compile_model,                                                                 \
	  (const ov_core_t *, const ov_model_t *, const char *, size_t, ov_compiled_model_t **,    \
	   ...))                                                                                   \
	X(void, model_free, (ov_model_t *))                                                        \
	X(int, compiled_model_inputs_size, (const ov_compiled_model_t *, size_t *))                \
	X(int, compiled_model_outputs_size, (const ov_compiled_model_t *, size_t *))               \
	X(int, compiled_model_input_by_index,                                                      \
	  (const ov_compiled_model_t *, size_t, ov_output_const_port_t **))                        \
	X(int, compiled_model_output_by_index,                                                     \
	  (const ov_compiled_model_t *, size_t, ov_output_const_port_t **))                        \
	X(int, compiled_model_output_by_name,                                                      \
	  (const ov_compiled_model_t *, const char *, ov_output_const_port_t **))                  \
	X(int, compiled_model_create_infer_request,                                                \
	  (const ov_compiled_model_t *, ov_infer_request_t **))                                    \
	X(void, compiled_model_free, (ov_compiled_model_t *))                                      \
	X(int, port_get_any_name, (const ov_output_const_port_t *, char **))                       \
	X(int, port_get_element_type, (const ov_output_const_port_t *, int *))                     \
	X(int, port_get_partial_shape, (const ov_output_const_port_t *, ov_partial_shape_t *))     \
	X(void, output_const_port_free, (ov_output_const_port_t *))                                \
	X(void, partial_shape_free, (ov_partial_shape_t *))                                        \
	X(int, shape_free, (ov_shape_t *))                                                         \
	X(int, tensor_create_from_host_ptr, (int, ov_shape_t, void *, ov_tensor_t **))             \
	X(int, tensor_get_shape, (const ov_tensor_t *, ov_shape_t *))                              \
	X(int, tensor_get_element_type, (const ov_tensor_t *, int *))                              \
	X(int, tensor_get_byte_size, (const ov_tensor_t *, size_t *))                              \
	X(int, tensor_data, (const ov_tensor_t *, void **))                                        \
	X(void, tensor_free, (ov_tensor_t *))                                                      \
	X(int, infer_request_set_input_tensor_by_index,                                            \
	  (ov_infer_request_t *, size_t, const ov_tensor_t *))                                     \
	X(int, infer_request_get_output_tensor_by_index,                                           \
	  (const ov_infer_request_t *, size_t, ov_tensor_t **))                                    \
	X(int, infer_request_set_callback, (ov_infer_request_t *, const ov_callback_t *))          \
	X(int, infer_request_start_async, (ov_infer_request_t *))                                  \
	X(int, infer_request_wait, (ov_infer_request_t *))                                         \
	X(void, infer_request_free, (ov_infer_request_t *))

#endif
