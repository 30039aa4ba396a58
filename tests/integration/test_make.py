# SPDX-License-Identifier: Apache-2.0
"""What make reports: what is missing on a fresh machine, its targets, and how far it is."""
import glob
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

import cluster

APT_GET = r"""#!/bin/sh
case $1 in
update) echo "Hit:1 http://deb.debian.org" ;;
install)
	echo "Reading package lists..."
	for percent in 0.5 30.1 100.0; do echo "dlstatus:1:$percent:Retrieving file 1 of 2"; done
	for percent in 0.0 49.9 100.0; do echo "pmstatus:gcc:$percent:Unpacking gcc"; done
	[ -z "$APT_FAILS" ] || { echo "E: the disk is full" >&2; exit 100; }
	echo "$@" >"$APT_DID"
	;;
esac
"""


class Make(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="frag-make-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        self.env["APT_DID"] = self.path("did")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def tools(self, *names, **scripts):
        """A folder with links to these tools, and with these scripts, as the only one in PATH."""
        os.mkdir(self.path("bin"))
        for name in names:
            os.symlink(shutil.which(name), self.path("bin", name))
        for name, text in scripts.items():
            with open(self.path("bin", name.replace("_", "-")), "w", encoding="utf-8") as f:
                f.write(text)
                os.fchmod(f.fileno(), stat.S_IRWXU)
        self.env["PATH"] = self.path("bin")

    def run_here(self, *command):
        return subprocess.run(command, cwd=cluster.TOP, env=self.env, capture_output=True,
                              text=True, timeout=120)

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

    def test_what_is_linked_is_written_beside_its_place(self):
        """What runs may load it while it is linked again. (Examples have makefiles of their own.)"""
        r = self.run_here("make", "-n", "tests", self.build_folder())
        self.assertEqual(r.returncode, 0, r.stderr)
        linked = [line for line in r.stdout.replace("\\\n", "").splitlines()
                  if " -o " in line and not re.search(" -c | -ptx | -o /dev/null |/extensions/", line)]
        self.assertGreater(len(linked), 100)
        for line in linked:
            self.assertRegex(line, r" -o (\S+)\.new && mv -f \1\.new \1$")

    def test_help_lists_targets_that_exist(self):
        text = self.run_here("make", "help").stdout
        database = self.run_here("make", "-rpn", "help").stdout
        exist = {t for line in re.findall(r"^\.PHONY: (.*)$", database, re.M) for t in line.split()}
        listed = re.findall(r"\bmake (\w+)", text) + text.split("also: ")[1].split()
        self.assertLessEqual(set(listed), exist)
        self.assertLessEqual({"deps", "demo", "check", "test", "install", "uninstall", "clean"}, set(listed))
        with open(os.path.join(cluster.TOP, "docs", "TESTING.md"), encoding="utf-8") as f:
            documented = re.findall(r"^\| `make ([\w-]+)", f.read(), re.M)
        # Those like sim-faults belong to one that is listed.
        self.assertLessEqual({t if t in listed else t.split("-")[0] for t in documented},
                             set(listed))

    def test_test_is_check_and_takes_a_word(self):
        for target in ("check", "test"):
            r = self.run_here("make", "-n", target, "ONLY=queue")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("tests/run.py --build build --only queue", r.stdout)

    def test_clang_is_given_every_source_and_its_refusals_count(self):
        clang = self.path("clang")
        with open(clang, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\necho "$@" >>"$CLANG_DID"\ncase $* in *fuzz/mutate/graph.c*) exit 1 ;; esac\n')
            os.fchmod(f.fileno(), stat.S_IRWXU)
        self.env.update(PATH=self.folder + ":" + os.environ["PATH"], CLANG_DID=self.path("clang.did"))
        r = self.run_here("make", "-s", "lint-clang", self.build_folder())
        self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
        self.assertEqual(r.stdout.splitlines()[:-1],
                         ["clang: does not compile: tests/fuzz/graph.c tests/fuzz/mutate/graph.c"])
        with open(self.env["CLANG_DID"], encoding="utf-8") as f:
            commands = f.read().splitlines()
        self.assertRegex(r.stdout, r"\nclang: (%d) of \1 compilations, 1 failed\n" % len(commands))
        for command in commands:
            self.assertRegex(command, "(-Wall .*-Werror |/gen/).*-fsyntax-only$")
            self.assertNotRegex(command, " -o | -M|[.][oa] ")
        sources = {path for folder in ("driverd", "fragctl", "libfrag", "proto", "python", "runner",
                                       "tests", "workerd")
                   for path in glob.glob(folder + "/**/*.c", root_dir=cluster.TOP, recursive=True)}
        # A part of gpu_bench.sh, and a program that fails.
        own = {"tests/bench/holoscan/stand_ins.c", "tests/checkers/test_faulty.c"}
        self.assertEqual(sources - own - set(re.findall(r"(\S+\.c) ", "\n".join(commands))), set())

    def test_clang_checks_each_source_in_one_of_the_parts(self):
        commands = "".join("clang -c %d.c -o %d.o%s\n" % (n, n, " && rm x" * (n % 2)) for n in range(10))
        self.tools("python3", "sh", "env", clang='#!/bin/sh\necho $1\n')
        def check(*part):
            return subprocess.run([os.path.join(cluster.TOP, "mk", "clang.py"), *part],
                                  input="mkdir x\n" + commands, env=self.env, capture_output=True,
                                  text=True, timeout=60, check=True).stdout
        parts = [check("%d/3" % n) for n in (6, 7, 8)]
        self.assertEqual([p.splitlines()[-1] for p in parts],
                         ["clang: %d of 10 compilations, 0 failed" % n for n in (4, 3, 3)])
        self.assertEqual(sorted(re.findall(r"\d\.c", "".join(parts))), ["%d.c" % n for n in range(10)])

    def test_installing_shows_how_far_it_is(self):
        self.tools("sh", "grep", "mktemp", "rm", "env", "id", dpkg_query="#!/bin/sh\n", apt_get=APT_GET, sudo='#!/bin/sh\n"$@"\n')
        r = self.run_here("mk/deps.sh")
        self.assertEqual(r.returncode, 0, r.stderr)
        lines = r.stderr.splitlines()
        self.assertRegex(lines[0], r"^(sudo )?apt-get update$")
        self.assertRegex(lines[1], r"^(sudo )?apt-get install -y --no-install-recommends gcc ")
        self.assertEqual(lines[2:], ["downloading: 0 %", "downloading: 30 %", "downloading: 100 %", "installing: 0 %",
                                     "installing: 49 %", "installing: 100 %"])
        with open(self.path("did"), encoding="utf-8") as f:
            self.assertIn(" gcc g++ make ", f.read())

    def test_a_failure_to_install_shows_why(self):
        self.tools("sh", "grep", "mktemp", "rm", "env", "id", "tail", dpkg_query="#!/bin/sh\n", apt_get=APT_GET,
                   sudo='#!/bin/sh\n"$@"\n')
        self.env["APT_FAILS"] = "1"
        r = self.run_here("mk/deps.sh")
        self.assertEqual(r.returncode, 3)
        self.assertEqual(r.stderr.splitlines()[-2:], ["E: the disk is full", "make deps: apt-get install failed"])

    def test_who_may_not_install_is_given_the_command(self):
        self.tools("sh", "grep", dpkg_query="#!/bin/sh\n", apt_get=APT_GET, id="#!/bin/sh\necho 1000\n")
        r = self.run_here("mk/deps.sh")
        self.assertEqual(r.returncode, 3)
        self.assertIn("as root run: apt-get install --no-install-recommends gcc g++", r.stderr)

    def test_without_apt_get_the_packages_are_named(self):
        self.tools("sh", "grep", "id", dpkg_query="#!/bin/sh\n")
        r = self.run_here("mk/deps.sh")
        self.assertEqual(r.returncode, 3)
        self.assertRegex(r.stderr, "there is no apt-get here; install what Debian calls gcc g\\+\\+ ")

    def build(self, *arguments):
        objects = [self.path("build", "obj", "libfrag", "src", "base", name + ".o") for name in ("hist", "lock", "json")]
        self.env.update(MAKE="make", B=self.path("build"))
        return self.run_here("mk/build.sh", self.build_folder(), *arguments, *objects), objects

    def test_building_shows_how_far_it_is(self):
        r, objects = self.build()
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(r.stderr.splitlines(), ["building into " + self.path("build")] +
                         ["building: %d of 3 files" % n for n in range(4)])
        self.assertTrue(all(os.path.exists(o) for o in objects))
        r, _ = self.build()
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def test_an_error_of_the_compiler_is_shown_and_fails(self):
        r, _ = self.build("CFLAGS=-include /nonexistent/file.h")
        self.assertEqual(r.returncode, 2)
        self.assertIn("/nonexistent/file.h", r.stderr)
