# SPDX-License-Identifier: Apache-2.0
"""Two nodes: workers in network namespaces of their own, linked by veth. Nothing here touches the
machine's network. An ordinary user makes them as root of a user namespace of its own."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import cluster
from slow_link import SlowLink
from test_ping import APP

AS_OWN_ROOT = ("unshare", "--map-root-user", "--mount", "--net", "sh", "-c",
               'mount -t tmpfs tmpfs /run && exec "$@"', "sh")

def sh(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def allowed(prefix=()):
    """Whether a node can be made: some containers take that from root, some machines from ordinary
    users."""
    name = "frag-try-%d" % os.getpid()
    script = "ip netns add %s && { ip -n %s link set lo up && ip netns exec %s true; s=$?; ip netns del %s; exit $s; }"
    return subprocess.run([*prefix, "sh", "-c", script.replace("%s", name)], capture_output=True).returncode == 0


IN_ANOTHER_TIME = ("unshare", "--time", "--monotonic", "5000", "--fork", "--kill-child")


class Clocks(cluster.ClusterTest):
    """Two hosts whose clocks are 5000 s apart, as by namespaces: so the truth is known."""

    apart_ns = 5000 * 10**9
    LOCKED = re.compile(r"the clock of .*: locked, (-?[0-9]+) ns ahead of ours, to within ([0-9]+) ns")

    def stream(self, there, clock="", args=(), flags=((), ())):
        """The flow in the summary, and what each worker's host says of the other's clock."""
        app = self.write("app.yaml", clock + APP % {"folder": self.folder})
        driver = self.driver(app, "--output", "json", app_args=("--count", "100", "--pause", "5ms", *args))
        workers = [self.worker("--once", *flags[0], fragments="fragment1"),
                   self.worker("--once", *flags[1], fragments="fragment2", prefix=there)]
        self.assertEqual(driver.wait(60), 0, driver.stderr)
        self.assertEqual([w.wait() for w in workers], [0, 0])
        summary = self.summary(driver)
        self.assertLess(summary["first_message_ns"], 60e9)
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual(flow["delivered"], 100)
        return flow, [self.LOCKED.findall(w.stderr) for w in workers]

    def test_latency_between_two_clocks_has_a_bound_that_holds(self):
        if subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no time namespaces")
        flow, said = self.stream(())
        self.assertLess(flow["latency_ns"]["max"], 60e9)
        self.assertNotIn("error", flow["latency_ns"], "one clock")
        self.assertEqual(said, [[], []])

        flow, said = self.stream(IN_ANOTHER_TIME)
        self.assertGreater(flow["latency_ns"]["count"], 0)
        self.assertLess(flow["latency_ns"]["max"], 60e9)
        self.assertGreater(flow["latency_ns"]["error"], 0)
        self.assert_bounds(said)

        flow, _ = self.stream(IN_ANOTHER_TIME, clock="clock: {max_error: 1ns}\n")
        self.assertIsNone(flow["latency_ns"])
        self.assertIn("two clocks", flow["latency_reason"])

    def assert_bounds(self, said):
        for clocks, truth_ns in zip(said, (self.apart_ns, -self.apart_ns)):
            self.assertTrue(clocks)
            for offset, bound in clocks:
                self.assertLessEqual(abs(int(offset) - truth_ns), int(bound))

    def test_a_link_that_is_slow_in_one_direction_does_not_break_the_bound(self):
        """20 ms there, none back: who halves round trips is 10 ms wrong and does not know it."""
        if subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no time namespaces")
        self.env["UCX_TLS"] = "tcp"
        slow_s = 0.02
        links = [SlowLink("127.0.0.2", lambda to_server: 0 if to_server else slow_s),
                 SlowLink("127.0.0.3", lambda to_server: slow_s if to_server else 0)]
        for link in links:
            self.addCleanup(link.close)
        flow, said = self.stream(IN_ANOTHER_TIME, args=("--edge", "ucx"),
                                 flags=[link.flags() for link in links])
        self.assertGreater(min(link.bytes for link in links), 0, "they were not passed")
        self.assert_bounds(said)
        for clocks in said:
            self.assertGreaterEqual(min(int(bound) for _, bound in clocks), slow_s * 1e9 / 2)
        latency = flow["latency_ns"]
        self.assertGreaterEqual(latency["p50"] + latency["error"], slow_s * 1e9)

    def drawn_link(self, draw, address):
        """Delays of each direction of its own, with a jitter that is much larger at times."""
        least_s = [draw.choice((0, 0.0002, 0.002, 0.02)) for _ in range(2)]
        jitter_s = [draw.choice((0, 0.0005, 0.005)) for _ in range(2)]

        def delay(to_server):
            stall_s = 0.1 if draw.random() < 0.01 else 0
            return least_s[to_server] + draw.expovariate(1) * jitter_s[to_server] + stall_s
        link = SlowLink(address, delay)
        self.addCleanup(link.close)
        return link

    @unittest.skipUnless(os.environ.get("FRAG_CLOCKS"), "nightly draws more clocks and links")
    def test_drawn_links(self):
        """FRAG_CLOCKS pairs of clocks that are apart: the truth is within each bound."""
        self.env.update({"UCX_TLS": "tcp", "FRAG_DEAD_MS": "20000"})
        seed, bounds = int(os.environ.get("SEED", "37")), 0
        for i in range(int(os.environ["FRAG_CLOCKS"])):
            draw = random.Random(seed + i)
            with self.subTest("SEED=%d" % (seed + i)):
                apart_s = draw.randrange(0, 100000)
                self.apart_ns = apart_s * 10**9
                there = ("unshare", "--time", "--monotonic", str(apart_s), "--fork", "--kill-child")
                links = [self.drawn_link(draw, "127.2.%d.%d" % (i % 250, side)) for side in (2, 3)]
                flags = [link.flags() for link in links]
                _, said = self.stream(there, args=("--edge", "ucx"), flags=flags)
                self.assert_bounds(said)
                bounds += sum(map(len, said))
                for link in links:
                    link.close()
        print("%d bounds held" % bounds, file=sys.stderr)


def environment(pid):
    with open("/proc/%d/environ" % pid, encoding="utf-8", errors="replace") as f:
        return f.read()


class KeptDifferently(cluster.ClusterTest):
    """The second worker is of a machine whose clocks are 5000 s apart, and kept differently."""

    SHIFTED = os.path.join(cluster.BUILD, "tests", "clock", "shifted.so")

    AGES = """
