# SPDX-License-Identifier: Apache-2.0
"""What every run of the torture stands on: an application over two workers that writes down the
truth, and the questions that are asked of it afterwards.
"""
import collections
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration")
)

import cluster  # noqa: E402

WINDOW = 4
BEAT_MS, DEAD_MS = 100, 1200

STREAM = """
frag: 1
application: tortured
arguments:
  count: {default: "0"}
  size: {default: "8"}
  tx_pause: {default: 0s}
  rx_pause: {default: 0s}
  policy: {default: block}
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", size: "${size}", pause: "${tx_pause}"}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", pause: "${rx_pause}"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, policy: "${policy}", edge: "${edge}"}
"""

VIDEO = """
frag: 1
application: tortured
arguments:
  count: {default: "0"}
  size: {default: "8", help: of the stream alone}
  tx_pause: {default: 0s}
  rx_pause: {default: 0s}
  edge: {default: auto}
  policy: {default: block}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      replayer: {type: video_replayer, parameters: {path: "%(clip)s", realtime: false, repeat: true, count: "${count}"}}
      tx: {type: truth_tap, parameters: {file: "%(folder)s/sent", side: sent, pause: "${tx_pause}"}}
    flows:
      - replayer.output -> tx.in
  fragment2:
    operators:
      rx: {type: truth_tap, parameters: {file: "%(folder)s/received", side: received, pause: "${rx_pause}"}}
      conv: {type: format_converter, parameters: {out_dtype: rgb888}}
      motion: {type: motion_boxes, parameters: {min_area: 50}}
      recorder: {type: video_recorder, parameters: {path: "%(folder)s/out.mp4", overwrite: true}}
      picture: {type: image_writer, parameters: {path: "%(folder)s/frame.png", frame: 5}}
    flows:
      - rx.out -> conv.source_video
      - conv.tensor -> motion.in
      - {from: motion.out, to: [recorder.input, picture.in]}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: "${edge}"}
"""

CHAIN = """
frag: 1
application: tortured
arguments:
  count: {default: "0"}
  size: {default: "8"}
  tx_pause: {default: 0s}
  rx_pause: {default: 0s}
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", size: "${size}", pause: "${tx_pause}"}}
  fragment2:
    operators:
      got: {type: truth_tap, parameters: {file: "%(folder)s/got", side: received}}
      gave: {type: truth_tap, parameters: {file: "%(folder)s/gave", side: sent}}
    flows:
      - got.out -> gave.in
  fragment3:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", pause: "${rx_pause}"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.got.in, edge: "${edge}"}
  - {from: fragment2.gave.out, to: fragment3.rx.in, edge: "${edge}"}
"""

# What an application gets that shares a variable too: one host writes it, another waits for it.
VARIABLE = (
    ("extensions: [libtruth.so]\n",
     "extensions: [libtruth.so, libsharer.so]\n"
     "variables: {noted: {type: f64, writer: fragment1.teller, readers: [fragment2.hearer]}}\n"),
    ("fragment1:\n    operators:\n",
     "fragment1:\n    operators:\n      teller: {type: sharer, parameters: "
     "{steps: [must write noted 7, must unmap noted, must publish noted]}}\n"),
    ("fragment2:\n    operators:\n",
     "fragment2:\n    operators:\n      hearer: {type: sharer, parameters: {steps: [must await noted]}}\n"),
)
HEARD = "must await noted: 0 7"  # what the reader logs

APPS = {"stream": STREAM, "video": VIDEO, "chain": CHAIN}
# The flows between hosts, each with the files of its ends.
ROWS = {"stream": (("fragment1.tx.out", "sent", "received"),), "video": (("fragment1.tx.out", "sent", "received"),),
        "chain": (("fragment1.tx.out", "sent", "got"), ("fragment2.gave.out", "gave", "received"))}


def make_clip(path):
    """A small clip with something that moves."""
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=25:duration=4",
                    "-pix_fmt", "yuv420p", path], check=True, stdin=subprocess.DEVNULL, timeout=120)
    return path


