# SPDX-License-Identifier: Apache-2.0
"""Where the time of a running application goes, as its driver sends it to whoever looks."""
import json
import os
import signal
import socket
import time

import cluster
import control

LOOK, LOOKED = 104, 105
ANSWER, TAP, TAPPED, PASSED = 42, 107, 108, 111
SECOND = 1000000000
NONE = 2**32 - 1
USES = ("busy", "input", "room", "memory", "thread", "time", "suspended")

APP = """
frag: 1
application: slow
arguments:
  fail_at: {default: 1000000}
extensions: [libtruth.so]
fragments:
  source:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms}}
  sink:
    on_failure: {policy: restart}
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", pause: 20ms, fail: crash, fail_at: "${fail_at}"}}
flows:
  - {from: source.tx.out, to: sink.rx.in}
"""


def numbers(field):
    """A repeated number, packed or not."""
    found = []
    for part in field:
        if isinstance(part, int):
            found.append(part)
            continue
        while part:
            n = next(i for i, b in enumerate(part) if b < 0x80) + 1
            found.append(sum((b & 0x7f) << 7 * i for i, b in enumerate(part[:n])))
            part = part[n:]
    return found


def text(message, field):
    return message.get(field, [b""])[0].decode()


class Looker:
    """A client that looks; each window is {operator: {use: ns}} and more of the tables."""

    def __init__(self, address, name="", every_ns=0, once=False):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(20)
        self.socket.sendall(control.hello(1, control.CLIENT))
        self.ask(name, every_ns, once)

    def ask(self, name, every_ns=0, once=False):
        self.socket.sendall(control.envelope(
            LOOK,
            control.block(1, name.encode()) + control.number(2, every_ns) + control.number(3, once),
            seq=2))

    def close(self):
        self.socket.close()

    def next(self):
        while True:
            self.socket.sendall(control.envelope(control.BEAT, seq=3))
            envelope = control.fields(control.read_frame(self.socket))
            if LOOKED in envelope:
                return self.tables(control.fields(envelope[LOOKED][0]))

    def measured(self):
        while True:
            window = self.next()
            if window["window_ns"] and window["operators"]:
                return window

    @staticmethod
    def tables(looked):
        look = control.fields(looked[1][0])
        operators = {}
        for row in map(control.fields, look.get(5, [])):
            use = numbers(row.get(4, []))
            operators[text(row, 1)] = {
                **dict(zip(USES, use + [0] * (len(USES) - len(use)))),
                "ticks": row.get(8, [0])[0],
                "input_flow": row.get(5, [0])[0],
                "room_flow": row.get(6, [0])[0],
            }
        hosts = [numbers(h.get(8, [])) for h in map(control.fields, look.get(7, []))]
        flows = [numbers(f.get(10, [])) for f in map(control.fields, look.get(6, []))]
        return {
            "application": text(look, 1),
            "window_ns": look.get(3, [0])[0],
            "operators": operators,
            "flows": flows,
            "hosts": hosts,
            "workers": [numbers(w.get(3, [])) for w in map(control.fields, look.get(8, []))],
            "cause": text(look, 11),
            "is_last": looked.get(2, [0])[0],
        }


