# SPDX-License-Identifier: Apache-2.0
"""Users of one machine: without a key, daemons trust processes of their own user, of root, and of
the users that they are told. Here the other user is nobody."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import cluster
import control

NOBODY = 65534


def as_user(number):
    return ("env", "-u", "FRAG_HOST_USER", "setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups")


AS_NOBODY = as_user(NOBODY)
APP = """
frag: 1
application: numbers
extensions: [libtruth.so]
arguments: {count: {default: 20}, file: {default: "%(folder)s/received"}}
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent"}, conditions: [{type: count, count: "${count}"}]}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "${file}"}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""


@contextlib.contextmanager
def as_nobody():
    """Sockets that are made or accepted meanwhile belong to that user."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


class TwoUsers(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can run processes of another user")
        self.app = self.write("app.yaml", APP % {"folder": self.folder})
        for folder in (self.folder, self.scratch):
            os.chmod(folder, 0o1777)
        # those of tests/run.py
        folder = os.path.dirname(self.folder)
        while re.search(r"/frag-test-[^/]+(/scratch)?$", folder):
            os.chmod(folder, 0o711)
            folder = os.path.dirname(folder)
        with as_nobody():
            if not (os.access(os.path.join(cluster.BIN, "workerd"), os.X_OK, effective_ids=True) and
                    os.access(self.app, os.R_OK, effective_ids=True)):
                self.skipTest("the user nobody cannot reach the build or the scratch folder")

    def tcp(self):
        host, port = self.address.rsplit(":", 1)
        return host.strip("[]"), int(port)

    def stranger(self, family=socket.AF_INET, host=None):
        with as_nobody():
            s = socket.socket(family)
            s.settimeout(cluster.PATIENCE_S)
            s.connect((host or self.tcp()[0], self.tcp()[1]))
        self.addCleanup(s.close)
        return s

    def port_of_nobody(self):
        with as_nobody():
            s = control.listener()
        s.settimeout(cluster.PATIENCE_S)
        self.addCleanup(s.close)
        self.address = "127.0.0.1:%d" % s.getsockname()[1]
        return s

    def serve(self, driver, *args, prefix=()):
        """Two workers run the application to its end."""
        workers = [self.worker("--once", *args, fragments=f, prefix=prefix) for f in ("fragment1", "fragment2")]
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertEqual([w.wait() for w in workers], [0, 0], [w.stderr for w in workers])
        self.assertEqual(len(cluster.sequence(self.path("received"))), 20)

    def refusal(self, s):
        """The sentence of REFUSED, after which nothing more comes."""
        envelope = control.fields(control.read_frame(s))
        self.assertEqual(list(envelope), [1, control.REFUSED])
        self.assertEqual(s.recv(1), b"")
        return control.fields(envelope[control.REFUSED][0])[2][0].decode()

    def expect_refused(self, s):
        self.assertRegex(self.refusal(s),
                         "^driverd runs as user root and does not trust user nobody; run both as the same user, or "
                         "start driverd with --allow-user nobody$")

    # Whoever binds the driver's port first commands the workers that retry it.

    def test_a_driver_of_another_user_gets_nothing_from_a_worker(self):
        s = self.port_of_nobody()
        w = self.worker("--once")
        with as_nobody():
            peer, _ = s.accept()
        with peer:
            self.assertEqual(peer.recv(1), b"")
        self.assertEqual(w.wait(), 5, w.stderr)
        self.assertRegex(w.stderr, "worker: cannot attach to the driver at %s: a process of user nobody listens there, and "
                         "workerd, which runs as user root, does not trust that user; end that process, or start "
                         "workerd with --allow-user nobody if it is meant" % self.address)

    def test_a_port_that_is_not_accepted_from_gets_nothing_either(self):
        """To older kernels a connection that nobody has accepted yet is root's."""
        s = self.port_of_nobody()
        w = self.worker()
        w.wait_line("worker: waiting for the driver at %s: its program does not accept the connection" % self.address)
        with as_nobody():
            peer, _ = s.accept()
        with peer:
            self.assertEqual(peer.recv(1), b"")

    def test_roots_file_is_not_overwritten_by_another_users_driver(self):
        precious = self.write("precious", "root's own")
        os.chmod(precious, 0o600)
        d = self.driver(self.app, app_args=("--file", precious), prefix=AS_NOBODY)
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assertEqual([w.wait() for w in workers], [5, 5])
        with open(precious) as f:
            self.assertEqual(f.read(), "root's own")
        self.assertNotIn("joined", d.stderr)

    def test_a_worker_that_serves_waits_for_the_right_driver(self):
        wrong = self.driver(self.app, prefix=AS_NOBODY)
        workers = [self.worker("--name", f, fragments=f) for f in ("fragment1", "fragment2")]
        for w in workers:
            w.wait_line(" warn +worker: waiting for the driver at %s: a process of user nobody listens there" %
                        self.address)
        wrong.kill()
        wrong.wait()
        right = self.driver(self.app, address=self.address)
        self.assertEqual(right.wait(), 0, right.stderr)
        self.assert_nothing_left(keep=workers)

    def test_a_worker_obeys_the_user_that_it_is_told(self):
        for user in ("nobody", str(NOBODY)):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path("received"))
            d = self.driver(self.app, prefix=AS_NOBODY)
            self.serve(d, "--allow-user", "daemon", "--allow-user", user)

    def test_a_worker_obeys_root(self):
        d = self.driver(self.app, "--allow-user", "nobody")
        self.serve(d, prefix=AS_NOBODY)

    def test_a_client_trusts_the_driver_whose_folder_root_made(self):
        """As /run/frag, which systemd makes for the user of the driver's unit."""
        above = self.path("machine")
        folder = os.path.join(above, "frag")
        os.makedirs(folder)
        os.chmod(above, 0o755)
        os.chown(folder, NOBODY, NOBODY)
        d = self.driver(self.app, "-v", prefix=AS_NOBODY, env={"RUNTIME_DIRECTORY": folder})
        d.wait_line("for clients of this machine")
        ask = "fragctl", "list", "--address", self.address
        client = self.start(*ask, env={"XDG_RUNTIME_DIR": above})
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assertIn("numbers", client.stdout)
        # anybody may have made it
        os.chmod(above, 0o777)
        client = self.start(*ask, env={"XDG_RUNTIME_DIR": above})
        self.assertEqual(client.wait(), 5, client.stderr)
        self.assertRegex(client.stderr, "a process of user nobody listens there, and fragctl, which runs as user root")

    def test_a_client_that_may_not_look_claims_no_driver(self):
        """A folder that it may not enter hides whether there is a socket; one that it may shows it."""
        above = self.path("machine")
        folder = os.path.join(above, "frag")
        os.makedirs(folder, 0o700)
        os.chmod(above, 0o755)

        def asks(address, code, sentence, *flags):
            client = self.start("fragctl", "list", "--address", address, *flags, prefix=AS_NOBODY, env={"XDG_RUNTIME_DIR": above})
            self.assertEqual(client.wait(), code, client.stderr)
            self.assertIn(sentence, client.stderr)

        denied = ("fragctl: you have no permission for a driver at port %s of this machine, if there is one: its socket "
                  "is for its user, root and the group of driverd (usermod -a -G frag NAME, then log in again)")
        asks("127.0.0.1:1", 5, denied % 1)
        os.chmod(folder, 0o711)
        asks("127.0.0.1:1", 3, "there is no driver at 127.0.0.1:1: ")
        keys, own, other = self.path("frag.key"), self.path("own.key"), self.path("other.key")
        for key in (keys, other):
            self.assertEqual(self.start("fragctl", "key", "new", key).wait(), 0)
        shutil.copy(keys, own)
        for key in (own, other):
            os.chown(key, NOBODY, NOBODY)
        d = self.driver(self.app, "-v", "--key-file", keys, env={"RUNTIME_DIRECTORY": folder})
        d.wait_line("for clients of this machine")
        for mode in (0o711, 0o700):
            os.chmod(folder, mode)
            asks(self.address, 5, denied % self.tcp()[1])
            asks(self.address, 0, "", "--key-file", own)
            asks(self.address, 5, "the driver at %s refused: " % self.address, "--key-file", other)

    def test_a_folder_that_somebody_else_made_first_keeps_nobody_from_his_driver(self):
        user = 10000 + os.getpid() % 50000  # another run of this test has another one
        folder = "/tmp/frag-%d" % user
        os.mkdir(folder, 0o755)
        self.addCleanup(shutil.rmtree, folder)
        os.chown(folder, NOBODY, NOBODY)
        d = self.driver(self.app, prefix=as_user(user), env={"XDG_RUNTIME_DIR": ""})
        d.wait_line("has no unix socket for clients of this machine: .*%s belongs to another user \\(65534\\)" % folder)
        path = os.path.join(folder, "%d.sock" % self.tcp()[1])
        with as_nobody():
            trap = socket.socket(socket.AF_UNIX)
            trap.bind(path)
            trap.listen()
        self.addCleanup(trap.close)
        os.chmod(path, 0o777)
        client = self.start("fragctl", "list", "--address", self.address, prefix=as_user(user), env={"XDG_RUNTIME_DIR": ""})
        self.assertEqual(client.wait(), 0, client.stderr)
        self.assertIn("numbers", client.stdout)

    def test_two_ordinary_users_are_strangers_to_each_other(self):
        d = self.driver(self.app, prefix=AS_NOBODY)
        w = self.worker("--once", prefix=as_user(1))
        self.assertEqual(w.wait(), 5, w.stderr)
        w = self.worker("--allow-user", "nobody", prefix=as_user(1))
        self.assertEqual(w.wait(), 5, w.stderr)
        self.assertRegex(w.stderr, "refused this worker: driverd runs as user nobody and does not trust user daemon")
        self.serve(d, prefix=AS_NOBODY)

    # Whoever says HELLO first with a fragment's name receives the graph and that fragment.

    def test_a_worker_of_another_user_gets_no_graph(self):
        d = self.driver(self.app)
        s = self.stranger()
        s.sendall(control.hello(major=1, fragments=[b"fragment1"]))
        self.expect_refused(s)
        d.wait_line("warn +driver: closed the connection of 127.0.0.1:%d: driverd runs as user root" %
                    s.getsockname()[1])
        w = self.worker("--name", "thief", fragments="fragment1", prefix=AS_NOBODY)
        self.assertEqual(w.wait(), 5, w.stderr)
        self.assertRegex(w.stderr, "the driver at .* refused this worker: driverd runs as user root and does not trust")
        self.serve(d)
        self.assertNotIn("thief", d.stderr)

    def test_a_worker_that_has_closed_gets_no_graph(self):
        """To older kernels what it leaves behind is root's."""
        d = self.driver(self.app)
        for _ in range(20):
            s = self.stranger()
            s.sendall(control.hello(major=1, name=b"thief", fragments=[b"fragment1"]))
            s.close()
        self.serve(d)
        self.assertNotIn("thief", d.stderr)

    def crowd(self, first, count):
        """Of many strangers of user nobody the first have been closed; the one that came before them has not."""
        crowd = [self.stranger() for _ in range(count)]
        while crowd[0].recv(4096):
            pass
        first.setblocking(False)
        with self.assertRaises(BlockingIOError):
            first.recv(1)

    def first(self):
        s = socket.create_connection(self.tcp(), timeout=cluster.PATIENCE_S)
        self.addCleanup(s.close)
        return s

    def test_those_who_are_refused_displace_nobody(self):
        d = self.driver(self.app)
        self.crowd(self.first(), 100)
        self.serve(d)

    def test_those_without_a_key_displace_nobody_of_another_user(self):
        key = self.path("frag.key")
        with open(key, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new"], stdout=f,
                           stderr=subprocess.DEVNULL, env=self.env, check=True)
        d = self.driver(self.app, "--key-file", key)
        self.crowd(self.first(), 100)
        self.serve(d, "--key-file", key)

    def test_ipv6(self):
        self.need_ipv6()
        d = self.driver(self.app, address="[::1]:0")
        self.expect_refused(self.stranger(socket.AF_INET6))
        self.serve(d)

    def test_both_families_on_one_socket(self):
        """What stays on this machine is checked, although others on the network are not."""
        self.need_ipv6()
        d = self.driver(self.app, "--insecure", address="[::]:0")
        port = self.tcp()[1]
        self.expect_refused(self.stranger(socket.AF_INET6, "::1"))
        self.expect_refused(self.stranger(socket.AF_INET, "127.0.0.1"))
        self.address = "127.0.0.1:%d" % port
        self.serve(d)

    def test_the_number_of_all_unknown_users_is_no_user(self):
        """In a user namespace where only root has a number, everybody else is shown as 65534."""
        namespace = ("unshare", "--user", "--map-root-user")
        if self.start("/bin/true", prefix=namespace).wait() != 0:
            self.skipTest("the machine lets its user make no user namespaces")
        d = self.driver(self.app, "--allow-user", str(NOBODY), prefix=namespace)
        self.assertRegex(self.refusal(self.stranger()), "has no number in the user namespace of driverd")
        self.serve(d)

    def test_the_group_frag_counts_for_a_daemon_in_it(self):
        with open("/etc/group") as f:
            groups = self.write("group", f.read() + "frag:x:54321:nobody\n")
        group = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"', groups)
        probe = self.start("/bin/true", prefix=group)
        if probe.wait() != 0:
            self.skipTest("the machine lets its user make no mount namespaces")
        d = self.driver(self.app, prefix=group)
        self.expect_refused(self.stranger())
        d.kill()
        d = self.driver(self.app, prefix=group + ("setpriv", "--groups", "54321"))
        self.serve(d, prefix=AS_NOBODY)


