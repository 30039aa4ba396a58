// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <frag/draft.h>

#include "../draw/held.h"
#include "../image/png_file.h"
#include "page.h"
#include "painter.h"

#define NS INT64_C(1000000000)
#define RATE_TIMES 64 /* messages that the rate is measured over */

/* The messages of one tick. */
struct scene {
	unsigned int references; /* under the painter's lock */
	uint64_t number;         /* from 1 */
	int64_t received_ns, acquired_ns;
	struct held *held;
};

/* Of the last picture. */
struct last {
	int64_t rows, columns;
	int64_t latency_ns; /* from acquired, or else received, until it was shown */
	bool is_acquired;
};

struct painter {
	struct painter_config config;
	struct page *page;
	pthread_t thread;

	/* The thread's, and of destroy after it has ended. */
	struct canvas canvas;
	uint64_t file_number; /* of the messages that the file shows */
	int file_failure;

	pthread_mutex_t lock;
	pthread_cond_t news;
	struct scene *newest;
	uint64_t received, drawn;
	int64_t times_ns[RATE_TIMES]; /* when the last messages came; a ring */
	struct last last;
	uint64_t changes; /* of anything that the thread waits for */
	bool is_closing;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

static void scene_destroy(struct scene *scene)
{
	if (scene != NULL)
		draw_held_destroy(scene->held);
	free(scene);
}

/* Drops a reference; the last one drops the messages, without the lock: it may take long. */
static void scene_unref(struct painter *painter, struct scene *scene)
{
	bool is_last;

	if (scene == NULL)
		return;
	pthread_mutex_lock(&painter->lock);
	is_last = --scene->references == 0;
	pthread_mutex_unlock(&painter->lock);
	if (is_last)
		scene_destroy(scene);
}

static struct scene *scene_create(struct messages *messages)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	if (scene == NULL)
		return NULL;
	scene->references = 1;
	scene->held = draw_held_create(messages);
	if (scene->held == NULL) {
		free(scene);
		return NULL;
	}
	return scene;
}

/* Messages a second, of the last second or so; 0 when none comes. Under the lock. */
static double rate_locked(const struct painter *painter)
{
	int64_t now = now_ns(CLOCK_MONOTONIC), first = 0, last = 0;
	uint64_t count = painter->received < RATE_TIMES ? painter->received : RATE_TIMES;
	int64_t intervals = 0;

	for (uint64_t i = painter->received; i > painter->received - count; i--) {
		int64_t at = painter->times_ns[(i - 1) % RATE_TIMES];

		if (now - at > 2 * NS)
			break;
		last = last == 0 ? at : last;
		intervals += first != 0;
		first = at;
	}
	return last > first ? (double)intervals * (double)NS / (double)(last - first) : 0.0;
}

