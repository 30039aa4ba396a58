# SPDX-License-Identifier: Apache-2.0
"""fragctl top and explain: where the time of running applications goes, and why they are slow."""
import contextlib
import fcntl
import html
import json
import os
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
import unittest

import cluster
import test_nodes
from busy import busy

APP = """
frag: 1
application: app
extensions: [libslow.so]
fragments:
  front:
%(front)s
  back:
%(back)s
flows:
  - %(flow)s
"""
CAMERA = "    operators:\n      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: %s}]%s}\n"
SINK = "    operators:\n      rx: {type: slow_rx, parameters: {%s}%s}\n"
TWO = (CAMERA % ("30hz", "") + "      a: {type: slow, parameters: {sleep_ms: %d}}\n"
       "    flows: [{from: tx.out, to: a.in, capacity: 4}]\n")
LINE = "front.tx.out -> back.rx.in"


def application(front=CAMERA % ("30hz", ""), back=SINK % ("sleep_ms: 55", ""), flow=LINE):
    return APP % {"front": front, "back": back, "flow": flow}


# What is planted: graph, kind and operator of the cause, a part of its sentence.
PLANTED = {
    "slow operator": (application(), "operator", "back.rx", "front.tx is slow ("),
    "two slow in a row": (
        application(front=TWO % 50, back=SINK % ("sleep_ms: 60", ""), flow="front.a.out -> back.rx.in"),
        "operator", "back.rx", "because back.rx computes"),
    "two slow in a row, the first one slower": (
        application(front=TWO % 60, back=SINK % ("sleep_ms: 50", ""), flow="front.a.out -> back.rx.in"),
        "operator", "front.a", "because front.a computes"),
    "a slow operator that drops": (
        application(flow="{from: front.tx.out, to: back.rx.in, policy: pop}"), "operator", "back.rx",
        "front.tx.out -> back.rx.in drops"),
    "too few threads": (
        application(back="    scheduler: {type: greedy}\n"
                         "    operators:\n      a: {type: slow, parameters: {sleep_ms: 20}}\n"
                         "      b: {type: slow, parameters: {sleep_ms: 20}}\n"
                         "      rx: {type: slow_rx, parameters: {sleep_ms: 20}}\n"
                         "    flows: [a.out -> b.in, b.out -> rx.in]\n", flow="front.tx.out -> back.a.in"),
        "threads", None, "1 thread for 3 operators"),
    # A message holds the only block while it passes three operators, each busy a third of the time.
    "an exhausted pool": (
        application(front="    resources: {frames: {type: block_memory_pool, block_size: 64KB, num_blocks: 1}}\n"
                          "    operators:\n      tx:\n        type: ping_tensor_tx\n"
                          "        parameters: {allocator: $frames, rows: 64, columns: 64}\n        conditions:\n"
                          "          - {type: periodic, recess_period: 50hz}\n"
                          "          - {type: memory_available, allocator: $frames, min_blocks: 1}\n"
                          "      a: {type: slow, parameters: {sleep_ms: 20}}\n    flows: [tx.out -> a.in]\n",
                    back="    operators:\n      b: {type: slow, parameters: {sleep_ms: 20}}\n"
                         "      rx: {type: slow_rx, parameters: {sleep_ms: 20}}\n    flows: [b.out -> rx.in]\n",
                    flow="front.a.out -> back.b.in"),
        "pool", "front.tx", "for memory of frames"),
    "a rate set too low": (
        application(front=CAMERA % ("10hz", ", rate: 30hz"), back=SINK % ("sleep_ms: 1", ", budget: 1ms")),
        "clock", "front.tx", "ticks every 100 ms (10 /s)"),
    "a restart": (
        application(back="    on_failure: {policy: restart, intensity: 1000, period: 60s}\n" +
                    SINK % ("sleep_ms: 1, crash_at: 20", "")), "suspended", "back.rx", "host back does not run"),
}


class TopTest(cluster.ClusterTest):
    def launch(self, text):
        self.d = self.driver(self.write("app.yaml", text))
        for name in ("front", "back"):
            self.worker("--once", "--name", name, fragments=name)
        self.d.wait_line("app: runs in 2 hosts")

    def end(self):
        self.d.signal(signal.SIGTERM)
        self.d.wait()
        self.assert_nothing_left()

    def fragctl(self, *args, code=0):
        r = subprocess.run([os.path.join(cluster.BIN, "fragctl"), *args, "--address", self.address], env=self.env,
                           cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, check=False)
        self.assertEqual(r.returncode, code, r.stderr)
        return r.stdout


