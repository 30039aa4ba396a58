// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_TOPIC "driver"
#include <base/alloc.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/trusted_path.h>
#include <driverd/core/core.h>

#define RESERVE "reserve"

struct drv_store_item {
	struct drv_store_item *next;
	struct drv_record record;
	uint8_t bytes[]; /* what the record points to */
};

static void list_init(struct drv_store_list *list)
{
	*list = (struct drv_store_list){.last = &list->first};
}

static void list_add(struct drv_store_list *list, struct drv_store_item *item)
{
	item->next = NULL;
	*list->last = item;
	list->last = &item->next;
	list->count++;
	list->notices += item->record.kind == DRV_RECORD_NOTICE;
}

static struct drv_store_item *list_take(struct drv_store_list *list)
{
	struct drv_store_item *item = list->first;

	if (item == NULL)
		return NULL;
	list->first = item->next;
	if (list->first == NULL)
		list->last = &list->first;
	list->count--;
	list->notices -= item->record.kind == DRV_RECORD_NOTICE;
	return item;
}

static bool is_drain(enum drv_record_kind kind)
{
	return kind == DRV_RECORD_DRAINED || kind == DRV_RECORD_UNDRAINED;
}

/* The later one of two about the same says all: the earlier one need not be written any more. */
static bool is_last_word(const struct drv_record *record)
{
	return !record->is_attempt && /* it may be void */
	       (record->kind == DRV_RECORD_NUMBERS || record->kind == DRV_RECORD_SOURCE ||
		record->kind == DRV_RECORD_WANTED || record->kind == DRV_RECORD_PLACED ||
		is_drain(record->kind));
}

static bool replaces(const struct drv_record *later, const struct drv_record *earlier)
{
	if (!is_last_word(later))
		return false;
	if (is_drain(later->kind))
		return is_drain(earlier->kind) && strcmp(later->name, earlier->name) == 0;
	return later->kind == earlier->kind &&
	       (later->kind == DRV_RECORD_NUMBERS || later->run == earlier->run);
}

static void forget_replaced(struct drv_store_list *list, const struct drv_record *later)
{
	struct drv_store_list kept;
	struct drv_store_item *item;

	list_init(&kept);
	while ((item = list_take(list)) != NULL) {
		if (replaces(later, &item->record))
			fragi_free(item);
		else
			list_add(&kept, item);
	}
	while ((item = list_take(&kept)) != NULL)
		list_add(list, item);
}

static bool is_replaced(const struct drv_store_list *list, const struct drv_record *earlier)
{
	const struct drv_store_item *item = is_last_word(earlier) ? list->first : NULL;

	while (item != NULL && !replaces(&item->record, earlier))
		item = item->next;
	return item != NULL;
}

static void list_clear(struct drv_store_list *list)
{
	struct drv_store_item *item;

	while ((item = list_take(list)) != NULL)
		fragi_free(item);
}

static bool is_reserve(const struct drv_record *record)
{
	return record->kind == DRV_RECORD_RESERVED || record->kind == DRV_RECORD_RELEASED;
}

/* An attempt that is void. A run that may be on the disk all the same is taken from there. */
static bool is_over(struct drv_record *record, bool is_in_doubt)
{
	if (!record->is_attempt)
		return is_reserve(record);
	if (!is_in_doubt || record->kind != DRV_RECORD_RUN)
		return true;
	*record = (struct drv_record){.kind = DRV_RECORD_FORGOTTEN, .run = record->run};
	return false;
}

/*
 * Moves all of from before those of to, but attempts, notices that are too many, and what is old.
 */
static void list_put_back(struct drv_store_list *to, struct drv_store_list *from, bool is_in_doubt)
{
	struct drv_store_list all;
	struct drv_store_item *item;

	list_init(&all);
	while ((item = list_take(from)) != NULL) {
		bool is_notice = item->record.kind == DRV_RECORD_NOTICE;

		if (is_over(&item->record, is_in_doubt) || is_replaced(to, &item->record) ||
		    (is_notice && from->notices + to->notices >= DRV_NOTICES_MAX))
			fragi_free(item);
		else
			list_add(&all, item);
	}
	while ((item = list_take(to)) != NULL)
		list_add(&all, item);
	while ((item = list_take(&all)) != NULL)
		list_add(to, item);
}

