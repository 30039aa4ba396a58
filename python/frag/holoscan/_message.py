# SPDX-License-Identifier: Apache-2.0
"""Messages between operators: a value with its metadata, by reference inside a process."""
from ._tensor import Tensor, as_array

# Keys of metadata of frag: when a value was acquired and the names of its metadata; those of its
# metadata that no operator in C can read.
_STATED, _OTHERS = "holoscan", "holoscan-others"
_NAME_MAX = 63  # bytes of a key
_PLAIN = (bool, int, float, complex, str, bytes)


def clear_metadata(context):
    """Removes what the tick of frag has, but what execution flows carry ("holoscan.OPERATOR")."""
    for key in context._metadata_keys():
        if not key.startswith(_STATED + "."):
            context._metadata_erase(key)


def _is_plain(value):
    if type(value) is list:
        return bool(value) and all(map(_is_plain, value))
    return type(value) in _PLAIN and not (type(value) is str and "\0" in value)


class Message:
    """What travels: the object itself, and what was stated about it."""
    __slots__ = ("value", "metadata", "timestamp", "is_tensor_map")

    def __init__(self, value, metadata=None, timestamp=None, is_tensor_map=False):
        self.value = value
        self.metadata = metadata
        self.timestamp = timestamp
        self.is_tensor_map = is_tensor_map

    @classmethod
    def of_frag(cls, value, context):
        """What came as a value of frag, from an operator in C or as tensors of another process."""
        keys = context._metadata_keys()
        timestamp, metadata = "", None
        if _STATED in keys:
            timestamp, *names = context._metadata_get(_STATED)
            metadata = {key: context._metadata_get(key) for key in names if key in keys}
            if _OTHERS in keys:
                metadata.update(context._metadata_get(_OTHERS).value)
        if keys:
            clear_metadata(context)
        timestamp = int(timestamp) if timestamp else None
        if hasattr(value, "__dlpack__"):
            value = {"": value}
        if type(value) is dict and value and all(hasattr(x, "__dlpack__") for x in value.values()):
            return cls({key: Tensor.as_tensor(x) for key, x in value.items()}, metadata, timestamp,
                       True)
        return cls(value, metadata, timestamp)

    def to_frag(self, context):
        """The value for an operator in C, or for tensors that leave this process uncopied.

        What was stated about it becomes metadata of frag.
        """
        plain, others = {}, {}
        for key, value in (self.metadata or {}).items():
            fits = 0 < len(key.encode()) <= _NAME_MAX and _is_plain(value)
            (plain if fits else others)[key] = value
        if plain or others or self.timestamp is not None:
            time = "" if self.timestamp is None else str(self.timestamp)
            context._metadata_set(_STATED, [time, *plain])
        if others:
            context._metadata_set(_OTHERS, Message(others))
        for key, value in plain.items():
            context._metadata_set(key, value)
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
