# SPDX-License-Identifier: Apache-2.0
"""One end of a connection between two processes, by one of the peers that part_peers.py compares
with: all of them by their packages for Python, so that Python takes the same everywhere.

usage: peer.py NAME ROLE FOLDER [SIZE COUNT]
roles: ask    sends a message and waits until it comes back, COUNT times
       echo   sends back what comes, COUNT times
       send   sends COUNT numbered messages, 1,000 a second
       take   notes the number of each message that comes
       rest   does nothing
FOLDER gets what was measured, as FOLDER/ROLE.json, and what take has noted, as FOLDER/taken.
"""

import contextlib
import importlib
import json
import os
import struct
import sys
import time

PATIENCE_S = 30
WARM_UP = 20
HELLO, END = 1 << 62, 1 << 63  # in place of a number
HZ = 1000
SMALL = 64


def number_of(data):
    return struct.unpack_from("<Q", data)[0]


def message(number, size):
    return struct.pack("<Q", number) + bytes(max(0, size - 8))


def save(folder, role, **what):
    with open(os.path.join(folder, role + ".tmp"), "w", encoding="utf-8") as f:
        json.dump(what, f)
    os.rename(f.name, os.path.join(folder, role + ".json"))


def receive(end, deadline):
    while True:
        data = end.receive(0.1)
        if data is not None:
            return data
        if time.monotonic() > deadline:
            raise RuntimeError("nothing came for %d s" % PATIENCE_S)


def meet(end):
    """Until both ends know each other: what is sent before is lost with some of them."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        end.send(message(HELLO, 8))
        if end.receive(0.1) is not None:
            break
    else:
        raise RuntimeError("the other end did not answer within %d s" % PATIENCE_S)
    while end.receive(0.3) is not None:
        pass


def ask(end, folder, size, count):
    meet(end)
    text, took = message(0, size)[8:], []
    for i in range(count + WARM_UP):
        if i == WARM_UP:
            cpu = time.process_time()
        begin = time.perf_counter_ns()
        end.send(struct.pack("<Q", i) + text)
        if number_of(receive(end, time.monotonic() + PATIENCE_S)) != i:
            raise RuntimeError("another message came back")
        took.append(time.perf_counter_ns() - begin)
    cpu = time.process_time() - cpu
    took = sorted(took[WARM_UP:])
    save(
        folder,
        "ask",
        p50=took[count // 2] / 2e3,
        p99=took[count * 99 // 100] / 2e3,
        cpu=cpu / count * 1e6,
    )
    for _ in range(20):
        end.send(message(END, 8))
        time.sleep(0.01)


def echo(end, folder, size, count):
    del size
    deadline, cpu = time.monotonic() + PATIENCE_S, 0
    while True:
        data = receive(end, deadline)
        number = number_of(data)
        if number == END:
            break
        deadline = time.monotonic() + PATIENCE_S
        if number == WARM_UP:
            cpu = time.process_time()
        end.send(data)
        if number == count + WARM_UP - 1:
            save(folder, "echo", cpu=(time.process_time() - cpu) / count * 1e6)


def send(end, folder, size, count):
    """What the peer says itself of a message that it cannot deliver is counted."""
    refused = 0
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(os.path.join(folder, "ready")):
        end.send(message(HELLO, size))
        time.sleep(0.05)
        if time.monotonic() > deadline:
            raise RuntimeError("nobody takes messages")
    due = time.monotonic()
    for i in range(count):
        due += 1 / HZ
        time.sleep(max(0, due - time.monotonic()))
        try:
            refused += end.send(message(i, size)) is False
        except Exception:  # it says so
            refused += 1
    time.sleep(2)
    save(folder, "send", reported=refused + getattr(end, "reported", 0))
    for _ in range(20):
        with contextlib.suppress(Exception):
            end.send(message(END, size))
        time.sleep(0.01)


def take(end, folder, size, count):
    del size, count
    out = os.open(os.path.join(folder, "taken"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with open(os.path.join(folder, "take.pid"), "w", encoding="ascii") as f:
        f.write(str(os.getpid()))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        number = number_of(receive(end, deadline))
        deadline = time.monotonic() + PATIENCE_S
        if number == END:
            break
        if number == HELLO:
            save(folder, "ready")
            os.rename(os.path.join(folder, "ready.json"), os.path.join(folder, "ready"))
        else:
            os.write(out, b"%d\n" % number)
    save(folder, "take", reported=getattr(end, "reported", 0))


def rest(end, folder, size, count):
    del end, folder, size, count
    time.sleep(PATIENCE_S)


def main():
    name, role, folder = sys.argv[1:4]
    size, count = (int(x) for x in sys.argv[4:6]) if len(sys.argv) > 4 else (SMALL, 0)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    end = importlib.import_module("peer_" + name).End(role, folder, size)
    {"ask": ask, "echo": echo, "send": send, "take": take, "rest": rest}[role](
        end, folder, size, count
    )
    end.close()


if __name__ == "__main__":
    main()
