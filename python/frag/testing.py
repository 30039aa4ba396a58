# SPDX-License-Identifier: Apache-2.0
"""Unit tests of operators, without an application: feed, tick, take.

    harness = Harness(Scale, factor=3.0)
    harness.feed(2.0, "in")
    harness.tick()
    assert harness.take("out") == 6.0
"""
import json

from . import _frag
from ._failure import Error, forget, last_exception
from ._operator import _Placed, op_type
from ._types import type_of


class Harness:
    """One operator of a class, on the calling thread; each port has a queue of 64 messages."""

    def __init__(self, cls, *args, **params):
        def make(fragment, name, values):
            operator._set_params(values)
            return operator

        operator = cls(_Placed("harness"), *args, name="op", **params)
        self.operator = operator
        self._inputs = {name: type_of(port.type) for name, port in operator.spec.inputs.items()}
        self._outputs = list(operator.spec.outputs)
        pairs = [(k, v if isinstance(v, str) else json.dumps(v))
                 for k, v in operator._parameters().items()]
        self._harness = self._checked(
    _frag.Harness, op_type(
        cls, "op", operator.spec, make), pairs)

    @staticmethod
    def _checked(function, *args):
        """Raises the exception of the operator itself, where there is one."""
        forget()
        try:
            return function(*args)
        except Error as error:
            raise (last_exception() or error) from error

    def _port(self, name, names):
        if name is None and len(names) == 1:
            return next(iter(names))
        if name is None:
            raise ValueError("name the port: %s" % ", ".join(names))
        return name

    def feed(self, value, port=None):
        """Puts a value into the queue of an input."""
        name = self._port(port, self._inputs)
        self._harness.feed(name, value, self._inputs.get(name.split(":")[0]))

    def tick(self):
        """Runs compute once. Returns whether it was not the last tick; raises what compute raises."""
        return self._checked(self._harness.tick) == 0

    def ready(self):
        """Whether the conditions of the operator allow a tick now."""
        return self._harness.ready()

    def take(self, port=None, default=None):
        """Takes the oldest value that was emitted; `default` where there is none."""
        found, value = self._harness.take(self._port(port, self._outputs))
        return value if found else default

    def take_all(self, port=None):
        values = []
        while True:
            found, value = self._harness.take(self._port(port, self._outputs))
            if not found:
                return values
            values.append(value)

    def advance(self, seconds):
        """Sets the operator's clock forward, which begins at 0."""
        self._harness.advance(round(seconds * 1e9))

    def close(self):
        """Calls stop."""
        self._harness.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
