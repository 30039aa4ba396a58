// SPDX-License-Identifier: Apache-2.0
#include <data/trail.h>

#include <pthread.h>
#include <string.h>

#include <base/alloc.h>
#include <base/printable.h>

/*
 * The names of workers, by number, so that a trail holds numbers. They stay until the process ends:
 * as many as an application has nodes.
 */
#define WORKERS_MAX 1024u

static char *_Atomic names[WORKERS_MAX]; /* filled in from the first one on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_name(const char *name, size_t size)
{
	char text[FRAGI_TRAIL_WORKER_MAX + 1];

	if (size == 0 || size > FRAGI_TRAIL_WORKER_MAX || memchr(name, '\0', size) != NULL)
		return false;
	memcpy(text, name, size);
	text[size] = '\0';
	fragi_make_printable(text, '\0');
	return strlen(text) == size;
}

/* Its number; where it is in no place yet, that of the first free one; FRAGI_TRAIL_NOWHERE: none */
static uint16_t find(const char *name, size_t size)
{
	uint32_t i = 0;

	for (const char *other; i < WORKERS_MAX && (other = atomic_load(&names[i])) != NULL; i++)
		if (strncmp(other, name, size) == 0 && other[size] == '\0')
			break;
	return i < WORKERS_MAX ? (uint16_t)(i + 1) : FRAGI_TRAIL_NOWHERE;
}

uint16_t fragi_trail_worker(const char *name, size_t size)
{
	uint16_t number;
	char *copy;

	if (!is_name(name, size))
		return FRAGI_TRAIL_NOWHERE;
	number = find(name, size);
	if (number == FRAGI_TRAIL_NOWHERE || atomic_load(&names[number - 1]) != NULL)
		return number;
	pthread_mutex_lock(&lock);
	number = find(name, size);
	if (number != FRAGI_TRAIL_NOWHERE && atomic_load(&names[number - 1]) == NULL) {
		copy = fragi_malloc(size + 1);
		if (copy != NULL) {
			memcpy(copy, name, size);
			copy[size] = '\0';
			atomic_store(&names[number - 1], copy);
		} else {
			number = FRAGI_TRAIL_NOWHERE;
		}
	}
	pthread_mutex_unlock(&lock);
	return number;
}

const char *fragi_trail_worker_name(uint16_t worker)
{
	return worker > 0 && worker <= WORKERS_MAX ? atomic_load(&names[worker - 1]) : NULL;
}

void fragi_trail_came_from(struct fragi_trail *trail, uint16_t worker)
{
	for (uint32_t i = 0; i < trail->count; i++) {
		struct fragi_trail_entry *entry = &trail->entries[i];
		struct fragi_trail_places *places = &entry->places;

		if (places->count > 0 && places->items[places->count - 1].worker == worker)
			places->items[places->count - 1].to = entry->at;
		else if (places->count < FRAGI_TRAIL_PLACES_MAX)
			places->items[places->count++] =
				(struct fragi_trail_place){entry->at, worker};
	}
}

const char *fragi_trail_where(const struct fragi_trail_places *places, uint16_t at)
{
	for (uint32_t i = 0; i < places->count; i++)
		if (at <= places->items[i].to)
			return fragi_trail_worker_name(places->items[i].worker);
	return NULL;
}
