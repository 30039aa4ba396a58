// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <base/alloc.h>
#include <base/clock.h>

/* How a realtime clock runs: at real_ns of CLOCK_MONOTONIC it shows time_ns. */
struct line {
	int64_t real_ns, time_ns;
	double scale;
};

struct frag_clock {
	enum fragi_clock_kind kind;
	/* virtual: the time; any thread reads it, and it is written under the lock */
	_Atomic int64_t time_ns;
	/* realtime: written under the lock; odd while that goes on */
	_Atomic uint32_t version;
	_Atomic int64_t line_real_ns, line_time_ns;
	_Atomic double line_scale;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* for sleepers */
	/* guarded by the lock */
	struct fragi_clock_user *users;
	bool is_stopping;
};

static void line_write(struct frag_clock *clock, const struct line *line)
{
	uint32_t version = atomic_load_explicit(&clock->version, memory_order_relaxed);

	atomic_store_explicit(&clock->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&clock->line_real_ns, line->real_ns, memory_order_relaxed);
	atomic_store_explicit(&clock->line_time_ns, line->time_ns, memory_order_relaxed);
	atomic_store_explicit(&clock->line_scale, line->scale, memory_order_relaxed);
	atomic_store_explicit(&clock->version, version + 2, memory_order_release);
}

static struct line line_read(const struct frag_clock *clock)
{
	uint32_t version;
	struct line line;

