// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "inference.h"
#include "inference_state.h"
#include "received.h"

enum { RECEIVERS, TRANSMITTER };
static const struct frag_port inference_ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "the tensors that pre_processor_map names",
		       .flags = FRAG_PORT_MULTI},
	[TRANSMITTER] = {.name = "transmitter",
			 .dir = FRAG_OUT,
			 .type = "tensor",
			 .headline = "the tensors of out_tensor_names"},
};

#define NO_EFFECT "Accepted, because Holoscan has it; without effect: "
static const char *const providers[] = {"auto", "cpu", "cuda", "tensorrt", NULL};
static const struct frag_param inference_params[] = {
	FRAG_PARAM_STRING(struct inference, backend, "openvino",
			  .headline = "Engine that runs the models: openvino or onnxruntime"),
	FRAG_PARAM_STRING(
		struct inference, provider, "auto",
		.headline = "Where onnxruntime runs them; auto: as infer_on_cpu and device_map say",
		.choices = providers),
	FRAG_PARAM_I64(struct inference, device_id, 0, .headline = "Number of the GPU", .min = 0,
		       .max = 1023),
	FRAG_PARAM_TREE(struct inference, backend_map, NULL,
			.headline = "Engine of single models: {model: engine}",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(
		struct inference, model_path_map, NULL,
		.headline = "File of each model: {model: path}",
		.description =
			"IR (.xml with its .bin), ONNX, TensorFlow (.pb), TensorFlow Lite; onnxruntime reads ONNX. A list of paths has files to choose from: see model.",
		.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(
		struct inference, model, 1,
		.headline = "Which file of each list in model_path_map is used",
		.description =
			"While the application runs, the file is compiled beside the one in use, and replaces it when that is done. A shorter list gives its last file.",
		.flags = FRAG_PARAM_DYNAMIC, .min = 1, .max = 1000),
	FRAG_PARAM_PATH(struct inference, model_folder, ".",
			.headline = "Folder that relative paths of model_path_map start from"),
	FRAG_PARAM_TREE(struct inference, pre_processor_map, NULL,
			.headline =
				"Tensors that each model takes, in its order: {model: [tensor]}",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_TREE(struct inference, inference_map, NULL,
			.headline = "Names of the tensors that each model makes: {model: [tensor]}",
			.description =
				"In the order of the model's outputs, or as the model calls them",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_STRING_LIST(struct inference, in_tensor_names, NULL,
			       .headline = "Tensors to take from the messages; empty: all needed",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct inference, out_tensor_names, NULL,
			       .headline = "Tensors to emit; empty: all of inference_map",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct inference, temporal_map, NULL,
			.headline = "Ticks from one run of a model to the next: {model: ticks}",
			.description = "In between the latest results are emitted again",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(
		struct inference, batch, NULL,
		.headline = "Run frames of several flows at once: {size: 8, max_delay: 5ms}",
		.description =
			"A tick comes when so many frames wait, or so long after the last one; 5ms unless given. cameras: [left, right] adds an output for each flow, in their order; else all results go to transmitter, and their metadata flow has the number of the flow, from 0.",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(
		struct inference, activation_map, NULL,
		.headline = "0 switches a model off: {model: 0}",
		.description =
			"So does the metadata activation_map of a message, for its tick: a text such as person: 0, face: 1",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, parallel_inference, true,
			.headline = "Run all models at the same time; else one after the other"),
	FRAG_PARAM_I64(struct inference, threads, 0,
		       .headline = "Threads of a model's runs; 0: the engine decides", .min = 0,
		       .max = 1024),
	FRAG_PARAM_I64(
		struct inference, streams, 0,
		.headline =
			"Runs of a batch at a time, which share the threads; 0: the engine decides",
		.description =
			"A batch of several is done sooner in as many streams as there are cores, a single run later.",
		.min = 0, .max = 64),
	FRAG_PARAM_RESOURCE(struct inference, allocator, NULL,
			    .headline = "Allocator of the tensors that are emitted",
			    .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, infer_on_cpu, true,
			.headline = "On the CPU; false: on a GPU, which needs onnxruntime"),
	FRAG_PARAM_TREE(struct inference, device_map, NULL,
			.headline = "Device of single models: {model: cpu}, gpu or a GPU's number",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(
		struct inference, enable_fp16, false,
		.headline = "Compute with 16 bits where the processor is faster so",
		.description =
			"By openvino and TensorRT. Elsewhere a model computes as it was exported."),
	FRAG_PARAM_BOOL(struct inference, input_on_cuda, true,
			.headline = NO_EFFECT "inputs are taken from where they lie"),
	FRAG_PARAM_BOOL(struct inference, output_on_cuda, true,
			.headline = "Models on a GPU make their outputs there"),
	FRAG_PARAM_BOOL(struct inference, transmit_on_cuda, true,
			.headline =
				"The same: if one of both is false, outputs are in host memory"),
	FRAG_PARAM_BOOL(
		struct inference, enable_cuda_graphs, false,
		.headline = "Record the work of a run once and launch it as one graph of CUDA",
		.description =
			"For models on a GPU of which all sides are fixed, and all operations are there."),
	FRAG_PARAM_SIZE(struct inference, gpu_memory, 0,
			.headline = "Memory of the GPU that each model may use; 0: no limit"),
	FRAG_PARAM_PATH(struct inference, engine_cache, NULL,
			.headline = "Folder in which TensorRT keeps engines from run to run",
			.description =
				"Nobody else may write there. Each kind of GPU has a folder in it.",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, is_engine_path, false,
			.headline = "The files are engines of TensorRT, which are not read"),
	FRAG_PARAM_BOOL(struct inference, dynamic_input_dims, false,
			.headline = NO_EFFECT "models of any shape are taken as they are"),
	FRAG_PARAM_TREE(struct inference, trt_opt_profile, NULL,
			.headline = NO_EFFECT "engines are made for the shapes that come",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64(struct inference, dla_core, -1,
		       .headline = "Number of the DLA that TensorRT uses; -1: none", .min = -1,
		       .max = 16),
	FRAG_PARAM_TREE(struct inference, dla_core_map, NULL,
			.headline = "DLA of single models: {model: number}",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, dla_gpu_fallback, true,
			.headline = "The GPU does what DLA cannot; false is refused with a DLA"),
	FRAG_PARAM_RESOURCE(struct inference, cuda_stream_pool, NULL,
			    .headline = "Where the stream of models on a GPU comes from",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int inference_setup(void *state, struct frag_op *op)
{
	struct inference *in = state;
	int r = batch_setup(&in->cameras, op, in->batch);

	if (r == 0 && in->batch != NULL && in->temporal_map != NULL)
		r = frag_op_fail(
			op, -EINVAL,
			"temporal_map and batch: the latest results are those of other frames; leave one of them out");
	return r == 0 ? inference_networks_setup(in, op) : r;
}

/* Models are compiled before anything runs, so that no message waits for it. */
static int inference_initialize(void *state, struct frag_op *op)
{
	struct inference *in = state;
	int r = batch_check(&in->cameras, op, RECEIVERS);

	frag_op_suspend_watchdog(op);
	return r == 0 ? inference_networks_open(in, op) : r;
}

static int add_outputs(const struct inference *in, const struct network *network,
		       struct frag_message *message)
{
	int r = 0;

	for (size_t i = 0; i < network->output_count && r == 0; i++) {
		const struct network_output *output = &network->outputs[i];

		if (output->tensor != NULL &&
		    inference_is_listed(&in->out_tensor_names, output->name))
			r = frag_message_add_tensor(message, output->name,
						    frag_tensor_ref(output->tensor));
	}
	return r;
}

/* Keeps what a stream still writes, although nobody gets it. */
static int hold_outputs(const struct inference *in, struct frag_tick *tick)
{
	int r = 0;

	for (size_t i = 0; i < in->networks.count && in->has_stream; i++) {
		const struct network *network = &in->networks.items[i];

		for (size_t k = 0; k < network->output_count && r == 0; k++) {
			const struct network_output *output = &network->outputs[k];

			if (output->tensor != NULL &&
			    !inference_is_listed(&in->out_tensor_names, output->name))
				r = frag_tick_hold(tick, frag_tensor_ref(output->tensor));
		}
	}
	return r;
}

/* Emits the results in one message, with the acquisition time of the first that came. */
static int emit(const struct inference *in, struct frag_tick *tick)
{
	struct frag_message *message = frag_message_create();
	int r = message != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < in->networks.count && r == 0; i++)
		if (in->networks.items[i].active)
			r = add_outputs(in, &in->networks.items[i], message);
	if (r == -EEXIST)
		r = frag_op_fail(
			frag_tick_op(tick), r,
			"two models make a tensor of the same name; give them different names in inference_map");
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	if (frag_message_tensor_count(message) == 0) {
		frag_message_unref(message);
		return 0;
	}
	received_stamp(in->messages, in->message_count, message);
	return frag_tick_emit(tick, TRANSMITTER, message);
}

/* Makes the message of a frame. Returns 0 or a failure with a sentence. */
static int add_parts(const struct inference *in, size_t i, struct frag_message *message,
		     struct frag_err *err)
{
	struct frag_tensor *part;
	int r = 0;

	for (size_t n = 0; n < in->networks.count && r == 0; n++) {
		const struct network *network = &in->networks.items[n];

		for (size_t k = 0; k < network->output_count && network->active && r == 0; k++) {
			const struct network_output *output = &network->outputs[k];

			if (output->tensor == NULL ||
			    !inference_is_listed(&in->out_tensor_names, output->name))
				continue;
			r = batch_part(&in->cameras, output, i, &part, err);
			if (r == 0 &&
			    (r = frag_message_add_tensor(message, output->name, part)) < 0)
				frag_err_set(err, r, "the results cannot be one message: %s",
					     frag_strerror(r));
		}
	}
	return r;
}

/* Sends a frame's results on, with its stamps and metadata. */
static int emit_frame(const struct inference *in, struct frag_tick *tick,
		      const struct batch_frame *frame, struct frag_message *message)
{
	struct frag_metadata *metadata = frag_tick_metadata(tick);
	const struct frag_metadata *own = frag_message_metadata(frame->message);
	int r;

	frag_metadata_clear(metadata);
	r = own != NULL ? frag_metadata_update(metadata, own) : 0;
	if (r == 0 && in->cameras.port_count == 0)
		r = frag_metadata_set_i64(metadata, "flow", frame->flow);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	frag_message_copy_stamps(message, frame->message);
	return frag_tick_emit(
		tick, in->cameras.port_count > 0 ? in->cameras.ports[frame->flow] : TRANSMITTER,
		message);
}

/* Emits the results of a run: a message for each frame, in their order. */
static int emit_batch(const struct inference *in, struct frag_tick *tick)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = 0;

	for (size_t i = 0; i < in->cameras.count && r == 0; i++) {
		struct frag_message *message = frag_message_create();

		r = message != NULL ? add_parts(in, i, message, &err) : -ENOMEM;
		if (r == 0 && frag_message_tensor_count(message) > 0)
			r = emit_frame(in, tick, &in->cameras.frames[in->cameras.first + i],
				       message);
		else
			frag_message_unref(message);
	}
	return err.code != 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : r;
}

/* A model without results, such as one that was off or has been replaced, is due at once. */
static bool is_due(const struct network *network, const struct frag_tick *tick)
{
	return network->active && (network->outputs[0].tensor == NULL ||
				   frag_tick_count(tick) % (uint64_t)network->every == 0);
}

/*
 * Starts the models that are due, one after the other unless parallel_inference is set, and
 * collects what has ended. Returns 0 when all have; FRAG_PENDING: not yet; or a failure.
 */
static int advance(struct inference *in, const struct frag_tick *tick, struct frag_err *err)
{
	bool busy = false;
	int r = 0;

	for (size_t i = 0; i < in->networks.count && r == 0 && (in->parallel_inference || !busy);
	     i++) {
		struct network *network = &in->networks.items[i];

		if (i == in->begun) {
			in->begun++;
			if (is_due(network, tick))
				r = network_start(network, in->messages, (size_t)in->message_count,
						  in->allocator, err);
		}
		if (r == 0)
			r = network_collect(network, in->allocator, err);
		busy |= network->busy;
	}
	return r < 0 ? r : busy ? FRAG_PENDING : 0;
}

static void abandon_all(struct inference *in)
{
	for (size_t i = 0; i < in->networks.count; i++)
		network_abandon(&in->networks.items[i]);
	in->running = false;
}

/* Which models are on in this tick: as the graph says, or the metadata of what came. */
static int activate(struct inference *in, struct frag_tick *tick, struct frag_err *err)
{
	const struct frag_metadata *metadata = frag_tick_metadata(tick);
	const char *text = NULL;

	for (size_t i = 0; i < in->networks.count; i++)
		in->networks.items[i].active = in->networks.items[i].is_on;
	if (frag_metadata_get_string(metadata, "activation_map", &text) < 0)
		return 0;
	return inference_networks_activate(in, text, err);
}

/* Receives what this tick works on. Returns 1; 0: nothing came; or a failure. */
static int receive(struct inference *in, struct frag_tick *tick, struct frag_err *err)
{
	int r;

	if (in->cameras.size == 0) {
		in->message_count = frag_tick_receive_all(tick, RECEIVERS, &in->messages);
		r = in->message_count < 0 ? in->message_count : 1;
	} else {
		r = batch_receive(&in->cameras, tick, RECEIVERS);
	}
	if (r <= 0)
		return r;
	r = activate(in, tick, err);
	return r < 0 ? r : 1;
}

/* Begins the next run of the tick's frames; without batches there is one. Returns as receive. */
static int begin(struct inference *in, struct frag_err *err)
{
	int r = 1;

	in->begun = 0;
	if (in->cameras.size > 0) {
		r = batch_next(&in->cameras, in->networks.items, in->networks.count, in->stream,
			       err);
		in->messages = in->cameras.messages;
		in->message_count = 1;
	}
	in->running = r > 0;
	return r;
}

static int run(struct inference *in, struct frag_tick *tick, struct frag_err *err)
{
	int r = advance(in, tick, err);

	if (r == FRAG_PENDING)
		return r;
	if (r < 0)
		abandon_all(in);
	in->running = false;
	if (r == 0)
		r = hold_outputs(in, tick);
	if (r == 0)
		r = in->cameras.size > 0 ? emit_batch(in, tick) : emit(in, tick);
	return r;
}

/* While the engine works no thread of the scheduler waits: each run that ends resumes the tick. */
static int inference_compute(void *state, struct frag_tick *tick)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct inference *in = state;
	int r = 1;

	if (!in->running) {
		inference_networks_follow(in, frag_tick_op(tick));
		r = receive(in, tick, &err);
		if (r > 0)
			r = begin(in, &err);
	}
	while (r > 0 || in->running) {
		r = run(in, tick, &err);
		if (r == FRAG_PENDING)
			return r;
		if (r == 0 && in->cameras.size > 0)
			r = begin(in, &err);
	}
	if (err.code != 0)
		return frag_op_fail(frag_tick_op(tick), r, "%s", err.text);
	return r;
}

/* The engine reads what was received until its runs have ended. */
static int inference_stop(void *state, struct frag_op *op)
{
	(void)op;
	abandon_all(state);
	return 0;
}

static void inference_fini(void *state, struct frag_op *op)
{
	struct inference *in = state;

	if (in->loader.is_begun) /* what is compiled has to be waited for */
		frag_op_suspend_watchdog(op);
	batch_fini(&in->cameras);
	inference_networks_close(in);
}

const struct frag_op_type inference_inference_type = {
	FRAG_OP_TYPE_INIT,
	.name = "inference",
	.headline = "Runs neural networks on tensors",
	.description =
		"Each model takes tensors by name from the messages and makes tensors, which go into one message. A tensor that holds several inputs of a model is a batch. Models are compiled before anything runs, once in a process. While the engine works, the thread does other operators' work.",
	.state_size = sizeof(struct inference),
	FRAG_PORTS(inference_ports),
	FRAG_PARAMS(inference_params),
	.setup = inference_setup,
	.initialize = inference_initialize,
	.compute = inference_compute,
	.stop = inference_stop,
	.fini = inference_fini,
};
