// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <run/state.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LOG_TOPIC "run"
#include <base/alloc.h>
#include <base/log.h>
#include <sched/look.h>

/*
 * While somebody looks: a thread that sees about every 2 ms what each operator does, and
 * counts the time since it saw it last. So the times of an operator add up to the time for which
 * was looked. When nobody looks, and no path has a deadline, there is no thread, and nothing of
 * this is executed.
 */
#define EVERY_NS 2000000
#define EVERY_MAX_NS 100000000
#define SHARE 100 /* it may take this part of a core */
/* For each host that is looked at, on a machine of one core: to be woken costs too. */
#define HOST_NS INT64_C(400000)

struct fragi_run_look {
	struct fragi_run *run;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* ends */
	bool ends;
	int64_t cores, begun_ns;
	_Atomic uint32_t hosts;
};

static int64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns whether it goes on. */
static bool wait_until(struct fragi_run_look *look, int64_t when_ns)
{
	const struct timespec when = {when_ns / 1000000000, when_ns % 1000000000};
	bool ends;

	pthread_mutex_lock(&look->lock);
	while (!look->ends && pthread_cond_timedwait(&look->changed, &look->lock, &when) == 0)
		;
	ends = look->ends;
	pthread_mutex_unlock(&look->lock);
	return !ends;
}

/*
 * How long until the next look: from three to five quarters of the period, so that an operator with
 * a period of its own is not always seen at the same place of it.
 */
static int64_t next_in(const struct fragi_run_look *look, int64_t took_ns, uint32_t *random)
{
	int64_t every_ns = took_ns * SHARE,
		share_ns = atomic_load(&look->hosts) * HOST_NS / look->cores;

	every_ns = every_ns < share_ns ? share_ns : every_ns;
	every_ns = every_ns < EVERY_NS ? EVERY_NS : every_ns;
	every_ns = every_ns > EVERY_MAX_NS ? EVERY_MAX_NS : every_ns;
	*random = *random * 1664525 + 1013904223;
	return every_ns * 3 / 4 + every_ns / 2 * (*random >> 16) / 65536;
}

static void *look_main(void *arg)
{
	struct fragi_run_look *look = arg;
	struct fragi_run *run = look->run;
	uint32_t random = (uint32_t)fragi_now_ns();
	int64_t seen_ns = look->begun_ns, now_ns, begun_ns, took_ns = 0;
	bool goes_on;

	pthread_setname_np(pthread_self(), "frag-look");
	do {
		goes_on = wait_until(look, seen_ns + next_in(look, took_ns, &random));
		begun_ns = thread_ns();
		now_ns = fragi_now_ns();
		for (size_t i = 0; i < run->fragment_count; i++)
			fragi_sched_look(run->fragments[i].sched, (uint64_t)(now_ns - seen_ns));
		fragi_run_look_at_pools(run, (uint64_t)(now_ns - seen_ns));
		seen_ns = now_ns;
		took_ns = thread_ns() - begun_ns;
	} while (goes_on); /* the time until its end counts too */
	return NULL;
}

static int create_thread(struct fragi_run_look *look)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&look->thread, NULL, look_main, look);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void look_free(struct fragi_run_look *look)
{
	pthread_cond_destroy(&look->changed);
	pthread_mutex_destroy(&look->lock);
	fragi_free(look);
}

static void begin(struct fragi_run *run, uint32_t hosts)
{
	struct fragi_run_look *look = fragi_calloc(1, sizeof(*look));
	pthread_condattr_t attr;
	int r;

	if (look == NULL)
		return;
	look->run = run;
	look->begun_ns = fragi_now_ns();
	look->cores = sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	atomic_init(&look->hosts, hosts);
	pthread_mutex_init(&look->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&look->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = create_thread(look);
	if (r == 0) {
		run->look = look;
		return;
	}
	log_warn(run->config.spec->application,
		 "what its operators wait for is not counted: no thread can be created: %s",
		 frag_strerror(r));
	look_free(look);
}

void fragi_run_look(struct fragi_run *run, uint32_t hosts)
{
	run->looks = hosts;
	/* What late messages have waited for is read from what is counted here; traces show it. */
	if (hosts == 0 && (run->deadline_count > 0 || run->traces > 0))
		hosts = 1;
	if (hosts == 0)
		fragi_run_look_end(run);
	else if (run->look == NULL)
		begin(run, hosts);
	else
		atomic_store(&run->look->hosts, hosts);
}

void fragi_run_look_end(struct fragi_run *run)
{
	struct fragi_run_look *look = run->look;

	if (look == NULL)
		return;
	pthread_mutex_lock(&look->lock);
	look->ends = true;
	pthread_cond_signal(&look->changed);
	pthread_mutex_unlock(&look->lock);
	pthread_join(look->thread, NULL);
	look_free(look);
	run->look = NULL;
}
