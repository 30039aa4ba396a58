# SPDX-License-Identifier: Apache-2.0
"""A worker that was let in and lies: about hosts of other workers, about its own, and about what it
is. What it says of others counts for nothing; what it says of its own ends its application at most,
with a sentence and an account that balances."""
import signal

import victim  # first: it knows where the others are
import cluster
import control
from control import block, number
import liar

LARGEST = (1 << 64) - 1
FAILURE = block(1, number(1, 3) + block(2, b"a lie"))
OF_HOSTS = {
    control.HOST_PREPARED: number(1, 1) + block(4, block(1, b"fragment1")),
    control.HOST_WIRED: FAILURE,
    control.HOST_STARTED: FAILURE,
    control.HOST_EVENT: number(1, 4) + block(3, number(1, 3) + block(2, b"a lie")),
    control.HOST_STATS: number(1, 1) + block(3, block(1, control.varint(LARGEST) * 4)),
    control.HOST_EXIT: number(1, 1) + block(3, number(1, 3) + block(2, b"a lie")),
}
NOT_FOR_A_DRIVER = {
    control.HELLO: number(1, 1) + number(3, control.WORKER) + block(4, b"again"),
    control.WELCOME: number(1, 1),
    control.REFUSED: number(1, 5) + block(2, b"go away"),
    control.HOST_CREATE: (block(1, b"tortured") + block(3, b"fragment1") + block(6, bytes(32)) +
                          block(20, bytes(32))),
    control.HOST_WIRE: b"",
    control.HOST_START: b"",
    control.HOST_STOP: b"",
    control.HOST_KILL: b"",
    control.REQUEST: number(1, 1),
    control.REPLY: b"",
    control.APP_ENDED: b"",
}


class OfOthers(victim.Victim):
    def test_what_it_says_of_hosts_of_others_counts_for_nothing(self):
        self.begin()
        w = liar.Worker(self.address, fragments=(b"fragment1", b"fragment2", b"all"))
        for kind, body in OF_HOSTS.items():
            for run in (0, 1, 2, LARGEST):
                for host in (0, 1, 2, (1 << 32) - 1):
                    for epoch in (0, 1, 2, LARGEST):
                        w.send(kind, body, run, host, epoch)
        self.assert_goes_on()
        w.send(control.LEAVE, block(1, b"it has lied enough"))
        self.d.wait_line("worker liar left: it has lied enough")
        w.close()
        self.end_unharmed()

    def test_what_is_not_for_a_driver_ends_its_session(self):
        self.begin()
        for kind, body in NOT_FOR_A_DRIVER.items():
            w = liar.Worker(self.address, b"liar%d" % kind)
            w.send(kind, body, 1, 1, 1)
            self.assertTrue(w.is_closed(), "after a message of kind %d" % kind)
            w.close()
            self.d.wait_line(r"worker liar%d .*it sent \w+, which is not for a driver" % kind)
        self.end_unharmed()

    def test_one_that_floods_and_does_not_read(self):
        """Beats are answered, and what it does not read is given up."""
        self.begin()
        w = liar.Worker(self.address)
        w.sock.settimeout(1)
        junk = b"".join(control.envelope(k, body, 1, 1, 1) for k, body in OF_HOSTS.items()) * 1000
        try:
            for _ in range(int(50 * victim.ATTACK_S)):
                w.send_bytes(junk)
        except OSError:
            pass
        self.assert_goes_on()
        w.close()
        self.end_unharmed()

    def test_names_without_end(self):
        """A worker that names as many fragments as fit costs the driver nothing that lasts."""
        self.begin()
        for count, length in ((4096, 63), (4097, 1), (1, 1 << 19), (20000, 40)):
            s = victim.connect(self.address)
            s.sendall(control.hello(1, name=b"n" * 100000 if count == 1 else b"many",
                                    fragments=[b"x" * length] * count))
            self.attackers.append(Closing(s))
        self.end_unharmed()


