// SPDX-License-Identifier: Apache-2.0
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What failing_calls.h calls, and what failing.py calls by ctypes. */
bool failing_here(const char *what, const char *function);
void *failing_live(void *made);
void failing_forget(const void *made);
#define EXPORT __attribute__((visibility("default")))
EXPORT void failing_begin(const char *place, int nth);
EXPORT const char *failing_end(void);
EXPORT int failing_kept(void);

#define PLACES_MAX 512
#define KEPT_MAX 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_on;
static char wanted[128];
static int left; /* the call of that place that fails; 0: none */
static struct place {
	char name[128];
	int calls;
} places[PLACES_MAX];
static int place_count;
static const void *kept[KEPT_MAX];

/* Counts the call. Returns whether it is to fail. */
static bool count(const char *name)
{
	int i = 0;

	while (i < place_count && strcmp(places[i].name, name) != 0)
		i++;
	if (i == PLACES_MAX)
		abort();
	if (i == place_count) {
		snprintf(places[i].name, sizeof(places[i].name), "%s", name);
		places[place_count++].calls = 0;
	}
	places[i].calls++;
	return left > 0 && strcmp(wanted, name) == 0 && --left == 0;
}

bool failing_here(const char *what, const char *function)
{
	char name[128];
	bool fails = false;

	if (!is_on)
		return false;
	snprintf(name, sizeof(name), "%s in %s", what, function);
	pthread_mutex_lock(&lock);
	fails = is_on && count(name);
	pthread_mutex_unlock(&lock);
	if (fails && strncmp(what, "Py", 2) == 0)
		PyErr_NoMemory();
	return fails;
}

static unsigned int hash(const void *made)
{
	return (unsigned int)((uintptr_t)made >> 4) * 2654435761u % KEPT_MAX;
}

static void put(unsigned int at, const void *old, const void *now)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < KEPT_MAX; i++, at = (at + 1) % KEPT_MAX)
		if (kept[at] == old) {
			kept[at] = now;
			break;
		}
	pthread_mutex_unlock(&lock);
}

void *failing_live(void *made)
{
	if (made != NULL)
		put(hash(made), NULL, made);
	return made;
}

/* What libfrag has made is not among them. */
void failing_forget(const void *made)
{
	unsigned int at = hash(made);

	if (made == NULL)
		return;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 64; i++, at = (at + 1) % KEPT_MAX)
		if (kept[at] == made) {
			kept[at] = NULL;
			break;
		}
	pthread_mutex_unlock(&lock);
}

int failing_kept(void)
{
	int n = 0;

	for (int i = 0; i < KEPT_MAX; i++)
		n += kept[i] != NULL;
	return n;
}

/* From now on the nth call of a place fails; nth 0: none does, they are counted. */
void failing_begin(const char *place, int nth)
{
	snprintf(wanted, sizeof(wanted), "%s", place);
	left = nth;
	place_count = 0;
	is_on = true;
}

/* Returns the places that were called, one a line with how often, until the next end. */
const char *failing_end(void)
{
	static char text[PLACES_MAX * 140];
	size_t at = 0;

	is_on = false;
	text[0] = '\0';
	for (int i = 0; i < place_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %s\n", places[i].calls,
				       places[i].name);
	return text;
}