class Causes(TopTest):
    def await_cause(self, text, is_right):
        """The cause of a graph that runs, and in which window of a second it was found. Others may
        take cores away meanwhile, which is one too."""
        self.launch(text)
        begun = time.monotonic()
        top = subprocess.Popen([os.path.join(cluster.BIN, "fragctl"), "top", "app", "-o", "json",
                                "--address", self.address], env=self.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, text=True)
        try:
            for window in range(1, 31):
                found = json.loads(top.stdout.readline())["applications"][0]["cause"]
                if is_right(found):
                    break
            print("  window %d, %.1f s: %s" % (window, time.monotonic() - begun, found["sentence"]))
            return found, window
        finally:
            top.kill()
            top.wait()
            top.stdout.close()
            self.end()

    def test_what_is_planted_is_found(self):
        windows = []
        for what, (text, kind, op, says) in PLANTED.items():
            with self.subTest(what):
                found, window = self.await_cause(text, lambda c, wanted=(kind, op), part=says: (
                    (c["kind"], wanted[1] and c["operator"]) == wanted and part in c["sentence"]))
                if found["kind"] == "cores" and busy() > 1:  # that is the cause, then
                    continue
                self.assertEqual((found["kind"], op and found["operator"]), (kind, op), found)
                self.assertIn(says, found["sentence"])
                self.assertTrue(found["chain"])
                windows.append(window)
        # Each of them, where nobody else takes cores away.
        self.assertGreater(len(windows), len(PLANTED) / 2)
        self.assertLessEqual(statistics.median(windows), 2 * busy(), windows)


class Cores(Causes):
    """Two loops take the core of a host, which needs more than a half of it."""

    test_what_is_planted_is_found = None

    def worker(self, *args, fragments=None, **more):
        return super().worker(*args, fragments=fragments, **more,
                              prefix=("taskset", "-c", "0") if fragments == "back" else ())

    def test_cores_that_others_take(self):
        loops = [subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            found, _ = self.await_cause(application(back=SINK % ("spin_ms: 22", "")), lambda c: c["kind"] == "cores")
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        self.assertEqual((found["kind"], found["host"]), ("cores", "back"), found)
        self.assertIn("other threads take the cores of host back away", found["sentence"])


class Tunnel:
    """A link between two network namespaces, of a rate and a delay, by a TUN device in each."""

    def __init__(self, names, rate, delay_s):
        self.fds = [os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK) for _ in names]
        for fd, name in zip(self.fds, names):
            # TUNSETIFF: IFF_TUN and IFF_NO_PI
            fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH", name.encode(), 0x1001))
        self.rate, self.delay_s, self.ends = rate, delay_s, False
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        free_at, waiting = [0.0, 0.0], []
        while not self.ends:
            now = time.monotonic()
            pause = max(0, min([waiting[0][0] - now] + [0.05])) if waiting else 0.05
            for fd in select.select(self.fds, [], [], pause)[0]:
                way, now = self.fds.index(fd), time.monotonic()
                with contextlib.suppress(BlockingIOError):
                    packet = os.read(fd, 65536)
                    free_at[way] = max(free_at[way], now) + len(packet) / self.rate
                    waiting.append((free_at[way] + self.delay_s, 1 - way, packet))
            waiting.sort(key=lambda one: one[0])
            while waiting and waiting[0][0] <= time.monotonic():
                _, to, packet = waiting.pop(0)
                with contextlib.suppress(OSError):
                    os.write(self.fds[to], packet)

    def close(self):
        self.ends = True
        self.thread.join()
        for fd in self.fds:
            os.close(fd)


