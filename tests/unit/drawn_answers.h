/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRAWN_ANSWERS_H
#define TESTS_UNIT_DRAWN_ANSWERS_H

#include <base/log.h>
#include <track/cause.h>

#include "wire_messages.h"

/*
 * Answers of a driver, which have something of their own in every field. A letter says which:
 * Reply, Looked (the last one: l), Answer (a: of a failure), Outcome, Events, loGs, eXplanation,
 * Tapped (t: with numbers, of pictures), Changes (S: all of them settings), Node (of a worker),
 * events of every kind (V), lines of every level and operator (g), Welcome, which answers nothing;
 * and of what is compared with names: a reply of four workers (P; Q: all of them drained), the
 * outcome and the figures of a connection (D, Y).
 */
static struct maker maker;
static uint32_t pictures_made;
static uint64_t answered_run; /* of the last answer */

#define FROM_UNIX_NS (INT64_C(1795788180) * 1000000000) /* 2026-11-27T14:03:00Z */

static inline const char *one_of(const char *const *texts, uint32_t count)
{
	return texts[below(&maker, count)];
}

/* Names and states that verbs compare with what they know. */
static inline void name_reply(struct fw_reply *reply)
{
	static const char *const states[] = {"running", "running", "waiting", "starting", "ending"};
	static const char *const worker_states[] = {"live", "live", "lost", "suspect"};

	for (uint32_t i = 0; i < reply->application_count; i++) {
		reply->applications[i].name = i == 0 ? "a" : "c";
		reply->applications[i].state = one_of(states, 5);
		for (uint32_t h = 0; h < reply->applications[i].host_count; h++) {
			reply->applications[i].hosts[h].state = one_of(states, 5);
			reply->applications[i].hosts[h].fragments = h == 0 ? "f, g" : "h";
		}
		if (below(&maker, 2) == 0)
			reply->applications[i].missing = "";
	}
	for (uint32_t i = 0; i < reply->ended_count; i++)
		reply->ended[i].name = i == 0 ? "b" : one_of((const char *const[]){"a", "d"}, 2);
	for (uint32_t i = 0; i < reply->worker_count; i++) {
		reply->workers[i].name = i == 0 ? "w" : "v";
		reply->workers[i].state = one_of(worker_states, 4);
		reply->workers[i].age_ns = i == 0 ? 0 : reply->workers[i].age_ns * below(&maker, 2);
	}
	if (below(&maker, 4) != 0)
		reply->state_failure = "";
}

/* Three workers are there, of which the second one is drained; two ended runs have one name. */
static inline void name_workers(struct fw_reply *reply, bool all_drained)
{
	static struct fw_worker_row rows[4];
	static const char *const names[] = {"w", "v", "u", "x"};

	for (uint32_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		rows[i] = reply->workers[i % reply->worker_count];
		rows[i].name = names[i];
		rows[i].state = i == 3 ? "expected" : "live";
		rows[i].age_ns = i == 3 ? 7000000000 : 0;
		rows[i].ran = "";
		rows[i].drained = i < 3 && (all_drained || i == 1);
	}
	reply->workers = rows;
	reply->worker_count = FRAG_COUNT_OF(rows);
	reply->more = 0;
	reply->state_failure = "";
	for (uint32_t i = 0; i < reply->application_count; i++) {
		reply->applications[i].run = answered_run;
		reply->applications[i].missing = i == 0 ? "" : "f, g";
	}
	for (uint32_t i = 0; i < reply->ended_count; i++)
		reply->ended[i].name = "b";
}

/* What one of the workers has sent to the other one, by an edge with details or without. */
static inline void name_connection(struct fragi_summary *summary)
{
	static struct fragi_summary_flow flows[2];

	memcpy(flows, summary->flows, sizeof(flows));
	flows[1].from = "one.ask.out";
	if (below(&maker, 2) == 0)
		flows[1].edge_detail = "";
	summary->flows = flows;
	summary->failure.code = FRAGI_FAILURE_NONE;
}

static inline void name_figures(struct fw_logs *logs)
{
	logs->rows[0].text = "begins, round_trip_ns unknown";
	logs->rows[1].text = "measured: round_trip_ns=1234567 bytes_per_s=987654321";
}

/* Grey, three channels and four of them; the host is followed by another one after the third. */
static inline void make_picture(struct fragi_passed *passed)
{
	static const uint64_t numbers[] = {5, 6, 9, 2, 5};
	static const uint32_t channels[] = {1, 3, 4, 3, 1};
	uint32_t at = pictures_made++ % FRAG_COUNT_OF(numbers);

	passed->number = numbers[at];
	passed->seen = 100 + pictures_made;
	passed->unix_ns = FROM_UNIX_NS + pictures_made * INT64_C(1500000000);
	passed->width = 3;
	passed->height = 2;
	passed->channels = channels[at];
	passed->pixel_bytes = 6 * channels[at];
	passed->pixels = block(&maker, passed->pixel_bytes);
}

static inline void name_events(struct fw_events *events)
{
	static uint64_t number;

	for (uint32_t i = 0; i < events->count; i++) {
		number += below(&maker, 4) == 0 ? 2 : 1;
		events->rows[i].number = number;
	}
}