def have_video():
    return (shutil.which("ffmpeg") is not None and
            os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")))


def descriptors(pid):
    """What a process holds open, counted by kind; ports, inode numbers and the like left out."""
    kinds = collections.Counter()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        kinds[re.sub(r":?\[?\d+\]?$", "", target)] += 1
    return kinds


class World(cluster.ClusterTest):
    """One run: a driver, two workers, the truth."""

    def runTest(self):
        """unittest wants to see one; a run is started by its own method."""

    def open(self, app="stream", clip=None, quick=True, variable=False):
        """variable: its hosts, of one machine, share one."""
        self.setUp()
        self.choose_app(app, clip, quick, variable)

    def choose_app(self, app="stream", clip=None, quick=True, variable=False):
        self.env["FRAG_LOG_LEVEL"] = "debug"
        if quick:
            self.env.update(FRAG_BEAT_MS=str(BEAT_MS), FRAG_DEAD_MS=str(DEAD_MS))
        self.rows = ROWS[app]
        text = APPS[app] % {"folder": self.folder, "clip": clip}
        for old, new in VARIABLE if variable else ():
            text = text.replace(old, new)
        self.app = self.write("app.yaml", text)
        self.named = {}

    def launch(self, once=(True, True), driver_flags=(), driver_prefix=(), worker_flags=(),
               **arguments):
        """The driver and its workers a, b and so on; the terminal of each is kept under its
        name."""
        words = []
        for name, value in arguments.items():
            words += ["--" + name, str(value)]
        self.d = self.driver(self.app, "--output", "json", *driver_flags, app_args=words,
                             prefix=driver_prefix)
        self.named["driver"] = self.d
        self.workers = []
        self.seen = [0] * len(once)  # of what each has written, before this
        for i, name in enumerate("abc"[:len(once)]):
            flags = ["--name", name, *worker_flags] + (["--once"] if once[i] else [])
            self.workers.append(self.worker(*flags, fragments="fragment%d" % (i + 1)))
            self.named[name] = self.workers[i]

    def received(self):
        """Messages that have come so far, by the receiver's own account."""
        try:
            return os.path.getsize(self.path("received")) // 8
        except FileNotFoundError:
            return 0

    def wait_received(self, count):
        self.wait_until(
            "%d messages" % count,
            lambda: self.received() >= count or self.d.child.poll() is not None,
        )

    def states(self):
        """(unix time, state) of the application, as the driver wrote them down. The first host that
        is done drains it."""
        found = []
        for line in self.d.stderr.splitlines():
            m = re.match(r"(\S+)Z debug driver .*: (run \d+|host .*): \w+ -> (\w+)$", line)
            if m and (m.group(2).startswith("run") or m.group(3) == "done"):
                t = datetime.datetime.fromisoformat(m.group(1)).replace(
                    tzinfo=datetime.timezone.utc
                )
                found.append((t.timestamp(), "draining" if m.group(3) == "done" else m.group(3)))
        return found

    def state_at(self, when):
        """The state at a moment, of those that were not already its consequence. Lines carry
        milliseconds, cut off."""
        state = "new"
        for t, name in self.states():
            if name in ("failing", "killing"):
                break
            if t <= when:
                state = name
        return state

    def truth(self, name):
        return cluster.sequence(self.path(name)) if os.path.exists(self.path(name)) else []

    def assert_complete(self, summary, result, drops=False):
        """Everything that was sent has arrived, or was dropped where the policy says so, by all
        accounts."""
        self.assertEqual(summary["result"], result)
        self.assert_balanced(summary)
        for name, sent, received in self.rows:
            row, sent, received = self.flow(summary, name), self.truth(sent), self.truth(received)
            self.assertEqual(sent, list(range(1, len(sent) + 1)))
            self.assert_picked(received, sent, drops)
            self.assertEqual(received if not drops else sent, sent)
            self.assertEqual((row["sent"], row["delivered"]), (len(sent), len(received)), row)
        for f in summary["flows"]:
            self.assertEqual((f["lost"], f["in_flight"]), (0, 0), f)
            if not drops:
                self.assertEqual(sum(f["dropped"].values()), 0, f)

    def assert_picked(self, received, sent, drops):
        """What has come is what was sent, in order, once, and all of it unless the policy drops."""
        self.assertEqual(received, sorted(set(received)))
        if not drops:
            self.assertEqual(received, list(range(1, len(received) + 1)))
        # One who is killed between his deed and his line has done more than he wrote.
        self.assertLessEqual(received[-1:], [len(sent) + 1])

    def assert_truth(self, summary, drops=False):
        """After a failure: nothing that is missing goes uncounted, and no more than the window is
        counted too many."""
        for name, sent, received in self.rows:
            sent, received = self.truth(sent), self.truth(received)
            self.assertEqual(sent, list(range(1, len(sent) + 1)))
            self.assert_picked(received, sent, drops)
            if summary["flows"]:
                self.assert_row(self.flow(summary, name), sent, received, drops)
            else:
                self.assertEqual((sent, received), ([], []))

    def assert_row(self, row, sent, received, drops):
        truth = len(sent) - len(received)
        gone = row["lost"] + sum(row["dropped"].values()) + row["in_flight"]
        words = "%d sent, %d received: %r" % (len(sent), len(received), row)
        self.assertGreaterEqual(gone + 1, truth, words)
        if drops:  # both ends told their last: what was dropped is known, and the rest is exact
            truth -= sum(row["dropped"].values())
        self.assertLessEqual(row["lost"], max(truth, 0) + (0 if row["exact"] else WINDOW) + 1, words)
        self.assertLessEqual(row.get("lost_at_least", row["lost"]), max(truth, 0) + 1, words)

    def assert_clean_logs(self, but=None):
        """but: what stands before each line of a host that may crash."""
        for name, p in self.named.items():
            for line in p.stderr.splitlines():
                if but is not None and but in line:
                    continue
                self.assertNotRegex(line, r"please report it|Sanitizer|runtime error|Assertion|panic", name)

    def end_worker(self, worker, idle):
        """One that serves on: it holds what an idle one holds, and ends when told."""
        allowed = idle + collections.Counter(socket=1)

        def back():
            extra = descriptors(worker.pid) - allowed
            return not extra
        self.wait_until("descriptors of workerd as when idle: %r" % (descriptors(worker.pid) - allowed), back)
        worker.signal(signal.SIGTERM)
        self.assertEqual(worker.wait(), 0, worker.stderr)

    def keep(self, folder, words):
        """Everything about this run, for whoever looks into it."""
        shutil.rmtree(folder, True)
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("*.sock"))
        with open(os.path.join(folder, "what"), "w") as f:
            f.write(words)
        for name, p in self.named.items():
            for stream in ("stdout", "stderr"):
                with open(os.path.join(folder, "%s.%s" % (name, stream)), "w") as f:
                    f.write(p.text(stream) + "\n")

    def close(self):
        self.doCleanups()


