# SPDX-License-Identifier: Apache-2.0
"""A driver that a worker has accepted and that lies. The worker may run what is in its folders for
it, and nothing else comes of it: each lie is answered with a sentence or a closed connection, no
host stays, and the next driver is served as ever."""
import os
import signal
import struct

import victim  # first: it knows where the others are
import control
from control import block, number
import liar

LARGEST = (1 << 64) - 1
GRAPH = """
frag: 1
application: lie
extensions: [libtruth.so]
fragments:
  nobody: {operators: {tx: {type: truth_tx, parameters: {file: %(file)s}}}}
  lie: {operators: {rx: {type: truth_rx, parameters: {file: %(file)s}}}}
flows:
  - nobody.tx.out -> lie.rx.in
"""


def text(data):
    return struct.pack("<I", len(data)) + data + b"\0"


def source(graph, sets=(), args=()):
    """As fragi_source_pack does it."""
    none = struct.pack("<I", 0)
    lists = b"".join(struct.pack("<I", len(l)) + b"".join(map(text, l)) for l in (sets, args))
    return struct.pack("<II", 0x47415246, 1) + text(b"") + text(b"app.yaml") + text(graph) + none * 2 + lists


def create(packed, fragments=(b"lie",), beat_ns=250000000, dead_ns=3000000000, application=b"lie"):
    return (block(1, application) + block(2, packed) + b"".join(block(3, f) for f in fragments) +
            number(4, beat_ns) + number(5, dead_ns) + block(6, bytes(32)) + block(20, bytes(32)))


def edge(fragment=0, op=0, port=0, peer=2, token=bytes(16), window=4, **more):
    return block(2, number(1, 0) + number(2, more.get("sends", 0)) + number(3, fragment) +
                 number(4, op) + number(5, port) + number(6, peer) + block(7, token) +
                 number(8, window) + number(9, 1 << 20) + number(10, 1 << 20) +
                 number(11, more.get("policy", 0)) + block(12, b"nobody.tx.out") +
                 block(14, more.get("transport", b"ucx")))


def peer(host=2, address=bytes(64), transport=b"ucx"):
    return block(1, number(1, host) + number(2, 1) + block(4, b"nobody") +
                 block(5, block(1, transport) + block(2, address)))


