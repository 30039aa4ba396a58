/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_BACKEND_H
#define INFERENCE_BACKEND_H

#include <frag/frag.h>

/*
 * A backend is an engine that runs models: one table, and one entry in backends.c. The operator
 * knows nothing else of it. Functions return 0 or a negative errno with the sentence in *err, which
 * says what to do. A model may be used by several threads at a time, a request by one.
 */

/* Runs of one model that may be under way at a time. */
#define INFERENCE_REQUESTS 4

/* One input or output of a model. */
struct inference_tensor {
	const char *name;
	struct frag_dtype dtype;
	int32_t ndim;                        /* -1: any */
	int64_t shape[FRAG_TENSOR_NDIM_MAX]; /* -1: any */
	/* names of sides that are any: those of one name are equal; NULL: it has none */
	const char *sides[FRAG_TENSOR_NDIM_MAX];
};

/* A model that is ready to run. Backends keep their own data around it. */
struct inference_model {
	const struct inference_backend *backend;
	struct inference_tensor *inputs, *outputs;
	size_t input_count, output_count;
	/* how many runs may be under way at a time, each in a request of its own */
	size_t runs_at_a_time;
	/* a GPU on which inputs may lie, as they may in host memory; of type CPU: none */
	struct frag_device device;
	/* where outputs are made: host memory or that GPU, and then a run ends when all its work
	 * was given to the stream */
	struct frag_device out_device;
};

/* One run of a model at a time, with the memory that it needs. */
struct inference_request;

enum inference_provider { INFERENCE_CPU, INFERENCE_CUDA, INFERENCE_TENSORRT };

struct inference_options {
	int64_t threads; /* of all runs under way; 0: the engine decides */
	int64_t streams; /* runs at a time, which share the threads; 0: the engine decides */
	bool half;       /* it may compute with 16 bits where that is faster */
	enum inference_provider provider;
	/* of a GPU; borrowed until the model is unloaded */
	int32_t gpu;
	void *stream;             /* that the work is given to */
	bool host_outputs;        /* outputs are made in host memory, and runs wait for them */
	bool graphs;              /* runs are recorded once, as a graph of CUDA */
	int64_t dla_core;         /* -1: none */
	int64_t memory_bytes;     /* of the GPU, at most; 0: no limit */
	const char *engine_cache; /* folder; NULL: none */
};

/* An output of a run, borrowed until the request is started again. */
struct inference_result {
	struct frag_dtype dtype;
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	const void *data; /* compact, row-major, in model->out_device */
	size_t size_bytes;
	/*
	 * Called when data on a GPU is no longer used, with owner; the result is then not bound to
	 * the request. NULL: data is in host memory and borrowed.
	 */
	void (*release)(void *owner);
	void *owner;
};

struct inference_backend {
	const char *name;
	/* reads and compiles the file; may take seconds */
	int (*load)(const char *path, const struct inference_options *options,
		    struct inference_model **out, struct frag_err *err);
	void (*unload)(struct inference_model *model);
	/*
	 * Finds an output by any of its names: a model may give it several, of which
	 * inference_tensor holds one. Returns its index; -ENOENT: there is none.
	 */
	int (*find_output)(const struct inference_model *model, const char *name);
	int (*request_create)(struct inference_model *model, struct inference_request **out,
			      struct frag_err *err);
	/* waits for a run that is under way */
	void (*request_destroy)(struct inference_request *request);
	/* data: compact, on that device, borrowed until the run has ended */
	int (*set_input)(struct inference_request *request, size_t input, int32_t ndim,
			 const int64_t *shape, struct frag_device device, const void *data,
			 struct frag_err *err);
	/*
	 * Has the next run write an output where the caller wants it, instead of a result. NULL:
	 * the backend cannot.
	 * - data: in model->out_device, borrowed as that of set_input; NULL: the run makes a result
	 */
	int (*set_output)(struct inference_request *request, size_t output, int32_t ndim,
			  const int64_t *shape, void *data, struct frag_err *err);
	/*
	 * Starts a run and returns.
	 * - done: called once when the run has ended, on any thread; not when start fails
	 */
	int (*start)(struct inference_request *request, void (*done)(void *context), void *context,
		     struct frag_err *err);
	/* waits for the end of the run; returns its failure */
	int (*wait)(struct inference_request *request, struct frag_err *err);
	int (*result)(struct inference_request *request, size_t output,
		      struct inference_result *out, struct frag_err *err);
};

extern const struct inference_backend inference_openvino, inference_onnxruntime;

/*
 * Finds a backend by its name in graphs, which may be one of Holoscan's.
 * - out_provider: receives the provider that the name stands for, otherwise unchanged
 * Returns NULL with a sentence in *err that says which to use.
 */
const struct inference_backend *inference_backend_find(const char *name,
						       enum inference_provider *out_provider,
						       struct frag_err *err);
/* The bytes of a compact tensor. */
size_t inference_tensor_bytes(struct frag_dtype dtype, int32_t ndim, const int64_t *shape);

/* The most bytes that inference_tensor_text writes. */
#define INFERENCE_TEXT_SIZE 128
/* Writes "u8 [1, 300, 300, 3]" into out; -1 is written as "any". Returns out. */
const char *inference_tensor_text(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
				  char *out);

#endif