/* One of each kind, a second apart, every other one by somebody, about operators and others. */
static inline void make_notices(struct fw_events *events)
{
	static struct fw_notice rows[FW_NOTICE_KINDS - 1];
	static const char *const texts[] = {"f.tx.out -> g.rx.in",       "tx", "f.tx1 and g.tx",
					    "of operator tx: it\033[1m", "",   "rx-tx, tx_rx"};

	for (uint32_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		rows[i] = (struct fw_notice){.number = i + 1,
					     .unix_ns = FROM_UNIX_NS + i * INT64_C(1000000000),
					     .kind = (enum fw_notice_kind)(i + 1),
					     .application = i % 3 == 0 ? "" : "a",
					     .run = i % 3,
					     .who = i % 2 == 0 ? "" : "user alice",
					     .text = texts[i % FRAG_COUNT_OF(texts)]};
	*events = (struct fw_events){rows, FRAG_COUNT_OF(rows)};
}

/* The same of lines: every level, of every place. */
static inline void make_lines(struct fw_logs *logs)
{
	static const char *const places[][2] = {{"", ""},    {"f", ""},     {"f", "tx"},
						{"g", "tx"}, {"f", "f1tx"}, {"f1", "tx"}};
	static struct fw_line rows[FRAGI_LOG_OFF * FRAG_COUNT_OF(places)];

	for (uint32_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		rows[i] = (struct fw_line){.number = 2 * i + 1,
					   .unix_ns = FROM_UNIX_NS + i * INT64_C(1000000000),
					   .level = i % FRAGI_LOG_OFF,
					   .worker = i % 4 == 0 ? "" : "w",
					   .fragment = places[i / FRAGI_LOG_OFF][0],
					   .op = places[i / FRAGI_LOG_OFF][1],
					   .text = i % 7 == 0 ? "tab\tand\033[1m" : "a line"};
	logs->rows = rows;
	logs->count = FRAG_COUNT_OF(rows);
	logs->last = 2 * FRAG_COUNT_OF(rows);
}

/* Once each effect is the largest one. */
static inline void name_changes(struct fw_changes *changes, enum fw_effect most)
{
	changes->effect = FW_EFFECT_NONE;
	for (uint32_t i = 0; i < changes->count; i++) {
		changes->rows[i].effect = 1 + below(&maker, most);
		if (changes->rows[i].effect > changes->effect)
			changes->effect = changes->rows[i].effect;
	}
	changes->more = below(&maker, 2);
	if (below(&maker, 2) == 0)
		changes->remark = "";
}

static inline enum fw_kind kind_of(char answer)
{
	static const struct {
		char answer;
		enum fw_kind kind;
	} kinds[] = {{'R', FW_REPLY},   {'L', FW_LOOKED},      {'l', FW_LOOKED},  {'A', FW_ANSWER},
		     {'a', FW_ANSWER},  {'O', FW_OUTCOME},     {'E', FW_EVENTS},  {'G', FW_LOGS},
		     {'T', FW_TAPPED},  {'X', FW_EXPLANATION}, {'W', FW_WELCOME}, {'C', FW_CHANGES},
		     {'S', FW_CHANGES}, {'N', FW_EXAMINED},    {'V', FW_EVENTS},  {'g', FW_LOGS},
		     {'t', FW_TAPPED},  {'P', FW_REPLY},       {'Q', FW_REPLY},   {'D', FW_OUTCOME},
		     {'Y', FW_LOGS}};
	size_t i = 0;

	while (kinds[i].answer != answer)
		i++;
	return kinds[i].kind;
}

static inline void make_answer(char answer, uint64_t reply_to, struct fw_message *message)
{
	struct fw_message passed;
	size_t size;

	make(&maker, kind_of(answer), message);
	message->reply_to = reply_to;
	if (message->kind == FW_REPLY)
		name_reply(&message->reply);
	if (answer == 'P' || answer == 'Q')
		name_workers(&message->reply, answer == 'Q');
	else if (answer == 'D')
		name_connection(&message->outcome.summary);
	else if (answer == 'Y')
		name_figures(&message->logs);
	if (answer == 'V')
		make_notices(&message->events);
	else if (answer == 'g')
		make_lines(&message->logs);
	else if (message->kind == FW_EVENTS)
		name_events(&message->events);
	if (message->kind == FW_CHANGES)
		name_changes(&message->changes,
			     answer == 'S' ? FW_EFFECT_SET : FW_EFFECT_APPLICATION);
	if (message->kind == FW_EXAMINED && below(&maker, 3) > 0)
		message->examined.why_not = "";
	if (message->kind == FW_LOOKED) {
		message->looked.is_last = answer == 'l';
		message->looked.is_same = false;
		message->looked.cause =
			below(&maker, FRAGI_CAUSE_RULE + 2); /* and an unknown one */
		message->looked.look.application = answer == 'l' ? "a" : "c";
	}
	if (message->kind == FW_ANSWER)
		answered_run = message->run;
	if (message->kind == FW_ANSWER && answer == 'A')
		message->answer.failure = (struct fw_failure){0};
	else if (message->kind == FW_ANSWER)
		message->answer.failure =
			(struct fw_failure){.code = 1 + below(&maker, FRAGI_FAILURES - 1),
					    .sentence = "it is refused,\n\033[1mthat is why",
					    .op = message->answer.failure.op};
	if (message->kind == FW_TAPPED) {
		uint8_t *frame;

		make(&maker, FW_PASSED, &passed);
		if (answer == 't')
			make_picture(&passed.passed);
		cr_assert_eq(fw_encode(&passed, &frame, &size), 0);
		message->tapped.passed = frame;
		message->tapped.size = (uint32_t)size;
	}
}

#endif
