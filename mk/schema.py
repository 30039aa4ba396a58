# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of graphs, docs/graph.schema.json: the tables of keys that the parser reads
(libfrag/src/text) as what editors complete and check.

`fragctl schema` prints it with the types of operators, conditions and resources that are installed.
It refuses nothing that the parser takes; what only the parser can know, it lets pass.
"""
import glob
import json
import os
import re

import graph_index

TEXT = os.path.join(graph_index.TOP, "libfrag", "src", "text")
ROW = re.compile(r'\{\s*"(\w+)"(.*?)\}(?=\s*,|\s*$|\s*/)', re.S)
WORDS = re.compile(r"const char \*const (\w+)\[\] = \{(.*?)\};", re.S)
# What a value may be that an argument stands for.
ARGUMENT = {"type": "string", "pattern": r"\$\{"}
SCALAR = {"type": ["string", "number", "boolean"]}
NAME = {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9_-]{0,62}$|\$\{"}
NUMBER_OF = {"FRAGI_CAPACITY_MAX": None, "true": 1}
KINDS = {
    "BOOL": {"$ref": "#/$defs/bool"},
    "NUMBER": {"$ref": "#/$defs/number"},
    "DURATION": {"$ref": "#/$defs/duration"},
    "TIME": {"$ref": "#/$defs/duration"},
    "NANOSECONDS": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/duration"}]},
    "TEXT": SCALAR,
    "NAME": NAME,
}
ANY = True


def ref(name):
    return {"$ref": "#/$defs/" + name}


def named(value):
    """A map of people's names to values of one kind; an empty section is none."""
    return {"type": ["object", "null"], "propertyNames": NAME, "additionalProperties": value}


def many(value):
    return {"type": ["array", "null"], "items": value}


def one_or_many(value):
    return {"anyOf": [value, many(value)]}


def number(text):
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def words_of(name, source, everywhere):
    body = dict(everywhere, **dict(WORDS.findall(source)))[name]
    return re.findall(r'"(\w+)"', body)


def integer(row):
    least = re.search(r"\.min = (-?\w+)", row)
    most = re.search(r"\.max = (-?\w+)", row)
    value = {"type": "integer"}
    least = number(least.group(1)) if least else 0  # a member that is not given is 0
    most = number(most.group(1)) if most else None
    if least is not None:
        value["minimum"] = least
    if most is not None:
        value["maximum"] = most
    return {"anyOf": [value, {"type": "string", "pattern": r"^[-+]?[0-9]+$|^0[xX]|\$\{"}]}


def value_of(key, row, place, source, everywhere):
    """What a key may have, by its row of the table; else by its name."""
    kind = re.search(r"FRAGI_KEY_(\w+)", row)
    if kind is None:
        return OTHERS.get((place, key), OTHERS.get(key, ANY))
    if kind.group(1) == "WORD":
        words = re.search(r"\.words = (\w+)", row).group(1)
        return {"anyOf": [{"enum": words_of(words, source, everywhere)}, ARGUMENT]}
    if kind.group(1) == "INTEGER":
        return integer(row)
    return KINDS[kind.group(1)]


def tables():
    """(file, table): its section's properties."""
    sources = {}
    for path in sorted(glob.glob(os.path.join(TEXT, "*.c"))):
        with open(path, encoding="utf-8") as f:
            sources[os.path.basename(path)] = f.read()
    everywhere = {}
    for source in sources.values():
        everywhere.update(WORDS.findall(source))
    found = {}
    for name, source in sources.items():
        plain = source
        macros = dict(graph_index.ROW.findall(source))
        for macro, key in macros.items():
            kind = re.search(r'#define %s\(.*?(FRAGI_KEY_\w+)' % macro, source, re.S).group(1)
            plain = re.sub(r"(?m)^\t+%s\(.*?\)," % macro, '{"%s", %s},' % (key, kind), plain)
        or_key = re.search(r'#define OR_KEY "(\w+)"', source)
        if or_key:
            plain = plain.replace("{OR_KEY}", '{"%s"}' % or_key.group(1))
        for table, rows in graph_index.TABLE.findall(plain):
            files = graph_index.FILES
            place, section = files.get("%s %s" % (name, table)) or files[name]
            properties = {}
            for key, row in ROW.findall(rows):
                if "FRAGI_KEY_UNBUILT" in row:
                    continue
                at = graph_index.SECTIONS.get(key, section)
                at = graph_index.EXCEPTIONS.get((place, key), at)
                value = value_of(key, row, place, source, everywhere)
                hint = {"description": 'docs/GRAPH.md, "%s"' % at}
                if value is ANY:
                    properties[key] = hint
                elif "$ref" in value:  # beside which draft 7 ignores everything
                    properties[key] = {**hint, "allOf": [value]}
                else:
                    properties[key] = {**value, **hint}
            found[(name, table)] = properties
    return found


