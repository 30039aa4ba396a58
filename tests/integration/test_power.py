# SPDX-License-Identifier: Apache-2.0
"""The power of a machine fails: what the disk had not taken yet is gone.

The disk is ext4 on a loop device, which is shut down in use: from then on it takes nothing, and
when it is mounted again it has what it took before (with its journal) and nothing that was only in
memory. What a real disk may still have in a cache of its own is not lost here.
"""
import contextlib
import fcntl
import glob
import json
import os
import signal
import struct
import subprocess
import unittest

import cluster
from test_service import ServiceTest

EXT4_IOC_SHUTDOWN, NOLOGFLUSH = 0x8004587D, 2
FILES = ("a.mp4", "b.mkv", "c.ts")
FRAMES_PER_S = 10
RECORD = """
frag: 1
application: record
operators:
  replayer: {type: video_replayer, parameters: {path: "%s", repeat: true}}
""" + "".join("  r%d: {type: video_recorder, parameters: {path: \"%%s/%s\"}}\n" % x for x in enumerate(FILES)) + """
flows: [%s]
""" % ", ".join("replayer.output -> r%d.input" % i for i in range(len(FILES)))
DIAL = """
frag: 1
application: %s
extensions: [libdial.so]
operators: {dial: {type: dial, conditions: [{type: periodic, recess_period: 50ms}]}}
"""


class Disk:
    def __init__(self, test):
        self.folder, self.image = test.path("disk"), test.path("disk.img")
        os.mkdir(self.folder)
        with open(self.image, "wb") as f:
            f.truncate(32 << 20)
        r = self.run("mkfs.ext4", "-q", self.image)
        r = r if r.returncode != 0 else self.mount()
        if r.returncode != 0:
            test.skipTest("this machine lets its user mount nothing: " + r.stderr.strip())
        test.addCleanup(self.run, "umount", "-l", self.folder)

    @staticmethod
    def run(*command):
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"})

    def mount(self):
        return self.run("mount", "-o", "loop", self.image, self.folder)

    def cut(self, processes):
        """The power fails, and comes back when nothing runs any more."""
        fd = os.open(self.folder, os.O_RDONLY)
        fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        os.close(fd)
        for p in processes:
            p.signal(signal.SIGKILL)
        for p in processes:
            p.wait()

    def is_attached(self):
        for name in glob.glob("/sys/block/loop*/loop/backing_file"):
            with contextlib.suppress(OSError), open(name, encoding="utf-8") as f:
                if os.path.samefile(f.read().rstrip("\n"), self.image):
                    return True
        return False

    def come_back(self, test):
        test.wait_until("the disk to be free", lambda: self.run("umount", self.folder).returncode == 0)
        # A mount namespace that another test has made meanwhile holds a copy of the mount. Until it
        # ends, what is mounted is the file system that was shut down.
        test.wait_until("copies of the mount to end", lambda: not self.is_attached())
        test.assertEqual(self.mount().returncode, 0)


class Power(ServiceTest):
    @unittest.skipUnless(os.path.exists(cluster.BUILD + "/lib/frag/plugins/libvideo.so"),
                         "built without FFmpeg's libraries")
    def test_a_recording_lacks_its_last_second_at_most(self):
        disk = Disk(self)
        clip = os.path.join(cluster.TOP, "examples", "data", "pedestrians.mp4")
        app = self.write("record.yaml", RECORD % (clip, *[disk.folder] * len(FILES)))
        self.env["FRAG_ALLOW_WRITE"] = self.folder
        started = self.serve(workers=("a",))
        self.ok("start", app)
        enough = 4 * FRAMES_PER_S * len(FILES)
        self.wait_until("frames", lambda: self.application("record")["delivered"] >= enough)
        delivered = self.application("record")["delivered"] // len(FILES)
        disk.cut(started)
        disk.come_back(self)
        for name in FILES:
            told = subprocess.run(
                ["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames",
                 "-of", "json", os.path.join(disk.folder, name)],
                capture_output=True, text=True, check=True)
            frames = int(json.loads(told.stdout)["streams"][0]["nb_read_frames"])
            # a frame lies in the encoder, one in each queue
            missing = FRAMES_PER_S * cluster.TIMES_SLOWER + 3
            self.assertGreaterEqual(frames, delivered - missing, name)

    def test_what_was_acknowledged_is_kept(self):
        disk = Disk(self)
        state = os.path.join(disk.folder, "state")
        for name in ("one", "two", "three"):
            self.write(name + ".yaml", DIAL % name)
        commands = (("start", self.path("one.yaml")), ("start", self.path("two.yaml")),
                    ("start", self.path("three.yaml")), ("set", "one", "one.dial.value=7"),
                    ("stop", "two"), ("restart", "three"), ("drain", "b"), ("drain", "c"),
                    ("drain", "c", "--undo"))
        for last in (2, 3, 4, 5, 6, 8):
            with self.subTest(commands[last][0]):
                started = self.serve("--state-dir", state, workers=("a", "b", "c"))
                for command in commands[:last + 1]:
                    self.ok(*command)
                run = self.application("three")["run"]
                disk.cut(started)
                disk.come_back(self)
                d, = self.serve("--state-dir", state)
                wanted = {a["name"]: a for a in self.json("list")["applications"]}
                two = {"two"} if last < 4 else set()
                self.assertEqual(set(wanted), {"one", "three"} | two)
                self.assertGreaterEqual(wanted["three"]["run"], run)
                back = [self.worker("--name", name) for name in ("b", "c")]
                self.wait_until("workers", lambda: len(self.live_workers()) == 2)
                drained = [w["name"] for w in self.live_workers() if w["drained"]]
                self.assertEqual(drained, ["b"] if last >= 6 else [])
                if last == 3:
                    self.wait_until("the value", lambda: any(
                        "one.dial: begins with 7" in w.stderr for w in back))
                for p in (d, *back):
                    p.kill()
                self.wait_until("everybody's end", lambda: not self.ours())
                for name in os.listdir(state):
                    os.unlink(os.path.join(state, name))


if __name__ == "__main__":
    cluster.main()
