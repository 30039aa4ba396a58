/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_DESCRIBE_H
#define CTL_DESCRIBE_H

#include <stdio.h>

#include <fragctl/composed.h>
#include <fragctl/json.h>

/* A flow as `fragctl describe` tells it. */
struct ctl_flow {
	uint32_t from_fragment, from_op, from_port, to_fragment, to_op, to_port; /* indices */
	char from[3 * (FRAG_NAME_MAX + 1)], to[3 * (FRAG_NAME_MAX + 1)]; /* fragment.op.port */
	/* of its messages: "message", "tensor", or of the value; "execution": it carries none */
	const char *type;
	bool is_execution, is_dynamic;
	uint32_t capacity;
	const char *policy;
	/* "inproc", a transport, or "auto": placement decides */
	const char *edge, *edge_reason;
	/* that its queue and window can hold; UINT64_MAX: nothing bounds it */
	uint64_t bytes_max;
	const char *bytes_reason;
	/* how memory of a GPU goes: of enum ctl_gpu_way; 0: the sender has none to give */
	unsigned gpu_ways;
	char gpu_reason[400];
};

/* What placement, and which GPUs the hosts use, leave open. */
enum ctl_gpu_way {
	CTL_GPU_POINTER = 1,
	CTL_GPU_MAPPED = 2,
	CTL_GPU_STAGED = 4,
};

/* The i-th flow: those inside fragments first, fragment by fragment, then those between them. */
void ctl_flow_at(const struct ctl_composed *composed, size_t i, struct ctl_flow *out);
static inline size_t ctl_flow_count(const struct ctl_composed *composed)
{
	return composed->inner_flow_count + composed->flow_count;
}
/* describe_gpu.c: fills in how memory of a GPU goes, as far as the graph decides it. */
void ctl_flow_gpu(const struct fragi_flow_info *info, const struct ctl_composed *composed,
		  struct ctl_flow *flow);
#define CTL_GPU_WAYS_SIZE 40
/* "by pointer, mapped or staged" into out. Returns out. */
const char *ctl_gpu_ways(unsigned ways, char *out, size_t size);
void ctl_gpu_json(struct ctl_json *json, const struct ctl_flow *flow);
#define CTL_DECODER_SIZE 160
/*
 * What decodes, as far as the graph decides it, into out: of an operator with the parameters
 * decoder and format. Returns out; NULL: it decodes nothing.
 */
const char *ctl_decoder(const struct frag_op *op, char *out, size_t size);
/* Whether any flow begins or ends at the port of an operator. */
bool ctl_port_is_used(const struct ctl_composed *composed, uint32_t fragment, uint32_t op,
		      uint32_t port);
/* An execution output is there for any flow that may begin at it, and is shown if one does. */
bool ctl_port_is_shown(const struct ctl_composed *composed, uint32_t fragment, uint32_t op,
		       uint32_t port);
/* Calls `call` for each condition: of connected ports, unless the graph took it away; its own. */
void ctl_each_condition(const struct ctl_composed *composed, uint32_t fragment, uint32_t op,
			void (*call)(const char *type, const char *port,
				     const struct frag_condition *own, bool first, void *arg),
			void *arg);
const char *ctl_clock_name(enum fragi_clock_kind kind);
/* Threads that run the fragment's operators; 0: one for each operator, as far as cores go. */
uint32_t ctl_thread_count(const struct fragi_spec_fragment *fragment);
const char *ctl_scheduler_name(const struct fragi_spec_fragment *fragment);

/* describe_timing.c: an operator's deadline, and the timing of its inputs, if there are any */
void ctl_timing_print(const struct frag_op *op, FILE *out);
void ctl_timing_json(struct ctl_json *json, const struct fragi_port *port);
void ctl_timing_json_op(struct ctl_json *json, const struct frag_op *op);
/* The deadlines of paths: of the application, then of each fragment; nothing without any. */
void ctl_paths_print(const struct fragi_spec *spec, const struct ctl_composed *composed, FILE *out);
void ctl_paths_json(struct ctl_json *json, const struct fragi_spec *spec,
		    const struct ctl_composed *composed);

/*
 * Prints the plan as one JSON document.
 * - digest: of the plan (report.h); NULL: leaves it out
 */
void ctl_describe_print_json(const struct fragi_spec *spec, const struct ctl_composed *composed,
			     const char *digest, FILE *out);

#endif
