# SPDX-License-Identifier: Apache-2.0
"""Arguments of components: Arg, ArgList, and what Python's values become in them."""
from . import _text
from ._enums import make

ArgContainerType = make("ArgContainerType", "NATIVE VECTOR ARRAY")
ArgElementType = make(
    "ArgElementType", "CUSTOM BOOLEAN INT8 UNSIGNED8 INT16 UNSIGNED16 INT32 UNSIGNED32 INT64 "
    "UNSIGNED64 FLOAT32 FLOAT64 COMPLEX64 COMPLEX128 STRING HANDLE YAML_NODE IO_SPEC CONDITION "
    "RESOURCE")

_NAMES = {
    ArgElementType.CUSTOM: "CustomType", ArgElementType.BOOLEAN: "bool",
    ArgElementType.INT8: "int8_t", ArgElementType.UNSIGNED8: "uint8_t",
    ArgElementType.INT16: "int16_t", ArgElementType.UNSIGNED16: "uint16_t",
    ArgElementType.INT32: "int32_t", ArgElementType.UNSIGNED32: "uint32_t",
    ArgElementType.INT64: "int64_t", ArgElementType.UNSIGNED64: "uint64_t",
    ArgElementType.FLOAT32: "float", ArgElementType.FLOAT64: "double",
    ArgElementType.COMPLEX64: "std::complex<float>",
    ArgElementType.COMPLEX128: "std::complex<double>", ArgElementType.STRING: "std::string",
    ArgElementType.HANDLE: "std::any", ArgElementType.YAML_NODE: "YAML::Node",
    ArgElementType.IO_SPEC: "holoscan::IOSpec*",
    ArgElementType.CONDITION: "std::shared_ptr<Condition>",
    ArgElementType.RESOURCE: "std::shared_ptr<Resource>"}
_ELEMENTS = {name: element for element, name in _NAMES.items()}


class ArgType:
    """The type of an argument."""
    __slots__ = ("element_type", "container_type", "dimension")

    def __init__(self, element_type=ArgElementType.CUSTOM, container_type=ArgContainerType.NATIVE):
        self.element_type = element_type
        self.container_type = container_type
        self.dimension = 0 if container_type == ArgContainerType.NATIVE else 1

    @property
    def to_string(self):
        name = _NAMES[self.element_type]
        for _ in range(self.dimension):
            name = ("std::vector<%s>" if self.container_type == ArgContainerType.VECTOR
                    else "std::array<%s,N>") % name
        return name

    def __repr__(self):
        return self.to_string


def type_of(name):
    """The ArgType that such a text names: "int64_t", "std::vector<double>"."""
    if name.startswith("std::vector<"):
        return ArgType(_ELEMENTS.get(name[12:-1], ArgElementType.CUSTOM), ArgContainerType.VECTOR)
    return ArgType(_ELEMENTS.get(name, ArgElementType.CUSTOM))


_NONE = object()


class Arg:
    """A named value."""
    __slots__ = ("name", "arg_type", "_value")

    def __init__(self, name, value=_NONE, type=None):
        self.name = name
        self._value = value
        self.arg_type = type or ArgType()

    @property
    def has_value(self):
        return self._value is not _NONE

    @property
    def tree(self):
        tree = {"name": self.name, "type": self.arg_type.to_string}
        if self.has_value and self.arg_type.element_type not in (
                ArgElementType.CUSTOM, ArgElementType.CONDITION, ArgElementType.RESOURCE,
                ArgElementType.IO_SPEC):
            tree["value"] = _text.scalar(self._value)
        return tree

    @property
    def description(self):
        return _text.text(self.tree)

    def __repr__(self):
        return self.description

    def __int__(self):
        return int(arg_to_py_object(self))

    def __float__(self):
        return float(arg_to_py_object(self))

    def __bool__(self):
        return bool(arg_to_py_object(self))

    def __str__(self):
        return str(arg_to_py_object(self))


class ArgList:
    """Arguments in their order."""
    __slots__ = ("args",)

    def __init__(self):
        self.args = []

    @property
    def name(self):
        return "arglist"

    @property
    def size(self):
        return len(self.args)

    def add(self, arg):
        """Adds an Arg, or all of an ArgList."""
        self.args += arg.args if isinstance(arg, ArgList) else [arg]

    def clear(self):
        self.args = []

    @property
    def description(self):
        return _text.text({"name": self.name, "args": [arg.tree for arg in self.args]})

    def __repr__(self):
        return self.description


def _plain(value, depth):
    """A value as configuration files have it: bool, int, float, str, or lists of these."""
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", None) == 0:
        if value.dtype.kind not in "biufSU" or value.dtype.itemsize > 8:
            raise RuntimeError("values of %s cannot be arguments" % value.dtype)
        value = item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ == "Decimal":
        return float(value)
    if hasattr(value, "tolist") and hasattr(value, "ndim"):
        if value.dtype.kind not in "biufSU":
            raise RuntimeError("arrays of %s cannot be arguments" % value.dtype)
        value = value.tolist()
    if isinstance(value, (bytes, dict, complex)) or not hasattr(value, "__iter__"):
        raise RuntimeError("a value of %s cannot be an argument" % type(value).__name__)
    values = [_plain(x, depth - 1) for x in value]
    if depth == 0 or not values:
        raise RuntimeError("sequences of arguments are 1 or 2 deep and not empty")
    kinds = {type(x) for x in values}
    if list in kinds:
        kinds = {type(y) for x in values if isinstance(x, list) for y in x} | (kinds - {list})
    if len(kinds) > 1:
        raise RuntimeError("all elements of a sequence must be of one type")
    return values


def py_object_to_arg(obj, name=""):
    """The argument that holds a value, a condition, a resource, or a list of these."""
    from ._component import ConditionBase, ResourceBase
    for base, element in ((ConditionBase, ArgElementType.CONDITION),
                          (ResourceBase, ArgElementType.RESOURCE)):
        if isinstance(obj, base):
            return Arg(name, obj, ArgType(element))
        if isinstance(obj, (list, tuple)) and obj and all(isinstance(x, base) for x in obj):
            return Arg(name, list(obj), ArgType(element, ArgContainerType.VECTOR))
    return Arg(name, _plain(obj, 2), ArgType(ArgElementType.YAML_NODE))


def arg_to_py_object(arg):
    if not arg.has_value:
        return None
    if arg.arg_type.element_type in (ArgElementType.IO_SPEC, ArgElementType.CUSTOM):
        raise RuntimeError("%s: an argument of type %s has no value in Python"
                           % (arg.name, arg.arg_type))
    return arg._value


def kwargs_to_arglist(**kwargs):
    arglist = ArgList()
    for name, value in kwargs.items():
        arglist.add(py_object_to_arg(value, name))
    return arglist


def arglist_to_kwargs(arglist):
    return {arg.name: arg_to_py_object(arg) for arg in arglist.args}


def of_config(name, node):
    """The argument of a key of a configuration file, whose value may be anything."""
    return Arg(name, node, ArgType(ArgElementType.YAML_NODE))
