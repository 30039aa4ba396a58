# SPDX-License-Identifier: Apache-2.0
"""Holoscan's InferenceOp (backend onnxrt) beside frag's operator inference, for the part holoscan
of gpu_bench.sh, which prepares the libraries. Input and outputs are on the GPU.

usage: inference.py MODEL unbounded|rmm greedy|event_based rate|waits|latency

rate: as many frames as go; waits: the same with a sink that waits for the GPU at each frame. Both
print frames/s. latency: 200 frames a second; prints the median and the 99th percentile in ms, from
the source until the results are written.
"""
import sys
import time

import cupy
import numpy
from holoscan.conditions import CountCondition, PeriodicCondition
from holoscan.core import Application, Operator
from holoscan.operators import InferenceOp
from holoscan.resources import CudaStreamPool, RMMAllocator, UnboundedAllocator
from holoscan.schedulers import EventBasedScheduler, GreedyScheduler

INPUT, OUTPUTS = "input.1", ["537", "538", "539", "540"]
SIDES = (1, 3, 576, 768)
HZ = 200


class Source(Operator):
    def __init__(self, *args, **kwargs):
        self.sent = []
        self.frame = cupy.zeros(SIDES, cupy.float32)
        super().__init__(*args, **kwargs)

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        self.sent.append(time.perf_counter())
        op_output.emit({INPUT: self.frame}, "out")


class Sink(Operator):
    def __init__(self, app, waits, *args, **kwargs):
        self.waits, self.came, self.last = waits, [], None
        super().__init__(app, *args, **kwargs)

    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        self.last = op_input.receive("in")
        if self.waits:
            cupy.cuda.Device().synchronize()
        self.came.append(time.perf_counter())


class Bench(Application):
    def __init__(self, model, allocator, what):
        super().__init__()
        self.model, self.allocator, self.what = model, allocator, what
        self.count = 500 if what == "latency" else 1800

    def compose(self):
        conditions = [CountCondition(self, self.count)]
        more = {}
        if self.what == "latency":
            conditions.append(PeriodicCondition(self, 1000000000 // HZ))
        if self.allocator == "rmm":
            pool = RMMAllocator(self, name="pool", device_memory_initial_size="256MB",
                                device_memory_max_size="1GB", host_memory_initial_size="64MB",
                                host_memory_max_size="256MB")
            more["cuda_stream_pool"] = CudaStreamPool(self, name="streams", dev_id=0,
                                                      stream_flags=0, stream_priority=0,
                                                      reserved_size=1, max_size=5)
        else:
            pool = UnboundedAllocator(self, name="pool")
        detect = InferenceOp(self, name="detect", backend="onnxrt", allocator=pool,
                             model_path_map={"face": self.model}, infer_on_cpu=False,
                             pre_processor_map={"face": [INPUT]}, inference_map={"face": OUTPUTS},
                             input_on_cuda=True, output_on_cuda=True, transmit_on_cuda=True,
                             **more)
        self.source = Source(self, *conditions, name="source")
        self.sink = Sink(self, self.what != "rate", name="sink")
        self.add_flow(self.source, detect, {("out", "receivers")})
        self.add_flow(detect, self.sink, {("transmitter", "in")})


def main():
    model, allocator, scheduler, what = sys.argv[1:]
    app = Bench(model, allocator, what)
    app.scheduler(GreedyScheduler(app, name="scheduler") if scheduler == "greedy" else
                  EventBasedScheduler(app, worker_thread_number=4, name="scheduler"))
    app.run()
    cupy.cuda.Device().synchronize()
    end, came, skip = time.perf_counter(), app.sink.came, app.count // 9
    if len(came) < app.count:
        sys.exit("only %d of %d frames came" % (len(came), app.count))
    if what == "latency":
        ms = [(b - a) * 1e3 for a, b in zip(app.source.sent, came)][skip:]
        print("%.3f %.3f" % (numpy.percentile(ms, 50), numpy.percentile(ms, 99)))
    else:
        print("%.1f" % ((app.count - 1 - skip) / (end - came[skip])))


if __name__ == "__main__":
    main()
