// SPDX-License-Identifier: Apache-2.0
#include <fragctl/doctor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/mps.h>
#include <type/cuda.h>

/* Checks of GPUs, and of network cards with RDMA. */

#define CONTROL_DEVICE "/dev/nvidiactl"

/* The oldest driver (Linux) of each CUDA, by NVIDIA's release notes. */
static const struct {
	long long driver;
	const char *cuda;
} versions[] = {{580, "13.0"}, {575, "12.9"}, {570, "12.8"}, {560, "12.6"}, {555, "12.5"},
		{550, "12.4"}, {545, "12.3"}, {535, "12.2"}, {530, "12.1"}, {525, "12.0"}};

static const char *cuda_of(long long driver)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(versions); i++)
		if (driver >= versions[i].driver)
			return versions[i].cuda;
	return NULL;
}

/* Display and 3D controllers of NVIDIA on the PCI bus. */
static bool has_card(const struct ctl_node *node)
{
	glob_t found;
	size_t count = ctl_node_find(node, "/sys/bus/pci/devices/*", &found);
	char vendor[16], class[16];
	bool has = false;

	for (size_t i = 0; !has && i < count; i++) {
		const char *path = ctl_node_found(node, &found, i);

		has = ctl_node_read(node, vendor, sizeof(vendor), "%s/vendor", path) &&
		      ctl_node_read(node, class, sizeof(class), "%s/class", path) &&
		      strcmp(vendor, "0x10de") == 0 && strncmp(class, "0x03", 4) == 0;
	}
	globfree(&found);
	return has;
}

static long long ask_gpus(const struct ctl_node *node)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint64_t bytes = 0;
	uint32_t count = 0;
	int r = fragi_cuda_survey(&count, &bytes, &err);

	(void)node;
	return r < 0 ? -1 : (long long)count;
}

static long long ask_mps(const struct ctl_node *node)
{
	(void)node;
	return fragi_mps_runs(fragi_mps_folder());
}

static void check_driver(const struct ctl_node *node, struct ctl_finding *finding,
			 const char *version)
{
	const char *cuda = cuda_of(strtoll(version, NULL, 10));
	long long count;

	if (cuda == NULL) {
		ctl_finding_wrong(finding, "NVIDIA's driver %s is older than CUDA 12.0", version);
		ctl_finding_mend(finding, "install driver 525 or newer%s",
				 node->is_container ? " (on the machine)" : "");
	} else if (!ctl_node_may(node, R_OK | W_OK, CONTROL_DEVICE)) {
		ctl_finding_wrong(finding, "%s is not there, or not for this user", CONTROL_DEVICE);
		ctl_finding_mend(finding, "%s",
				 node->is_container
					 ? "podman run --device nvidia.com/gpu=all"
					 : "nvidia-modprobe -c 0 -u; usermod -aG video USER");
	} else if ((count = ctl_node_ask(node, "gpus", ask_gpus)) < 1) {
		ctl_finding_wrong(finding, "driver %s (CUDA %s) gives no GPU to this process",
				  version, cuda);
		ctl_finding_mend(finding, "%s",
				 node->is_container ? "podman run --device nvidia.com/gpu=all"
						    : "nvidia-smi prints why");
	} else {
		ctl_finding_ok(finding, "%lld, with driver %s (CUDA %s)%s", count, version, cuda,
			       ctl_node_ask(node, "mps", ask_mps) == 1
				       ? "; MPS runs"
				       : "; no MPS runs, so fragments get no gpuThreads");
	}
}

void ctl_check_gpu(const struct ctl_node *node, struct ctl_finding *finding)
{
	char version[64];

	if (ctl_node_read(node, version, sizeof(version), "/sys/module/nvidia/version")) {
		check_driver(node, finding, version);
	} else if (has_card(node)) {
		ctl_finding_wrong(finding, "a GPU of NVIDIA without NVIDIA's driver");
		ctl_finding_mend(finding, "apt-get install nvidia-driver, then reboot");
	} else {
		ctl_finding_ok(finding, "none of NVIDIA; tensors lie in memory of the system");
	}
	if (finding->is_wrong)
		ctl_finding_cost(finding,
				 "fragments that need a GPU are refused here (gpu_missing)");
}

/* Returns whether a port of a card carries packets; out_state: "DOWN" of the last that does not. */
static bool has_active_port(const struct ctl_node *node, const char *card, char *out_state,
			    size_t size)
{
	char pattern[512], text[64];
	glob_t found;
	size_t count;
	bool has = false;

	snprintf(pattern, sizeof(pattern), "%.400s/ports/*/state", card);
	count = ctl_node_find(node, pattern, &found);
	snprintf(out_state, size, "without a port");
	for (size_t i = 0; !has && i < count; i++) {
		if (!ctl_node_read(node, text, sizeof(text), "%s", ctl_node_found(node, &found, i)))
			continue;
		has = strstr(text, "ACTIVE") != NULL;
		snprintf(out_state, size, "%s", text + strspn(text, "0123456789: "));
	}
	globfree(&found);
	return has;
}

void ctl_check_rdma(const struct ctl_node *node, struct ctl_finding *finding)
{
	glob_t cards, found = {0};
	size_t count = ctl_node_find(node, "/sys/class/infiniband/*", &cards);
	char state[64] = "";
	const char *card = NULL;
	bool is_active = false;

	for (size_t i = 0; !is_active && i < count; i++) {
		card = ctl_node_found(node, &cards, i);
		is_active = has_active_port(node, card, state, sizeof(state));
	}
	if (count == 0) {
		ctl_finding_ok(finding, "no card; between nodes edges use TCP");
		return;
	}
	card = strrchr(card, '/') + 1;
	if (!is_active) {
		ctl_finding_wrong(finding, "%.40s is %s", card, state);
		ctl_finding_mend(finding,
				 "rdma link; look at its cable, switch, and ip link set up");
	} else if (ctl_node_find(node, "/dev/infiniband/uverbs*", &found) == 0) {
		ctl_finding_wrong(finding, "/dev/infiniband has no device of %.40s", card);
		ctl_finding_mend(finding, "%s",
				 node->is_container
					 ? "podman run --device /dev/infiniband"
					 : "apt-get install rdma-core; modprobe ib_uverbs");
	} else if (!ctl_node_may(node, R_OK | W_OK, ctl_node_found(node, &found, 0))) {
		ctl_finding_wrong(finding, "%s is not for this user",
				  ctl_node_found(node, &found, 0));
		ctl_finding_mend(finding, "chmod a+rw %s", ctl_node_found(node, &found, 0));
	} else if (ctl_node_limit(node, "Max locked memory") != UINT64_MAX) {
		ctl_finding_wrong(finding, "UCX may not lock memory for %.40s", card);
		ctl_finding_mend(finding, "see memlock");
	} else if ((globfree(&found),
		    ctl_node_find(node, "/usr/lib/*/ucx/libuct_ib.so*", &found)) == 0) {
		ctl_finding_wrong(finding, "UCX has no module for %.40s", card);
		ctl_finding_mend(finding, "apt-get install --reinstall libucx0");
	} else {
		ctl_finding_ok(finding,
			       "%.40s could be used; frag uses TCP unless UCX_TLS allows more, and "
			       "was not tried with RDMA",
			       card);
	}
	if (finding->is_wrong)
		ctl_finding_cost(finding, "UCX cannot use RDMA: between nodes edges use TCP");
	globfree(&found);
	globfree(&cards);
}
