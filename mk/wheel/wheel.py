#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel.py BUILD VERSION DIST: packs frag for Python, as it lies in BUILD, into a wheel in DIST.

The wheel has the package, libfrag and those modules and plugins that need no system library of
their own; auditwheel puts the few libraries beside them that the system may lack, and names the
oldest glibc that will do. It is for CPython 3.11 and later (stable ABI), and for the machine that
BUILD was made for; where that is another one, WHEEL_LIBRARIES has the folders of its libraries.
"""
import base64
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = os.path.join(TOP, ".cache", "wheel")
REQUIREMENTS = os.path.join(TOP, "mk", "wheel", "requirements.txt")
# ucx has plugins of its own, which a wheel cannot carry; crypto would bring an OpenSSL that nobody
# patches. The viewer is what Holoscan's programs show pictures with; its libmicrohttpd brings a
# GnuTLS that it does not use.
MODULES = ("run", "shm", "cuda")
PLUGINS = ("basic", "inference", "logger", "testing", "udp", "viewer", "vision")
# The Debian packages of what auditwheel puts in, whose notices go with it.
BUNDLED = ("libffi8", "libgmp10", "libgnutls30", "libhogweed6", "libidn2-0", "libmicrohttpd12", "libnettle8",
           "libp11-kit0", "libpng16-16", "libprotobuf-c1", "libtasn1-6", "libturbojpeg0", "libunistring2",
           "libuv1", "libyaml-0-2")
METADATA = """Metadata-Version: 2.1
Name: frag
Version: %s
Summary: Streaming graphs across machines: operators and applications in Python
License: Apache-2.0
Requires-Python: >=3.11
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Provides-Extra: holoscan
Requires-Dist: cloudpickle; extra == "holoscan"
Requires-Dist: numpy; extra == "holoscan"
Requires-Dist: pyyaml; extra == "holoscan"
"""


def tools():
    """The folder of programs that the wheel is made with; fetched once."""
    with open(REQUIREMENTS, "rb") as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    mark = os.path.join(TOOLS, "complete-" + wanted[:16])
    if not os.path.exists(mark):
        shutil.rmtree(TOOLS, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
        subprocess.run([os.path.join(TOOLS, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check",
                        "--require-hashes", "--only-binary=:all:", "--no-deps", "-r", REQUIREMENTS], check=True)
        open(mark, "w").close()
    return os.path.join(TOOLS, "bin")


MACHINES = {62: "x86_64", 183: "aarch64"}  # as ELF and as Python call them


def machine(library):
    with open(library, "rb") as file:
        return MACHINES[int.from_bytes(file.read(20)[18:], "little")]


def copy(source, folder, programs, rpath):
    os.makedirs(folder, exist_ok=True)
    target = shutil.copy(source, folder)
    foreign = machine(source) != os.uname().machine
    subprocess.run([machine(source) + "-linux-gnu-strip" if foreign else "strip", "--strip-unneeded", target],
                   check=True)
    subprocess.run([os.path.join(programs, "patchelf"), "--set-rpath", rpath, target], check=True)


def stage(build, version, platform, folder, programs):
    package = os.path.join(folder, "frag")
    source = os.path.join(build, "python", "frag")
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    copy(os.path.join(build, "python", "frag", "_frag.abi3.so"), package, programs, "$ORIGIN/lib")
    lib = os.path.join(package, "lib")
    copy(os.path.join(build, "lib", "libfrag.so.1"), lib, programs, "$ORIGIN")
    for kind, names in (("modules", [m + ".so" for m in MODULES]), ("plugins", ["lib%s.so" % p for p in PLUGINS])):
        for name in names:
            copy(os.path.join(build, "lib", "frag", kind, name), os.path.join(lib, "frag", kind), programs,
                 "$ORIGIN/../..")
    info = os.path.join(folder, "frag-%s.dist-info" % version)
    os.mkdir(info)
    shutil.copy(os.path.join(TOP, "LICENSE"), info)
    notices = os.path.join(info, "licenses")
    os.mkdir(notices)
    for name in BUNDLED:
        shutil.copy("/usr/share/doc/%s/copyright" % name, os.path.join(notices, name))
    for name in ("LGPL-2.1", "LGPL-3", "GPL-3"):
        shutil.copy("/usr/share/common-licenses/" + name, notices)
    with open(os.path.join(info, "METADATA"), "w") as file:
        file.write(METADATA % version)
    with open(os.path.join(info, "WHEEL"), "w") as file:
        file.write("Wheel-Version: 1.0\nGenerator: frag\nRoot-Is-Purelib: false\nTag: cp311-abi3-%s\n" % platform)
    return info


def pack(folder, info, path):
    record = os.path.join(info, "RECORD")
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for root, _, files in sorted(os.walk(folder)):
            for name in sorted(files):
                full = os.path.join(root, name)
                inside = os.path.relpath(full, folder)
                with open(full, "rb") as file:
                    data = file.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
                digest = digest.rstrip(b"=").decode()
                rows.append("%s,sha256=%s,%d" % (inside, digest, len(data)))
                archive.write(full, inside)
        rows.append(os.path.relpath(record, folder) + ",,")
        archive.writestr(os.path.relpath(record, folder), "\n".join(rows) + "\n")


def main():
    build, version, dist = sys.argv[1:]
    programs = tools()
    kind = machine(os.path.join(build, "lib", "libfrag.so.1"))
    platform = "linux_" + kind
    with tempfile.TemporaryDirectory() as folder:
        staged = os.path.join(folder, "staged")
        os.mkdir(staged)
        info = stage(build, version, platform, staged, programs)
        raw = os.path.join(folder, "frag-%s-cp311-abi3-%s.whl" % (version, platform))
        pack(staged, info, raw)
        os.makedirs(dist, exist_ok=True)
        made = os.path.join(dist, "frag-*.whl")
        for old in glob.glob(made):
            os.unlink(old)
        folders = [os.path.abspath(os.path.join(build, "lib")), os.environ.get("WHEEL_LIBRARIES")]
        env = dict(os.environ, PATH=programs + ":" + os.environ["PATH"],
                   LD_LIBRARY_PATH=":".join(filter(None, folders)))
        subprocess.run([os.path.join(programs, "auditwheel"), "repair", "--exclude", "libfrag.so.1", "-w", dist,
                        raw], check=True, env=env, stdout=subprocess.DEVNULL)
    for path in glob.glob(made):
        print("%s: %d KiB" % (path, os.path.getsize(path) >> 10))
    return 0


if __name__ == "__main__":
    sys.exit(main())
