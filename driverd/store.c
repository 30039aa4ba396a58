// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <driverd/store.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/trusted_path.h>
#include <driverd/core/core.h>

#define RESERVE "reserve"

struct drv_store_item {
	struct drv_store_item *next;
	struct drv_record record;
	uint8_t bytes[]; /* what the record points to */
};

static int cannot_open(const struct drv_store *store, int code, struct frag_err *err)
{
	return frag_err_set(
		err, code,
		"cannot keep state in %s: %s; give --state-dir a folder that driverd may write to",
		store->path, frag_strerror(code));
}

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

/*
 * Moves all of from before those of to, but attempts, notices that are too many, and what is old.
 */
static void list_put_back(struct drv_store_list *to, struct drv_store_list *from)
{
	struct drv_store_list all;
	struct drv_store_item *item;

	list_init(&all);
	while ((item = list_take(from)) != NULL) {
		bool is_notice = item->record.kind == DRV_RECORD_NOTICE;

		if (item->record.is_attempt || is_reserve(&item->record) ||
		    is_replaced(to, &item->record) ||
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
		return cannot_open(store, -errno, err);
	r = fragi_trusted_path_check(store->path, geteuid(), &why);
	if (r < 0 && is_new)
		(void)rmdir(store->path);
	return r < 0 ? frag_err_set(err, r, "--state-dir: driverd %s", why.text) : 0;
}

static int lock_folder(struct drv_store *store, struct frag_err *err)
{
	int r = make_folder(store, err);

	if (r < 0)
		return r;
	store->folder = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0)
		return cannot_open(store, -errno, err);
	if (flock(store->folder, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return cannot_open(store, -errno, err);
	return frag_err_set(
		err, -EBUSY,
		"another driverd keeps its state in %s; give --state-dir a folder of its own",
		store->path);
}

/* A file holds the space, which the records that need it get when it becomes shorter. */
static int reserve(struct drv_store *store, size_t bytes)
{
	int fd, r = 0;

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

int drv_store_open(struct drv_store *store, const char *path, uv_loop_t *loop, drv_store_fn done,
		   void *arg, struct frag_err *err)
{
	int r;

	*store = (struct drv_store){
		.path = path, .folder = -1, .loop = loop, .done = done, .arg = arg};
	list_init(&store->waiting);
	list_init(&store->writing);
	r = lock_folder(store, err);
	if (r == 0)
		(void)reserve(store, 0);
	if (r == 0)
		r = drv_database_open(path, &store->database, err);
	if (r < 0) {
		drv_store_close(store);
		return r;
	}
	uv_timer_init(loop, &store->retry);
	store->retry.data = store;
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
	return r == 0 ? drv_database_end(store->database, &store->err) : r;
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
	if (write_all(store) < 0 || more <= less)
		return;
	r = reserve(store, store->reserved_bytes + more - less);
	if (r == 0) {
		store->reserved_bytes += more - less;
		return;
	}
	(void)reserve(store, store->reserved_bytes);
	frag_err_set(&store->err, r, "cannot keep state in %s: %s; make room there", store->path,
		     frag_strerror(r));
}

static void on_written(uv_work_t *work, int status);

static void begin(struct drv_store *store)
{
	struct drv_store_item *item;

	if (store->is_writing || store->waiting.first == NULL)
		return;
	store->is_writing = true;
	while ((item = list_take(&store->waiting)) != NULL)
		list_add(&store->writing, item);
	store->writing_change = store->waiting_change;
	store->err = (struct frag_err)FRAG_ERR_INIT;
	uv_timer_stop(&store->retry);
	/* fails only without a function */
	uv_queue_work(store->loop, &store->work, on_work, on_written);
}

static void on_retry(uv_timer_t *timer)
{
	begin(timer->data);
}

static void on_written(uv_work_t *work, int status)
{
	struct drv_store *store = work->data;
	bool failed = status < 0 || store->err.code < 0, has_more = store->waiting.first != NULL;

	if (status < 0)
		cannot_open(store, status, &store->err);
	store->is_writing = false;
	if (failed)
		list_put_back(&store->waiting, &store->writing);
	list_clear(&store->writing);
	store->done(store->arg, store->writing_change, failed ? store->err.text : NULL);
	if (has_more || !failed)
		begin(store);
	else if (!store->is_closing)
		uv_timer_start(&store->retry, on_retry, DRV_STORE_RETRY_MS, 0);
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
	if (!store->is_writing && !store->is_closing)
		uv_timer_start(&store->retry, on_retry, 0, 0);
	return 0;
}

void drv_store_finish(struct drv_store *store)
{
	if (store->folder < 0 || store->is_closing)
		return;
	store->is_closing = true;
	uv_close((uv_handle_t *)&store->retry, NULL);
	begin(store);
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
