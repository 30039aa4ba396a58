// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/facts.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Facts of /proc: of a host, by its threads, because the kernel adds up neither what they waited
 * for a core nor what they waited for a disk. Kernels count the latter only with the sysctl
 * kernel.task_delayacct. Where it is off, a thread that is seen in uninterruptible sleep (D in ps)
 * counts as waiting since the sample before.
 */
#define BETWEEN_MAX_NS 1000000000 /* after a pause of samples */

const char *wrk_facts_proc = "/proc";

/* The begin of a file, as a text. Returns false: it is not there. */
static bool read_file(const char *name, char *out, size_t size)
{
	char path[256];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", wrk_facts_proc, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, out, size - 1);
	close(fd);
	out[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static uint64_t ticks_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 ? ticks * (1000000000 / (uint64_t)hz) : 0;
}

/* A field of a stat file, from 1; behind the name, which may hold anything. */
static uint64_t stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int i = 2; at != NULL && i < number; i++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

static bool is_uncounted(void)
{
	char text[16];

	return read_file("sys/kernel/task_delayacct", text, sizeof(text)) && text[0] == '0';
}

/* seen_ns: what a thread adds that is seen waiting for a disk; 0: what the kernel has counted. */
static void read_thread(int pid, const char *tid, uint64_t seen_ns, struct fw_facts *out)
{
	char path[96], text[1024];
	const char *state;
	uint64_t ran_ns, waited_ns;

	snprintf(path, sizeof(path), "%d/task/%.16s/schedstat", pid, tid);
	if (read_file(path, text, sizeof(text)) &&
	    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) == 2) {
		out->cpu_ns += ran_ns;
		out->starved_ns += waited_ns;
	}
	snprintf(path, sizeof(path), "%d/task/%.16s/stat", pid, tid);
	if (!read_file(path, text, sizeof(text)))
		return;
	state = strrchr(text, ')');
	if (seen_ns == 0)
		out->io_ns += ticks_ns(stat_field(text, 42));
	else if (state != NULL && strncmp(state, ") D ", 4) == 0)
		out->io_ns += seen_ns;
}

static void read_process(int pid, uint64_t seen_ns, struct fw_facts *out)
{
	char path[256], text[1024];
	struct dirent *entry;
	cpu_set_t cores;
	DIR *threads;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (read_file(path, text, sizeof(text))) {
		out->major_faults = stat_field(text, 12);
		out->rss_bytes = stat_field(text, 24) * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	if (sched_getaffinity(pid, sizeof(cores), &cores) == 0)
		out->cores = (uint64_t)CPU_COUNT(&cores);
	snprintf(path, sizeof(path), "%s/%d/task", wrk_facts_proc, pid);
	threads = opendir(path);
	while (threads != NULL && (entry = readdir(threads)) != NULL)
		if (entry->d_name[0] != '.')
			read_thread(pid, entry->d_name, seen_ns, out);
	if (threads != NULL)
		closedir(threads);
}

/* user, nice, system, (idle, iowait,) irq, softirq, steal */
static void read_cpu(struct fw_facts *out)
{
	char text[512];
	uint64_t t[8];

	if (read_file("stat", text, sizeof(text)) &&
	    sscanf(text,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 8)
		out->machine_cpu_ns = ticks_ns(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
}

static uint64_t kilobytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at != NULL ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static void read_memory(struct fw_facts *out)
{
	char text[2048];
	uint64_t available;

	if (!read_file("meminfo", text, sizeof(text)))
		return;
	out->memory_bytes = kilobytes(text, "MemTotal:");
	available = kilobytes(text, "MemAvailable:");
	if (available < out->memory_bytes)
		out->memory_used_bytes = out->memory_bytes - available;
}

static void read_networks(struct fw_facts *out)
{
	char text[8192], *rest = text, *line, *numbers;
	uint64_t received, sent;

	if (!read_file("net/dev", text, sizeof(text)))
		return;
	while ((line = strsep(&rest, "\n")) != NULL) {
		numbers = strchr(line, ':');
		if (numbers == NULL || strncmp(line + strspn(line, " "), "lo:", 3) == 0 ||
		    sscanf(numbers + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
			   &received, &sent) != 2)
			continue;
		out->received_bytes += received;
		out->sent_bytes += sent;
	}
}

void wrk_facts_read(int pid, struct wrk_facts_past *past, struct fw_facts *out)
{
	uint64_t seen_ns = 0;

	if (past->at_ns != 0 && is_uncounted()) {
		out->io_ns = past->io_ns;
		seen_ns = out->at_ns - past->at_ns;
		seen_ns = seen_ns < BETWEEN_MAX_NS ? seen_ns : BETWEEN_MAX_NS;
	}
	read_process(pid, seen_ns, out);
	*past = (struct wrk_facts_past){out->at_ns, out->io_ns};
	out->machine_cores = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	read_cpu(out);
	read_memory(out);
	read_networks(out);
}
