# SPDX-License-Identifier: Apache-2.0
"""Ports: IOSpec and OperatorSpec."""
from frag._application import _valid

from . import _log, _text
from ._args import Arg, ArgList, kwargs_to_arglist, type_of
from ._component import (ComponentSpecBase, ConditionType, GXFCondition, Parameter,
                         ParameterFlag)
from ._enums import Enum, make


class _IOSize(int):
    """The size of a port's queue."""

    def __repr__(self):
        return "IOSize(%d)" % self

    __str__ = __repr__


_IOSize.__name__ = _IOSize.__qualname__ = "IOSize"
_ConnectorType = make("ConnectorType", "DEFAULT DOUBLE_BUFFER UCX ASYNC_BUFFER")
_QueuePolicy = make("QueuePolicy", "POP REJECT FAULT")


class _IOType(Enum):
    INPUT = 0
    OUTPUT = 1


_IOType.__name__ = "IOType"


class PortCondition(GXFCondition):
    """A condition that setup() gives to a port."""
    _types = {"min_size": "uint64_t", "front_stage_max_size": "uint64_t",
              "max_batch_size": "int64_t", "max_delay_ns": "int64_t", "receiver": "std::string",
              "transmitter": "std::string"}

    def __init__(self, fragment, kind, values):
        self._init(fragment, "__%s" % kind.name.lower())
        self.kind = kind
        self._given = values
        self._args = [Arg(k, v, type_of(self._types.get(k, "YAML::Node")))
                      for k, v in values.items()]


class IOSpec:
    """A port of an operator."""
    __slots__ = ("_op_spec", "_name", "_frag_name", "_io_type", "_size", "_policy", "_conditions", "_connector",
                 "_connector_type")
    IOSize = _IOSize
    ConnectorType = _ConnectorType
    QueuePolicy = _QueuePolicy
    IOType = _IOType
    ANY_SIZE = _IOSize(-1)
    PRECEDING_COUNT = _IOSize(0)
    SIZE_ONE = _IOSize(1)

    def __init__(self, op_spec, name, io_type):
        self._op_spec = op_spec
        self._name = name
        self._frag_name = _valid(name)
        self._io_type = io_type
        self._size = 1
        self._policy = None
        self._conditions = []
        self._connector = None
        self._connector_type = _ConnectorType.DEFAULT

    @property
    def name(self):
        return self._name

    @property
    def io_type(self):
        return self._io_type

    @property
    def conditions(self):
        """Pairs of a ConditionType and its condition, None for ConditionType.NONE."""
        return self._conditions

    @property
    def connector_type(self):
        return self._connector_type

    @property
    def queue_size(self):
        return self._size

    @queue_size.setter
    def queue_size(self, size):
        self._size = int(size)

    @property
    def queue_policy(self):
        return self._policy

    @queue_policy.setter
    def queue_policy(self, policy):
        self._policy = policy if policy is None else _QueuePolicy(policy)

    def condition(self, kind, **kwargs):
        """Replaces the default condition, and adds to what was given before."""
        if self._size == IOSpec.ANY_SIZE and self._io_type == _IOType.INPUT:
            _log.warning("The queue size of input port '%s' is ANY_SIZE, and such ports take no "
                         "other condition; set the size explicitly", self._name)
        values = {k: int(v) if isinstance(v, int) else v for k, v in kwargs.items()}
        self._conditions.append((kind, None if kind == ConditionType.NONE else PortCondition(
            self._op_spec.fragment, kind, values)))
        return self

    def connector(self, kind=None, **kwargs):
        """Sets the queue's type; without arguments: returns the connector or None."""
        from . import resources
        if kind is None:
            return self._connector
        if not isinstance(kind, _ConnectorType):
            self._connector = kind
            return self
        ends = {_ConnectorType.DOUBLE_BUFFER: ("DoubleBufferReceiver", "DoubleBufferTransmitter"),
                _ConnectorType.ASYNC_BUFFER: ("AsyncBufferReceiver", "AsyncBufferTransmitter"),
                _ConnectorType.UCX: ("UcxReceiver", "UcxTransmitter")}.get(kind)
        self._connector_type = kind
        if ends is not None:
            cls = getattr(resources, ends[self._io_type])
            connector = cls(self._op_spec.fragment, **{
                k: v for k, v in kwargs.items() if k in cls._types})
            connector._args = [Arg(k, v, type_of(cls._types.get(k, "YAML::Node")))
                               for k, v in kwargs.items()]
            if "policy" not in kwargs:
                connector._given.pop("policy", None)
            self._connector = connector
        return self

    # What the graph gets.

    def _capacity(self):
        """0: the default."""
        if self._connector is not None:
            return self._connector.capacity
        return max(self._size, 0) if self._size > 1 else 0

    def _queue_policy(self):
        """A QueuePolicy; None: none was chosen."""
        policy = self._policy
        if self._connector is not None:
            policy = self._connector._given.get("policy")
        return None if policy is None else _QueuePolicy(policy)

    @property
    def tree(self):
        tree = {"name": self._name, "io_type": "k" + self._io_type.name.capitalize(),
                "typeinfo_name": "N8holoscan3gxf6EntityE",
                "connector_type": "k" + "".join(
                    w.capitalize() for w in self._connector_type.name.split("_")),
                "conditions": [{"type": "k" + "".join(
                    w.capitalize() for w in kind.name.split("_"))} for kind, _ in self._conditions]}
        if self._connector is not None:
            tree["connector"] = self._connector.tree
        return tree

    def __repr__(self):
        return _text.text(self.tree)


