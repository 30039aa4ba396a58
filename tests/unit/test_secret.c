// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/secret.h>

/* Whether the kernel has that flag ("dd": not in core files) for the mapping. */
static bool has_flag(const void *memory, const char *flag)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	unsigned long begin, end;
	char line[512], wanted[8];
	bool is_of_it = false, found = false;

	cr_assert_not_null(maps);
	snprintf(wanted, sizeof(wanted), " %s", flag);
	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			is_of_it = (uintptr_t)memory >= begin && (uintptr_t)memory < end;
		else if (is_of_it && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, wanted) != NULL;
	}
	fclose(maps);
	return found;
}

Test(secret, is_left_out_of_core_files)
{
	char *secret = fragi_secret_alloc(32);

	cr_assert_not_null(secret);
	cr_expect(has_flag(secret, "dd"));
	fragi_secret_free(secret, 32);
}

Test(secret, a_child_reads_zeros)
{
	char *secret = fragi_secret_alloc(32);
	int status;
	pid_t pid;

	cr_assert_not_null(secret);
	memset(secret, 'k', 32);
	pid = fork();
	if (pid == 0)
		_exit(secret[0] == 0 && secret[31] == 0 ? 0 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_expect_eq(secret[31], 'k', "the parent keeps it");
	fragi_secret_free(secret, 32);
}

Test(secret, is_equal_only_in_every_byte)
{
	uint8_t a[32], b[32];

	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = b[i] = (uint8_t)(i * 7);
	cr_expect(fragi_secret_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(a) * 8; i++) {
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		cr_expect_not(fragi_secret_equal(a, b, sizeof(a)), "bit %zu", i);
		b[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}

Test(secret, none_is_given_when_memory_is_short)
{
	fragi_alloc_fail_after(0, 1);
	cr_expect_null(fragi_secret_alloc(32));
	cr_expect_eq(fragi_alloc_fail_off(), 1);
	fragi_secret_free(NULL, 32);
}
