# SPDX-License-Identifier: Apache-2.0
"""Guests of qemu, which emulates the processor (no KVM): Debian's own kernel, downloaded once into
a cache, and a first root in memory.
"""
import glob
import os
import platform
import re
import shutil
import subprocess
import tempfile

CACHE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".cache", "kernel")


def missing(part):
    """Why there can be no guests here; None: there can. part: of mk/deps.sh"""
    if platform.machine() != "x86_64":
        return "the guest is one of x86_64"
    for program in ("qemu-system-x86_64", "/bin/busybox", "apt-get"):
        if not shutil.which(program):
            return "%s is not installed (mk/deps.sh %s)" % (program, part)
    return None


def kernel_package():
    """The package of the kernel that Debian installs by default."""
    told = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True,
                          check=True).stdout
    return re.search(r"Depends: (linux-image-\S+)", told).group(1)


def fetch_kernel(cache=CACHE):
    """Downloads the kernel and its modules. Returns their folder."""
    package = kernel_package()
    folder = os.path.join(cache, package)
    if os.path.exists(folder):
        return folder
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as draft:
        subprocess.run(["apt-get", "download", "-q", package], cwd=draft, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whole = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", glob.glob(draft + "/*.deb")[0]],
                                 stdout=subprocess.PIPE)
        os.mkdir(os.path.join(draft, "kernel"))
        subprocess.run(["tar", "x", "-C", os.path.join(draft, "kernel"), "--wildcards", "./boot/vmlinuz-*",
                        "./lib/modules/*/kernel/*"], stdin=whole.stdout, check=True)
        if whole.wait() != 0:
            raise SystemExit("the package %s cannot be unpacked" % package)
        os.rename(os.path.join(draft, "kernel"), folder)
    return folder


def needed_modules(kernel, names):
    """The files of these modules and of what they need, each behind what it needs itself."""
    files = {os.path.basename(f)[:-3].replace("-", "_"): f
             for f in glob.glob(kernel + "/lib/modules/*/kernel/**/*.ko", recursive=True)}
    order = []

    def add(name):
        with open(files[name], "rb") as f:
            depends = re.search(rb"\0depends=([^\0]*)\0", f.read()).group(1).decode()
        for other in depends.split(","):
            if other:
                add(other.replace("-", "_"))
        if files[name] not in order:
            order.append(files[name])

    for name in names:
        add(name)
    return order


def libraries(build, programs):
    """What the programs and plugins of a guest are linked with, but for those of the build."""
    found = set()
    for f in programs:
        told = subprocess.run(["ldd", f], capture_output=True, text=True, check=True).stdout
        found.update(re.findall(r"(/\S+) \(0x", told))
    return [f for f in found if not f.startswith(os.path.realpath(build))]


def lay_out(root, build, programs, modules, files):
    """A root of a guest: busybox, modules of the kernel (their files), programs of the build below
    /frag, what these are linked with, and files (name -> text), of which init starts all."""
    for folder in ("bin", "proc", "sys", "dev", "modules"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy("/bin/busybox", os.path.join(root, "bin"))
    for f in modules:
        shutil.copy(f, os.path.join(root, "modules"))
    copies = [(f, "/frag/" + os.path.relpath(f, build)) for f in programs]
    copies += [(f, f) for f in libraries(build, programs)]
    for source, place in copies:
        os.makedirs(os.path.dirname(root + place), exist_ok=True)
        shutil.copy(source, root + place)
        subprocess.run(["strip", root + place], check=True)
    for name, text in files.items():
        with open(os.path.join(root, name), "w", encoding="utf-8") as f:
            f.write(text)
    os.chmod(os.path.join(root, "init"), 0o755)


def module_names(modules):
    """As insmod is told of them, in the order of needed_modules."""
    return " ".join(os.path.basename(f)[:-3] for f in modules)


def write_archive(root, path):
    """The root as the kernel reads it: cpio, format "newc"."""
    def entry(out, number, name, mode, data):
        out.write(b"070701" + b"".join(b"%08x" % n for n in (
            number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)))
        out.write(name.encode() + b"\0" + bytes(-(110 + len(name) + 1) % 4))
        out.write(data + bytes(-len(data) % 4))

    with open(path, "wb") as out:
        number = 0
        for folder, folders, files in os.walk(root):
            for name in folders + files:
                number += 1
                whole = os.path.join(folder, name)
                data = b""
                if name in files:
                    with open(whole, "rb") as f:
                        data = f.read()
                entry(out, number, os.path.relpath(whole, root), os.stat(whole).st_mode, data)
        entry(out, 0, "TRAILER!!!", 0, b"")


def command(kernel, archive, memory_mib, *words):
    """How qemu is started, but for devices of the guest. words: of the kernel's command line. Where
    this machine is busy, the guest's timer may miss the moment in which the kernel looks for it."""
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", str(memory_mib), "-smp", "2",
            "-nographic", "-no-reboot", "-nodefaults", "-kernel", glob.glob(kernel + "/boot/vmlinuz-*")[0], "-initrd",
            archive, "-append", " ".join(("console=ttyS0 quiet panic=-1 no_timer_check", *words))]
