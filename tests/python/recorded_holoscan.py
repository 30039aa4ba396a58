# SPDX-License-Identifier: Apache-2.0
"""Walks through the classes of frag.holoscan: each argument, property and method with values of
every kind. Prints all that comes of it; tests/shared/test_python_recorded.c compares it with a
recorded text.
"""

import datetime
import enum
import importlib
import inspect
import io
import os
import re
import sys

from frag.holoscan import _finder

_finder.install()

from holoscan import core, resources  # noqa: E402

from recorded import head, run, text_of  # noqa: E402

MODULES = ("conditions", "resources", "schedulers", "operators", "data_loggers", "core", "gxf",
           "pose_tree", "network_contexts", "executors")
VALUES = (None, 0, 1, 2.5, True, "", "text", [1, 2], ["a"], {"a": "b"}, datetime.timedelta(1),
          object)
# What arguments without a default are given.
REQUIRED = {
    "storage_type": resources.MemoryStorageType.SYSTEM, "block_size": 64, "num_blocks": 2,
    "recess_period": 5, "min_size": 2, "max_delay_ns": 7, "min_bytes": 3, "allocator": "pool",
    "condition": None, "filename": "file", "directory": "/tmp", "basename": "clip",
    "backend": "trt", "model_path_map": {"m": "/m.onnx"}, "pre_processor_map": {"m": ["in"]},
    "inference_map": {"m": ["out"]}, "out_dtype": "rgb888", "serializer": None, "pool": "pool",
    "queue": 1, "name": "named", "value": 3, "key": "k", "size": 2, "thread_pool_size": 2,
    "min_sum": 3, "min_sizes": [1, 2], "frag": None, "terms": [], "config_file": "none.yaml",
    "initial_size": 2, "dev_id": 0, "gxf_typename": "nvidia::gxf::Thing", "type": "gray",
}
# Methods that run something, wait, or end the process.
LEFT_OUT = {"run", "run_async", "compose", "compute", "wait", "stop_execution", "sleep_for",
            "sleep_until", "run_context", "shutdown"}
IS_LINE = re.compile(r"^\s*(id|gxf_eid|gxf_cid|fragment): .*\n", re.M)


class App(core.Application):
    def compose(self):
        pass


def plain(text):
    text = re.sub(r"\.py:\d+", ".py", re.sub(r"0x[0-9a-f]+|\d{15,}", "0x", text))
    return text.replace(os.getcwd(), "").replace("\n", " / ")


def outcome(call, *args, limit=200):
    try:
        return plain(text_of(call(*args)))[:limit]
    except BaseException as e:
        return plain("raises %s: %s" % (type(e).__name__, e))[:200]


def parts_of(made):
    """All that it shows of itself, a part each."""
    parts = {}
    for name in ("description", "_declare", "declaration", "_native_parameters", "name"):
        if not hasattr(type(made), name) and name not in getattr(made, "__dict__", ()):
            continue
        found = getattr(made, name)
        text = found() if callable(found) else found
        if name == "description":
            lines = IS_LINE.sub("", text + "\n").splitlines()
        elif isinstance(text, dict):
            lines = ["to %s: %s" % (k, plain(repr(v))) for k, v in text.items()]
        else:
            lines = ["%s: %s" % (name.strip("_"), plain(repr(text)))]
        parts.update(dict.fromkeys(lines))
    return list(parts)


def shown(make):
    """Its parts; a failure is the only one."""
    err, sys.stderr = sys.stderr, io.StringIO()
    try:
        return parts_of(make())
    except BaseException as e:
        return [plain("raises %s: %s" % (type(e).__name__, e))[:200]]
    finally:
        sys.stderr = err


def parameters_of(cls):
    try:
        found = list(inspect.signature(cls.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def walk_class(cls):
    print("-", cls.__name__, *(b.__name__ for b in cls.__mro__[1:-1]))
    given, first = {}, []
    for p in parameters_of(cls):
        if p.name in ("fragment", "frag", "owner", "application") and p.default is p.empty:
            first = [App()]
        elif p.default is p.empty:
            given[p.name] = REQUIRED.get(p.name, "text")
    for name, value in given.items():
        if value == "pool":
            given[name] = resources.UnboundedAllocator(first[0] if first else App(), name="pool")
    base = shown(lambda: cls(*first, **given))
    print("   ", " | ".join(line.strip() for line in base))
    for p in parameters_of(cls):
        if p.name in ("fragment", "frag", "owner", "application"):
            continue
        choices = list(type(p.default)) if isinstance(p.default, enum.Enum) else []
        known = {}
        for value in (*VALUES, *choices):
            if isinstance(value, int) and "file" in p.name:
                continue  # a descriptor
            lines = shown(lambda: cls(*first, **{**given, p.name: value}))
            text = " | ".join(line.strip() for line in lines if line not in base) or "as above"
            if len(lines) != len(base) and "raises" not in text:
                text += " (%+d)" % (len(lines) - len(base))
            text = text if len(text) < 160 else "%s ... (%d)" % (text[:160], len(text))
            known.setdefault(text, []).append(text_of(value))
        for text, values in known.items():
            print("   %s = %s: %s" % (p.name, ", ".join(values), text))
    show_members(cls, lambda: cls(*first, **given))


def show_members(cls, make):
    try:
        make()
    except BaseException:
        return
    for name in sorted(dir(cls)):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or name in LEFT_OUT or id(member) in MEMBERS:
            continue
        MEMBERS[id(member)] = member
        if isinstance(member, property):
            got = outcome(lambda: getattr(make(), name))
            if name in ("description", "tree", "fragment", "id"):
                continue
            print("   .%s -> %s" % (name, got))
            known = {}
            for value in (None, 3, "text", [1], True):
                made = make()
                text = outcome(setattr, made, name, value)
                if text == "None":
                    text = "-> " + outcome(getattr, made, name)
                known.setdefault(text, []).append(text_of(value))
            for text, values in known.items():
                print("   .%s = %s: %s" % (name, ", ".join(values), text))
        elif callable(member) or isinstance(member, (staticmethod, classmethod)):
            known = {}
            for args in ((), (3,), ("text",), (None,), ("a", 3), (3, "a")):
                made = make()
                text = outcome(getattr(made, name), *args)
                if "positional argument" not in text:
                    known.setdefault(text, []).append(str(args))
            for text, values in known.items():
                print("   .%s%s -> %s" % (name, " ".join(values), text))


def walk(module):
    names = sorted(getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]))
    for name in names:
        thing = getattr(module, name)
        if isinstance(thing, type) and issubclass(thing, enum.Enum):
            print("-", name, [(m.name, m.value) for m in thing])
        elif isinstance(thing, type) and issubclass(thing, BaseException):
            print("-", name, *(b.__name__ for b in thing.__mro__[1:-1]))
        elif isinstance(thing, type) and thing.__module__.startswith(("frag", "holoscan")):
            if thing not in WALKED:
                WALKED.add(thing)
                walk_class(thing)
        elif inspect.isfunction(thing):
            for args in ((), (3,), ("text",), (None,), (3, "a"), ([1],), ({"a": 1},)):
                print("-", "%s%s -> %s" % (name, args, outcome(thing, *args)))


