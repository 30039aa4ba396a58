# SPDX-License-Identifier: Apache-2.0
"""Applications and fragments: a graph that a program composes, and how it runs."""
from . import _frag
from ._component import text_of
from ._operator import NativeOperator, Operator, component_type, type_name
from ._run import Future, execute
from ._spec import Scheduler


def _valid(name):
    name = "".join(c if c.isascii() and c.isalnum() or c in "-_" else "_" for c in name)[:63]
    return name if name[:1].isalpha() else "app" + name[:60]


class Fragment:
    """A graph of operators. compose() makes them, add_flow() connects them."""

    def __init__(self, application=None, name=None):
        self.application = application
        self.name = name or _valid(type(self).__name__)
        self.operators = {}
        self._resources = {}
        self._flows = []
        self._scheduler = None
        self._clock = None
        self._is_composed = False
        self._metadata = {}

    def compose(self):
        raise NotImplementedError("%s has no compose" % type(self).__name__)

    def add_operator(self, operator):
        known = self.operators.setdefault(operator.name, operator)
        if known is not operator:
            raise ValueError("%s has two operators called %s" % (self.name, operator.name))

    def add_flow(self, upstream, downstream, ports=None, *, capacity=None, policy=None):
        """Connects operators, or fragments of an application.

        ports: pairs {("out", "in")}; between fragments {("operator.out", "operator.in")}. May be
        left out where each operator has one such port.
        """
        if not isinstance(upstream, Fragment):
            self.add_operator(upstream)
            self.add_operator(downstream)
        for pair in [ports] if isinstance(ports, tuple) else sorted(ports or [("", "")]):
            ends = [side.name + ("." + port if port else "")
                    for side, port in zip((upstream, downstream), pair)]
            flow = {"from": ends[0], "to": ends[1]}
            if capacity is not None:
                flow["capacity"] = capacity
            if policy is not None:
                flow["policy"] = policy
            self._flows.append(flow)

    def scheduler(self, scheduler=None):
        if scheduler is not None and not isinstance(scheduler, Scheduler):
            raise TypeError("%r is no scheduler" % (scheduler,))
        self._scheduler = scheduler or self._scheduler
        return self._scheduler

    def clock(self, type, **params):
        """Chooses the clock: "realtime", "manual" or "synthetic", with its parameters."""
        self._clock = {"type": type, **params}

    def enable_metadata(self, enable=True):
        self._metadata["metadata"] = enable

    def _compose(self):
        if not self._is_composed:
            self._is_composed = True
            self.compose()

    def _declare(self, types):
        """The sections of the graph."""
        sections = dict(self._metadata)
        if self._resources:
            sections["resources"] = {k: v.declaration(types)
                                     for k, v in self._resources.items()}
        sections["operators"] = {name: _declare_operator(op, types)
                                 for name, op in self.operators.items()}
        if self._flows:
            sections["flows"] = self._flows
        if self._scheduler is not None:
            sections["scheduler"] = self._scheduler.declaration()
        if self._clock is not None:
            sections["clock"] = self._clock
        return sections


def python_components(parts):
    """Conditions and resources whose types are classes in Python: (fragment, operator or None,
    name) -> object."""
    found = {(part.name, None, resource.name): resource
             for part in parts for resource in part._resources.values()}
    found.update({(part.name, op.name, condition.name): condition for part in parts
                  for op in part.operators.values() for condition in op.conditions.values()})
    return {place: item for place, item in found.items() if item.type is None}


def _declare_operator(operator, types):
    native = isinstance(operator, NativeOperator)
    entry = {"type": operator.type if native else types[operator]}
    parameters = operator._parameters()
    if parameters:
        entry["parameters"] = {k: text_of(v) for k, v in parameters.items()}
    if operator.conditions:
        entry["conditions"] = [c.declaration(types) for c in operator.conditions.values()]
    if operator.resources:
        entry["resources"] = [text_of(r) for r in operator.resources]
    if operator.metadata_policy is not None:
        entry["metadata_policy"] = operator.metadata_policy
    return entry