class Look(cluster.ClusterTest):
    def begin(self, *app_args):
        app = self.write("app.yaml", APP % {"folder": self.folder})
        d = self.driver(app, app_args=app_args)
        for name in ("source", "sink"):
            self.worker("--once", "--name", name, fragments=name)
        self.wait_until("messages", lambda: os.path.exists(self.path("received"))
                        and os.path.getsize(self.path("received")) > 80)
        return d

    def end(self, d):
        d.signal(15)
        d.wait()
        self.assert_nothing_left()

    def assert_whole(self, window):
        for name, op in window["operators"].items():
            self.assertEqual(sum(op[use] for use in USES), window["window_ns"], name)

    def test_a_source_waits_for_room_and_its_sink_is_busy(self):
        d = self.begin()
        self.assertEqual(self.looking_threads(), 0)
        looker = Looker(self.address, "slow")
        looker.measured()
        window = looker.measured()
        self.assertEqual(self.looking_threads(), 2)
        self.assert_whole(window)
        tx, rx = window["operators"]["source.tx"], window["operators"]["sink.rx"]
        ns = window["window_ns"]
        self.assertAlmostEqual(ns, SECOND, delta=SECOND / 2)
        self.assertGreater(rx["busy"], 0.9 * ns)
        self.assertGreater(tx["room"], 0.6 * ns, tx)
        self.assertEqual((tx["room_flow"], tx["input_flow"], rx["room_flow"]), (0, NONE, NONE))
        sent, delivered, _, lost, full = (window["flows"][0] + [0] * 5)[:5]
        self.assertAlmostEqual(rx["ticks"], 50 * ns / SECOND, delta=12)
        self.assertAlmostEqual(sent, delivered, delta=5)
        self.assertEqual(lost, 0)
        self.assertGreater(full, 0.7 * ns)
        for host in window["hosts"]:
            cpu, rss = host[0], host[3]
            self.assertTrue(0 < cpu < ns, window)
            self.assertGreater(rss, 1 << 20)
        self.assertEqual(len(window["workers"]), 2)
        self.assertIn("sink.rx", window["cause"])
        looker.close()
        self.wait_until("nobody looks", lambda: self.looking_threads() == 0, timeout=10)
        self.end(d)

    def test_one_window_is_all_that_was_asked_for(self):
        d = self.begin()
        begun = time.monotonic()
        looker = Looker(self.address, every_ns=SECOND // 2, once=True)
        window = looker.measured()
        self.assertGreater(time.monotonic() - begun, 0.45)
        self.assertTrue(window["is_last"])
        self.assert_whole(window)
        self.wait_until("nobody looks", lambda: self.looking_threads() == 0, timeout=10)
        looker.close()
        self.end(d)

    def test_a_look_that_cannot_be_is_answered(self):
        d = self.begin()
        looker = Looker(self.address, "nobody")
        answer = control.fields(control.read_frame(looker.socket))
        while 42 not in answer:
            answer = control.fields(control.read_frame(looker.socket))
        self.assertEqual(answer[2], [2], "the answer to its look")
        self.assertIn(b"there is no application nobody", answer[42][0])
        looker.ask("slow")
        self.assertEqual(looker.measured()["application"], "slow")
        looker.socket.sendall(control.envelope(LOOK, control.number(2, 2**64 - 1)))
        with self.assertRaises((EOFError, ConnectionError)):
            while True: # a window of less than no time is no frame of a client
                control.read_frame(looker.socket)
        looker.close()
        self.end(d)

    def test_a_restart_is_time_in_which_nothing_ran(self):
        d = self.begin("--fail_at", "30")
        looker = Looker(self.address, every_ns=SECOND // 4)
        for _ in range(40):
            window = looker.measured()
            self.assert_whole(window)
            if window["operators"]["sink.rx"]["suspended"] > 0.1 * window["window_ns"]:
                break
        else:
            self.fail("it was never suspended")
        looker.close()
        self.end(d)


if __name__ == "__main__":
    cluster.main()


PICTURES = """
frag: 1
application: cam
extensions: [libtruth.so]
fragments:
  source:
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {rows: 400, columns: 300, channels: 3, tensor_name: frame}
        conditions: [{type: periodic, recess_period: 5ms}]
      rx: {type: ping_tensor_rx}
    flows: [tx.out -> rx.in]
  count:
    operators:
      tx:
        type: truth_tx
        parameters: {file: "%(folder)s/sent"}
        conditions: [{type: periodic, recess_period: 5ms}]
  sink:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - count.tx.out -> sink.rx.in
"""


class Echo(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.d = self.driver(self.write("app.yaml", PICTURES % {"folder": self.folder}))
        for name, fragments in (("a", "source,count"), ("b", "sink")):
            self.worker("--once", "--name", name, "-q", fragments=fragments)
        self.wait_flowing(self.d, 10)

    def echo(self, *args):
        return self.start("fragctl", "echo", "--address", self.address, "cam", *args)

    def documents(self, *args):
        p = self.echo(*args, "-o", "json")
        self.assertEqual(p.wait(), 0, p.stderr)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def test_what_passes_is_printed(self):
        p = self.echo("count.tx", "-n", "3")
        self.assertEqual((p.wait(), p.stderr), (0, ""))
        self.assertRegex(p.stdout, r"\A(#\d+ +i64 \d+\n?){3}\Z")
        seen = [int(line.split()[0][1:]) for line in p.stdout.splitlines()]
        self.assertEqual((seen[0], sorted(set(seen))), (1, seen))
        first, second = self.documents("source.tx.out -> source.rx", "-n", "2")
        self.assertEqual((first["output"], first["seen"], first["dropped"], first["message"]["type"]), ("source.tx.out", 1, 0, None))
        self.assertEqual([t["name"] for t in first["message"]["tensors"]], ["frame"])
        tensor = first["message"]["tensors"][0]["tensor"]
        self.assertEqual((tensor["dtype"], tensor["shape"], tensor["device"]), ("uint8", [400, 300, 3], "cpu"))
        self.assertEqual(len(set(tensor["data"][:8])), 1)
        self.assertAlmostEqual(second["seen"] - first["seen"], 20, delta=18)
        self.assertAlmostEqual((second["unix_ns"] - first["unix_ns"]) / 1e9, 0.1, delta=0.09)
        self.assertAlmostEqual(first["unix_ns"] / 1e9, time.time(), delta=20)
        for args, code, words in ((("tx", "-n", "1"), 2, 'cam has no flow "tx"; write source.tx.out, or'),
                                  (("ount", "-n", "1"), 2, 'write count.tx.out, or what `fragctl top cam` shows'),
                                  (("count.tx", "-n", "0"), 2, "not a number of messages"),
                                  (("count.tx", "--every", "10ms"), 2, "at least 100ms"), ((), 2, "name an application and a flow")):
            p = self.echo(*args)
            self.assertEqual(p.wait(), code, p.stderr)
            self.assertIn(words, p.stderr)

    def test_pictures_go_into_files(self):
        rows = self.documents("source", "-n", "2", "--pictures", self.scratch)
        self.assertEqual([os.path.basename(row["picture"]) for row in rows], ["source.tx.out-000001.ppm", "source.tx.out-000002.ppm"])
        with open(rows[1]["picture"], "rb") as f:
            head, pixels = f.read().split(b"\n255\n", 1)
        self.assertEqual(head, b"P6\n150 200")
        self.assertEqual((len(pixels), set(pixels)), (150 * 200 * 3, {rows[1]["message"]["tensors"][0]["tensor"]["data"][0]}))
        for row in rows:
            os.unlink(row["picture"])
        self.assertIsNone(self.documents("source", "-n", "1")[0]["picture"])

    def largest_gap(self, echo):
        seen = [row["seen"] for row in self.rows(echo)]
        return max(b - a for a, b in zip(seen, seen[1:]))

    def test_an_echo_that_does_not_read_slows_nothing(self):
        p = self.echo("source", "--pictures", self.scratch, "-o", "json")
        self.wait_until("a picture", lambda: p.stdout.count("\n") > 1)
        p.signal(signal.SIGSTOP)
        before = os.path.getsize(self.path("received"))
        self.wait_until("400 messages of another flow of the host",
                        lambda: os.path.getsize(self.path("received")) >= before + 400 * 8)
        p.signal(signal.SIGCONT)
        self.wait_until("what was dropped", lambda: any(row["dropped"] for row in self.rows(p)))
        self.wait_until("that the flow went on", lambda: self.largest_gap(p) > 100)
        p.signal(signal.SIGINT)
        p.wait()
        for name in os.listdir(self.scratch):
            os.unlink(os.path.join(self.scratch, name))

    def test_an_echo_and_a_top_that_were_paused_for_long_go_on_and_name_the_gap(self):
        """The driver has ended their connections meanwhile."""
        gaps = (r"goes on, and counts from 1; what passed in the (\S+) s before is not shown",
                r"goes on; the (\S+) s before have no window")
        readers = (self.echo("source", "-o", "json"),
                   self.start("fragctl", "top", "--address", self.address, "cam", "-o", "json"))
        for p in readers:
            self.wait_until("a line", lambda p=p: p.stdout.count("\n") > 1)
            self.assertNotIn("goes on", p.stderr)
            p.signal(signal.SIGSTOP)
        self.d.wait_line("client fragctl left: it has not been heard")
        self.d.wait_line("client fragctl#2 left: it has not been heard")
        for p, gap in zip(readers, gaps):
            p.signal(signal.SIGCONT)
            p.wait_line("lost the driver at .*; connects again")
            named = float(p.wait_line(gap).group(1))
            shown = p.stdout.count("\n")
            self.wait_until("lines again", lambda p=p, shown=shown: p.stdout.count("\n") > shown + 1)
            p.signal(signal.SIGINT)
            p.wait()
            rows = [row.get("applications", [row])[0] for row in self.rows(p)]
            missing = [(b["unix_ns"] - b.get("window_ns", 0) - a["unix_ns"]) / SECOND for a, b in zip(rows, rows[1:])]
            self.assertTrue(any(abs(named - s) < 0.1 for s in missing), (named, missing))

    @staticmethod
    def rows(p):
        whole = p.stdout.rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def test_it_ends_with_the_application(self):
        p = self.echo("count.tx", "-n", "100000")
        self.wait_until("messages", lambda: p.stdout.count("\n") > 1)
        self.d.signal(15)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assert_nothing_left()


class FromAnybody(cluster.ClusterTest):
    """What a host says of a message may be anything, and a driver passes it on unread."""

    def echo(self, passed, *args):
        server = control.listener()
        p = self.start("fragctl", "echo", "--address", "127.0.0.1:%d" % server.getsockname()[1],
                       "app", "tx", "-n", "1", *args)
        peer = server.accept()[0]
        control.read_frame(peer)
        peer.sendall(control.envelope(
            control.WELCOME, control.number(1, 7) + control.block(2, b"client") +
            control.number(3, SECOND) + control.number(4, 10 * SECOND)))
        asked = control.fields(control.read_frame(peer))
        self.assertIn(TAP, asked)
        self.answer(peer, asked, ANSWER, control.block(2, b"app.tx.out"))
        self.answer(peer, asked, TAPPED, control.block(2, passed))
        code = p.wait()
        peer.close()
        server.close()
        return code, p.stdout, p.stderr

    @staticmethod
    def answer(peer, asked, kind, body):
        peer.sendall(control.frame(control.number(1, 3) + control.number(2, asked[1][0]) +
                                   control.block(kind, body)))

    def test_what_is_no_message_is_refused(self):
        refusal = "fragctl: a host sent what is no message of a flow; install the same version"
        picture = control.number(10, 9) + control.number(11, 9) + control.number(12, 3)
        for passed in (b"", b"\0\0\0\0", b"\xff" * 40, control.envelope(control.BEAT),
                       control.envelope(PASSED, picture),
                       control.envelope(PASSED, picture + control.block(14, b"x" * 242))):
            self.assertEqual(self.echo(passed)[::2], (1, refusal), passed)
        whole = control.envelope(PASSED, picture + control.block(14, b"x" * 243))
        self.assertEqual(self.echo(whole), (0, "#0     ", ""))

    def test_what_is_no_json_is_a_text(self):
        message = (control.block(4, b"i64") + control.block(5, b'1, "seen": 99') +
                   control.block(6, b"{") +
                   control.block(7, control.block(1, b'a"b') + control.block(2, b'{"dtype": 1')))
        code, out, errors = self.echo(control.envelope(PASSED, message), "-o", "json")
        self.assertEqual(code, 0, errors)
        row = json.loads(out)
        self.assertEqual(row["seen"], 0)
        self.assertEqual(row["message"], {
            "type": "i64", "value": '1, "seen": 99', "metadata": "{", "tensors_left_out": 0,
            "tensors": [{"name": 'a"b', "tensor": '{"dtype": 1'}]})
