// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <base/alloc.h>
#include <workerd/seccomp.h>

/* Which system calls of a host are refused: the filter runs here, over calls that are made up. */
static FILE *out;
static struct wrk_seccomp filter;

/* What the kernel does with that call. */
static uint32_t judge(const struct seccomp_data *data)
{
	const struct sock_filter *code = filter.program.filter;
	uint32_t a = 0;

	for (unsigned int pc = 0; pc < filter.program.len; pc++) {
		const struct sock_filter *c = &code[pc];
		bool holds;

		switch (c->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			cr_assert_leq(c->k + sizeof(a), sizeof(*data));
			memcpy(&a, (const char *)data + c->k, sizeof(a));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= c->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += c->k;
			continue;
		case BPF_RET | BPF_K:
			return c->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			holds = a == c->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			holds = a >= c->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			holds = a > c->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			holds = (a & c->k) != 0;
			break;
		default:
			cr_assert_fail("an instruction that this test does not know: %u", c->code);
		}
		pc += holds ? c->jt : c->jf;
	}
	cr_assert_fail("it ends nowhere");
}

static const char *judgement(uint32_t arch, int number, uint64_t first, uint64_t second)
{
	const struct seccomp_data data = {.nr = number, .arch = arch, .args = {first, second}};
	uint32_t action = judge(&data);

	return action == SECCOMP_RET_ALLOW              ? "allowed"
	       : action == (SECCOMP_RET_ERRNO | EPERM)  ? "EPERM"
	       : action == (SECCOMP_RET_ERRNO | ENOSYS) ? "ENOSYS"
							: "something else";
}

static void show_first(const char *name, int number, uint64_t first)
{
	fprintf(out, "%s %#llx: %s\n", name, (unsigned long long)first,
		judgement(AUDIT_ARCH_X86_64, number, first, 0));
}

Test(seccomp, what_is_refused)
{
	static const uint64_t flags[] = {0,
					 SIGCHLD,
					 CLONE_VM | CLONE_FILES | CLONE_THREAD,
					 CLONE_NEWTIME,
					 CLONE_NEWNS,
					 CLONE_NEWCGROUP,
					 CLONE_NEWUTS,
					 CLONE_NEWIPC,
					 CLONE_NEWUSER,
					 CLONE_NEWPID,
					 CLONE_NEWNET,
					 CLONE_NEWNET | CLONE_VM};
	static const uint64_t requests[] = {TIOCSTI, TIOCLINUX, TIOCGWINSZ, TIOCSTI - 1,
					    UINT64_C(0xabcd00000000) | TIOCSTI};
	struct frag_err err = FRAG_ERR_INIT;
	size_t size, refused = 0;
	char *text;

#ifndef __x86_64__
	cr_skip_test("the numbers are those of x86-64");
#endif
	out = open_memstream(&text, &size);
	cr_assert_eq(wrk_seccomp_init(&filter, &err), 0, "%s", err.text);
	for (int number = 0; number < 1000; number++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, number);
		const char *what = judgement(AUDIT_ARCH_X86_64, number, 0, 0);

		refused += strcmp(what, "allowed") != 0;
		if (strcmp(what, "allowed") != 0 && strcmp(name, "ptrace") != 0)
			fprintf(out, "%s: %s\n", name, what);
		free(name);
	}
	fprintf(out, "as many as it says, and clone3: %d\n", (int)(refused - filter.denied));
	for (size_t i = 0; i < FRAG_COUNT_OF(flags); i++) {
		show_first("clone", SYS_clone, flags[i]);
		show_first("unshare", SYS_unshare, flags[i]);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(requests); i++)
		fprintf(out, "ioctl %#llx: %s\n", (unsigned long long)requests[i],
			judgement(AUDIT_ARCH_X86_64, SYS_ioctl, 9, requests[i]));
	fprintf(out, "read of 32 bits: %s\n", judgement(AUDIT_ARCH_I386, 3, 0, 0));
	wrk_seccomp_fini(&filter);
	cr_expect_null(filter.program.filter);
	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(wrk_seccomp_init(&filter, &err), -ENOMEM);
	(void)fragi_alloc_fail_off();
	fprintf(out, "%s\n", err.text);
	fclose(out);
	expected_compare("worker/seccomp", text);
	free(text);
}
