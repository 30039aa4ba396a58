// SPDX-License-Identifier: Apache-2.0
#include <fragctl/doctor.h>

/* What `fragctl doctor` checks, in the order of its lines. A new check is a row here. */
static const struct ctl_check checks[] = {
	{"clock", ctl_check_clock},
	{"ptp", ctl_check_ptp},
	{"governor", ctl_check_governor},
	{"huge_pages", ctl_check_huge_pages},
	{"shared_memory", ctl_check_shared_memory},
	{"memlock", ctl_check_memlock},
	{"rtprio", ctl_check_rtprio},
	{"control_groups", ctl_check_control_groups},
	{"landlock", ctl_check_landlock},
	{"seccomp", ctl_check_seccomp},
	{"system_calls", ctl_check_system_calls},
	{"gpu", ctl_check_gpu},
	{"rdma", ctl_check_rdma},
	{"interface", ctl_check_interface},
	{"driver_port", ctl_check_driver_port},
	{"data_ports", ctl_check_data_ports},
	{"state_folder", ctl_check_state},
	{"certificate", ctl_check_certificate},
	{"development", ctl_check_development},
	{"inference", ctl_check_inference},
};

const struct ctl_check *ctl_check_at(size_t i)
{
	return i < FRAG_COUNT_OF(checks) ? &checks[i] : NULL;
}
