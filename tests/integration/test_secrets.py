# SPDX-License-Identifier: Apache-2.0
"""What only the two ends of a connection may know is nowhere else: not in logs at their most
talkative, not in environments and command lines. A relay between the daemons reads along, so the
test knows each session's id and secret, the application's key and each edge's token."""
import contextlib
import os
import signal
import socket
import struct
import threading

import cluster
import control

APP = """
frag: 1
application: secrets
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""


class Relay:
    """Listens in front of the driver, and keeps the frames that pass."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.behind = host, int(port)
        self.envelopes = []
        self.sockets = []
        self.listener = control.listener()
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                a = self.listener.accept()[0]
            except OSError:
                return
            b = socket.create_connection(self.behind)
            self.sockets += [a, b]
            for ends in ((a, b), (b, a)):
                threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink):
        data = b""
        try:
            while more := source.recv(65536):
                sink.sendall(more)
                data += more
                while len(data) >= 4 and len(data) >= 4 + struct.unpack("<I", data[:4])[0]:
                    size = 4 + struct.unpack("<I", data[:4])[0]
                    self.envelopes.append(data[4:size])
                    data = data[size:]
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for s in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def bodies(self, kind):
        envelopes = map(control.fields, list(self.envelopes))
        return [control.fields(e[kind][0]) for e in envelopes if kind in e]

    def secrets(self):
        """{what it is: as bytes, or as a number}"""
        found = {}
        for i, welcome in enumerate(self.bodies(control.WELCOME)):
            found["session %d" % i] = welcome[1][0]
            found["secret of session %d" % i] = welcome[6][0]
        for create in self.bodies(control.HOST_CREATE):
            found["data key"] = create[6][0]
        for wire in self.bodies(control.HOST_WIRE):
            for edge in map(control.fields, wire[2]):
                found["token of a flow"] = edge[7][0]
        return found


def spellings(secret):
    """How somebody might have written it."""
    if isinstance(secret, int):
        return [b"%d" % secret, b"%x" % secret, b"%X" % secret]
    words = struct.unpack("<%dQ" % (len(secret) // 8), secret)
    text = [secret.hex(), secret.hex().upper(), secret.hex(" "), secret.hex(":")]
    numbers = [s for w in words for s in (b"%d" % w, b"%x" % w)]
    return [secret, *(t.encode() for t in text), *numbers]


class Secrets(cluster.ClusterTest):
    def launch(self):
        """Two workers, which run the application over the relay."""
        d = self.driver(self.write("app.yaml", APP % {"folder": self.folder}))
        relay = Relay(self.address)
        self.addCleanup(relay.close)
        workers = [self.worker(fragments=f, address=relay.address)
                   for f in ("fragment1", "fragment2")]
        self.wait_flowing(d, 20)
        return d, workers, relay.secrets()

    def assert_absent(self, secrets, place, data):
        for name, secret in secrets.items():
            for spelling in spellings(secret):
                self.assertNotIn(spelling, data, "the %s stands in %s" % (name, place))

    def test_none_is_in_logs_environments_and_command_lines(self):
        self.env["FRAG_LOG_LEVEL"] = "trace"
        d, workers, secrets = self.launch()
        self.assertEqual(len(secrets), 6, "two sessions, one application, one flow: %r" % list(secrets))
        pids = self.ours(reporters=True)
        self.assertEqual(len(pids), 7, pids)
        for pid in pids:
            for name in ("environ", "cmdline"):
                with open("/proc/%d/%s" % (pid, name), "rb") as f:
                    self.assert_absent(secrets, "%s of %s" % (name, pids[pid]), f.read())
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        for w in workers:
            w.signal(signal.SIGTERM)
            w.wait()
        self.assertIn("session 1: new -> live", d.stderr)
        self.assertIn("hello sent -> attached", workers[0].stderr)
        for p in [d, *workers]:
            for stream in ("stdout", "stderr"):
                text = p.text(stream)
                self.assert_absent(secrets, "%s of %s" % (stream, p.command[0]), text.encode())
        self.assertEqual(os.listdir(self.scratch), [])

    def ask(self, *args, **kwargs):
        """What the driver answers to a HELLO: {field: [value]} of the envelope."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), cluster.PATIENCE_S) as peer:
            peer.sendall(control.hello(1, *args, **kwargs))
            return control.fields(control.read_frame(peer))

    def test_the_id_of_a_session_is_of_no_use_without_its_secret(self):
        d, workers, secrets = self.launch()
        for session in (v for k, v in secrets.items() if k.startswith("session")):
            for secret in (b"", bytes(16), b"x" * 16):
                answer = self.ask(control.REPORTER, session=session, secret=secret)
                refused = control.fields(answer[control.REFUSED][0])
                self.assertEqual(refused[1], [5])
                self.assertIn(b"session", refused[2][0])
                answer = self.ask(session=session, secret=secret)
                welcome = control.fields(answer[control.WELCOME][0])
                self.assertNotEqual(welcome[1], [session])
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertNotIn("came back", d.stderr)
