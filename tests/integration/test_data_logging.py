# SPDX-License-Identifier: Apache-2.0
"""Data loggers in graphs: what they write."""
import ast
import csv
import json
import os
import re

import cluster

APP = """
frag: 1
application: app
data_loggers:
  %s
fragments:
  one:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 20}]}
      camera:
        type: ping_tensor_tx
        parameters: {rows: 2, columns: 3}
        conditions: [{type: count, count: 4}]
  two:
    operators:
      rx: {type: ping_rx}
      eye: {type: ping_tensor_rx}
flows:
  - one.tx -> two.rx
  - one.camera -> two.eye
"""


def read_npy(path):
    """(description, bytes) of a .npy file, read as its specification says."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = int.from_bytes(data[8:10], "little")
    assert (10 + length) % 64 == 0 and data[10 + length - 1:10 + length] == b"\n"
    return ast.literal_eval(data[10:10 + length].decode("ascii").strip()), data[10 + length:]


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Loggers(cluster.ClusterTest):
    def run_app(self, logger, *args, code=0, env=None):
        run = self.start("fragctl", "run", self.write("app.yaml", APP % logger), *args, env=env)
        self.assertEqual(run.wait(), code, run.stderr)
        return run

    def test_json_has_every_message(self):
        for kind in ("basic", "async"):
            self.run_app("file: {type: %s_json_logger, path: log.jsonl, log_tensor_data_content: %s}"
                         % (kind, str(kind == "basic").lower()))
            sent = lines_of(self.path("log.jsonl.one"))
            got = lines_of(self.path("log.jsonl.two"))
            for entries, io, number, tensor in ((sent, "output", "one.tx.out", "one.camera.out"),
                                                (got, "input", "two.rx.in", "two.eye.in")):
                self.assertEqual({e["io"] for e in entries}, {io})
                self.assertEqual([e["value"] for e in entries if e["id"] == number], list(range(1, 21)))
                self.assertEqual(
                    [e["tensors"]["tensor"] for e in entries if e["id"] == tensor],
                    [{"dtype": "uint8", "shape": [2, 3], "device": "cpu",
                      **({"data": [n] * 6} if kind == "basic" else {})} for n in range(1, 5)])
                self.assertEqual(sorted(e["number"] for e in entries), list(range(1, 25)))

    def test_csv_has_a_row_for_each_message(self):
        for kind in ("basic", "async"):
            self.run_app("file: {type: %s_csv_logger, path: data/log.csv, log_outputs: false, allowlist_patterns: [rx]}" % kind)
            with open(self.path("data/log.csv.two"), encoding="utf-8") as f:
                rows = list(csv.reader(f))
            self.assertEqual(rows[0], ["time_unix_ns", "id", "number", "value"])
            self.assertEqual([row[1:] for row in rows[1:]],
                             [["two.rx.in", str(n), str(n)] for n in range(1, 21)])
        # a folder for each run, columns of choice, and those that a message lacks
        self.run_app("file: {type: basic_csv_logger, path: data/log.csv, new_folder: true,\n"
                     "         columns: [io, value, 'a \"b\", c'], log_inputs: false}", "--workers", "2")
        folders = [name for name in os.listdir(self.path("data")) if re.fullmatch(r"\d{14}", name)]
        self.assertIn(len(folders), (1, 2))  # the hosts may begin in two seconds
        found = [os.path.join(f, "log.csv.one") for f in folders if os.path.exists(self.path("data/%s/log.csv.one" % f))]
        with open(self.path("data/" + found[0]), encoding="utf-8") as f:
            rows = list(csv.reader(f))
        self.assertEqual(rows[0], ["io", "value", 'a "b", c'])
        self.assertEqual(sorted(rows[1:], key=lambda row: row[1].zfill(2)),
                         [["output", "", ""]] * 4 + [["output", str(n), ""] for n in range(1, 21)])

    def test_two_hosts_write_two_files(self):
        self.run_app("file: {type: async_json_logger, path: log.jsonl}", "--workers", "2")
        for fragment, number in (("one", "one.tx.out"), ("two", "two.rx.in")):
            entries = lines_of(self.path("log.jsonl." + fragment))
            self.assertEqual([e["value"] for e in entries if e["id"] == number], list(range(1, 21)))

    def test_each_instance_of_a_subgraph_has_its_file(self):
        self.write("inner.yaml", """
            parameters: {name: {}}
            data_loggers:
              file: {type: async_json_logger, path: "${name}.jsonl", allowlist_patterns: [out]}
              off: {type: async_json_logger, path: off.jsonl, when: {with: more}}
            operators:
              tx: {type: ping_tx, conditions: [{type: count, count: 5}]}
              mid: {type: forward}
            flows: [tx -> mid.in]
            ports: {numbers: mid.out}
            """)
        path = self.write("app.yaml", """
            frag: 1
            application: app
            arguments: {with: {default: less}}
            subgraphs:
              inner: {from_file: inner.yaml}
              outer:
                operators: {in: {subgraph: inner, parameters: {name: log}}}
                ports: {numbers: in.numbers}
            operators:
              one: {subgraph: outer}
              two: {subgraph: inner, parameters: {name: log}}
              rx: {type: ping_rx}
            flows: [one.numbers -> rx, two.numbers -> rx]
            """)
        run = self.start("fragctl", "run", path)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(sorted(name for name in os.listdir(self.path(".")) if "json" in name),
                         ["log.jsonl.one_in", "log.jsonl.two"])
        for instance in ("one_in", "two"):
            entries = lines_of(self.path("log.jsonl." + instance))
            for port in ("_tx.out", "_mid.out"):
                self.assertEqual([e["value"] for e in entries if e["id"] == "app." + instance + port],
                                 [1, 2, 3, 4, 5])
            self.assertEqual(len(entries), 10)

    def test_tensors_are_numpy_files(self):
        self.run_app("npy: {type: async_npy_logger, folder: out, log_inputs: false}")
        files = sorted(os.listdir(self.path("out")))
        self.assertEqual(len(files), 4)
        for n, name in enumerate(files, 1):
            self.assertRegex(name, r"^one\.camera\.out\.tensor\.\d{8}\.npy$")
            self.assertEqual(read_npy(self.path("out/" + name)),
                             ({"descr": "|u1", "fortran_order": False, "shape": (2, 3)}, bytes([n] * 6)))

    def test_no_more_is_written_after_the_most_bytes(self):
        def written(logger, path):
            self.run_app("file: {%s, log_outputs: false, allowlist_patterns: [rx]}" % logger)
            with open(self.path(path), encoding="utf-8") as f:
                return f.readlines()

        head, row = len("number,value\n"), len("1,1\n")
        for most, rows in ((head, 0), (head + 1, 1), (head + 2 * row, 2), (head + 2 * row + 1, 3)):
            lines = written("type: basic_csv_logger, path: log.csv, columns: [number, value],\n"
                            "    max_bytes: %d" % most, "log.csv.two")
            self.assertEqual(len(lines), 1 + rows, most)
        for most, rows in ((1, 1), (10 ** 6, 20)):
            lines = written("type: basic_json_logger, path: log.json, max_bytes: %d" % most, "log.json.two")
            self.assertEqual(len(lines), rows, most)
        # of tensors the elements count, without the heads of their files
        for most, files in ((0, 4), (1, 1), (12, 2), (13, 3)):
            folder = "most%d" % most
            self.run_app("npy: {type: basic_npy_logger, folder: %s, log_inputs: false, max_bytes: %d}" % (folder, most))
            self.assertEqual(len(os.listdir(self.path(folder))), files, most)

    def test_the_folders_on_the_way_are_made(self):
        for logger, path in (("basic_json_logger, path: a/b/log", "a/b/log.two"),
                             ("async_csv_logger, path: a/c/d/log", "a/c/d/log.one"),
                             ("basic_npy_logger, folder: a/e/f", "a/e/f"),
                             ("basic_npy_logger, folder: a/g/", "a/g")):
            self.run_app("log: {type: %s}" % logger)
            self.assertTrue(os.path.exists(self.path(path)), path)

    def test_the_console_shows_what_the_patterns_let_through(self):
        run = self.run_app("console: {type: basic_console_logger, denylist_patterns: [\"^one\", eye]}")
        said = re.findall(r"data (two\.\S+): input: i64 (\d+)", run.stderr)
        self.assertEqual(said, [("two.rx.in", str(n)) for n in range(1, 21)])
        self.assertNotIn("one.", re.sub(r"op app/one\S*", "", run.stderr))

    def test_a_file_that_cannot_be_is_explained(self):
        self.write("file", "")
        for logger, sentence in (
                ("basic_json_logger, path: file/where/log", "cannot write %s: Not a directory; name another file"
                 % self.path("file/where/log.one")),
                ("basic_npy_logger, folder: file/where", "cannot make the folder %s: Not a directory; name another one"
                 % self.path("file/where")),
                ("basic_npy_logger, folder: file", "%s is no folder; name another one" % self.path("file"))):
            run = self.run_app("log: {type: %s}" % logger, code=1)
            self.assertIn("data logger log cannot start: " + sentence, run.stderr)

    def test_mistakes_are_refused_together(self):
        run = self.start("fragctl", "validate", self.write("app.yaml", APP % (
            "a: {type: basic_consol_logger}\n  b: {type: async_json_logger, queue_policy: rejct}\n"
            "  c: {type: basic_npy_logger, folder: x, max_queue_size: 3}")))
        self.assertEqual(run.wait(), 2)
        for text in ("5:3: one.a: unknown type \"basic_consol_logger\" of a data logger; did you mean \"basic_console_logger\"?",
                     "\"rejct\" is not a valid choice; did you mean \"reject\"?",
                     "6:3: one.b: parameter \"path\" (path) is required",
                     "one.c: unknown parameter \"max_queue_size\""):
            self.assertIn(text, run.stderr)

    def test_mistakes_in_subgraphs_are_refused_with_their_places(self):
        run = self.start("fragctl", "validate", self.write("app.yaml", """
frag: 1
application: app
subgraphs:
  s:
    data_loggers:
      a: {type: basic_json_loger, path: x}
      b: {path: x}
      c: {type: unbounded_allocator}
      d d: {type: basic_console_logger}
      e: {type: influx}
    operators: {tx: {type: ping_tx}}
    data_logers: {}
operators: {one: {subgraph: s}}
"""))
        self.assertEqual(run.wait(), 2)
        for text in ("7:7: app.one_a: unknown type \"basic_json_loger\" of a data logger; did you mean \"basic_json_logger\"?",
                     "8:7: app.one_b: a data logger has no type",
                     "9:7: app: one_c is no data logger: its type is unbounded_allocator",
                     "10:7: subgraphs.s: data logger \"d d\" is not a valid name",
                     "11:7: app.one_e: unknown type \"influx\" of a data logger; valid: basic_console_logger, "
                     "async_console_logger, basic_json_logger, async_json_logger, basic_csv_logger, async_csv_logger, basic_npy_logger, async_npy_logger; "
                     "or list the library that has it under extensions",
                     "unknown key \"data_logers\"; did you mean \"data_loggers\"?"):
            self.assertIn(text, run.stderr)
