// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/inventory.h>

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/allowance.h>
#include <base/mps.h>
#include <base/sentence.h>
#include <base/units.h>
#include <text/spec.h>
#include <wire/message.h>
#include <workerd/gpus.h>

static int bad_amount(const char *word, struct frag_err *err)
{
	return frag_err_set(
		err, -EINVAL,
		"--inventory: \"%.80s\" names none of %s; write for example cpu=8,memory=16Gi",
		word, fragi_amount_names());
}

static int read_amount(struct wrk_inventory *inventory, const char *word, struct frag_err *err)
{
	const char *equals = strchr(word, '=');
	enum fragi_amount amount =
		equals != NULL ? fragi_amount_named(word, (size_t)(equals - word)) : FRAGI_AMOUNTS;
	int64_t value;
	int r;

	if (amount == FRAGI_AMOUNTS)
		return bad_amount(word, err);
	r = fragi_amount_parse(amount, equals + 1, &value);
	if (r == -ERANGE)
		return frag_err_set(err, -EINVAL, "--inventory: %.80s is too much; give at most %s",
				    word, fragi_amount_max(amount));
	if (r < 0 || (fragi_amount_is_count(amount) && value % FRAGI_AMOUNT_ONE != 0))
		return frag_err_set(err, -EINVAL, "--inventory: %.80s is %s", word,
				    fragi_amount_is_count(amount) ? "not a whole number from 0 up"
								  : fragi_amount_flaw(amount));
	if (inventory->is_given[amount])
		return frag_err_set(err, -EINVAL, "--inventory: %s is given twice; give it once",
				    fragi_amount_name(amount));
	inventory->has[amount] = value;
	inventory->is_given[amount] = true;
	return 0;
}

static int read_label(struct wrk_inventory *inventory, char *word, struct frag_err *err)
{
	char *equals = strchr(word, '=');
	bool is_valid;

	if (equals != NULL)
		*equals = '\0';
	is_valid = equals != NULL && fragi_label_is_valid(word, equals + 1);
	for (uint32_t i = 0; is_valid && i < inventory->label_count; i++)
		if (strncmp(inventory->labels[i], word, strlen(word)) == 0 &&
		    inventory->labels[i][strlen(word)] == '=')
			return frag_err_set(err, -EINVAL,
					    "--label: %.80s is given twice; give it once", word);
	if (equals != NULL)
		*equals = '=';
	if (!is_valid)
		return frag_err_set(
			err, -EINVAL,
			"--label: \"%.80s\" is not KEY=VALUE; a key is a name (letters, digits, - and _), a value has 1 to %d characters without spaces",
			word, FRAG_NAME_MAX);
	if (inventory->label_count == FW_LABELS_MAX)
		return frag_err_set(err, -EINVAL, "--label: a worker has at most %d labels",
				    FW_LABELS_MAX);
	inventory->labels[inventory->label_count++] = word;
	return 0;
}

int wrk_inventory_parse(struct wrk_inventory *inventory, const struct fragi_texts *amounts,
			const struct fragi_texts *labels, struct frag_err *err)
{
	size_t size = 1, used = 0;
	char *rest, *word;
	int r = 0;

	memset(inventory, 0, sizeof(*inventory));
	for (size_t i = 0; i < amounts->count; i++)
		size += strlen(amounts->items[i]) + 1;
	for (size_t i = 0; i < labels->count; i++)
		size += strlen(labels->items[i]) + 1;
	inventory->texts = fragi_calloc(size, 1);
	inventory->labels = fragi_calloc(FW_LABELS_MAX, sizeof(*inventory->labels));
	if (inventory->texts == NULL || inventory->labels == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < amounts->count + labels->count && r == 0; i++) {
		bool is_label = i >= amounts->count;

		rest = inventory->texts + used;
		strcpy(rest, is_label ? labels->items[i - amounts->count] : amounts->items[i]);
		used += strlen(rest) + 1;
		while (r == 0 && (word = strsep(&rest, ",")) != NULL)
			r = is_label ? read_label(inventory, word, err)
				     : read_amount(inventory, word, err);
	}
	return r;
}