class Bystander:
    """An application of another driver, with its own workers, that must not notice anything."""

    def __init__(self, env=()):
        self.world = World()
        self.world.open(quick=False)
        del self.world.env["FRAG_LOG_LEVEL"]
        self.world.env.update(env)
        self.world.launch(tx_pause="5ms")
        self.world.wait_received(10)

    def check_goes_on(self):
        seen = self.world.received()
        self.world.wait_received(seen + 5)
        self.world.assertIsNone(self.world.d.child.poll(), "the bystander ended:\n" + self.world.d.stderr)

    def end(self):
        w = self.world
        w.d.signal(signal.SIGTERM)
        w.assertEqual(w.d.wait(), 0, w.d.stderr)
        for p in w.workers:
            w.assertEqual(p.wait(), 0, p.stderr)
        w.assert_complete(w.summary(w.d), "stopped")
        w.assert_nothing_left()
        return w.received()


class Load:
    """Something for the processors to do."""

    def __init__(self, count):
        self.children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def end(self):
        for c in self.children:
            c.kill()
            c.wait()


class Watch:
    """How long a thread that only sleeps is kept from running: a machine that stands still proves
    nothing."""

    STEP_S = 0.01

    def __init__(self):
        self._worst_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        before = time.monotonic()
        while not self._over.wait(self.STEP_S):
            now = time.monotonic()
            self._worst_s = max(self._worst_s, now - before - self.STEP_S)
            before = now

    def worst_s(self):
        """Since the last call."""
        worst_s, self._worst_s = self._worst_s, 0.0
        return worst_s

    def end(self):
        self._over.set()
        self._thread.join()


def idle_worker():
    """What a workerd holds open that has served nobody yet, and is not connected."""
    world = World()
    world.open()
    try:
        worker = world.worker(address="127.0.0.1:%d" % world.free_port())
        worker.wait_line("(?i)waiting")
        time.sleep(0.1)
        return descriptors(worker.pid)
    finally:
        world.close()
