# SPDX-License-Identifier: Apache-2.0
"""holoscan.decorator: operators of functions and of classes with __call__."""
import inspect
from dataclasses import dataclass, field
from typing import Any

from ._component import ConditionBase, ConditionType, ResourceBase
from ._fragment import FragmentBase
from ._operator import Operator
from ._spec import IOSpec
from ._subgraph import Subgraph
from ._tensor import TensorBase, as_array, is_tensor_like
from .conditions import BooleanCondition

__all__ = ["Input", "Output", "create_op"]


def _create(port, declare):
    """Declares the port that an Input or Output describes."""
    if isinstance(port.size, int):
        port.size = IOSpec.IOSize(port.size)
    else:
        raise ValueError("port %s: %r is no size" % (port.name, port.size))
    if port.policy is not None and not isinstance(port.policy, IOSpec.QueuePolicy):
        raise ValueError("port %s: %r is no IOSpec.QueuePolicy" % (port.name, port.policy))
    declared = declare(port.name, size=port.size, policy=port.policy)
    if port.condition_type is not None:
        declared.condition(port.condition_type, **port.condition_kwargs)
    if port.connector_type is not None:
        declared.connector(port.connector_type, **port.connector_kwargs)


@dataclass
class Input:
    """An input. arg_map: the argument that takes its value, or a dict from tensors to arguments."""
    name: str
    arg_map: str | dict[str, str] | None = ()
    size: int | IOSpec.IOSize = IOSpec.SIZE_ONE
    policy: IOSpec.QueuePolicy | None = None
    condition_type: ConditionType | None = None
    condition_kwargs: dict[str, Any] = field(default_factory=dict)
    connector_type: IOSpec.ConnectorType | None = None
    connector_kwargs: dict[str, Any] = field(default_factory=dict)

    def create_input(self, spec):
        _create(self, spec.input)


@dataclass
class Output:
    """An output. tensor_names: which tensors of the result it sends; all by default."""
    name: str
    tensor_names: str | tuple[str] | None = ()
    size: int | IOSpec.IOSize = IOSpec.SIZE_ONE
    policy: IOSpec.QueuePolicy | None = None
    condition_type: ConditionType | None = None
    condition_kwargs: dict[str, Any] = field(default_factory=dict)
    connector_type: IOSpec.ConnectorType | None = None
    connector_kwargs: dict[str, Any] = field(default_factory=dict)

    def create_output(self, spec):
        _create(self, spec.output)


def _ports(ports, cls, make):
    """A tuple of Input or Output of a name, one of them, or several."""
    ports = (ports,) if isinstance(ports, (str, cls)) else tuple(ports)
    ports = tuple(make(p) if isinstance(p, str) else p for p in ports)
    if not all(isinstance(p, cls) for p in ports):
        raise ValueError("%ss are names of ports or %s objects" % (cls.__name__.lower(),
                                                                   cls.__name__))
    return ports


