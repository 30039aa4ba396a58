# SPDX-License-Identifier: Apache-2.0
"""What the host of a worker may do: an operator tries everything, and reports what the kernel
answered."""
import ctypes
import errno
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import cluster

APP = """
frag: 1
application: break_in
extensions: [libintruder.so]
operators:
  intruder: {type: intruder, parameters: {file: "%s", outside: "%s", victim: "%d", fails: %s}}
"""
# What is refused whatever the user is, and with what.
FILES = ("create", "overwrite", "append", "truncate", "remove", "unnamed", "child_writes", "score")
FOLDERS = ("rename", "move_in", "link_in", "mkdir", "symlink", "through_symlink")
CALLS = ("ptrace", "vm_write", "take_fd", "namespace", "clone_namespace", "mount", "umount", "chroot",
         "bpf", "module", "keys", "kexec", "reboot", "userfault", "raw_socket", "type", "chown", "setuid")
SIGNALS = ("kill", "kill_workerd")
MEMORY = ("memory", "memory_of_workerd", "environ_of_workerd")
ALLOWED = ("read", "symlink_in", "null", "thread_name", "kill_self", "child_is_bound")
CAP_SYS_NICE = 1 << 23
CAP_SYS_PTRACE = 1 << 19
NOBODY = 65534
LACKING = (sys.executable, os.path.join(cluster.TOP, "tests", "integration", "lacking.py"))