WALKED, MEMBERS = set(), {}


def modules():
    for name in MODULES:
        head("holoscan." + name)
        walk(importlib.import_module("holoscan." + name))


class Step(core.Operator):
    def setup(self, spec):
        spec.input("in")
        spec.output("out")
        spec.output("more")


class Inner(core.Subgraph):
    def compose(self):
        one, two = Step(self, name="one"), Step(self, name="two")
        self.add_flow(one, two, {("out", "in")})
        self.add_input_interface_port("x", one, "in")
        self.add_output_interface_port("y", two, "out")
        self.add_interface_port("z", two, "more")
        self.add_input_exec_interface_port("begin", one)
        self.add_output_exec_interface_port("end", two)


class Outer(core.Subgraph):
    def compose(self):
        self.inner, last = Inner(self, "inner"), Step(self, name="last")
        self.add_flow(self.inner, last, {("y", "in")})
        self.add_interface_port("x", self.inner)
        self.add_output_interface_port("out", last)
        self.add_output_interface_port("z", self.inner, "z")


def compositions():
    head("subgraphs and fragments")

    def flow(*ends):
        return lambda app, a, b, s, o: app.add_flow(*[
            {"a": a, "b": b, "inner": s, "outer": o}.get(e, e) if isinstance(e, str) else e
            for e in ends])

    cases = {str(ends): flow(*ends) for ends in (
        ("a", "b"), ("a", "b", {("out", "in")}), ("a", "b", {("more", "in"), ("out", "in")}),
        ("a", "b", {("none", "in")}), ("a", "b", {("out", "none")}), ("a", "b", 3), ("a", 3),
        ("a", "inner"), ("a", "inner", {("out", "x")}), ("a", "inner", {("out", "y")}),
        ("inner", "b"), ("inner", "b", {("y", "in")}), ("inner", "b", {("z", "in")}),
        ("inner", "b", {("x", "in")}), ("a", "outer", {("out", "x")}), ("outer", "b"),
        ("outer", "b", {("out", "in")}), ("outer", "b", {("z", "in")}), ("inner", "outer"),
        ("outer", "inner", {("out", "x")}), ("outer", "outer"))}
    cases["ports again"] = lambda app, a, b, s, o: s.add_interface_port("x", s._operators[0])
    for args in (("p", 3), ("p", "a"), ("in", "a"), ("p", "a", "in"), ("p", "a", "out"),
                 ("p", "a", "none"), ("x", "inner"), ("p", "inner"), ("p", "inner", "y"),
                 ("p", "inner", "begin")):
        for verb in ("add_interface_port", "add_input_interface_port",
                     "add_output_interface_port", "add_input_exec_interface_port",
                     "add_output_exec_interface_port"):
            cases["%s%s" % (verb, args)] = lambda app, a, b, s, o, verb=verb, args=args: getattr(
                o, verb)(*[{"a": a, "inner": s}.get(e, e) if i == 1 else e
                           for i, e in enumerate(args)])
    for name, case in cases.items():
        def used():
            app = App()
            a, b = Step(app, name="a"), Step(app, name="b")
            inner, outer = Inner(app, "inner"), Outer(app, name="outer")
            case(app, a, b, inner, outer)
            return sorted(op.name for op in app.graph.get_nodes()), {
                key: sorted(port.mappings[0].internal_operator.name + "." + str(
                    port.mappings[0].internal_port_name) for port in [port])
                for key, port in outer._ports.items()}, app.graph.port_map_description()

        print("-", name, outcome(used, limit=900))
    outer = Outer(App(), name="outer")
    for verb in ("name", "instance_name", "is_composed", "operators", "interface_port_names"):
        found = getattr(outer, verb)
        print("-", verb, plain(repr([op.name for op in found()] if verb == "operators" else
                                    found() if callable(found) else found)))
    for args in ((), (None,), (None, "x"), (App(), None), (App(), 3), (App(), "")):
        print("-", "Subgraph", len(args), args[1:], outcome(core.Subgraph, *args))


if __name__ == "__main__":
    run(modules, compositions)
