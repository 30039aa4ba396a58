# SPDX-License-Identifier: Apache-2.0
"""Ports and parameters, as an operator declares them, and schedulers."""
from ._types import type_of

REQUIRED = object()  # a parameter without a default

# enum frag_param_kind
KINDS = {"bool": 1, "int": 2, "float": 3, "str": 4, "size": 5, "duration": 6, "path": 7,
         "resource": 8, "int_list": 9, "float_list": 10, "str_list": 11, "condition": 12,
         "tree": 14}
POLICIES = {None: 0, "block": 1, "pop": 2, "reject": 3, "fault": 4, "latest": 5, "async_buffer": 6}
_PRECEDING_COUNT = 0xffffffff
_CAPACITY_MAX = 65536


class ConditionType:
    """Conditions of ports: IOSpec.condition(ConditionType.NONE)."""
    NONE = "none"
    MESSAGE_AVAILABLE = "message_available"
    DOWNSTREAM_MESSAGE_AFFORDABLE = "downstream_affordable"


class IOSpec:
    """A port of an operator."""
    ANY_SIZE = -1
    SIZE_ONE = 1
    PRECEDING_COUNT = 0

    def __init__(self, name, direction, size, policy, type, optional):
        self.name = name
        self.direction = direction  # enum frag_dir
        self.type = type
        self.flags = 2 if optional or direction == 2 else 0
        self.capacity = 0
        self.policy = policy
        self.min_size = 0
        if size == IOSpec.ANY_SIZE:
            self.flags |= 1
        elif size == IOSpec.PRECEDING_COUNT:
            self.min_size = _PRECEDING_COUNT
        elif size is not None:
            self.capacity = size
            self.min_size = size if direction == 1 else 0

    def condition(self, kind, *, min_size=None):
        """Replaces the port's default condition, or removes it (ConditionType.NONE)."""
        if kind == ConditionType.NONE:
            self.flags |= 4
        elif min_size is not None:
            self.min_size = min_size
        return self

    def queue_policy(self, capacity=1, policy="block"):
        self.capacity = capacity
        self.policy = policy
        return self

    def row(self):
        if self.policy not in POLICIES:
            raise ValueError("port %s: %r is no policy; valid: %s"
                             % (self.name, self.policy, ", ".join(filter(None, POLICIES))))
        for key, number in (("capacity", self.capacity), ("min_size", self.min_size)):
            if isinstance(number, int) and not 0 <= number <= _PRECEDING_COUNT:
                raise ValueError("port %s has %s %s; give 1 to %d"
                                 % (self.name, key, number, _CAPACITY_MAX))
        try:
            type = type_of(self.type)
        except TypeError as error:
            raise TypeError("port %s: %s" % (self.name, error)) from None
        return (self.name, self.direction, type, self.flags, self.capacity,
                POLICIES[self.policy], self.min_size)


def _kind_of(default):
    if hasattr(default, "_kind"):  # a condition or a resource
        return default._kind
    for kind, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str")):
        if isinstance(default, kind):
            return name
    if isinstance(default, list) and default:
        for kind, name in ((bool, "tree"), (int, "int_list"),
                           (float, "float_list"), (str, "str_list")):
            if all(isinstance(x, kind) for x in default):
                return name
    return "tree"


class Param:
    """A parameter of an operator."""

    def __init__(self, name, default, headline, kind, dynamic, minimum, maximum, choices):
        self.name = name
        self.default = default
        self.headline = headline or None
        self._is_kind_given = kind is not None
        self.kind = kind or ("str" if default in (REQUIRED, None) else _kind_of(default))
        self.flags = (
    1 if default is REQUIRED else 2 if default is None else 0) | (
        4 if dynamic else 0)
        self.minimum = minimum
        self.maximum = maximum
        self.choices = choices
        if self.kind not in KINDS:
            raise ValueError("parameter %s: %r is no kind; valid: %s"
                             % (name, self.kind, ", ".join(KINDS)))

    def accept(self, value):
        """A value that a program gives decides about the kind where the declaration does not."""
        if not self._is_kind_given and self.default in (REQUIRED, None) and value is not None:
            self.kind = _kind_of(value)

    def row(self):
        number, real, text = 0, 0.0, None
        if self.default is not REQUIRED and self.default is not None:
            if self.kind in ("bool", "int", "size", "duration"):
                number = int(self.default)
            elif self.kind == "float":
                real = float(self.default)
            elif self.kind in ("str", "path"):
                text = self.default
            else:
                import json
                text = json.dumps(self.default)
        bounded = self.minimum is not None or self.maximum is not None
        return (self.name, KINDS[self.kind], number, real, text, self.headline, self.flags,
                float(self.minimum if self.minimum is not None else -1.7e308) if bounded else 0.0,
                float(self.maximum if self.maximum is not None else 1.7e308) if bounded else 0.0,
                tuple(self.choices) if self.choices else None)


class OperatorSpec:
    """What setup() declares."""

    def __init__(self, fragment=None):
        self.fragment = fragment
        self.inputs = {}
        self.outputs = {}
        self.params = {}

    def input(self, name="in", *, size=None, policy=None, type=None, optional=False):
        """Declares an input. size: messages for a tick, or IOSpec.ANY_SIZE: a multi-receiver."""
        self.inputs[name] = IOSpec(name, 1, size, policy, type, optional)
        return self.inputs[name]

    def output(self, name="out", *, size=None, type=None):
        self.outputs[name] = IOSpec(name, 2, size, None, type, True)
        return self.outputs[name]

    def param(self, name, default_value=REQUIRED, headline="", description="", kind=None, *,
              dynamic=False, min=None, max=None, choices=None):
        """Declares a parameter, which is an attribute of the operator from initialize on."""
        del description
        self.params[name] = Param(name, default_value, headline, kind, dynamic, min, max, choices)

    def rows(self):
        """The tables, as the extension takes them."""
        ports = [port.row() for port in [*self.inputs.values(), *self.outputs.values()]]
        return tuple(ports), tuple(param.row() for param in self.params.values())


class Scheduler:
    """The scheduler of a fragment: Scheduler("event_based", worker_thread_number=2)."""

    def __init__(self, type, **params):
        self.type = type
        self.params = params

    def declaration(self):
        return {"type": self.type, **{k: v for k, v in self.params.items() if v is not None}}
