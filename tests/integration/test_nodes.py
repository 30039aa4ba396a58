# SPDX-License-Identifier: Apache-2.0
"""Two nodes: workers in network namespaces of their own, linked by veth. Nothing here touches the
machine's network. An ordinary user makes them as root of a user namespace of its own."""
import os
import subprocess
import sys

import cluster
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
    def test_latency_between_two_time_namespaces_is_not_known(self):
        if subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no time namespaces")
        app = self.write("app.yaml", APP % {"folder": self.folder})
        for there in ((), IN_ANOTHER_TIME):
            driver = self.driver(app, "--output", "json", app_args=("--count", "100"))
            workers = [self.worker("--once", fragments="fragment1"),
                       self.worker("--once", fragments="fragment2", prefix=there)]
            self.assertEqual(driver.wait(60), 0, driver.stderr)
            self.assertEqual([w.wait() for w in workers], [0, 0])
            summary = self.summary(driver)
            flow = self.flow(summary, "fragment1.tx.out")
            self.assertEqual(flow["delivered"], 100)
            self.assertLess(summary["first_message_ns"], 60e9)
            if there == ():
                self.assertLess(flow["latency_ns"]["max"], 60e9)
            else:
                self.assertIsNone(flow["latency_ns"])
                self.assertIn("two clocks", flow["latency_reason"])


class Nodes(cluster.ClusterTest):
    """Namespaces a and b, 10.77.0.1 and 10.77.0.2; the driver runs in a."""

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
        for ns, dev, ip in ((self.a, "va" + short, "10.77.0.1"), (self.b, "vb" + short, "10.77.0.2")):
            sh("ip", "-n", ns, "addr", "add", ip + "/24", "dev", dev)
            sh("ip", "-n", ns, "link", "set", dev, "up")
        self.dev_a = "va" + short
        for ns in (self.a, self.b): # the kernel tells the carrier some time after "up"
            self.wait_until("the link in %s" % ns, lambda ns=ns: "state UP" in subprocess.run(
                ["ip", "-n", ns, "link", "show", "type", "veth"], capture_output=True, text=True).stdout)
        self.app = self.write("app.yaml", APP % {"folder": self.folder})

    def inside(self, ns):
        return ("ip", "netns", "exec", ns)

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

    def test_a_link_that_is_cut_ends_the_application(self):
        self.env.update({"FRAG_BEAT_MS": "100", "FRAG_DEAD_MS": "1500"})
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

    def test_worker_address_that_is_not_ours_is_refused(self):
        w = self.start("workerd", "--address", "10.77.0.1:1", "--insecure", "--worker-address", "10.99.0.1",
                       prefix=self.inside(self.b))
        self.assertIn(w.wait(), (2, 3))
        self.assertRegex(w.stderr, r"10\.99\.0\.1")
        self.assertIn("--worker-address", w.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0 and allowed(AS_OWN_ROOT):
        os.execvp(AS_OWN_ROOT[0], [*AS_OWN_ROOT, sys.executable, *sys.argv])
    cluster.main()
