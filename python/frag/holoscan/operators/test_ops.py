# SPDX-License-Identifier: Apache-2.0
"""holoscan.operators.test_ops: one value of a type a tick, and the type of what arrives."""
from .. import _log
from .._operator import Operator

__all__ = ["DataTypeRxTestOp", "DataTypeTxTestOp"]

_VALUES = {"bool": True, "float": 1.0, "double": 1.0, "std::string": "test",
           "std::complex<float>": 1 + 1j, "std::complex<double>": 1 + 1j, "std::nullptr_t": None,
           "std::unordered_map<std::string, std::string>": {"key1": "value1", "key2": "value2"},
           **{"int%d_t" % bits: -1 for bits in (8, 16, 32, 64)},
           **{"uint%d_t" % bits: 1 for bits in (8, 16, 32, 64)}}


def _inside(name, template):
    """What stands in "template<...>"; None: it is another type."""
    return name[len(template) + 1:-1] if name.startswith(template + "<") else None


def _value(name):
    inner = _inside(name, "std::shared_ptr")
    if inner is not None:
        return _value(inner)
    inner = _inside(name, "std::vector")
    if inner is not None:
        return [_value(inner)] * 3
    if name not in _VALUES:
        raise RuntimeError("data_type %r is not known" % name)
    return _VALUES[name]


class DataTypeTxTestOp(Operator):
    def __init__(self, fragment, *args, data_type="double", name="data_type_tx_test_op"):
        self.data_type = data_type
        super().__init__(fragment, *args, name=name)

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        op_output.emit(_value(self.data_type), "out", self.data_type)


class DataTypeRxTestOp(Operator):
    def __init__(self, fragment, *args, name="data_type_rx_test_op"):
        super().__init__(fragment, *args, name=name)

    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        _log.info("Received message of type: %s", type(op_input.receive("in")).__name__)