frag: 1
application: app
extensions: [libslow.so]
fragments:
  fragment1:
    operators:
      tx:
        type: ping_tx
        conditions: [{type: count, count: 40}, {type: periodic, recess_period: 50hz}]
      a: {type: slow, parameters: {stamps: true}}
    flows: [tx -> a]
  fragment2:
    operators:
      rx: {type: slow_rx, ports: {in: {age: 10s}}}
flows:
  - fragment1.a -> fragment2.rx
"""

    ALIGNED = """
frag: 1
application: app
extensions: [libslow.so, libtiming.so]
fragments:
  fragment1:
    operators:
      tx:
        type: ping_tx
        conditions: [{type: count, count: 60}, {type: periodic, recess_period: 50hz}]
      a: {type: slow, parameters: {stamps: true}}
      join: {type: report, align: {inputs: [a, b], window: 15ms, timeout: 1s}}
    flows: [tx -> a, a -> join.a]
  fragment2:
    operators:
      tx:
        type: ping_tx
        conditions: [{type: count, count: 60}, {type: periodic, recess_period: 50hz}]
      b: {type: slow, parameters: {stamps: true}}
    flows: [tx -> b]
flows:
  - fragment2.b -> fragment1.join.b
"""

    def begin(self, text=None, **env):
        if subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no time namespaces")
        app = self.write("app.yaml", text or APP % {"folder": self.folder})
        args = () if text else ("--count", "0", "--pause", "5ms")
        self.app = self.driver(app, "--output", "json", app_args=args)
        self.first = self.worker("--once", "--name", "first", fragments="fragment1")
        self.second = self.worker("--once", "--name", "second", fragments="fragment2", prefix=IN_ANOTHER_TIME,
                                  env=dict(env, LD_PRELOAD=self.SHIFTED))

    def test_a_system_clock_that_shows_tai_is_refused_by_name(self):
        self.begin(FRAG_SHIFT_REALTIME_S="37")
        for worker, other in ((self.first, "fragment2 on worker second"), (self.second, "fragment1 on worker first")):
            worker.wait_line(other + ": its system clock and ours are 37 s apart, so one of them shows TAI and not UTC; "
                             "acquisition times on them are not compared")

    def test_acquisition_times_of_a_system_clock_that_is_wrong_are_converted(self):
        """By 36 s: messages would be older than they may be, or from the future."""
        for ahead, compared in (("36", True), ("-36", True), ("37", False)):
            with self.subTest(ahead):
                self.begin(self.AGES, FRAG_SHIFT_REALTIME_S=ahead)
                self.assertEqual(self.app.wait(60), 0, self.app.stderr)
                flow = self.flow(self.summary(self.app), "fragment1.a.out")
                few = flow["dropped"]["clocks_not_comparable"] if compared else flow["delivered"]
                self.assertLess(few, 20, flow)
                self.assertEqual(flow["delivered"] + flow["dropped"]["clocks_not_comparable"], 40)

    def test_windows_of_inputs_hold_over_two_nodes(self):
        """What was taken within 15 ms belongs together, though the second node shows 36 s more."""
        self.begin(self.ALIGNED, FRAG_SHIFT_REALTIME_S="36")
        self.assertEqual(self.app.wait(60), 0, self.app.stderr)
        summary = self.summary(self.app)
        there = self.flow(summary, "fragment2.b.out")
        few = there["dropped"]["clocks_not_comparable"]
        self.assertLess(few, 20, there)
        pairs = len(re.findall(r"join: a [0-9]+, b [0-9]+", self.first.stderr))
        self.assertGreaterEqual(pairs, 20, summary)
        self.assertLessEqual(pairs, 60 - few)

    def test_a_leap_second_that_only_one_of_two_nodes_expects_is_refused_by_name(self):
        """The other one smears it, or does not know of it."""
        leap = self.path("leap")
        self.begin(FRAG_SHIFT_LEAP=leap)
        for worker in (self.first, self.second):
            worker.wait_line("the clock of fragment. on worker [a-z]*: locked")
            self.assertNotIn("leap second", worker.stderr)
        self.write("leap", "")
        for worker, other in ((self.first, "fragment2 on worker second"), (self.second, "fragment1 on worker first")):
            worker.wait_line(other + ": a leap second is announced to only one of its kernel and ours, .*: for a day "
                             "acquisition times on system clocks and CLOCK_TAI are not compared")

    def test_a_host_that_joins_on_another_node_is_compared_by_its_new_name(self):
        self.begin()
        self.first.wait_line("the clock of fragment2 on worker second: locked, (4999|5000)[0-9]{9} ns ahead")
        third = self.worker("--once", "--name", "third", fragments="fragment2",
                            prefix=("unshare", "--time", "--monotonic", "9000", "--fork", "--kill-child"))
        third.wait_line("attached to the driver")
        p = self.start("fragctl", "drain", "second", "--address", self.address)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.first.wait_line("the clock of fragment2 on worker third: locked, (8999|9000)[0-9]{9} ns ahead of ours")
        third.wait_line("the clock of fragment1 on worker first: locked, -(8999|9000)[0-9]{9} ns ahead of ours")

    def test_clocks_of_a_machine_that_was_suspended_are_compared_anew(self):
        slept = self.path("slept")
        self.begin(FRAG_SHIFT_SLEPT=slept)
        for worker in (self.first, self.second):
            worker.wait_line("the clock of fragment. on worker [a-z]*: locked")
        self.write("slept", "")
        self.second.wait_line("this machine was suspended: the clocks of other nodes are not known until")
        self.first.wait_line("the clock of fragment2 on worker second has stepped, .*: acquiring, times from there are not")
        for worker in (self.first, self.second):
            self.wait_until("locked again", lambda worker=worker: worker.stderr.count(": locked, ") == 2)

        def events():
            p = self.start("fragctl", "events", "--address", self.address)
            self.assertEqual(p.wait(), 0, p.stderr)
            return p.stdout
        self.wait_until("an event", lambda: re.search(
            r" clock +stream lost, and locked again \(one of them has stepped\): the clock of fragment1 on worker first, "
            "as fragment2 on worker second compares it", events()))

    def test_a_virtual_machine_that_was_paused_and_a_clock_that_was_set_make_no_time_negative(self):
        """All processes of the second machine stand still for 2 s, and so do its clocks; then
        somebody sets its system clock back by an hour."""
        self.env["FRAG_DEAD_MS"] = "20000"
        paused, put_back = self.path("paused"), self.path("set")
        self.begin(FRAG_SHIFT_PAUSED=paused, FRAG_SHIFT_SET=put_back)
        for worker in (self.first, self.second):
            worker.wait_line("the clock of fragment. on worker [a-z]*: locked")
        top = self.start("fragctl", "top", "stream", "--output", "json", "--every", "250ms", "--address", self.address)
        trace = self.start("fragctl", "trace", "stream", "--for", "1h", "-o", self.path("t.pftrace"), "--address",
                           self.address)
        trace.wait_line("traces stream")
        machine = [pid for pid in self.ours(reporters=True) if paused in environment(pid)]
        self.assertGreaterEqual(len(machine), 2, "the worker and its host")
        began = time.monotonic()
        for pid in machine:
            os.kill(pid, signal.SIGSTOP)
        self.wait_until("2 s", lambda: time.monotonic() >= began + 2)
        self.write("paused", "")
        for pid in machine:
            os.kill(pid, signal.SIGCONT)
        self.first.wait_line("the clock of fragment2 on worker second has stepped, .*: acquiring, times from there are not")
        for worker in (self.first, self.second):
            self.wait_until("locked again", lambda worker=worker: worker.stderr.count(": locked, ") == 2)
        self.write("set", "")
        self.wait_until("looks after that", lambda n=top.stdout.count("\n"): top.stdout.count("\n") > n + 5)
        for p in (trace, top, self.app):
            p.signal(signal.SIGINT)
        self.assertEqual(trace.wait(), 0, trace.stderr)
        self.assertRegex(trace.stdout, r"[1-9]\d* ticks and [1-9]\d* messages of 2 hosts, clocks to within ")
        self.assertEqual(self.app.wait(), 0, self.app.stderr)
        top.wait()
        latency = self.flow(self.summary(self.app), "fragment1.tx.out")["latency_ns"]
        self.assertGreater(latency["count"], 0)
        self.assertLess(latency["max"], 60e9)
        for printed in (top.stdout, self.app.stdout, trace.stdout):
            self.assertEqual(re.findall(r'"[a-z_]*_(?:ns|s)": *-[0-9].*|(?<![0-9e:T])-[0-9.]+ (?:us|ms|ns|s)\b', printed), [])


class TwoNodes(cluster.ClusterTest):
    """Namespaces a and b with an address each, linked by veth."""

    ADDRESSES = "10.77.0.1", "10.77.0.2"

    def setUp(self):
        super().setUp()
        if not allowed():
            self.skipTest("this machine lets its user make no network namespaces")
        short = self.mark[:8]
        self.a, self.b = "frag-a-" + short, "frag-b-" + short
        for ns in (self.a, self.b):
            sh("ip", "netns", "add", ns)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", ns], capture_output=True)
            sh("ip", "-n", ns, "link", "set", "lo", "up")
        sh("ip", "link", "add", "va" + short, "netns", self.a, "type", "veth", "peer", "name", "vb" + short, "netns",
           self.b)
        for ns, dev, ip in zip((self.a, self.b), ("va" + short, "vb" + short), self.ADDRESSES):
            sh("ip", "-n", ns, "addr", "add", ip + "/24", "dev", dev)
            sh("ip", "-n", ns, "link", "set", dev, "up")
        self.dev_a = "va" + short
        for ns in (self.a, self.b): # the kernel tells the carrier some time after "up"
            self.wait_until("the link in %s" % ns, lambda ns=ns: "state UP" in subprocess.run(
                ["ip", "-n", ns, "link", "show", "type", "veth"], capture_output=True, text=True).stdout)

    def inside(self, ns):
        return ("ip", "netns", "exec", ns)


class Nodes(TwoNodes):
    """The driver runs in a."""

    app_text = APP

    def launch(self, *app_args, extra=()):
        driver = self.driver(self.app, "--output", "json", "--insecure", *extra, address="10.77.0.1:0",
                             app_args=app_args, prefix=self.inside(self.a))
        w1 = self.worker("--once", "--insecure", fragments="fragment1", prefix=self.inside(self.a))
        w2 = self.worker("--once", "--insecure", fragments="fragment2", prefix=self.inside(self.b))
        return driver, w1, w2

    def test_messages_cross_the_link(self):
        driver, w1, w2 = self.launch("--count", "500", "--size", "100000")
        self.assertEqual(driver.wait(60), 0, driver.stderr + w1.stderr + w2.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 501)))
        flow = self.flow(self.summary(driver), "fragment1.tx.out")
        self.assertEqual(flow["latency_ns"]["count"], 500, "they have one clock")
        self.assertLess(flow["latency_ns"]["max"], 60e9)
        summary = self.summary(driver)
        self.assert_balanced(summary)
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "ucx")
        self.assertEqual((w1.wait(), w2.wait()), (0, 0))
        self.assert_nothing_left()

    def test_variables_do_not_leave_a_node(self):
        self.app = self.write("app.yaml", """frag: 1
