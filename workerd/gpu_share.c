// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/gpu_share.h>

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/mps.h>
#include <text/spec.h>
#include <workerd/environment.h>

#define GPUS_MAX 64
#define MIB (UINT64_C(1) << 20)

/* A line of what fraghost says; false: it is none. */
struct part {
	char kind[4], uuid[80], profile[FRAGI_MIG_PROFILE_MAX];
	bool is_instance;
};

static bool read_part(const char *line, struct part *out)
{
	int words = sscanf(line, "%3s %79s %23s", out->kind, out->uuid, out->profile);

	out->is_instance = words == 3 && strcmp(out->kind, "mig") == 0 &&
			   fragi_mig_profile_is_valid(out->profile);
	return out->is_instance || (words >= 2 && strcmp(out->kind, "gpu") == 0);
}

/* Visits all lines: returns the next one, or NULL. */
static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line != NULL && line[1] != '\0' ? line + 1 : NULL;
}

int wrk_gpu_share_offer(struct wrk_gpu_share *share, const char *parts)
{
	struct part part;

	if (parts[0] == '\0')
		return 0;
	share->instances =
		fragi_arena_alloc(&share->arena, WRK_MIG_MAX * sizeof(*share->instances));
	share->whole = "";
	if (share->instances == NULL)
		return -ENOMEM;
	for (const char *line = parts; line != NULL; line = next_line(line)) {
		struct wrk_mig_instance *one = &share->instances[share->count];

		if (!read_part(line, &part))
			continue;
		if (!part.is_instance) {
			share->whole =
				fragi_arena_printf(&share->arena, "%s%s%s", share->whole,
						   share->whole[0] != '\0' ? "," : "", part.uuid);
			if (share->whole == NULL)
				return -ENOMEM;
		} else if (share->count < WRK_MIG_MAX) {
			one->uuid = fragi_arena_strdup(&share->arena, part.uuid);
			one->profile = fragi_arena_strdup(&share->arena, part.profile);
			one->lock_fd = -1;
			if (one->uuid == NULL || one->profile == NULL)
				return -ENOMEM;
			share->count++;
		}
	}
	return 0;
}

/* How many of a profile there are from a line on. */
static unsigned int count_of(const char *line, const char *profile)
{
	unsigned int count = 0;
	struct part part;

	for (; line != NULL; line = next_line(line))
		count += read_part(line, &part) && part.is_instance &&
			 strcmp(part.profile, profile) == 0;
	return count;
}

void wrk_gpu_share_text(const char *parts, char out[static WRK_MIG_TEXT_MAX])
{
	size_t used = 0;
	struct part part;

	out[0] = '\0';
	for (const char *line = parts; line != NULL; line = next_line(line)) {
		const unsigned int all = count_of(
			parts, read_part(line, &part) && part.is_instance ? part.profile : "");
		const unsigned int before = all - count_of(line, part.profile);

		if (!part.is_instance || before != 0 || used >= WRK_MIG_TEXT_MAX - 40)
			continue;
		used += (size_t)snprintf(out + used, WRK_MIG_TEXT_MAX - used, "%s%s=%u",
					 used != 0 ? "," : "", part.profile, all);
	}
}

/*
 * A name that one process of the machine can have, and has until it ends: an abstract socket.
 * Returns a descriptor or negative errno.
 */
