// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/gpus.h>

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/failure.h>
#include <type/cuda.h>

#define KEY_MAX 2048
#define ANSWER_MAX 64

static void add(char key[static KEY_MAX], const char *text)
{
	size_t used = strlen(key);

	snprintf(key + used, KEY_MAX - used, "%s\n", text != NULL ? text : "-");
}

/*
 * Whether GPUs have parts (MIG). Those are made and removed while the driver runs, and the next one
 * of the same number may have another size.
 */
static bool are_divided(const char *proc)
{
	char pattern[256];
	glob_t found;
	bool any;

	snprintf(pattern, sizeof(pattern), "%s/driver/nvidia/capabilities/gpu*/mig/gi*", proc);
	any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
	globfree(&found);
	return any;
}

/* What the answer depends on; empty: it is not known, so no answer is kept. */
static void make_key(const char *proc, char key[static KEY_MAX])
{
	char path[256], version[512] = "";
	struct dirent *entry;
	FILE *file;
	DIR *folder;

	key[0] = '\0';
	snprintf(path, sizeof(path), "%s/driver/nvidia/version", proc);
	file = are_divided(proc) ? NULL : fopen(path, "re");
	if (file == NULL)
		return;
	version[fread(version, 1, sizeof(version) - 1, file)] = '\0';
	fclose(file);
	add(key, version);
	add(key, getenv("CUDA_VISIBLE_DEVICES"));
	add(key, getenv("CUDA_DEVICE_ORDER"));
	snprintf(path, sizeof(path), "%s/driver/nvidia/gpus", proc);
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL)
		add(key, entry->d_name);
	if (folder != NULL)
		closedir(folder);
}

/* Locked: who finds it so waits for the answer of another process. -1: there is none to be had. */
static int open_kept(const char *name)
{
	int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat status;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	    (status.st_mode & (S_IRWXG | S_IRWXO)) == 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool read_kept(int fd, const char *key, uint32_t *out_count, uint64_t *out_bytes)
{
	char text[KEY_MAX + ANSWER_MAX];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	size_t length = strlen(key);
	uint64_t bytes;
	uint32_t count;
	int whole = 0;

	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, key, length) != 0)
		return false;
	(void)sscanf(text + length, "gpus %" SCNu32 " %" SCNu64 " bytes%n", &count, &bytes, &whole);
	if (whole == 0)
		return false;
	*out_count = count;
	*out_bytes = bytes;
	return true;
}

static void keep(int fd, const char *key, uint32_t count, uint64_t bytes)
{
	char text[KEY_MAX + ANSWER_MAX];
	int n = snprintf(text, sizeof(text), "%sgpus %" PRIu32 " %" PRIu64 " bytes\n", key, count,
			 bytes);

	/* One that is cut has no answer, or none for any key. */
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		(void)!ftruncate(fd, 0);
}

int host_gpus_find(const char *proc, const char *name, host_gpus_survey_fn *survey,
		   uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err)
{
	char key[KEY_MAX];
	int fd = -1, r = 0;

	make_key(proc, key);
	if (key[0] != '\0')
		fd = open_kept(name);
	if (fd < 0)
		return survey(out_count, out_bytes, err);
	if (!read_kept(fd, key, out_count, out_bytes)) {
		r = survey(out_count, out_bytes, err);
		if (r == 0)
			keep(fd, key, *out_count, *out_bytes);
	}
	close(fd);
	return r;
}

/* Whether a word of CUDA_VISIBLE_DEVICES names it: by its number or the begin of its UUID. */
static bool is_named(const struct fragi_gpu_part *part, const char *word, size_t length)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", part->gpu);
	if (strlen(number) == length && strncmp(number, word, length) == 0)
		return true;
	return length > strlen("GPU-") && (strncmp(part->uuid, word, length) == 0 ||
					   strncmp(part->gpu_uuid, word, length) == 0);
}

static bool is_visible(const struct fragi_gpu_part *part, const char *names)
{
	bool is_restricted = names != NULL;

	while (is_restricted && *names != '\0') {
		size_t length = strcspn(names, ",");

		if (is_named(part, names, length))
			return true;
		names += length + (names[length] == ',');
	}
	return !is_restricted;
}

/* Keeps those that are visible. Returns how many of them are instances. */
static size_t keep_visible(struct fragi_gpu_part *parts, size_t *count)
{
	const char *names = getenv("CUDA_VISIBLE_DEVICES");
	size_t kept = 0, instances = 0;

	if (names != NULL && strncmp(names, "MIG-", 4) == 0 && strchr(names, ',') == NULL)
		return 0; /* CUDA shows it as a GPU */
	for (size_t i = 0; i < *count; i++) {
		if (!is_visible(&parts[i], names))
			continue;
		instances += parts[i].profile[0] != '\0';
		parts[kept++] = parts[i];
	}
	*count = kept;
	return instances;
}

static void write_parts(const struct fragi_gpu_part *parts, size_t count, FILE *out)
{
	uint64_t bytes = 0;
	uint32_t whole = 0;

	for (size_t i = 0; i < count; i++)
		if (parts[i].profile[0] == '\0') {
			whole++;
			bytes += parts[i].memory_bytes;
		}
	fprintf(out, "%" PRIu32 " %" PRIu64 "\n", whole, bytes);
	for (size_t i = 0; i < count; i++)
		if (parts[i].profile[0] == '\0')
			fprintf(out, "gpu %s\n", parts[i].uuid);
		else
			fprintf(out, "mig %s %s\n", parts[i].uuid, parts[i].profile);
}

int host_gpus_write(const char *proc, const char *name, host_gpus_survey_fn *survey,
		    fragi_gpu_parts_fn *parts, FILE *out)
{
	struct fragi_gpu_part list[FRAGI_GPU_PARTS_MAX];
	struct frag_err err = FRAG_ERR_INIT;
	size_t part_count = 0;
	uint32_t count;
	uint64_t bytes;
	int r;

	if (are_divided(proc) && parts(list, &part_count) == 0 &&
	    keep_visible(list, &part_count) > 0) {
		write_parts(list, part_count, out);
		return 0;
	}
	r = host_gpus_find(proc, name, survey, &count, &bytes, &err);
	if (r < 0)
		fprintf(out, "%s\n", err.text);
	else
		fprintf(out, "%" PRIu32 " %" PRIu64 "\n", count, bytes);
	return r;
}

int host_gpus_print(void)
{
	char name[32];

	snprintf(name, sizeof(name), "/frag-gpus-%u", (unsigned int)geteuid());
	return host_gpus_write("/proc", name, fragi_cuda_survey, fragi_nvml_parts, stdout) < 0
		       ? FRAGI_EXIT_MISSING
		       : FRAGI_EXIT_OK;
}
