# SPDX-License-Identifier: Apache-2.0
"""Memory of GPUs in whole applications, over the driver of tests (tests/cuda/fake_cuda.h), and
machines without a GPU."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

import cluster
from test_service import ServiceTest

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


PAIR = """frag: 1
application: app
extensions: [libgpu.so]
fragments:
  a:
    host: one
    operators:
      tx:
        type: gpu_source
        parameters: {bytes: 3000000, tensors: 2}
        conditions: [{type: count, count: 5}]
  b:
    host: two
    operators:
      rx: {type: gpu_sink, parameters: {look: false}}
flows: [{from: a.tx, to: b.rx, edge: ucx}]
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
        self.assertIn("`fragctl doctor`", r.stderr)
        with open(summary, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["failure"]["code"], "gpu_missing")
        self.assertNotIn("Sent message", r.stderr)

    def reported(self):
        with open(self.report, encoding="utf-8") as f:
            return f.read().split("\n")[:-1]


class Memory(Gpu):
    def test_tensors_of_every_kind_from_every_allocator(self):
        self.env["FAKE_CUDA_DEVICES"] = "2"
        for pool, storage in ((BLOCKS % 2, "system"), (BLOCKS % 0, "host"), (BLOCKS % 1, "device"),
                              ("{type: unbounded_allocator}", "cuda_managed"),
                              ('{type: RMMAllocator, device_memory_initial_size: "64 KB"}',
                               "device"),
                              ("{type: StreamOrderedAllocator, release_threshold: 0}", "device"),
                              ("{type: stream_ordered_allocator, dev_id: 1}", "device"),
                              ((BLOCKS % 1).replace("}", ", dev_id: 1}"), "device")):
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

    def test_how_full_a_pool_without_blocks_is(self):
        """top finds the run; a message of 2 KiB comes and goes."""
        app = APP.replace("{type: count, count: 20}", "{type: periodic, recess_period: 1ms}")
        pool = ("{type: stream_ordered_allocator, device_memory_initial_size: 8K, "
                "device_memory_max_size: 96K}")
        run = self.start("fragctl", "run", self.write("app.yaml", app % (pool, "device")), "-q")

        def top(*args):
            return subprocess.run([os.path.join(cluster.BIN, "fragctl"), "top", "--once",
                                   "--every", "250ms", *args], env=self.env, capture_output=True,
                                  text=True, timeout=cluster.PATIENCE_S).stdout
        line = r"\n   pool app\.pool: (0 B|2\.0 KiB|4\.0 KiB) of 96 KiB in use, empty 0 %, refused 0\n"
        self.wait_until("its pool", lambda: re.search(line, top()))
        pool, = json.loads(top("-o", "json"))["applications"][0]["pools"]
        self.assertEqual((pool["name"], pool["blocks"], pool["block_bytes"]), ("app.pool", 96 << 10, 1))
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 0)

    def test_waiting_for_memory_of_a_pool_without_blocks(self):
        """Its tensors come slower than they are taken, and the pool has memory for one."""
        app = APP.replace("parameters: {verify: true}", "parameters: {verify: true}, conditions: "
                          "[{type: periodic, recess_period: 10ms}]")
        pool = ("{type: stream_ordered_allocator, device_memory_initial_size: 0, "
                "device_memory_max_size: 2K}")
        waits = ", {type: memory_available, allocator: $pool, min_bytes: 2K}]"
        r = self.fragctl("run", app.replace("count: 20}]", "count: 20}" + waits)
                         % (pool, "device"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("rx received message 20:", r.stderr)
        r = self.fragctl("run", app % (pool, "device"))
        self.assertRegex(r.stderr, r"app\.tx: cannot make tensor \d+: there is no memory")

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
                      "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered; "
                      "see what nvidia-smi and the kernel's log say of the GPU", r.stderr)

    def test_what_make_gpu_check_runs(self):
        r = subprocess.run([os.path.join(FAKE, "gpu_check"), "2"], env=self.env, text=True,
                           capture_output=True, timeout=5 * cluster.PATIENCE_S)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn("GPU 0 is Fake 0", r.stdout)


LIMITED = """frag: 1
application: app
extensions: [libgpu.so]
fragments:
  a:
    host: %s
    resources:
      one: {type: block_memory_pool, storage_type: 1, block_size: 64K, num_blocks: 16}
      two: {type: block_memory_pool, storage_type: 1, block_size: 64K, num_blocks: 16}
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {allocator: $one, storage_type: device}
        conditions: [{type: count, count: 20}]
    requirements: {gpuMemoryLimit: %s}
  b:
    host: two
    operators:
      rx: {type: gpu_sink, parameters: {use_gpu: false}}
    requirements: {gpuMemoryLimit: 1Mi}
flows: [a.tx -> b.rx]
"""


class Limited(Gpu):
    """gpuMemoryLimit, which holds for a host. Its two pools take 2 MiB."""

    def run_with(self, host, limit):
        return self.fragctl("run", LIMITED % (host, limit), "--workers", "1")

    def test_all_of_it_may_be_used_and_no_byte_more(self):
        r = self.run_with("one", "2Mi")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertNotIn("gpuMemoryLimit", r.stderr)
        r = self.run_with("one", str((2 << 20) - 1))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("a.two: there is no memory for 16 blocks of 65536 bytes: 1048576 bytes of GPU "
                      "memory are more than this host may still have: its gpuMemoryLimit is "
                      "2097151 bytes, and 1048576 are in use", r.stderr)

    def test_validate_warns_of_pools_that_are_beyond_it(self):
        r = self.fragctl("validate", LIMITED % ("one", "1Mi"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("a: its pools take 2 MiB of GPU memory, and its gpuMemoryLimit is 1 MiB; "
                      "raise it", r.stderr)
        self.assertNotIn("gpuMemoryLimit", self.fragctl("validate", LIMITED % ("one", "2Mi")).stderr)

    def test_fragments_of_a_host_have_the_sum(self):
        r = self.run_with("two", "1Mi")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_a_run_in_one_process_has_the_same(self):
        r = self.fragctl("run", LIMITED % ("two", "1000K"))
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("its gpuMemoryLimit is 2072576 bytes", r.stderr)

    def test_a_tensor_that_is_beyond_it_fails_its_operator(self):
        text = APP % ("{type: stream_ordered_allocator, device_memory_initial_size: 0, "
                      "device_memory_max_size: 1M}", "device")
        r = self.fragctl("run", text + "requirements: {gpuMemoryLimit: 1000}\n")
        self.assertEqual(r.returncode, 1, r.stderr)
        # The pool has kept the byte by which the operator looked for its GPU.
        self.assertIn("2047 bytes of GPU memory are more than this host may still have: its "
                      "gpuMemoryLimit is 1000 bytes, and 1 are in use", r.stderr)


POOLED = """frag: 1
application: app
extensions: [libgpu.so]
resources:
  frames: {type: block_memory_pool, storage_type: 1, block_size: 2K, num_blocks: 8}
  own: {type: cuda_stream_pool, dev_id: %d}
operators:
  tx:
    type: ping_tensor_tx
    parameters: {allocator: $frames, storage_type: device, rows: 4, columns: 4, data_type: float}
    conditions: [{type: count, count: 3}]
  fwd: {type: forward, resources: [$own]}
  rx: %s
flows: [tx -> fwd, fwd -> rx.%s]
thread_pools:
  p: {initial_size: 1, add: [{operators: [%s]}]}
  q: {initial_size: 1, add: [{operators: [tx]}]}
"""


class ThreadPools(Gpu):
    """Operators of a pool use one GPU, whether a resource or the operator itself names it."""

    def setUp(self):
        super().setUp()
        self.env.update(FAKE_CUDA_DEVICES="2", FRAG_ONNXRUNTIME=os.path.join(cluster.BUILD, "tests", "engine"))

    def expect(self, refused, *parts):
        r = self.fragctl("run", POOLED % parts)
        self.assertEqual(r.returncode != 0, refused, r.stderr)
        self.assertEqual('app.rx: it uses GPU 0, and operator "fwd" of the same thread pool "p" GPU 1; give '
                         "operators of several GPUs pools of their own" in r.stderr, refused, r.stderr)

    def test_an_operator_that_uses_another_one_is_refused(self):
        rx = "{type: gpu_sink, parameters: {look: false}}"
        self.expect(False, 0, rx, "in", "fwd, rx")
        self.expect(False, 1, rx, "in", "fwd")
        self.expect(False, 1, rx, "in", "rx")
        self.expect(True, 1, rx, "in", "fwd, rx")
        self.expect(True, 1, rx, "in", "rx, fwd")
        self.expect(False, 1, rx.replace("look", "use_gpu: false, look"), "in", "fwd, rx")

    def test_the_gpu_of_a_network_counts(self):
        """It is a number among its parameters, not a resource."""
        self.write("m.model", "engine of tests\ninput image 1 4 4\noutput sum 1 4 4\n")
        rx = """
    type: inference
    parameters:
      backend: onnxruntime
      provider: %s
      device_id: %d
      model_path_map: {m: """ + self.path("m.model") + """}
      pre_processor_map: {m: [""]}
      inference_map: {m: [sum]}
    ports: {transmitter: {condition: none}}"""
        self.expect(False, 0, rx % ("cuda", 0), "receivers", "fwd, rx")
        self.expect(True, 1, rx % ("cuda", 0), "receivers", "fwd, rx")
        self.expect(True, 1, rx % ("cuda", 0), "receivers", "rx, fwd")
        r = self.fragctl("run", POOLED % (1, rx % ("cpu", 0), "receivers", "fwd, rx"))
        self.assertNotIn("thread pool", r.stderr, "it uses none")


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
        self.assertRegex(r.stderr, r"gpu \S+: a tensor of 2048 bytes cannot be copied from its GPU: "
                                   r"GPU 0 .*: cuMemcpyAsync .*: CUDA_ERROR_ILLEGAL_ADDRESS")

    @unittest.skipUnless(os.path.exists(os.path.join(FAKE, "ucx_cuda.so")), "built without UCX")
    def test_a_host_takes_what_staging_needs_before_the_first_tensor(self):
        """A tensor for which the pool cannot be made fails the application, as the next test
        shows; the first attempt is not that of a tensor."""
        self.env["FAKE_CUDA_FAIL"] = "cuMemPoolCreate:1:2"
        r = self.fragctl("run", BETWEEN % ("device", 32, "true", ", edge: ucx"), "--workers", "1")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("tensor 20 is whole, on device %d" % 2, r.stderr)

    def test_a_gpu_that_fails_under_a_message_that_waits(self):
        self.env["FAKE_CUDA_FAIL"] = "cuEventQuery:1:700"
        summary = self.path("summary.json")
        r = self.fragctl("run", BETWEEN % ("device", 4000, "false", ""), "--workers", "1",
                         "--summary", summary)
        self.assertEqual(r.returncode, 1, r.stderr)
        with open(summary, encoding="utf-8") as f:
            failure = json.load(f)["failure"]
        self.assertEqual((failure["code"], failure["operator"]), ("host_failed", "a.tx"))
        self.assertRegex(failure["sentence"],
                         r"a\.tx: a message that it has emitted cannot be sent: the GPU that writes "
                         r"or copies it has failed: GPU 0 \(Fake 0\): cuEventQuery: "
                         r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\): an illegal memory access")

    def test_a_gpu_without_room_for_what_arrives(self):
        """Only what arrives takes memory by this call."""
        self.env["FAKE_CUDA_FAIL"] = "cuMemAllocFromPoolAsync:2:2"
        text = BETWEEN % ("device", 32, "true", "")
        summary = self.path("summary.json")
        r = self.fragctl("run", text, "--workers", "1", "--summary", summary)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("b.rx: a message for it cannot be put on the GPU: there is no memory of the "
                      "device for 2048 bytes: out of memory", r.stderr)
        self.assertIn("cuMemAllocFromPoolAsync of 2048 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)",
                      r.stderr)
        with open(summary, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["failure"]["code"], "out_of_memory")


@unittest.skipUnless(os.path.exists(os.path.join(FAKE, "ucx_cuda.so")), "built without UCX")
class Ucx(Gpu):
    """tests/cuda/ucx_cuda.c ends a host that gives UCX memory of a GPU."""

    def setUp(self):
        super().setUp()
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("what stands between frag and UCX is preloaded, which sanitizers do not "
                          "allow")
        self.env["LD_PRELOAD"] = os.path.join(FAKE, "ucx_cuda.so")

    def cross(self, rows, flow=", edge: ucx", use_gpu="true", text=BETWEEN):
        """Returns the bytes that were copied."""
        summary = self.path("summary.json")
        r = self.fragctl("run", text % ("device", rows, use_gpu, flow), "--workers", "1",
                         "--summary", summary)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("tensor 20 is whole, on device %d" % (2 if use_gpu == "true" else 1),
                      r.stderr)
        with open(summary, encoding="utf-8") as f:
            return json.load(f)["flows"][0]["copied_bytes"]

    def test_no_memory_of_a_gpu_reaches_ucx(self):
        for rows in (32, 40000):
            self.assertEqual(self.cross(rows), 20 * rows * 64 * (2 if rows == 32 else 1))

    def test_nor_do_several_tensors_or_what_is_encrypted(self):
        self.cross(40000, flow=", edge: ucx, encrypt: on")
        r = self.fragctl("run", PAIR, "--workers", "1")
        self.assertEqual(r.returncode, 0, r.stderr)


def system_ucx():
    """The folder of the system's UCX; None: it has none."""
    found = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for line in found.split("\n"):
        if "libucp.so.0 " in line:
            return os.path.dirname(os.path.realpath(line.split()[-1]))
    return None


@unittest.skipUnless(system_ucx(), "built without UCX")
class AnotherUcx(cluster.ClusterTest):
    """--ucx DIR."""

    LIBRARIES = ("libucm.so.0", "libucs.so.0", "libuct.so.0", "libucp.so.0")

    def go(self, folder):
        text = ("frag: 1\napplication: app\nfragments:\n"
                "  a: {host: one, operators: {tx: {type: ping_tx, conditions: [{type: count, "
                "count: 3}]}}}\n"
                "  b: {host: two, operators: {rx: {type: ping_rx}}}\n"
                "flows: [{from: a.tx, to: b.rx, edge: ucx}]\n")
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), "run",
                               self.write("app.yaml", text), "--workers", "1", "--ucx", folder],
                              env=self.env, capture_output=True, text=True,
                              timeout=cluster.PATIENCE_S)

    def expect_refusal(self, folder, sentence):
        r = self.go(folder)
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertIn(sentence, r.stderr)

    def test_that_of_a_folder_is_used(self):
        folder = self.path("ucx")
        os.mkdir(folder)
        for name in self.LIBRARIES:
            shutil.copy(os.path.join(system_ucx(), name), folder)
        self.env["FRAG_LOG_LEVEL"] = "debug"
        r = self.go(folder)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("ucx tcp lo", r.stdout + r.stderr)
        self.assertIn("libraries of ucx are those in " + folder, r.stderr)

    def test_a_folder_without_all_of_it_is_refused(self):
        folder = self.path("ucx")
        self.expect_refusal(folder, "cannot open the libraries of ucx in %s: %s/libucm.so.0: "
                            "cannot open shared object file" % (folder, folder))
        os.mkdir(folder)
        for name in self.LIBRARIES[:3]:
            shutil.copy(os.path.join(system_ucx(), name), folder)
        self.expect_refusal(folder, "%s/libucp.so.0: cannot open shared object file" % folder)
        shutil.copy(os.path.join(system_ucx(), "libucs.so.0"),
                    os.path.join(folder, "libucp.so.0"))
        self.expect_refusal(folder, "libucp.so.0 is none by its name; name a folder with all of "
                            "ucx, or none")

    def test_a_relative_folder_is_refused(self):
        self.expect_refusal("ucx", 'the folder "ucx" of the libraries of ucx is no absolute path')


