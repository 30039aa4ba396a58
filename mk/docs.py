#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates parts of README.md and docs/.

- The text between `<!-- made by: COMMAND -->` and `<!-- end -->` is the output of COMMAND, a
  program of the build tree.
- The text between `<!-- states: FILE TABLE -->` and `<!-- end -->` is a diagram of the table of
  legal transitions of that name in that source file.
- The text between `<!-- layers: FILE -->` and `<!-- end -->` is a diagram of the layers in that
  file.
- The text between `<!-- exit codes -->` or `<!-- failures -->` and `<!-- end -->` is a table of
  base/failure.h.
- The text between `<!-- names of holoscan -->` and `<!-- end -->` holds the tables of
  text/holoscan.h.
- The text between `<!-- index of keys -->` and `<!-- end -->` is a table of the keys of a graph
  (mk/graph_index.py).
- deploy/*.env and deploy/man are made of what the programs print for --help (mk/manuals.py).
- The text between `<!-- metrics -->` and `<!-- end -->` is the table of metrics of
  fragctl/metrics.c.
- docs/graph.schema.json is made of the parser's tables of keys (mk/schema.py).
- The schema of the summary gets the counters of base/counters.h and the codes of base/failure.h.

usage: mk/docs.py [--build DIR] [--check]      --check changes nothing and fails when a part is not
                  as it would be made
"""
import argparse
import ast
import json
import os
import re
import runpy
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graph_index  # noqa: E402
import manuals  # noqa: E402
import schema as graph_schema  # noqa: E402

COUNTERS, FAILURES, HOLOSCAN = "base/counters.h", "base/failure.h", "text/holoscan.h"
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PART = re.compile(
    r"(<!-- (made by|states|layers|exit codes|failures|names of holoscan|index of keys|metrics)(?:: (.+?))? -->\n)(.*?)(<!-- end -->)", re.S
)


def printed(build, *words):
    """What a program of the build tree prints."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FRAG_")}
    r = subprocess.run(
        [os.path.join(build, "bin", words[0]), *words[1:]],
        capture_output=True,
        text=True,
        env=env,
        cwd=TOP,
    )
    if r.returncode != 0:
        raise SystemExit("%s: exit status %d: %s" % (" ".join(words), r.returncode, r.stderr))
    return "\n".join(line.rstrip() for line in r.stdout.replace(build + "/", "").rstrip().splitlines())


def made(command, build):
    words = shlex.split(command)
    drawn = words[:2] == ["fragctl", "graph"] and "--help" not in words
    return "```%s\n%s\n```\n" % ("mermaid" if drawn else "", printed(build, *words))


def mermaid(kind, lines):
    return "```mermaid\n%s\n%s\n```\n" % (kind, "\n".join("    " + line for line in lines))


def states(what):
    """A diagram of `static const uint32_t TABLE[] = {[FROM] = FRAGI_TO(TO) | ..., ...};`."""
    path, table = what.split()
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        source = re.sub(r"\s*\\\n\s*", " ", f.read())
    defines = dict(re.findall(r"^#define (\w+) (.+)$", source, re.M))
    body = re.search(r"%s\[\w*\] = \{(.*?)\n\};" % table, source, re.S).group(1)
    rows = []
    for state, targets in re.findall(r"\[(\w+)\] =\s*(.*?)(?:,\n|,$|$)", body, re.S):
        for name, value in defines.items():
            targets = re.sub(r"\b%s\b" % name, lambda m, v=value: v, targets)
        rows.append((state, re.findall(r"(?:BIT|FRAGI_TO)\((\w+)\)", targets)))
    prefix = len(os.path.commonprefix([r[0] for r in rows]))
    name = lambda s: s[prefix:].lower()
    lines = ['state "%s" as %s' % (name(s).replace("_", " "), name(s)) for s, _ in rows if "_" in name(s)]
    lines += ["[*] --> " + name(rows[0][0])]
    for state, targets in rows:
        lines += ["%s --> %s" % (name(state), name(to)) for to in targets]
        lines += [] if targets else [name(state) + " --> [*]"]
    return mermaid("stateDiagram-v2", lines)


def layers(what):
    """A diagram of the rows of folders in mk/layers.py; an arrow means "may include"."""
    rules = runpy.run_path(os.path.join(TOP, what))
    rows, lines = rules["ROWS"], []
    for level, row in reversed(list(enumerate(rows))):
        lines += ['subgraph row%d [" "]' % level]
        lines += ["    of_%s[%s]" % (folder, folder) for folder in row] + ["end"]
    lines += ["of_%s --> of_%s" % pair for pair in sorted(rules["SIDEWAYS"])]
    lines += ["row%d --> row%d" % (level, level - 1) for level in range(len(rows) - 1, 0, -1)]
    return mermaid("flowchart TB", lines)


def entries(header, name, width):
    """The arguments of each X(...) in the list `#define NAME(X) ...` of that header, as the
    compiler reads it."""
    args = ["a%d" % i for i in range(width)]
    source = "#include <%s>\n#define E(%s) [%s],\n@@ %s(E)\n" % (
        header,
        ", ".join(args),
        ", ".join("#" + a for a in args),
        name,
    )
    r = subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", "-Ilibfrag/include", "-Ilibfrag/src", "-xc",
                        "-"], input=source, stdout=subprocess.PIPE, text=True, cwd=TOP, check=True)
    rows = ast.literal_eval("[%s]" % r.stdout.split("@@")[1])
    return [[ast.literal_eval(a) if a.startswith('"') else a for a in row] for row in rows]


def table(heads, rows):
    lines = [heads, ["---"] * len(heads)] + rows
    return "".join("| %s |\n" % " | ".join(cells) for cells in lines)


def all_exit_codes():
    return [e[1:] for e in entries(FAILURES, "FRAGI_EXIT_LIST", 3)] + [["128+n", "ended by signal n"]]


def exit_codes(_):
    return table(["code", "meaning"], all_exit_codes())


def failures(_):
    """The failures, scope by scope."""
    exits = {e[0]: e[1] for e in entries(FAILURES, "FRAGI_EXIT_LIST", 3)}
    known = entries(FAILURES, "FRAGI_FAILURE_LIST", 6)
    parts = []
    for scope, name, meaning in entries(FAILURES, "FRAGI_SCOPE_LIST", 3):
        rows = [["`%s`" % f[1], exits[f[3]], f[4], f[5]] for f in known if f[2] == scope]
        heads = ["code", "exit code", "what happened", "what to do"]
        parts += ["## %s\n\nWhat has failed: %s.\n\n%s" % (name.capitalize(), meaning, table(heads, rows))]
    return "\n" + "\n".join(parts)


def holoscan(_):
    """The names of Holoscan, kind by kind."""
    known = entries(HOLOSCAN, "FRAGI_HOLOSCAN_LIST", 6)
    states = {"BUILT": "`%s`%s", "ABSENT": "absent%s; %s"}
    parts = []
    for kind, name, suffix, _ in entries(HOLOSCAN, "FRAGI_HOLOSCAN_KINDS", 4):
        rows = []
        for _, cls, snake, here, state, advice in (e for e in known if e[0] == kind):
            text = states[state] % ((here, "") if state == "BUILT" else ("", advice))
            rows.append(["`%s`" % cls, "`%s`" % snake, text])
        heads = ["class", "name", "in frag"] if suffix else ["function", "key", "in frag"]
        parts += ["### %ss\n\n%s" % (name.capitalize(), table(heads, rows))]
    return "\n" + "\n".join(parts)


def json_text(value, indent=0):
    """On one line where it fits, else an entry a line."""
    line = json.dumps(value, ensure_ascii=False)
    if (
        len(line) + indent <= 96
        or not isinstance(value, (dict, list))
        or not any(
            isinstance(v, (dict, list))
            for v in (value.values() if isinstance(value, dict) else value)
        )
    ):
        return line
    pad = " " * (indent + 2)
    rows = (
        ["%s: %s" % (json.dumps(k), json_text(v, indent + 2)) for k, v in value.items()]
        if isinstance(value, dict)
        else [json_text(v, indent + 2) for v in value]
    )
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + "\n" + ",\n".join(pad + r for r in rows) + "\n" + " " * indent + ends[1]


def schema(old):
    """The summary's schema with the counters and the reasons for drops that base/counters.h
    lists."""
    root = json.loads(old)
    flow = root["$defs"]["flow"]
    count = lambda what: {"$ref": "#/$defs/count", "description": what}
    shown = {name: count(what) for half in ("SENDER", "RECEIVER")
             for name, show, what in entries(COUNTERS, "FRAGI_%s_LIST" % half, 3) if show == "SHOWN"}
    first = ["from", "to", "edge", "encrypted", "capacity", "policy", "sent", "delivered", "dropped", "lost", "in_flight",
             "exact", "lost_at_least", "delivered_at_least", "lost_because"]
    last = ["copied_bytes", "latency_ns", "latency_reason"]
    keys = first + [k for k in shown if k not in first] + last
    flow["required"] = [k for k in keys if k not in ("latency_reason", "lost_at_least", "delivered_at_least",
                                                     "lost_because")]
    flow["properties"] = {k: shown.get(k) or flow["properties"][k] for k in keys}
    op = root["$defs"]["fragment"]["properties"]["operators"]["items"]
    counted = {name: count(what)
               for name, show, what in entries(COUNTERS, "FRAGI_OP_LIST", 3) if show == "SHOWN"}
    op["required"] = [k for k in op["required"] if k not in counted] + list(counted)
    op["properties"].update(counted)
    late = {name[len("late_"):]: count(what)
            for name, show, what in entries(COUNTERS, "FRAGI_OP_LIST", 3) if show == "LATE"}
    op["properties"]["late"] = {"type": "object", "description": "What is to blame for the path_misses, where there are any.",
                                "required": list(late), "properties": late}
    drops = {name: count(when) for _, name, when in entries(COUNTERS, "FRAGI_DROP_LIST", 3)}
    flow["properties"]["dropped"] = {"type": "object", "description": "Messages by the reason for the drop.",
                                     "required": list(drops), "properties": drops}
    failures = entries(FAILURES, "FRAGI_FAILURE_LIST", 6)
    failure = root["properties"]["failure"]["properties"]
    failure["code"]["enum"] = [f[1] for f in failures]
    failure["scope"]["enum"] = [s[1] for s in entries(FAILURES, "FRAGI_SCOPE_LIST", 3)]
    return json_text(root) + "\n"


# What a metric is about, and its labels beside the one of metrics.c's functions that has its own.
METRIC_LABELS = {"APP": "app", "OF_ENDED": "app", "OF_LOOK": "app", "OF_WORKER": "worker", "WORKER": "worker",
                 "OPERATOR": "app, operator", "OF_OPERATOR": "app, operator", "FLOW": "app, flow", "HOST": "app, host", "POOL": "app, pool",
                 "OF_NOTHING": "", "REPLY": ""}
OWN_LABELS = {"put_build": "version", "put_events": "kind", "put_left_out": "of", "put_state": "state",
              "put_ended": "result", "put_cause": "kind, operator, flow_from", "put_uses": "use", "put_late": "cause", "put_late_places": "at, cause",
              "put_drops": "reason", "put_histogram": "le"}
METRIC = re.compile(r'\{"(frag_\w+)",\s*"(\w+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*(\w+)(?:\(\w+\))?,\s*(?:\.put = )?(\w+)\}')


def metrics(_):
    with open(os.path.join(TOP, "fragctl", "metrics.c"), encoding="utf-8") as f:
        source = f.read()
    for live, about in ("FRAGI_OP_LIVE_LIST", "OPERATOR"), ("FRAGI_FLOW_LIVE_LIST", "FLOW"):
        source = source.replace("%s(LIVE)" % live, "".join(
            '{"%s", "counter", "%s", %s(%s), .put = put_%s},' % (metric, meaning, about, name, unit)
            for name, unit, metric, meaning in entries(COUNTERS, live, 4)))
    rows = METRIC.findall(source)
    if len(rows) != len(re.findall(r'\{"frag_', source)):
        raise SystemExit("fragctl/metrics.c: a row of the table of metrics is not as mk/docs.py knows them")
    lines = ["| metric | type | labels | |", "|---|---|---|---|"]
    for name, kind, meaning, about, put in rows:
        labels = ", ".join(x for x in (METRIC_LABELS[about], OWN_LABELS.get(put, "")) if x)
        meaning = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', meaning))
        lines.append("| %s | %s | %s | %s |" % (name, kind, labels, meaning))
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    build = os.path.abspath(args.build)
    make = {
        "made by": lambda command: made(command, build),
        "states": states,
        "layers": layers,
        "exit codes": exit_codes,
        "failures": failures,
        "names of holoscan": holoscan,
        "index of keys": lambda _: index,
        "metrics": metrics,
    }
    with open(os.path.join(TOP, "docs", "GRAPH.md"), encoding="utf-8") as f:
        index = graph_index.index(f.read())
    stale = []

    def compare(name, old, new):
        if new == old:
            return
        stale.append(name)
        if not args.check:
            with open(os.path.join(TOP, name), "w", encoding="utf-8") as f:
                f.write(new)

    docs = ["docs/" + name for name in sorted(os.listdir(os.path.join(TOP, "docs")))]
    for name in ["README.md", *docs]:
        if not name.endswith((".md", "summary.schema.json")):
            continue
        path = os.path.join(TOP, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = (
            schema(old)
            if name.endswith(".json")
            else PART.sub(
                lambda m: m.group(1) + make[m.group(2)](m.group(3)) + m.group(5), old
            )
        )
        compare(name, old, new)
    for name, new in [("docs/graph.schema.json", graph_schema.text())] + list(manuals.made(lambda *words: printed(build, *words), all_exit_codes()).items()):
        with open(os.path.join(TOP, name), "a+", encoding="utf-8") as f:
            f.seek(0)
            compare(name, f.read(), new)
    if stale and args.check:
        print("not as the programs say; run mk/docs.py: %s" % ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
