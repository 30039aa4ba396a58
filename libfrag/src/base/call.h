/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_CALL_H
#define FRAGI_BASE_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Which call into code of a user a thread has made: a callback of an operator, a composer, the
 * constructors of a library. The thread that makes the calls records them, and another thread or,
 * where the record is in shared memory, another process reads what a call is that does not return.
 */
/* X(NAME, name) */
#define FRAGI_CALL_LIST(X)                                                                         \
	X(LOAD, load) /* constructors of a library */                                              \
	X(COMPOSE, compose)                                                                        \
	X(SETUP, setup)                                                                            \
	X(BIND, bind) /* of a condition */                                                         \
	X(INITIALIZE, initialize)                                                                  \
	X(RESTORE, restore)                                                                        \
	X(START, start)                                                                            \
	X(COMPUTE, compute)                                                                        \
	X(SAVE, save)                                                                              \
	X(STOP, stop)                                                                              \
	X(FINI, fini)                                                                              \
	X(DRIVER_START, driver_start) /* of a service, as those below */                           \
	X(DRIVER_STOP, driver_stop)                                                                \
	X(WORKER_CONNECT, worker_connect)                                                          \
	X(WORKER_DISCONNECT, worker_disconnect)

#define FRAGI_CALL_ENUM(NAME, name) FRAGI_CALL_##NAME,
enum fragi_call_kind { FRAGI_CALL_NONE, FRAGI_CALL_LIST(FRAGI_CALL_ENUM) FRAGI_CALL_KINDS };
#undef FRAGI_CALL_ENUM

/* "setup"; "a callback" for NONE and what is none. May be called in a signal handler. */
FRAGI_API const char *fragi_call_name(enum fragi_call_kind kind);

#define FRAGI_CALL_SUBJECT_MAX 256

#define FRAGI_CALL_SLOW_NS 10000000000ll /* a warning after each such time */

struct fragi_call {
	pthread_mutex_t lock;
	char subject[FRAGI_CALL_SUBJECT_MAX];
	enum fragi_call_kind kind;
	int64_t since_ns; /* 0: no call is under way */
	int64_t limit_ns;
};

/* A call as it was seen. */
struct fragi_call_seen {
	char subject[FRAGI_CALL_SUBJECT_MAX]; /* "fragment1.tx", or the path of a library */
	enum fragi_call_kind kind;
	int64_t since_ns; /* CLOCK_MONOTONIC */
	int64_t limit_ns; /* 0: none */
};

FRAGI_API void fragi_call_init(struct fragi_call *call);
/* From now on the calls of this thread are recorded there. NULL: nowhere. */
FRAGI_API void fragi_call_record(struct fragi_call *call);
/* Around a call. subject may be cut. Nothing happens on a thread that records nowhere. */
FRAGI_API void fragi_call_begin(const char *subject, enum fragi_call_kind kind, int64_t limit_ns);
FRAGI_API void fragi_call_end(void);
/* The call of this thread has no limit from now on. */
FRAGI_API void fragi_call_remove_limit(void);
/* Returns whether a call is under way, and which. Thread: any. Never waits. */
FRAGI_API bool fragi_call_look(struct fragi_call *call, struct fragi_call_seen *out_seen);

#endif