HAND_OVER = """frag: 1
application: app
extensions: [libgpu.so]
fragments:
  a:
    host: one
    resources: {pool: {type: %s}}
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {storage_type: device, rows: 4000, allocator: $pool}
        conditions: [{type: count, count: %d}]
  b:
    host: two
    operators:
      rx: {type: gpu_sink, parameters: {use_gpu: %s}}
%sflows: [{from: a.tx, to: b.rx%s}]
"""
AREA = "block_memory_pool, storage_type: 1, block_size: 256K, num_blocks: 8"


class HandOver(Gpu):
    """Hosts of one machine map each other's GPU memory; what cannot be mapped is staged."""

    def text(self, pool=AREA, count=20, use_gpu="true", more="", flow=""):
        return HAND_OVER % (pool, count, use_gpu, more, flow)

    def expect_edge(self, text, edge, device=2):
        r = self.fragctl("run", text, "--workers", "1")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("tensor 20 is whole, on device %d" % device, r.stderr)
        self.assertRegex(r.stdout, r"a\.tx\.out -> b\.rx\.in .* +%s\n" % edge)
        self.assertEqual(set(self.reported()), {"left 0"})
        os.unlink(self.report)
        return r.stdout

    def test_a_pool_of_device_memory_is_mapped(self):
        table = self.expect_edge(self.text(), "shm, GPU memory mapped")
        self.assertNotIn("copied", table, "no byte of a tensor was copied between the hosts")

    def test_what_a_pool_of_the_driver_has_at_first_is_mapped(self):
        for pool in ("rmm_allocator", "stream_ordered_allocator"):
            table = self.expect_edge(self.text(pool=pool), "shm, GPU memory mapped")
            self.assertNotIn("copied", table)

    def test_what_it_takes_later_is_staged(self):
        self.expect_edge(self.text(pool="rmm_allocator, device_memory_initial_size: 100K"),
                         "shm, GPU memory staged")

    def test_what_cannot_be_mapped_is_staged(self):
        staged = "shm, GPU memory staged"
        self.expect_edge(self.text(pool="rmm_allocator, device_memory_initial_size: 0"), staged)
        self.expect_edge(self.text(pool="unbounded_allocator"), staged)
        self.expect_edge(self.text(use_gpu="false"), staged, device=1)
        self.expect_edge(self.text(flow=", encrypt: on"), "shm, encrypted, GPU memory staged")
        self.expect_edge(self.text(flow=", edge: ucx"), "ucx .*, GPU memory staged")
        with self.subTest("a driver without such memory"):
            self.env["FAKE_CUDA_WITHOUT"] = "shared"
            self.expect_edge(self.text(), staged)

    def test_a_host_whose_gpu_fails_is_started_again(self):
        """A copy in each of its processes breaks its context: the third ends it all."""
        self.env["FAKE_CUDA_FAIL"] = "cuMemcpyAsync:15:700"
        summary = self.path("summary.json")
        text = self.text().replace("gpu_sink, parameters: {use_gpu: true}", "ping_tensor_rx").replace(
            "    host: one\n", "    host: one\n    on_failure: {policy: restart, intensity: 2, "
            "backoff: 1ms}\n")
        r = self.fragctl("run", text, "--workers", "1", "--summary", summary)
        self.assertEqual(r.returncode, 1, r.stderr)
        with open(summary, encoding="utf-8") as f:
            document = json.load(f)
        self.assertEqual(document["fragments"][0]["restarts"], 2)
        self.assertRegex(document["failure"]["sentence"],
                         r"a\.tx: cannot make tensor 8: GPU 0 \(Fake 0\): cuMemcpyAsync of 256000 "
                         r"bytes: CUDA_ERROR_ILLEGAL_ADDRESS \(700\): an illegal memory access")

    def test_a_driver_that_refuses_to_map_stages(self):
        self.env["FAKE_CUDA_FAIL"] = "cuMemImportFromShareableHandle:1:304"
        self.expect_edge(self.text(), "shm, GPU memory staged")


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


