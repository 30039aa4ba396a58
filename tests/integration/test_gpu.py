# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs in whole applications, over the driver of tests (tests/cuda/fake_cuda.h), and
machines without a GPU."""
import json
import os
import subprocess

import cluster

FAKE = os.path.join(cluster.BUILD, "tests", "cuda")

APP = """frag: 1
application: app
resources:
  pool: %s
operators:
  tx:
    type: ping_tensor_tx
    parameters: {allocator: $pool, storage_type: %s}
    conditions: [{type: count, count: 20}]
  rx: {type: ping_tensor_rx, parameters: {verify: true}}
flows: [tx -> rx]
"""
BLOCKS = "{type: block_memory_pool, storage_type: %d, block_size: 2K, num_blocks: 3}"


BETWEEN = """frag: 1
application: app
extensions: [libgpu.so]
fragments:
  a:
    host: one
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {storage_type: %s, rows: %d}
        conditions: [{type: count, count: 20}]
  b:
    host: two
    operators:
      rx: {type: gpu_sink, parameters: {use_gpu: %s}}
flows: [{from: a.tx, to: b.rx%s}]
"""


class Gpu(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.report = self.path("report")
        self.env.update(LD_LIBRARY_PATH=FAKE, FAKE_CUDA_REPORT=self.report,
                        FRAG_ALLOW_WRITE=":".join(filter(None, (self.env.get("FRAG_ALLOW_WRITE"),
                                                                self.folder))))

    def fragctl(self, verb, text, *args):
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), verb,
                               self.write("app.yaml", text), *args], env=self.env,
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S)

    def expect_refusal(self, text, sentence, *args):
        summary = self.path("summary.json")
        r = self.fragctl("run", text, "--summary", summary, *args)
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertIn(sentence, r.stderr)
        with open(summary, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["failure"]["code"], "gpu_missing")
        self.assertNotIn("Sent message", r.stderr)

    def reported(self):
        with open(self.report, encoding="utf-8") as f:
            return f.read().split("\n")[:-1]


class Memory(Gpu):
    def test_tensors_of_every_kind_from_every_allocator(self):
        for pool, storage in ((BLOCKS % 2, "system"), (BLOCKS % 0, "host"), (BLOCKS % 1, "device"),
                              ("{type: unbounded_allocator}", "cuda_managed"),
                              ('{type: RMMAllocator, device_memory_initial_size: "64 KB"}',
                               "device"),
                              ("{type: StreamOrderedAllocator, release_threshold: 0}", "device")):
            with self.subTest(pool=pool, storage=storage):
                r = self.fragctl("run", APP % (pool, storage))
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertIn("rx received message 20: Tensor key: 'tensor', shape: (32, 64)",
                              r.stderr)
                if storage == "system":
                    self.assertFalse(os.path.exists(self.report), "no driver was opened")
                else:
                    self.assertEqual(self.reported(), ["left 0"])
                    os.unlink(self.report)

    def test_an_allocator_without_that_memory_fails_the_operator(self):
        for pool, storage in ((BLOCKS % 1, "system"), ("{type: rmm_allocator}", "cuda_managed")):
            with self.subTest(pool=pool, storage=storage):
                r = self.fragctl("run", APP % (pool, storage))
                self.assertEqual(r.returncode, 1, r.stderr)
                self.assertIn("app.tx: cannot make tensor 1: the allocator has no memory of "
                              "storage_type %s; give it one that has" % storage, r.stderr)

    def test_a_gpu_without_memory_left_refuses_the_graph(self):
        self.env["FAKE_CUDA_MEMORY"] = "6143"
        r = self.fragctl("run", APP % (BLOCKS % 1, "device"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("app.pool: there is no memory for 3 blocks of 2048 bytes: GPU 0 (Fake 0): "
                      "cuMemAlloc of 6144 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory",
                      r.stderr)

    def test_a_copy_that_fails_fails_the_operator_with_what_cuda_says(self):
        self.env["FAKE_CUDA_FAIL"] = "cuMemcpyAsync:3:700"
        app = APP % (BLOCKS % 1, "device")
        r = self.fragctl("run", app.replace("verify: true", "verify: false"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("app.tx: cannot make tensor 3: GPU 0 (Fake 0): cuMemcpyAsync of 2048 bytes: "
                      "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered",
                      r.stderr)

    def test_what_make_gpu_check_runs(self):
        r = subprocess.run([os.path.join(FAKE, "gpu_check"), "2"], env=self.env, text=True,
                           capture_output=True, timeout=cluster.PATIENCE_S)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn("GPU 0 is Fake 0", r.stdout)


class Between(Gpu):
    """Tensors that go to another host, whole."""

    def expect_arrival(self, storage, rows, use_gpu, flow, device):
        with self.subTest(storage=storage, rows=rows, flow=flow):
            r = self.fragctl("run", BETWEEN % (storage, rows, use_gpu, flow), "--workers", "1")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("tensor 20 is whole, on device %d" % device, r.stderr)

    def test_those_of_a_gpu_arrive_on_a_gpu(self):
        self.expect_arrival("device", 32, "true", "", 2)
        self.expect_arrival("device", 4000, "true", ", edge: ucx", 2)
        self.expect_arrival("device", 4000, "true", ", encrypt: on", 2)

    def test_where_nothing_uses_a_gpu_they_arrive_in_host_memory(self):
        self.expect_arrival("device", 4000, "false", "", 1)

    def test_those_that_the_cpu_can_use_arrive_in_host_memory(self):
        self.expect_arrival("cuda_managed", 4000, "true", "", 1)

    def test_a_gpu_that_fails_while_a_tensor_leaves_or_arrives(self):
        # Each host makes its own calls: the sender copies twice a message, the receiver once
        # before its operator does.
        self.env["FAKE_CUDA_FAIL"] = "cuMemcpyAsync:2:700"
        r = self.fragctl("run", BETWEEN % ("device", 32, "true", ""), "--workers", "1")
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertNotIn("tensor 20", r.stderr)
        self.assertIn('a.tx: cannot emit on port "out" in tick 1: a tensor cannot be copied from '
                      "its GPU to be sent", r.stderr)
        self.assertRegex(r.stderr, r"gpu: a tensor of 2048 bytes cannot be copied from its GPU: "
                                   r"GPU 0 .*: cuMemcpyAsync .*: CUDA_ERROR_ILLEGAL_ADDRESS")

    def test_a_gpu_without_room_for_what_arrives(self):
        """Only what arrives takes memory by this call."""
        self.env["FAKE_CUDA_FAIL"] = "cuMemAllocFromPoolAsync:2:2"
        text = (BETWEEN % ("device", 32, "true", "")).replace(
            "host: one\n", "host: one\n    resources: {pool: %s}\n" % (BLOCKS % 1)).replace(
            "num_blocks: 3", "num_blocks: 9").replace("{storage", "{allocator: $pool, storage")
        summary = self.path("summary.json")
        r = self.fragctl("run", text, "--workers", "1", "--summary", summary)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("a message of flow 0 cannot be put on the GPU: there is no memory of the "
                      "device for 2048 bytes: out of memory", r.stderr)
        self.assertIn("cuMemAllocFromPoolAsync of 2048 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)",
                      r.stderr)
        with open(summary, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["failure"]["code"], "out_of_memory")


class Missing(Gpu):
    """Each is refused before anything ran, with the resource or the operator that needs it."""

    def test_no_driver(self):
        broken = self.path("broken")
        os.mkdir(broken)
        with open(os.path.join(broken, "libcuda.so.1"), "w", encoding="utf-8") as f:
            f.write("none")
        self.env["LD_LIBRARY_PATH"] = broken
        self.expect_refusal(APP % (BLOCKS % 1, "device"),
                            "app.pool: storage_type 1 needs GPU 0, and there is no driver of NVIDIA here (")
        self.expect_refusal(APP % (BLOCKS % 1, "device"), "(used by tx)", "--workers", "1")
        self.expect_refusal(APP % ("{type: unbounded_allocator}", "device"),
                            "app.yaml:6:3: app.tx: it needs GPU 0, and there is no driver of NVIDIA here (")

    def test_no_gpu(self):
        self.env["FAKE_CUDA_DEVICES"] = "0"
        self.expect_refusal(APP % (BLOCKS % 1, "device"), "CUDA_ERROR_NO_DEVICE (100)")
        # Checking a graph opens no GPU, and one that needs none runs.
        for verb, text in (("validate", APP % (BLOCKS % 1, "device")),
                           ("run", APP % (BLOCKS % 2, "system"))):
            r = self.fragctl(verb, text)
            self.assertEqual(r.returncode, 0, r.stderr)

    def test_a_gpu_with_another_number(self):
        self.expect_refusal(APP % ("{type: stream_ordered_allocator, dev_id: 2}", "device"),
                            "app.pool: it needs GPU 2, and there is no GPU 2: this process sees 1")


if __name__ == "__main__":
    cluster.main()
