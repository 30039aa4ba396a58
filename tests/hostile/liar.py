# SPDX-License-Identifier: Apache-2.0
"""Peers that were let in and lie: a worker that is none, and a driver that is none. Both speak the
protocol by hand (tests/integration/control.py), and beat while they think of the next lie."""
import select
import socket
import threading
import time

import victim  # first: it knows where the others are
import cluster
import control

BEAT_S = 0.2


class Liar:
    """One control connection. Frames are read as they come; BEATs are left out."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(cluster.PATIENCE_S)
        self.seq = 0
        self._writing = threading.Lock()
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)

    def begin_beats(self):
        self._beats.start()

    def _beat(self):
        while not self._over.wait(BEAT_S):
            try:
                self.send(control.BEAT)
            except OSError:
                return

    def send(self, kind, body=b"", run=0, host=0, epoch=0):
        self.seq += 1
        self.send_bytes(control.envelope(kind, body, run, host, epoch, self.seq))

    def send_bytes(self, data):
        with self._writing:
            self.sock.sendall(data)

    def receive(self):
        """(kind, envelope, body) of the next frame that is no BEAT, as fields."""
        end = time.monotonic() + cluster.PATIENCE_S
        while time.monotonic() < end:
            envelope = control.fields(control.read_frame(self.sock))
            kind = next((k for k in envelope if k >= control.HELLO), None)
            if kind != control.BEAT:
                return kind, envelope, control.fields(envelope[kind][0])
        raise AssertionError("nothing but BEATs for %d s" % cluster.PATIENCE_S)

    def expect(self, wanted):
        while True:
            kind, envelope, body = self.receive()
            if kind == wanted:
                return envelope, body

    def is_closed(self, timeout=cluster.PATIENCE_S):
        """Whether the other side closes the connection within that time; what it still sends is
        dropped."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return False
            try:
                if not self.sock.recv(1 << 16):
                    return True
            except ConnectionError:
                return True

    def close(self):
        self._over.set()
        self.sock.close()


class Worker(Liar):
    """A worker that the driver at this address has accepted."""

    def __init__(self, address, name=b"liar", fragments=(), role=control.WORKER):
        super().__init__(victim.connect(address))
        self.send_bytes(control.hello(1, role, name, fragments))
        self.welcome = self.expect(control.WELCOME)[1]
        self.begin_beats()


class Driver(Liar):
    """A driver that a worker has connected to; its HELLO is self.hello."""

    SESSION = 4711

    def __init__(self, listener):
        listener.settimeout(cluster.PATIENCE_S)
        super().__init__(listener.accept()[0])
        self.hello = self.expect(control.HELLO)[1]
        second = 1000000000
        self.send(control.WELCOME, control.number(1, self.SESSION) + control.block(2, b"fooled") +
                  control.number(3, second // 4) + control.number(4, 3 * second) +
                  control.block(5, b"0") + control.block(6, bytes(16)))
        self.begin_beats()


def listen():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    s.listen()
    return s
