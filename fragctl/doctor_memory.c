// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/doctor.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Checks of memory: what hosts share, and what may be locked. */

#define MIB (UINT64_C(1) << 20)
#define CUDA_EVENTS_MIB 64 /* a container's default; CUDA has its interprocess events there */

void ctl_check_huge_pages(const struct ctl_node *node, struct ctl_finding *finding)
{
	static const char file[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char text[128] = "", *word;

	if (!ctl_node_read(node, text, sizeof(text), "%s", file)) {
		ctl_finding_ok(finding, "this kernel has none for shared memory");
		return;
	}
	word = strchr(text, '[') != NULL ? strchr(text, '[') + 1 : text; /* the one that holds */
	word[strcspn(word, "]")] = '\0';
	if (strcmp(word, "never") == 0 || strcmp(word, "deny") == 0) {
		ctl_finding_wrong(finding, "what the kernel gives for shared memory: %s", word);
		ctl_finding_cost(finding,
				 "to write 64 MiB of a new pool takes about 53 ms in place of 15 "
				 "(docs/BENCHMARKS.md)");
		ctl_finding_mend(finding, "echo advise > %s%s", file,
				 node->is_container ? " (on the machine)" : "");
	} else {
		ctl_finding_ok(finding, "the kernel gives them for shared memory");
	}
}

/* Whether memory can be sealed so that only one process writes it: Linux 5.1. */
static long long ask_seals(const struct ctl_node *node)
{
	int fd = memfd_create("frag-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), r = -1;

	(void)node;
	if (fd >= 0) {
		r = fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -1 : 1;
		close(fd);
	}
	return r;
}

static long long ask_shm(const struct ctl_node *node)
{
	struct statvfs at;

	(void)node;
	return statvfs("/dev/shm", &at) < 0 ? -1 : (long long)(at.f_blocks * at.f_frsize / MIB);
}

void ctl_check_shared_memory(const struct ctl_node *node, struct ctl_finding *finding)
{
	static const char cost[] =
		"hosts of one machine use TCP: 8 MiB take 2 ms, not 9 us (docs/BENCHMARKS.md)";
	static const struct {
		const char *name, *flag;
	} limits[] = {{"Max address space", "v"}, {"Max file size", "f"}};
	long long shm_mib = ctl_node_ask(node, "shm_mib", ask_shm);
	char subject[64];

	ctl_node_subject(node, subject, sizeof(subject));
	for (size_t i = 0; i < FRAG_COUNT_OF(limits); i++)
		if (ctl_node_limit(node, limits[i].name) != UINT64_MAX) {
			ctl_finding_wrong(finding, "%s has a limit (%s)", subject, limits[i].name);
			ctl_finding_cost(finding, "%s", cost);
			ctl_finding_mend(finding, "ulimit -%s unlimited", limits[i].flag);
			return;
		}
	if (ctl_node_ask(node, "seals", ask_seals) < 0) {
		ctl_finding_wrong(finding, "memory cannot be sealed");
		ctl_finding_cost(finding, "%s", cost);
		ctl_finding_mend(finding, node->is_container
						  ? "podman run --security-opt seccomp=unconfined"
						  : "install Linux 5.1 or newer");
	} else if (!ctl_node_may(node, R_OK, "/proc/sys/kernel/random/boot_id")) {
		ctl_finding_wrong(finding, "/proc does not say which machine this is");
		ctl_finding_cost(finding, "%s", cost);
		ctl_finding_mend(finding, "mount -t proc proc /proc");
	} else if (shm_mib >= 0 && shm_mib <= CUDA_EVENTS_MIB &&
		   ctl_node_may(node, F_OK, "/dev/nvidiactl")) {
		ctl_finding_wrong(finding, "/dev/shm has %lld MiB, and CUDA uses it", shm_mib);
		ctl_finding_cost(finding, "memory of GPUs may not be shared between many hosts");
		ctl_finding_mend(finding, node->is_container ? "podman run --shm-size 1g"
							     : "mount -o remount,size=1g /dev/shm");
	} else if (shm_mib < 0) {
		ctl_finding_ok(finding, "hosts of one machine share memory; there is no /dev/shm");
	} else {
		ctl_finding_ok(finding, "hosts of one machine share memory; /dev/shm has %lld MiB",
			       shm_mib);
	}
}

void ctl_check_memlock(const struct ctl_node *node, struct ctl_finding *finding)
{
	uint64_t limit = ctl_node_limit(node, "Max locked memory");
	glob_t found;
	bool has_rdma = ctl_node_find(node, "/sys/class/infiniband/*", &found) > 0;
	char subject[64];

	globfree(&found);
	ctl_node_subject(node, subject, sizeof(subject));
	if (limit == UINT64_MAX) {
		ctl_finding_ok(finding, "%s may lock all memory", subject);
	} else if (has_rdma || limit < MIB) {
		ctl_finding_wrong(finding, "%s may lock %llu KiB", subject,
				  (unsigned long long)limit / 1024);
		ctl_finding_cost(finding, has_rdma ? "UCX cannot register memory with the RDMA card"
						   : "keys may be written to the swap space");
		ctl_finding_mend(finding,
				 node->is_container
					 ? "podman run --ulimit memlock=-1"
					 : "run frag-worker.service, or: ulimit -l unlimited");
	} else {
		ctl_finding_ok(finding, "%s may lock %llu MiB, and no RDMA card needs more",
			       subject, (unsigned long long)(limit / MIB));
	}
}
