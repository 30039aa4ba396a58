// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <base/alloc.h>
#include <text/builder.h>

/*
 * A parsed graph is large, and a process may need the same one more than once: where driver and
 * host are one process, and where a client starts a graph again. Only whole specs are shared; one
 * that is refused is parsed each time, for its errors.
 */
struct fragi_spec_shared {
	struct fragi_spec *spec; /* owns all */
	void *source;            /* packed: it decides everything about the spec */
	size_t source_bytes;
	struct fragi_spec_shared *next;
	size_t count; /* of the specs that point to it; guarded by lock, as next */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fragi_spec_shared *first;

static void spec_free(struct fragi_spec *spec)
{
	fragi_diag_fini(&spec->warnings);
	fragi_diag_fini(&spec->remarks);
	fragi_arena_fini(&spec->arena);
	fragi_free(spec);
}

static void shared_free(struct fragi_spec_shared *shared)
{
	if (shared->spec != NULL)
		spec_free(shared->spec);
	fragi_free(shared->source);
	fragi_free(shared);
}

/* Returns one more reference to what there is of the source, or NULL. */
static struct fragi_spec_shared *find(const void *source, size_t size)
{
	struct fragi_spec_shared *shared;

	pthread_mutex_lock(&lock);
	for (shared = first; shared != NULL; shared = shared->next)
		if (shared->source_bytes == size && memcmp(shared->source, source, size) == 0)
			break;
	if (shared != NULL)
		shared->count++;
	pthread_mutex_unlock(&lock);
	return shared;
}

static void add(struct fragi_spec_shared *shared)
{
	shared->count = 1;
	pthread_mutex_lock(&lock);
	shared->next = first;
	first = shared;
	pthread_mutex_unlock(&lock);
}

static void release(struct fragi_spec_shared *shared)
{
	struct fragi_spec_shared **at = &first;
	bool is_last;

	pthread_mutex_lock(&lock);
	is_last = --shared->count == 0;
	while (is_last && *at != shared)
		at = &(*at)->next;
	if (is_last)
		*at = shared->next;
	pthread_mutex_unlock(&lock);
	if (is_last)
		shared_free(shared);
}

/* Takes the reference, also on failure. */
static int refer(struct fragi_spec_shared *shared, struct fragi_spec **out_spec)
{
	struct fragi_spec *spec = fragi_malloc(sizeof(*spec));

	if (spec == NULL) {
		release(shared);
		return -ENOMEM;
	}
	*spec = *shared->spec;
	spec->arena = (struct fragi_arena){.limit_bytes = FRAGI_SPEC_MEMORY_MAX};
	spec->shared = shared;
	*out_spec = spec;
	return 0;
}

static int no_memory(const struct fragi_spec_source *source, struct fragi_diag *diag)
{
	return fragi_diag_add(diag, -ENOMEM, source->graph.file, 0, 0, "out of memory");
}

/* Takes packed, also on failure. */
static int read_shared(const struct fragi_spec_source *source, void *packed, size_t size,
		       struct fragi_diag *diag, struct fragi_spec_shared **out_shared)
{
	struct fragi_spec_shared *shared = fragi_calloc(1, sizeof(*shared));
	int r;

	if (shared == NULL) {
		fragi_free(packed);
		return no_memory(source, diag);
	}
	shared->source = packed;
	shared->source_bytes = size;
	r = fragi_spec_read(source, diag, false, &shared->spec);
	if (r < 0) {
		shared_free(shared);
		return r;
	}
	add(shared);
	*out_shared = shared;
	return 0;
}

int fragi_spec_parse(const struct fragi_spec_source *source, struct fragi_diag *diag,
		     struct fragi_spec **out_spec)
{
	struct fragi_spec_shared *shared;
	void *packed;
	size_t size;
	int r = fragi_source_pack(source, &packed, &size);

	if (r == -EFBIG) /* it is refused, or is only looked at by one program */
		return fragi_spec_read(source, diag, false, out_spec);
	if (r < 0)
		return no_memory(source, diag);
	shared = find(packed, size);
	if (shared != NULL)
		fragi_free(packed);
	else
		r = read_shared(source, packed, size, diag, &shared);
	if (r == 0 && refer(shared, out_spec) < 0)
		r = no_memory(source, diag);
	return r;
}

int fragi_spec_parse_partial(const struct fragi_spec_source *source, struct fragi_diag *diag,
			     struct fragi_spec **out_spec)
{
	return fragi_spec_read(source, diag, true, out_spec);
}

void fragi_spec_destroy(struct fragi_spec *spec)
{
	struct fragi_spec_shared *shared = spec != NULL ? spec->shared : NULL;

	if (shared == NULL && spec != NULL)
		spec_free(spec);
	if (shared == NULL)
		return;
	fragi_arena_fini(&spec->arena);
	fragi_free(spec);
	release(shared);
}
