#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes stand-ins for the networks of HoloHub's applications, as ONNX, without any package.

models.py FOLDER: each takes and makes what the network does that it stands for, and is a few
operations on colours. Fields and types have the numbers of onnx.proto
(https://github.com/onnx/onnx, Apache-2.0).
"""

import pathlib
import struct
import sys

F32 = 1


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def varint(key, value):
    return number(key << 3) + number(value & (1 << 64) - 1)


def field(key, data):
    data = data.encode() if isinstance(data, str) else data
    return number(key << 3 | 2) + number(len(data)) + data


def attribute(name, value):
    if isinstance(value, int):
        return field(5, field(1, name) + varint(3, value) + varint(20, 2))
    return field(5, field(1, name) + b"".join(varint(8, v) for v in value) + varint(20, 7))


def node(op, inputs, outputs, **attributes):
    named = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    return field(
        1, named + field(4, op) + b"".join(attribute(n, v) for n, v in attributes.items())
    )


def constant(name, shape, values):
    numbers = struct.pack(f"<{len(values)}f", *values)
    sides = b"".join(varint(1, s) for s in shape)
    return field(5, sides + varint(2, F32) + field(8, name) + field(9, numbers))


def port(key, name, shape):
    sides = b"".join(field(1, varint(1, s)) for s in shape)
    return field(key, field(1, name) + field(2, field(1, varint(1, F32) + field(2, sides))))


def write(path, inputs, outputs, *parts):
    ports = [port(11, n, s) for n, s in inputs.items()] + [
        port(12, n, s) for n, s in outputs.items()
    ]
    graph = b"".join(parts) + field(2, "stand_in") + b"".join(ports)
    path.write_bytes(varint(1, 7) + field(7, graph) + field(8, varint(2, 12)))


def segmentation(path):
    """Two classes, from pictures with the channels last: what is bright, and the rest."""
    write(
        path,
        {"INPUT__0": [1, 256, 256, 3]},
        {"OUTPUT__0": [1, 2, 256, 256]},
        constant("weights", [2, 3, 1, 1], [0, 0, 0, 8, 8, 8]),
        constant("bias", [2], [0, -14]),
        node("Transpose", ["INPUT__0"], ["planes"], perm=[0, 3, 1, 2]),
        node("Conv", ["planes", "weights", "bias"], ["OUTPUT__0"]),
    )


def chambers(path):
    """The background and five places, each of which is where one colour is strongest."""
    colours = [0, 1, -1, -1, 1, -1, 0, -1, 1, -1, 1, 1, 0, -1, -1, 1, 1, -1]
    write(
        path,
        {"input": [1, 320, 320, 3]},
        {"output": [1, 320, 320, 6]},
        constant("colours", [3, 6], colours),
        node("MatMul", ["input", "colours"], ["output"]),
    )


def classes(path, rows, columns, count):
    """Numbers for a whole picture, from its mean colour."""
    write(
        path,
        {"input": [1, rows, columns, 3]},
        {"output": [1, count]},
        constant("colours", [3, count], [(i % 5 - 2) / 2 for i in range(3 * count)]),
        node("ReduceMean", ["input"], ["mean"], axes=[1, 2], keepdims=0),
        node("MatMul", ["mean", "colours"], ["output"]),
    )


def tools(path):
    """Seven tools: where a colour is strongest, on average over the frames before.

    The average is the state, which goes out with each frame and comes in with the next one.
    """
    state, tool = [1, 60, 107, 7], range(7)
    colours = [c for k in range(3) for c in (1 if (t + 1) >> k & 1 else -1 for t in tool)]
    write(
        path,
        {"data_ph:0": [1, 480, 854, 3], "cellstate_ph:0": state, "hiddenstate_ph:0": state},
        {
            "Model/net_states:0": state,
            "Model/net_hidden:0": state,
            "probs:0": [1, 7],
            "Localize/scaled_coords:0": [1, 7, 2],
            "Localize_1/binary_masks:0": [1, 7, 60, 107],
        },
        constant("colours", [3, 7], colours),
        constant("new", [1], [0.2 / 255]),
        constant("old", [1], [0.8]),
        constant("sharp", [1], [16]),
        constant("across", [1, 1, 107, 1], [(x + 0.5) / 107 for x in range(107)]),
        constant("down", [1, 60, 1, 1], [(y + 0.5) / 60 for y in range(60)]),
        node("Transpose", ["data_ph:0"], ["planes"], perm=[0, 3, 1, 2]),
        node(
            "AveragePool",
            ["planes"],
            ["small"],
            kernel_shape=[8, 8],
            strides=[8, 8],
            ceil_mode=1,
        ),
        node("Transpose", ["small"], ["pixels"], perm=[0, 2, 3, 1]),
        node("MatMul", ["pixels", "colours"], ["seen"]),
        node("Mul", ["seen", "new"], ["now"]),
        node("Mul", ["cellstate_ph:0", "old"], ["before"]),
        node("Add", ["now", "before"], ["Model/net_states:0"]),
        node("Tanh", ["Model/net_states:0"], ["Model/net_hidden:0"]),
        node("Add", ["Model/net_states:0", "hiddenstate_ph:0"], ["both"]),
        node("Mul", ["both", "sharp"], ["sharper"]),
        node("Exp", ["sharper"], ["weights"]),
        node("ReduceSum", ["weights"], ["all"], axes=[1, 2], keepdims=0),
        node("Mul", ["weights", "across"], ["weights_across"]),
        node("ReduceSum", ["weights_across"], ["sum_across"], axes=[1, 2], keepdims=0),
        node("Div", ["sum_across", "all"], ["x"]),
        node("Mul", ["weights", "down"], ["weights_down"]),
        node("ReduceSum", ["weights_down"], ["sum_down"], axes=[1, 2], keepdims=0),
        node("Div", ["sum_down", "all"], ["y"]),
        node("Unsqueeze", ["x"], ["xs"], axes=[2]),
        node("Unsqueeze", ["y"], ["ys"], axes=[2]),
        node("Concat", ["xs", "ys"], ["Localize/scaled_coords:0"], axis=2),
        node("ReduceMax", ["both"], ["most"], axes=[1, 2], keepdims=0),
        node("Sigmoid", ["most"], ["probs:0"]),
        node("Transpose", ["both"], ["Localize_1/binary_masks:0"], perm=[0, 3, 1, 2]),
    )


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: models.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    segmentation(folder / "ultrasound_segmentation.onnx")
    chambers(folder / "plax_chamber.onnx")
    classes(folder / "aortic_stenosis.onnx", 300, 300, 2)
    classes(folder / "bmode_perspective.onnx", 240, 320, 18)
    tools(folder / "tool_tracking.onnx")


if __name__ == "__main__":
    main()
