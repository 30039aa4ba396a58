// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include <base/alloc.h>
#include <base/strmap.h>

struct fragi_strmap_slot {
	const char *key;
	void *value; /* NULL: a free slot */
	uint64_t hash;
};

/*
 * Names come from files and peers. A seed that differs in every process keeps an attacker from
 * choosing names that collide.
 */
static uint64_t hash_seed;

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void seed_hash(void)
{
	if (getrandom(&hash_seed, sizeof(hash_seed), GRND_NONBLOCK) != (ssize_t)sizeof(hash_seed))
		hash_seed = (uint64_t)(uintptr_t)&hash_seed;
	hash_seed |= 1;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = hash_seed, word;
	size_t length = strlen(text), n;

	for (size_t i = 0; i < length; i += n) {
		n = length - i < 8 ? length - i : 8;
		word = 0;
		memcpy(&word, text + i, n);
		hash = mix(hash ^ word, hash_seed ^ UINT64_C(0x9E3779B97F4A7C15)) + n;
	}
	return mix(hash ^ length, UINT64_C(0xD6E8FEB86659FD93));
}

/* Returns the slot of key, or the free slot where it belongs. A free slot always exists. */
static struct fragi_strmap_slot *slot_of(const struct fragi_strmap *map, const char *key,
					 uint64_t hash)
{
	size_t i = (size_t)hash & (map->capacity - 1);

	while (map->slots[i].value != NULL &&
	       (map->slots[i].hash != hash || strcmp(map->slots[i].key, key) != 0))
		i = (i + 1) & (map->capacity - 1);
	return &map->slots[i];
}

int fragi_strmap_reserve(struct fragi_strmap *map, size_t more)
{
	struct fragi_strmap wider = {.count = map->count,
				     .capacity = map->capacity == 0 ? 16 : map->capacity};

	while (map->count + more > wider.capacity / 4 * 3)
		wider.capacity *= 2;
	if (wider.capacity == map->capacity)
		return 0;
	pthread_once(&seed_once, seed_hash);
	wider.slots = fragi_calloc(wider.capacity, sizeof(*wider.slots));
	if (wider.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].value != NULL)
			*slot_of(&wider, map->slots[i].key, map->slots[i].hash) = map->slots[i];
	fragi_free(map->slots);
	*map = wider;
	return 0;
}

void *fragi_strmap_get(const struct fragi_strmap *map, const char *key)
{
	return map->capacity == 0 ? NULL : slot_of(map, key, hash_text(key))->value;
}

int fragi_strmap_put(struct fragi_strmap *map, const char *key, void *value)
{
	struct fragi_strmap_slot *slot;
	uint64_t hash;

	if (fragi_strmap_get(map, key) != NULL)
		return -EEXIST;
	if (fragi_strmap_reserve(map, 1) < 0)
		return -ENOMEM;
	hash = hash_text(key);
	slot = slot_of(map, key, hash);
	slot->key = key;
	slot->value = value;
	slot->hash = hash;
	map->count++;
	return 0;
}

void fragi_strmap_fini(struct fragi_strmap *map)
{
	fragi_free(map->slots);
	memset(map, 0, sizeof(*map));
}
