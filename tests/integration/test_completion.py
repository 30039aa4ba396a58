# SPDX-License-Identifier: Apache-2.0
"""What fragctl offers to the completion of shells, and bash with it."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import cluster

SCRIPTS = os.path.join(cluster.TOP, "fragctl", "completion")


class Completion(cluster.ClusterTest):
    def offers(self, *words):
        r = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "complete", *words], capture_output=True, text=True,
                           env=self.env)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return r.stdout.splitlines()

    def help(self, *args):
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), *args, "--help"], capture_output=True, text=True,
                              env=self.env, check=True).stdout

    def test_verbs_and_flags_are_those_of_help(self):
        verbs = re.findall(r"^  (\w+) ", self.help(), re.M)
        self.assertEqual(self.offers(""), verbs)
        self.assertEqual(self.offers("v"), ["validate"])
        for verb in verbs:
            flags = re.findall(r"^  .{4}(--[\w-]+)", self.help(verb), re.M)
            self.assertGreater(len(flags), 3)
            self.assertEqual(self.offers(verb, "--"), flags)
        self.assertEqual(self.offers("run", "--su"), ["--summary"])

    def test_values_of_flags(self):
        self.assertEqual(self.offers("run", "--output", ""), ["table", "json"])
        self.assertEqual(self.offers("run", "--output", "=", "j"), ["json"], "as bash splits it")
        self.assertEqual(self.offers("run", "--output", "="), ["table", "json"])
        self.assertEqual(self.offers("run", "--output=j"), ["--output=json"])
        self.assertEqual(self.offers("run", "--config=x"), [":files:--config="])
        self.assertEqual(self.offers("run", "--config", "x"), [":files:"])
        self.assertEqual(self.offers("run", "app"), [":files:"])
        self.assertEqual(self.offers("run", "--in-process", "app"), [":files:"])

    def test_types(self):
        self.assertEqual(self.offers("inspect", "ping_t"), ["ping_tx", "ping_tensor_tx", "ping_tensor_rx", ":files:"])
        self.assertIn("block_memory_pool", self.offers("inspect", ""))

    def test_pipelines(self):
        self.assertEqual(self.offers("run", "-e", "ping_t"), ["ping_tx", "ping_tensor_tx", "ping_tensor_rx"])
        self.assertEqual(self.offers("run", "-e", "'ping_tx cou"), ["ping_tx count="])
        self.assertEqual(self.offers("run", "-e", "ping_tx count=1 ! forw"), ["ping_tx count=1 ! forward"])
        self.assertEqual(self.offers("run", "-e", "truth_tx fil"), ["truth_tx file="])
        self.assertEqual(self.offers("run", "-e", "truth_tx file="), [":files:truth_tx file="])
        self.assertEqual(self.offers("run", "-e", "truth_tx fail=c"), ["truth_tx fail=crash"])
        self.assertEqual(sorted(self.offers("validate", "--pipeline", "ping_tx ")),
                         ["ping_tx " + end for end in (
                             "! ", "asynchronous=", "boolean=", "count=", "cuda_buffer=", "cuda_event=",
                             "cuda_stream=", "downstream_affordable=", "expiring_message_available=",
                             "memory_available=", "message_available=", "multi_message_available=",
                             "multi_message_available_timeout=", "name=",
                             "none=", "or=", "periodic=")])

    def typed(self, shell, start, keys, wanted):
        """Types keys into a shell and waits for what it makes of them."""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(shell[0], shell,
                       dict(self.env, PATH=cluster.BIN + ":" + self.env["PATH"], PS1="$ ", TERM="dumb",
                            HISTFILE="/dev/null"))
        seen, end = "", time.monotonic() + cluster.PATIENCE_S
        try:
            os.write(fd, start.encode() + b"\n")
            while "ready" not in seen and time.monotonic() < end:
                seen += os.read(fd, 4096).decode(errors="replace")
            os.write(fd, keys.encode())
            while wanted not in seen and time.monotonic() < end:
                if select.select([fd], [], [], 0.2)[0]:
                    seen += os.read(fd, 4096).decode(errors="replace")
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os.close(fd)
        self.assertIn(wanted, seen)

    KEYS = (("fragctl ins", "fragctl inspect"),
            ("fragctl run --summ", "--summary"),
            ("fragctl run ap", "fragctl run app.yaml"),
            ("fragctl run --output=j", "--output=json"),
            ("fragctl run -e 'ping_tx cou", "'ping_tx count="),
            ("fragctl run -e 'truth_tx file=ap", "'truth_tx file=app.yaml"))

    def test_bash(self):
        self.write("app.yaml", "")
        for keys, wanted in self.KEYS:
            self.typed(["bash", "--norc", "--noprofile", "-i"], "source %s/fragctl.bash; echo rea''dy" % SCRIPTS,
                       keys + "\t", wanted)

    def test_zsh(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh")
        self.write("app.yaml", "")
        for keys, wanted in self.KEYS:
            self.typed(["zsh", "-f", "-i"], "fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy" %
                       SCRIPTS, keys + "\t", wanted)
