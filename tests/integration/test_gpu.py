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
  rx: {type: ping_tensor_rx}
flows: [tx -> rx]
"""
BLOCKS = "{type: block_memory_pool, storage_type: %d, block_size: 2K, num_blocks: 3}"


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
        r = self.fragctl("run", APP % (BLOCKS % 1, "device"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("app.tx: cannot make tensor 3: GPU 0 (Fake 0): cuMemcpyAsync of 2048 bytes: "
                      "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered",
                      r.stderr)

    def test_what_make_gpu_check_runs(self):
        r = subprocess.run([os.path.join(FAKE, "gpu_check"), "2"], env=self.env, capture_output=True,
                           text=True, timeout=cluster.PATIENCE_S)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn("GPU 0 is Fake 0", r.stdout)


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