# What keys hold that the code of their section reads.
OTHERS = {
    "frag": {"enum": [1, "1"]},
    "application": NAME,
    "arguments": named(ref("argument")),
    "config": {"type": ["object", "null"]},
    "extensions": many(ref("extension")),
    "fragments": named(ref("fragment")),
    "flows": many(ref("flow")),
    "resources": named(ref("resource")),
    ("an operator", "resources"): many(SCALAR),
    "services": named(ref("resource")),
    "data_loggers": named(ref("resource")),
    "operators": named(ref("operator")),
    ("`add` of a thread pool", "operators"): one_or_many(SCALAR),
    "compose": NAME,
    "host": NAME,
    "metadata": {"$ref": "#/$defs/bool"},
    "watchdog": {"$ref": "#/$defs/duration"},
    "lease": {"$ref": "#/$defs/duration"},
    "scheduler": ref("scheduler"),
    "requirements": ref("requirements"),
    "on_failure": ref("on_failure"),
    "thread_pools": named(ref("thread_pool")),
    "subgraphs": named(ref("subgraph")),
    "clock": ref("clock"),
    "tracking": {"anyOf": [{"$ref": "#/$defs/bool"}, ref("tracking")]},
    "deadlines": many(ref("path")),
    "variables": named(ref("variable")),
    "conditions": many(ref("condition")),
    "or_combine_port_conditions": many(one_or_many(SCALAR)),
    "ports": named(ref("port")),
    ("a subgraph", "ports"): named(one_or_many(SCALAR)),
    ("a subgraph", "parameters"): named({"type": ["object", "null"]}),
    "parameters": {"type": ["object", "null"]},
    "align": ref("align"),
    "deadline": {"anyOf": [{"$ref": "#/$defs/duration"}, ref("deadline")]},
    "add": many(ref("pool_entry")),
    "pin_operator": {"$ref": "#/$defs/bool"},
    "pin_cores": many(SCALAR),
    "inputs": many(SCALAR),
    "probes": many(SCALAR),
    "path": ANY,
    ("`deadline`, `deadlines`", "path"): many(SCALAR),
    "when": named(one_or_many(SCALAR)),
    "from": SCALAR,
    "to": one_or_many(SCALAR),
    "type": {"type": "string"},
    "subgraph": SCALAR,
    "labels": named(SCALAR),
    "memory": ref("size"),
    "memoryLimit": ref("size"),
    "gpuMemory": ref("size"),
    "gpuMemoryLimit": ref("size"),
    "sharedMemory": ref("size"),
    "sharedMemoryLimit": ref("size"),
    "gpuThreads": {"anyOf": [{"type": "string", "pattern": r"^([1-9][0-9]?|100)%$"}, ARGUMENT]},
    "mig": {"anyOf": [{"type": "string", "pattern": r"^([1-9][0-9]*c\.)?[1-9][0-9]*g\.[1-9][0-9]*gb([+-][a-z]+(\.[a-z]+)*)*$"}, ARGUMENT]},
    "policy": ref("policy"),
    ("`scheduler`", "type"): ref("scheduler_type"),
    "near": one_or_many(SCALAR),
    "apart": one_or_many(SCALAR),
    "choices": many(SCALAR),
    "readers": one_or_many(SCALAR),
    "writer": SCALAR,
}
# Sections: of which tables their keys are.
SECTIONS = {
    "argument": ["arguments.c keys"],
    "fragment": ["spec_fragment.c fragment_keys"],
    "scheduler": ["spec_scheduler.c keys"],
    "requirements": ["spec_requirements.c keys"],
    "on_failure": ["spec_on_failure.c keys"],
    "thread_pool": ["spec_thread_pool.c pool_keys"],
    "pool_entry": ["spec_thread_pool.c entry_keys"],
    "subgraph": ["subgraph_declare.c fields", "subgraph_declare.c only"],
    "tracking": ["spec_tracking.c keys"],
    "path": ["spec_deadline.c path_keys"],
    "deadline": ["spec_deadline.c deadline_keys"],
    "variable": ["spec_variable.c fields"],
    "port": ["spec_port.c port_keys"],
    "align": ["spec_port.c align_keys"],
}


