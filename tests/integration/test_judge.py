# SPDX-License-Identifier: Apache-2.0
"""Bottlenecks that need something of the machine (a core, a disk, a GPU), each on two hosts, and
twelve graphs that have none. The other bottlenecks are planted in test_top."""
import fcntl
import json
import os
import signal
import struct
import subprocess

import cluster
from busy import busy
import test_top
from test_top import CAMERA, SINK, application

FIFREEZE, FITHAW = 0xc0045877, 0xc0045878
PINNED = ("    thread_pools: {one: {add: [{operators: %s, pin_operator: true, pin_cores: [0]}]}}\n")
PICTURES = """    operators:
      tx:
        type: ping_tensor_tx
        parameters: {rows: 16, columns: 16, channels: 3}
        conditions: [{type: periodic, recess_period: 30hz}]
"""
# rx reads what the kernel writes, so that its thread waits for the GPU.
CONVERTS = """    resources:
      gpu: {type: block_memory_pool, storage_type: 1, block_size: 4KB, num_blocks: 8}
    operators:
      convert: {type: format_converter, parameters: {pool: $gpu, out_dtype: float32}}
      rx: {type: ping_tensor_rx}
    flows: [convert -> rx]
"""


class FrozenDisk:
    """A file system on a loop device, which takes no writes while it is frozen: who writes waits
    for it, however busy the machine is."""

    def __init__(self, test):
        self.folder, image = test.path("disk"), test.path("disk.img")
        os.mkdir(self.folder)
        with open(image, "wb") as f:
            f.truncate(8 << 20)
        for command in (["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, self.folder]):
            r = subprocess.run(command, capture_output=True, text=True, check=False,
                               env={"PATH": os.environ["PATH"] + ":/sbin:/usr/sbin"})
            if r.returncode != 0:
                os.unlink(image)
                os.rmdir(self.folder)
                test.skipTest("this machine lets its user mount nothing: " + r.stderr.strip())
        self.image, self.is_frozen = image, False
        self.fd = os.open(self.folder, os.O_RDONLY)

    def freeze(self):
        fcntl.ioctl(self.fd, FIFREEZE, struct.pack("i", 0))
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            fcntl.ioctl(self.fd, FITHAW, struct.pack("i", 0))
        self.is_frozen = False

    def close(self):
        self.thaw()
        os.close(self.fd)
        subprocess.run(["umount", "-l", self.folder], check=True)
        os.unlink(self.image)
        os.rmdir(self.folder)


class Machine(test_top.Causes):
    test_what_is_planted_is_found = disk = None

    def launch(self, text):
        super().launch(text)
        if self.disk is not None:
            self.disk.freeze()

    def end(self):
        if self.disk is not None:
            self.disk.thaw()
        super().end()

    def expect(self, text, kind, op, says):
        found, _ = self.await_cause(text, lambda c: (c["kind"], op and c["operator"]) == (kind, op) and says in c["sentence"])
        if found["kind"] == "cores" and busy() > 1:  # that is the cause, then
            return
        self.assertEqual((found["kind"], op and found["operator"]), (kind, op), found)
        self.assertIn(says, found["sentence"])

    def test_a_pinned_core_that_is_shared(self):
        text = application(front=PINNED % "a" + CAMERA % ("30hz", "") + "      a: {type: slow, parameters: {spin_ms: 22}}\n"
                           "    flows: [tx.out -> a.in]\n", back=PINNED % "rx" + SINK % ("spin_ms: 22", ""),
                           flow="front.a.out -> back.rx.in")
        self.expect(text, "cores", None, "other threads take the cores of host")

    def test_a_slow_disk_at_a_recorder(self):
        self.disk = FrozenDisk(self)
        self.addCleanup(self.disk.close)
        back = "    operators:\n      rx: {type: truth_rx, parameters: {file: %s/recorded}}\n" % self.disk.folder
        text = application(back=back).replace("[libslow.so]", "[libtruth.so]")
        self.expect(text, "operator", "back.rx", "without a CPU (it waits for a disk)")

    def test_a_kernel_of_a_gpu(self):
        self.need_kernels()
        self.env.update(LD_LIBRARY_PATH=os.path.join(os.path.dirname(cluster.BIN), "tests/cuda"),
                        FAKE_CUDA_KERNEL_MS="55")
        self.expect(application(front=PICTURES, back=CONVERTS, flow="front.tx -> back.convert"), "operator", "back.rx",
                    "without a CPU (it waits for a GPU")


BLOCKS = ("    resources: {frames: {type: block_memory_pool, block_size: 64KB, num_blocks: 8}}\n    operators:\n      tx:\n"
          "        type: ping_tensor_tx\n        parameters: {allocator: $frames, rows: 64, columns: 64}\n        conditions:\n"
          "          - {type: periodic, recess_period: 30hz}\n"
          "          - {type: memory_available, allocator: $frames, min_blocks: 1}\n")
CHAIN = ("    operators:\n      a: {type: slow, parameters: {sleep_ms: 8}}\n      b: {type: slow, parameters: {sleep_ms: 8}}\n"
         "      rx: {type: slow_rx, parameters: {sleep_ms: 8}}\n    flows: [a.out -> b.in, b.out -> rx.in]\n")
GREEDY = "    scheduler: {type: greedy}\n"
# Nothing is wrong with any of them.
HEALTHY = {
    "a-camera": application(back=SINK % ("sleep_ms: 5", "")),
    "one-thread": application(front=GREEDY + CAMERA % ("20hz", ""), back=GREEDY + SINK % ("sleep_ms: 5", "")),
    "latest": application(flow="{from: front.tx.out, to: back.rx.in, policy: latest}"),
    "pop-in-time": application(back=SINK % ("sleep_ms: 5", ""), flow="{from: front.tx.out, to: back.rx.in, policy: pop}"),
    "busy-but-in-time": application(back=SINK % ("sleep_ms: 20", "")),
    "a-promised-rate": application(front=CAMERA % ("30hz", ", rate: 30hz"), back=SINK % ("sleep_ms: 2", ", budget: 10ms")),
    "a-slow-clock": application(front=CAMERA % ("2hz", ""), back=SINK % ("sleep_ms: 40", "")),
    "one-message-at-a-time": application(back=SINK % ("sleep_ms: 5", ""), flow="{from: front.tx.out, to: back.rx.in, capacity: 1}"),
    "three-in-a-row": application(front=CAMERA % ("20hz", ""), back=CHAIN, flow="front.tx.out -> back.a.in"),
    "three-on-one-thread": application(front=CAMERA % ("20hz", ""), back=GREEDY + CHAIN, flow="front.tx.out -> back.a.in"),
    "a-pool-of-enough-blocks": application(front=BLOCKS, back=SINK % ("sleep_ms: 5", "")),
    "as-fast-as-it-can-be": application(front="    operators: {tx: {type: ping_tx}}\n", back=SINK % ("sleep_ms: 5", "")),
}


class Healthy(cluster.ClusterTest):
    """All of them at once, so that a window of one second is one of each."""

    def test_nothing_is_wrong(self):
        d = self.start("driverd", "--address", "127.0.0.1:0")
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        workers = [self.worker("--name", name) for name in ("front", "back")]
        for name, text in HEALTHY.items():
            text = text.replace("  back:\n", "  back:\n    requirements: {apart: front}\n")
            self.fragctl("start", self.write(name + ".yaml", text), "--name", name)
        wrong = set(HEALTHY)
        for _ in range(10):  # others may take cores away meanwhile, which is a cause too
            apps = json.loads(self.fragctl("top", "--once", "-o", "json"))["applications"]
            self.assertEqual({app["application"] for app in apps}, set(HEALTHY))
            wrong -= {app["application"] for app in apps if app["cause"]["kind"] == "none"}
            if not wrong:
                break
        self.assertFalse(wrong, apps)
        d.signal(signal.SIGTERM)
        d.wait()
        for worker in workers:
            worker.signal(signal.SIGTERM)
            worker.wait()
        self.assert_nothing_left()

    fragctl = test_top.TopTest.fragctl


if __name__ == "__main__":
    cluster.main()