@unittest.skipUnless(os.access("/dev/net/tun", os.W_OK), "this user makes no TUN devices")
class Links(TopTest):
    """Two workers in namespaces of their own, with a slow or far link between them."""

    def setUp(self):
        super().setUp()
        if not test_nodes.allowed():
            self.skipTest("this machine lets its user make no network namespaces")
        self.spaces = ["frag-%s-%s" % (side, self.mark[:8]) for side in "ab"]
        for space in self.spaces:
            test_nodes.sh("ip", "netns", "add", space)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)

    def link(self, rate, delay_s):
        devices = ["t%s%s" % (side, self.mark[:8]) for side in "ab"]
        tunnel = Tunnel(devices, rate, delay_s)
        self.addCleanup(tunnel.close)
        for i, (space, device) in enumerate(zip(self.spaces, devices)):
            test_nodes.sh("ip", "link", "set", device, "netns", space)
            test_nodes.sh("ip", "-n", space, "addr", "add", "10.79.0.%d/24" % (i + 1), "dev", device)
            test_nodes.sh("ip", "-n", space, "link", "set", device, "up", "mtu", "9000")
            test_nodes.sh("ip", "-n", space, "link", "set", "lo", "up")

    def cause(self, text, says):
        inside = [("ip", "netns", "exec", space) for space in self.spaces]
        self.d = self.driver(self.write("app.yaml", text), "--insecure", address="10.79.0.1:0", prefix=inside[0])
        for name, prefix in zip(("front", "back"), inside):
            self.worker("--once", "--insecure", "--name", name, fragments=name, prefix=prefix)
        self.d.wait_line("app: runs in 2 hosts")
        try:
            for window in range(1, 11):
                r = subprocess.run([*inside[0], os.path.join(cluster.BIN, "fragctl"), "explain", "app", "-o", "json",
                                    "--insecure", "--address", self.address], env=self.env, capture_output=True,
                                   text=True, check=True)
                found = json.loads(r.stdout)["cause"]
                if found["kind"] == "link" and says in found["sentence"]:
                    break
            print("  window %d: %s" % (window, found["sentence"]))
            return found
        finally:
            self.end()

    def expect(self, text, says, helps):
        found = self.cause(text, says)
        self.assertEqual((found["kind"], found["from"], found["to"]), ("link", "front.tx.out", "back.rx.in"), found)
        self.assertIn(says, found["sentence"])
        self.assertIn(helps, found["help"])

    def test_a_window_that_is_small_for_a_far_host(self):
        self.link(rate=1e9, delay_s=0.03)
        self.expect(application(back=SINK % ("sleep_ms: 1", ""),
                                flow="{from: front.tx.out, to: back.rx.in, capacity: 1}"),
                    "with at most 1 on the way", "Write `capacity: 4`")

    def test_a_network_that_is_slow(self):
        front = ("    operators:\n      tx: {type: ping_tensor_tx, parameters: {rows: 160, columns: 1024},\n"
                 "           conditions: [{type: periodic, recess_period: 30hz}]}\n")
        self.link(rate=2.2e6, delay_s=0.0002)
        self.expect(application(front=front, back=SINK % ("sleep_ms: 1", "")), "a faster network",
                    "the network is full: send less")


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Screen(TopTest):
    def setUp(self):
        super().setUp()
        self.tmux_socket = self.path("tmux")
        self.addCleanup(lambda: self.tmux("kill-server"))

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.tmux_socket, *args], env=self.env, check=False,
                              capture_output=True, text=True).stdout

    def top(self, *args, columns=80, lines=24, prefix=""):
        command = prefix + "%s top %s --address %s; echo ended with $?; sleep 1000" % (
            os.path.join(cluster.BIN, "fragctl"), " ".join(args), self.address)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), command)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, *parts):
        self.wait_until("%r is on the screen" % (parts,),
                        lambda: all(part in self.screen() for part in parts))
        return self.screen()

    def test_keys(self):
        self.launch(application())
        self.top("app")
        self.shows("measures the first second")
        text = self.shows("app: front.tx is slow (", "!back.rx", "front.tx.out -> back.rx.in", "q quit")
        self.assertEqual(len(text.splitlines()), 24)
        self.assertRegex(text, r"\dZ running +app ")
        self.tmux("send-keys", "Enter")  # on the title of the first table
        self.shows("front.tx, a ping_tx of app")
        self.tmux("send-keys", "Escape")
        self.shows("q quit", "!back.rx")
        self.tmux("send-keys", "/", "rx", "Enter")
        self.assertNotIn(" front.tx  ", self.shows("filter rx"))
        self.tmux("send-keys", "Escape")
        self.shows(" front.tx  ")
        self.tmux("send-keys", "s")
        text = self.shows("sorted by busy")
        self.assertLess(text.index("!back.rx "), text.index(" front.tx  "))
        self.tmux("send-keys", "p")
        self.shows("PAUSED")
        self.tmux("send-keys", "p", "Tab", "Down", "Enter")
        self.shows("back.rx, a slow_rx of app", "ROOT CAUSE", "e set a parameter")
        self.tmux("send-keys", "e", "sleep_ms=x", "Enter")
        self.shows("set back.rx.sleep_ms=x now? y/n")
        self.tmux("send-keys", "y")
        self.shows("not set: ")
        self.tmux("send-keys", "e", "sleep_ms=1", "Enter", "y")
        self.shows("set back.rx.sleep_ms=1", "app: nothing is wrong", "SET WHILE IT RUNS", "  sleep_ms=1, ")
        self.tmux("resize-window", "-x", "50", "-y", "10")
        self.wait_until("it is smaller", lambda: len(self.screen().splitlines()) == 10)
        self.shows("app: nothing is wrong")
        self.tmux("send-keys", "q", "q")
        self.shows("ended with 0")
        self.tmux("kill-server")
        self.end()

    def test_run_with_top(self):
        command = "%s run --top app.yaml 2>errors; echo ended with $?; sleep 1000" % os.path.join(cluster.BIN, "fragctl")
        self.write("app.yaml", application())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "-c", self.folder, command)
        self.shows("frag top  1 application", "app: front.tx is slow (")
        r = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "top", "--once"], env=self.env, capture_output=True,
                           text=True, stdin=subprocess.DEVNULL)
        self.assertIn("\n front.tx ", r.stdout, "without an address it finds this driver")
        self.tmux("send-keys", "q")
        self.assertNotIn("frag top", self.shows("app: stopped after ", "front.tx.out -> back.rx.in", "ended with 0"))
        self.tmux("kill-server")
        with open(self.path("errors")) as file:
            self.assertIn("app: runs in ", file.read())
        r = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "run", "--top", "-e", "ping_tx count=2 ! ping_rx"], env=self.env,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("--top needs a terminal; it runs without", r.stderr)
        self.assertRegex(r.stdout, r"ping_rx.in +2 +2 +0 +0 ")
        self.assert_nothing_left()

    def test_the_picture_of_the_documents(self):
        """OBSERVE.md shows this screen; numbers differ from run to run."""
        with open(os.path.join(cluster.TOP, "docs", "OBSERVE.md")) as f:
            drawn = re.search(r"```\n(frag top.*?)```", f.read(), re.S).group(1)

        def shape(text):
            text = re.sub(r" at \S+$", " at", text, flags=re.M)  # of the driver
            text = re.sub(r"\[[# ]*\]", "[]", text)
            text = re.sub(r"[\d.]+( ?(ns|us|ms|s|[KMG]iB|B)\b)?|-(?= |$)", "0", text, flags=re.M)
            return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        slow = application().replace("application: app", "application: slow")
        self.d = self.driver(self.write("app.yaml", slow.replace("front", "source").replace("back", "sink")))
        for name in ("source", "sink"):
            self.worker("--once", "--name", name, fragments=name)
        self.top("slow")
        expected = shape(drawn)
        self.wait_until("the picture", lambda: shape(self.screen()) == expected)
        self.tmux("kill-server")
        self.end()

    def test_the_picture_of_the_demo(self):
        """docs/pictures/demo.svg, which make demo-picture makes, shows what today's programs print:
        the tables of top, those of a summary, and the sentences of mk/demo.sh."""
        def read(*path):
            with open(os.path.join(cluster.TOP, *path)) as f:
                return f.read()

        def heads(text):
            return {" ".join(line.split()) for line in text.splitlines()
                    if re.match(r"( ?[A-Z]{4,}|flow) .* [A-Za-z0-9]+$| *q quit ", line)}
        picture = read("docs", "pictures", "demo.svg")
        self.assertLess(len(picture), 1 << 20)
        frames = []
        for frame in re.findall(r'<g class="f".*?</g>', picture, re.S):
            rows = re.findall(r'<text x="[\d.]+" y="(\d+)"[^>]*>(.*?)</text>', frame)
            frames.append("\n".join(" ".join(html.unescape(text) for at, text in rows if at == y)
                                    for y in dict.fromkeys(y for y, _ in rows)))
        screen = re.search(r"```\n(frag top.*?)```", read("docs", "OBSERVE.md"), re.S).group(1)
        self.assertEqual(heads(frames[0]), heads(screen))
        moved = r"migrated +survives_a_dead_node detector goes on on worker c\n"
        self.assertTrue(any(re.search(moved, frame) for frame in frames), "no killed worker is seen")
        self.assertEqual(heads(frames[-1]), heads(read("docs", "site", "ten-minutes.md")))
        steps = read("mk", "demo.sh").split("watch_street() {")[1]
        for sentence in re.findall(r'echo "((?!the demo)[^"$]{8,})', steps):
            self.assertIn(" ".join(sentence.split()), " ".join(frames[-1].split()))

    def test_a_terminal_that_cannot_move_its_cursor(self):
        """It gets sentences, as with --plain; and names of any alphabet are as wide as they are."""
        self.d = self.driver(self.write("app.yaml", application()))
        self.worker("--once", "--name", "b\u00fcro-\u5de5\u5834", fragments="front")
        self.worker("--once", "--name", "back", fragments="back")
        self.d.wait_line("app: runs in 2 hosts")
        self.top(prefix="env TERM=dumb ")
        self.shows("Application app is running", "Operator back.rx: ")
        self.tmux("send-keys", "q", "Enter")
        self.shows("ended with 0")
        self.tmux("respawn-pane", "-k", "%s top --address %s; sleep 1000" % (
            os.path.join(cluster.BIN, "fragctl"), self.address))
        text = self.shows("\n b\u00fcro-\u5de5\u5834  ", "\n back  ", "\n WORKER ", "GiB")
        table = text[text.index("\n WORKER ") + 1:].splitlines()
        wide = table[1].replace("\u5de5\u5834", "xxxx")
        self.assertEqual(wide.index("iB of "), table[2].index("iB of "), table)
        self.tmux("kill-server")
        self.end()

    def test_a_run_without_daemons(self):
        """`fragctl top` and the other verbs that show something find it without flags, and it obeys
        those that name it."""
        text = application().replace("application: app", "application: alone")
        run = self.start("fragctl", "run", self.write("alone.yaml", text), "-o", "json")

        def ask(*args):
            return subprocess.run([os.path.join(cluster.BIN, "fragctl"), *args], env=self.env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)

        def verb(*args):
            r = ask(*args)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            return r.stdout
        # Its socket is there before it listens.
        self.wait_until("list finds it", lambda: re.search(r"\balone\b", ask("list").stdout))
        for args in (("status",), ("events",), ("top", "--once")):
            self.wait_until("%s finds it" % args[0], lambda args=args: re.search(r"\balone\b", verb(*args)))
        self.wait_until("the culprit", lambda: "!back.rx " in verb("top", "--once"))
        self.assertIn("alone: front.tx is slow (", verb("top", "--once"))
        self.assertIn("back.rx computes", verb("explain", "alone"))
        self.assertIn("front.tx is slow (", verb("status"))
        self.assertIn("#1 ", verb("echo", "alone", "front.tx", "-n", "1"))
        self.address = "127.0.0.1:" + self.sockets()[0].split(".")[0]
        verb("set", "alone", "back.rx.sleep_ms=1", "--address", self.address)
        self.wait_until("nothing is wrong", lambda: "alone: nothing is wrong" in verb("top", "--once"))
        self.top()
        self.shows("alone: nothing is wrong")
        verb("stop", "alone", "--address", self.address)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.summary(run)["result"], "stopped")
        self.shows("lost the driver at")
        self.tmux("kill-server")
        self.assertEqual(self.sockets(), [])
        self.assert_nothing_left()

    def sockets(self):
        folder = os.path.join(self.env["XDG_RUNTIME_DIR"], "frag")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [name for name in names if name.endswith(".sock")]

    def test_a_lost_driver(self):
        self.launch(application())
        self.top()
        self.shows("app: front.tx is slow (")
        self.d.kill()
        self.shows("lost the driver at", "tries again every second")
        self.d = self.driver(self.path("app.yaml"), address=self.address)
        self.worker("--once", "--name", "front", fragments="front")
        self.worker("--once", "--name", "back", fragments="back")
        self.shows("app: front.tx is slow (")
        self.tmux("send-keys", "q")
        self.shows("ended with 0")
        self.d.signal(signal.SIGTERM)
        self.d.wait()


