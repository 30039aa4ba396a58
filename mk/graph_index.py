# SPDX-License-Identifier: Apache-2.0
"""The index of docs/GRAPH.md: every key that the parser knows, with the place where it stands and
the section that explains it.

The keys come from the tables of libfrag/src/text. A key that the page does not explain where the
index says so is an error.
"""
import glob
import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = re.compile(r"static const struct fragi_key (\w+)\[\] = \{(.*?)\};", re.S)
# A macro that makes a row.
ROW = re.compile(r'#define (\w+)\(\w+\)[\s\\]*\{[\s\\]*"(\w+)"')
KEY = re.compile(r'\{"(\w+)"(?!, FRAGI_KEY_UNBUILT)')
WHOLE = "Everything that a file may contain"

# Of each file with tables, or of a table: where its keys stand, and the section about them.
FILES = {
    "arguments.c": ("`arguments`", WHOLE),
    "spec.c": ("the top", WHOLE),
    "spec_clock.c": ("`clock`", "Clocks"),
    "spec_deadline.c": ("`deadline`, `deadlines`", "Deadlines"),
    "spec_extension.c": ("`extensions`", "Rules"),
    "spec_flow.c": ("a flow", "Queues"),
    "spec_fragment.c": ("a fragment", WHOLE),
    "spec_on_failure.c": ("`on_failure`", "Failures"),
    "spec_operator.c": ("an operator", WHOLE),
    "spec_requirements.c": ("`requirements`", "Requirements"),
    "spec_scheduler.c": ("`scheduler`", "Schedulers"),
    "spec_operator.c fields": ("an instance of a subgraph", "Subgraphs"),
    "spec_port.c align_keys": ("`align`", "Timing of inputs"),
    "spec_port.c port_keys": ("a port", "Timing of inputs"),
    "spec_thread_pool.c": ("`thread_pools`", "Thread pools"),
    "spec_thread_pool.c entry_keys": ("`add` of a thread pool", "Thread pools"),
    "spec_tracking.c": ("`tracking`", "Data flow tracking"),
    "spec_variable.c": ("`variables`", "Variables"),
    "subgraph.c": ("an instance of a subgraph", "Subgraphs"),
    "subgraph_declare.c": ("a subgraph", "Subgraphs"),
    "subgraph_parameters.c": ("`parameters` of a subgraph", "Subgraphs"),
}
# Keys that are explained elsewhere than the table's other keys, wherever they stand.
SECTIONS = {
    "align": "Timing of inputs",
    "budget": "Rates and budgets",
    "capacity": "Queues",
    "clock": "Clocks",
    "condition": "Conditions",
    "conditions": "Conditions",
    "data_loggers": "Data loggers",
    "deadline": "Deadlines",
    "deadlines": "Deadlines",
    "dynamic": "Execution flows and dynamic flows",
    "edge": "Queues",
    "encrypt": "Rules",
    "lease": "Migration and leases",
    "on_failure": "Failures",
    "policy": "Queues",
    "rate": "Rates and budgets",
    "size": "Queues",
    "requirements": "Requirements",
    "scheduler": "Schedulers",
    "services": "Services",
    "subgraphs": "Subgraphs",
    "thread_pools": "Thread pools",
    "tracking": "Data flow tracking",
    "variables": "Variables",
    "when": WHOLE,
}
# The exceptions from these.
EXCEPTIONS = {("`on_failure`", "policy"): "Failures", ("`deadline`, `deadlines`", "budget"): "Deadlines"}


def keys():
    """(key, place, section) of every key."""
    for path in sorted(glob.glob(os.path.join(TOP, "libfrag", "src", "text", "*.c"))):
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as f:
            source = f.read()
        for macro, key in ROW.findall(source):
            source = re.sub(r"(?m)^\t+%s\(" % macro, '{"%s"(' % key, source)
        for table, rows in TABLE.findall(source):
            where = FILES.get("%s %s" % (name, table), FILES.get(name))
            if where is None:
                raise SystemExit("mk/graph_index.py does not know where the keys of %s stand" % path)
            for key in KEY.findall(rows):
                section = EXCEPTIONS.get((where[0], key), SECTIONS.get(key, where[1]))
                is_real_time = key.startswith("sched_") or key == "best_effort"
                yield key, where[0], "Real time" if is_real_time else section


def sections(page):
    """The text of each section of a page, without those below it."""
    parts = re.split(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", lambda m: m.group(0).replace("#", ";"), page))
    return dict(zip(parts[1::2], parts[2::2]))


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def index(page):
    """A table of the keys, for that page."""
    text = sections(page.split("<!-- index of keys -->")[0])
    rows = {}
    for key, place, section in keys():
        if not re.search(r"\b%s\b" % key, text.get(section, "")):
            raise SystemExit("docs/GRAPH.md does not explain %s of %s under \"%s\"" % (key, place, section))
        places = rows.setdefault((key, section), [])
        if place not in places:
            places.append(place)
    lines = ["| key | in | section |", "|---|---|---|"]
    for (key, section), places in sorted(rows.items()):
        lines.append("| `%s` | %s | [%s](#%s) |" % (key, ", ".join(places), section, anchor(section)))
    return "\n".join(lines) + "\n"
