// SPDX-License-Identifier: Apache-2.0
#include "mischief.h"

#include <sys/socket.h>

#include "socket.h"

/*
 * Whatever happens on a connection is one of four steps. The seed decides which of them are taken
 * in a round, in which order and how many; a step may be the last one.
 */
#define STEPS_MAX 40

static bool read_one(struct endpoint *e)
{
	struct transport *t = of(e);
	bool is_last = e->peer != NULL && e->peer->is_cut;
	struct message *m;
	ssize_t n = recv(t->in, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0 && is_last)
		socket_cut(e, "Connection reset by remote peer");
	if (n < 0 || m == NULL)
		return false;
	if (!m->to->is_cut)
		message_arrive(m, &t->config, &t->seed);
	message_unref(m);
	return true;
}

/* Receives a piece of any message. */
static bool receive_some(struct endpoint *e)
{
	struct message **at = &e->receives;

	while (*at != NULL && random_below(&of(e)->seed, 2) > 0)
		at = &(*at)->next_receive;
	if (*at == NULL || socket_settings.receives == RECEIVES_NOTHING)
		return false;
	if (message_receive_some(*at, &of(e)->seed))
		socket_end_receive(at, NULL);
	return true;
}

/* Ends any send that the receiver needs no more. */
static bool end_one(struct endpoint *e)
{
	struct message **at = &e->messages;

	while (*at != NULL && ((*at)->refs > 1 || random_below(&of(e)->seed, 2) > 0))
		at = &(*at)->next;
	if (*at == NULL)
		return false;
	socket_end_send(e, at, false);
	return true;
}

static bool (*const steps[])(struct endpoint *) = {socket_write_one, read_one, receive_some,
						   end_one};

bool mischief_is_busy(const struct transport *t)
{
	for (const struct endpoint *e = t->endpoints; e != NULL; e = e->next) {
		bool busy = e->unsent != NULL || e->receives != NULL;

		for (const struct message *m = e->messages; m != NULL; m = m->next)
			busy = busy || m->refs == 1;
		if (busy && !e->is_cut)
			return true;
	}
	return false;
}

uint32_t mischief_progress(struct transport *t)
{
	uint32_t happened = 0;

	for (struct endpoint *e = t->endpoints; e != NULL; e = e->next)
		for (uint32_t i = random_below(&t->seed, STEPS_MAX); i > 0; i--) {
			if (!(e->is_cut ? read_one : steps[random_below(&t->seed, 4)])(e))
				continue;
			happened++;
			if (t->number == socket_settings.dies &&
			    ++t->steps == socket_settings.at_step)
				socket_cut(e, "planted");
		}
	return happened + mischief_is_busy(t);
}