/* Whoever can change the folder decides what is started, and for which user of a worker. */
static int make_folder(struct drv_store *store, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	bool is_new = mkdir(store->path, 0700) == 0;
	int r;

	if (!is_new && errno != EEXIST)
		return drv_database_fail(store->path, -errno, err);
	r = fragi_trusted_path_check(store->path, geteuid(), &why);
	if (r < 0 && is_new)
		(void)rmdir(store->path);
	if (r == -EIO)
		return drv_database_fail(store->path, r, err);
	return r < 0 ? frag_err_set(err, r, "--state-dir: driverd %s", why.text) : 0;
}

static int lock_folder(struct drv_store *store, struct frag_err *err)
{
	int r = make_folder(store, err);

	if (r < 0)
		return r;
	store->folder = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0)
		return drv_database_fail(store->path, -errno, err);
	if (flock(store->folder, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return drv_database_fail(store->path, -errno, err);
	return frag_err_set(
		err, -EBUSY,
		"another driverd keeps its state in %s; give --state-dir a folder of its own",
		store->path);
}

/* A file holds the space, which the records that need it get when it becomes shorter. */
static int reserve(struct drv_store *store, size_t bytes)
{
	int fd, r;

	if (bytes == 0)
		return unlinkat(store->folder, RESERVE, 0) == 0 || errno == ENOENT ? 0 : -errno;
	fd = openat(store->folder, RESERVE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (bytes <= store->reserved_bytes)
		r = ftruncate(fd, (off_t)bytes) == 0 ? 0 : -errno;
	else
		r = -posix_fallocate(fd, 0, (off_t)bytes);
	close(fd);
	return r;
}

/* Of the folder's opening, for which nobody can wait in the loop: it has nothing to do yet. */
struct opening {
	struct drv_store *store;
	struct frag_err *err;
	uv_mutex_t mutex;
	uv_cond_t ends;
	bool has_ended;
	int result;
};

static void on_open(void *arg)
{
	struct opening *opening = arg;
	struct drv_store *store = opening->store;
	int r = lock_folder(store, opening->err);

	if (r == 0)
		(void)reserve(store, 0);
	if (r == 0)
		r = drv_database_open(store->path, &store->database, opening->err);
	uv_mutex_lock(&opening->mutex);
	opening->result = r;
	opening->has_ended = true;
	uv_cond_signal(&opening->ends);
	uv_mutex_unlock(&opening->mutex);
}

static void describe_silence(const struct drv_store *store, char *text, size_t size)
{
	snprintf(
		text, size,
		"the disk of %s has not answered for %lld s; see whether the file system is frozen (fsfreeze), or its device or its server is away (dmesg)",
		store->path, (long long)store->silent_ms / 1000);
}

/* The disk may keep silent for as long as it likes, but not without a word in the log. */
static int open_watched(struct drv_store *store, struct frag_err *err)
{
	struct opening opening = {.store = store, .err = err};
	const uint64_t patience_ns = (uint64_t)store->silent_ms * 1000000;
	uv_thread_t thread;
	char text[512];
	int r = uv_mutex_init(&opening.mutex);

	if (r < 0)
		return drv_database_fail(store->path, r, err);
	r = uv_cond_init(&opening.ends);
	if (r < 0)
		goto err_mutex;
	r = uv_thread_create(&thread, on_open, &opening);
	if (r < 0)
		goto err_cond;
	describe_silence(store, text, sizeof(text));
	uv_mutex_lock(&opening.mutex);
	while (!opening.has_ended)
		if (uv_cond_timedwait(&opening.ends, &opening.mutex, patience_ns) < 0 &&
		    !opening.has_ended)
			log_warn(NULL, "cannot begin yet: %s", text);
	uv_mutex_unlock(&opening.mutex);
	uv_thread_join(&thread);
	uv_cond_destroy(&opening.ends);
	uv_mutex_destroy(&opening.mutex);
	return opening.result;
err_cond:
	uv_cond_destroy(&opening.ends);
err_mutex:
	uv_mutex_destroy(&opening.mutex);
	return drv_database_fail(store->path, r, err);
}

static void on_look(uv_timer_t *timer);

int drv_store_open(struct drv_store *store, const char *path, uv_loop_t *loop, drv_store_fn done,
		   void *arg, struct frag_err *err)
{
	int r;

	*store = (struct drv_store){.path = path,
				    .folder = -1,
				    .loop = loop,
				    .done = done,
				    .arg = arg,
				    .silent_ms = DRV_STORE_SILENT_MS};
	list_init(&store->waiting);
	list_init(&store->writing);
	r = open_watched(store, err);
	if (r < 0) {
		drv_store_close(store);
		return r;
	}
	uv_timer_init(loop, &store->retry);
	uv_timer_init(loop, &store->look);
	uv_unref((uv_handle_t *)&store->look);
	uv_timer_start(&store->look, on_look, DRV_STORE_LOOK_MS, DRV_STORE_LOOK_MS);
	store->retry.data = store->look.data = store;
	store->work.data = store;
	return 0;
}

static size_t sum_of(const struct drv_store_list *list, enum drv_record_kind kind)
{
	size_t bytes = 0;

	for (const struct drv_store_item *i = list->first; i != NULL; i = i->next)
		bytes += i->record.kind == kind ? i->record.bytes : 0;
	return bytes;
}

static int write_all(struct drv_store *store)
{
	int r = drv_database_begin(store->database, &store->err);

	for (const struct drv_store_item *i = store->writing.first; r == 0 && i != NULL;
	     i = i->next)
		if (!is_reserve(&i->record))
			r = drv_database_put(store->database, &i->record, &store->err);
	if (r == 0) {
		r = drv_database_end(store->database, &store->err);
		store->is_in_doubt = r == -EIO;
	}
	return r;
}

/* In the thread pool. What is released is there for the records, and what they leave is held. */
static void on_work(uv_work_t *work)
{
	struct drv_store *store = work->data;
	size_t more = sum_of(&store->writing, DRV_RECORD_RESERVED),
	       less = sum_of(&store->writing, DRV_RECORD_RELEASED),
	       both = less < store->reserved_bytes ? less : store->reserved_bytes;
	int r;

	if (both != 0)
		(void)reserve(store, store->reserved_bytes - both);
	store->reserved_bytes -= both;
	less -= both;
	store->gained_bytes = 0;
	if (write_all(store) < 0 || more <= less)
		return;
	r = reserve(store, store->reserved_bytes + more - less);
	if (r == 0) {
		store->gained_bytes = more - less;
		store->reserved_bytes += store->gained_bytes;
		return;
	}
	(void)reserve(store, store->reserved_bytes);
	drv_database_fail(store->path, r, &store->err);
}

/* Nobody waits any longer for what is being written, and for what has come since. */
static void on_silence(uv_timer_t *timer)
{
	struct drv_store *store = timer->data;
	struct drv_store_list waited;
	struct drv_store_item *item;
	char why[512], text[512];

	list_init(&waited);
	while ((item = list_take(&store->waiting)) != NULL)
		list_add(&waited, item);
	list_put_back(&store->waiting, &waited, false);
	store->is_silent = true;
	describe_silence(store, text, sizeof(text));
	fragi_sentence(why, sizeof(why), "cannot keep state: %.480s", text);
	store->done(store->arg, store->waiting_change, why);
}

static void log_unkept(const char *why)
{
	log_error(
		NULL,
		"ends, and the last changes of its state are not on the disk: %s; the next driver does not know them",
		why);
}

/* Also a driver that ends waits no longer than others do for an answer. */
static void on_closing_silence(uv_timer_t *timer)
{
	struct drv_store *store = timer->data;
	char text[512];

	describe_silence(store, text, sizeof(text));
	log_unkept(text);
	uv_stop(store->loop);
}

static void on_written(uv_work_t *work, int status);

static void write_waiting(struct drv_store *store)
{
	struct drv_store_item *item;

	store->is_writing = true;
	while ((item = list_take(&store->waiting)) != NULL)
		list_add(&store->writing, item);
	store->writing_change = store->waiting_change;
	store->err = (struct frag_err)FRAG_ERR_INIT;
	store->is_in_doubt = false;
	uv_timer_start(&store->retry, store->is_closing ? on_closing_silence : on_silence,
		       (uint64_t)store->silent_ms, 0);
	/* fails only without a function */
	uv_queue_work(store->loop, &store->work, on_work, on_written);
}

static void begin(struct drv_store *store)
{
	if (!store->is_writing && store->waiting.first != NULL)
		write_waiting(store);
}

static void on_retry(uv_timer_t *timer)
{
	begin(timer->data);
}

/* Writes nothing, which fails as records would where the folder is gone or read-only. */
static void on_look(uv_timer_t *timer)
{
	struct drv_store *store = timer->data;

	if (!store->is_writing && store->waiting.first == NULL)
		write_waiting(store);
}

static void close_when_done(struct drv_store *store)
{
	if (store->is_closing && !store->is_writing && !uv_is_closing((uv_handle_t *)&store->retry))
		uv_close((uv_handle_t *)&store->retry, NULL);
	if (store->is_closing && !uv_is_closing((uv_handle_t *)&store->look))
		uv_close((uv_handle_t *)&store->look, NULL);
}

static void on_written(uv_work_t *work, int status)
{
	struct drv_store *store = work->data;
	bool was_silent = store->is_silent, has_more = store->waiting.first != NULL || was_silent,
	     failed = status < 0 || store->err.code < 0 || was_silent;

	if (status < 0)
		drv_database_fail(store->path, status, &store->err);
	store->is_writing = store->is_silent = false;
	uv_timer_stop(&store->retry);
	if (failed)
		list_put_back(&store->waiting, &store->writing, was_silent || store->is_in_doubt);
	if (was_silent && store->gained_bytes != 0)
		(void)drv_store_put(store,
				    &(struct drv_record){.kind = DRV_RECORD_RELEASED,
							 .is_attempt = true,
							 .bytes = store->gained_bytes},
				    store->waiting_change);
	list_clear(&store->writing);
	if (!was_silent)
		store->done(store->arg, store->writing_change, failed ? store->err.text : NULL);
	if (has_more || !failed)
		begin(store);
	else if (!store->is_closing)
		uv_timer_start(&store->retry, on_retry, DRV_STORE_RETRY_MS, 0);
	else if (store->waiting.first != NULL)
		log_unkept(store->err.text);
	close_when_done(store);
}

static size_t text_bytes(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies into the item's bytes; NULL stays NULL. */
static const void *keep(uint8_t **at, const void *bytes, size_t size)
{
	uint8_t *copy = *at;

	if (bytes == NULL)
		return NULL;
	memcpy(copy, bytes, size);
	*at += size;
	return copy;
}

int drv_store_put(struct drv_store *store, const struct drv_record *record, uint64_t change)
{
	size_t name = text_bytes(record->name), who = text_bytes(record->who),
	       text = text_bytes(record->text);
	struct drv_store_item *item = fragi_malloc(sizeof(*item) + name + who + text +
						   record->source_bytes + record->outcome_bytes);
	uint8_t *at;

	if (item == NULL)
		return -ENOMEM;
	at = item->bytes;
	item->record = *record;
	item->record.name = keep(&at, record->name, name);
	item->record.who = keep(&at, record->who, who);
	item->record.text = keep(&at, record->text, text);
	item->record.source = keep(&at, record->source, record->source_bytes);
	item->record.outcome = keep(&at, record->outcome, record->outcome_bytes);
	if (is_last_word(record))
		forget_replaced(&store->waiting, record);
	list_add(&store->waiting, item);
	store->waiting_change = change;
	/* the others of this step follow before the loop turns */
	if (!store->is_closing && (!store->is_writing || store->is_silent))
		uv_timer_start(&store->retry, store->is_silent ? on_silence : on_retry, 0, 0);
	return 0;
}

void drv_store_finish(struct drv_store *store)
{
	if (store->folder < 0 || store->is_closing)
		return;
	store->is_closing = true;
	if (store->is_writing)
		uv_timer_start(&store->retry, on_closing_silence, (uint64_t)store->silent_ms, 0);
	begin(store);
	close_when_done(store);
}

/* The thread has pointers to the store and the loop, so nothing is freed. */
void drv_store_exit_if_stuck(const struct drv_store *store, int exit_code)
{
	if (!store->is_writing)
		return;
	fflush(NULL);
	_exit(exit_code > 0 ? exit_code : fragi_failure_exit(FRAGI_FAILURE_STATE_UNWRITABLE));
}

void drv_store_close(struct drv_store *store)
{
	drv_database_close(store->database);
	store->database = NULL;
	if (store->folder < 0)
		return;
	list_clear(&store->waiting);
	list_clear(&store->writing);
	close(store->folder);
	store->folder = -1;
}