static int lock(const char *uuid)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), r, n;

	if (fd < 0)
		return -errno;
	n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "frag-mig-%s", uuid);
	r = bind(fd, (const struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
	if (r == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int no_instance(const struct wrk_gpu_share *share, const char *profile, uint32_t elsewhere,
		       struct frag_err *err)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < share->count; i++)
		all += strcmp(share->instances[i].profile, profile) == 0;
	if (all == 0)
		return frag_err_set(err, -ENODEV,
				    "cannot start a host: this worker has no MIG instance %s",
				    profile);
	if (elsewhere == 0)
		return frag_err_set(
			err, -EBUSY,
			"cannot start a host: all %" PRIu32
			" MIG instances %s of this worker are in use by hosts that have not ended yet",
			all, profile);
	return frag_err_set(
		err, -EBUSY,
		"cannot start a host: of %" PRIu32 " MIG instances %s, %" PRIu32
		" are in use by other workers of this machine, and no other one is free; give each worker its own by CUDA_VISIBLE_DEVICES=MIG-...,MIG-...",
		all, profile, elsewhere);
}

static int take_instance(struct wrk_gpu_share *share, const struct fw_message *create,
			 uint32_t *out_instance, struct frag_err *err)
{
	const char *profile = create->create.mig;
	uint32_t elsewhere = 0;

	for (uint32_t i = 0; i < share->count; i++) {
		struct wrk_mig_instance *one = &share->instances[i];

		if (one->users == 0 || one->run != create->run || one->host != create->host ||
		    strcmp(one->profile, profile) != 0)
			continue;
		one->users++;
		*out_instance = i + 1;
		return 0;
	}
	for (uint32_t i = 0; i < share->count; i++) {
		struct wrk_mig_instance *one = &share->instances[i];

		if (one->users != 0 || strcmp(one->profile, profile) != 0)
			continue;
		one->lock_fd = lock(one->uuid);
		if (one->lock_fd == -EADDRINUSE) {
			elsewhere++;
			continue;
		}
		if (one->lock_fd < 0)
			return frag_err_set(
				err, one->lock_fd,
				"cannot start a host: its MIG instance %s cannot be reserved, because workerd can open no socket: %s",
				profile, frag_strerror(one->lock_fd));
		one->users = 1;
		one->run = create->run;
		one->host = create->host;
		*out_instance = i + 1;
		return 0;
	}
	return no_instance(share, profile, elsewhere, err);
}

static const char *memory_limit(uint64_t bytes, uint32_t gpus, struct fragi_arena *arena)
{
	const uint64_t mib = (bytes + MIB - 1) / MIB;
	const char *text = "";

	for (uint32_t i = 0; text != NULL && i < gpus && i < GPUS_MAX; i++)
		text = fragi_arena_printf(arena, "%s%s%" PRIu32 "=%" PRIu64 "M", text,
					  i > 0 ? "," : "", i, mib);
	return text;
}

/* MPS counts all memory of a process, by GPU: what CUDA needs for itself, too. */
static int take_threads(const struct fw_host_create *create, uint32_t gpus,
			struct fragi_arena *arena, char *const **environment, struct frag_err *err)
{
	static const char limit_name[] = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
	const int64_t share = create->limits[FRAGI_AMOUNT_GPU_THREADS] / FRAGI_AMOUNT_ONE;
	const int64_t bytes = create->limits[FRAGI_AMOUNT_GPU_MEMORY];
	const char *folder = fragi_mps_folder(), *limit;
	char percent[24];
	int r;

	if (!fragi_mps_runs(folder))
		return frag_err_set(
			err, -ENODEV,
			"cannot start a host: it is to have %" PRId64
			"%% of the threads of GPUs (gpuThreads), and NVIDIA's MPS does not answer at %.200s/control; start `nvidia-cuda-mps-control -d`",
			share, folder);
	snprintf(percent, sizeof(percent), "%" PRId64, share);
	r = wrk_environment_set(environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, arena);
	if (r < 0 || bytes == 0 || getenv(limit_name) != NULL)
		return r;
	limit = memory_limit((uint64_t)bytes, gpus, arena);
	return limit != NULL ? wrk_environment_set(environment, limit_name, limit, arena) : -ENOMEM;
}

int wrk_gpu_share_take(struct wrk_gpu_share *share, const struct fw_message *create, uint32_t gpus,
		       struct fragi_arena *arena, char *const **environment, uint32_t *out_instance,
		       struct frag_err *err)
{
	static const char visible[] = "CUDA_VISIBLE_DEVICES";
	const char *mig = create->create.mig;
	int r = 0;

	*out_instance = 0;
	if (mig != NULL && mig[0] != '\0')
		r = take_instance(share, create, out_instance, err);
	else if (create->create.limits[FRAGI_AMOUNT_GPU_THREADS] != 0)
		r = take_threads(&create->create, gpus, arena, environment, err);
	if (r == 0 && *out_instance != 0)
		r = wrk_environment_set(environment, visible,
					share->instances[*out_instance - 1].uuid, arena);
	else if (r == 0 && share->count != 0)
		r = wrk_environment_set(environment, visible, share->whole, arena);
	if (r == -ENOMEM) {
		wrk_gpu_share_give(share, *out_instance);
		*out_instance = 0;
		return frag_err_set(err, r, "cannot start a host: out of memory");
	}
	return r;
}

void wrk_gpu_share_give(struct wrk_gpu_share *share, uint32_t instance)
{
	struct wrk_mig_instance *one = instance > 0 ? &share->instances[instance - 1] : NULL;

	if (one == NULL || --one->users != 0)
		return;
	close(one->lock_fd);
	one->lock_fd = -1;
}

void wrk_gpu_share_fini(struct wrk_gpu_share *share)
{
	for (uint32_t i = 0; i < share->count; i++)
		if (share->instances[i].lock_fd >= 0)
			close(share->instances[i].lock_fd);
	fragi_arena_fini(&share->arena);
	*share = (struct wrk_gpu_share){0};
}
