/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_DOCTOR_H
#define CTL_DOCTOR_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>

/*
 * What `fragctl doctor` looks at. Everything is read below `root`, so that a test can plant what a
 * node has: its files, and in the folder `asked` the answers of the kernel that no file holds.
 */
struct ctl_node {
	const char *root;        /* before each path; "": this node */
	const char *address;     /* of the driver; NULL: on this node */
	const char *state;       /* folder of a driver; NULL: the one of the packages */
	const char *certificate; /* NULL: none */
	char worker[16];         /* the process of a workerd; "self": none runs */
	bool is_container;
};

void ctl_node_init(struct ctl_node *node);
/* Reads a file up to size - 1 bytes, without the end of its last line. Returns whether it could. */
bool ctl_node_read(const struct ctl_node *node, char *out, size_t size, const char *format, ...)
	FRAG_PRINTF(4, 5);
/* A number at the beginning of a file; -1: there is none. */
long long ctl_node_number(const struct ctl_node *node, const char *format, ...) FRAG_PRINTF(2, 3);
/* The paths that match a pattern, without the root; freed with globfree. Returns how many. */
size_t ctl_node_find(const struct ctl_node *node, const char *pattern, glob_t *out);
/* The path of the i-th that was found, as ctl_node_read takes it. */
const char *ctl_node_found(const struct ctl_node *node, const glob_t *found, size_t i);
/* Whether this process may access a path in the manner of access(2). */
bool ctl_node_may(const struct ctl_node *node, int mode, const char *path);
/* Whether a process of that name runs. out_pid: NULL, or receives its number. */
bool ctl_node_runs(const struct ctl_node *node, const char *name, char out_pid[16]);
/* A limit of workerd, or of this process: "Max locked memory". UINT64_MAX: none. */
uint64_t ctl_node_limit(const struct ctl_node *node, const char *name);
/* Whose limits these are: "workerd (process 12)". Returns out. */
const char *ctl_node_subject(const struct ctl_node *node, char *out, size_t size);
/* What `ask` answers, or else what was planted under that name. */
long long ctl_node_ask(const struct ctl_node *node, const char *name,
		       long long (*ask)(const struct ctl_node *node));

/* One line of the doctor. A zeroed one says nothing. */
struct ctl_finding {
	bool is_wrong;
	char found[320]; /* what there is */
	char cost[320];  /* what is lost by it */
	char mend[320];  /* the command that mends it */
};
/* All is well. */
void ctl_finding_ok(struct ctl_finding *finding, const char *format, ...) FRAG_PRINTF(2, 3);
/* Something is wrong; cost and mend follow, each by its own call. */
void ctl_finding_wrong(struct ctl_finding *finding, const char *format, ...) FRAG_PRINTF(2, 3);
void ctl_finding_cost(struct ctl_finding *finding, const char *format, ...) FRAG_PRINTF(2, 3);
void ctl_finding_mend(struct ctl_finding *finding, const char *format, ...) FRAG_PRINTF(2, 3);

/* A check looks at one thing, and says ok or wrong of it. */
struct ctl_check {
	const char *name;
	void (*look)(const struct ctl_node *node, struct ctl_finding *finding);
};
/* The i-th check; NULL beyond the last. */
const struct ctl_check *ctl_check_at(size_t i);

void ctl_check_clock(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_ptp(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_governor(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_huge_pages(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_shared_memory(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_memlock(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_rtprio(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_control_groups(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_landlock(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_seccomp(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_system_calls(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_gpu(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_rdma(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_interface(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_driver_port(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_data_ports(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_state(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_certificate(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_development(const struct ctl_node *node, struct ctl_finding *finding);
void ctl_check_inference(const struct ctl_node *node, struct ctl_finding *finding);

#endif
