# SPDX-License-Identifier: Apache-2.0
"""The names of types that emit() and receive() know by emitter_name."""

_SCALARS = ["bool", "float", "double", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
            "uint16_t", "uint32_t", "uint64_t", "std::complex<float>", "std::complex<double>",
            "std::string"]


class EmitterReceiverRegistry:
    """Names of types."""

    def __init__(self):
        self.names = ["PyObject", "holoscan::Tensor", "holoscan::TensorMap",
                      "holoscan::gxf::Entity", "CloudPickleSerializedObject", "std::nullptr_t",
                      "std::unordered_map<std::string, std::string>"]
        for name in _SCALARS:
            vector = "std::vector<%s>" % name
            self.names += [name, vector, "std::vector<%s>" % vector]
        self.names += ["std::shared_ptr<%s>" % name for name in self.names[5:]]

    def registered_types(self):
        return list(self.names)

    def add(self, *names):
        """Modules of operators add their own."""
        self.names += [name for name in names if name not in self.names]


_registry = EmitterReceiverRegistry()


def registry():
    return _registry
