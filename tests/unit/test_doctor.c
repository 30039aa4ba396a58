// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <malloc.h>
#include <unistd.h>

#include <fragctl/doctor.h>

#include "expected.h"
#include "left.h"
#include "scratch.h"

/*
 * What `fragctl doctor` says of the nodes of tests/data/doctor/nodes.txt: of each the line of one
 * check, and the names of others that find something wrong.
 */
#define HEALTHY_MAX 32

static char healthy[HEALTHY_MAX][512]; /* "/path=text" */
static size_t healthy_count;
static FILE *out;

/* "/path=text", with newlines and tabs. */
static void plant(const char *file)
{
	const char *text = strchr(file, '=') + 1;
	char name[256], planted[512];
	size_t length = 0;

	for (; *text != '\0'; text++) {
		bool is_escape = text[0] == '\\' && (text[1] == 'n' || text[1] == 't');

		text += is_escape;
		planted[length++] = !is_escape ? *text : *text == 'n' ? '\n' : '\t';
	}
	planted[length] = '\0';
	snprintf(name, sizeof(name), "node%.*s", (int)strcspn(file, "="), file);
	put(name, planted);
	cr_assert_eq(chmod(at(name), 0755), 0);
}

/* The folders above it go, too, where nothing else is in them. */
static void take_out(const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/node%.*s", scratch, (int)strcspn(file, "="), file);
	cr_assert_eq(unlink(path), 0, "%s", path);
	do
		*strrchr(path, '/') = '\0';
	while (rmdir(path) == 0);
}

/* "@name=value"; nothing where the value is empty. */
static void take_flag(struct ctl_node *node, const char *flag)
{
	const char *value = strchr(flag, '=') + 1;

	if (strncmp(flag, "@state", 6) == 0)
		node->state = value[0] != '\0' ? value : NULL;
	else if (strncmp(flag, "@address", 8) == 0)
		node->address = value;
	else
		node->certificate = value;
}

/* What a healthy node has there; NULL: nothing. */
static const char *find_healthy(const char *path)
{
	size_t length = strcspn(path, "=");

	for (size_t i = 0; i < healthy_count; i++)
		if (strncmp(healthy[i], path, length) == 0 && healthy[i][length] == '=')
			return healthy[i];
	return NULL;
}

static void change(const char *change, struct ctl_node *node)
{
	if (change[0] == '@')
		take_flag(node, change);
	else if (change[0] == '-')
		take_out(change + 1);
	else
		plant(change);
}

static void change_back(const char *change)
{
	const char *before = find_healthy(change + (change[0] == '-'));

	if (change[0] == '/' && before == NULL)
		take_out(change);
	else if (before != NULL)
		plant(before);
}

static void show(const char *name, const struct ctl_node *node)
{
	const struct ctl_check *check;

	for (size_t i = 0; (check = ctl_check_at(i)) != NULL; i++) {
		struct ctl_finding finding = {0};

		check->look(node, &finding);
		if (strcmp(check->name, name) == 0 && finding.is_wrong)
			fprintf(out, "  wrong: %s\n  costs: %s\n  mend: %s\n", finding.found,
				finding.cost, finding.mend);
		else if (strcmp(check->name, name) == 0)
			fprintf(out, "  ok: %s%s%s\n", finding.found, finding.cost, finding.mend);
		else if (finding.is_wrong)
			fprintf(out, "  and %s: %s\n", check->name, finding.found);
	}
}

/* line: "check | change | change"; it is taken apart. */
static void look_at(char *line)
{
	char root[64], *changes[8], *rest = line, *name;
	struct ctl_node node = {.root = root, .state = "/state"};
	size_t count = 0;

	snprintf(root, sizeof(root), "%s", at("node"));
	fprintf(out, "%s\n", line);
	name = strsep(&rest, " ");
	while (rest != NULL && (rest = strstr(rest, "| ")) != NULL) {
		if (count > 0)
			rest[-1] = '\0';
		changes[count++] = rest += 2;
		cr_assert_lt(count, FRAG_COUNT_OF(changes));
	}
	for (size_t i = 0; i < count; i++)
		change(changes[i], &node);
	ctl_node_init(&node);
	show(name, &node);
	for (size_t i = count; i-- > 0;)
		change_back(changes[i]);
}

Test(doctor, finds_what_is_recorded, .init = scratch_make, .fini = scratch_remove)
{
	FILE *nodes = fopen("tests/data/doctor/nodes.txt", "r");
	char line[1024], *text;
	size_t size;
	const unsigned int descriptors = left_now().descriptors;

	cr_assert_not_null(nodes);
	mallopt(M_PERTURB, 165); /* what nobody has cleared is no zeros */
	out = open_memstream(&text, &size);
	while (fgets(line, sizeof(line), nodes) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '+') {
			cr_assert_lt(healthy_count, HEALTHY_MAX);
			snprintf(healthy[healthy_count], sizeof(healthy[0]), "%s", line + 2);
			plant(healthy[healthy_count++]);
		} else if (line[0] != '#') {
			look_at(line);
		}
	}
	cr_expect_eq(left_now().descriptors, descriptors, "descriptors are left");
	fclose(nodes);
	fclose(out);
	expected_compare("fragctl/doctor", text);
	free(text);
}
