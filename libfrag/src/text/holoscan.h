/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_HOLOSCAN_H
#define FRAGI_TEXT_HOLOSCAN_H

#include <stdbool.h>

#include <base/diag.h>

/*
 * Names of NVIDIA Holoscan SDK 3 that people write into graphs, and what stands for each in frag.
 * Messages and docs/FROM_HOLOSCAN.md are made of this list:
 *
 * 	X(kind, class, name, here, state, advice)
 *
 * - class: in C++; of a key, the function that sets it
 * - name: in snake case, without the suffix of its kind, which may follow it
 * - here: the name in frag; "": none
 * - state: BUILT; ABSENT: not part of frag, and not planned
 * - advice: what to do instead, the end of a sentence; "" for what is built
 */
#define FRAGI_HOLOSCAN_KINDS(X)                                                                    \
	X(OPERATOR, "operator", "_op", "list it under operators")                                  \
	X(CONDITION, "condition", "_condition", "list it under an operator's conditions")          \
	X(RESOURCE, "resource", "_resource", "list it under resources")                            \
	X(SCHEDULER, "scheduler", "_scheduler", "write it as the type of scheduler")               \
	X(CLOCK, "clock", "_clock", "write it as the type of clock")                               \
	X(KEY, "key", "", "")

#define FRAGI_HOLOSCAN_LIST(X)                                                                     \
	X(OPERATOR, "AJASourceOp", "aja_source", "", ABSENT,                                       \
	  "play a recording with video_replayer, or write an operator over the card's library")    \
	X(OPERATOR, "AsyncPingRxOp", "async_ping_rx", "", ABSENT, "use ping_rx")                   \
	X(OPERATOR, "AsyncPingTxOp", "async_ping_tx", "", ABSENT,                                  \
	  "use ping_tx with a periodic condition")                                                 \
	X(OPERATOR, "BayerDemosaicOp", "bayer_demosaic", "", ABSENT,                               \
	  "use format_converter with in_dtype bayer_rggb, or another turn of it")                  \
	X(OPERATOR, "DataTypeRxTestOp", "data_type_rx_test", "", ABSENT, "use ping_rx")            \
	X(OPERATOR, "DataTypeTxTestOp", "data_type_tx_test", "", ABSENT, "use ping_tx")            \
	X(OPERATOR, "FormatConverterOp", "format_converter", "format_converter", BUILT, "")        \
	X(OPERATOR, "ForwardOp", "forward", "forward", BUILT, "")                                  \
	X(OPERATOR, "GPUResidentOperator", "gpu_resident_operator", "", ABSENT,                    \
	  "operators run on the CPU; launch kernels in compute")                                   \
	X(OPERATOR, "GXFCodeletOp", "gxf_codelet", "", ABSENT,                                     \
	  "write the codelet as an operator, since frag has no GXF")                               \
	X(OPERATOR, "GXFOperator", "gxf_operator", "", ABSENT,                                     \
	  "write the codelet as an operator, since frag has no GXF")                               \
	X(OPERATOR, "HolovizOp", "holoviz", "viewer", BUILT, "")                                   \
	X(OPERATOR, "InferenceOp", "inference", "inference", BUILT, "")                            \
	X(OPERATOR, "InferenceProcessorOp", "inference_processor", "inference_processor", BUILT,   \
	  "")                                                                                      \
	X(OPERATOR, "MultiAIInferenceOp", "multiai_inference", "", ABSENT,                         \
	  "Holoscan has replaced it by InferenceOp; use inference")                                \
	X(OPERATOR, "MultiAIPostprocessorOp", "multiai_postprocessor", "", ABSENT,                 \
	  "Holoscan has replaced it by InferenceProcessorOp; use inference_processor")             \
	X(OPERATOR, "PingRxOp", "ping_rx", "ping_rx", BUILT, "")                                   \
	X(OPERATOR, "PingTensorRxOp", "ping_tensor_rx", "ping_tensor_rx", BUILT, "")               \
	X(OPERATOR, "PingTensorTxOp", "ping_tensor_tx", "ping_tensor_tx", BUILT, "")               \
	X(OPERATOR, "PingTxOp", "ping_tx", "ping_tx", BUILT, "")                                   \
	X(OPERATOR, "SegmentationPostprocessorOp", "segmentation_postprocessor",                   \
	  "segmentation_postprocessor", BUILT, "")                                                 \
	X(OPERATOR, "TensorRTInferenceOp", "tensor_rt_inference", "", ABSENT,                      \
	  "Holoscan has replaced it by InferenceOp; use inference")                                \
	X(OPERATOR, "TestHarnessSinkOp", "test_harness_sink", "", ABSENT,                          \
	  "test operators with frag/harness.h")                                                    \
	X(OPERATOR, "TestHarnessSourceOp", "test_harness_source", "", ABSENT,                      \
	  "test operators with frag/harness.h")                                                    \
	X(OPERATOR, "V4L2VideoCaptureOp", "v4l2_video_capture", "v4l2_video_capture", BUILT, "")   \
	X(OPERATOR, "VideoStreamRecorderOp", "video_stream_recorder", "video_recorder", BUILT, "") \
	X(OPERATOR, "VideoStreamReplayerOp", "video_stream_replayer", "video_replayer", BUILT, "") \
	X(CONDITION, "AsynchronousCondition", "asynchronous", "asynchronous", BUILT, "")           \
	X(CONDITION, "BooleanCondition", "boolean", "boolean", BUILT, "")                          \
	X(CONDITION, "CountCondition", "count", "count", BUILT, "")                                \
	X(CONDITION, "CudaBufferAvailableCondition", "cuda_buffer_available", "cuda_buffer",       \
	  BUILT, "")                                                                               \
	X(CONDITION, "CudaEventCondition", "cuda_event", "cuda_event", BUILT, "")                  \
	X(CONDITION, "CudaStreamCondition", "cuda_stream", "cuda_stream", BUILT, "")               \
	X(CONDITION, "DownstreamMessageAffordableCondition", "downstream_message_affordable",      \
	  "downstream_affordable", BUILT, "")                                                      \
	X(CONDITION, "ExpiringMessageAvailableCondition", "expiring_message_available",            \
	  "expiring_message_available", BUILT, "")                                                 \
	X(CONDITION, "FirstPixelOutCondition", "first_pixel_out", "", ABSENT,                      \
	  "use a periodic condition, since there is no window to wait for")                        \
	X(CONDITION, "MemoryAvailableCondition", "memory_available", "memory_available", BUILT,    \
	  "")                                                                                      \
	X(CONDITION, "MessageAvailableCondition", "message_available", "message_available", BUILT, \
	  "")                                                                                      \
	X(CONDITION, "MultiMessageAvailableCondition", "multi_message_available",                  \
	  "multi_message_available", BUILT, "")                                                    \
	X(CONDITION, "MultiMessageAvailableTimeoutCondition", "multi_message_available_timeout",   \
	  "multi_message_available_timeout", BUILT, "")                                            \
	X(CONDITION, "OrConditionCombiner", "or_condition_combiner", "or", BUILT, "")              \
	X(CONDITION, "PeriodicCondition", "periodic", "periodic", BUILT, "")                       \
	X(CONDITION, "PresentDoneCondition", "present_done", "", ABSENT,                           \
	  "use a periodic condition, since there is no window to wait for")                        \
	X(RESOURCE, "AsyncBufferReceiver", "async_buffer_receiver", "", ABSENT,                    \
	  "write policy: async_buffer on the flow")                                                \
	X(RESOURCE, "AsyncBufferTransmitter", "async_buffer_transmitter", "", ABSENT,              \
	  "write policy: async_buffer on the flow")                                                \
	X(RESOURCE, "AsyncConsoleLogger", "async_console_logger", "async_console_logger", BUILT,   \
	  "")                                                                                      \
	X(RESOURCE, "AsyncDataLoggerResource", "async_data_logger", "", ABSENT,                    \
	  "use async_console_logger, or write a type with frag/data_logger.h")                     \
	X(RESOURCE, "BasicConsoleLogger", "basic_console_logger", "basic_console_logger", BUILT,   \
	  "")                                                                                      \
	X(RESOURCE, "BlockMemoryPool", "block_memory_pool", "block_memory_pool", BUILT, "")        \
	X(RESOURCE, "CPUThread", "cpu_thread", "", ABSENT,                                         \
	  "write worker_thread_number and pin_cores under scheduler")                              \
	X(RESOURCE, "CudaAllocator", "cuda_allocator", "", ABSENT,                                 \
	  "use stream_ordered_allocator or rmm_allocator")                                         \
	X(RESOURCE, "CudaGreenContext", "cuda_green_context", "cuda_green_context", BUILT, "")     \
	X(RESOURCE, "CudaGreenContextPool", "cuda_green_context_pool", "cuda_green_context_pool",  \
	  BUILT, "")                                                                               \
	X(RESOURCE, "CudaStreamPool", "cuda_stream_pool", "cuda_stream_pool", BUILT, "")           \
	X(RESOURCE, "DataLoggerResource", "data_logger", "", ABSENT,                               \
	  "use basic_console_logger, or write a type with frag/data_logger.h")                     \
	X(RESOURCE, "DoubleBufferReceiver", "double_buffer_receiver", "", ABSENT,                  \
	  "write capacity and policy on the port or the flow")                                     \
	X(RESOURCE, "DoubleBufferTransmitter", "double_buffer_transmitter", "", ABSENT,            \
	  "write capacity and policy on the port or the flow")                                     \
	X(RESOURCE, "FirstFitAllocator", "first_fit_allocator", "", ABSENT,                        \
	  "use block_memory_pool or unbounded_allocator")                                          \
	X(RESOURCE, "GPUDevice", "gpu_device", "", ABSENT, "leave it out")                         \
	X(RESOURCE, "GXFComponentResource", "gxf_component_resource", "", ABSENT,                  \
	  "write the component as an operator, since frag has no GXF")                             \
	X(RESOURCE, "GXFConsoleLogger", "gxf_console_logger", "", ABSENT,                          \
	  "use basic_console_logger or async_console_logger")                                      \
	X(RESOURCE, "PoseTreeManager", "pose_tree_manager", "", ABSENT,                            \
	  "send poses as messages of a struct of your own")                                        \
	X(RESOURCE, "RMMAllocator", "rmm_allocator", "rmm_allocator", BUILT, "")                   \
	X(RESOURCE, "SerializationBuffer", "serialization_buffer", "", ABSENT,                     \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "SimpleTextSerializer", "simple_text_serializer", "simple_text_serializer",    \
	  BUILT, "")                                                                               \
	X(RESOURCE, "StdComponentSerializer", "std_component_serializer", "", ABSENT,              \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "StdEntitySerializer", "std_entity_serializer", "", ABSENT,                    \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "StreamOrderedAllocator", "stream_ordered_allocator",                          \
	  "stream_ordered_allocator", BUILT, "")                                                   \
	X(RESOURCE, "ThreadPool", "thread_pool", "", ABSENT,                                       \
	  "list it under thread_pools of the fragment")                                            \
	X(RESOURCE, "UcxComponentSerializer", "ucx_component_serializer", "", ABSENT,              \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "UcxContext", "ucx_context", "", ABSENT,                                       \
	  "leave it out: flows between hosts use UCX by themselves")                               \
	X(RESOURCE, "UcxEntitySerializer", "ucx_entity_serializer", "", ABSENT,                    \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "UcxHoloscanComponentSerializer", "ucx_holoscan_component_serializer", "",     \
	  ABSENT, "leave it out: types bring their codecs")                                        \
	X(RESOURCE, "UcxReceiver", "ucx_receiver", "", ABSENT,                                     \
	  "leave it out: flows between hosts use UCX by themselves")                               \
	X(RESOURCE, "UcxSerializationBuffer", "ucx_serialization_buffer", "", ABSENT,              \
	  "leave it out: types bring their codecs")                                                \
	X(RESOURCE, "UcxTransmitter", "ucx_transmitter", "", ABSENT,                               \
	  "leave it out: flows between hosts use UCX by themselves")                               \
	X(RESOURCE, "UnboundedAllocator", "unbounded_allocator", "unbounded_allocator", BUILT, "") \
	X(SCHEDULER, "EventBasedScheduler", "event_based", "event_based", BUILT, "")               \
	X(SCHEDULER, "GreedyScheduler", "greedy", "greedy", BUILT, "")                             \
	X(SCHEDULER, "MultiThreadScheduler", "multi_thread", "multi_thread", BUILT, "")            \
	X(CLOCK, "ManualClock", "manual", "manual", BUILT, "")                                     \
	X(CLOCK, "RealtimeClock", "realtime", "realtime", BUILT, "")                               \
	X(CLOCK, "SyntheticClock", "synthetic", "synthetic", BUILT, "")                            \
	X(KEY, "make_thread_pool", "thread_pool", "", ABSENT,                                      \
	  "list the operator under thread_pools of the fragment")                                  \
	X(KEY, "add_realtime", "sched_policy", "", ABSENT,                                         \
	  "list the operator under thread_pools of the fragment")                                  \
	X(KEY, "pin_operator", "pin_operator", "", ABSENT,                                         \
	  "list the operator under thread_pools of the fragment")                                  \
	X(KEY, "Arg", "args", "", ABSENT, "write parameters: {name: value}")                       \
	X(KEY, "make_condition", "condition", "", ABSENT,                                          \
	  "write conditions: [{type: count, count: 10}]")                                          \
	X(KEY, "make_resource", "resource", "", ABSENT,                                            \
	  "list it under resources of the fragment, and write $name as the parameter")             \
	X(KEY, "make_resource", "allocator", "", ABSENT,                                           \
	  "list it under resources of the fragment, and write $name as the parameter")             \
	X(KEY, "IOSpec::queue_size", "queue_size", "", ABSENT, "write capacity")                   \
	X(KEY, "IOSpec::queue_policy", "queue_policy", "", ABSENT,                                 \
	  "write policy: block, pop, reject, fault or latest")                                     \
	X(KEY, "IOSpec::connector", "connector", "", ABSENT,                                       \
	  "write policy: block, pop, reject, fault, latest or async_buffer")                       \
	X(KEY, "enable_metadata", "enable_metadata", "", ABSENT, "write metadata: true or false")  \
	X(KEY, "track", "track", "", ABSENT, "write tracking: true")                               \
	X(KEY, "add_data_logger", "data_logger", "", ABSENT, "list it under data_loggers")         \
	X(KEY, "register_service", "register_service", "", ABSENT,                                 \
	  "declare it under services: {NAME: {type: TYPE}}")                                       \
	X(KEY, "start_op", "start_op", "", ABSENT, "begin a flow at <|start|>")                    \
	X(KEY, "set_dynamic_flows", "dynamic_flows", "", ABSENT,                                   \
	  "write dynamic: true on its flows; the type of the operator chooses among them")

