# SPDX-License-Identifier: Apache-2.0
"""Neural networks: what the operator inference costs beside OpenVINO's own benchmark_app, and
whether examples/people keeps up with a camera. On two cores, also where there are more."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

from cluster import check_ended

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
AI = os.path.join(TOP, ".cache", "ai")
EXAMPLE = os.path.join(TOP, "examples", "people")
APP = """frag: 1
application: detect
operators:
  frames:
    type: ping_tensor_tx
    parameters: {rows: 300, columns: 300, channels: 3}
    conditions: [{type: count, count: %d}]
  detect:
    type: inference
    parameters:
      model_path_map: {person: %s}
      pre_processor_map: {person: [""]}
      inference_map: {person: ["detection_boxes:0", "detection_scores:0", "num_detections:0"]}
  results: {type: ping_tensor_rx}
flows:
  - frames.out -> detect.receivers
  - detect.transmitter -> results.in
"""
CORES = {0, 1}
FRAMES, PEOPLE_FRAMES, RATE_HZ = 300, 60, 30
PACED = (("{from: replayer.output, to: frames.in,", "{from: replayer.output, to: frames.in, capacity: 1, policy: pop,"),
         ('realtime: "${realtime}"', 'realtime: "${realtime}", frame_rate: %d' % RATE_HZ))


def run_app(bench, app, *args):
    """The summary of a run that ends by itself."""
    r = subprocess.run(
        [bench.path("bin", "fragctl"), "run", "--output", "json", app, *(("--", *args) if args else ())],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        check=False, env=dict(bench.env, FRAG_OPENVINO=os.path.join(AI, "openvino")),
        timeout=300,
        preexec_fn=lambda: os.sched_setaffinity(0, CORES & os.sched_getaffinity(0)))
    check_ended("a graph of models", r.returncode, r.stderr)
    return json.loads(r.stdout)


def processor_ms():
    """What the processes that have ended used of all cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)


def frame_ms(summary, frames):
    """From the first message to the last."""
    return (summary["duration_ns"] - summary["first_message_ns"] - summary["shutdown_ns"]) / frames / 1e6


def benchmark_app_ms(bench):
    """With the operator's settings."""
    model = os.path.join(AI, "models", "person-detection.xml")
    r = subprocess.run(
        [sys.executable, "-c", "from openvino.tools.benchmark.main import main; main()", "-m", model, "-d", "CPU",
         "-hint", "latency", "-infer_precision", "f32", "-api", "sync", "-niter", str(FRAMES)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=300,
        env=dict(bench.env, PYTHONPATH=AI + "-bench"),
        preexec_fn=lambda: os.sched_setaffinity(0, CORES & os.sched_getaffinity(0)))
    return 1000 / float(re.search(r"Throughput:\s+([\d.]+) FPS", r.stdout).group(1))


def dropped_percent(summary):
    """Of what came; everything that came was shown or is counted as dropped."""
    first = next(f for f in summary["flows"] if f["from"].endswith("replayer.output"))
    shown = next(f for f in summary["flows"] if f["from"].endswith("frames.out") and f["to"].endswith("viewer.receivers"))
    dropped = sum(first["dropped"].values())
    if (first["sent"], shown["delivered"]) != (first["delivered"] + dropped, first["delivered"]):
        raise RuntimeError("frames are not accounted for: %r, %r" % (first, shown))
    return 100 * dropped / first["sent"]


def run(bench):
    if not os.path.exists(os.path.join(AI, "complete")):
        bench.lack("inference: there is no engine (make deps-ai)")
        return
    compared = os.path.exists(os.path.join(AI + "-bench", "complete"))
    if not compared:
        bench.lack("inference: there is no benchmark_app to compare with (make deps-ai-bench)")
    floor = bench.row("inference.benchmark_app", "ms")
    operator = bench.row("inference.operator", "ms", floor=floor, target=lambda f: 1.1 * f)
    parts = bench.row("people.parts", "ms")
    frame = bench.row("people.frame", "ms", floor=parts)
    dropped = bench.row("people.dropped", "%")
    people = os.path.join(EXAMPLE, "single.yaml")
    with tempfile.TemporaryDirectory() as folder:
        app, paced = os.path.join(folder, "app.yaml"), os.path.join(folder, "paced.yaml")
        with open(app, "w", encoding="utf-8") as f:
            f.write(APP % (FRAMES, os.path.abspath(os.path.join(AI, "models", "person-detection.xml"))))
        with open(people, encoding="utf-8") as f:
            text = f.read()
        for old, new in PACED:
            if old not in text:
                raise RuntimeError("examples/people/single.yaml has no %s any more" % old)
            text = text.replace(old, new)
        with open(paced, "w", encoding="utf-8") as f:
            f.write(text)
        args = ("--data", os.path.abspath(os.path.join(TOP, "examples", "data")),
                "--models", os.path.abspath(os.path.join(AI, "models")),
                "--picture", os.path.join(folder, "picture.jpg"), "--repeat", "true")
        for _ in bench.rounds():
            if compared:
                floor.add(benchmark_app_ms(bench))
            operator.add(frame_ms(run_app(bench, app), FRAMES))
            start = processor_ms()
            run_app(bench, people, *args, "--realtime", "false", "--count", "1")
            before = processor_ms()
            frame.add(frame_ms(run_app(bench, people, *args, "--realtime", "false", "--count",
                                       str(PEOPLE_FRAMES)), PEOPLE_FRAMES))
            parts.add((processor_ms() - before - (before - start)) / (PEOPLE_FRAMES - 1))
            dropped.add(dropped_percent(run_app(bench, paced, *args, "--realtime", "true", "--count",
                                                str(PEOPLE_FRAMES))))
    if parts.median / len(CORES) < 1000 / RATE_HZ:
        dropped.target = 0
