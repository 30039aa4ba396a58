# SPDX-License-Identifier: Apache-2.0
"""Strangers at the viewer's page: another user of the machine connects and says nothing, too
little, too much, or looks without taking what it gets. A browser that looked before goes on, the
graph loses nothing, and what the strangers took is given back."""
import http.client
import os
import socket
import threading
import time

import victim  # first: it knows where the others are
import cluster
import strangers
import test_viewer

LOOK = b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
CONNECTIONS = 8
GROWTH_BYTES = 48 << 20  # connections, their requests and send buffers, and thread stacks
SEEN_UNDER_ATTACK = 40   # pictures
WRONG = (
    b"GET /../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /..\\..\\etc\\passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET file:///etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PUT /picture.jpg HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd",
    b"DELETE /picture.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET " + b"/" * 60000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"Cookie: " + b"c" * 1000000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % i for i in range(50000)) + b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


def ask(address, request):
    """All that is answered to a request; nobody reads more of it than it answers."""
    answer = b""
    with victim.connect(address) as s:
        try:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
            for data in iter(lambda: s.recv(65536), b""):
                answer += data
        except OSError:
            pass
    return answer


def ask_wrongly(report, address):
    for request in WRONG:
        report([request[:60].decode("latin1"), ask(address, request)[:2000].decode("latin1")])
    report("done")
    time.sleep(3600)


def pipeline(report, address):
    """A thousand requests in one connection, again and again."""
    report("begun")
    while True:
        ask(address, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)


def stall(report, address):
    """Looks, takes nothing, and looks again when it is let go."""
    report("begun")
    while True:
        held = []
        try:
            for _ in range(4 * CONNECTIONS):
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.settimeout(0.05)
                s.connect(tuple_of(address))
                s.sendall(LOOK)
                held.append(s)
            time.sleep(0.2)
        except OSError:
            pass
        for s in held:
            s.close()


def look_and_leave(report, address):
    """Asks for the stream and is gone, as fast as it goes."""
    report("begun")
    while True:
        try:
            strangers.say(LOOK, address).close()
        except OSError:
            time.sleep(0.01)


def tuple_of(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


class Watcher(threading.Thread):
    """A browser that looks all the time: counts its pictures, which must become newer."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.stream, self.seen, self.failure, self.ends = test_viewer.Stream(url), 0, None, False
        self.start()

    def run(self):
        last = 0
        try:
            while not self.ends:
                number = self.stream.part()[0]["number"]
                assert number > last, "picture %d comes after %d" % (number, last)
                last, self.seen = number, self.seen + 1
        except (OSError, http.client.HTTPException, AssertionError) as e:
            self.failure = e

    def end(self):
        self.ends = True
        self.join(cluster.PATIENCE_S)
        self.stream.close()


class Strangers(test_viewer.ViewerTest):
    def setUp(self):
        super().setUp()
        self.attackers = []
        self.addCleanup(lambda: [a.end() for a in self.attackers])

    def attack(self, deed):
        if victim.hindrance():
            self.skipTest(victim.hindrance())
        self.look(rate="20ms", connections=CONNECTIONS)
        self.get("picture.jpg")
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        self.before = self.descriptors(), victim.resident_bytes(self.host())
        self.watcher = Watcher(self.url)
        self.wait_seen(1)
        self.attackers.append(victim.Attacker(deed, "%s:%d" % self.address))
        return self.attackers[0]

    def wait_seen(self, count):
        self.wait_until("%d pictures" % count,
                        lambda: self.watcher.seen >= count or self.watcher.failure)
        self.assertIsNone(self.watcher.failure)

    def end_unharmed(self):
        began = time.monotonic()
        self.wait_seen(self.watcher.seen + SEEN_UNDER_ATTACK)
        while time.monotonic() < began + victim.ATTACK_S:
            self.wait_seen(self.watcher.seen + 1)
        for a in self.attackers:
            a.end()
        self.watcher.end()
        self.assertIsNone(self.watcher.failure)
        self.assertEqual(len(test_viewer.decode([self.get("picture.jpg")])), 1)
        self.wait_until("descriptors as before", lambda: self.descriptors() <= self.before[0],
                        4 * cluster.PATIENCE_S)
        if cluster.TIMES_SLOWER == 1 and "ASAN_OPTIONS" not in os.environ:
            self.assertLess(victim.resident_bytes(self.host()) - self.before[1], GROWTH_BYTES)
        flow = self.end()
        self.assertEqual((flow["sent"], sum(flow["dropped"].values())), (flow["delivered"], 0))

    def test_a_thousand_silent_connections(self):
        self.assertEqual(self.attack(strangers.stand_silent).report(), strangers.CROWD)
        self.assertEqual(len(test_viewer.decode([self.get("picture.jpg")])), 1,
                         "silence keeps nobody out")
        self.end_unharmed()

    def test_beginnings_of_everything(self):
        self.attack(strangers.send_beginnings).report(4 * cluster.PATIENCE_S)
        self.end_unharmed()

    def test_a_request_byte_by_byte(self):
        self.attack(strangers.dribble).report()
        self.end_unharmed()

    def test_a_flood(self):
        self.attack(strangers.flood).report()
        self.end_unharmed()

    def test_requests_without_end_in_one_connection(self):
        self.attack(pipeline).report()
        self.end_unharmed()

    def test_stalled_browsers(self):
        self.attack(stall).report()
        self.end_unharmed()

    def test_browsers_that_come_and_go(self):
        self.attack(look_and_leave).report()
        self.end_unharmed()

    def test_paths_methods_and_heads_that_are_wrong(self):
        attacker = self.attack(ask_wrongly)
        for said in iter(attacker.report, "done"):
            request, answer = said
            with self.subTest(request):
                self.assertNotIn("root:", answer)
                self.assertFalse(answer.startswith("HTTP/1.1 2"), answer[:200])
        self.end_unharmed()
