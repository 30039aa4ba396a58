# SPDX-License-Identifier: Apache-2.0
"""Classes as types of frag's: scalars, dataclasses as structs, and any others as objects."""
from . import _codec, _frag

_SCALARS = {bool: "bool", int: "i64", float: "f64", str: "string", bytes: "bytes",
            complex: "complex128"}
_PLAIN = (object, list, dict, tuple, set, type(None))
_names = {}  # class of a struct -> name of its type
_objects = {}  # any other class of a port -> the same


def _name(cls):
    from ._operator import module_name
    name = "%s.%s" % (module_name(cls.__module__), cls.__qualname__.replace("<locals>.", ""))
    return name[-61:].lstrip("._-0123456789")


def _field(cls, name, hint):
    """(name, type, count) of a field: float, Pose, Annotated[int, "u8"], Annotated[list, "f32", 3]."""
    marks = getattr(hint, "__metadata__", ())
    count = marks[1] if len(marks) > 1 else 1
    type = marks[0] if marks else _SCALARS.get(hint) or _names.get(hint)
    if type is None and hasattr(hint, "__dataclass_fields__"):
        struct(hint)
        type = _names[hint]
    if not isinstance(type, str) or type in ("string", "bytes") or \
            not isinstance(count, int) or not 0 < count < 2**32:
        raise TypeError("%s.%s: a field of a struct is a bool, int, float, complex, another "
                        "dataclass, or Annotated[..., type of frag's, elements], not %r"
                        % (cls.__qualname__, name, hint))
    return name, type, count


def struct(cls=None, *, name=None):
    """A dataclass whose instances are values of a struct of frag's, as operators in C have it.

    Fields are laid out in their order, as C does. name: of the type; left out: "module.Class".
    """
    if cls is None:
        return lambda cls: struct(cls, name=name)
    if cls in _names:
        return cls
    if not hasattr(cls, "__dataclass_fields__"):
        import dataclasses
        cls = dataclasses.dataclass(cls)
    import typing
    hints = typing.get_type_hints(cls, include_extras=True)
    rows = tuple(_field(cls, field, hints[field]) for field in cls.__dataclass_fields__)
    name = name or _name(cls)
    _frag.class_register(cls, name, rows, True)
    _names[cls] = name
    return cls


def type_of(cls):
    """The name of a port's type: of a class; a name and None stay what they are."""
    if cls is None or isinstance(cls, str):
        return cls
    if not isinstance(cls, type):
        raise TypeError("%r is no type of frag's; leave it out, or name one" % (cls,))
    known = _SCALARS.get(cls) or _names.get(cls) or _objects.get(cls)
    if known is not None:
        return known
    if hasattr(cls, "__dlpack__"):
        return "tensor"
    if cls in _PLAIN:
        return "python"
    if hasattr(cls, "__dataclass_fields__"):
        try:
            return _names[struct(cls)]
        except TypeError:
            pass  # an object then, as any other
    name = _name(cls)
    _frag.class_register(cls, name, None, _codec.declare(cls))
    _objects[cls] = name
    return name
