# SPDX-License-Identifier: Apache-2.0
"""Machines of systemd-nspawn for tests: systemd is process 1, and each has a layer of its own over
one root (root.sh). A bridge in a network namespace of its own joins them; nothing of the network of
this machine changes.
"""
import os
import shutil
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ROOT = os.path.join(TOP, ".cache", "machine")
PATIENCE_S = 120
# as in docs/DEPLOY.md
CONTROL, DATA = "10.0.0.%d", "192.168.100.%d"
# Every hierarchy of control groups that systemd uses here.
CGROUPS = [c for c in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified") if os.path.isdir(c)] or ["/sys/fs/cgroup"]


def missing():
    """Why there can be no machines here; None: there can."""
    if os.geteuid() != 0:
        return "only root can start machines"
    for tool in ("systemd-nspawn", "debootstrap", "nsenter", "ip"):
        if not shutil.which(tool):
            return "%s is not installed (mk/deps.sh nodes)" % tool
    probe = subprocess.run(["unshare", "-mnp", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return "the machine lets root make no namespaces" if probe.returncode else None


def call(*command, check=True):
    r = subprocess.run(command, capture_output=True, text=True)
    if check and r.returncode != 0:
        raise AssertionError("%s: %d\n%s%s" % (" ".join(command), r.returncode, r.stdout, r.stderr))
    return r.stdout


def lines_of(*command):
    """(lines of stdout and stderr together, exit code)"""
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return r.stdout.splitlines(), r.returncode


class Network:
    """A namespace with a bridge, to which each machine has a cable."""

    def __init__(self):
        self.name = "frag-test-%d" % os.getpid()
        call("ip", "netns", "add", self.name)
        call("ip", "-n", self.name, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", self.name, "link", "set", "br0", "up")

    def close(self):
        call("ip", "netns", "del", self.name)


class Machine:
    def __init__(self, network, folder, number):
        self.network, self.host_name = network, "ab"[number - 1]
        self.name = "%s-%s" % (network.name, self.host_name)
        self.folder = os.path.join(folder, self.host_name)
        self.root = os.path.join(self.folder, "root")
        self.process = self.leader = None
        layers = [os.path.join(self.folder, d) for d in ("upper", "work")]
        for d in (*layers, self.root):
            os.makedirs(d)
        call("mount", "-t", "overlay", self.name, "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % (ROOT, *layers), self.root)
        self.write("/etc/hostname", self.host_name + "\n")
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + "".join(
            "%s %s\n" % (CONTROL % (i + 1), name) for i, name in enumerate("ab")))
        # before the one that systemd brings for machines
        self.write("/etc/systemd/network/10-frag.network", "[Match]\nName=host0\n\n[Network]\nAddress=%s/24\nAddress=%s/24\n"
                   % (CONTROL % number, DATA % number))

    def path(self, path):
        return self.root + path

    def write(self, path, text):
        with open(self.path(path), "w") as f:
            f.write(text)

    def read(self, path):
        with open(self.path(path)) as f:
            return f.read()

    def power_on(self):
        """Returns when systemd has started everything."""
        groups = [os.path.join(c, self.name) for c in CGROUPS]
        enter = "".join("mkdir -p %s && echo $$ >%s/cgroup.procs && " % (g, g) for g in groups)
        nspawn = ["nsenter", "--net=/run/netns/" + self.network.name, "systemd-nspawn", "-q", "-D", self.root, "-M",
                  self.name, "--register=no", "--keep-unit", "--console=pipe", "--kill-signal=SIGRTMIN+3",
                  "--network-bridge=br0", "--boot"]
        env = dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1")
        with open(os.path.join(self.folder, "console"), "a") as out:
            self.process = subprocess.Popen(["sh", "-c", enter + 'exec "$@"', "sh", *nspawn], env=env,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.wait("a first process", self._find_leader)
        self.wait("systemd", lambda: self.run("systemctl", "is-system-running", check=False).strip() in
                  ("running", "degraded"))

    def _find_leader(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "console")) as console:
                raise AssertionError("systemd-nspawn ended:\n" + console.read())
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            for pid in f.read().split():
                with open("/proc/%s/status" % pid) as status:
                    # process 1 of a namespace of its own
                    if any(line.split()[-1] == "1" for line in status if line.startswith("NSpid:")):
                        self.leader = int(pid)
        return self.leader

    def power_off(self, cut=False):
        """Shuts it down, or takes the power away."""
        if self.process is None:
            return
        if self.leader and self.process.poll() is None:
            os.kill(self.leader, signal.SIGKILL if cut else signal.SIGRTMIN + 3)
        self.process.wait(PATIENCE_S)
        self.process = self.leader = None

    def _within(self, *command):
        return ("nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", *command)

    def run(self, *command, check=True):
        """Runs a command in the machine; returns what it wrote to stdout."""
        return call(*self._within(*command), check=check)

    def shell(self, script, check=True):
        """Runs a script as root types it, in root's folder."""
        return self.run("bash", "-ec", "cd; " + script, check=check)

    def type(self, script):
        """The same; returns (lines printed, exit code)."""
        return lines_of(*self._within("bash", "-c", "cd; " + script))

    @staticmethod
    def wait(what, condition, timeout=PATIENCE_S):
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError("not within %d s: %s" % (timeout, what))
            time.sleep(0.05)

    def show(self, unit, key):
        return self.run("systemctl", "show", unit, "--value", "-p", key).strip()

    def journal(self, unit):
        return self.run("journalctl", "-u", unit, "-o", "cat", "--no-pager")

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.power_off(cut=True)
        call("umount", "-l", self.root, check=False)
        for c in CGROUPS:
            for folder, _, _ in os.walk(os.path.join(c, self.name), topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        shutil.rmtree(self.folder, True)
