# SPDX-License-Identifier: Apache-2.0
"""Operators: OperatorBase and Operator."""
import itertools

from . import _log, _text
from ._args import Arg, ArgList, py_object_to_arg
from ._component import (ComponentBase, ConditionBase, ResourceBase, _Guarded, check_owner,
                         set_parameters)
from ._enums import Enum, make
from ._metadata import MetadataDictionary, MetadataPolicy
from ._spec import IOSpec, OperatorSpec, OperatorSpecBase

OperatorStatus = make("OperatorStatus",
                      "NOT_STARTED START_PENDING STARTED TICK_PENDING TICKING IDLE STOP_PENDING")
INPUT_EXEC, OUTPUT_EXEC = "__input_exec__", "__output_exec__"
_numbers = itertools.count(1)  # of operators without a name


class FlowInfo:
    """A flow from an operator, for dynamic flows."""
    __slots__ = ("curr_operator", "output_port_name", "next_operator", "input_port_name")

    def __init__(self, flow):
        self.curr_operator = flow.source
        self.output_port_name = flow.output
        self.next_operator = flow.target
        self.input_port_name = flow.input

    @property
    def output_port_spec(self):
        return self.curr_operator.spec.outputs.get(self.output_port_name)

    @property
    def input_port_spec(self):
        return self.next_operator.spec.inputs.get(self.input_port_name)


class OperatorBase(ComponentBase):
    """What operators in Python and those that frag has built in share."""
    INPUT_EXEC_PORT_NAME = INPUT_EXEC
    OUTPUT_EXEC_PORT_NAME = OUTPUT_EXEC
    _spec = None
    _body = None  # what frag runs, while the application runs
    _input = _output = _context = None
    _native_type = None  # the type of frag's operator in C that it is
    _metadata_enabled = None
    _metadata_policy = MetadataPolicy.DEFAULT
    _dynamic_flows = None
    _async = None
    _joins = 0  # messages of execution flows that a tick takes

    class OperatorType(Enum):
        NATIVE = 0
        GXF = 1
        VIRTUAL = 2

    def _init_operator(self, owner, args, kwargs):
        """What all constructors do: args are conditions, resources and arguments."""
        from ._subgraph import Subgraph
        check_owner(owner, type(self).__name__)
        name = kwargs.pop("name", "")
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %r" % (name,))
        self._init(owner, name or "unnamed_operator_%d" % next(_numbers))
        self._conditions = {}
        self._resources = {}
        self._metadata = MetadataDictionary()
        self._chosen = []
        for arg in args:
            if isinstance(arg, type(self.fragment)):
                raise RuntimeError("%s: an operator belongs to one fragment"
                                   % type(self).__name__)
            if not isinstance(arg, (ConditionBase, ResourceBase, Arg, ArgList)):
                raise TypeError("%s: %r is no condition, resource, Arg or ArgList; give "
                                "parameters by name" % (type(self).__name__, arg))
        self.add_arg(*args, **kwargs)
        if isinstance(owner, Subgraph):
            owner._qualify(self)

    def add_arg(self, *args, **kwargs):
        """Adds arguments, conditions or resources."""
        for arg in args:
            if isinstance(arg, ConditionBase):
                self._add_condition(arg)
            elif isinstance(arg, ResourceBase):
                self._add_resource(arg)
            else:
                super().add_arg(arg)
        for name, value in kwargs.items():
            if isinstance(value, ResourceBase):
                self._resources.setdefault(name, value)
            elif isinstance(value, ConditionBase):
                self._conditions.setdefault(name, value)
                value._operator = self
            else:
                self._args.append(py_object_to_arg(value, name))

    def _add_condition(self, condition):
        if condition.name in self._conditions:
            raise RuntimeError("%s has two conditions called %s" % (self.name, condition.name))
        self._conditions[condition.name] = condition
        condition._operator = self

    def _add_resource(self, resource):
        self._resources[resource.name] = resource
        for term in getattr(resource, "terms", ()):
            if self._conditions.get(term.name) is not term:
                self._add_condition(term)

    @property
    def spec(self):
        return self._spec

    @spec.setter
    def spec(self, spec):
        if not isinstance(spec, OperatorSpecBase):
            raise TypeError("%r is no OperatorSpec" % (spec,))
        self._spec = spec

    @property
    def conditions(self):
        return dict(self._conditions)

    @property
    def resources(self):
        return dict(self._resources)

    def resource(self, name):
        """The resource of this name; None: there is none."""
        return self._resources.get(name)

    @property
    def operator_type(self):
        return self.OperatorType.NATIVE

    @property
    def tree(self):
        tree = super().tree
        tree["type"] = "k" + self.operator_type.name.capitalize()
        tree["conditions"] = [x.tree for x in self._conditions.values()]
        tree["resources"] = [x.tree for x in self._resources.values()]
        tree["spec"] = (self._spec or OperatorSpecBase(self.fragment)).tree
        return tree

    @property
    def description(self):
        return _text.text(self.tree)

    # Metadata.

    @property
    def metadata(self):
        """What was received in this tick, and what the next emit sends."""
        return self._metadata

    @property
    def metadata_policy(self):
        return self._metadata_policy

    @metadata_policy.setter
    def metadata_policy(self, policy):
        self._metadata_policy = MetadataPolicy(policy)

    @property
    def is_metadata_enabled(self):
        if self._metadata_enabled is not None:
            return self._metadata_enabled
        return self.fragment.is_metadata_enabled

    def enable_metadata(self, enable):
        self._metadata_enabled = bool(enable)

    # While the application runs.

    @property
    def execution_context(self):
        return self._context

    @property
    def async_condition(self):
        """The asynchronous condition that every operator has while the application runs."""
        return self._async

    def receiver(self, port_name):
        """The queue of an input; None: there is no such input."""
        return self._queue(self._spec.inputs, port_name)

    def transmitter(self, port_name):
        return self._queue(self._spec.outputs, port_name)

    def _queue(self, ports, name):
        port = ports.get(name)
        if port is None:
            return None
        if port.connector() is None:
            from .resources import DoubleBufferReceiver, DoubleBufferTransmitter
            cls = (DoubleBufferReceiver, DoubleBufferTransmitter)[port.io_type]
            port._connector = cls(self.fragment, max(port.queue_size, 1), name=name)
            port._connector._given.pop("policy")
        side = self._input if ports is self._spec.inputs else self._output
        port._connector._port = side and side._queue(name)
        return port._connector

    def queue_policy(self, port_name, port_type=IOSpec.IOType.INPUT,
                     policy=IOSpec.QueuePolicy.FAULT):
        """Sets what happens when the queue of a port is full."""
        ports = self._spec.inputs if port_type == IOSpec.IOType.INPUT else self._spec.outputs
        if port_name not in ports:
            raise RuntimeError("%s has no port '%s'" % (self.name, port_name))
        ports[port_name].queue_policy = policy

    def stop_execution(self):
        """Ends this operator."""
        self.fragment.stop_execution(self.name)

    # Flows.

    @property
    def next_flows(self):
        return [FlowInfo(flow) for flow in self.fragment._flows if flow.source is self]

    def find_flow_info(self, predicate):
        """The first flow from here for which the predicate holds; None: there is none."""
        return next(iter(self.find_all_flow_info(predicate)), None)

    def find_all_flow_info(self, predicate):
        return [flow for flow in self.next_flows if predicate(flow)]

    def add_dynamic_flow(self, *args, **kwargs):
        """Chooses flows for this tick: a FlowInfo, a list of them, or ([port,] operator, [port])."""
        args += tuple(kwargs.values())
        if isinstance(args[0], FlowInfo):
            chosen = [args[0]]
        elif isinstance(args[0], (list, tuple)):
            chosen = list(args[0])
        else:
            output = args[0] if isinstance(args[0], str) else ""
            target, *rest = args[1:] if output else args
            chosen = [flow for flow in self.next_flows if flow.next_operator is target
                      and (not output or flow.output_port_name == output)
                      and (not rest or not rest[0] or flow.input_port_name == rest[0])][:1]
            if not chosen:
                raise RuntimeError("%s has no flow to %s" % (self.name, target.name))
        self._chosen += chosen

    def setup(self, spec):
        pass

    def start(self):
        pass

    def stop(self):
        pass


