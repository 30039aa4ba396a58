# SPDX-License-Identifier: Apache-2.0
"""eCAL: shared memory, found by its own registration. What its subscriber says was dropped is
counted."""

import os
import queue

import ecal.nanobind_core as ecal


class End:
    def __init__(self, role, folder, size):
        del size
        is_first = role in ("ask", "send")
        ecal.initialize("frag-bench-" + role)
        self.queue, self.reported = queue.SimpleQueue(), 0
        name = os.path.basename(folder)
        out, into = ("a", "b") if is_first else ("b", "a")
        self.publisher = ecal.Publisher(name + out)
        self.subscriber = ecal.Subscriber(name + into, event_callback=self.on_event)
        self.subscriber.set_receive_callback(self.on_message)

    def on_message(self, publisher, info, data):
        del publisher, info
        self.queue.put(bytes(data.buffer))

    def on_event(self, topic, data):
        del topic
        self.reported += data.event_type == ecal.SubscriberEvent.DROPPED

    def send(self, data):
        return self.publisher.send(data)

    def receive(self, timeout):
        try:
            return self.queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self):
        ecal.finalize()