class Confined(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.env.pop("FRAG_ALLOW_WRITE", None)
        self.lay_out(self.folder)

    def lay_out(self, top):
        """The graph, the working folder of the worker and a folder that is neither."""
        self.app, self.work, self.outside = (os.path.join(top, n) for n in ("app", "work", "outside"))
        for folder in (self.app, self.work, self.outside):
            os.mkdir(folder)
        with open(os.path.join(self.outside, "kept"), "w") as f:
            f.write("kept\n")
        victim = self.start("/bin/sleep", "3600")
        self.addCleanup(victim.kill)
        self.victim = victim.pid

    def graph(self, report=None, fails=False):
        self.report = report or os.path.join(self.work, "report")
        path = os.path.join(self.app, "app.yaml")
        with open(path, "w") as f:
            f.write(APP % (self.report, self.outside, self.victim, "true" if fails else "false"))
        return path

    def attack(self, *flags, prefix=(), result=0, workerd="workerd", env=None, **graph):
        driver = self.driver(self.graph(**graph), "--output", "json")
        worker = self.start(workerd, "--address", self.address, "--once", *flags, prefix=prefix,
                            cwd=self.work, env=env)
        self.assertEqual(driver.wait(), result, driver.stderr + worker.stderr)
        self.assertEqual(worker.wait(), result, worker.stderr)
        return driver, worker

    def answers(self):
        """{attempt: what the kernel answered}, {what the host is: value}."""
        with open(self.report) as f:
            lines = f.read().splitlines()
        return (dict(line.split(" ", 1) for line in lines if not line.startswith("=")),
                {k: v.strip() for k, v in (line[2:].split(":", 1) for line in lines if line.startswith("="))})

    def assert_answers(self, answers, names, expected):
        self.assertEqual({n: answers[n] for n in names}, {n: expected for n in names}, answers)

    def assert_kept(self):
        self.assertEqual(os.listdir(self.outside), ["kept"])
        with open(os.path.join(self.outside, "kept")) as f:
            self.assertEqual(f.read(), "kept\n")


class Defaults(Confined):
    def test_a_host_reaches_nothing_beyond_its_folders(self):
        _, worker = self.attack()
        answers, is_now = self.answers()
        self.assert_answers(answers, CALLS, "EPERM")
        self.assert_answers(answers, ALLOWED, "done")
        self.assertEqual(answers["clone3"], "ENOSYS")  # so that libc falls back to clone
        self.assertEqual(answers["device"], "EACCES" if cluster.landlock() else "EPERM")
        self.assertEqual(is_now["NoNewPrivs"], "1")
        self.assertEqual(is_now["Seccomp"], "2")
        self.assertEqual(is_now["Dumpable"], "1")
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(int(is_now[kind], 16) & ~CAP_SYS_NICE, 0, is_now)
        if os.geteuid() == 0:
            self.assertEqual(int(is_now["CapBnd"], 16) & ~CAP_SYS_NICE, 0, is_now)
        if cluster.landlock() < 6:
            self.skipTest("this kernel has no Landlock, or an old one")
        self.assert_answers(answers, FILES, "EACCES")
        self.assertTrue(all(answers[n] in ("EACCES", "EXDEV") for n in FOLDERS), answers)
        self.assert_answers(answers, SIGNALS, "EPERM")
        self.assert_answers(answers, MEMORY, "EACCES")
        self.assert_kept()
        worker.wait_line(r"info .*hosts run as .*; they may write below %s only; system calls refused to them: \d+" %
                         self.work)

    def test_the_folder_of_the_graph_is_one_of_them(self):
        """For a driver of the same user: relative paths of a graph start there."""
        self.attack(report=os.path.join(self.app, "report"))
        self.assertEqual(self.answers()[0]["null"], "done")

    def test_a_write_elsewhere_fails_with_the_flag_that_allows_it(self):
        if not cluster.landlock():
            self.skipTest("this kernel has no Landlock")
        driver, _ = self.attack(fails=True, result=1)
        self.assertRegex(self.summary(driver)["reason"],
                         r"Permission denied\) in tick 1; hosts of this worker may write below %s, %s only: "
                         r"if it needs another folder, give that to workerd with --allow-write" %
                         (self.app, self.work))

    def test_flags_of_fragctl_run(self):
        """What `fragctl run --workers` starts is confined; what it runs in its own process is the
        user's own."""
        self.attack_by_fragctl("--workers", "1", expected=1 if cluster.landlock() else 0)
        self.attack_by_fragctl(expected=0)

    def attack_by_fragctl(self, *flags, expected):
        run = self.start("fragctl", "run", *flags, self.graph(fails=True), cwd=self.work)
        self.assertEqual(run.wait(), expected, run.stderr)
        self.assertEqual(os.path.exists(os.path.join(self.outside, "made")), expected == 0)


class Flags(Confined):
    def test_allow_write_replaces_the_folders(self):
        more = os.path.join(self.folder, "more")
        os.mkdir(more)
        self.attack("--allow-write", self.outside, "--allow-write", more, report=os.path.join(more, "report"))
        answers, _ = self.answers()
        self.assert_answers(answers, ("create", "overwrite", "append", "truncate", "remove", "mkdir", "child_writes"),
                            "done")
        if cluster.landlock():
            driver, _ = self.attack("--allow-write", more, result=1)
            self.assertRegex(self.summary(driver)["reason"], "may write below %s only" % more)

    def test_limits(self):
        self.attack("--host-limit", "nproc=1234", "--host-limit", "core=0")
        self.assertEqual(self.answers()[1]["Nproc"], "1234")

    def test_wrong_flags(self):
        for flags, code, sentence in (
                (("--allow-write", self.work + ":/no/such"), 3, r"--allow-write /no/such: No such file"),
                (("--host-user", "no_such_user"), 3, "--host-user no_such_user: there is no such user"),
                (("--host-limit", "nproc"), 2, "--host-limit \"nproc\" is no limit; .* nofile, nproc"),
                (("--host-limit", "npro=1"), 2, "is no limit"),
                (("--host-limit", "nproc=many"), 2, "is no limit")):
            worker = self.start("workerd", "--address", "127.0.0.1:1", *flags)
            self.assertEqual(worker.wait(), code, worker.stderr)
            self.assertRegex(worker.stderr, sentence)

    def test_libraries_apart_from_what_hosts_write(self):
        worker = self.start("workerd", "--address", "127.0.0.1:1", "--allow-write", self.app,
                            "--library-path", os.path.join(self.app, "lib"), cwd=self.work)
        worker.wait_line("waiting for the driver")
        self.assertNotIn("bring code", worker.stderr)  # there is no such folder
        os.mkdir(os.path.join(self.app, "lib"))
        worker = self.start("workerd", "--address", "127.0.0.1:1", "--allow-write", self.app,
                            "--library-path", os.path.join(self.app, "lib"), cwd=self.work)
        worker.wait_line("warn .*hosts may write below %s, .* bring code of its own" % self.app)


def warnings(worker):
    return [line for line in cluster.own_lines(worker.stderr) if " warn " in line]


def answer_about_keys():
    """What a process without a filter of frag's gets: a container may have one of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    return "done" if libc.syscall(number, 0, -3, 0) != -1 else errno.errorcode[ctypes.get_errno()]


class HostUser(Confined):
    """Hosts as another user, from a copy of the programs that this user can reach."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start hosts as another user")
        super().setUp()
        top = tempfile.mkdtemp(prefix="frag-it-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, top, True)
        os.chmod(top, 0o755)
        self.lay_out(top)
        self.build = os.path.join(top, "build")
        for part in ("bin/workerd", "libexec/frag/fraghost", "lib/libfrag.so.1"):
            os.makedirs(os.path.dirname(os.path.join(self.build, part)), exist_ok=True)
            shutil.copy(os.path.join(cluster.BUILD, part), os.path.join(self.build, part))
        shutil.copytree(os.path.join(cluster.BUILD, "lib", "frag"), os.path.join(self.build, "lib", "frag"))
        for library in ("libintruder.so", "libunruly.so", "libculprit.so"):
            shutil.copy(os.path.join(cluster.TEST_PLUGINS, library), self.build)
        os.chown(self.work, NOBODY, NOBODY)
        self.env["FRAG_LIBRARY_PATH"] = self.build

    def test_hosts_of_root_as_nobody(self):
        self.attack("--host-user", "nobody", workerd=os.path.join(self.build, "bin", "workerd"))
        answers, is_now = self.answers()
        self.assertEqual(os.stat(self.report).st_uid, NOBODY)
        self.assertEqual(set(is_now["Uid"].split()), {str(NOBODY)})
        self.assertEqual(is_now["Groups"], str(NOBODY))
        self.assertEqual(is_now["Home"], "/nonexistent")
        self.assertEqual(is_now["Dumpable"], "1")
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        self.assertEqual(int(is_now["Nproc"]), 16384 if most < 0 else min(most, 16384))
        for kind in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
            self.assertEqual(int(is_now[kind], 16) & ~CAP_SYS_NICE, 0, is_now)
        self.assert_answers(answers, CALLS, "EPERM")
        self.assert_answers(answers, SIGNALS, "EPERM")
        self.assert_kept()

    def test_they_share_no_memory_with_those_of_another_user(self):
        path = os.path.join(self.app, "ping.yaml")
        with open(path, "w") as f:
            f.write("{frag: 1, application: app, fragments: {one: {operators: {tx: {type: ping_tx, conditions: "
                    "[{type: count, count: 10}]}}}, two: {operators: {rx: {type: ping_rx}}}}, flows: [one.tx -> two.rx]}")
        for second, edge in (("nobody", "shm"), ("root", "ucx")):
            driver = self.driver(path, "--output", "json")
            workers = [self.start(os.path.join(self.build, "bin", "workerd"), "--address", self.address, "--once",
                                  "--fragments", fragment, "--host-user", user, cwd=self.work)
                       for fragment, user in (("one", "nobody"), ("two", second))]
            self.assertEqual(driver.wait(), 0, driver.stderr)
            self.assertEqual([w.wait() for w in workers], [0, 0])
            flow = self.flow(self.summary(driver), "one.tx.out")
            self.assertEqual((flow["edge"], flow["delivered"]), (edge, 10))

    def test_they_end_with_their_worker(self):
        """Also one that is stopped and cannot see that its worker is gone."""
        with open("/proc/self/status") as f:
            if not int(f.read().split("CapEff:")[1].split()[0], 16) & CAP_SYS_PTRACE:
                self.skipTest("without the capability SYS_PTRACE hosts of another user are not found")
        path = os.path.join(self.app, "hangs.yaml")
        with open(path, "w") as f:
            f.write("{frag: 1, application: app, extensions: [libunruly.so], operators: {u: {type: unruly, "
                    "parameters: {where: compute, deed: hang, file: %s/met}}}}" % self.work)
        self.driver(path)
        worker = self.start(os.path.join(self.build, "bin", "workerd"), "--address", self.address,
                            "--host-user", "nobody", cwd=self.work)
        self.wait_until("the operator", lambda: os.path.exists(os.path.join(self.work, "met")))
        host = self.wait_hosts(1)[0]
        os.kill(host, signal.SIGSTOP)
        worker.kill()
        self.wait_until("the end of the host", lambda: self.hosts() == [])

    def test_core_files_stay_usable(self):
        """Of a host that has changed its user, which makes a process undumpable until it executes."""
        with open("/proc/sys/kernel/core_pattern") as f:
            pattern = f.read().strip()
        if pattern.startswith(("|", "/")) or cluster.REPORTS:  # sanitizers allow no core files
            self.skipTest("this machine or this build does not leave core files where a process runs")
        path = os.path.join(self.app, "crash.yaml")
        with open(path, "w") as f:
            f.write("{frag: 1, application: app, extensions: [libculprit.so], operators: {u: {type: culprit, "
                    "parameters: {deed: crash}}}}")
        driver = self.driver(path, "--output", "json")
        worker = self.start(os.path.join(self.build, "bin", "workerd"), "--address", self.address, "--once",
                            "--host-user", "nobody", "--host-limit", "core=unlimited", cwd=self.work)
        self.assertEqual(driver.wait(), 1, driver.stderr + worker.stderr)
        self.assertRegex(self.summary(driver)["reason"], "core file")
        cores = [os.path.join(self.work, n) for n in os.listdir(self.work)]
        self.assertEqual([os.stat(c).st_uid for c in cores], [NOBODY])
        self.assertGreater(os.path.getsize(cores[0]), 0)

    def test_a_user_who_cannot_reach_the_host(self):
        os.chmod(os.path.join(self.build, "libexec"), 0o700)
        driver, _ = self.attack("--host-user", "nobody", result=3,
                                workerd=os.path.join(self.build, "bin", "workerd"))
        self.assertRegex(self.summary(driver)["reason"], "cannot start .*fraghost: Permission denied")

    def test_the_user_frag_is_the_default_of_root(self):
        passwd = self.path("passwd")
        shutil.copy("/etc/passwd", passwd)
        with open(passwd, "a") as f:
            f.write("frag:x:%d:%d::/nonexistent:/bin/false\n" % (NOBODY - 1, NOBODY - 1))
        prefix = ("unshare", "--mount", "sh", "-c", 'mount --bind %s /etc/passwd && exec "$@"' % passwd, "sh")
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no mount namespaces")
        os.chmod(passwd, 0o644)
        os.chown(self.work, NOBODY - 1, NOBODY - 1)
        self.env.pop("FRAG_HOST_USER")
        _, worker = self.attack(prefix=prefix, workerd=os.path.join(self.build, "bin", "workerd"))
        self.assertEqual(set(self.answers()[1]["Uid"].split()), {str(NOBODY - 1)})
        self.assertEqual(warnings(worker), [])

    def test_root_is_warned_once(self):
        self.env.pop("FRAG_HOST_USER")
        worker = self.start("workerd", "--address", "127.0.0.1:1")
        worker.wait_line("waiting for the driver")
        self.assertEqual(worker.stderr.count("hosts run as root: "), 0 if "hosts run as frag" in worker.stderr else 1)
        worker = self.start("workerd", "--address", "127.0.0.1:1", "--host-user", "root")
        worker.wait_line("waiting for the driver")
        self.assertEqual(warnings(worker), [])

    def test_an_error_at_the_start_stands_alone(self):
        self.env.pop("FRAG_HOST_USER")
        worker = self.start("workerd", "--address", "127.0.0.1:1", "--key-file", self.path("none.key"))
        self.assertEqual(worker.wait(), 3)
        self.assertRegex(worker.stderr, r"^[^\n]* error [^\n]*none\.key[^\n]*\n?$")


class Kernels(Confined):
    """A kernel that lacks Landlock, or filters of system calls: the worker reports it and goes on."""

    def test_without_landlock(self):
        _, worker = self.attack(prefix=(*LACKING, "landlock"))
        answers, is_now = self.answers()
        self.assertEqual(answers["create"], "done")
        self.assertEqual(answers["kill"], "done")
        self.assert_answers(answers, CALLS, "EPERM")
        self.assertEqual(is_now["NoNewPrivs"], "1")
        worker.wait_line("warn .*this kernel lacks Landlock .*: hosts may write wherever their user may")

    def test_without_filters(self):
        _, worker = self.attack(prefix=(*LACKING, "seccomp"))
        answers, _ = self.answers()
        self.assertEqual(answers["keys"], answer_about_keys())
        if cluster.landlock():
            self.assert_answers(answers, FILES, "EACCES")
        worker.wait_line("warn .*this kernel lacks filters of system calls .*: hosts may make any")

    def test_the_version_reports_it(self):
        for prefix, lines in (((), ("this kernel",)),
                              ((*LACKING, "landlock"), ("this kernel lacks Landlock",)),
                              ((*LACKING, "landlock,seccomp"),
                               ("this kernel lacks Landlock", "this kernel lacks filters of system calls"))):
            out = subprocess.run([*prefix, os.path.join(cluster.BIN, "workerd"), "--version", "-v"],
                                 capture_output=True, text=True, check=True).stdout
            for line in lines:
                self.assertIn(line, out)
