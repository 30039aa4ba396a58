// SPDX-License-Identifier: Apache-2.0
#include <driverd/facts.h>

#include <sys/statvfs.h>
#include <time.h>

#include <driverd/system.h>

#define EVERY_NS INT64_C(10000000000)

static void read_folder(int folder, struct drv_machine *out)
{
	struct statvfs disk;

	if (folder < 0 || fstatvfs(folder, &disk) < 0)
		return;
	out->state_bytes = (uint64_t)disk.f_frsize * disk.f_blocks;
	out->state_free_bytes = (uint64_t)disk.f_frsize * disk.f_bavail;
}

static void read_certificate(const struct fw_tls *tls, struct drv_machine *out)
{
	int64_t left_s = tls != NULL ? fw_tls_left_s(tls) : INT64_MAX;

	if (left_s != INT64_MAX)
		out->certificate_ends_unix_s = time(NULL) + left_s;
}

void drv_facts_tell(struct drv_facts *facts, struct drv_core *core, int folder,
		    const struct fw_tls *tls, int64_t now_ns)
{
	if (facts->read_ns == 0 || now_ns - facts->read_ns >= EVERY_NS) {
		const int64_t started_s = facts->machine.started_unix_s;

		facts->machine = (struct drv_machine){
			.started_unix_s = started_s != 0 ? started_s : time(NULL)};
		read_folder(folder, &facts->machine);
		read_certificate(tls, &facts->machine);
		facts->read_ns = now_ns;
	}
	drv_core_set_clock(core, drv_system_realtime_offset_ns());
	drv_core_set_machine(core, &facts->machine);
}
