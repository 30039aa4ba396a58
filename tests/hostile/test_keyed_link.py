# SPDX-License-Identifier: Apache-2.0
"""A control connection with a key, attacked from outside and from the middle. All that an attacker
without the key can do is close connections: no field changes, nothing is replayed, nothing older is
spoken, and no crowd of half handshakes keeps a worker out."""
import os
import random
import re
import socket
import subprocess
import time

import victim  # first: it knows where the others are
import cluster
import control
import middle

SEED = int(os.environ.get("FRAG_TEST_SEED", random.randrange(1 << 30)))
CHANGES = int(6 * victim.ATTACK_S)
CROWD = 1000


class Middle(victim.Keyed):
    def start_between(self, change, **arguments):
        """The application, with a man in the middle of worker b."""
        words = [w for k, v in arguments.items() for w in ("--" + k, str(v))]
        self.d = self.driver(self.app, "--output", "json", *self.flags, "--start-timeout", "10s",
                             app_args=words)
        self.middle = middle.Middle(self.address, change)
        self.addCleanup(self.middle.end)
        self.workers = [self.worker("--once", "--name", "a", *self.flags, fragments="fragment1"),
                        self.worker("--once", "--name", "b", *self.flags, fragments="fragment2",
                                    address=self.middle.address)]
        self.named = dict(zip(("driver", "a", "b"), [self.d] + self.workers))
        # Nobody else waits for it, and before it handles SIGTERM it would end by that.
        self.d.wait_line("worker a joined")

    def end_all(self):
        for w in self.workers:
            w.signal(15)
            self.assertIn(w.wait(), (0, 1, 3, 4, 5), w.stderr)
        self.middle.end()
        self.assert_nothing_left()
        self.assert_clean_logs()
        for p in self.named.values():
            self.assertNotIn(self.secret, p.stdout + p.stderr)

    def test_a_changed_byte_ends_the_connection_and_changes_nothing(self):
        self.start_between(lambda way, data: data, count=60, tx_pause="1ms")
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assert_complete(self.summary(self.d), "done")
        sizes = {way: sum(len(data) for w, data in self.middle.seen if w == way)
                 for way in (middle.UP, middle.DOWN)}
        self.end_all()
        rng = random.Random(SEED)
        for number in range(CHANGES):
            way = rng.choice((middle.UP, middle.DOWN))
            place, bit = rng.randrange(sizes[way]), 1 << rng.randrange(8)
            with self.subTest(seed=SEED, number=number, way=way, place=place, bit=bit):
                self.run_changed(way, place, bit)

    def run_changed(self, way, place, bit):
        self.forget()
        at = {middle.UP: 0, middle.DOWN: 0}
        changed = []

        def change(w, data):
            begin = at[w]
            at[w] += len(data)
            if w != way or changed or not begin <= place < at[w]:
                return data
            changed.append(place)
            i = place - begin
            return data[:i] + bytes([data[i] ^ bit]) + data[i + 1:]

        self.start_between(change, count=60, tx_pause="1ms")
        code = self.d.wait()
        summary = self.summary(self.d)
        self.assert_balanced(summary)
        if code == 0:  # worker b came back on a new connection before the application began
            self.assert_complete(summary, "done")
        else:
            self.assertRegex(summary["reason"], r"worker b.*was lost|no worker for fragment2")
            self.assert_truth(summary)
        self.end_all()

    def test_what_was_recorded_is_worth_nothing(self):
        """All that a worker sent, sent again: to the same driver, as it goes on."""
        self.start_between(lambda way, data: data, tx_pause="2ms")
        self.wait_received(10)
        said = b"".join(data for way, data in self.middle.seen if way == middle.UP)
        for data in (said, said[:len(said) // 2]):
            with victim.connect(self.address) as s:
                s.sendall(data)
                self.assertTrue(is_closed(s))
        self.d.wait_line(r"warn .*closed the connection of ")
        self.assertEqual(len(re.findall(r"worker \S+ joined", self.d.stderr)), 2, self.d.stderr)
        self.wait_received(self.received() + 20)
        self.d.signal(15)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assert_complete(self.summary(self.d), "stopped")
        self.end_all()

    def test_a_downgrade_to_plain_frames(self):
        """The middle speaks in clear to both; neither takes it for its peer."""
        plain = {middle.UP: control.hello(1, name=b"b", fragments=(b"fragment2",)),
                 middle.DOWN: control.envelope(control.WELCOME, control.number(1, 1))}

        def change(way, data):
            return plain[way]

        self.start_between(change, count=60)
        self.d.wait_line(r"warn .*closed the connection of .*: it does not speak TLS, so it has no key")
        self.assertNotIn("worker b joined", self.d.stderr)
        self.assertNotIn("attached to the driver", self.workers[1].stderr)
        self.d.signal(15)
        self.assertIn(self.d.wait(), (0, 1), self.d.stderr)
        self.end_all()


def is_closed(s):
    s.settimeout(cluster.PATIENCE_S)
    try:
        while s.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def half_handshakes(report, address, hello):
    """The beginning of a handshake a thousand times, and nothing more."""
    crowd = []
    for _ in range(CROWD):
        s = victim.connect(address)
        crowd.append(s)
        try:
            s.sendall(hello)
        except OSError:
            pass
    report(len(crowd))
    time.sleep(3600)


def flood_of_handshakes(report, address, hello):
    """The driver computes a key exchange for each, as fast as connections go."""
    report("begun")
    while True:
        s = victim.connect(address)
        try:
            s.sendall(hello)
            s.recv(1)
        except OSError:
            pass
        s.close()


class Outside(victim.Keyed):
    def handshake(self):
        """What a worker sends first; that of a key that the driver does not have."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            w = self.worker("--key-file", self.new_key("bad"), address="127.0.0.1:%d" % s.getsockname()[1])
            peer, _ = s.accept()
            with peer:
                hello = peer.recv(1 << 16)
            w.kill()
            w.wait()
            self.processes.remove(w)
        return hello

    def openssl(self, *flags):
        """What openssl s_client says of a connection with these flags."""
        return subprocess.run(["openssl", "s_client", "-connect", self.address, *flags],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_half_handshakes_and_floods_of_them(self):
        hello = self.handshake()
        self.begin(driver_flags=self.flags, worker_flags=self.flags)
        for deed in (half_handshakes, flood_of_handshakes):
            began = time.monotonic()
            self.attack(deed, self.address, hello).report()
            spare = self.worker("--name", "spare", *self.flags, fragments="fragment1")
            self.d.wait_line("worker spare joined")
            spare.kill()
            spare.wait()
            self.processes.remove(spare)
            self.assert_goes_on()
            while time.monotonic() < began + victim.ATTACK_S:
                self.assert_goes_on()
            self.attackers.pop().end()
        self.d.wait_line(r"warn .*closed the connection of ")
        self.end_unharmed()

    def test_older_versions_and_wrong_keys(self):
        self.begin(driver_flags=self.flags, worker_flags=self.flags)
        good = ("-psk", self.secret, "-psk_identity", "good")
        tries = {
            "no key": (),
            "TLS 1.2": ("-tls1_2", *good),
            "another secret": ("-tls1_3", "-psk", "00" * 32, "-psk_identity", "good"),
            "another name": ("-tls1_3", "-psk", self.secret, "-psk_identity", "gooe"),
            "another suite": ("-tls1_3", *good, "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"),
            "no common group": ("-tls1_3", *good, "-groups", "ffdhe2048"),
        }
        for name, flags in tries.items():
            with self.subTest(name):
                said = self.openssl(*flags)
                self.assertNotEqual(said.returncode, 0, said.stdout)
                self.assertRegex(said.stderr, r"alert|:error:", name)
        self.assertEqual(len(re.findall(r"worker \S+ joined", self.d.stderr)), 2, self.d.stderr)
        self.end_unharmed()
