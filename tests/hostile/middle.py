# SPDX-License-Identifier: Apache-2.0
"""A man in the middle: stands between a worker and its driver, and sees, keeps or changes what they
send. Beside it, what can be changed in an envelope: each field, in each way."""
import socket
import struct
import threading

import victim  # first: it knows where the others are
import control

UP, DOWN = "up", "down"  # to the driver, to the worker


class Middle:
    """Workers connect to self.address. change(way, data), called for what comes in one read or,
    with by_frame, for each envelope, returns what goes on in its place: bytes; None closes both
    sides."""

    def __init__(self, driver, change=lambda way, data: data, by_frame=False):
        self.driver, self.change, self.by_frame = driver, change, by_frame
        self.seen = []  # (way, data) as it came
        self._lock = threading.Lock()
        self._socks = []
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        self._server.listen()
        self.address = "127.0.0.1:%d" % self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                worker, _ = self._server.accept()
            except OSError:
                return
            try:
                driver = victim.connect(self.driver)
            except OSError:
                worker.close()
                continue
            driver.settimeout(None)
            self._socks += [worker, driver]
            self._begin(worker, driver)

    def _begin(self, worker, driver):
        for way, one, other in ((UP, worker, driver), (DOWN, driver, worker)):
            t = threading.Thread(target=self._carry, args=(way, one, other), daemon=True)
            self._threads.append(t)
            t.start()

    def _carry(self, way, one, other):
        try:
            while True:
                data = control.read_frame(one) if self.by_frame else one.recv(1 << 16)
                if not data:
                    break
                with self._lock:
                    self.seen.append((way, data))
                    data = self.change(way, data)
                if data is None:
                    break
                other.sendall(control.frame(data) if self.by_frame else data)
        except (OSError, EOFError):
            pass
        self._close(one, other)

    def _close(self, *socks):
        for s in socks:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def end(self):
        """Again: nothing."""
        if self._server.fileno() < 0:
            return
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._close(*self._socks)
        for t in self._threads:
            t.join()
        for s in self._socks:
            s.close()


def read_varint(data, i):
    n = shift = 0
    while True:
        n |= (data[i] & 0x7f) << shift
        shift += 7
        i += 1
        if data[i - 1] < 0x80:
            return n, i


def split(data):
    """[(field, wire type, value)] of a message; ValueError when it is none."""
    found, i = [], 0
    try:
        while i < len(data):
            key, i = read_varint(data, i)
            field, wire = key >> 3, key & 7
            if field == 0 or wire not in (0, 1, 2, 5):
                raise ValueError
            if wire == 0:
                value, i = read_varint(data, i)
            else:
                size = {1: 8, 5: 4}.get(wire)
                if size is None:
                    size, i = read_varint(data, i)
                if i + size > len(data):
                    raise ValueError
                value = data[i:i + size]
                i += size
            found.append((field, wire, value))
    except IndexError:
        raise ValueError from None
    return found


def join(parts):
    out = b""
    for field, wire, value in parts:
        out += control.varint(field << 3 | wire)
        if wire == 0:
            out += control.varint(value)
        else:
            out += (control.varint(len(value)) if wire == 2 else b"") + value
    return out


# The fields of these messages that are messages themselves; all other blocks are texts and bytes.
NESTED = {"": range(16, 64), "/16": (), "/20": (), "/21": (3, 4, 5, 9), "/21/4": (2,), "/21/4/2": (3,),
          "/22": (1, 2), "/22/1": (5,), "/23": (1,), "/25": (1,), "/28": (3,), "/29": (2, 3), "/29/2": (4,),
          "/29/3": (5,), "/30": (3,), "/32": (1, 2), "/32/1": (5,)}


def sites(data, path=""):
    """The path of every field, "/22/2/7" and so on, each once."""
    found = []
    for field, wire, value in split(data):
        here = "%s/%d" % (path, field)
        if here not in found:
            found.append(here)
        if wire == 2 and field in NESTED.get(path, ()):
            found += [s for s in sites(value, here) if s not in found]
    return found


def change_field(data, path, how, rng):
    """The envelope with the first field of that path changed; how: one of WAYS."""
    head, _, rest = path[1:].partition("/")
    parts, out, done = split(data), [], False
    for field, wire, value in parts:
        if done or field != int(head):
            out.append((field, wire, value))
            continue
        done = True
        if rest:
            out.append((field, wire, change_field(value, "/" + rest, how, rng)))
        else:
            out += WAYS[how](field, wire, value, rng)
    return join(out)


def to_number(number):
    def change(field, wire, value, rng):
        n = number(value if wire == 0 else 0, rng) & (1 << 64) - 1
        if wire == 0:
            return [(field, 0, n)]
        if wire == 1:
            return [(field, 1, struct.pack("<Q", n))]
        return [(field, 2, bytes(rng.randrange(256) for _ in range(len(value))))]
    return change


def longer(field, wire, value, rng):
    return [(field, wire, value * 3 + b"%s/../\xff\0" if wire == 2 else value)] * 2


WAYS = {
    "left out": lambda field, wire, value, rng: [],
    "twice": lambda field, wire, value, rng: [(field, wire, value)] * 2,
    "many": lambda field, wire, value, rng: [(field, wire, value)] * 2000,
    "zero": to_number(lambda n, rng: 0),
    "one more": to_number(lambda n, rng: n + 1),
    "one less": to_number(lambda n, rng: n - 1),
    "largest": to_number(lambda n, rng: -1),
    "sign": to_number(lambda n, rng: 1 << 63),
    "any": to_number(lambda n, rng: rng.getrandbits(32)),
    "longer": longer,
    "empty": lambda field, wire, value, rng: [(field, 2, b"")],
}