class Application(Fragment):
    """An application: operators of its own, or fragments. run() runs it in this process."""

    def __init__(self, argv=None, *, name=None):
        super().__init__(None, name)
        self.application = self
        self.argv = argv
        self.fragments = {}
        self.extensions = []  # libraries of operators in C
        self.library_path = None
        self._config = None
        self._tracker = None  # while a Tracker is entered

    def add_fragment(self, fragment):
        known = self.fragments.setdefault(fragment.name, fragment)
        if known is not fragment:
            raise ValueError("two fragments are called %s" % fragment.name)
        fragment.application = self

    def add_flow(self, upstream, downstream, ports=None, **options):
        if isinstance(upstream, Fragment):
            self.add_fragment(upstream)
            self.add_fragment(downstream)
        super().add_flow(upstream, downstream, ports, **options)

    def config(self, path):
        """A file whose values parameters take: from_config("detection")."""
        self._config = path

    def from_config(self, path):
        """What the file of config() has at a path of keys, as parameters: **from_config("a.b")."""
        return {"from_config": path}

    def to_yaml(self):
        """The graph that run() runs, without the types that are Python's."""
        return self._graph()[0]

    def _all(self):
        self._compose()
        for fragment in self.fragments.values():
            fragment._compose()
        parts = [*self.fragments.values()]
        if self.operators:
            if parts:
                raise ValueError(
    "%s has operators beside its fragments; put them into one" %
     self.name)
            parts = [self]
        return parts

    def _graph(self):
        """The text of the graph, and the types of its operators."""
        parts = self._all()
        if parts:
            parts[0]._resources.pop("frag-tracker", None)
        if self._tracker is not None:
            from .tracker import Probe
            Probe(parts[0], self._tracker)
        instances = {(part.name, op.name): op for part in parts for op in part.operators.values()
                     if isinstance(op, Operator)}
        components = python_components(parts)

        def find(*place_and_params):
            *place, params = place_and_params
            found = (instances if len(place) == 2 else components)[tuple(place)]
            found._set_params(params)
            return found

        known, types, made = {}, {}, []
        for item in (*instances.values(), *components.values()):
            is_operator = isinstance(item, Operator)
            base = item._type_name() if is_operator else type_name(type(item))
            key = (base, item.spec.rows())
            if key not in known:
                count = sum(other == base for other, _ in known)
                known[key] = base + ("_%d" % (count + 1) if count else "")
                made.append(item._op_type(known[key], find) if is_operator else
                            component_type(type(item), known[key], item.spec, find))
            types[item] = known[key]
        return self._text(parts, types, self.extensions), made

    def _text(self, parts, types, extensions):
        graph = {"frag": 1, "application": self.name}
        if extensions:
            graph["extensions"] = extensions
        if self._tracker is not None:
            graph["tracking"] = self._tracker._section
        if parts == [self]:
            graph.update(self._declare(types))
        else:
            graph["fragments"] = {part.name: part._declare(types) for part in parts}
            if self._flows:
                graph["flows"] = self._flows
        return _to_text(graph)

    def _prepare(self):
        text, types = self._graph()
        plugin = _frag.plugin_add("python", types)
        try:
            run = _frag.Run(None, text, (), (self._config,) if self._config else (), (),
                            self.library_path)
        except BaseException:
            _frag.plugin_remove(plugin)
            raise
        return run, plugin

    def run(self):
        """Runs the application to its end and returns its summary, a dict. Raises frag.Error.

        It runs in this process, unless the command line has roles: --driver, --worker, --workers.
        """
        from . import _roles
        flags = _roles.find(self._command_line())
        if flags:
            return _roles.run(self, self._all(), flags)
        return execute(*self._prepare())

    def _command_line(self):
        """The program's arguments; ends the program where they ask for help."""
        import sys
        from . import _roles
        argv = list(sys.argv[1:] if self.argv is None else self.argv)
        if _roles.wants_help(argv):
            print(_roles.help(self), end="")
            sys.exit(0)
        return argv

    def run_async(self):
        """Starts the application. Returns a Future, whose result is the summary."""
        self._command_line()
        return Future(*self._prepare())


def _to_text(value):
    """YAML, of which JSON is a part: a line for each operator and flow."""
    import json
    lines = []
    for key, item in value.items():
        if key in ("operators", "fragments", "resources") and isinstance(item, dict):
            lines.append(key + ":")
            for name, entry in item.items():
                if key == "fragments":
                    lines.append("  %s:" % name)
                    lines += ["    " + line for line in _to_text(entry).splitlines()]
                else:
                    lines.append("  %s: %s" % (name, json.dumps(entry)))
        elif key == "flows":
            lines.append("flows:")
            lines += ["  - " + json.dumps(flow) for flow in item]
        else:
            lines.append("%s: %s" % (key, json.dumps(item)))
    return "\n".join(lines) + "\n"