def read(*path):
    with open(os.path.join(graph_index.TOP, "libfrag", "src", *path), encoding="utf-8") as f:
        return f.read()


def policies():
    """Their names, and Holoscan's numbers."""
    source = read("base", "policy.c")
    words = re.findall(r'\.name = "(\w+)"', source)
    numbers = re.findall(r'\.holoscan = "(\d)"', source)
    return {"anyOf": [{"enum": words + numbers + [int(n) for n in numbers]}, ARGUMENT]}


def scheduler_types():
    """Their names, and Holoscan's."""
    rows = re.findall(r'X\(SCHEDULER, "(\w+)", "(\w+)", "(\w+)"', read("text", "holoscan.h"))
    return {"anyOf": [{"enum": sorted({word for row in rows for word in (*row, row[1] + "_scheduler")})}, ARGUMENT]}


def section(properties, **more):
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False, **more}


def schema():
    found = tables()
    keys = {"%s %s" % key: value for key, value in found.items()}
    top, application = keys["spec.c single_keys"], keys["spec.c application_keys"]
    moved = sorted(set(top) - set(application))
    defs = {
        "bool": {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {
            "type": "string", "pattern": r"^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|0|1)$|\$\{"}]},
        "number": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[-+.0-9][-+.0-9eE]*$|\$\{"}]},
        "duration": {"anyOf": [{"const": 0}, {
            "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *(ns|us|ms|s|m|min|h|[hH][zZ])$|^0$|\$\{"}],
            "errorMessage": "a time with a unit: 10ms, 2s, 30hz"},
        "size": {"anyOf": [{"type": "integer", "minimum": 0}, {
            "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *([kKmMgGtT][iI]?)?[bB]?$|\$\{"}]},
        "policy": policies(),
        "scheduler_type": scheduler_types(),
        "extension": {"anyOf": [SCALAR, {**section(keys["spec_extension.c fields"]), "required": ["name"]}]},
        "flow": {"anyOf": [
            {"type": "string", "pattern": r"^\s*[^\s>-].*->\s*\S"},
            {**section(keys["spec_flow.c keys"]), "type": "object", "required": ["from", "to"]}]},
        "clock": {"anyOf": [SCALAR, section({**keys["spec_clock.c realtime_keys"], **keys["spec_clock.c virtual_keys"]},
                                            required=["type"]),
                            {**section(keys["spec_clock.c machine_keys"]), "required": ["max_error"]}]},
        "resource": {"type": "object", "required": ["type"], "allOf": [{"$ref": "#/$defs/resource_types"}]},
        "condition": {"type": "object", "required": ["type"], "allOf": [{"$ref": "#/$defs/condition_types"}]},
        "operator": {"if": {"type": "object", "required": ["subgraph"]},
                     "then": section(keys["spec_operator.c fields"]),
                     "else": {**section(keys["spec_operator.c operator_keys"]),
                              "allOf": [{"$ref": "#/$defs/operator_types"}]}},
    }
    for name, parts in SECTIONS.items():
        properties = {}
        for part in parts:
            properties.update(keys[part])
        defs[name] = section(properties)
    for name in ("operator_types", "condition_types", "resource_types"):
        defs[name] = True  # the place of what is installed, in the order of fragctl schema
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A graph of frag",
        "description": "What `fragctl validate` reads. Made of the parser's tables; `fragctl schema` adds the types "
                       "that are installed.",
        "type": "object",
        "required": ["frag", "application"],
        "properties": top,
        "additionalProperties": False,
        "if": {"required": ["fragments"]},
        "then": {"properties": {key: False for key in moved}},
        "$defs": defs,
    }


def text():
    """A key of $defs a line, so that the three places of types stand alone."""
    made = schema()
    defs = made.pop("$defs")
    head = json.dumps(made, indent=1, ensure_ascii=False)[:-2]
    rows = ",\n".join("  %s: %s" % (json.dumps(k), json.dumps(value)) for k, value in defs.items())
    return '%s,\n "$defs": {\n%s\n }\n}\n' % (head, rows)


if __name__ == "__main__":
    print(text(), end="")
