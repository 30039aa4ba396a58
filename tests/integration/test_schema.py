# SPDX-License-Identifier: Apache-2.0
"""The schema of graphs that fragctl prints for editors."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

import cluster
import test_mistakes

# Errors about what stands elsewhere, which no schema can know.
ELSEWHERE = re.compile(
    r"unknown (operator|fragment|argument|condition type|resource type|operator type|composer)|no output|it begins at an input"
    r"|names nothing|there is no resource|from_config: config has|when: argument|default .* is not one of|two conditions are called"
    r"|is not a valid end of a flow|is there already|has no type, and no composer|lease is neither|a list is not a valid integer|no flow leads there"
    r"|has no operators")


# A parameter of each kind, what it takes and what it does not; the bounds and what is beside them.
KINDS = (
    ("operator", "crop", "square", (True, False, "yes", "OFF", 0, 1), ("maybe", 2, 1.5, [True], None)),
    ("operator", "crop", "width", (1, 8192, "12", "+3", "0x10"), (0, 8193, 1.5, "ten", True, [1], None)),
    ("operator", "box_converter", "in_width", (1, 0.5, -3, "1e-3"), ("wide", True, [1], None)),
    ("operator", "box_converter", "in_layout", ("xyxy", "cxcywh"), ("xyxx", 1, ["xyxy"], None)),
    ("operator", "box_converter", "in_tensor_name", ("boxes", "", 1, True), (["boxes"], {"a": "boxes"}, None)),
    ("operator", "inference", "gpu_memory", (0, 5, "2 GiB", "1.5k", "3"), (-1, 1.5, "two", "2 XB", True, [1])),
    ("operator", "detection_postprocessor", "labels", ([], ["a"], None), ("a", 1, {"a": 1}, True)),
    ("operator", "test_source", "files", ({}, {"a": "b"}, None), ("a", 1, ["a"], True)),
    ("operator", "crop", "regions", ([], {}, "a", 1, True, None), ()),
    ("operator", "video_recorder", "flush", ("1ms", "2 s", "30hz", 1000000, 3600000000000),
     (999999, 3600000000001, "1 day", "soon", True, [1])),
    ("operator", "box_converter", "pool", (), ("pool", 1, True, [1], None)),
    ("condition", "periodic", "recess_period", (5, "5ms"), ("5 days", True, [5])),
    ("condition", "periodic", "policy", ("min_time_between_ticks",), ("min_time", 1)),
    ("resource", "block_memory_pool", "storage_type", (0, 2), (-1, 3)),
)
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def has_type(name, value):
    if name in ("integer", "number"):
        kinds = int if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def takes(schema, rule, value):
    """Whether a value is as a rule of the schema says, of the words that this schema uses."""
    if "$ref" in rule:
        return takes(schema, schema["$defs"][rule["$ref"].rpartition("/")[2]], value)
    if "anyOf" in rule:
        return any(takes(schema, one, value) for one in rule["anyOf"])
    if "enum" in rule or "const" in rule:  # of Python, True is 1
        return repr(value) in map(repr, rule.get("enum", [rule.get("const")]))
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if not any(has_type(one, value) for one in types):
        return False
    if "pattern" in rule:
        return re.search(rule["pattern"], value) is not None
    if "required" in rule:
        return all(key in value for key in rule["required"]) and len(value) <= rule["maxProperties"]
    if types[0] in ("integer", "number"):
        return rule.get("minimum", value) <= value <= rule.get("maximum", value)
    return True


class Schema(cluster.ClusterTest):
    def schema(self, *libraries):
        p = self.start("fragctl", "schema", *libraries)
        self.assertEqual((p.wait(), p.stderr), (0, ""))
        return json.loads(p.stdout)

    def types(self, schema, kind):
        return {one["if"]["properties"]["type"]["const"]: one["then"]["properties"]
                for one in schema["$defs"][kind + "_types"]["allOf"]}

    def test_types_and_parameters(self):
        schema = self.schema()
        operators = self.types(schema, "operator")
        self.assertIn("ping_tx", operators)
        self.assertEqual(operators["ping_tx"]["type"]["description"], "Sends the numbers 1, 2, 3 ...")
        self.assertFalse(operators["ping_tx"]["parameters"]["additionalProperties"])
        offered = schema["$defs"]["operator_types"]["properties"]["type"]["anyOf"]
        self.assertEqual((sorted(offered[0]["enum"]), offered[1]), (sorted(operators), {"type": "string"}))
        self.assertIn("recess_period", self.types(schema, "condition")["periodic"])
        self.assertIn("num_blocks", self.types(schema, "resource")["block_memory_pool"])
        for kind in ("condition", "resource"):
            self.assertFalse(set(self.types(schema, kind)) & {"ping_tx"})

    def test_what_a_type_requires(self):
        """As inspect says, of conditions and resources; the schema offers a part of config beside."""
        schema, p = self.schema(), self.start("fragctl", "inspect", "--output", "json")
        self.assertEqual(p.wait(), 0)
        wanted, found = {}, {}
        for one in json.loads(p.stdout)["types"]:
            if one["kind"] in ("condition", "resource"):
                wanted[one["name"]] = [own["name"] for own in one["parameters"] if own["required"]]
        for kind in ("condition", "resource"):
            for one in schema["$defs"][kind + "_types"]["allOf"]:
                config, own = (choice["required"] for choice in one["then"]["anyOf"])
                self.assertEqual(config, ["from_config"])
                found[one["if"]["properties"]["type"]["const"]] = own
        self.assertEqual(wanted["block_memory_pool"], ["block_size", "num_blocks"])
        self.assertEqual(found, wanted)

    def test_a_parameter_of_each_kind(self):
        """All take an argument, and a part of config, which stands alone."""
        schema = self.schema()
        for kind, name, parameter, good, bad in KINDS:
            found = self.types(schema, kind)[name]
            rule = (found["parameters"]["properties"] if kind == "operator" else found)[parameter]
            for value in (*good, "$width", "${width}", "a ${width} b", {"from_config": "a.b"}):
                self.assertTrue(takes(schema, rule, value), (name, parameter, value))
            maps = () if {} in good else ({"from_config": "a", "more": 1}, {"other": 1}, {})
            for value in (*bad, *maps):
                self.assertFalse(takes(schema, rule, value), (name, parameter, value))

    def test_a_library_adds_its_types(self):
        library = os.path.join(cluster.TEST_PLUGINS, "libtruth.so")
        own, more = self.types(self.schema(), "operator"), self.types(self.schema(library), "operator")
        self.assertNotIn("truth_tx", own)
        self.assertIn("file", more["truth_tx"]["parameters"]["properties"])
        self.assertIn("ping_tx", more)

    def test_what_is_no_library(self):
        for name, code, sentence in (("ping_tx", 2, '"ping_tx" is no library'), ("./libno.so", 3, "libno.so")):
            p = self.start("fragctl", "schema", name)
            self.assertEqual((p.wait(), p.stdout), (code, ""))
            self.assertIn(sentence, p.stderr)


@unittest.skipUnless(os.environ.get("FRAG_CHECK_SCHEMA"), "make editor runs it, with check-jsonschema")
class Judged(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        p = self.start("fragctl", "schema")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.schema = self.write("schema.json", p.stdout)

    def check(self, *args):
        """The files that are refused, or that are no YAML."""
        env = dict(os.environ, PYTHONPATH=os.environ["FRAG_CHECK_SCHEMA"])
        r = subprocess.run([sys.executable, "-m", "check_jsonschema", "-o", "json", *args], env=env, capture_output=True,
                           text=True, timeout=300)
        self.assertIn(r.returncode, (0, 1), r.stderr)
        told = json.loads(r.stdout)
        return {e["filename"] for e in told.get("errors", []) + told.get("parse_errors", [])}

    def test_it_is_a_schema(self):
        self.assertEqual(self.check("--check-metaschema", self.schema), set())

    def test_examples_are_taken(self):
        graphs = []
        for pattern in ("examples/**/*.yaml", "tests/data/*.yaml"):
            for path in glob.glob(os.path.join(cluster.TOP, pattern), recursive=True):
                with open(path, encoding="utf-8") as f:
                    if re.search(r"(?m)^frag:", f.read()):
                        graphs.append(path)
        self.assertGreater(len(graphs), 40)
        for path in glob.glob(os.path.join(cluster.TOP, "docs", "**", "*.md"), recursive=True):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for block in re.findall(r"(?ms)^```yaml[^\n]*\n((?:#[^\n]*\n)*frag: 1\n.*?)^```$", text):
                name = "%s-%d.yaml" % (os.path.basename(path), len(graphs))
                graphs.append(self.write(name, block))
        self.assertGreater(len(graphs), 80)
        p = self.start("fragctl", "new", "blur")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.check("--schemafile", self.schema, self.path("blur/app.yaml"), *graphs), set())

    def test_mistakes_are_seen(self):
        """All but those about names of other places, and no graph without one."""
        files = {}
        for old, new, error in test_mistakes.MISTAKES:
            text = test_mistakes.GRAPH.replace(old, new, 1)
            files[self.write("%d.yaml" % len(files), text)] = (new, error)
        right = self.write("right.yaml", test_mistakes.GRAPH)
        refused = self.check("--schemafile", self.schema, right, *files)
        self.assertNotIn(right, refused)
        self.assertEqual([(new, error) for path, (new, error) in files.items()
                          if path not in refused and not ELSEWHERE.search(str(error))], [])
        self.assertGreaterEqual(len(refused), 73)


if __name__ == "__main__":
    unittest.main()