def laughs():
    """A text of little that stands for much."""
    lines = ["config:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += ["  a%d: &a%d [%s]" % (i, i, ", ".join(["*a%d" % (i - 1)] * 10)) for i in range(1, 12)]
    return "\n".join(lines).encode()


class LyingDriver(victim.Victim):
    def setUp(self):
        super().setUp()
        self.listener = liar.listen()
        self.addCleanup(self.listener.close)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.graph = (GRAPH % {"file": self.path("lie")}).encode()
        self.w = self.worker("--name", "fooled", "-v")
        self.named["worker"] = self.w
        self.driver_liar = None
        self.epoch = 0
        self.answered = None  # the kind of the last answer; None: the worker has closed

    def liar(self):
        """The connection of the worker; a new one if it has closed the old one."""
        if self.driver_liar is None:
            self.driver_liar = liar.Driver(self.listener)
        return self.driver_liar

    def create(self, body):
        """A new host; its first answer."""
        self.epoch += 1
        lying = self.liar()
        lying.send(control.HOST_CREATE, body, 1, 1, self.epoch)
        return self.answer()

    def say(self, kind, body=b""):
        self.liar().send(kind, body, 1, 1, self.epoch)

    def answer(self):
        """(kind, body) of what the worker sends about the host; (None, {}) when it has closed."""
        try:
            while True:
                kind, _, body = self.driver_liar.receive()
                if kind != control.HOST_STATS:
                    self.answered = kind
                    return kind, body
        except (OSError, EOFError):
            self.answered = None
            return None, {}

    def end_host(self):
        """No host stays, whether the liar asks for its end or was sent away."""
        try:
            self.say(control.HOST_KILL)
        except OSError:
            pass
        while self.answered not in (None, control.HOST_EXIT):
            self.answer()
        if self.answered is None:
            self.driver_liar.close()
            self.driver_liar = None
        self.wait_until("no host: %r" % self.hosts(), lambda: not self.hosts())

    def end_served(self):
        """The worker that was lied to serves a driver that does not."""
        self.assertIsNone(self.w.child.poll(), self.w.stderr)
        if self.driver_liar is not None:
            self.driver_liar.close()
        self.listener.close()
        self.d = self.driver(self.app, "--output", "json", address=self.address, app_args=("--count", "50"))
        self.named["driver"] = self.d
        self.assertEqual(self.d.wait(), 0, self.d.stderr + self.w.stderr)
        self.assert_complete(self.summary(self.d), "done")
        self.w.signal(signal.SIGTERM)
        self.assertEqual(self.w.wait(), 0, self.w.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()

    def test_sources(self):
        deep = b"config: " + b"[" * 100000
        lies = {
            "garbage": create(os.urandom(4000)),
            "nothing": create(b""),
            "a number that is too large": create(struct.pack("<III", 0x47415246, 1, 0xffffffff) + b"x" * 100),
            "no YAML": create(source(b"\xff\xfe\0{[")),
            "a billion laughs": create(source(self.graph + laughs())),
            "deep": create(source(self.graph + deep)),
            "three megabytes": create(source(self.graph + b"config: {" + b"a: b, " * 500000 + b"}")),
            "other fragments": create(source(self.graph), fragments=(b"other",)),
            "more fragments than there are": create(source(self.graph), fragments=(b"lie",) * 5000),
            "a library that is none": create(source(self.graph.replace(b"libtruth.so", b"/etc/passwd"))),
            "a device as a library": create(source(self.graph.replace(b"libtruth.so", b"/dev/zero"))),
            "a library outside of the folders": create(source(self.graph.replace(b"libtruth.so", b"libc.so.6"))),
            "a setting of nothing": create(source(self.graph, sets=(b"=", b"a.b.c.d=e"))),
            "arguments": create(source(self.graph, args=(b"--" + b"x" * 10000,))),
        }
        for name, body in lies.items():
            with self.subTest(name):
                kind, answer = self.create(body)
                self.assertIn(kind, (None, control.HOST_PREPARED), answer)
                if kind is not None:
                    self.assertNotIn(1, answer, "it is no success")
                    self.assertTrue(control.fields(answer[3][0])[2][0], "a sentence")
                self.end_host()
        self.end_served()

    def test_edges(self):
        lies = {
            "no such fragment": peer() + edge(fragment=9),
            "no such operator": peer() + edge(op=9),
            "no such port": peer() + edge(port=9),
            "an input that sends": peer() + edge(sends=1),
            "no such peer": edge(peer=9),
            "a short token": peer() + edge(token=b"short"),
            "no window": peer() + edge(window=0),
            "a window without end": peer() + edge(window=(1 << 32) - 1),
            "a policy that is none": peer() + edge(policy=99),
            "a transport that is none": peer(transport=b"magic") + edge(transport=b"magic"),
            "an address of nobody": peer(address=os.urandom(300)) + edge(),
            "an empty address": peer(address=b"") + edge(),
            "the same edge a thousand times": peer() + edge() * 1000,
            "a hundred thousand edges": peer() + edge() * 30000 * 3,
            "a peer twice": peer() * 2 + edge(),
            "ten thousand peers": b"".join(peer(2 + i) for i in range(10000)) + edge(),
        }
        for name, body in lies.items():
            with self.subTest(name):
                kind, answer = self.create(create(source(self.graph)))
                self.assertEqual((kind, answer.get(1)), (control.HOST_PREPARED, [1]), answer)
                try:
                    self.say(control.HOST_WIRE, body)
                except OSError:
                    pass
                kind, answer = self.answer()
                if kind == control.HOST_WIRED:
                    self.assertTrue(control.fields(answer[1][0])[2][0], "a sentence")
                else:
                    self.assertIn(kind, (None, control.HOST_EXIT, control.HOST_EVENT), answer)
                self.end_host()
        self.end_served()

    def test_messages_out_of_turn(self):
        for kind in set(range(control.HELLO, control.LEAVE + 1)) - {control.HOST_CREATE}:
            with self.subTest(kind=kind):
                answer = self.create(create(source(self.graph)))
                self.assertEqual(answer[0], control.HOST_PREPARED)
                bodies = (b"", number(1, LARGEST), number(1, 1) + number(2, LARGEST) + block(3, b"x"))
                every_id = ((0, 0, 0), (LARGEST, 1, LARGEST), (1, 1, self.epoch - 1),
                            (1, 1, self.epoch))
                try:
                    for ids in every_id:
                        for body in bodies:
                            self.driver_liar.send(kind, body, *ids)
                except OSError:
                    pass
                self.end_host()
        self.end_served()

    def test_many_starts_of_the_same_host(self):
        """A newer epoch ends the host before it; an old one is refused."""
        for _ in range(20):
            self.epoch += 1
            self.liar().send(control.HOST_CREATE, create(source(self.graph)), 1, 1, self.epoch)
        self.liar().send(control.HOST_CREATE, create(source(self.graph)), 1, 1, 3)
        self.w.wait_line("refused HOST_CREATE of host 1 of run 1: epoch 3 is old")
        self.wait_until("one host", lambda: len(self.hosts()) == 1)
        self.driver_liar.close()
        self.wait_until("no host", lambda: not self.hosts())
        self.end_served()

    def test_beats_that_are_none(self):
        odd = ((0, 0), (1, 1), (LARGEST, LARGEST), (1, LARGEST >> 1), (1 << 62, 1))
        for beat_ns, dead_ns in odd:
            with self.subTest(beat=beat_ns, dead=dead_ns):
                self.create(create(source(self.graph), beat_ns=beat_ns, dead_ns=dead_ns))
                self.end_host()
        self.end_served()