/* Writes the text between quotes of JSON; what is neither printable ASCII nor safe becomes "?". */
static void write_text(const char *text, char *out, size_t size)
{
	size_t i = 0;

	for (; text[i] != '\0' && i + 1 < size; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' && text[i] != '\\'
				 ? text[i]
				 : '?';
	out[i] = '\0';
}

/* painter->page may not be set yet: the page answers as soon as it is there. */
static void write_status(void *arg, unsigned int watchers, char *text, size_t size)
{
	struct painter *painter = arg;
	char title[160], latency[40] = "null";
	struct last last;
	uint64_t received, drawn;
	double rate;

	pthread_mutex_lock(&painter->lock);
	received = painter->received;
	drawn = painter->drawn;
	rate = rate_locked(painter);
	last = painter->last;
	pthread_mutex_unlock(&painter->lock);
	write_text(painter->config.title, title, sizeof(title));
	if (last.rows != 0)
		snprintf(latency, sizeof(latency), "%.3f", (double)last.latency_ns / 1e6);
	snprintf(
		text, size,
		"{\"title\": \"%s\", \"received\": %llu, \"drawn\": %llu, \"watchers\": %u, \"rate_hz\": %.3f, \"latency_ms\": %s, \"latency_from\": \"%s\", \"columns\": %lld, \"rows\": %lld}\n",
		title, (unsigned long long)received, (unsigned long long)drawn, watchers, rate,
		latency, last.is_acquired ? "acquisition" : "arrival", (long long)last.columns,
		(long long)last.rows);
}

static void wake(void *arg)
{
	struct painter *painter = arg;

	pthread_mutex_lock(&painter->lock);
	painter->changes++;
	pthread_cond_signal(&painter->news);
	pthread_mutex_unlock(&painter->lock);
}

/* Draws a scene. Returns a new picture, or NULL when memory is short. */
static struct picture *paint(struct painter *painter, const struct scene *scene)
{
	if (draw_held_draw(painter->config.layers, scene->held, &painter->canvas) < 0)
		return NULL;
	return viewer_picture_create(&painter->canvas, painter->config.quality, scene->number,
				     scene->received_ns, scene->acquired_ns);
}

static void count_picture(struct painter *painter, const struct picture *picture)
{
	bool is_acquired = picture->acquired_ns != 0;
	int64_t from_ns = is_acquired ? picture->acquired_ns : picture->received_ns;

	pthread_mutex_lock(&painter->lock);
	painter->drawn++;
	painter->last = (struct last){painter->canvas.rows, painter->canvas.columns,
				      now_ns(CLOCK_REALTIME) - from_ns, is_acquired};
	pthread_mutex_unlock(&painter->lock);
}

static int write_jpeg(const char *path, const struct picture *picture)
{
	struct frag_draft *draft;
	int r = frag_draft_create(path, &draft);

	if (r < 0)
		return r;
	fwrite(picture->jpeg, 1, picture->size, frag_draft_stream(draft));
	return frag_draft_commit(draft);
}

/* Writes the picture that was drawn last. */
static void write_file(struct painter *painter, const struct picture *picture)
{
	const struct canvas *canvas = &painter->canvas;
	const struct frame frame = {.data = canvas->pixels,
				    .rows = canvas->rows,
				    .columns = canvas->columns,
				    .channels = 3,
				    .row_bytes = (size_t)canvas->columns * 3};
	int r = painter->config.is_png ? image_png_write(painter->config.path, &frame)
				       : write_jpeg(painter->config.path, picture);

	painter->file_number = picture->number;
	if (r < 0)
		painter->file_failure = r;
}

/* What the thread has to do with the newest messages. */
struct job {
	bool for_page, for_file;
	struct scene *scene;
};

static void work(struct painter *painter, const struct job *job)
{
	struct picture *picture = paint(painter, job->scene);

	scene_unref(painter, job->scene);
	if (picture == NULL)
		return;
	count_picture(painter, picture);
	if (job->for_file)
		write_file(painter, picture);
	if (job->for_page)
		viewer_page_show(painter->page, picture);
	else
		viewer_picture_unref(picture);
}

/* When the thread may do what, on the monotonic clock. */
struct due {
	int64_t picture_ns, file_ns, tidy_ns;
};

/* Waits until something changes, or until what the messages are wanted for is due. */
static void wait_locked(struct painter *painter, const struct job *wanted, const struct due *due,
			bool has_guests)
{
	int64_t until_ns = has_guests ? due->tidy_ns : INT64_MAX;
	struct timespec until;

	if (wanted->for_page && due->picture_ns < until_ns)
		until_ns = due->picture_ns;
	if (wanted->for_file && due->file_ns < until_ns)
		until_ns = due->file_ns;
	until = (struct timespec){.tv_sec = until_ns / NS, .tv_nsec = until_ns % NS};
	if (until_ns == INT64_MAX)
		pthread_cond_wait(&painter->news, &painter->lock);
	else
		pthread_cond_timedwait(&painter->news, &painter->lock, &until);
}

/* Decides what is done now of what is wanted. Returns whether it is anything. */
static bool take_job_locked(struct painter *painter, const struct job *wanted, struct due *due,
			    int64_t now, struct job *out)
{
	*out = (struct job){.for_page = wanted->for_page && now >= due->picture_ns,
			    .for_file = wanted->for_file && now >= due->file_ns};
	if (!out->for_page && !out->for_file)
		return false;
	if (out->for_page)
		due->picture_ns = now + llrint((double)NS / painter->config.framerate);
	if (out->for_file)
		due->file_ns = now + painter->config.path_period_ns;
	out->scene = painter->newest;
	out->scene->references++;
	return true;
}

static void *run(void *arg)
{
	struct painter *painter = arg;
	struct due due = {0};
	struct job wanted, job;
	bool has_guests = false;
	uint64_t seen = 0;

	pthread_mutex_lock(&painter->lock);
	while (!painter->is_closing) {
		uint64_t number = painter->newest != NULL ? painter->newest->number : 0;
		int64_t now = now_ns(CLOCK_MONOTONIC);

		has_guests = has_guests || painter->changes != seen;
		seen = painter->changes;
		pthread_mutex_unlock(&painter->lock);
		if (now >= due.tidy_ns) {
			has_guests = viewer_page_tidy(painter->page);
			due.tidy_ns = now + PAGE_TIDY_MS * INT64_C(1000000);
		}
		wanted = (struct job){
			.for_page = number > 0 && viewer_page_wants(painter->page, number),
			.for_file =
				painter->config.path_period_ns > 0 && number > painter->file_number,
		};
		pthread_mutex_lock(&painter->lock);
		if (take_job_locked(painter, &wanted, &due, now, &job)) {
			pthread_mutex_unlock(&painter->lock);
			work(painter, &job);
			pthread_mutex_lock(&painter->lock);
		} else if (painter->changes == seen && !painter->is_closing) {
			wait_locked(painter, &wanted, &due, has_guests);
		}
	}
	pthread_mutex_unlock(&painter->lock);
	return NULL;
}

/* Starts the page and the thread. Neither takes signals, which are for the host. */
static int start(struct painter *painter, const struct listener *listener, struct frag_err *err)
{
	const struct page_owner owner = {.changed = wake, .status = write_status, .arg = painter};
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = viewer_page_create(listener, painter->config.connections, &owner, &painter->page, err);
	if (r == 0) {
		r = -pthread_create(&painter->thread, NULL, run, painter);
		if (r < 0) {
			viewer_page_destroy(painter->page);
			r = frag_err_set(
				err, r,
				"cannot start the thread that draws: %s; check the limit of processes",
				frag_strerror(r));
		}
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void painter_free(struct painter *painter)
{
	if (painter->newest != NULL)
		scene_destroy(painter->newest);
	pthread_cond_destroy(&painter->news);
	pthread_mutex_destroy(&painter->lock);
	free(painter->canvas.pixels);
	free(painter);
}

int viewer_painter_create(const struct painter_config *config, const struct listener *listener,
			  struct painter **out, struct frag_err *err)
{
	struct painter *painter = calloc(1, sizeof(*painter));
	pthread_condattr_t monotonic;
	int r;

	if (painter == NULL) {
		close(listener->fd);
		return frag_err_set(err, -ENOMEM, "no memory for the viewer");
	}
	painter->config = *config;
	pthread_mutex_init(&painter->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&painter->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = start(painter, listener, err);
	if (r < 0) {
		painter_free(painter);
		return r;
	}
	*out = painter;
	return 0;
}

int viewer_painter_give(struct painter *painter, struct messages *messages, int64_t acquired_ns)
{
	struct scene *scene = scene_create(messages), *older;

	if (scene == NULL)
		return -ENOMEM;
	scene->received_ns = now_ns(CLOCK_REALTIME);
	scene->acquired_ns = acquired_ns;
	pthread_mutex_lock(&painter->lock);
	painter->times_ns[painter->received % RATE_TIMES] = now_ns(CLOCK_MONOTONIC);
	scene->number = ++painter->received;
	older = painter->newest;
	painter->newest = scene;
	painter->changes++;
	pthread_cond_signal(&painter->news);
	pthread_mutex_unlock(&painter->lock);
	scene_unref(painter, older);
	return 0;
}

int viewer_painter_destroy(struct painter *painter)
{
	int r;

	if (painter == NULL)
		return 0;
	pthread_mutex_lock(&painter->lock);
	painter->is_closing = true;
	pthread_cond_signal(&painter->news);
	pthread_mutex_unlock(&painter->lock);
	pthread_join(painter->thread, NULL);
	viewer_page_destroy(painter->page);
	if (painter->config.path != NULL && painter->newest != NULL &&
	    painter->newest->number > painter->file_number) {
		struct picture *picture = paint(painter, painter->newest);

		if (picture != NULL)
			write_file(painter, picture);
		else
			painter->file_failure = -ENOMEM;
		viewer_picture_unref(picture);
	}
	r = painter->file_failure;
	painter_free(painter);
	return r;
}
