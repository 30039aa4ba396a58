# SPDX-License-Identifier: Apache-2.0
"""A machine of qemu for tests, with a kernel of its own: it has what machine.Machine lacks, control
groups with controllers. It boots a copy of the same root, with packages installed, and a service
there runs the commands that come over a serial line.
"""
import base64
import os
import shutil
import socket
import subprocess
import sys

import machine

sys.path.insert(0, os.path.join(machine.TOP, "tests", "guest"))
import guest  # noqa: E402

PATIENCE_S = 300
# ext4 finds its checksum by name.
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
for m in %s; do insmod /modules/$m.ko; done
while [ ! -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /root
mount --move /dev /root/dev
exec switch_root /root /sbin/init
"""
AGENT = """#!/bin/bash
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo ready >&3
while read -r line <&3; do
	base64 -d <<<"$line" >/run/command
	HOME=/root bash -c 'cd; . /run/command' </dev/null >/run/output 2>&1 3>&-
	echo "$? $(base64 -w0 /run/output)" >&3
done
"""
UNIT = """[Unit]
After=multi-user.target
[Service]
ExecStart=/usr/local/sbin/agent
[Install]
WantedBy=multi-user.target
"""


def missing():
    """Why there can be no such machine here; None: there can."""
    if os.geteuid() != 0:
        return "only root can make its root"
    for tool in ("debootstrap", "mke2fs"):
        if not shutil.which(tool):
            return "%s is not installed (mk/deps.sh limits)" % tool
    return guest.missing("limits")


class Machine:
    def __init__(self, folder, packages, files):
        """files: (path here, folder there)"""
        self.folder, self.root = folder, os.path.join(folder, "root")
        self.process = self.line = None
        layers = [os.path.join(folder, d) for d in ("upper", "work")]
        for d in (*layers, self.root):
            os.makedirs(d)
        machine.call("mount", "-t", "overlay", "limits", "-o", "lowerdir=%s,upperdir=%s,workdir=%s" % (
            machine.ROOT, *layers), self.root)
        try:
            self._fill(packages, files)
            disk = os.path.join(folder, "disk")
            machine.call("mke2fs", "-q", "-t", "ext4", "-d", self.root, disk, "3G")
        finally:
            machine.call("umount", self.root)
        self.disk = disk

    def _fill(self, packages, files):
        for path in packages:
            shutil.copy(path, self.root + "/root")
        machine.call("chroot", self.root, "sh", "-c", "dpkg -i /root/*.deb")
        for path, there in files:
            os.makedirs(self.root + there, exist_ok=True)
            shutil.copy(path, self.root + there)
        for path, text in (("/usr/local/sbin/agent", AGENT), ("/etc/systemd/system/agent.service", UNIT),
                           ("/etc/hostname", "a\n"), ("/etc/hosts", "127.0.0.1 localhost a\n")):
            with open(self.root + path, "w", encoding="utf-8") as f:
                f.write(text)
        os.chmod(self.root + "/usr/local/sbin/agent", 0o755)
        machine.call("systemctl", "--root=" + self.root, "enable", "agent")
        # Without udev nothing reports the console; the machine has no network to wait for.
        machine.call("systemctl", "--root=" + self.root, "mask", "serial-getty@ttyS0", "systemd-networkd-wait-online")

    def _initial_root(self, kernel):
        root, archive = os.path.join(self.folder, "initial"), os.path.join(self.folder, "initial.cpio")
        modules = guest.needed_modules(kernel, MODULES)
        for d in ("bin", "dev", "modules", "root"):
            os.makedirs(os.path.join(root, d))
        shutil.copy("/bin/busybox", os.path.join(root, "bin"))
        for f in modules:
            shutil.copy(f, os.path.join(root, "modules"))
        with open(os.path.join(root, "init"), "w", encoding="utf-8") as f:
            f.write(INIT % " ".join(os.path.basename(m)[:-3] for m in modules))
        os.chmod(os.path.join(root, "init"), 0o755)
        guest.write_archive(root, archive)
        return archive

    def power_on(self):
        """Returns when systemd has started everything."""
        kernel = guest.fetch_kernel()
        line = os.path.join(self.folder, "line")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(line)
            listener.listen()
            self.process = subprocess.Popen(
                [*guest.command(kernel, self._initial_root(kernel), 2560), "-drive",
                 "file=%s,format=raw,if=virtio" % self.disk, "-serial", "file:" + self.folder + "/console",
                 "-serial", "unix:" + line], stdin=subprocess.DEVNULL)
            listener.settimeout(PATIENCE_S)
            connection, _ = listener.accept()
        connection.settimeout(PATIENCE_S)
        with connection:
            self.line = connection.makefile("rwb")
        try:
            assert self.line.readline().strip().endswith(b"ready")
        except (OSError, AssertionError) as e:
            raise AssertionError("the machine does not start: %r\n%s" % (e, self.console())) from e

    def console(self):
        with open(self.folder + "/console", encoding="utf-8", errors="replace") as f:
            return f.read()[-4000:]

    def type(self, script):
        """Runs a script as root types it; returns (what it printed, exit code)."""
        self.line.write(base64.b64encode(script.encode()) + b"\n")
        self.line.flush()
        code, _, text = self.line.readline().decode().strip().partition(" ")
        return base64.b64decode(text).decode(errors="replace"), int(code)

    def run(self, script):
        text, code = self.type(script)
        if code != 0:
            raise AssertionError("%s: %d\n%s" % (script, code, text))
        return text

    @staticmethod
    def wait(what, condition):
        return machine.Machine.wait(what, condition, PATIENCE_S)

    def power_off(self):
        if self.process is None:
            return
        try:
            self.line.write(base64.b64encode(b"systemctl poweroff") + b"\n")
            self.line.flush()
            self.process.wait(60)
        except (AttributeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        if self.line is not None:
            self.line.close()
        self.process = None
