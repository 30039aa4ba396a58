# SPDX-License-Identifier: Apache-2.0
"""zenoh: two peers over TCP on the loopback interface. Reliable, and block when a queue is full."""

import queue

import zenoh


class End:
    def __init__(self, role, folder, size):
        del size
        is_first = role in ("ask", "send")
        with open(folder + "/port", encoding="ascii") as f:
            at = '["tcp/127.0.0.1:%s"]' % f.read()
        config = zenoh.Config()
        config.insert_json5("scouting/multicast/enabled", "false")
        config.insert_json5("listen/endpoints", at if is_first else "[]")
        config.insert_json5("connect/endpoints", "[]" if is_first else at)
        self.session = zenoh.open(config)
        self.queue = queue.SimpleQueue()
        out, into = ("frag/a", "frag/b") if is_first else ("frag/b", "frag/a")
        self.publisher = self.session.declare_publisher(
            out,
            reliability=zenoh.Reliability.RELIABLE,
            congestion_control=zenoh.CongestionControl.BLOCK,
        )
        self.subscriber = self.session.declare_subscriber(
            into, lambda sample: self.queue.put(sample.payload.to_bytes())
        )

    def send(self, data):
        self.publisher.put(data)

    def receive(self, timeout):
        try:
            return self.queue.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self):
        self.session.close()
