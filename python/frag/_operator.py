# SPDX-License-Identifier: Apache-2.0
"""Operators: the class that applications derive from, and what makes types of frag of it."""
import sys

from . import _frag
from ._metadata import Metadata
from ._component import Clock, Condition, Resource, _Native, take_parameters
from ._spec import OperatorSpec
from ._variable import Variable, context_of

DONE = 1  # compute returns it after its last tick


class Operator:
    """An operator in Python.

    setup() declares ports and parameters. initialize() is called once before anything runs,
    start() before the first tick, compute() at each tick, stop() at the end. compute returns
    nothing, or frag.DONE after the last tick; an exception fails the application.
    """
    save_size = 4096  # the most bytes that save() returns, where a class has save and restore
    save_period_ns = 0  # the shortest time between two calls of save
    gpu = None  # the number of the GPU on which the operator has a stream, context.stream

    def __init__(self, fragment, *args, name=None, **kwargs):
        self.fragment = fragment
        self.name = name or type(self).__name__.lower()
        self.conditions = {}
        self.resources = []
        self.spec = OperatorSpec(fragment)
        self.args = kwargs
        self.metadata_policy = None
        self._context = None
        for arg in args:
            if isinstance(arg, Condition):
                if arg.name in self.conditions:
                    raise ValueError("%s has two conditions called %s" % (self.name, arg.name))
                arg._operator = self
                self.conditions[arg.name] = arg
            elif isinstance(arg, Resource):
                self.resources.append(arg)
            else:
                raise TypeError("%s: %r is neither a condition nor a resource; give parameters by name"
                                % (self.name, arg))
        self.setup(self.spec)
        take_parameters(self, kwargs)

    def setup(self, spec):
        pass

    def initialize(self):
        pass

    def start(self):
        pass

    def compute(self, op_input, op_output, context):
        raise NotImplementedError("%s has no compute" % type(self).__name__)

    def stop(self):
        pass

    @property
    def metadata(self):
        """The metadata of this tick: what was received, and what the next emit sends."""
        if self._context is None:
            raise RuntimeError("metadata belong to a tick")
        return Metadata(self._context)

    @property
    def clock(self):
        """The clock of the fragment, from initialize on."""
        return Clock(self._context)

    def resource(self, name):
        """The resource of that name in the fragment; None: there is none."""
        known = self.fragment._resources.get(name)
        if known is None and self._context is not None:
            known = self._context._component(name, False)
            known = _Native(self, name) if known is True else known
        if known is not None:
            known._context = self._context
        return known

    def condition(self, name):
        """The operator's condition of that name; None: there is none."""
        known = self.conditions.get(name)
        if known is None and self._context is not None:
            from .conditions import LiveCondition
            known = self._context._component(name, True)
            known = LiveCondition(self, name) if known is True else known
            if known is not None:
                self.conditions[name] = known
        return known

    def variable(self, name):
        """The shared variable of that name, which the graph declares or an operator publishes."""
        return Variable(self, name, False)

    def create_variable(self, name):
        """A shared variable that the graph does not declare; others see it once it is set."""
        return Variable(self, name, True)

    def variable_path(self, name):
        """The path that the graph declares by this name; None: there is none for this operator."""
        return context_of(self)._variable_path(name)

    # What the extension calls.

    def _attach(self, context):
        self._context = context

    def _initialize(self):
        """The objects of the fragment can be used from now on."""
        for resource in self.fragment._resources.values():
            resource._context = self._context
        for name, param in self.spec.params.items():
            value = getattr(self, name)
            if param.kind in ("resource", "condition") and isinstance(value, str):
                setattr(self, name, getattr(self, param.kind)(value))
        self.initialize()

    def _set_params(self, params):
        for name, value in params.items():
            setattr(self, name, value)

    # What a graph says about it.

    def _type_name(self):
        return type_name(type(self))

    def _op_type(self, name, factory):
        return op_type(type(self), name, self.spec, factory)

    def _parameters(self):
        return {k: v for k, v in self.args.items() if k in self.spec.params}


def module_name(module):
    """A module's name for graphs: that of its file for the program itself."""
    if module != "__main__":
        return module
    path = getattr(sys.modules["__main__"], "__file__", None) or "main"
    name = path.rsplit("/", 1)[-1].removesuffix(".py")
    return name if name.isidentifier() else "main"


def type_name(cls):
    """The name of an operator's type in graphs; 63 bytes hold it."""
    name = "%s.%s" % (module_name(cls.__module__), cls.__qualname__.replace("<locals>.", ""))
    return "python:" + name[-56:].lstrip(".")


def documentation(cls):
    """The first line of a class's docstring and the rest; None where there is none."""
    headline, _, rest = (cls.__doc__ or "").strip().partition("\n")
    return headline or None, rest.strip() or None


def op_type(cls, name, spec, factory):
    size = cls.save_size if hasattr(cls, "save") and hasattr(cls, "restore") else 0
    return _frag.OpType(name, *documentation(cls), *spec.rows(), factory, size,
                        cls.save_period_ns)


def component_type(cls, name, spec, factory):
    """The table of a condition or resource in Python."""
    callbacks = None
    if issubclass(cls, Condition):
        callbacks = hasattr(cls, "update_state"), hasattr(cls, "on_execute")
    return _frag.ComponentType(name, *documentation(cls), spec.rows()[1], factory, callbacks)


class _Placed:
    """The fragment of an operator that a graph made."""

    def __init__(self, name):
        self.name = name
        self._resources = {}


def spec_of(cls):
    """What a class declares without an application."""
    spec = OperatorSpec()
    probe = cls.__new__(cls)
    try:
        probe.setup(spec)
    except AttributeError:  # setup uses what __init__ sets
        return cls(_Placed("probe"), name="probe").spec
    return spec


def class_type(cls):
    """The type of a class for graphs, which make operators, conditions or resources of it."""
    def make(fragment, *name_and_params):
        *_, name, params = name_and_params
        made = cls(_Placed(fragment), name=name)
        made._set_params(params)
        return made

    make_type = op_type if issubclass(cls, Operator) else component_type
    return make_type(cls, type_name(cls), spec_of(cls), make)


class NativeOperator:
    """An operator in C, of a type that is built in or that a library of the application has:

    NativeOperator(self, "ping_tx", CountCondition(self, 10), name="tx", value=3)
    """

    def __init__(self, fragment, type, *args, name=None, **params):
        self.fragment = fragment
        self.type = type
        self.name = name or type
        self.conditions = {arg.name: arg for arg in args if isinstance(arg, Condition)}
        self.resources = [arg for arg in args if isinstance(arg, Resource)]
        self.args = params
        self.metadata_policy = None
        self._context = None
        for condition in self.conditions.values():
            condition._operator = self

    def _parameters(self):
        return self.args
