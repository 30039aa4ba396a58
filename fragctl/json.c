// SPDX-License-Identifier: Apache-2.0
#include <fragctl/json.h>

#include <base/json.h>

void ctl_json_gap(struct ctl_json *json, const char *gap)
{
	json->gap = gap;
}

static void begin(struct ctl_json *json, const char *name)
{
	const char *gap = json->gap != NULL ? json->gap : json->follows ? " " : "";

	fprintf(json->out, "%s%s", json->follows ? "," : "", gap);
	if (name != NULL) {
		fragi_json_text(name, json->out);
		fputs(": ", json->out);
	}
	json->follows = true;
	json->gap = NULL;
}

void ctl_json_open(struct ctl_json *json, const char *name, char bracket)
{
	begin(json, name);
	fputc(bracket, json->out);
	json->follows = false;
}

void ctl_json_close(struct ctl_json *json, char bracket)
{
	fputc(bracket, json->out);
	json->follows = true;
	json->gap = NULL;
}

struct ctl_json ctl_json_begin(FILE *out)
{
	struct ctl_json json = {.out = out};

	ctl_json_open(&json, NULL, '{');
	return json;
}

void ctl_json_end(struct ctl_json *json)
{
	ctl_json_close(json, '}');
	fputc('\n', json->out);
}

void ctl_json_text(struct ctl_json *json, const char *name, const char *text)
{
	begin(json, name);
	fragi_json_text(text, json->out);
}

void ctl_json_optional(struct ctl_json *json, const char *name, const char *text)
{
	ctl_json_text(json, name, text[0] != '\0' ? text : NULL);
}

void ctl_json_bool(struct ctl_json *json, const char *name, bool value)
{
	begin(json, name);
	fputs(value ? "true" : "false", json->out);
}

void ctl_json_number(struct ctl_json *json, const char *name, long long value)
{
	begin(json, name);
	fprintf(json->out, "%lld", value);
}

void ctl_json_unsigned(struct ctl_json *json, const char *name, unsigned long long value)
{
	begin(json, name);
	fprintf(json->out, "%llu", value);
}

FILE *ctl_json_value(struct ctl_json *json, const char *name)
{
	begin(json, name);
	return json->out;
}
