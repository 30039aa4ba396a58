# SPDX-License-Identifier: Apache-2.0
"""Messages between operators: a value with its metadata, by reference inside a process."""
from ._tensor import Tensor, as_array


class Message:
    """What travels: the object itself, and what was stated about it."""
    __slots__ = ("value", "metadata", "timestamp", "is_tensor_map")

    def __init__(self, value, metadata=None, timestamp=None, is_tensor_map=False):
        self.value = value
        self.metadata = metadata
        self.timestamp = timestamp
        self.is_tensor_map = is_tensor_map

    @classmethod
    def of_frag(cls, value):
        """The message of an operator in C."""
        if hasattr(value, "__dlpack__"):
            value = {"": value}
        if type(value) is dict and value and all(hasattr(x, "__dlpack__") for x in value.values()):
            return cls({key: Tensor.as_tensor(x) for key, x in value.items()}, is_tensor_map=True)
        return cls(value)

    def to_frag(self):
        """The value for an operator in C."""
        return self.value

    def state(self):
        """What another process makes it of."""
        value = self.value
        if self.is_tensor_map:
            value = {key: as_array(tensor) for key, tensor in value.items()}
        elif isinstance(value, Tensor):
            value = as_array(value)
        return value, self.metadata, self.timestamp, self.is_tensor_map

    @classmethod
    def of_state(cls, state):
        value, metadata, timestamp, is_tensor_map = state
        if is_tensor_map:
            value = {key: Tensor.as_tensor(array) for key, array in value.items()}
        return cls(value, metadata, timestamp, is_tensor_map)