class Client(victim.Victim):
    def test_one_that_asks_without_end_is_closed(self):
        self.begin()
        w = liar.Worker(self.address, b"asker", role=control.CLIENT)
        try:
            for _ in range(5000):
                w.send(control.REQUEST, number(1, 1))
        except OSError:
            pass
        self.assertTrue(w.is_closed())
        w.close()
        self.d.wait_line("client asker left: it asks too often")
        self.end_unharmed()


class Reporter(victim.Victim):
    """Whoever calls himself the reporter of a session."""

    def hello(self, session, secret):
        with victim.connect(self.address) as s:
            s.sendall(control.hello(1, control.REPORTER, b"crash", session=session, secret=secret))
            s.settimeout(cluster.PATIENCE_S)
            try:
                return control.fields(control.read_frame(s))
            except EOFError:
                return {}

    def test_one_without_the_secret_changes_nothing(self):
        self.begin()
        w = liar.Worker(self.address)
        session, secret = w.welcome[1][0], w.welcome[6][0]
        lies = ((session, bytes(16)), (session, b""), (session + 1, secret), (0, secret), (0, b""))
        for wrong in lies:
            self.assertNotIn(control.WELCOME, self.hello(*wrong), wrong)
        self.d.wait_line(r"warn .*refused .*: the session has ended, or this is not its secret")
        w.send(control.LEAVE, block(1, b"enough"))
        self.d.wait_line("worker liar left: enough")
        w.close()
        self.end_unharmed()

    def test_one_with_a_secret_speaks_for_no_other_worker(self):
        self.begin()
        w = liar.Worker(self.address)
        session, secret = w.welcome[1][0], w.welcome[6][0]
        for kind, body in OF_HOSTS.items():
            s = victim.connect(self.address)
            s.sendall(control.hello(1, control.REPORTER, b"crash", session=session, secret=secret))
            try:
                for host in (1, 2):
                    for epoch in (1, 2):
                        s.sendall(control.envelope(kind, body, 1, host, epoch))
            except ConnectionError:
                pass  # the driver has closed it after the first of them
            self.attackers.append(Closing(s))
        self.assert_goes_on()
        w.close()
        self.end_unharmed()


class Closing:
    """A socket that is closed at the end, as an attacker is."""

    def __init__(self, sock):
        self.end = sock.close