class Printed(TopTest):
    def test_drops_are_events(self):
        flow = "{from: front.tx.out, to: back.rx.in, policy: pop}"
        self.launch(application(back=SINK % ("sleep_ms: 55", ""), flow=flow))
        self.wait_until("an event", lambda: " loss " in self.fragctl("events"))
        self.assertRegex(self.fragctl("events"), r"loss +app \d+ of \d+ /s dropped \(queue_full\): "
                         r"front\.tx\.out -> back\.rx\.in")
        self.end()

    def test_tables_sentences_and_json(self):
        self.launch(application())
        # The window of its begin has its own numbers.
        self.wait_until("the culprit", lambda: "!back.rx " in self.fragctl("top", "--once"))
        self.assertRegex(self.fragctl("top", "app", "--plain", "--once"), r"Operator back\.rx: 1\d(\.\d+)? ticks a second, computes")
        app, = json.loads(self.fragctl("top", "--once", "-o", "json"))["applications"]
        self.assertEqual([op["name"] for op in app["operators"]], ["front.tx", "back.rx"])
        for op in app["operators"]:
            uses = ("busy", "input", "room", "memory", "thread", "time", "suspended")
            self.assertEqual(sum(op[use + "_ns"] for use in uses), app["window_ns"])
        self.wait_until("a window of a quarter of a second", lambda: json.loads(self.fragctl(
            "top", "--once", "--every", "250ms", "-o", "json"))["applications"][0]["window_ns"] < app["window_ns"] / 2)
        self.assertEqual(self.fragctl("top", "--once", "--every", "249ms", code=2), "")
        self.assertIn("app: it was not measured (--no-wait)", self.fragctl("top", "--no-wait"))
        self.assertIn("root cause: it was not measured (--no-wait)", self.fragctl("explain", "app", "--no-wait"))
        self.assertNotIn("root cause", self.fragctl("explain", "app", "back"))
        self.assertEqual(self.fragctl("top", "nobody", "--once", code=3), "")
        self.end()

    def test_pools_of_hosts(self):
        """One whose only block passes three operators is empty most of the time."""
        self.launch(PLANTED["an exhausted pool"][0])
        line = r"\n   pool front\.frames: [01] of 1 blocks of 64 KiB in use, empty [1-9]\d* %, refused 0\n"
        self.wait_until("a pool that is empty", lambda: re.search(line, self.fragctl("top", "--once")))
        app, = json.loads(self.fragctl("top", "--once", "-o", "json"))["applications"]
        pool, = app["pools"]
        self.assertEqual((pool["name"], pool["blocks"], pool["block_bytes"], app["hosts"][pool["host_index"]]["name"]),
                         ("front.frames", 1, 65536, "front"))
        self.assertGreater(pool["empty_ns"], app["window_ns"] / 2)
        self.end()

    def test_the_load_of_gpus(self):
        """Of three, one of which does not answer (tests/cuda/fake_nvml.c)."""
        self.env["LD_LIBRARY_PATH"] = os.path.join(os.path.dirname(cluster.BIN), "tests/cuda")
        self.d = self.driver(self.write("app.yaml", application()))
        self.worker("--once", "--name", "front", "--inventory", "gpu=3", fragments="front")
        self.worker("--once", "--name", "back", fragments="back")
        self.d.wait_line("app: runs in 2 hosts")

        def workers():
            return json.loads(self.fragctl("top", "--once", "-o", "json"))["applications"][0]["workers"]
        self.wait_until("its load", lambda: workers()[0]["gpus"] == 2)
        front, back = workers()
        self.assertEqual((front["gpu_busy_permille"], front["gpu_memory_bytes"], front["gpu_memory_used_bytes"]),
                         (375, 104 << 30, 18 << 30))
        self.assertEqual((back["gpus"], back["gpu_memory_bytes"]), (0, 0))
        self.assertIn("2 GPUs 38 % busy, 18 GiB of 104 GiB", self.fragctl("top", "--once"))
        self.end()


if __name__ == "__main__":
    cluster.main()
