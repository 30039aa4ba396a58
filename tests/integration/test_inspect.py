# SPDX-License-Identifier: Apache-2.0
"""fragctl inspect: types of operators, conditions, resources and values, and libraries."""
import hashlib
import json
import os
import subprocess

import cluster
from test_fragctl import Fragctl


class Inspect(Fragctl):
    def inspect(self, *args):
        i = self.fragctl("inspect", *args)
        return i.wait(), i.stdout, i.stderr

    def test_lists_what_there_is(self):
        code, out, err = self.inspect()
        self.assertEqual((code, err), (0, ""))
        for word in ("operators", "  ping_tx ", "conditions", "  periodic ", "resources", "  block_memory_pool "):
            self.assertIn(word, out)
        self.assertRegex(out, r"(?m)^value types$")
        self.assertRegex(out, r"(?m)^  f64 +IEEE 754 binary64$")
        self.assertNotIn("scale", out)

    def test_types_of_values(self):
        code, out, err = self.inspect("libtruth.so")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^pose \(value type of \S+/libtruth.so, plugin truth 1.0.0\)\n"
                              r"  16 bytes, may cross processes\n\nfields\n  name  type      offset\n"
                              r"  x     f64       0\n  y     f64       8$")
        self.assertRegex(out, r"(?m)^secret .*\n  16 bytes, cannot leave its process$")
        code, out, err = self.inspect("--output", "json", "libtruth.so", "pose")
        [pose] = json.loads(out)["types"]
        self.assertEqual((pose["kind"], pose["size"], pose["crosses_processes"]), ("value type", 16, True))
        self.assertEqual(pose["fields"], [{"name": n, "type": "f64", "count": 1, "offset": o}
                                          for n, o in (("x", 0), ("y", 8))])

    def test_a_library(self):
        code, out, err = self.inspect("libgood.so")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^scale \(operator of \S+/libgood.so, plugin good 1.2.3\)$")
        self.assertRegex(out, r"(?m)^  factor +f64 +2 +-100 to 100 +dynamic +Factor$")
        self.assertRegex(out, r"(?m)^  in +in +f64$")
        self.assertIn("line (composer of", out)
        self.assertRegex(out, r"(?m)^budget \(condition of \S+/libgood.so, plugin good 1.2.3\)$")
        self.assertRegex(out, r"(?m)^  ticks +i64 +- +1 to 1000 +required +Ticks that may be used up$")
        self.assertNotIn("ping_tx", out)

    def test_json(self):
        code, out, err = self.inspect("--output", "json", "libgood.so", "scale", "CountCondition")
        self.assertEqual(code, 0)
        types = {t["name"]: t for t in json.loads(out)["types"]}
        self.assertEqual(set(types), {"scale", "count"})
        self.assertEqual(types["count"]["kind"], "condition")
        self.assertEqual([p["name"] for p in types["scale"]["ports"]], ["in", "out"])
        mode = [p for p in types["scale"]["parameters"] if p["name"] == "mode"][0]
        self.assertEqual((mode["type"], mode["default"], mode["choices"]), ("string", "fast", ["fast", "slow"]))

    def test_layout_and_unit_of_tensors(self):
        code, out, err = self.inspect("crop", "detection_postprocessor")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^  boxes +in +tensor +optional .*\n"
                              r" +boxes: f32\[n\]\[4\], x0 y0 x1 y1 from 0 to 1; box_converter converts others$")
        self.assertRegex(out, r"(?m)^ +scores: f32\[n\], from 0 to 1\n +labels: i32")
        code, out, err = self.inspect("--output", "json", "crop", "forward")
        crop, forward = json.loads(out)["types"]
        boxes = {"kind": "boxes", "layout": "f32[n][4], x0 y0 x1 y1 from 0 to 1", "converter": "box_converter"}
        self.assertEqual([p["tensors"] for p in crop["ports"]], [[], [boxes], [boxes]])
        self.assertEqual(forward["ports"][0]["tensors"], [])

    def test_the_sha256_of_a_library(self):
        path = os.path.realpath(os.path.join(cluster.TEST_PLUGINS, "libgood.so"))
        with open(path, "rb") as f:
            sha256 = hashlib.sha256(f.read()).hexdigest()
        code, out, err = self.inspect("libgood.so")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("%s (library, plugin good 1.2.3)\n  sha256 %s\n\n" % (path, sha256), out)
        code, out, err = self.inspect("--output", "json", "libgood.so")
        self.assertEqual(json.loads(out)["libraries"],
                         [{"path": path, "plugin": "good", "version": "1.2.3", "sha256": sha256}])

    def refuse_what_is_for_others(self):
        """A library for another machine, and one for another C library."""
        os.mkdir(self.path("musl"))
        build = lambda name, *words: subprocess.run(
            ["gcc", "-shared", "-nostdlib", "-fPIC", "-o", self.path(name), "-x", "c", "-", *words],
            check=True, input="int one(void) { return 1; }", text=True)
        build("musl/libc.musl-x86_64.so.1", "-Wl,-soname,libc.musl-x86_64.so.1")
        build("libmusl.so", "-x", "none", "-Wl,--no-as-needed", self.path("musl/libc.musl-x86_64.so.1"))
        code, out, err = self.inspect("./libmusl.so")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("was built with the C library musl, and this program with glibc", err)
        with open(self.path("libmusl.so"), "rb") as f:
            content = bytearray(f.read())
        for at, values, says in ((18, (183, 62), r"64-bit (aarch64|x86_64), and this is 64-bit (x86_64|aarch64)"),
                                 (4, (1,), r"32-bit (\w+), and this is 64-bit \1"),
                                 (5, (2,), r"64-bit big-endian .*, and this is 64-bit (x86_64|aarch64)")):
            other = bytearray(content)
            other[at] = next(v for v in values if v != other[at])
            with open(self.path("libother.so"), "wb") as f:
                f.write(other)
            code, out, err = self.inspect("./libother.so")
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, "is for %s; build it for this machine" % says)

    def test_unknown(self):
        self.assertEqual(self.inspect("pingtx"), (2, "", 'fragctl: unknown type "pingtx"; did you mean "ping_tx"?'))
        code, out, err = self.inspect("libmajor.so")
        self.assertEqual(code, 2)
        self.assertIn("plugin ABI 9", err)
        self.assertEqual(self.inspect("libnone.so")[0], 3)
        with open(self.path("libcut.so"), "wb") as f:
            f.write(b"\x7fELF")
        code, out, err = self.inspect("./libcut.so")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("is cut short", err)
        self.refuse_what_is_for_others()
        subprocess.run(["gcc", "-shared", "-o", self.path("libhalf.so"), "-x", "c", "-fPIC", "-"], check=True,
                       input="int half(void); int (*use)(void) = half;", text=True)
        code, out, err = self.inspect("./libhalf.so")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("undefined symbol: half; link it with the library that defines this symbol", err)

    def test_inspect_finds_types_of_library_folders(self):
        folder, name = cluster.TEST_PLUGINS, "dial"
        self.env.pop("FRAG_LIBRARY_PATH", None)
        p = self.fragctl("inspect", name)
        self.assertEqual((p.wait(), p.stdout), (2, ""))
        self.assertIn('fragctl: unknown type "dial"', p.stderr)
        p = self.fragctl("inspect", name, "--library-path", folder)
        self.assertEqual((p.wait(), p.stderr), (0, ""))
        self.env["FRAG_LIBRARY_PATH"] = folder
        p = self.fragctl("inspect", name, "-o", "json")
        self.assertEqual((p.wait(), json.loads(p.stdout)["types"][0]["name"]), (0, name))