class OfItsOwn(victim.Victim):
    """The liar runs fragment2 of an application, and a real worker fragment1."""

    def begin_with_liar(self):
        self.d = self.driver(self.app, "--output", "json", "--start-timeout",
                             "%dms" % (2000 * cluster.times_slower()),
                             app_args=("--tx_pause", "1ms"))
        self.liar = liar.Worker(self.address, fragments=(b"fragment2",))
        self.a = self.worker("--once", "--name", "a", fragments="fragment1")
        self.named = {"driver": self.d, "a": self.a}
        envelope, _ = self.liar.expect(control.HOST_CREATE)
        self.ids = [envelope[f][0] for f in (3, 4, 5)]

    def say(self, kind, body=b""):
        self.liar.send(kind, body, *self.ids)

    def end_in(self, sentence, codes=(1, 2, 3)):
        try:
            self.liar.expect(control.HOST_KILL)
            self.say(control.HOST_EXIT, number(1, 137) + number(2, 9))
        except (OSError, EOFError):
            pass  # the driver has closed the connection
        code = self.d.wait()
        self.liar.close()
        self.assertIn(code, codes, self.d.stderr)
        summary = self.summary(self.d)
        self.assert_balanced(summary)
        self.assertRegex(summary["reason"], sentence)
        self.assertEqual(self.a.wait(), code, self.a.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()

    @staticmethod
    def table(fragment=b"fragment2", op=b"rx", port=b"in", more=b"", count=1, port_more=number(3, 1)):
        ports = block(3, block(1, port) + port_more)
        ops = block(2, block(1, op) + block(2, b"truth_rx") + ports) * count
        return number(1, 1) + block(4, block(1, fragment) + ops) + more

    def test_tables(self):
        lies = {
            "nothing": (b"", r"fragment2"),
            "of another fragment": (self.table(fragment=b"fragment1"), r"prepared other fragments than fragment2"),
            "without the operator": (self.table(op=b"other"), r"fragment2\.rx|rx"),
            "without the port": (self.table(port=b"other"), r"fragment2\.rx"),
            "an operator twice": (self.table(count=2), r"."),
            "a flow out of bounds": (self.table(more=block(5, number(2, 9) + number(5, 9))), r"."),
            "a flow of another fragment": (self.table(more=block(5, number(1, 1 << 31))), r"."),
            "too many operators": (self.table(count=70000), r"worker liar|was lost"),
            "a direction that is none": (self.table(port_more=number(3, 77)), r"."),
            "a policy that is none": (self.table(port_more=number(6, 77)), r"."),
            "an address of nobody": (self.table(more=block(9, block(1, b"ucx") + block(2, bytes(64)))), r"."),
            "too long an address": (self.table(more=block(9, block(1, b"ucx") + block(2, bytes(4097)))), r"."),
            "of a transport that is none": (self.table(more=block(9, block(1, b"magic") + block(2, b"x"))), r"."),
            "twenty transports": (self.table(more=block(9, block(1, b"ucx") + block(2, b"x")) * 20), r"."),
        }
        for name, (body, sentence) in lies.items():
            with self.subTest(name):
                self.begin_with_liar()
                self.say(control.HOST_PREPARED, body)
                self.end_in(sentence)

    def test_messages_out_of_turn(self):
        huge = control.varint(LARGEST)
        stats = block(3, b"".join(block(f, huge * n) for f, n in ((1, 4), (2, 2), (3, 4), (4, 4))))
        lies = {
            "WIRED at first": (control.HOST_WIRED, b"", "sent HOST_WIRED for fragment2, which is preparing"),
            "STARTED at first": (control.HOST_STARTED, b"", "sent HOST_STARTED for fragment2"),
            "EXIT": (control.HOST_EXIT, number(1, 0), "ended with 0 before the application did"),
            "EXIT with a failure that is none": (control.HOST_EXIT, block(3, number(1, 4000)), r"."),
            "FAILED": (control.HOST_EVENT, OF_HOSTS[control.HOST_EVENT], "a lie"),
            "a lost peer that is none": (control.HOST_EVENT, number(1, 5) + number(2, 77), "not answered"),
            "LEAVE": (control.LEAVE, block(1, b"enough"), r"worker liar.*fragment2.*enough"),
            "counts beyond everything": (control.HOST_STATS, number(1, 1) + stats, "has not answered PREPARE"),
            "counts of many operators": (control.HOST_STATS, block(2, number(1, 1)) * 70000, r"more than|."),
        }
        for name, (kind, body, sentence) in lies.items():
            with self.subTest(name):
                self.begin_with_liar()
                self.say(kind, body)
                self.end_in(sentence, (4,) if "not answered" in sentence else (1, 2, 3))

    def test_silence(self):
        self.begin_with_liar()
        self.end_in("fragment2 on worker liar has not answered PREPARE", (4,))
        self.begin_with_liar()
        self.liar.close()
        self.end_in("worker liar.*was lost")

    def test_claims_are_logged(self):
        """Whoever names a fragment first gets it; the driver's log names him."""
        self.begin_with_liar()
        self.d.wait_line("fragment2 runs on worker liar: worker liar is the only one that names it")
        self.d.signal(signal.SIGTERM)
        self.assertIn(self.d.wait(), (0, 1), self.d.stderr)
        self.liar.close()
        self.a.wait()
        self.assert_nothing_left()