PARTS = """frag: 1
application: %s
fragments:
  one:
    operators: {tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 100hz}]}}
    requirements: {%s}
  two:
    operators: {rx: {type: ping_rx}}
    requirements: {%s}
flows: [one.tx -> two.rx]
"""
# What NVIDIA's driver shows of a machine with three GPUs, the third of which is divided.
DIVIDED = ("mount -t tmpfs frag /proc/driver && cd /proc/driver && "
           "mkdir -p nvidia/gpus/0000:01:00.0 nvidia/gpus/0000:02:00.0 nvidia/gpus/0000:03:00.0 "
           "nvidia/capabilities/gpu2/mig/gi7 && echo 580.1 > nvidia/version && cd - > /dev/null && ")


class Parts(ServiceTest):
    """MIG instances and shares of threads by MPS, over files and libraries of NVIDIA that are made
    up: what a host gets is in its environment."""

    def setUp(self):
        super().setUp()
        self.pipes = self.path("pipes")
        os.mkdir(self.pipes)
        self.env.update(LD_LIBRARY_PATH=FAKE, FAKE_NVML_MIG="1g.10gb,,1g.10gb,3g.40gb",
                        FAKE_NVML_ID=str(os.getpid()), CUDA_MPS_PIPE_DIRECTORY=self.pipes)
        self.env.pop("CUDA_VISIBLE_DEVICES", None)
        self.small = ["MIG-%d-%d" % (os.getpid(), i) for i in (0, 2)]
        self.large = "MIG-%d-3" % os.getpid()
        self.prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", DIVIDED + 'exec "$@"', "sh")
        if subprocess.run([*self.prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets its user make no mount namespaces")

    def offer(self, name, *args, **env):
        w = self.worker("--name", name, *args, prefix=self.prefix, env={**self.env, **env})
        self.wait_until(name, lambda: name in [x["name"] for x in self.live_workers()])
        return w

    def graph(self, name, one="", two=""):
        return self.write(name + ".yaml", PARTS % (name, one, two))

    def run_app(self, name, one="", two=""):
        self.assertEqual(self.ok("start", self.graph(name, one, two)).splitlines()[-1], name + ": runs")

    def try_app(self, one):
        """What is said of an application that does not start."""
        p = self.start("fragctl", "start", self.graph("refused", one), "--start-timeout", "300ms")
        self.assertNotEqual(p.wait(), 0, p.stderr)
        return p.stderr

    def hosts(self):
        """Without the process that reads the load of GPUs."""
        return [pid for pid, command in self.ours().items()
                if "fraghost" in command.split(" ")[0] and "--gpu" not in command]

    def environments(self, variable="CUDA_VISIBLE_DEVICES"):
        """What the hosts that run have of it."""
        found = []
        for pid in self.hosts():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                    open("/proc/%d/environ" % pid) as f:
                entries = dict(e.split("=", 1) for e in f.read().split("\0") if "=" in e)
                found.append(entries.get(variable))
        return sorted(found, key=str)

    def expect(self, values, variable="CUDA_VISIBLE_DEVICES"):
        """Hosts that have ended are there for a moment."""
        self.wait_until(lambda: "%s, not %s" % (values, self.environments(variable)),
                        lambda: self.environments(variable) == values)

    def mps(self):
        """As much of a daemon of MPS as can be seen of it."""
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(daemon.close)
        daemon.bind(os.path.join(self.pipes, "control"))
        daemon.listen()
        return daemon

    def test_each_instance_is_of_one_host(self):
        self.serve()
        self.offer("a")
        self.run_app("one", "mig: 1g.10gb", "mig: 1g.10gb")
        self.expect(self.small)
        self.assertIn("requires mig 1g.10gb", self.ok("explain", "one"))
        # the third one waits until the application ends, in whatever way
        waiting = self.start("fragctl", "start", self.graph("two", "mig: 1g.10gb", "gpu: 1"))
        self.wait_until("two", lambda: self.application("two") is not None)
        self.wait_until("why", lambda: "of its 2 MIG instances 1g.10gb none is free" in self.ok("explain", "two"))
        os.kill(self.hosts()[0], signal.SIGKILL)
        self.assertEqual(waiting.wait(), 0, waiting.stderr)
        self.expect(["GPU-0", self.small[0]])
        self.run_app("three", "mig: 3g.40gb")
        self.expect(["GPU-0", "GPU-0", self.small[0], self.large])
        self.ok("stop", "two")
        self.run_app("four", "mig: 1g.10gb", "mig: 1g.10gb")
        self.ok("stop", "three")
        self.expect(self.small)

    def test_a_host_that_is_started_again_keeps_its_instance(self):
        self.serve()
        self.offer("a")
        policy = "on_failure: {policy: restart, backoff: 10ms}"
        text = (PARTS % ("app", "mig: 1g.10gb", "mig: 1g.10gb")).replace(
            "    requirements:", "    %s\n    requirements:" % policy)
        self.assertEqual(self.ok("start", self.write("app.yaml", text)).splitlines()[-1], "app: runs")
        before = sorted(self.hosts())
        os.kill(before[0], signal.SIGKILL)
        self.wait_until("again", lambda: len(self.hosts()) == 2 and sorted(self.hosts()) != before)
        self.expect(self.small)

    def test_what_no_worker_has_is_refused_before_the_start(self):
        self.serve()
        self.offer("a")
        self.wait_until("its instances", lambda: "2 of 1g.10gb" in self.try_app("mig: 7g.80gb"))
        self.assertIn("it has no MIG instance 7g.80gb, but 2 of 1g.10gb, 1 of 3g.40gb", self.try_app("mig: 7g.80gb"))
        self.assertIn("wants 2 gpu, and no worker has so much; worker a has 1", self.try_app("gpu: 2"))
        self.assertIn("found no GPU or no MPS of NVIDIA when it started", self.try_app("gpuThreads: 25%"))
        self.assertEqual(self.hosts(), [])

    def test_workers_of_one_machine(self):
        """Each offers all instances, and gives none away that another one has."""
        self.serve()
        self.offer("a", CUDA_VISIBLE_DEVICES="2")
        self.offer("b", CUDA_VISIBLE_DEVICES=self.small[1] + "," + self.large)
        labels = "mig: 1g.10gb, labels: {worker: %s}"
        self.wait_until("b", lambda: "1 of 1g.10gb, 1 of 3g.40gb" in self.try_app("mig: 7g.80gb, labels: {worker: b}"))
        self.run_app("one", labels % "b", labels % "a")
        self.expect(self.small)
        self.assertIn("of 2 MIG instances 1g.10gb, 1 are in use by other workers of this machine",
                      self.try_app(labels % "a"))
        self.ok("stop", "one")
        self.run_app("two", labels % "a", labels % "b")
        self.expect(self.small)

    def test_an_instance_that_a_worker_is_given_is_its_gpu(self):
        self.serve()
        self.offer("a", CUDA_VISIBLE_DEVICES=self.small[1])
        self.run_app("one", "gpu: 1")
        self.expect([self.small[1]])
        self.assertIn("it has no MIG instance 1g.10gb", self.try_app("mig: 1g.10gb"))

    def test_shares_of_threads(self):
        daemon = self.mps()
        self.serve()
        self.offer("a", "--inventory", "gpu=2,gpuMemory=8Gi")
        self.offer("b", "--inventory", "gpu=2,gpuMemory=8Gi", CUDA_MPS_PIPE_DIRECTORY=self.path("no"))
        self.run_app("one", "gpuThreads: 25%, gpuMemoryLimit: 1Gi", "gpuThreads: 50%, gpuMemoryLimit: 1Gi")
        percent, limit = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
        self.expect(["75"], percent)
        self.expect(["0=2048M,1=2048M"], limit)
        self.assertIn("requires at most gpuMemory 1 GiB, gpuThreads 25%", self.ok("explain", "one"))
        self.assertIn("worker a is nearest: 25% of 100% gpuThreads are free, and 26% are required",
                      self.try_app("gpuThreads: 26%"))
        self.run_app("two", "gpuThreads: 25%")
        self.expect(["25", "75"], percent)
        self.ok("stop", "one")
        daemon.close()
        self.assertIn("NVIDIA's MPS does not answer at %s/control" % self.pipes, self.try_app("gpuThreads: 75%"))
        os.unlink(os.path.join(self.pipes, "control"))
        self.mps()
        self.run_app("three", "gpuThreads: 75%")
        self.expect(["25", "75"], percent)

    def test_a_run_in_one_process_warns(self):
        for required, word in (("mig: 1g.10gb", "mig"), ("gpuThreads: 25%", "gpuThreads")):
            text = (PARTS % ("app", required, "")).replace("{type: periodic, recess_period: 100hz}",
                                                           "{type: count, count: 3}")
            p = self.start("fragctl", "run", self.write("app.yaml", text))
            self.assertEqual(p.wait(), 0, p.stderr)
            self.assertIn("one gets no part of a GPU (%s): all fragments run in one host" % word, p.stderr)