/* The driver of NVIDIA has a folder for each GPU; it says nothing of their memory. */
static int64_t count_gpus(const char *proc)
{
	char path[256];
	struct dirent *entry;
	int64_t count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/driver/nvidia/gpus", proc);
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		count += entry->d_name[0] != '.';
	if (folder != NULL)
		closedir(folder);
	return count;
}

/* Of a number of cores or GPUs. */
static int64_t count_of(enum fragi_amount amount, int64_t count)
{
	return fragi_amount_clamp(amount, (uint64_t)(count > 0 ? count : 0) * FRAGI_AMOUNT_ONE);
}

static int64_t bytes_of(uint64_t count, uint64_t size)
{
	return size != 0 && count > (uint64_t)FRAGI_AMOUNT_BYTES_MAX / size
		       ? FRAGI_AMOUNT_BYTES_MAX
		       : (int64_t)(count * size);
}

/* Of so many: those that CUDA_VISIBLE_DEVICES names, up to the first that is none. */
static int64_t visible_gpus(int64_t count)
{
	const char *names = getenv("CUDA_VISIBLE_DEVICES");
	int64_t named = 0;

	if (names == NULL)
		return count;
	while (*names != '\0' && *names != '-' && named < count) {
		named++;
		names += strcspn(names, ",");
		names += *names == ',';
	}
	return named;
}

/* What MPS lets the hosts of this worker use of each GPU: without it nothing is divided. */
static int64_t threads_by_mps(void)
{
	const char *own = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	int64_t percent;

	if (!fragi_mps_runs(fragi_mps_folder()))
		return 0;
	if (own == NULL || fragi_parse_i64(own, &percent) < 0 || percent < 1 || percent > 100)
		percent = 100;
	return percent * FRAGI_AMOUNT_ONE;
}

/* Whether there is a driver, and a GPU that this process may see, of which more is to be known. */
static bool asks_gpus(const struct wrk_inventory *inventory, int64_t machine, const char *dev)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/nvidiactl", dev);
	return (!inventory->is_given[FRAGI_AMOUNT_GPU] ||
		!inventory->is_given[FRAGI_AMOUNT_GPU_MEMORY]) &&
	       (machine != 0 || access(path, F_OK) == 0) && visible_gpus(1) != 0;
}

static void FRAG_PRINTF(2, 3) note(char out[static FW_LIMITED_MAX], const char *format, ...)
{
	char text[FW_LIMITED_MAX];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	fragi_sentence_add(out, FW_LIMITED_MAX, "%s%s", out[0] != '\0' ? ", " : "", text);
}

/* The least of what the machine has and what this process may use. */
static void limit(struct wrk_inventory *inventory, const struct fragi_allowance *may,
		  int64_t machine_gpus, int64_t found[FRAGI_AMOUNTS])
{
	char offered[FRAGI_AMOUNT_TEXT], all[FRAGI_AMOUNT_TEXT];
	const bool *given = inventory->is_given;
	const enum fragi_amount memory = FRAGI_AMOUNT_MEMORY;

	if (!given[FRAGI_AMOUNT_CPU] && may->cores_why != NULL)
		note(inventory->limited, "%lld of %lld cores (%s)", (long long)may->cores,
		     (long long)may->machine_cores, may->cores_why);
	if (may->memory_bytes < found[memory]) {
		if (!given[memory])
			note(inventory->limited, "%s of %s memory (%s)",
			     fragi_amount_text(memory, may->memory_bytes, offered),
			     fragi_amount_text(memory, found[memory], all), may->memory_why);
		found[memory] = may->memory_bytes;
	}
	if (found[FRAGI_AMOUNT_SHARED_MEMORY] > may->memory_bytes)
		found[FRAGI_AMOUNT_SHARED_MEMORY] = may->memory_bytes;
	if (!given[FRAGI_AMOUNT_GPU] && found[FRAGI_AMOUNT_GPU] < machine_gpus * FRAGI_AMOUNT_ONE)
		note(inventory->limited, "%lld of %lld GPUs (CUDA_VISIBLE_DEVICES)",
		     (long long)(found[FRAGI_AMOUNT_GPU] / FRAGI_AMOUNT_ONE),
		     (long long)machine_gpus);
}

