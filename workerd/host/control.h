/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_CONTROL_H
#define HOST_CONTROL_H

#include <wire/frame.h>

/*
 * A host's end of the socket to its workerd: frames in, frames out, nothing blocks. What cannot be
 * sent yet is kept, up to HOST_UNSENT_MAX bytes: a workerd that reads nothing for so long is silent
 * anyway.
 */
#define HOST_UNSENT_MAX (16u << 20)

struct host_control {
	int fd;
	struct fw_reader reader;
	uint64_t seq;
	uint8_t *unsent; /* owned */
	size_t unsent_bytes, unsent_capacity;
};

void host_control_init(struct host_control *control, int fd);
void host_control_fini(struct host_control *control);
/*
 * Returns 0; what send(2) says, -EPIPE when workerd is gone; -ENOBUFS, -ENOMEM, or what fw_encode
 * says.
 */
int host_control_send(struct host_control *control, const struct fw_message *message);
/* Sends what is kept. Returns 0, -EAGAIN when some is left, or what send(2) says. */
int host_control_flush(struct host_control *control);
/* Reads what is there. Returns 0, -EPIPE at the end of file, or what recv(2) or the reader says. */
int host_control_read(struct host_control *control, int64_t now_ns);
/*
 * The next message that was read, for fw_message_free. Returns 1, 0 when there is none, -EBADMSG,
 * -ENOMEM.
 */
int host_control_next(struct host_control *control, struct fw_message **out_message);

#endif
