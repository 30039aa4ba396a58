// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sched/kind.h>

/*
 * Whether the threads of schedulers live. A thread that user code ends by pthread_exit runs its
 * cleanup handler; one that it ends by the system call alone does not, and nobody is told. Its
 * stack stays until it is joined, and so does its entry there.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fragi_sched_alive_begin(struct fragi_sched *sched, struct fragi_sched_alive *alive)
{
	*alive = (struct fragi_sched_alive){
		.sched = sched, .tid = (int)syscall(SYS_gettid), .current = fragi_current()};
	pthread_mutex_lock(&lock);
	alive->next = sched->alive;
	sched->alive = alive;
	pthread_mutex_unlock(&lock);
}

void fragi_sched_alive_end(struct fragi_sched_alive *alive)
{
	struct fragi_sched_alive **at = &alive->sched->alive;

	pthread_mutex_lock(&lock);
	while (*at != NULL && *at != alive)
		at = &(*at)->next;
	if (*at == alive)
		*at = alive->next;
	pthread_mutex_unlock(&lock);
}

bool fragi_sched_find_lost(struct fragi_sched *sched, struct fragi_sched_lost *out)
{
	bool is_found = false;

	pthread_mutex_lock(&lock);
	for (const struct fragi_sched_alive *a = sched->alive; a != NULL && !is_found;
	     a = a->next) {
		if (syscall(SYS_tgkill, getpid(), a->tid, 0) == 0 || errno != ESRCH)
			continue;
		is_found = true;
		*out = (struct fragi_sched_lost){
			__atomic_load_n(&a->current->op, __ATOMIC_RELAXED),
			__atomic_load_n(&a->current->callback, __ATOMIC_RELAXED)};
	}
	pthread_mutex_unlock(&lock);
	if (is_found && out->op == NULL) /* none of an operator's callbacks: nobody can be named */
		out->op = sched->execs[0]->op;
	return is_found;
}