void wrk_inventory_find(struct wrk_inventory *inventory, const char *proc, const char *dev,
			const char *groups)
{
	int64_t found[FRAGI_AMOUNTS] = {0}, machine_gpus = count_gpus(proc);
	struct fragi_allowance may;
	struct statvfs shared;
	struct sysinfo info;
	char shm[256];

	fragi_allowance_read(proc, groups, &may);
	found[FRAGI_AMOUNT_CPU] = count_of(FRAGI_AMOUNT_CPU, may.cores);
	inventory->asks_gpus = asks_gpus(inventory, machine_gpus, dev);
	found[FRAGI_AMOUNT_GPU] = count_of(FRAGI_AMOUNT_GPU, visible_gpus(machine_gpus));
	if (sysinfo(&info) == 0)
		found[FRAGI_AMOUNT_MEMORY] = bytes_of(info.totalram, info.mem_unit);
	snprintf(shm, sizeof(shm), "%s/shm", dev);
	if (statvfs(shm, &shared) == 0)
		found[FRAGI_AMOUNT_SHARED_MEMORY] = bytes_of(shared.f_blocks, shared.f_frsize);
	if (machine_gpus != 0 || inventory->asks_gpus)
		found[FRAGI_AMOUNT_GPU_THREADS] = threads_by_mps();
	limit(inventory, &may, machine_gpus, found);
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (!inventory->is_given[i])
			inventory->has[i] = found[i];
}

void wrk_inventory_take_gpus(struct wrk_inventory *inventory, uint32_t count, uint64_t bytes,
			     const char *mig)
{
	snprintf(inventory->mig, sizeof(inventory->mig), "%s", mig);
	if (!inventory->is_given[FRAGI_AMOUNT_GPU])
		inventory->has[FRAGI_AMOUNT_GPU] = count_of(FRAGI_AMOUNT_GPU, count);
	if (!inventory->is_given[FRAGI_AMOUNT_GPU_MEMORY])
		inventory->has[FRAGI_AMOUNT_GPU_MEMORY] =
			fragi_amount_clamp(FRAGI_AMOUNT_GPU_MEMORY, bytes);
}

int wrk_inventory_ask_gpus(struct wrk_inventory *inventory, const char *program,
			   struct frag_err *err)
{
	uint32_t count = 0;
	uint64_t bytes = 0;
	char mig[WRK_MIG_TEXT_MAX];
	int r = inventory->asks_gpus ? wrk_gpus_survey(program, &count, &bytes, mig, err) : 0;

	if (r == 0 && inventory->asks_gpus)
		wrk_inventory_take_gpus(inventory, count, bytes, mig);
	return r;
}

void wrk_inventory_offer(const struct wrk_inventory *inventory, struct wrk_config *out)
{
	memcpy(out->has, inventory->has, sizeof(out->has));
	out->mig = inventory->mig;
	out->limited = inventory->limited;
	out->labels = inventory->labels;
	out->label_count = inventory->label_count;
}

void wrk_inventory_text(const struct wrk_inventory *inventory, char *out, size_t size)
{
	char value[FRAGI_AMOUNT_TEXT];
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < FRAGI_AMOUNTS && used < size; i++)
		used += (size_t)snprintf(
			out + used, size - used, "%s%s %s", i > 0 ? ", " : "",
			fragi_amount_name((enum fragi_amount)i),
			fragi_amount_text((enum fragi_amount)i, inventory->has[i], value));
	if (inventory->mig[0] != '\0' && used < size)
		snprintf(out + used, size - used, ", mig %s", inventory->mig);
}

void wrk_inventory_fini(struct wrk_inventory *inventory)
{
	fragi_free(inventory->labels);
	fragi_free(inventory->texts);
	memset(inventory, 0, sizeof(*inventory));
}
