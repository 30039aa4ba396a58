# SPDX-License-Identifier: Apache-2.0
"""A TCP link that takes its time, differently in each direction: it stands in front of a range of
ports and passes on what comes after a delay that may change from moment to moment."""
import asyncio
import socket
import threading
import time

PORTS = 10
HERE = "127.0.0.1"


def free_range():
    """The first of so many ports that nobody uses at this moment."""
    for base in range(21000 + int(time.monotonic() * 1000) % 9000, 32000, PORTS):
        sockets = [socket.socket() for _ in range(PORTS)]
        try:
            for i, s in enumerate(sockets):
                s.bind((HERE, base + i))
            return base
        except OSError:
            continue
        finally:
            for s in sockets:
                s.close()
    raise AssertionError("no %d ports are free" % PORTS)


class SlowLink:
    """In front of ports base to base + PORTS - 1 of 127.0.0.1. delay(to_server) returns seconds."""

    def __init__(self, address, delay):
        self.address, self.delay = address, delay
        self.base = free_range()
        self.bytes = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result(10)

    def flags(self):
        """Of a worker behind it."""
        ports = "%d-%d" % (self.base, self.base + PORTS - 1)
        return ("--worker-address", "%s:%s" % (HERE, ports), "--announce-address", "%s:%s" % (self.address, ports))

    async def listen(self):
        for port in range(self.base, self.base + PORTS):
            await asyncio.start_server(lambda r, w, to=port: self.serve(to, r, w), self.address,
                                       port)

    async def serve(self, port, reader, writer):
        try:
            there = await asyncio.open_connection(HERE, port)
            for w in (writer, there[1]):
                w.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # nobody listens there, or the one who asked has gone
            writer.close()
            return
        for to_server, (r, w) in ((True, (reader, there[1])), (False, (there[0], writer))):
            queue = asyncio.Queue()
            asyncio.ensure_future(self.take(r, queue, to_server))
            asyncio.ensure_future(self.give(w, queue))

    async def take(self, reader, queue, to_server):
        """In order: what comes later is not passed on earlier."""
        due, data = 0, b"more"
        while data:
            try:
                data = await reader.read(65536)
            except OSError:
                data = b""
            self.bytes += len(data)
            due = max(due, self.loop.time() + self.delay(to_server))
            queue.put_nowait((due, data))

    async def give(self, writer, queue):
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - self.loop.time()))
            if not data:
                writer.close()
                return
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
