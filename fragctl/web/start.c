// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* versionsort */
#include <fragctl/web/web.h>

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/trusted_path.h>
#include <fragctl/json.h>
#include <fragctl/service.h>
#include <text/spec.h>

/*
 * Applications that the page may start for the first time: the graphs in the folder of --graphs. A
 * browser sends the name of a file there and nothing else, so it starts what whoever runs fragctl
 * web has chosen.
 */
#define GRAPHS_MAX 500

static bool is_graph(const char *name)
{
	const char *end = strrchr(name, '.');

	return name[0] != '.' && strchr(name, '/') == NULL && end != NULL &&
	       (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

static int is_shown(const struct dirent *entry)
{
	return is_graph(entry->d_name);
}

void ctl_web_graphs(struct ctl_web *web, struct ctl_http_request *request,
		    struct ctl_http_response *out)
{
	struct dirent **entries = NULL;
	int count = web->graphs != NULL ? scandir(web->graphs, &entries, is_shown, versionsort) : 0;
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	(void)request;
	if (to != NULL) {
		struct ctl_json json = ctl_json_begin(to);

		ctl_json_open(&json, "graphs", '[');
		for (int i = 0; i < count && i < GRAPHS_MAX; i++)
			ctl_json_text(&json, NULL, entries[i]->d_name);
		ctl_json_close(&json, ']');
		ctl_json_number(&json, "left_out", count > GRAPHS_MAX ? count - GRAPHS_MAX : 0);
		ctl_json_end(&json);
	}
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	*out = to != NULL && fclose(to) == 0 ? ctl_web_json(200, text, size)
					     : ctl_web_json(500, NULL, 0);
}

static void write_run(const struct fw_message *answer, FILE *out)
{
	fprintf(out, "{\"run\": %llu}\n", (unsigned long long)answer->run);
}

/* Reads and packs the graph. Returns 0 or a negative errno, with a sentence. */
static int pack(const char *path, void **out_packed, size_t *out_bytes, struct frag_err *err)
{
	struct fragi_source source;
	int r = fragi_trusted_path_check(path, geteuid(), err);

	if (r == 0)
		r = fragi_source_read(&source, path, NULL, 0, NULL, 0, NULL, 0, err);
	if (r < 0)
		return r;
	r = fragi_source_pack(&source.source, out_packed, out_bytes);
	fragi_source_fini(&source);
	return r;
}

void ctl_web_start(struct ctl_web *web, struct ctl_http_request *request,
		   struct ctl_http_response *out)
{
	struct fw_message command = {.kind = FW_START_APP};
	struct frag_err err = FRAG_ERR_INIT;
	char path[PATH_MAX];
	void *packed = NULL;
	size_t bytes = 0;
	int r;

	if (web->graphs == NULL || strlen(request->body) != request->body_size ||
	    !is_graph(request->body) ||
	    snprintf(path, sizeof(path), "%s/%s", web->graphs, request->body) >=
		    (int)sizeof(path)) {
		*out = ctl_web_text(
			400, "name a graph in the folder of fragctl web --graphs, APP.yaml\n");
		return;
	}
	r = pack(path, &packed, &bytes, &err);
	if (r < 0) {
		frag_err_set(&err, r, "cannot read %.200s: %s", path, frag_strerror(r));
		*out = ctl_web_failure(&(struct fw_failure){.code = fragi_err_failure(&err),
							    .sentence = err.text});
		return;
	}
	command.start_app = (struct fw_start_app){
		.name = "", .source = packed, .source_bytes = (uint32_t)bytes};
	ctl_web_feed_ask(&web->feed, request, &command, write_run, out);
	fragi_free(packed);
}