class Believed(cluster.ClusterTest):
    """What decides which code runs is taken only where nobody but the user of a daemon and root can change it."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can make files of another user")
        self.app = self.write("app.yaml", APP % {"folder": self.folder})
        self.other = self.path("other")
        os.mkdir(self.other, 0o755)
        os.chown(self.other, NOBODY, NOBODY)

    def refused(self, path, program, *args):
        d = self.start(program, "--address", self.address if program == "workerd" else "127.0.0.1:0", *args)
        self.assertEqual(d.wait(), 3, d.stderr)
        self.assertIn("%s does not rely on %s" % (program, path), d.stderr)
        return d.stderr

    def test_the_state_folder_of_another_user(self):
        self.assertIn("%s belongs to another user (65534), who could change it; see what it holds and run: chown -h 0 %s, "
                      "or give another path" % (self.other, self.other),
                      self.refused(self.other, "driverd", "--state-dir", self.other))
        self.assertEqual(os.listdir(self.other), [])

    def test_a_state_folder_below_one_of_another_user(self):
        state = os.path.join(self.other, "state")
        self.refused(state, "driverd", "--state-dir", state)
        self.assertEqual(os.listdir(self.other), [])
        os.mkdir(state, 0o700)
        self.refused(state, "driverd", "--state-dir", state)
        self.assertEqual(os.listdir(state), [])

    def test_a_state_folder_that_others_may_write(self):
        state = self.path("state")
        os.mkdir(state)
        os.chmod(state, 0o777)
        self.assertIn("other users may write to %s (mode 0777); see what it holds and run: chmod go-w %s" % (state, state),
                      self.refused(state, "driverd", "--state-dir", state))
        os.chmod(state, 0o755)
        d = self.start("driverd", "--address", "127.0.0.1:0", "--state-dir", state)
        d.wait_line("waits for applications")

    def test_state_files_of_another_user_in_a_folder_of_its_own(self):
        for file in ("state.db", "state.db-wal", "state.db-journal"):
            state = self.path("state-" + file)
            os.mkdir(state, 0o700)
            path = os.path.join(state, file)
            with open(path, "w"):
                os.chown(path, NOBODY, NOBODY)
            self.refused(path, "driverd", "--state-dir", state)

    def test_a_file_of_settings_that_others_may_change(self):
        settings = self.write("settings.env", "FRAG_BEAT_MS=100\n")
        for program, *words in (["driverd"], ["workerd"], ["fragctl", "web"]):
            args = words + ["--address", "127.0.0.1:1", "--env-file"]
            for mode, owner in ((0o666, 0), (0o644, NOBODY)):
                os.chmod(settings, mode)
                os.chown(settings, owner, owner)
                d = self.start(program, *args, settings)
                self.assertEqual(d.wait(), 2, d.stderr)
                self.assertIn("%s: --env-file: does not rely on %s" % (program, settings), d.stderr)
            os.chown(settings, 0, 0)
            # what comes next is complained of instead
            for accepted in (settings, self.path("missing.env")):
                d = self.start(program, *args, accepted, "--cert", self.path("none"))
                self.assertEqual(d.wait(), 2, d.stderr)
                self.assertNotIn("--env-file", d.stderr)

    def test_a_graph_and_configurations_of_another_user(self):
        stranger = self.write("stranger.yaml", APP % {"folder": self.folder})
        os.chown(stranger, NOBODY, NOBODY)
        self.refused(stranger, "driverd", "--app", stranger)
        config = self.write("config.yaml", "{}")
        os.chmod(config, 0o666)
        self.refused(config, "driverd", "--app", self.app, "--config", config)
        os.chmod(config, 0o644)
        d = self.driver(self.app, "--config", config)
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual([w.wait() for w in workers], [0, 0])

    def test_a_file_of_another_user_that_the_graph_includes(self):
        text = APP % {"folder": self.folder}
        self.write("values.yaml", "{}")
        includes = [("config", "config: {v: {from_file: values.yaml}}\n"),
                    ("config", "config: {v: {from_file: %s/values.yaml}}\n" % self.folder),
                    ("subgraph", "subgraphs: {s: {from_file: values.yaml}}\n")]
        for name, include in includes:
            with self.subTest(include):
                os.chown(self.path("values.yaml"), NOBODY, NOBODY)
                app = self.write("%s.yaml" % name, text + include)
                self.refused("%s/values.yaml" % self.folder, "driverd", "--app", app)
        os.chown(self.path("values.yaml"), 0, 0)
        d = self.driver(self.write("config.yaml", text + includes[0][1]))
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual([w.wait() for w in workers], [0, 0])

    def test_a_python_of_another_user(self):
        python = os.path.join(self.other, "python")
        shutil.copy("/bin/true", python)
        self.driver(self.app)
        self.assertIn("--python: ", self.refused(python, "workerd", "--python", python))
        self.env["PATH"] = "%s:%s" % (self.other, self.env["PATH"])
        self.assertIn("--python: ", self.refused(python, "workerd", "--python", "python"))
        os.chown(self.other, 0, 0)
        # one that was exchanged after the worker had started
        self.write("m.py", "")
        app = self.write("py.yaml", "frag: 1\napplication: py\nfragments:\n"
                         "  f:\n    extensions: [./m.py]\n    operators:\n      a: {type: x}\n")
        os.chown(python, 0, 0)
        address = "127.0.0.1:%d" % self.free_port()
        w = self.worker("--python", python, address=address)
        w.wait_line("waiting for the driver")
        os.chown(python, NOBODY, NOBODY)
        d = self.driver(app, address=address)
        self.assertNotEqual(d.wait(), 0)
        self.assertIn("--python: workerd does not rely on %s" % python, d.stderr)

    def test_key_files_below_a_folder_of_another_user(self):
        key = os.path.join(self.other, "frag.key")
        with open(key, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new"], stdout=f,
                           stderr=subprocess.DEVNULL, env=self.env, check=True)
        for program in "driverd", "workerd":
            d = self.start(program, "--address", "127.0.0.1:0" if program == "driverd" else "127.0.0.1:1", "--key-file", key)
            self.assertEqual(d.wait(), 3, d.stderr)
            self.assertIn("%s belongs to another user (65534)" % self.other, d.stderr)

    @unittest.skipIf({"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ), "sanitizers report as root")
    def test_root_lists_the_keys_of_another_user(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")  # other users reach no folder of tests
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        key = os.path.join(folder.name, "frag.key")
        subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new", "--name", "node7", key], env=self.env, check=True)
        os.chown(key, NOBODY, NOBODY)
        listed = self.start("fragctl", "key", "list", key)
        self.assertEqual((listed.wait(), listed.stderr), (0, ""))
        self.assertEqual(listed.stdout.split()[0], "node7")
        os.chmod(key, 0o644)
        listed = self.start("fragctl", "key", "list", key)
        self.assertEqual((listed.wait(), listed.stdout), (3, ""))
        self.assertIn("chmod 600 %s" % key, listed.stderr)

    def test_library_folders_of_another_user(self):
        library = "%s/libtruth.so" % self.other
        self.driver(self.app)
        self.assertIn("--library-path: ", self.refused(self.other, "workerd", "--library-path", "/usr/lib:" + self.other))
        # one that was made after the worker had started
        os.chown(self.other, 0, 0)
        folder = os.path.join(self.other, "later")
        w = self.worker("--once", "--library-path", folder, fragments="fragment1")
        w.wait_line("worker: attached")
        os.mkdir(folder)
        shutil.copy(os.path.join(cluster.TEST_PLUGINS, "libtruth.so"), folder)
        os.chown(os.path.join(folder, "libtruth.so"), NOBODY, NOBODY)
        self.worker("--once", fragments="fragment2")
        self.assertEqual(w.wait(), 2, w.stderr)
        self.assertIn("library libtruth.so: this host does not rely on %s/libtruth.so" % folder, w.stderr)


class Flags(cluster.ClusterTest):
    def test_a_user_that_does_not_exist_is_wrong_usage(self):
        for program in ("driverd", "workerd"):
            p = self.start(program, "--allow-user", "no-such-user")
            self.assertEqual(p.wait(), 2)
            self.assertEqual(p.stderr, program + ': --allow-user: there is no user "no-such-user" on this machine; '
                             "give the name or the number of one")
