#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bad_models.py FOLDER: writes networks for networks_check.sh, beside those of examples/holohub."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "holohub"))
import models  # noqa: E402 pylint: disable=wrong-import-position

INPUT, OUTPUT = {"x": [1, 256, 256, 3]}, {"y": [1, 2, 256, 256]}


def main():
    folder = pathlib.Path(sys.argv[1])
    models.write(folder / "unknown.onnx", INPUT, OUTPUT, models.node("Frobnicate", ["x"], ["y"]))
    models.write(
        folder / "nan.onnx",
        INPUT,
        OUTPUT,
        models.constant("weights", [2, 3, 1, 1], [0] * 6),
        models.constant("zero", [1], [0]),
        models.node("Transpose", ["x"], ["planes"], perm=[0, 3, 1, 2]),
        models.node("Conv", ["planes", "weights"], ["nothing"]),
        models.node("Div", ["nothing", "zero"], ["y"]),
    )


main()
