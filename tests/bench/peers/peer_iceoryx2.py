# SPDX-License-Identifier: Apache-2.0
"""iceoryx2: shared memory. The ends of a round trip spin, as its own benchmark does; a receiver of
1,000 messages a second looks every 100 us."""

import ctypes
import os
import time

import iceoryx2 as iox2

LOOK_S = 0.0001


class End:
    def __init__(self, role, folder, size):
        is_first = role in ("ask", "send")
        iox2.set_log_level(iox2.LogLevel.Fatal)
        self.spins = role in ("ask", "echo")
        self.node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        out, into = ("a", "b") if is_first else ("b", "a")
        self.publisher = (
            self.service(folder, out).publisher_builder().initial_max_slice_len(size).create()
        )
        self.subscriber = self.service(folder, into).subscriber_builder().create()

    def service(self, folder, which):
        name = iox2.ServiceName.new("%s/%s" % (os.path.basename(folder), which))
        return (
            self.node.service_builder(name)
            .publish_subscribe(iox2.Slice[ctypes.c_uint8])
            .open_or_create()
        )

    def send(self, data):
        sample = self.publisher.loan_slice_uninit(len(data))
        ctypes.memmove(sample.payload_ptr, data, len(data))
        sample.assume_init().send()

    def receive(self, timeout):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            sample = self.subscriber.receive()
            if sample is not None:
                payload = sample.payload()
                data = ctypes.string_at(payload.as_ptr(), payload.len())
                sample.delete()
                return data
            if not self.spins:
                time.sleep(LOOK_S)
        return None

    def close(self):
        pass
