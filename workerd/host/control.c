// SPDX-License-Identifier: Apache-2.0
#include <workerd/host/control.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <base/alloc.h>
#include <base/stamp.h>

#define READ_BYTES 65536

void host_control_init(struct host_control *control, int fd)
{
	memset(control, 0, sizeof(*control));
	control->fd = fd;
	fw_reader_init(&control->reader, FW_FRAME_MAX);
}

void host_control_fini(struct host_control *control)
{
	fw_reader_fini(&control->reader);
	fragi_free(control->unsent);
	control->unsent = NULL;
}

static int keep(struct host_control *control, const uint8_t *bytes, size_t size)
{
	size_t wanted = control->unsent_bytes + size;

	if (wanted > HOST_UNSENT_MAX)
		return -ENOBUFS;
	if (wanted > control->unsent_capacity) {
		uint8_t *grown = fragi_realloc(control->unsent, wanted);

		if (grown == NULL)
			return -ENOMEM;
		control->unsent = grown;
		control->unsent_capacity = wanted;
	}
	memcpy(control->unsent + control->unsent_bytes, bytes, size);
	control->unsent_bytes = wanted;
	return 0;
}

int host_control_flush(struct host_control *control)
{
	size_t sent = 0;
	int r = 0;

	while (sent < control->unsent_bytes && r == 0) {
		ssize_t n = send(control->fd, control->unsent + sent, control->unsent_bytes - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN || errno == ENOBUFS)
			r = -EAGAIN;
		else if (errno != EINTR)
			r = -errno;
	}
	control->unsent_bytes -= sent;
	if (control->unsent_bytes > 0) {
		memmove(control->unsent, control->unsent + sent, control->unsent_bytes);
	} else {
		fragi_free(control->unsent);
		control->unsent = NULL;
		control->unsent_capacity = 0;
	}
	return r;
}

int host_control_send(struct host_control *control, const struct fw_message *message)
{
	struct fw_message copy = *message;
	uint8_t *frame;
	size_t size;
	int r;

	copy.seq = ++control->seq;
	r = fw_encode(&copy, &frame, &size);
	if (r < 0)
		return r;
	r = keep(control, frame, size);
	free(frame);
	if (r == 0)
		r = host_control_flush(control);
	return r == -EAGAIN ? 0 : r;
}

int host_control_read(struct host_control *control, int64_t now_ns)
{
	uint8_t bytes[READ_BYTES];
	ssize_t n = recv(control->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		return fw_reader_feed(&control->reader, bytes, (size_t)n, now_ns);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
}

int host_control_next(struct host_control *control, struct fw_message **out_message)
{
	const uint8_t *bytes;
	size_t size;
	int r = fw_reader_next(&control->reader, &bytes, &size, NULL);

	if (r <= 0)
		return r;
	r = fw_decode(bytes, size, out_message, NULL);
	return r < 0 ? r : 1;
}
