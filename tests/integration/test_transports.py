# SPDX-License-Identifier: Apache-2.0
"""Over which transport messages between two hosts travel: shared memory where their ends can share
it, UCX otherwise, and what the graph asks for."""
import json
import os
import signal

import cluster

APP = """
frag: 1
application: stream
arguments:
  count: {default: "0"}
  edge: {default: auto}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", size: 100000, pause: 1ms}}
  fragment2:
    %(host)s
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: "${edge}"}
"""
# More than any host writes, and yet a limit.
LIMIT = "fsize=%d" % (1 << 60)
NO_MEMORY = r"info .*hosts share no memory with those of other workers: the size of files that hosts write is limited"


def sockets(pid):
    """The sockets of a process: by inode."""
    found = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def uses_tcp(pid):
    """Whether the process has a TCP socket, in whatever state."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        if os.path.exists("/proc/%d/net/%s" % (pid, table)):
            with open("/proc/%d/net/%s" % (pid, table)) as f:
                inodes |= {line.split()[9] for line in f.readlines()[1:]}
    return bool(inodes & sockets(pid))


def abstract_sockets(pids=None):
    """The names of abstract sockets: of these processes, or of all."""
    inodes = None if pids is None else set().union(*(sockets(pid) for pid in pids))
    with open("/proc/net/unix") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return {row[7] for row in rows
            if len(row) > 7 and row[7].startswith("@") and (inodes is None or row[6] in inodes)}


class Transports(cluster.ClusterTest):
    def launch(self, *app_args, workers=((), ()), host=""):
        """A driver, and a worker for each fragment, or one for both, with its flags."""
        self.app = self.write("app.yaml", APP % {"folder": self.folder, "host": host})
        self.d = self.driver(self.app, "--output", "json", app_args=app_args)
        names = ("fragment1", "fragment2") if len(workers) == 2 else (None,)
        self.workers = [self.worker("--once", "--name", "ab"[i], *flags, fragments=names[i])
                        for i, flags in enumerate(workers)]

    def assert_done(self, edge):
        self.assertEqual(self.d.wait(60), 0, self.d.stderr)
        self.assertEqual([w.wait() for w in self.workers], [0] * len(self.workers))
        summary = self.summary(self.d)
        flow = self.flow(summary, "fragment1.tx.out")
        self.assertEqual(flow["edge"], edge)
        self.assert_balanced(summary)
        self.assertEqual(flow["sent"], flow["delivered"])
        self.assertEqual(cluster.sequence(self.path("received")), cluster.sequence(self.path("sent")))
        self.assert_nothing_left()

    def test_nothing_stays_of_hosts_that_share_memory_when_all_are_killed(self):
        self.launch()
        self.wait_flowing(self.d, 10)
        hosts = self.wait_hosts(2)
        names = abstract_sockets(hosts)
        self.assertTrue(any(name.startswith("@frag-shm-") for name in names), names)
        everybody = [self.d, *self.workers]
        for p in everybody:
            p.signal(signal.SIGSTOP)  # so that none sees another one die
        for pid in hosts:
            os.kill(pid, signal.SIGKILL)
        for p in everybody:
            p.signal(signal.SIGKILL)
            p.wait()
        self.wait_until("the names of sockets are free", lambda: not names & abstract_sockets())
        self.assert_nothing_left()

    def assert_hosts_use_no_network(self):
        self.wait_flowing(self.d, 10)
        for pid in self.wait_hosts(2):
            with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
                mapped = maps.read()
            self.assertIn("memfd:frag-heap", mapped)
            self.assertNotIn("libucp", mapped)
            self.assertFalse(uses_tcp(pid))
        self.d.signal(signal.SIGTERM)
        self.assert_done("shm")

    def test_hosts_of_one_machine_share_memory_and_use_no_network(self):
        self.launch()
        self.assert_hosts_use_no_network()

    def test_hosts_of_one_worker_share_memory_and_use_no_network(self):
        self.launch(workers=((),), host="host: other")
        self.assert_hosts_use_no_network()

    def test_ucx_on_one_machine_if_the_graph_asks_for_it(self):
        self.launch("--edge", "ucx")
        self.wait_flowing(self.d, 10)
        for pid in self.wait_hosts(2):
            with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
                mapped = maps.read()
            self.assertIn("libucp", mapped)
            self.assertNotIn("memfd:frag-heap", mapped, "nothing that this host sends is shared")
            self.assertTrue(uses_tcp(pid))
        self.d.signal(signal.SIGTERM)
        self.assert_done("ucx")

    def test_a_worker_that_shares_no_memory_says_why_and_is_reached_over_ucx(self):
        self.launch("--count", "10", workers=((), ("--host-limit", LIMIT)))
        self.assert_done("ucx")
        self.assertRegex(self.workers[1].stderr, NO_MEMORY)
        self.assertNotRegex(self.workers[0].stderr, "share no memory")
        self.assertRegex(self.d.stderr, r"info .*fragment2 on worker b shares no memory with other hosts: the size of "
                                        r"files that hosts write is limited")

    def refused(self, *flags):
        """The sentence about a flow that says `edge: shm`; no host was started."""
        self.launch("--edge", "shm", workers=((), flags))
        self.assertEqual(self.d.wait(60), 2, self.d.stderr)
        self.assertEqual([w.wait() for w in self.workers], [2, 2])
        failure = self.summary(self.d)["failure"]
        self.assertEqual((failure["code"], failure["scope"]), ("memory_not_shared", "edge"))
        for w in self.workers:
            self.assertNotIn("runs fragment", w.stderr)
        self.assert_nothing_left()
        return failure["sentence"]

    def test_shared_memory_is_refused_where_a_worker_has_none(self):
        self.assertRegex(self.refused("--host-limit", LIMIT),
                         r"app\.yaml:\d+:\d+: flow fragment1\.tx\.out -> fragment2\.rx\.in: edge shm needs hosts that "
                         r"share memory, but worker b shares none: the size of files that hosts write is limited "
                         r"\(fsize, ulimit -f\); leave edge out, or remove that reason$")

    def test_shared_memory_is_refused_between_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start hosts as another user")
        self.assertRegex(self.refused("--host-user", "nobody"),
                         "edge shm needs hosts that share memory, but worker a and worker b run their hosts as two "
                         "users; leave edge out, or start both with one --host-user$")


BOTH = """
frag: 1
application: both
fragments:
  one: {operators: {tx: {type: ping_tensor_tx, conditions: [{type: count, count: 20}]}}}
  two: {operators: {rx: {type: ping_tensor_rx}}}
  three: {operators: {rx: {type: ping_tensor_rx}}}
flows:
  - one.tx.out -> two.rx.in
  - {from: one.tx.out, to: three.rx.in, edge: ucx}
"""


class Both(cluster.ClusterTest):
    def test_one_output_over_both_transports(self):
        run = self.start("fragctl", "run", "-q", "--workers", "3", "--output", "json", self.write("both.yaml", BOTH))
        self.assertEqual(run.wait(60), 0, run.stderr)
        self.assertEqual({f["to"]: (f["edge"], f["sent"], f["delivered"]) for f in json.loads(run.stdout)["flows"]},
                         {"two.rx.in": ("shm", 20, 20), "three.rx.in": ("ucx", 20, 20)})
        self.assert_nothing_left()
