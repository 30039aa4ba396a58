#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""v4l2_video_capture with a real driver: vivid, the kernel's virtual camera.

usage: vivid.py [--build DIR]

Boots Debian's own kernel in qemu, which emulates the processor (no KVM), with a root in memory that
holds the build, the driver and a shell. There `fragctl run` captures frames in every format that
both know, and the pictures that come back must be vivid's: eight bars of known colours.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "guest"))
import guest  # noqa: E402
GRAY = ("GREY", "Y10", "Y12", "Y16")
FORMATS = ("auto", "YUYV", "NV12", "RGB3", "AB24", "UYVY", "YU12", "BGR3", *GRAY)
COLUMNS, ROWS, FRAMES = 640, 360, 10
# White, yellow, cyan, green, magenta, red, blue, black at 75 %: "75% Colorbar", vivid's default.
BARS = ((191, 191, 191), (191, 191, 0), (0, 191, 191), (0, 191, 0),
        (191, 0, 191), (191, 0, 0), (0, 0, 191), (0, 0, 0))
TOLERANCE = 24  # of a channel: the formats with two colour channels round
BOOT_S = 300
APP = """frag: 1
application: vivid
arguments: {format: {default: auto}}
operators:
  camera:
    type: v4l2_video_capture
    parameters: {pixel_format: "${format}", width: %d, height: %d, stall_timeout: 100s}
    conditions: [{type: count, count: %d}]
  picture: {type: image_writer, parameters: {path: "/out/${format}.png", frame: %d}}
flows: [camera.signal -> picture.in]
""" % (COLUMNS, ROWS, FRAMES, FRAMES - 1)
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /tmp /dev/shm /out /run
mount -t tmpfs tmp /dev/shm
for m in %(modules)s; do insmod /modules/$m.ko; done
while [ ! -e /dev/video0 ]; do sleep 0.1; done
cd /out
for f in %(formats)s; do
	/frag/bin/fragctl run --output json /app.yaml -- --format $f >$f.json 2>$f.log
	echo $? >$f.status
done
stty -F /dev/ttyS1 raw
tar c -C / out >/dev/ttyS1
sync
poweroff -f
"""


def programs(build):
    names = ["bin/fragctl", "libexec/frag/fraghost", "lib/libfrag.so.1"]
    names += ["lib/frag/plugins/lib%s.so" % n for n in ("capture", "vision")]
    return [os.path.join(build, n) for n in names]


def boot(kernel, archive, folder):
    """Runs the guest until it powers off. What it gives back lies in the folder."""
    console, given = os.path.join(folder, "console"), os.path.join(folder, "given.tar")
    try:
        subprocess.run(
            [*guest.command(kernel, archive, 1024, "rdinit=/init"), "-serial", "file:" + console, "-serial", "file:" + given],
            stdin=subprocess.DEVNULL, check=True, timeout=BOOT_S)
        subprocess.run(["tar", "x", "-C", folder, "-f", given], check=True)
    except (subprocess.SubprocessError, OSError) as e:
        with open(console, encoding="utf-8", errors="replace") as f:
            sys.exit("vivid: the guest failed: %s\n%s" % (e, f.read()[-4000:]))


def pixels(path):
    """The picture as rows of RGB."""
    data = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          capture_output=True, check=True, timeout=60).stdout
    assert len(data) == COLUMNS * ROWS * 3, "%s has %d bytes of pixels" % (path, len(data))
    return data


def check(out, name):
    """The frames of one format: how many came, and what the last one shows."""
    with open(os.path.join(out, name + ".log"), encoding="utf-8") as f:
        log = f.read()
    with open(os.path.join(out, name + ".status"), encoding="utf-8") as f:
        assert f.read().strip() == "0", "%s failed:\n%s" % (name, log)
    with open(os.path.join(out, name + ".json"), encoding="utf-8") as f:
        flow = json.load(f)["flows"][0]
    assert (flow["sent"], flow["delivered"]) == (FRAMES, FRAMES), flow
    rgb = pixels(os.path.join(out, name + ".png"))
    for bar, wanted in enumerate(BARS):
        at = ((ROWS * 3 // 4) * COLUMNS + (2 * bar + 1) * COLUMNS // (2 * len(BARS))) * 3
        seen = tuple(rgb[at:at + 3])
        if name in GRAY:  # which vivid weights by BT.709
            wanted = 3 * (round(0.2126 * wanted[0] + 0.7152 * wanted[1] + 0.0722 * wanted[2]),)
        assert all(abs(s - w) <= TOLERANCE for s, w in zip(seen, wanted)), (
            "%s: bar %d is %r instead of %r" % (name, bar, seen, wanted))


def why_not(build):
    """Why it cannot be tried here; None: it can."""
    reason = guest.missing("vivid")
    if reason:
        return reason
    if not shutil.which("ffmpeg"):
        return "ffmpeg is not installed (mk/deps.sh vivid)"
    for f in programs(build):
        if not os.path.exists(f):
            return "%s is not built" % f
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    args = p.parse_args()
    build = os.path.abspath(args.build)
    reason = why_not(build)
    if reason:
        print("vivid: skipped: " + reason)
        return
    kernel = guest.fetch_kernel()
    with tempfile.TemporaryDirectory() as folder:
        modules = guest.needed_modules(kernel, ["vivid"])
        init = INIT % {"modules": guest.module_names(modules), "formats": " ".join(FORMATS)}
        guest.lay_out(os.path.join(folder, "root"), build, programs(build), modules, {"app.yaml": APP, "init": init})
        guest.write_archive(os.path.join(folder, "root"), os.path.join(folder, "root.cpio"))
        boot(kernel, os.path.join(folder, "root.cpio"), folder)
        for name in FORMATS:
            check(os.path.join(folder, "out"), name)
    print("vivid: %d frames in each of %d formats, with vivid's colours" % (FRAMES, len(FORMATS)))


if __name__ == "__main__":
    main()
