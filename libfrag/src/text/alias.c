// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include <text/alias.h>

struct alias {
	const char *class_name; /* sorted by this */
	const char *name;
};

static const struct alias aliases[] = {
	{"AsyncDataLogger", "async_data_logger"},
	{"AsynchronousCondition", "asynchronous"},
	{"BlockMemoryPool", "block_memory_pool"},
	{"BooleanCondition", "boolean"},
	{"CountCondition", "count"},
	{"CudaBufferAvailableCondition", "cuda_buffer"},
	{"CudaEventCondition", "cuda_event"},
	{"CudaGreenContext", "cuda_green_context"},
	{"CudaGreenContextPool", "cuda_green_context_pool"},
	{"CudaStreamCondition", "cuda_stream"},
	{"CudaStreamPool", "cuda_stream_pool"},
	{"DownstreamMessageAffordableCondition", "downstream_affordable"},
	{"EventBasedScheduler", "event_based"},
	{"ExpiringMessageAvailableCondition", "expiring_message_available"},
	{"FormatConverterOp", "format_converter"},
	{"ForwardOp", "forward"},
	{"GreedyScheduler", "greedy"},
	{"ManualClock", "manual"},
	{"MemoryAvailableCondition", "memory_available"},
	{"MessageAvailableCondition", "message_available"},
	{"MultiMessageAvailableCondition", "multi_message_available"},
	{"MultiMessageAvailableTimeoutCondition", "multi_message_available_timeout"},
	{"MultiThreadScheduler", "multi_thread"},
	{"PeriodicCondition", "periodic"},
	{"PingRxOp", "ping_rx"},
	{"PingTensorRxOp", "ping_tensor_rx"},
	{"PingTensorTxOp", "ping_tensor_tx"},
	{"PingTxOp", "ping_tx"},
	{"RMMAllocator", "rmm_allocator"},
	{"RealtimeClock", "realtime"},
	{"StreamOrderedAllocator", "stream_ordered_allocator"},
	{"SyntheticClock", "synthetic"},
	{"UnboundedAllocator", "unbounded_allocator"},
	{"VideoStreamRecorderOp", "video_recorder"},
	{"VideoStreamReplayerOp", "video_replayer"},
	{"downstream_message_affordable", "downstream_affordable"},
	{"video_stream_recorder", "video_recorder"},
	{"video_stream_replayer", "video_replayer"},
};

static int compare(const void *key, const void *alias)
{
	return strcmp(key, ((const struct alias *)alias)->class_name);
}

const char *fragi_alias(const char *name)
{
	const struct alias *alias = bsearch(name, aliases, sizeof(aliases) / sizeof(aliases[0]),
					    sizeof(aliases[0]), compare);

	return alias != NULL ? alias->name : name;
}