class MultiMessageConditionInfo:
    """A condition that multi_port_condition() gave to several inputs."""
    __slots__ = ("kind", "port_names", "args")

    def __init__(self):
        self.kind = ConditionType.NONE
        self.port_names = []
        self.args = ArgList()


class OperatorSpecBase(ComponentSpecBase):
    """The ports and parameters of an operator."""
    __slots__ = ("_inputs", "_outputs", "_multi", "_or")

    def __init__(self, fragment):
        super().__init__(fragment)
        self._inputs = {}
        self._outputs = {}
        self._multi = []
        self._or = []

    @property
    def inputs(self):
        return self._inputs

    @property
    def outputs(self):
        return self._outputs

    def _add(self, ports, name, io_type, size, policy):
        if name in ports:
            _log.error("%s port '%s' already exists", io_type.name.capitalize(), name)
            return ports[name]
        ports[name] = port = IOSpec(self, name, io_type)
        port.queue_size = size
        port.queue_policy = policy
        return port

    def input(self, name="__iospec_input", *, size=IOSpec.SIZE_ONE, policy=None):
        """Declares an input. size: its queue, and what each tick waits for; IOSpec.ANY_SIZE: any
        number of flows."""
        return self._add(self._inputs, name, _IOType.INPUT, size, policy)

    def output(self, name="__iospec_output", *, size=IOSpec.SIZE_ONE, policy=None):
        if size == IOSpec.ANY_SIZE or size == IOSpec.PRECEDING_COUNT:
            raise ValueError("output port '%s': its size is a number of messages" % name)
        return self._add(self._outputs, name, _IOType.OUTPUT, size, policy)

    def multi_port_condition(self, kind, port_names, **kwargs):
        """One condition about several inputs, whose own conditions it replaces."""
        info = MultiMessageConditionInfo()
        info.kind = kind
        info.port_names = list(port_names)
        mode = kwargs.get("sampling_mode")
        if mode is not None and not isinstance(mode, str):
            kwargs["sampling_mode"] = "PerReceiver" if int(mode) else "SumOfAll"
        info.args = kwargs_to_arglist(**kwargs)
        self._multi.append(info)

    def multi_port_conditions(self):
        return self._multi

    def or_combine_port_conditions(self, port_names):
        """A tick needs the conditions of one of these ports only."""
        self._or.append(list(port_names))

    @property
    def tree(self):
        return {**super().tree, "inputs": [port.tree for port in self._inputs.values()],
                "outputs": [port.tree for port in self._outputs.values()]}


class OperatorSpec(OperatorSpecBase):
    __slots__ = ("op",)

    def __init__(self, fragment, op):
        super().__init__(fragment)
        self.op = op

    def param(self, name, default_value=None, flag=ParameterFlag.NONE, **kwargs):
        """Declares a parameter, an attribute of the operator from initialize() on.

        kind="receivers": an input that takes any number of flows.
        """
        kind = kwargs.get("kind")
        self._params[name] = Parameter(name, default_value, flag, kind)
        if kind == "receivers":
            self.input(name, size=IOSpec.ANY_SIZE)