	do {
		version = atomic_load_explicit(&clock->version, memory_order_acquire);
		line.real_ns = atomic_load_explicit(&clock->line_real_ns, memory_order_relaxed);
		line.time_ns = atomic_load_explicit(&clock->line_time_ns, memory_order_relaxed);
		line.scale = atomic_load_explicit(&clock->line_scale, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
	} while ((version & 1) != 0 ||
		 atomic_load_explicit(&clock->version, memory_order_relaxed) != version);
	return line;
}

/* Converts a duration; what is too long for a time is as long as can be. */
static int64_t scaled(int64_t ns, double scale)
{
	double result;

	if (scale == 1)
		return ns;
	result = (double)ns * scale;
	if (result >= (double)FRAGI_CLOCK_TIME_MAX_NS)
		return FRAGI_CLOCK_TIME_MAX_NS;
	if (result <= -(double)FRAGI_CLOCK_TIME_MAX_NS)
		return -FRAGI_CLOCK_TIME_MAX_NS;
	return (int64_t)result + (result > (double)(int64_t)result); /* rounded up */
}

static int64_t line_time_at(const struct line *line, int64_t real_ns)
{
	return line->time_ns + scaled(real_ns - line->real_ns, line->scale);
}

static int64_t unix_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int fragi_clock_create(const struct fragi_clock_config *config, struct frag_clock **out_clock)
{
	struct frag_clock *clock = fragi_calloc(1, sizeof(*clock));
	struct line line = {.scale = config->scale};
	pthread_condattr_t attr;

	if (clock == NULL)
		return -ENOMEM;
	clock->kind = config->kind;
	atomic_init(&clock->time_ns, config->initial_ns);
	if (config->kind == FRAGI_CLOCK_REALTIME) {
		line.real_ns = fragi_now_ns();
		line.time_ns =
			(config->since_epoch ? unix_ns() : 0) + (int64_t)(config->offset_s * 1e9);
		line_write(clock, &line);
	}
	pthread_mutex_init(&clock->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&clock->changed, &attr);
	pthread_condattr_destroy(&attr);
	*out_clock = clock;
	return 0;
}

void fragi_clock_destroy(struct frag_clock *clock)
{
	if (clock == NULL)
		return;
	pthread_cond_destroy(&clock->changed);
	pthread_mutex_destroy(&clock->lock);
	fragi_free(clock);
}

void fragi_clock_join(struct frag_clock *clock, struct fragi_clock_user *user)
{
	if (clock == NULL)
		return;
	pthread_mutex_lock(&clock->lock);
	user->next = clock->users;
	clock->users = user;
	pthread_mutex_unlock(&clock->lock);
}

void fragi_clock_leave(struct frag_clock *clock, struct fragi_clock_user *user)
{
	struct fragi_clock_user **place;

	if (clock == NULL)
		return;
	pthread_mutex_lock(&clock->lock);
	for (place = &clock->users; *place != NULL && *place != user; place = &(*place)->next)
		;
	if (*place != NULL)
		*place = user->next;
	pthread_mutex_unlock(&clock->lock);
}

/* Reading. */

enum fragi_clock_kind fragi_clock_kind_of(const struct frag_clock *clock)
{
	return clock == NULL ? FRAGI_CLOCK_MACHINE : clock->kind;
}

int64_t fragi_clock_read_ns(const struct frag_clock *clock)
{
	struct line line;

	switch (clock->kind) {
	case FRAGI_CLOCK_REALTIME:
		line = line_read(clock);
		return line_time_at(&line, fragi_now_ns());
	case FRAGI_CLOCK_MANUAL:
	case FRAGI_CLOCK_SYNTHETIC:
		return atomic_load_explicit(&clock->time_ns, memory_order_acquire);
	default:
		return fragi_now_ns();
	}
}

int64_t fragi_clock_machine_ns(const struct frag_clock *clock, int64_t time_ns)
{
	struct line line;

	if (time_ns == INT64_MAX || fragi_clock_is_virtual(clock))
		return INT64_MAX;
	if (fragi_clock_kind_of(clock) == FRAGI_CLOCK_MACHINE)
		return time_ns;
	line = line_read(clock);
	return line.real_ns + scaled(time_ns - line.time_ns, 1 / line.scale);
}

/* Stamps are of the machine, unless a virtual clock was chosen for them. */
static const struct frag_clock *stamped;

int64_t fragi_clock_since_ns(const struct frag_clock *clock, uint64_t since_ns)
{
	if (stamped != NULL || fragi_clock_is_virtual(clock))
		return stamped == clock ? (int64_t)since_ns : -1;
	if (fragi_clock_kind_of(clock) == FRAGI_CLOCK_MACHINE)
		return (int64_t)since_ns;
	return scaled((int64_t)since_ns, line_read(clock).scale);
}

/* A stamp is never 0, which stands for none. */
static uint64_t stamp_of_clock(void)
{
	return (uint64_t)fragi_clock_read_ns(stamped) + 1;
}

void fragi_clock_use_for_stamps(const struct frag_clock *clock)
{
	stamped = clock;
	fragi_stamp_take_from(clock != NULL ? stamp_of_clock : NULL);
}

/* Moving. */

/* Under the lock. */
static void notify_users(struct frag_clock *clock, int64_t waited_ns)
{
	pthread_cond_broadcast(&clock->changed);
	for (struct fragi_clock_user *user = clock->users; user != NULL; user = user->next)
		user->moved(user->arg, waited_ns);
}

/* Under the lock: sets a virtual clock forward, if it is behind. waited_ns: as for users. */
static void move_to(struct frag_clock *clock, int64_t time_ns, int64_t waited_ns)
{
	if (time_ns > atomic_load_explicit(&clock->time_ns, memory_order_relaxed))
		atomic_store_explicit(&clock->time_ns, time_ns, memory_order_release);
	notify_users(clock, waited_ns);
}

static bool all_wait(const struct frag_clock *clock, int64_t *out_next_ns, uint64_t *out_rounds)
{
	int64_t next_ns = INT64_MAX, one_ns;
	uint64_t rounds = 0, one;

	for (const struct fragi_clock_user *user = clock->users; user != NULL; user = user->next) {
		if (!user->waits(user->arg, &one_ns, &one))
			return false;
		rounds += one;
		next_ns = one_ns < next_ns ? one_ns : next_ns;
	}
	*out_next_ns = next_ns;
	*out_rounds = rounds;
	return true;
}

/* In two counts one after the other everybody waits, and nobody has gone on in between. */
void fragi_clock_waiting(struct frag_clock *clock)
{
	uint64_t first, second;
	int64_t next_ns;

	if (fragi_clock_kind_of(clock) != FRAGI_CLOCK_MANUAL)
		return;
	pthread_mutex_lock(&clock->lock);
	if (all_wait(clock, &next_ns, &first) && all_wait(clock, &next_ns, &second) &&
	    first == second && next_ns != INT64_MAX)
		move_to(clock, next_ns, fragi_clock_read_ns(clock));
	pthread_mutex_unlock(&clock->lock);
}

void fragi_clock_going_on(struct frag_clock *clock)
{
	if (fragi_clock_kind_of(clock) != FRAGI_CLOCK_MANUAL)
		return;
	pthread_mutex_lock(&clock->lock);
	pthread_mutex_unlock(&clock->lock);
}

void fragi_clock_wake_sleepers(struct frag_clock *clock)
{
	if (clock == NULL)
		return;
	pthread_mutex_lock(&clock->lock);
	clock->is_stopping = true;
	pthread_cond_broadcast(&clock->changed);
	pthread_mutex_unlock(&clock->lock);
}

/* Called by operators. */

double frag_clock_time(const struct frag_clock *clock)
{
	return (double)fragi_clock_read_ns(clock) / 1e9;
}

int64_t frag_clock_timestamp(const struct frag_clock *clock)
{
	return fragi_clock_read_ns(clock);
}

/* Under the lock. */
static void wait_until(struct frag_clock *clock, int64_t time_ns)
{
	int64_t real_ns;
	struct timespec until;

	while (!clock->is_stopping && fragi_clock_read_ns(clock) < time_ns) {
		real_ns = fragi_clock_machine_ns(clock, time_ns);
		if (real_ns == INT64_MAX) {
			pthread_cond_wait(&clock->changed, &clock->lock);
			continue;
		}
		until = (struct timespec){real_ns / 1000000000, real_ns % 1000000000};
		pthread_cond_timedwait(&clock->changed, &clock->lock, &until);
	}
}

int frag_clock_sleep_until(struct frag_clock *clock, int64_t time_ns)
{
	pthread_mutex_lock(&clock->lock);
	if (clock->kind == FRAGI_CLOCK_MANUAL &&
	    time_ns > atomic_load_explicit(&clock->time_ns, memory_order_relaxed))
		move_to(clock,
			time_ns < FRAGI_CLOCK_TIME_MAX_NS ? time_ns : FRAGI_CLOCK_TIME_MAX_NS,
			FRAGI_CLOCK_NOBODY_WAITED);
	else
		wait_until(clock, time_ns);
	pthread_mutex_unlock(&clock->lock);
	return 0;
}

int frag_clock_sleep_for(struct frag_clock *clock, int64_t duration_ns)
{
	int64_t until_ns;

	if (duration_ns <= 0)
		return 0;
	if (__builtin_add_overflow(fragi_clock_read_ns(clock), duration_ns, &until_ns))
		until_ns = INT64_MAX;
	return frag_clock_sleep_until(clock, until_ns);
}

int frag_clock_set_time_scale(struct frag_clock *clock, double scale)
{
	struct line line;
	int64_t now_ns;

	if (clock->kind != FRAGI_CLOCK_REALTIME ||
	    !(scale >= FRAGI_CLOCK_SCALE_MIN && scale <= FRAGI_CLOCK_SCALE_MAX))
		return -EINVAL;
	pthread_mutex_lock(&clock->lock);
	now_ns = fragi_now_ns();
	line = line_read(clock);
	line.time_ns = line_time_at(&line, now_ns);
	line.real_ns = now_ns;
	line.scale = scale;
	line_write(clock, &line);
	notify_users(clock, FRAGI_CLOCK_NOBODY_WAITED);
	pthread_mutex_unlock(&clock->lock);
	return 0;
}

int frag_clock_advance_to(struct frag_clock *clock, int64_t time_ns)
{
	int r = 0;

	if (!fragi_clock_is_virtual(clock) || time_ns > FRAGI_CLOCK_TIME_MAX_NS)
		return -EINVAL;
	pthread_mutex_lock(&clock->lock);
	if (time_ns < atomic_load_explicit(&clock->time_ns, memory_order_relaxed))
		r = -EINVAL;
	else
		move_to(clock, time_ns, FRAGI_CLOCK_NOBODY_WAITED);
	pthread_mutex_unlock(&clock->lock);
	return r;
}

int frag_clock_advance_by(struct frag_clock *clock, int64_t duration_ns)
{
	int64_t time_ns;

	if (duration_ns < 0 ||
	    __builtin_add_overflow(fragi_clock_read_ns(clock), duration_ns, &time_ns))
		return -EINVAL;
	return frag_clock_advance_to(clock, time_ns);
}