class Operator(_Guarded, OperatorBase):
    """An operator in Python."""
    _readonly_attributes = ("fragment", "conditions", "resources", "operator_type", "description")

    def __init__(self, fragment, *args, **kwargs):
        self._init_operator(fragment, args, kwargs)
        spec = OperatorSpec(self.fragment, self)
        self.spec = spec
        self.setup(spec)

    def compute(self, op_input, op_output, context):
        pass

    def _prepare(self):
        """Before initialize(): the parameters become attributes."""
        set_parameters(self, self._spec)
        for component in (*self._conditions.values(), *self._resources.values()):
            spec = component._spec
            if spec is not None and component._gxf_typename is None:
                set_parameters(component, spec)


def check_sizes(operator):
    """A queue of several messages without a condition of its own waits for all of them."""
    for name, port in operator._spec.inputs.items():
        if port.queue_size < IOSpec.ANY_SIZE:
            text = "Invalid queue size: %d (op: '%s', input port: '%s')" % (
                port.queue_size, operator.name, name)
            _log.error("%s", text)
            raise RuntimeError(text)
        if port.queue_size > 1 and not port.conditions:
            _log.warning("Input port '%s' of operator '%s' is configured with queue_size=%d (> 1)."
                         " Its tick waits for as many messages; give the port a condition with "
                         "another min_size if it should not", name, operator.name, port.queue_size)
