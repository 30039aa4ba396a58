# SPDX-License-Identifier: Apache-2.0
"""What a stranger does to a port, whichever it is. Each runs in an attacker's process."""
import os
import select
import struct
import time

import victim  # first: it knows where the others are
import control

CROWD = 1000
# UCX's TCP transport begins with this number; what follows makes UCX 1.13 abort.
UCX_MAGIC = struct.pack("<Q", 0xcafebabe12345678)
BEGINNINGS = (
    b"", b"\x10", struct.pack("<I", 1000) + b"half", struct.pack("<I", 0),
    struct.pack("<I", 0xffffffff) + b"x", b"GET / HTTP/1.1\r\n\r\n", control.hello(99)[:-1],
    control.envelope(control.BEAT), control.envelope(control.HOST_KILL, run=1, host=1, epoch=1),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", UCX_MAGIC, UCX_MAGIC + b"\xff" * 16,
    UCX_MAGIC + bytes(4000), bytes(47), bytes(48), bytes(200),
)


def stand_silent(report, address):
    """Connects a thousand times, says nothing, and holds on."""
    crowd = [victim.connect(address) for _ in range(CROWD)]
    report(len(crowd))
    time.sleep(3600)


def say(data, address):
    s = victim.connect(address)
    try:
        s.sendall(data)
    except OSError:
        pass
    return s


def send_beginnings(report, address, *more):
    """Sends the beginning of everything; reports how long the connections lived, at most."""
    beginnings = BEGINNINGS + tuple(bytes.fromhex(m) for m in more)
    crowd = {say(data, address): time.monotonic() for data in beginnings * 4}
    longest = 0
    while crowd:
        ready, _, _ = select.select(list(crowd), [], [], 60)
        assert ready, "%d connections are still open" % len(crowd)
        for s in ready:
            try:
                data = s.recv(65536)
            except OSError:
                data = b""
            if not data:
                longest = max(longest, time.monotonic() - crowd.pop(s))
                s.close()
    report(longest)


def dribble(report, address):
    """Sends a frame byte by byte, for ever, on new connections when the old ones are closed."""
    report("begun")
    while True:
        with victim.connect(address) as s:
            try:
                for byte in struct.pack("<I", 1 << 20) + b"\x10" * 100000:
                    s.sendall(bytes([byte]))
                    time.sleep(0.01)
            except OSError:
                pass


def flood(report, address):
    """Connects, sends a megabyte of something, closes, as fast as it goes."""
    report("begun")
    junk = (control.hello(99), os.urandom(1 << 16), struct.pack("<I", 1 << 20) + bytes(1 << 20), b"")
    while True:
        for data in junk:
            try:
                say(data, address).close()
            except OSError:
                time.sleep(0.01)
