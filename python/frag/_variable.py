# SPDX-License-Identifier: Apache-2.0
"""Shared variables: typed memory of an application that one operator writes and others read."""
from . import _frag


def context_of(operator):
    if operator._context is None:
        raise RuntimeError("variables are for callbacks, from initialize on")
    return operator._context


class Variable:
    """A shared variable, for the callbacks of the operator that has opened it.

    What get() returns and set() takes is a copy.
    """

    def __init__(self, operator, name, is_new):
        self.name = name
        self._context = context_of(operator)
        self._context._variable_open(name, is_new)

    def get(self, timeout=0.0):
        """What is published, as a Tensor. Waits so many seconds until something is; then None."""
        return self._context._variable_get(self.name, timeout)

    def set(self, value, timeout=0.0):
        """Writes an array, a text or bytes, and publishes it. Waits so many seconds for readers."""
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, (bytes, bytearray)):
            array = _frag.empty((len(value),), "uint8", None, None, -1)
            memoryview(array)[:] = value
            value = array
        self._context._variable_set(self.name, value, timeout)

    def wait(self, after=0, timeout=0.0):
        """The number of a publication that is newer than `after`, from 1; None: there is none."""
        return self._context._variable_wait(self.name, after, timeout)