def _returns_a_value(function):
    """Whether its source has a return with a value."""
    import ast
    import textwrap
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                 and node.name == function.__name__)
    nodes = list(found.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        nodes += ast.iter_child_nodes(node)
    return False


class FunctionOp(Operator):
    """The operator that calls a function."""

    def __init__(self, fragment, function, class_obj, inputs, outputs, cast_tensors, op_param,
                 args, kwargs):
        self.func = function
        self.class_obj = class_obj
        self.input_objs = inputs
        self.output_objs = outputs
        self.cast_tensors = cast_tensors
        self.is_generator = inspect.isgeneratorfunction(function)
        self.gen_obj = None
        parts = [a for a in args if isinstance(a, (ConditionBase, ResourceBase))]
        self.func_args = tuple(a for a in args if not isinstance(a, (ConditionBase, ResourceBase)))
        if self.is_generator:
            parts.append(BooleanCondition(fragment, name="_generator_func"))
        name = kwargs.pop("name", function.__name__)
        self._map_arguments(kwargs, op_param)
        super().__init__(fragment, *parts, name=name)

    def _map_arguments(self, kwargs, op_param):
        """dynamic_kwargs come from inputs, fixed_kwargs stay the same."""
        names = [p.name for p in inspect.signature(self.func).parameters.values()
                 if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.dynamic_kwargs = {}
        for port in self.input_objs:
            targets = ([port.arg_map] if isinstance(port.arg_map, str)
                       else list(port.arg_map.values()) if isinstance(port.arg_map, dict) else [])
            for target in targets:
                if target in self.dynamic_kwargs:
                    raise ValueError("two inputs are mapped to the argument '%s'" % target)
                if target not in names and target not in kwargs:
                    raise KeyError("Provided func does not have an arg or kwarg named '%s'; it has:"
                                   " %s" % (target, ", ".join(names)))
                kwargs.pop(target, None)
                self.dynamic_kwargs[target] = None
        self.fixed_kwargs = kwargs
        if op_param is not None:
            kwargs[op_param] = self
        positional = names[:len(self.func_args)]
        for parameter in inspect.signature(self.func).parameters.values():
            name = parameter.name
            if name not in names or name in positional or name in self.dynamic_kwargs:
                continue
            if name not in kwargs:
                if parameter.default is parameter.empty:
                    raise ValueError("required argument, '%s', has not been specified" % name)
                kwargs[name] = parameter.default

    def setup(self, spec):
        for port in self.input_objs:
            port.create_input(spec)
        self.output_tensor_map = {}
        for port in self.output_objs:
            port.create_output(spec)
            names = port.tensor_names
            self.output_tensor_map[port.name] = (
                (names,) if isinstance(names, str) else tuple(names or ()))

    def compute(self, op_input, op_output, context):
        for port in self.input_objs:
            message = op_input.receive(port.name)
            if isinstance(port.arg_map, str):
                self.dynamic_kwargs[port.arg_map] = self._cast(_pick(message, port.arg_map))
            elif isinstance(port.arg_map, dict):
                for tensor, target in port.arg_map.items():
                    if tensor not in message:
                        raise KeyError("key with name '%s' not found in input dict" % tensor)
                    self.dynamic_kwargs[target] = self._cast(message[tensor])
        if not self.is_generator:
            self._send(self._call(), op_output)
            return
        if self.gen_obj is None:
            self.gen_obj = self._call()
        try:
            result = next(self.gen_obj)
        except StopIteration:
            self._conditions["_generator_func"].disable_tick()
            return
        self._send(result, op_output)

    def _call(self):
        return self.func(*self.func_args, **self.fixed_kwargs, **self.dynamic_kwargs)

    def _cast(self, value):
        return as_array(value) if self.cast_tensors and isinstance(value, TensorBase) else value

    def _send(self, result, op_output):
        ports = self.output_tensor_map
        if isinstance(result, tuple) and len(ports) > 1:
            if any(len(names) > 1 for names in ports.values()):
                raise ValueError("a function that returns a tuple needs an output for each of its "
                                 "elements, with one tensor name at most")
            if len(result) != len(ports):
                raise ValueError(
                    "The number of output tuple elements and number of tensors must match.\n"
                    "Output tuple length = %d\nNumber of output tensors = %d"
                    % (len(result), len(ports)))
            for (port, names), element in zip(ports.items(), result):
                if is_tensor_like(element):
                    element = {names[0] if names else "": element}
                op_output.emit(element, port)
            return
        for port, names in ports.items():
            if is_tensor_like(result):
                op_output.emit({names[0] if names else "": result}, port)
                continue
            for name in names:
                if name not in result:
                    raise ValueError("tensor with name '%s' not found in function output" % name)
            op_output.emit({name: result[name] for name in names} if names else result, port)


def _pick(message, name):
    """The tensor of a message for an argument: the one of its name, or the only one."""
    if not isinstance(message, dict) or name in message:
        return message[name] if isinstance(message, dict) else message
    tensors = [value for value in message.values() if isinstance(value, TensorBase)]
    if len(tensors) > 1:
        raise ValueError("there are %d tensors, and none is called %s" % (len(tensors), name))
    return tensors[0] if tensors else message


def create_op(function_or_class=None, inputs=(), outputs=(), cast_tensors=True, op_param=None):
    """Makes operators of a function: create_op(inputs="x", outputs="y")(f)(fragment, name=...).

    inputs and outputs are names, Input and Output objects, or tuples of them. cast_tensors: tensors
    arrive as arrays of numpy or cupy. op_param: an argument that gets the operator itself. Of a
    class each instance makes operators by its __call__.
    """
    is_bare = function_or_class is not None
    inputs = _ports(inputs, Input, lambda name: Input(name, arg_map=name))
    outputs = _ports(outputs, Output, Output)
    if op_param is not None and not isinstance(op_param, str):
        raise TypeError("op_param is a name or None, not %r" % (op_param,))

    def decorate(function, class_obj=None):
        if inspect.isclass(function):
            def make_instance(*args, **kwargs):
                instance = function(*args, **kwargs)
                if not callable(instance):
                    raise ValueError("%s has no __call__ that an operator could call" % function)
                return decorate(instance.__call__, instance)
            return make_instance
        if not callable(function):
            raise TypeError("create_op makes operators of functions and classes, not of %r"
                            % (function,))

        def make_operator(*args, **kwargs):
            if "fragment" in kwargs:
                fragment = kwargs.pop("fragment")
            elif args and isinstance(args[0], (FragmentBase, Subgraph)):
                fragment, *args = args
            else:
                raise ValueError("fragment must be provided via kwarg or as the first positional "
                                 "argument")
            ins, outs = inputs, outputs
            if is_bare:
                names = inspect.getfullargspec(function).args[class_obj is not None:]
                ins = tuple(Input(name, arg_map=name) for name in names)
                outs = (Output(""),) if _returns_a_value(function) else ()
            base = type(class_obj).__name__ if class_obj is not None else "".join(
                word.capitalize() for word in function.__name__.split("_"))
            operator = FunctionOp(fragment, function, class_obj, ins, outs, cast_tensors, op_param,
                                  args, kwargs)
            operator.__name__ = base if base.endswith("Op") and class_obj is not None \
                else base + "Op"
            operator.__qualname__ = operator.__name__
            operator.__module__ = function.__module__
            return operator

        return make_operator

    return decorate if function_or_class is None else decorate(function_or_class)
