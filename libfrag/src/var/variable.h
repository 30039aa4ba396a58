/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_VAR_VARIABLE_H
#define FRAGI_VAR_VARIABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include <frag/variable.h>
#include <graph/op.h>

/*
 * The shared variables of a process (frag/variable.h). Each is a memfd that the process of its
 * writer has made: a page that describes and publishes it, then the data. It is sealed so that only
 * the mapping of that process can write. Other processes of the application get a descriptor from
 * its server: an abstract socket for each variable, so the kernel keeps their names apart. A lock
 * of the kernel on the file keeps the writer from readers; it ends with the process that holds it.
 */
#define FRAGI_VARIABLES_KEY_BYTES 32 /* names of the sockets, then the secret; half of it each */
#define FRAGI_VARIABLES_SECRET_BYTES (FRAGI_VARIABLES_KEY_BYTES / 2)

/* The start of the memory. Readers believe none of it. */
struct fragi_variable_page {
	_Atomic uint32_t changes; /* of version; a futex */
	struct frag_dtype dtype;
	_Atomic uint64_t version; /* of what is published; 0: nothing is */
	_Atomic uint32_t writing; /* 1: somebody has it mapped to write */
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
};
#define FRAGI_VARIABLE_DATA_AT 4096u

/* memory.c: one variable's memory, as this process sees it */
struct fragi_variable_memory {
	int fd;                                 /* -1: there is none */
	uint64_t size;                          /* of the data */
	struct fragi_variable_page *own;        /* NULL: another process writes it */
	const struct fragi_variable_page *page; /* read-only, as what follows it */
};
void fragi_variable_memory_init(struct fragi_variable_memory *memory);
void fragi_variable_memory_fini(struct fragi_variable_memory *memory);
/* bytes: of the data; 0: as much as the machine has, of which the kernel backs what is written. */
int fragi_variable_memory_create(struct fragi_variable_memory *memory, uint64_t bytes);
/* Takes the descriptor. Returns 0; -EBADMSG: it is no such memory; other negative errno. */
int fragi_variable_memory_open(struct fragi_variable_memory *memory, int fd);
/* A descriptor for another process, with locks of its own; or negative errno. */
int fragi_variable_memory_reopen(const struct fragi_variable_memory *memory);
/* Returns 0; -EBUSY: others have it. */
int fragi_variable_memory_lock(const struct fragi_variable_memory *memory, bool exclusive);
void fragi_variable_memory_unlock(const struct fragi_variable_memory *memory);
/* Sets the version, and wakes who waits for a change. 0: withdraws it. */
void fragi_variable_memory_publish(struct fragi_variable_memory *memory, uint64_t version);
/* Until `changes` is another or the time is over. */
void fragi_variable_memory_wait(const struct fragi_variable_memory *memory, uint32_t changes,
				int64_t timeout_ns);

struct fragi_variables;

struct fragi_variable {
	struct fragi_variable *next;
	struct fragi_variables *variables;
	const struct fragi_spec_variable *spec; /* NULL: it was created */
	char *name;
	const struct frag_op *creator; /* NULL: declared, or of another process */
	bool is_visible;               /* may be opened by others than its creator */
	int listener;                  /* -1: no other process gets it here */
	struct fragi_variable_memory memory;
	uint64_t version;                   /* of its last publication; where it is written */
	uint32_t readers;                   /* mappings in this process */
	const struct frag_variable *writer; /* NULL: nobody has mapped it to write */
};

struct frag_variable {
	struct frag_variable *next;
	struct frag_op *op;
	struct fragi_variable *variable;
	bool may_read, may_write;
	unsigned int mapped; /* enum frag_variable_access; 0: not */
	struct frag_dltensor dl;
	int64_t shape[FRAG_TENSOR_NDIM_MAX], strides[FRAG_TENSOR_NDIM_MAX];
};

#define FRAGI_VARIABLE_CLIENTS_MAX 64

/* server.c: gives the variables of this process to other processes */
struct fragi_variable_client {
	int fd; /* -1: free */
	struct fragi_variable *variable;
};
struct fragi_variable_server {
	int epoll, stop; /* -1: closed, there is no thread */
	pthread_t thread;
	struct fragi_variable_client clients[FRAGI_VARIABLE_CLIENTS_MAX];
	uint32_t oldest;
};

struct fragi_variables_config {
	const struct fragi_spec *spec; /* NULL: none */
	/* FRAGI_VARIABLES_KEY_BYTES, borrowed; NULL: this process is the whole application */
	const uint8_t *key;
	int stop_fd; /* readable: the application stops; -1: none */
};

struct fragi_variables {
	struct fragi_variables_config config;
	pthread_mutex_t lock; /* guards all that follows */
	struct fragi_variable *first;
	struct frag_variable *handles;
	uint32_t count;
	struct fragi_variable_server server;
};

/* Lets other processes get the variable. Returns 0; -EADDRINUSE: there is one of that name. */
int fragi_variable_server_add(struct fragi_variables *variables, struct fragi_variable *variable);
void fragi_variable_server_close(struct fragi_variables *variables);
/*
 * Gets a variable of another process. Returns 0; -ENOENT: there is none; -ECONNRESET: it does not
 * give it to this process; -ETIMEDOUT; other negative errno.
 */
int fragi_variable_request(const struct fragi_variables *variables, const char *name,
			   struct fragi_variable_memory *out_memory);

/* store.c: what a process has */
FRAGI_API int fragi_variables_create(const struct fragi_variables_config *config,
				     struct fragi_variables **out_variables);
/* NULL is accepted. No operator is in a call. */
FRAGI_API void fragi_variables_destroy(struct fragi_variables *variables);
/*
 * One of the graph. written_here: its writer is in this process, which makes its memory;
 * read_elsewhere: others get it here. Returns 0 or negative errno with a sentence.
 */
FRAGI_API int fragi_variables_declare(struct fragi_variables *variables,
				      const struct fragi_spec_variable *spec, bool written_here,
				      bool read_elsewhere, struct frag_err *err);
/* Gets what the graph lets this process read and another writes. As declare. */
FRAGI_API int fragi_variables_fetch(struct fragi_variables *variables, const char *name,
				    struct frag_err *err);
/* With the lock: the variable of that name; NULL: there is none. */
struct fragi_variable *fragi_variables_find(const struct fragi_variables *variables,
					    const char *name);
/* With the lock. */
int fragi_variables_add(struct fragi_variables *variables, const char *name,
			struct fragi_variable **out_variable);
void fragi_variables_remove_first(struct fragi_variables *variables);

#endif
