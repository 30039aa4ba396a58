#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The node tests of the package onnx, by the operator inference and by onnxruntime.

usage: node_tests.py RUNNER BACKEND ENGINE [--all]

BACKEND is openvino or onnxruntime, and ENGINE the folder of its library.

Each test is a model of one operation. What the operator inference makes of it must equal what
onnxruntime makes of it, or the operator must have said why not: before the run with the name of a
tensor or the operations that the engine lacks, or with the engine's own failure. Without --all the
first test of each operation is tried. Prints a line for each test that does not agree, and fails
when a result differs other than it is known of the engine, or when a sentence names nothing.
"""
import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

warnings.filterwarnings("ignore")
CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # of DLPack, by numpy's kinds
REASONS = (
    r'the (in|out)put "[^"]*" of .* (has \d+ dimensions|holds \S+),',
    r"uses operations that (OpenVINO|ONNX Runtime) does not have: ",
    r'the (in|out)put "[^"]*" of .* is no tensor but a sequence, a map or an optional;',
    r"(OpenVINO|ONNX Runtime) cannot compile .*: .{10}",
    r"is not a model that (OpenVINO|ONNX Runtime) reads: .{10}",
    r"the model failed: .{10}",
    # the engine drops inputs that nothing uses
    r"pre_processor_map gives \d+ tensors to model m, which takes \d+: \"",
)
# Where OpenVINO 2026.4.1 by itself, called from Python, differs from onnxruntime.
KNOWN = {
    "test_attention_23_boolmask_fullymasked_row_nan_robustness_expanded": "NaN for a row that is masked",
    "test_dynamicquantizelinear": "a half is rounded down, 25 instead of 26",
    "test_tile": "memory that was not written",
}
TOLERANCE = {"float16": 1e-2}


def dump(arrays):
    data = b""
    for a in arrays:
        code, bits = CODES[a.dtype.kind], a.dtype.itemsize * 8
        data += struct.pack("=3i%dq" % a.ndim, code, bits, a.ndim, *a.shape) + a.tobytes()
    return data


def load(data):
    arrays, at = [], 0
    kinds = {v: k for k, v in CODES.items()}
    while at < len(data):
        code, bits, ndim = struct.unpack_from("=3i", data, at)
        shape = struct.unpack_from("=%dq" % ndim, data, at + 12)
        at += 12 + 8 * ndim
        if code == 4:
            dtype = numpy.dtype("V2")  # bf16
        else:
            dtype = numpy.dtype("bool" if code == 6 else kinds[code] + str(bits // 8))
        count = int(numpy.prod(shape, dtype=numpy.int64))
        arrays.append(numpy.frombuffer(data, dtype, count, at).reshape(shape))
        at += count * dtype.itemsize
    return arrays


def judge(model, inputs):
    """What onnxruntime makes of it; None: it cannot, or not of numbers."""
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        names = [i.name for i in session.get_inputs()]
        expected = session.run(None, dict(zip(names, inputs)))
    except Exception:  # pylint: disable=broad-except
        return None
    return expected if all(isinstance(e, numpy.ndarray) for e in expected) else None


def same(got, expected):
    if len(got) != len(expected):
        return False
    for g, e in zip(got, expected):
        if g.shape != e.shape or g.dtype != e.dtype:
            return False
        tolerance = TOLERANCE.get(str(e.dtype), 1e-3)
        if not numpy.allclose(g, e, rtol=tolerance, atol=tolerance, equal_nan=True):
            return False
    return True


def try_one(runner, backend, env, folder, case):
    """Returns how a test ended, and the sentence."""
    inputs, _ = case.data_sets[0]
    if not all(isinstance(i, numpy.ndarray) and i.dtype.kind in CODES for i in inputs):
        return "left out", "an input is no tensor of numbers"
    is_given = len(inputs) == len(case.model.graph.input) and all(i.ndim <= 8 for i in inputs)
    if not inputs or not is_given:
        return "left out", "an input is optional"
    expected = judge(case.model, inputs)
    model, given, made = (os.path.join(folder, n) for n in ("m.onnx", "in", "out"))
    onnx.save(case.model, model)
    with open(given, "wb") as f:
        f.write(dump([numpy.ascontiguousarray(i) if i.ndim else i for i in inputs]))
    count = len(case.model.graph.output)
    done = subprocess.run(
        [runner, model, str(count), given, made, backend],
        env=env, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    said = done.stderr.strip().split("\n")[-1]
    if done.returncode == 0:
        if expected is None:
            return "unjudged", "onnxruntime cannot run it"
        with open(made, "rb") as f:
            got = load(f.read())
        if same(got, expected):
            return "agrees", ""
        if case.name in KNOWN:
            return "known", KNOWN[case.name]
        return "differs", "%s instead of %s" % tuple(
            [(a.dtype, a.shape) for a in arrays] for arrays in (got, expected))
    if done.returncode in (1, 2) and any(re.search(r, said) for r in REASONS):
        return "refused" if done.returncode == 2 else "failed", said
    return "unexplained", "%d: %s" % (done.returncode, said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("backend", choices=("openvino", "onnxruntime"))
    parser.add_argument("engine")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    env = {**os.environ, "FRAG_" + args.backend.upper(): args.engine}
    counts, tried = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for case in sorted(collect_testcases(None), key=lambda c: c.name):
            operation = case.model.graph.node[0].op_type if case.model is not None else ""
            if case.kind != "node" or (not args.all and operation in tried):
                continue
            tried.add(operation)
            try:
                result, said = try_one(args.runner, args.backend, env, folder, case)
            except subprocess.TimeoutExpired:
                result, said = "unexplained", "it did not end"
            counts[result] = counts.get(result, 0) + 1
            if result != "agrees":
                print("%-11s %s: %s" % (result, case.name, said), flush=True)
    ends = ", ".join("%d %s" % (n, r) for r, n in sorted(counts.items()))
    print("node tests by %s: %s" % (args.backend, ends))
    sys.exit(1 if counts.get("differs") or counts.get("unexplained") else 0)


if __name__ == "__main__":
    main()
