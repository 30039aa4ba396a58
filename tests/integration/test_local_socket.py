# SPDX-License-Identifier: Apache-2.0
"""The unix socket at which clients of this machine reach a driver."""
import contextlib
import os
import socket
import stat
import unittest

import cluster
import control

APP = """
frag: 1
application: local
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 1}]}
"""

NOBODY = 65534


class LocalSocket(cluster.ClusterTest):
    def launch(self, *flags, port=0):
        self.app = self.write("app.yaml", APP)
        d = self.driver(self.app, *flags, address="127.0.0.1:%d" % port)
        self.port = int(self.address.rsplit(":", 1)[1])
        self.socket = os.path.join(self.runtime, "frag", "%d.sock" % self.port)
        self.wait_until("its socket", self.is_there)
        return d

    def is_there(self):
        """The file is made before the driver listens on it."""
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            self.connect().close()
            return True
        return False

    def connect(self):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(cluster.PATIENCE_S)
        peer.connect(self.socket)
        return peer

    def ask(self, *frames):
        """The last answer to these frames, as {field: [value]} of its envelope."""
        with self.connect() as peer:
            for f in frames:
                peer.sendall(f)
                answer = control.fields(control.read_frame(peer))
            return answer

    def ask_as_nobody(self, frame):
        """As ask, as another user; the name of the error if it cannot even connect. The folders
        above that of the socket are closed to it, so it starts from within."""
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(os.path.dirname(self.socket))
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                with socket.socket(socket.AF_UNIX) as peer:
                    peer.settimeout(cluster.PATIENCE_S)
                    peer.connect(os.path.basename(self.socket))
                    peer.sendall(frame)
                    os.write(into, b"+" + control.read_frame(peer))
            except BaseException as e:
                os.write(into, b"-" + type(e).__name__.encode())
            finally:
                os._exit(0)
        os.close(into)
        os.waitpid(pid, 0)
        with open(out, "rb") as f:
            answer = f.read()
        return control.fields(answer[1:]) if answer[:1] == b"+" else answer[1:].decode()

    def end(self, d):
        d.signal(15)
        d.wait()

    def assert_refused(self, answer, sentence):
        refused = control.fields(answer[control.REFUSED][0])
        self.assertEqual(refused[1], [5])
        self.assertRegex(refused[2][0].decode(), sentence)

    def test_a_client_asks_and_a_worker_is_refused(self):
        d = self.launch()
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o600)
        hello = control.hello(1, control.CLIENT)
        answer = self.ask(hello, control.frame(
            control.number(1, 2) + control.block(control.REQUEST, control.number(1, 1))))
        reply = control.fields(answer[control.REPLY][0])
        self.assertEqual(control.fields(reply[1][0])[2], [b"local"])
        self.assert_refused(self.ask(control.hello(1)), "only clients")
        self.assert_refused(self.ask(control.hello(1, control.REPORTER)), "only clients")
        self.end(d)
        self.assertFalse(os.path.exists(self.socket))

    def test_the_socket_of_a_driver_that_was_killed_is_replaced(self):
        d = self.launch()
        d.kill()
        d.wait()
        self.assertTrue(os.path.exists(self.socket))
        d = self.launch(port=self.port)
        self.wait_until("the new one", lambda: self.is_answered())
        self.end(d)
        self.assertFalse(os.path.exists(self.socket))

    def is_answered(self):
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            return control.WELCOME in self.ask(control.hello(1, control.CLIENT))
        return False

    def test_silent_connections_keep_no_worker_out(self):
        d = self.launch()
        crowd = [self.connect() for _ in range(100)]
        w = self.worker(fragments="fragment1")
        self.assertEqual(d.wait(), 0, d.stderr)
        for peer in crowd:
            peer.close()
        w.signal(15)
        w.wait()

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")
    def test_other_users_connect_if_they_are_allowed(self):
        hello = control.hello(1, control.CLIENT)
        d = self.launch()
        self.assertEqual(self.ask_as_nobody(hello), "PermissionError")
        self.end(d)
        d = self.launch("--allow-user", "4711")
        self.assert_refused(self.ask_as_nobody(hello), "--allow-user")
        self.end(d)
        d = self.launch("--allow-user", str(NOBODY))
        self.assertIn(control.WELCOME, self.ask_as_nobody(hello))
        self.end(d)
        d = self.launch("--allow-user", "%d=worker" % NOBODY)
        self.assert_refused(self.ask_as_nobody(hello), "its user nobody is not for a client")
        self.end(d)
