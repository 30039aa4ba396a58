// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <base/alloc.h>

#include "calls.h"

/*
 * A call that is not `spare` is in one list: `waiting` until the driver reports it, then `ready`
 * until a thread takes it. A settling thread takes calls from both. The driver's report holds a
 * reference of its own, because it may come after that; when a GPU has failed it never comes, and
 * what it refers to stays.
 */
struct call {
	uint32_t refs;
	struct fragi_work *work;
	struct cuda_calls *owner;
	void (*fn)(void *arg);
	void *arg;
	bool is_waiting;
	struct call **place, *next; /* place: what refers to it in its list; NULL: it was taken */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of owners */
static pthread_cond_t became_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t was_made = PTHREAD_COND_INITIALIZER;
static struct call *waiting, *ready, **ready_end = &ready, *spare;
static bool has_thread;

/* With the lock. */
static void unref(struct call *call)
{
	if (--call->refs > 0)
		return;
	call->next = spare;
	spare = call;
}

/* With the lock. NULL: memory is short. */
static struct call *new_call(void)
{
	struct call *call = spare;

	if (call == NULL)
		return fragi_malloc(sizeof(*call));
	spare = call->next;
	return call;
}

/* With the lock. */
static void take(struct call *call)
{
	*call->place = call->next;
	if (call->next != NULL)
		call->next->place = call->place;
	else if (!call->is_waiting)
		ready_end = call->place;
	call->place = NULL;
}

/* The driver's thread. */
static void report(void *arg)
{
	struct call *call = arg;

	pthread_mutex_lock(&lock);
	if (call->place != NULL) {
		take(call);
		atomic_store_explicit(&call->work->done, true, memory_order_release);
		call->is_waiting = false;
		call->next = NULL;
		call->place = ready_end;
		*ready_end = call;
		ready_end = &call->next;
		pthread_cond_signal(&became_ready);
	}
	unref(call);
	pthread_mutex_unlock(&lock);
}

/* With the lock, which is left meanwhile; the call was taken. */
static void make_call(struct call *call)
{
	struct fragi_work *work = call->work;

	pthread_mutex_unlock(&lock);
	call->fn(call->arg);
	pthread_mutex_lock(&lock);
	call->owner->count--;
	unref(call);
	pthread_cond_broadcast(&was_made);
	pthread_mutex_unlock(&lock);
	/* The owner may go with its last work. */
	fragi_work_unref(work);
	pthread_mutex_lock(&lock);
}

static void *serve(void *arg)
{
	struct call *call;

	(void)arg;
	(void)prctl(PR_SET_NAME, "frag-cuda");
	pthread_mutex_lock(&lock);
	for (;;) {
		while (ready == NULL)
			pthread_cond_wait(&became_ready, &lock);
		call = ready;
		take(call);
		make_call(call);
	}
	return NULL;
}

/* With the lock. The thread stays for the life of the process, as the driver does. */
static int start_thread(void)
{
	pthread_t thread;
	sigset_t all, before;
	int r;

	if (has_thread)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -ENOMEM;
	(void)pthread_detach(thread);
	has_thread = true;
	return 0;
}

static int ask_driver(const struct cuda_device *gpu, CUstream side, CUevent event,
		      struct call *call)
{
	int r = cuda_device_enter(gpu, NULL);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamWaitEvent(side, event, 0), NULL, "cuStreamWaitEvent");
	if (r == 0)
		r = cuda_check(cu.cuLaunchHostFunc(side, report, call), NULL, "cuLaunchHostFunc");
	cuda_device_leave();
	return r;
}

/* With the lock. */
static void add_waiting(struct call *call)
{
	(void)fragi_work_ref(call->work);
	call->owner->count++;
	call->next = waiting;
	call->place = &waiting;
	if (waiting != NULL)
		waiting->place = &call->next;
	waiting = call;
}

/* The driver will not report the call. Returns false: a settling thread makes it nevertheless. */
static bool take_back(struct call *call)
{
	bool is_there;

	pthread_mutex_lock(&lock);
	is_there = call->place != NULL;
	if (is_there) {
		take(call);
		call->owner->count--;
		unref(call);
		pthread_cond_broadcast(&was_made);
	}
	unref(call);
	pthread_mutex_unlock(&lock);
	return is_there;
}

int cuda_call_after(const struct cuda_device *gpu, CUstream side, CUevent event,
		    struct fragi_work *work, struct cuda_calls *owner, void (*fn)(void *arg),
		    void *arg)
{
	struct call *call = NULL;
	int r;

	pthread_mutex_lock(&lock);
	r = start_thread();
	if (r == 0)
		call = new_call();
	if (call != NULL) {
		*call = (struct call){.refs = 2, /* of the list, and of the driver */
				      .work = work,
				      .owner = owner,
				      .fn = fn,
				      .arg = arg,
				      .is_waiting = true};
		add_waiting(call);
	}
	pthread_mutex_unlock(&lock);
	if (call == NULL)
		return -ENOMEM;
	r = ask_driver(gpu, side, event, call);
	if (r == 0 || !take_back(call))
		return 0;
	fragi_work_unref(work);
	return r;
}

/* With the lock. */
static struct call *find(struct call *call, const struct cuda_calls *owner)
{
	while (call != NULL && call->owner != owner)
		call = call->next;
	return call;
}

void cuda_calls_settle(struct cuda_calls *owner)
{
	struct call *call;

	pthread_mutex_lock(&lock);
	while (owner->count > 0) {
		call = find(ready, owner);
		if (call == NULL)
			call = find(waiting, owner);
		if (call == NULL) {
			pthread_cond_wait(&was_made, &lock);
			continue;
		}
		take(call);
		if (call->is_waiting) {
			pthread_mutex_unlock(&lock);
			(void)fragi_work_wait(call->work, NULL);
			pthread_mutex_lock(&lock);
		}
		make_call(call);
	}
	pthread_mutex_unlock(&lock);
}