application: app
variables: {v: {type: f32, writer: fragment1.tx, readers: [fragment2.rx]}}
fragments:
  fragment1: {operators: {tx: {type: hello}}}
  fragment2: {operators: {rx: {type: hello}}}
extensions: [libhello.so]
""")
        driver, _, _ = self.launch()
        self.assertEqual(driver.wait(60), 2, driver.stderr)
        failure = self.summary(driver)["failure"]
        self.assertEqual(failure["code"], "memory_not_shared")
        self.assertRegex(failure["sentence"], "variable v of fragment fragment1 cannot be read by fragment fragment2: "
                         "worker .* are in two network namespaces")
        self.wait_until("no host", lambda: not self.hosts())

    def test_the_data_plane_listens_on_its_interface_only(self):
        driver, w1, w2 = self.launch("--count", "0", "--pause", "1ms")
        self.wait_until("messages", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) > 80)
        for ns, ip in ((self.a, "10.77.0.1"), (self.b, "10.77.0.2")):
            out = subprocess.run(["ip", "netns", "exec", ns, "ss", "-Hltn"], check=True, capture_output=True,
                                 text=True).stdout
            addresses = {line.split()[3].rsplit(":", 1)[0] for line in out.splitlines()}
            self.assertEqual(addresses, {ip})
        driver.signal(15)
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), cluster.sequence(self.path("sent")))

    def test_a_driver_of_another_node_cannot_write_where_its_libraries_come_from(self):
        """Or its first graph could put a library there, and its second one name it."""
        if not cluster.landlock():
            self.skipTest("this kernel has no Landlock")
        root = self.path("root")
        os.mkdir(root)
        self.env.pop("FRAG_ALLOW_WRITE", None)
        self.app = self.write("write.yaml", "{frag: 1, application: app, extensions: [libintruder.so], "
                              "operators: {u: {type: intruder, parameters: {outside: %s, fails: true}}}}" % root)
        driver = self.driver(self.app, "--output", "json", "--insecure", address="10.77.0.1:0",
                             prefix=self.inside(self.a))
        self.start("workerd", "--address", self.address, "--once", "--insecure", "--app-root", root,
                   prefix=self.inside(self.b), cwd=root)
        self.assertEqual(driver.wait(60), 1, driver.stderr)
        self.assertRegex(self.summary(driver)["reason"], "hosts of this worker may write nowhere: .* --allow-write")
        self.assertEqual(os.listdir(root), [])

    def test_shared_memory_is_refused_between_network_namespaces(self):
        driver, w1, w2 = self.launch("--edge", "shm")
        self.assertEqual(driver.wait(60), 2, driver.stderr + w1.stderr + w2.stderr)
        self.assertRegex(self.summary(driver)["failure"]["sentence"],
                         r"edge shm needs hosts that share memory, but worker \S+ and worker \S+ are in two network "
                         "namespaces, as two containers are; leave edge out, or start both workers in one$")
        self.assertEqual((w1.wait(), w2.wait()), (2, 2))
        self.assert_nothing_left()

    def test_a_link_that_is_cut_ends_the_application(self):
        self.env.update({"FRAG_BEAT_MS": "100", "FRAG_DEAD_MS": cluster.dead_ms(1500)})
        driver, w1, w2 = self.launch("--count", "0", "--pause", "1ms")
        self.wait_until("messages", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) > 80)
        sh("ip", "-n", self.a, "link", "set", self.dev_a, "down")
        self.assertEqual(driver.wait(), 1, driver.stderr)
        summary = self.summary(driver)
        self.assert_balanced(summary)
        sent, received = (cluster.sequence(self.path(n)) for n in ("sent", "received"))
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual(received, list(range(1, len(received) + 1)))
        self.assertGreaterEqual(flow["lost"] + 1, len(sent) - len(received))
        self.assertLessEqual(flow["lost"], len(sent) - len(received) + 4 + 1)
        self.wait_until("no host", lambda: not self.hosts())

    def add_data_link(self):
        """A second link that is not up yet; its end in b has no address either."""
        a, b = "da" + self.mark[:8], "db" + self.mark[:8]
        sh("ip", "link", "add", a, "netns", self.a, "type", "veth", "peer", "name", b, "netns", self.b)
        sh("ip", "-n", self.a, "addr", "add", "10.78.0.1/24", "dev", a)
        sh("ip", "-n", self.b, "link", "set", b, "up")
        return a, b

    def launch_over_data_link(self, *flags, ports="", announce=()):
        driver = self.driver(self.app, "--output", "json", "--insecure", *flags, address="10.77.0.1:0",
                             app_args=("--count", "50"), prefix=self.inside(self.a))
        w1 = self.worker("--once", "--insecure", "--worker-address", "10.78.0.1", fragments="fragment1",
                         prefix=self.inside(self.a))
        w2 = self.worker("--once", "--insecure", "--worker-address", "10.78.0.2" + ports, *announce, "--name", "late",
                         fragments="fragment2", prefix=self.inside(self.b))
        return driver, w1, w2

    def test_a_worker_waits_for_its_interface(self):
        a, b = self.add_data_link()
        driver, w1, w2 = self.launch_over_data_link()
        w2.wait_line(r"waiting for the network: --worker-address: no network interface .*10\.78\.0\.2; it has")
        driver.wait_line(r"worker late can run nothing yet: --worker-address: no network interface")
        sh("ip", "-n", self.b, "addr", "add", "10.78.0.2/24", "dev", b)
        self.assertEqual(self.hosts(), [])
        sh("ip", "-n", self.a, "link", "set", a, "up")
        w2.wait_line(r"the network is there")
        self.assertEqual(driver.wait(60), 0, driver.stderr + w1.stderr + w2.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 51)))
        self.assertEqual((w1.wait(), w2.wait()), (0, 0))
        self.assert_nothing_left()

    def test_an_interface_without_link_is_waited_for_until_the_start_timeout(self):
        _, b = self.add_data_link()
        sh("ip", "-n", self.b, "addr", "add", "10.78.0.2/24", "dev", b)
        driver, w1, w2 = self.launch_over_data_link("--start-timeout", "2s")
        self.assertEqual(driver.wait(), 4, driver.stderr)
        self.assertRegex(self.summary(driver)["reason"],
                         r"no worker for fragment1, fragment2: worker \S+ can run nothing yet: .*, which has the "
                         r"address 10\.78\.0\.\d, is down or has no link")
        for w in (w1, w2):  # they end with their driver
            self.assertEqual(w.wait(), 4, w.stderr)

    def open_data_link(self):
        a, b = self.add_data_link()
        sh("ip", "-n", self.b, "addr", "add", "10.78.0.2/24", "dev", b)
        sh("ip", "-n", self.a, "link", "set", a, "up")
        return a

    def assert_unreachable(self, reason):
        driver, _, _ = self.launch_over_data_link()
        self.assertEqual(driver.wait(60), 1, driver.stderr)
        summary = self.summary(driver)
        self.assertEqual((summary["failure"]["code"], summary["failure"]["scope"]), ("edge_unreachable", "edge"))
        self.assertRegex(summary["reason"], reason)
        self.assertEqual(os.path.exists(self.path("sent")), False, "nothing has started")
        self.wait_until("no host", lambda: not self.hosts())

    def test_a_peer_whose_packets_vanish_is_unreachable(self):
        a = self.open_data_link()
        sh("ip", "-n", self.a, "neigh", "add", "10.78.0.2", "lladdr", "02:00:00:00:00:99", "dev", a, "nud",
           "permanent")
        self.assert_unreachable(r"fragment(\d) on worker \S+: fragment(\d) on worker \S+ did not answer within 5 s on "
                                r"the data plane at 10\.78\.0\.[12]:[1-3]\d{4}: dropped \(no answer\); open TCP")

    def test_a_peer_without_a_route_is_unreachable(self):
        self.open_data_link()
        sh("ip", "-n", self.a, "route", "add", "unreachable", "10.78.0.2/32")
        self.assert_unreachable(r"fragment1 on worker \S+: no way to fragment2 on worker late at 10\.78\.0\.2:\d{5}: "
                                r"No route to host; open TCP")

    def test_a_data_port_that_refuses_in_one_direction_only(self):
        """Left to UCX, it aborts the host."""
        self.open_data_link()
        # Nobody listens where b says that its ports are forwarded to.
        driver, _, _ = self.launch_over_data_link(ports=":20000-20009", announce=("--announce-address",
                                                                                 "10.78.0.2:100-109"))
        self.assertEqual(driver.wait(60), 1, driver.stderr)
        self.assertRegex(self.summary(driver)["reason"], r"fragment1 on worker \S+: no way to fragment2 on worker late at "
                         r"10\.78\.0\.2:10\d: refused \(nothing listens there, or a firewall is between\); open TCP")
        self.assertEqual(self.summary(driver)["failure"]["code"], "edge_unreachable")

    def test_an_address_that_both_nodes_have_is_refused(self):
        """Docker gives its bridge the same one on each. UCX would connect to itself."""
        for ns in (self.a, self.b):
            sh("ip", "-n", ns, "link", "add", "docker0", "type", "veth", "peer", "name", "container")
            sh("ip", "-n", ns, "addr", "add", "172.17.0.1/16", "dev", "docker0")
            for dev in ("docker0", "container"):
                sh("ip", "-n", ns, "link", "set", dev, "up")
        for devices in "all", None:
            if devices is None: # the interface of the control connection is taken
                del self.env["UCX_NET_DEVICES"]
            else:
                self.env["UCX_NET_DEVICES"] = devices
            driver, _, _ = self.launch("--count", "50")
            self.assertEqual(driver.wait(60), 0 if devices is None else 1, driver.stderr)
            if devices is not None:
                self.assertRegex(self.summary(driver)["reason"], r"no way to fragment\d on worker \S+: both nodes have the "
                                 r"address 172\.17\.0\.1, where the other one listens, .* leave UCX_NET_DEVICES out")
            self.wait_until("no host", lambda: not self.hosts())

    def test_a_worker_waits_for_the_link_to_its_driver(self):
        sh("ip", "-n", self.a, "link", "set", self.dev_a, "down")
        driver, w1, w2 = self.launch("--count", "50")
        w2.wait_line(r"waiting for the driver")
        sh("ip", "-n", self.a, "link", "set", self.dev_a, "up")
        self.assertEqual(driver.wait(60), 0, driver.stderr + w1.stderr + w2.stderr)

    def test_worker_address_that_is_no_address_is_refused(self):
        w = self.start("workerd", "--address", "127.0.0.1:1", "--worker-address", "eth0")
        self.assertEqual(w.wait(), 2)
        self.assertRegex(w.stderr, r'--worker-address: "eth0" is no IP address')


class Translated(TwoNodes):
    """The worker in b is behind a router, which translates its address."""

    def setUp(self):
        super().setUp()
        if shutil.which("iptables") is None:
            self.skipTest("iptables is not installed")
        short = self.mark[:8]
        self.router = "frag-r-" + short
        sh("ip", "netns", "add", self.router)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.router], capture_output=True)
        # b's end of the link goes to the router, which has another link to b.
        sh("ip", "-n", self.b, "link", "set", "vb" + short, "netns", self.router)
        sh("ip", "link", "add", "ra" + short, "netns", self.router, "type", "veth", "peer", "name", "rb" + short, "netns",
           self.b)
        for ns, dev, ip in ((self.router, "vb" + short, "10.77.0.2"), (self.router, "ra" + short, "192.168.77.1"),
                            (self.b, "rb" + short, "192.168.77.2")):
            sh("ip", "-n", ns, "addr", "add", ip + "/24", "dev", dev)
            sh("ip", "-n", ns, "link", "set", dev, "up")
        sh("ip", "-n", self.b, "route", "add", "default", "via", "192.168.77.1")
        self.wait_until("the links", lambda: "state UP" in subprocess.run(
            ["ip", "-n", self.b, "link", "show", "type", "veth"], capture_output=True, text=True).stdout)
        router = self.inside(self.router)
        for command in (("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
                        ("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "vb" + short, "-j", "MASQUERADE"),
                        ("iptables", "-t", "nat", "-A", "PREROUTING", "-i", "vb" + short, "-p", "tcp", "--dport",
                         "21000:21009", "-j", "DNAT", "--to-destination", "192.168.77.2:20000-20009/21000")):
            if subprocess.run([*router, *command], capture_output=True).returncode != 0:
                self.skipTest("this machine cannot translate addresses")
        self.app = self.write("app.yaml", APP % {"folder": self.folder})

    def launch(self, *flags):
        driver = self.driver(self.app, "--output", "json", "--insecure", address="10.77.0.1:0",
                             app_args=("--count", "50"), prefix=self.inside(self.a))
        w1 = self.worker("--once", "--insecure", fragments="fragment1", prefix=self.inside(self.a))
        w2 = self.worker("--once", "--insecure", "--name", "inner", *flags, fragments="fragment2",
                         prefix=self.inside(self.b))
        return driver, w1, w2

    BEHIND = r"worker inner connects from 10\.77\.0\.2, but its own address is 192\.168\.77\.2, so it is behind NAT"

    def test_the_driver_sees_that_an_address_is_translated(self):
        driver, _, _ = self.launch()
        driver.wait_line(self.BEHIND + ", and it offers 192.168.77.2 for data, which others cannot reach; forward its "
                         "data ports .*--announce-address 10.77.0.2")
        self.assertEqual(driver.wait(60), 1, driver.stderr)
        self.assertRegex(self.summary(driver)["reason"], self.BEHIND)

    def test_forwarded_ports_are_announced(self):
        driver, w1, w2 = self.launch("--worker-address", "192.168.77.2:20000-20009", "--announce-address",
                                     "10.77.0.2:21000-21009")
        self.assertEqual(driver.wait(60), 0, driver.stderr + w1.stderr + w2.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 51)))
        self.assert_balanced(self.summary(driver))
        self.assertRegex(driver.stderr, self.BEHIND + ", and it offers 10.77.0.2 for data\n")
        self.assertNotIn("others cannot reach", driver.stderr)
        self.assertEqual((w1.wait(), w2.wait()), (0, 0))


def begin():
    if os.geteuid() != 0 and allowed(AS_OWN_ROOT):
        os.execvp(AS_OWN_ROOT[0], [*AS_OWN_ROOT, *sys.orig_argv])
