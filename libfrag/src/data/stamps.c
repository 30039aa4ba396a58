// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <data/message.h>

/*
 * The stamps of a message. A bit of message->stamps says of each whether it is set; its value has a
 * meaning only then, and nothing clears it.
 */
static bool has(const struct frag_message *message, unsigned stamp)
{
	return (message->stamps & stamp) != 0;
}

static void mark(struct frag_message *message, unsigned stamp)
{
	message->stamps = (uint8_t)(message->stamps | stamp);
}

static void unmark(struct frag_message *message, unsigned stamp)
{
	message->stamps = (uint8_t)(message->stamps & ~stamp);
}

bool fragi_clock_exists(uint32_t clock)
{
	return clock <= FRAG_CLOCK_MEDIA || clock >= FRAG_CLOCK_OWN;
}

int frag_message_set_acquisition(struct frag_message *message, int64_t time_ns, uint32_t clock)
{
	if (fragi_message_is_busy(message))
		return -EBUSY;
	if (!fragi_clock_exists(clock))
		return -EINVAL;
	message->acquisition_ns = time_ns;
	message->clock = clock;
	unmark(message, FRAGI_STAMP_FOREIGN);
	mark(message, FRAGI_STAMP_ACQUIRED);
	return 0;
}

int frag_message_acquisition(const struct frag_message *message, int64_t *out_time_ns,
			     uint32_t *out_clock)
{
	if (!has(message, FRAGI_STAMP_ACQUIRED))
		return -ENODATA;
	if (out_time_ns != NULL)
		*out_time_ns = message->acquisition_ns;
	if (out_clock != NULL)
		*out_clock = message->clock;
	return 0;
}

int frag_message_set_acquisition_ns(struct frag_message *message, int64_t unix_ns)
{
	int r = frag_message_set_acquisition(message, unix_ns, FRAG_CLOCK_UNIX);

	if (r == 0 && unix_ns == 0)
		unmark(message, FRAGI_STAMP_ACQUIRED);
	return r;
}

int64_t frag_message_acquisition_ns(const struct frag_message *message)
{
	return has(message, FRAGI_STAMP_ACQUIRED) && message->clock == FRAG_CLOCK_UNIX
		       ? message->acquisition_ns
		       : 0;
}

int frag_message_set_sequence(struct frag_message *message, uint64_t sequence)
{
	if (fragi_message_is_busy(message))
		return -EBUSY;
	message->sequence = sequence;
	mark(message, FRAGI_STAMP_SEQUENCE);
	return 0;
}

int frag_message_sequence(const struct frag_message *message, uint64_t *out_sequence)
{
	if (!has(message, FRAGI_STAMP_SEQUENCE))
		return -ENODATA;
	*out_sequence = message->sequence;
	return 0;
}

int frag_message_set_flags(struct frag_message *message, uint32_t flags)
{
	if (fragi_message_is_busy(message))
		return -EBUSY;
	if ((flags & ~(uint32_t)FRAGI_STAMPS_FLAGS) != 0)
		return -EINVAL;
	unmark(message, FRAGI_STAMPS_FLAGS);
	mark(message, flags);
	return 0;
}

uint32_t frag_message_flags(const struct frag_message *message)
{
	return message->stamps & FRAGI_STAMPS_FLAGS;
}

void fragi_message_copy_stamps(struct frag_message *message, const struct frag_message *from)
{
	unsigned stamps = from->stamps & FRAGI_STAMPS_SENT;

	unmark(message, FRAGI_STAMPS_SENT);
	if (stamps == 0)
		return;
	mark(message, stamps);
	message->acquisition_ns = from->acquisition_ns;
	message->clock = from->clock;
	message->sequence = from->sequence;
	message->tracking_id = from->tracking_id;
}

/* What a clock of the peer, and ours, is ahead of CLOCK_MONOTONIC. Returns false: not known. */
static bool find_ahead(const struct fragi_timeline *peer, uint32_t clock, int64_t *their_ns,
		       int64_t *our_ns)
{
	*their_ns = clock == FRAG_CLOCK_UNIX  ? peer->unix_ahead_ns
		    : clock == FRAG_CLOCK_TAI ? peer->tai_ahead_ns
					      : 0;
	*our_ns = clock == FRAG_CLOCK_UNIX  ? peer->our_unix_ahead_ns
		  : clock == FRAG_CLOCK_TAI ? peer->our_tai_ahead_ns
					    : 0;
	return clock == FRAG_CLOCK_MONOTONIC || (clock == FRAG_CLOCK_UNIX && peer->knows_unix) ||
	       (clock == FRAG_CLOCK_TAI && peer->knows_tai);
}

/* To the same clock of this machine. Of clocks of the application no timeline says anything. */
static bool convert_acquisition(struct frag_message *message, const struct fragi_timeline *peer)
{
	int64_t their_ns, our_ns, ns;
	struct fragi_time time;

	if (!find_ahead(peer, message->clock, &their_ns, &our_ns) ||
	    __builtin_sub_overflow(message->acquisition_ns, their_ns, &ns) ||
	    !fragi_timeline_convert(peer, ns, &time) ||
	    __builtin_add_overflow(time.ns, our_ns, &ns))
		return false;
	message->acquisition_ns = ns;
	return true;
}

void fragi_message_convert_from(struct frag_message *message, const struct fragi_timeline *peer)
{
	if (has(message, FRAGI_STAMP_ACQUIRED) && !convert_acquisition(message, peer))
		mark(message, FRAGI_STAMP_FOREIGN);
	if (has(message, FRAGI_STAMP_TRAIL))
		fragi_trail_convert_times(message->trail, peer);
	if (has(message, FRAGI_STAMP_LABEL))
		fragi_label_convert_times(message->label, peer);
}

/* Whether there is something for the one who sends it to write into it. */
static void note_at_send(struct frag_message *message)
{
	if (has(message, FRAGI_STAMP_TRAIL) ||
	    (has(message, FRAGI_STAMP_LABEL) && message->label->names != NULL))
		message->at_receive |= FRAGI_AT_SEND_TRAIL;
	else
		message->at_receive &= (uint8_t)~FRAGI_AT_SEND_TRAIL;
}

void fragi_message_set_label(struct frag_message *message, struct fragi_label *label)
{
	if (has(message, FRAGI_STAMP_LABEL))
		fragi_label_unref(message->label);
	message->label = label;
	if (label != NULL)
		mark(message, FRAGI_STAMP_LABEL);
	else
		unmark(message, FRAGI_STAMP_LABEL);
	note_at_send(message);
}

void fragi_message_set_trail(struct frag_message *message, struct fragi_trail *trail)
{
	if (has(message, FRAGI_STAMP_TRAIL))
		fragi_trail_unref(message->trail);
	message->trail = trail;
	if (trail != NULL)
		mark(message, FRAGI_STAMP_TRAIL);
	else
		unmark(message, FRAGI_STAMP_TRAIL);
	note_at_send(message);
}

void fragi_message_leave_trail(struct frag_message *message)
{
	unmark(message, FRAGI_STAMP_TRAIL);
	note_at_send(message);
}

int frag_message_copy_stamps(struct frag_message *message, const struct frag_message *from)
{
	if (fragi_message_is_busy(message))
		return -EBUSY;
	fragi_message_copy_stamps(message, from);
	return 0;
}
