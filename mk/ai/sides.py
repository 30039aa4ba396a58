#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives the inputs and outputs of an ONNX model other sides, without the package onnx.

sides.py MODEL OUT "1,3,480,640" "1,1,120,160" ...: those of the first input, then of the outputs in
their order. A side is a number, or a name for any number. Inputs that are initializers too are
left out, so that an engine may take their values for constants.
"""

import sys

# Fields of ModelProto, GraphProto, ValueInfoProto, TypeProto, TypeProto.Tensor and TensorProto in
# onnx.proto (https://github.com/onnx/onnx, Apache-2.0).
GRAPH, INITIALIZER, INPUT, OUTPUT = 7, 5, 11, 12
NAME, TYPE, TENSOR, SHAPE, TENSOR_NAME = 1, 2, 1, 2, 8
BYTES = 2


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def encode(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(data):
    """Yields the number of each field of a message, what it holds, and its bytes as they are."""
    at = 0
    while at < len(data):
        start = at
        key, at = number(data, at)
        if key & 7 == BYTES:
            size, at = number(data, at)
            yield key >> 3, data[at : at + size], data[start : at + size]
            at += size
            continue
        if key & 7 == 0:
            _, at = number(data, at)
        else:
            at += 8 if key & 7 == 1 else 4
        yield key >> 3, None, data[start:at]


def field(key, data):
    return encode(key << 3 | BYTES) + encode(len(data)) + data


def one(data, key):
    return next(value for k, value, _ in fields(data) if k == key)


def replace(data, key, change):
    return b"".join(field(k, change(value)) if k == key else raw for k, value, raw in fields(data))


def shape(sides):
    dims = [encode(1 << 3) + encode(int(s)) if s.isdigit() else field(2, s.encode()) for s in sides]
    return b"".join(field(1, dim) for dim in dims)


def with_sides(value, sides):
    def of_tensor(tensor):
        return replace(tensor, SHAPE, lambda _: shape(sides))

    return replace(value, TYPE, lambda kind: replace(kind, TENSOR, of_tensor))


def change_graph(graph, sides):
    known = {one(value, TENSOR_NAME) for key, value, _ in fields(graph) if key == INITIALIZER}
    left = list(sides)
    out = []
    for key, value, raw in fields(graph):
        if key == INPUT and one(value, NAME) in known:
            continue
        if key in (INPUT, OUTPUT):
            raw = field(key, with_sides(value, left.pop(0)))
        out.append(raw)
    return b"".join(out)


def change(model, *sides):
    return replace(model, GRAPH, lambda graph: change_graph(graph, [s.split(",") for s in sides]))


def main():
    with open(sys.argv[1], "rb") as f:
        model = change(f.read(), *sys.argv[3:])
    with open(sys.argv[2], "wb") as f:
        f.write(model)


if __name__ == "__main__":
    main()
