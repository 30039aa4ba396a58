// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <type/linked.h>

#define PLUGINS_MAX 64
#define LOADERS_MAX 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* under lock; in the order in which they came, without gaps */
static const struct frag_plugin *plugins[PLUGINS_MAX];
static struct frag_loader loaders[LOADERS_MAX];

int frag_plugin_add(const struct frag_plugin *plugin, struct frag_err *err)
{
	int r = -ENOBUFS;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; r == -ENOBUFS && i < PLUGINS_MAX; i++) {
		if (plugins[i] == NULL)
			plugins[i] = plugin;
		if (plugins[i] == plugin)
			r = 0;
	}
	pthread_mutex_unlock(&lock);
	return r == 0 ? 0
		      : frag_err_set(err, r, "a program cannot add more than %d plugins",
				     PLUGINS_MAX);
}

void frag_plugin_remove(const struct frag_plugin *plugin)
{
	size_t left = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < PLUGINS_MAX; i++)
		if (plugins[i] != plugin)
			plugins[left++] = plugins[i];
	while (left < PLUGINS_MAX)
		plugins[left++] = NULL;
	pthread_mutex_unlock(&lock);
}

int fragi_registry_add_linked(struct fragi_registry *registry, struct frag_err *err)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; r == 0 && i < PLUGINS_MAX && plugins[i] != NULL; i++)
		r = fragi_registry_add(registry, plugins[i]->name, plugins[i], err);
	pthread_mutex_unlock(&lock);
	return r;
}

int frag_loader_register(const struct frag_loader *loader, struct frag_err *err)
{
	int r = -ENOBUFS;

	if (loader->struct_size < sizeof(*loader) || loader->suffix == NULL ||
	    loader->suffix[0] != '.' || loader->load == NULL)
		return frag_err_set(
			err, -EINVAL,
			"a loader is not filled in: it needs a suffix such as .py and a function");
	pthread_mutex_lock(&lock);
	for (size_t i = 0; r == -ENOBUFS && i < LOADERS_MAX; i++) {
		if (loaders[i].load != NULL && strcmp(loaders[i].suffix, loader->suffix) != 0)
			continue;
		if (loaders[i].load == NULL)
			loaders[i] = *loader;
		r = loaders[i].load == loader->load ? 0 : -EEXIST;
	}
	pthread_mutex_unlock(&lock);
	if (r == -EEXIST)
		return frag_err_set(err, r, "another loader is registered for %s", loader->suffix);
	return r == 0 ? 0
		      : frag_err_set(err, r, "a program cannot register more than %d loaders",
				     LOADERS_MAX);
}

const struct frag_loader *fragi_linked_loader(const char *file)
{
	const struct frag_loader *found = NULL;
	size_t length = strlen(file);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < LOADERS_MAX && loaders[i].load != NULL; i++) {
		size_t suffix = strlen(loaders[i].suffix);

		if (length > suffix && strcmp(file + length - suffix, loaders[i].suffix) == 0)
			found = &loaders[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}
