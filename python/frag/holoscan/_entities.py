# SPDX-License-Identifier: Apache-2.0
"""Files of recorded tensors, as Holoscan's recorder writes them: NAME.gxf_index, NAME.gxf_entities.

The index has an entry for each message: its time, its size, and where it begins in the other file.
A message is a header and its tensors, each with a header, its name, its shape and its bytes.
(The structs are those of scripts/gxf_entity_codec.py of Holoscan's SDK.)
"""
import os
import struct

from ._gpu import has_gpu

_INDEX = struct.Struct("=QQQ")  # nanoseconds, size, offset
_ENTITY = struct.Struct("=QIQIQQ")  # size, checksum, number, flags, count of components, reserved
_COMPONENT = struct.Struct("=QQQQ")  # size, id of the type, length of the name
_TENSOR = struct.Struct("=iiQI8i8Q")  # storage, type, bytes of an element, rank, sides, strides
_TENSOR_ID = (0x377501d69abf447c, 0xa6170114d4f33ab8)
_TYPES = (None, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float32", "float64")
_DEVICE, _SYSTEM = 1, 2  # memory of a GPU, and of the system
_SIZE_MAX = 1 << 30
_COMPONENTS_MAX = 1024


def paths(directory, basename):
    stem = os.path.join(directory, basename)
    return stem + ".gxf_index", stem + ".gxf_entities"


def _create(path):
    """Opens an empty new file in place of what has the name, as frag_output_open does: a link that
    somebody planted is replaced. What is no regular file, such as a pipe, is written as it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        return open(path, "wb")
    draft = os.path.join(os.path.dirname(path), ".frag-draft-" + os.urandom(8).hex())
    file = open(draft, "xb")
    try:
        os.rename(draft, path)
    except OSError:
        file.close()
        os.unlink(draft)
        raise
    return file


class Writer:
    """Writes messages. Raises OSError, and ValueError for what no file can hold."""

    def __init__(self, directory, basename):
        index, entities = paths(directory, basename)
        self._index = _create(index)
        self._entities = _create(entities)
        self._offset = self._count = 0

    def write(self, tensors, time_ns, flush=False):
        """tensors: a dict from names to arrays of numpy or CuPy."""
        parts = [_ENTITY.pack(0, 0, self._count, 0, len(tensors), 0)]
        for name, array in tensors.items():
            parts += _component(name, array)
        size = sum(map(len, parts))
        self._entities.write(b"".join(parts))
        self._index.write(_INDEX.pack(time_ns, size, self._offset))
        self._offset += size
        self._count += 1
        if flush:
            self._entities.flush()
            self._index.flush()

    def close(self):
        self._entities.close()
        self._index.close()


def _component(name, array):
    if array.dtype.name not in _TYPES or array.ndim > 8:
        raise ValueError("tensor '%s' is %s of %d dimensions, and a file holds %s of 8 at most"
                         % (name, array.dtype, array.ndim, ", ".join(_TYPES[1:])))
    rest = 8 - array.ndim
    data = array.tobytes()  # in C's order
    strides, step = [], array.itemsize
    for side in array.shape[::-1]:
        strides.insert(0, step)
        step *= side
    text = name.encode()
    storage = _DEVICE if hasattr(array, "__cuda_array_interface__") else _SYSTEM
    return (_COMPONENT.pack(0, *_TENSOR_ID, len(text)), text,
            _TENSOR.pack(storage, _TYPES.index(array.dtype.name), array.itemsize, array.ndim,
                         *array.shape, *[1] * rest, *strides, *[0] * rest), data)


class Reader:
    """Reads messages in their order. Raises OSError, and ValueError for what is damaged."""

    def __init__(self, directory, basename):
        index, entities = paths(directory, basename)
        with open(index, "rb") as file:
            data = file.read()
        self._entries = list(_INDEX.iter_unpack(data[:len(data) // _INDEX.size * _INDEX.size]))
        self._file = open(entities, "rb")

    def __len__(self):
        return len(self._entries)

    def time_ns(self, number):
        return self._entries[number][0]

    def read(self, number):
        """The tensors of a message: a dict from names to arrays."""
        _, size, offset = self._entries[number]
        if not _ENTITY.size <= size <= _SIZE_MAX:
            raise ValueError("message %d says that it has %d bytes" % (number, size))
        self._file.seek(offset)
        data = bytearray(self._file.read(size))
        try:
            return _tensors(data)
        except (struct.error, ValueError, IndexError) as error:
            raise ValueError("message %d of %s is damaged: %s" % (number, self._file.name, error))

    def close(self):
        self._file.close()


def _placed(array, storage):
    """On the GPU again if the recorded tensor was there, where there are one and CuPy."""
    if storage == _DEVICE and has_gpu():
        try:
            import cupy
            return cupy.asarray(array)
        except ImportError:
            pass
    return array


def _tensors(data):
    import numpy
    count = _ENTITY.unpack_from(data)[4]
    if count > _COMPONENTS_MAX:
        raise ValueError("it says that it has %d components" % count)
    tensors, at = {}, _ENTITY.size
    for _ in range(count):
        _, *kind, length = _COMPONENT.unpack_from(data, at)
        at += _COMPONENT.size
        if tuple(kind) != _TENSOR_ID or length > len(data) - at:
            raise ValueError("a component is no tensor")
        name = data[at:at + length].decode()
        at += length
        storage, kind, itemsize, rank, *sides = _TENSOR.unpack_from(data, at)
        at += _TENSOR.size
        shape = sides[:rank]
        if not 0 < kind < len(_TYPES) or rank > 8 or min(shape, default=0) < 0:
            raise ValueError("tensor '%s' has no type or shape that is known" % name)
        dtype = numpy.dtype(_TYPES[kind])
        total = 1
        for side in shape:
            total *= side
        if dtype.itemsize != itemsize or total * itemsize > len(data) - at:
            raise ValueError("tensor '%s' is longer than the message" % name)
        tensors[name] = _placed(numpy.frombuffer(data, dtype, total, at).reshape(shape), storage)
        at += total * itemsize
    return tensors
