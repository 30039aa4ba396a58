# SPDX-License-Identifier: Apache-2.0
"""What is attacked: an application over a driver and two workers, and, beside it, one of another
driver that must notice nothing. The questions that are asked after an attack are those of the
torture: nothing was lost, nothing crashed, nothing is left.
"""
import ctypes
import encodings.idna  # noqa: F401  sockets want it, and an attacker may not read Python's files
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
import traceback

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "integration"), os.path.join(TESTS, "torture")]

import cluster  # noqa: E402
import world  # noqa: E402

STRANGER = 65534  # nobody
# How long an attack goes on that has no end of its own. make hostile sets it.
ATTACK_S = float(os.environ.get("FRAG_TEST_ATTACK_S", "1"))
FILES = 2048
# A daemon under attack may grow by this much: sixty-four unfinished frames of the largest size that
# a stranger may send.
GROWTH_BYTES = 96 << 20
# Nobody is to be taken for dead because the attack leaves little of the machine to it.
PATIENT = {"FRAG_DEAD_MS": "60000"}


def hindrance():
    """Why nothing can be attacked here, or None."""
    if os.geteuid() != 0:
        return "only root can start an attacker who is another user"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, max(hard, FILES)))
    except ValueError:
        return "an attacker needs %d descriptors, and root cannot raise the limit of %d" % (FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return None


class Attacker:
    """A process of another user that runs deed(report, *args). What it reports comes back line by
    line. namespace: a network namespace that it runs in."""

    def __init__(self, deed, *args, user=STRANGER, namespace=None):
        self.reports, theirs = os.pipe()
        self.buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            self._run(theirs, deed, args, user, namespace)
        os.close(theirs)

    @staticmethod
    def _run(theirs, deed, args, user, namespace):
        def report(what):
            os.write(theirs, json.dumps(what).encode() + b"\n")
        try:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
            if namespace:
                with open("/run/netns/" + namespace) as f:
                    set_namespace(f.fileno())
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            deed(report, *args)
            os._exit(0)
        except BaseException:
            report({"error": traceback.format_exc()})
        finally:
            os._exit(1)

    def report(self, timeout=cluster.PATIENCE_S):
        """The next thing it reports."""
        end = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.reports], [], [], left)[0], "the attacker reports nothing"
            more = os.read(self.reports, 65536)
            assert more, "the attacker ended without a report"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        said = json.loads(line)
        assert not (isinstance(said, dict) and "error" in said), said
        return said

    def end(self):
        if self.pid is None:
            return
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.reports)
        self.pid = None


def set_namespace(fd):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0x40000000) < 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "setns")


def connect(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=cluster.PATIENCE_S)


def resident_bytes(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * resource.getpagesize()


class Victim(world.World):
    """Tests of this class attack self.d, self.workers and their hosts."""

    def setUp(self):
        super().setUp()
        self.choose_app(quick=False)
        del self.env["FRAG_LOG_LEVEL"]
        self.attackers = []
        self.addCleanup(lambda: [a.end() for a in self.attackers])

    def begin(self, **more):
        """The victim and its bystander run, and messages flow."""
        self.env.update(PATIENT)
        self.begin_bystander()
        self.launch(tx_pause="2ms", **more)
        self.wait_received(10)
        self.before = {name: (world.descriptors(p.pid), resident_bytes(p.pid))
                       for name, p in self.named.items()}

    def forget(self):
        """The next run writes its own truth."""
        for name in ("sent", "received"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))

    def begin_bystander(self):
        self.bystander = world.Bystander(PATIENT)
        self.addCleanup(self.bystander.world.close)

    def attack(self, deed, *args, **how):
        if hindrance():
            self.skipTest(hindrance())
        a = Attacker(deed, *args, **how)
        self.attackers.append(a)
        return a

    def assert_goes_on(self):
        """Under the attack too, messages arrive, here and there."""
        seen = self.received()
        self.wait_received(seen + 20)
        self.assertIsNone(self.d.child.poll(), self.d.stderr)
        self.bystander.check_goes_on()

    def assert_recovers(self):
        """What the attack took is given back."""
        for name, p in self.named.items():
            held, bytes_before = self.before[name]
            self.wait_until("descriptors of %s as before: %r" % (name, world.descriptors(p.pid) - held),
                            lambda p=p, held=held: not world.descriptors(p.pid) - held)
            if cluster.TIMES_SLOWER == 1 and "ASAN_OPTIONS" not in os.environ:
                self.wait_until("memory of %s but for %d bytes" % (name, GROWTH_BYTES),
                                lambda p=p, most=bytes_before + GROWTH_BYTES:
                                resident_bytes(p.pid) < most)

    def end_unharmed(self):
        """The victim ends in order with everything that was sent; so does the bystander."""
        self.assert_goes_on()
        for a in self.attackers:
            a.end()
        self.assert_recovers()
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        for w in self.workers:
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_complete(self.summary(self.d), "stopped")
        self.assert_nothing_left()
        self.assert_clean_logs()
        self.bystander.end()


class Keyed(Victim):
    """The same with a key for its control connections."""

    def setUp(self):
        super().setUp()
        self.key = self.new_key("good")
        with open(self.key) as f:
            self.secret = [l for l in f if l.startswith("frag-key-")][0].split()[3]
        self.flags = ("--key-file", self.key)

    def new_key(self, name):
        path = self.path(name + ".key")
        subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new", "--name", name, path],
                       check=True, capture_output=True, env=self.env)
        return path
