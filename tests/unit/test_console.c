// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <graph/op.h>
#include <run/console.h>

static int pipes[2][2]; /* what descriptors 1 and 2 are while the test runs */
static int saved[2];
static FILE *streams[2];
static char texts[2][65536];

static void redirect(void)
{
	fflush(stdout);
	fflush(stderr);
	streams[0] = stdout;
	streams[1] = stderr;
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(pipe(pipes[i]), 0);
		saved[i] = dup(i + 1);
		dup2(pipes[i][1], i + 1);
	}
	cr_assert_eq(fragi_console_begin(), 0);
}

/* Ends the console; texts holds what came out of descriptors 1 and 2. */
static void collect(void)
{
	fragi_console_end();
	cr_expect(stdout == streams[0] && stderr == streams[1]);
	for (int i = 0; i < 2; i++) {
		size_t used = 0;
		ssize_t n;

		dup2(saved[i], i + 1);
		close(saved[i]);
		close(pipes[i][1]);
		while ((n = read(pipes[i][0], texts[i] + used, sizeof(texts[i]) - 1 - used)) > 0)
			used += (size_t)n;
		texts[i][used] = '\0';
		close(pipes[i][0]);
	}
}

static const struct frag_op tx = {.name = "tx", .subject = "fragment1.tx"};
static const struct frag_op rx = {.name = "rx", .subject = "fragment1.rx"};

Test(console, lines_of_an_operator_carry_its_name)
{
	redirect();
	fragi_current()->op = &tx;
	printf("one\ntwo");
	printf(" %d\n", 3);
	fprintf(stderr, "to stderr\n");
	puts("puts");
	fragi_current()->op = NULL;
	printf("outside\n");
	fprintf(stderr, "log line\n");
	collect();
	cr_expect_str_eq(texts[0], "outside\n");
	cr_expect_str_eq(texts[1],
			 "fragment1.tx: one\nfragment1.tx: two 3\nfragment1.tx: to stderr\n"
			 "fragment1.tx: puts\nlog line\n");
}

Test(console, an_unfinished_line_ends_where_another_operator_begins)
{
	redirect();
	fragi_current()->op = &tx;
	printf("half");
	fragi_current()->op = &rx;
	printf("whole\n");
	printf("last");
	fragi_current()->op = NULL;
	collect();
	cr_expect_str_eq(texts[1], "fragment1.tx: half\nfragment1.rx: whole\nfragment1.rx: last\n");
}

Test(console, a_long_line_is_cut_and_nothing_is_lost)
{
	size_t x = 0;

	redirect();
	fragi_current()->op = &tx;
	for (int i = 0; i < 5000; i++)
		putchar('x');
	putchar('\n');
	fragi_current()->op = NULL;
	collect();
	for (const char *c = texts[1]; *c != '\0'; c++)
		x += *c == 'x';
	cr_expect_eq(x, 5000 + 3, "and the x of tx in each of three lines");
	for (char *line = strtok(texts[1], "\n"); line != NULL; line = strtok(NULL, "\n"))
		cr_expect_eq(strncmp(line, "fragment1.tx: ", 14), 0);
}

/* A name takes half of a line at most. */
Test(console, a_long_name_is_cut)
{
	char name[1100];
	struct frag_op op = {.name = "tx", .subject = name};

	for (size_t length = 1018; length < 1030; length++) {
		const size_t shown = length + 2 < 1023 ? length + 2 : 1023;

		memset(name, 'n', length);
		name[length] = '\0';
		redirect();
		fragi_current()->op = &op;
		puts("word");
		fragi_current()->op = NULL;
		collect();
		cr_expect_eq(strlen(texts[1]), shown + 5, "%zu: %zu", length, strlen(texts[1]));
		cr_expect_str_eq(texts[1] + shown, "word\n", "%zu", length);
	}
}

static void *talk(void *arg)
{
	fragi_current()->op = arg;
	for (int i = 0; i < 200; i++) {
		printf("a");
		printf("b");
		printf("c\n");
	}
	printf("end");
	fragi_current()->op = NULL;
	return NULL;
}

Test(console, threads_do_not_mix_their_lines)
{
	pthread_t threads[2];
	int abc = 0, end = 0, other = 0;

	redirect();
	pthread_create(&threads[0], NULL, talk, (void *)(uintptr_t)&tx);
	pthread_create(&threads[1], NULL, talk, (void *)(uintptr_t)&rx);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	collect();
	for (char *line = strtok(texts[1], "\n"); line != NULL; line = strtok(NULL, "\n")) {
		bool named = strncmp(line, "fragment1.tx: ", 14) == 0 ||
			     strncmp(line, "fragment1.rx: ", 14) == 0;

		abc += named && strcmp(line + 14, "abc") == 0;
		end += named && strcmp(line + 14, "end") == 0;
		other += !named;
	}
	cr_expect_eq(abc, 400);
	cr_expect_eq(end, 2, "an unfinished line ends with its thread");
	cr_expect_eq(other, 0);
}
