# SPDX-License-Identifier: Apache-2.0
"""MetadataDictionary: what travels with messages."""
from ._enums import Enum


class MetadataPolicy(Enum):
    """What happens to a key that is there already."""
    REJECT = 0
    INPLACE_UPDATE = 1
    UPDATE = 2
    RAISE = 3
    DEFAULT = 4


_MISSING = object()
_CASTS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _cast(value, dtype=None):
    """A value as C++ would hold it: sequences become lists."""
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [_cast(x, dtype) for x in value]
    if dtype is not None:
        kind = getattr(dtype, "kind", None) or __import__("numpy").dtype(dtype).kind
        return _CASTS.get(kind, lambda x: x)(value)
    return value


class MetadataDictionary:
    """A dictionary with a policy for keys that are there already."""
    __slots__ = ("_items", "_policy")

    def __init__(self):
        self._items = {}
        self._policy = MetadataPolicy.RAISE

    @property
    def policy(self):
        return self._policy

    @policy.setter
    def policy(self, policy):
        self._policy = MetadataPolicy(policy)

    def __contains__(self, key):
        return key in self._items

    has_key = __contains__

    def __len__(self):
        return len(self._items)

    size = __len__

    def __getitem__(self, key):
        return self._items[key]

    def __setitem__(self, key, value):
        self.set(key, value)

    def __delitem__(self, key):
        del self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __copy__(self):
        copy = MetadataDictionary()
        copy._items = dict(self._items)
        copy._policy = self._policy
        return copy

    def __deepcopy__(self, memo):
        import copy as module
        copy = self.__copy__()
        copy._items = module.deepcopy(self._items, memo)
        return copy

    def __repr__(self):
        return repr(self._items)

    def set(self, key, value, dtype=None, cast_to_cpp=False):
        """Sets a key. cast_to_cpp: the value becomes plain, of this dtype if one is given."""
        self._items[key] = _cast(value, dtype) if cast_to_cpp else value

    def get(self, key, value=None):
        return self._items.get(key, value)

    def pop(self, key, default=_MISSING):
        return self._items.pop(key) if default is _MISSING else self._items.pop(key, default)

    def erase(self, key):
        """Returns whether it was there."""
        return self._items.pop(key, _MISSING) is not _MISSING

    def clear(self):
        self._items.clear()

    def keys(self):
        return list(self._items)

    def values(self):
        return list(self._items.values())

    def items(self):
        return list(self._items.items())

    def insert(self, other):
        """Adds the keys that are missing here."""
        self._items = {**other._items, **self._items}

    def merge(self, other):
        """Moves the keys that are missing here out of the other one."""
        for key in [key for key in other._items if key not in self._items]:
            self._items[key] = other._items.pop(key)

    def update(self, other):
        """Adds the keys of the other one by the policy."""
        self._update(other._items if isinstance(other, MetadataDictionary) else other)

    def _update(self, items):
        if self._policy in (MetadataPolicy.RAISE, MetadataPolicy.DEFAULT):
            known = [key for key in items if key in self._items]
            if known:
                raise RuntimeError("duplicate metadata keys: %s; give the operator another "
                                   "metadata_policy" % ", ".join(map(repr, known)))
            self._items.update(items)
        elif self._policy == MetadataPolicy.REJECT:
            self._items = {**items, **self._items}
        else:
            self._items.update(items)

    def swap(self, other):
        self._items, other._items = other._items, self._items

    def type_dict(self):
        return {key: type(value).__name__ for key, value in self._items.items()}