enum fragi_holoscan_kind {
#define X(kind, ...) FRAGI_HOLOSCAN_##kind,
	FRAGI_HOLOSCAN_KINDS(X)
#undef X
};

/*
 * The name here of a type of this kind that is built ("CountCondition", "count_condition":
 * "count"); any other name is returned as it is. Static or the caller's storage.
 */
FRAGI_API const char *fragi_alias(enum fragi_holoscan_kind kind, const char *name);

/* The name in Holoscan of what is built of this kind that is near to name; NULL: none is. */
FRAGI_API const char *fragi_holoscan_suggest(enum fragi_holoscan_kind kind, const char *name);
/*
 * Writes why a name of the list is no type of this kind: it is not part of frag, or of another
 * kind. Returns false, and writes nothing, when the list does not say so.
 */
FRAGI_API bool fragi_holoscan_explain(char *out, size_t size, enum fragi_holoscan_kind kind,
				      const char *name);
/*
 * Writes the sentence about a type of this kind that a graph names and that nobody has registered:
 * what the list says, or a near name or all valid ones. Returns out.
 * - names, count: what is registered
 */
FRAGI_API const char *fragi_refuse_type(char *out, size_t size, enum fragi_holoscan_kind kind,
					const char *name, const char *const *names, size_t count);
/*
 * Writes the sentence about a key that the schema does not have.
 * Returns out; NULL: it is not in the list.
 */
FRAGI_API const char *fragi_holoscan_explain_key(char *out, size_t size, const char *key);

#endif
