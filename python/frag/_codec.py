# SPDX-License-Identifier: Apache-2.0
"""How objects that are no values of frag's leave their process.

Plain data (None, bool, int, float, complex, str, bytes, lists, tuples and dicts of these) needs
nothing. A class has a codec of its own, by register_codec(), or allow_pickle() lets everything
pass that pickle takes; both ends must do the same.
"""
import struct

_codecs = {}  # class -> (name, encode)
_decoders = {}  # name -> decode
_pickles = False
_without = set()  # classes that are types of ports, and had no codec then


def register_codec(cls, encode, decode, name=None):
    """Lets objects of a class travel between processes: encode(object) -> bytes, and back."""
    if cls in _without:
        raise ValueError("%s is the type of a port already; register its codec before"
                         % cls.__qualname__)
    name = name or "%s.%s" % (cls.__module__, cls.__qualname__)
    _codecs[cls] = (name, encode)
    _decoders[name] = decode


def declare(cls):
    """Says whether objects of a class can leave their process; that stays so."""
    if cls in _codecs or _pickles:
        return True
    _without.add(cls)
    return False


def allow_pickle():
    """Lets every object travel by pickle. Whoever sends to this process can then run code in it."""
    global _pickles
    _pickles = True


def _put(out, tag, data):
    out.append(tag + struct.pack("<I", len(data)))
    out.append(data)


def _encode(value, out):
    kind = type(value)
    if value is None:
        _put(out, b"N", b"")
    elif kind is bool:
        _put(out, b"B", b"\1" if value else b"\0")
    elif kind is int:
        _put(out, b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    elif kind is float:
        _put(out, b"F", struct.pack("<d", value))
    elif kind is complex:
        _put(out, b"C", struct.pack("<dd", value.real, value.imag))
    elif kind is str:
        _put(out, b"S", value.encode("utf-8", "surrogatepass"))
    elif kind is bytes:
        _put(out, b"Y", value)
    elif kind in (list, tuple, dict):
        items = [x for pair in value.items() for x in pair] if kind is dict else value
        out.append(b"LTD"[(list, tuple, dict).index(kind)].to_bytes(1, "little"))
        out.append(struct.pack("<I", len(items)))
        for item in items:
            _encode(item, out)
    elif kind in _codecs:
        name, encode = _codecs[kind]
        _put(out, b"O", name.encode())
        _put(out, b"Y", encode(value))
    elif _pickles:
        import pickle
        _put(out, b"P", pickle.dumps(value))
    else:
        raise TypeError("an object of %s has no codec and cannot leave this process; "
                        "frag.register_codec() gives it one" % kind.__qualname__)


def encode(value):
    out = []
    _encode(value, out)
    return b"".join(out)


class _Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise ValueError("too short")
        self.at += count
        return self.data[self.at - count:self.at]

    def sized(self):
        return self.take(struct.unpack("<I", self.take(4))[0])


def _object(reader):
    decode = _decoders[reader.sized().decode()]
    if reader.take(1) != b"Y":
        raise ValueError("no bytes")
    return decode(reader.sized())


def _pickled(reader):
    if not _pickles:
        raise ValueError("pickle is not allowed here; see frag.allow_pickle()")
    import pickle
    return pickle.loads(reader.sized())


_READ = {
    b"N": lambda r: (r.sized(), None)[1],
    b"B": lambda r: r.sized() == b"\1",
    b"I": lambda r: int.from_bytes(r.sized(), "little", signed=True),
    b"F": lambda r: struct.unpack("<d", r.sized())[0],
    b"C": lambda r: complex(*struct.unpack("<dd", r.sized())),
    b"S": lambda r: r.sized().decode("utf-8", "surrogatepass"),
    b"Y": lambda r: r.sized(),
    b"O": _object,
    b"P": _pickled,
}


def _decode(reader, depth):
    tag = reader.take(1)
    if tag in _READ:
        return _READ[tag](reader)
    if tag not in (b"L", b"T", b"D") or depth == 0:
        raise ValueError("unknown")
    count = struct.unpack("<I", reader.take(4))[0]
    if count > len(reader.data) - reader.at:
        raise ValueError("too short")
    items = [_decode(reader, depth - 1) for _ in range(count)]
    if tag == b"D":
        return dict(zip(items[::2], items[1::2]))
    return items if tag == b"L" else tuple(items)


def decode(data):
    return _decode(_Reader(data), 64)
