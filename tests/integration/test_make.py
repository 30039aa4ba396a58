# SPDX-License-Identifier: Apache-2.0
"""What make reports on a fresh machine."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cluster

class Make(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="frag-make-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def tools(self, *names):
        """A folder with links to these tools, as the only one in PATH."""
        os.mkdir(self.path("bin"))
        for name in names:
            os.symlink(shutil.which(name), self.path("bin", name))
        self.env["PATH"] = self.path("bin")

    def run_here(self, *command):
        return subprocess.run(command, cwd=cluster.TOP, env=self.env, capture_output=True, text=True, timeout=120)

    def build_folder(self):
        return "B=" + self.path("build")

    def check_refuses(self, target, *names):
        r = self.run_here("make", self.build_folder(), "DESTDIR=" + self.path("installed"), *target)
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        self.assertEqual(set(re.findall(r"make \w+", r.stderr)) - {"make again"}, {"make deps"}, r.stderr)
        self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
        for name in names:
            self.assertIn(" %s" % name, r.stderr)
        self.assertFalse(os.path.exists(self.path("build")))
        self.assertFalse(os.path.exists(self.path("installed")))

    def test_without_tools_make_names_the_command_that_installs_them(self):
        self.tools("make", "git", "find", "sed", "sh")
        for target in ([], ["install"], ["tests"]):
            self.check_refuses(target, "gcc", "pkg-config", "protoc-c", "libuv", "ucx")

    def test_without_a_library_make_names_the_command_that_installs_it(self):
        self.env["PKG_CONFIG_LIBDIR"] = self.path("none")
        for target in ([], ["install"], ["tests", "CC=cc"]):
            self.check_refuses(target, "yaml-0.1", "libavcodec")

    def test_what_is_left_out_is_not_missing(self):
        r = self.run_here("make", "-n", "WITHOUT=ucx video", self.build_folder())
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("ucx.so is not built: WITHOUT names it", r.stdout)
        self.assertIn("libvideo.so is not built: WITHOUT names it", r.stdout)


if __name__ == "__main__":
    cluster.main()
