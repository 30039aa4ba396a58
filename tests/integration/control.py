# SPDX-License-Identifier: Apache-2.0
"""Just enough of the control channel to be a wrong peer: envelopes by hand, from
proto/frag/v1/control.proto."""
import socket
import struct

HELLO, WELCOME, REFUSED, BEAT = 16, 17, 18, 19
HOST_CREATE, HOST_PREPARED, HOST_WIRE, HOST_WIRED = 20, 21, 22, 23
HOST_START, HOST_STARTED, HOST_STOP, HOST_KILL = 24, 25, 26, 27
HOST_EVENT, HOST_STATS, HOST_EXIT = 28, 29, 30
REQUEST, REPLY, APP_ENDED, LEAVE = 31, 32, 33, 34
WORKER, CLIENT, REPORTER = 1, 2, 3
FRAGMENTS = 6  # of HELLO


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def frame(envelope):
    return struct.pack("<I", len(envelope)) + envelope


def envelope(kind, body=b"", run=0, host=0, epoch=0, seq=1):
    ids = number(3, run) + number(4, host) + number(5, epoch) if run or host or epoch else b""
    return frame(number(1, seq) + ids + block(kind, body))


def hello(major, role=WORKER, name=b"stranger", fragments=(), session=0, secret=b""):
    return frame(
        number(1, 1)
        + block(
            HELLO,
            number(1, major)
            + number(2, 0)
            + number(3, role)
            + block(4, name)
            + number(5, session)
            + b"".join(block(FRAGMENTS, f) for f in fragments)
            + block(14, secret),
        )
    )


def refused(exit_code, sentence):
    return frame(number(1, 1) + block(REFUSED, number(1, exit_code) + block(2, sentence.encode())))


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError("closed after %r" % data)
        data += more
    return data


def read_frame(sock):
    return read_exactly(sock, struct.unpack("<I", read_exactly(sock, 4))[0])


def fields(data):
    """{field: [value]} of one message."""
    found, i = {}, 0

    def take_varint():
        nonlocal i
        n = shift = 0
        while True:
            b = data[i]
            i += 1
            n |= (b & 0x7f) << shift
            shift += 7
            if b < 0x80:
                return n
    while i < len(data):
        key = take_varint()
        kind = key & 7
        if kind == 0:
            value = take_varint()
        elif kind == 2:
            size = take_varint()
            value = data[i:i + size]
            i += size
        else:
            size = {1: 8, 5: 4}[kind]
            value = data[i:i + size]
            i += size
        found.setdefault(key >> 3, []).append(value)
    return found


def listener():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    return s
