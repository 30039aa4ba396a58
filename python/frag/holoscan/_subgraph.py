# SPDX-License-Identifier: Apache-2.0
"""Subgraphs: operators that are made together, and the names of their ports for others."""
from . import _log
from ._component import check_owner
from ._enums import make
from ._operator import INPUT_EXEC, OUTPUT_EXEC, OperatorBase

InterfacePortType = make("InterfacePortType", "DATA EXECUTION")


def fail(text, *args):
    """Logs an error and raises it."""
    text = text % args
    _log.error("%s", text)
    raise RuntimeError(text)


class InterfacePort:
    """A name of a subgraph for a port inside."""

    def __init__(self, operator, port, is_input, port_type):
        self.mappings = [InterfacePortMapping(operator, port)]
        self.is_input = is_input
        self.port_type = port_type

    def __len__(self):
        return len(self.mappings)


class InterfacePortMapping:
    def __init__(self, internal_operator, internal_port_name):
        self.internal_operator = internal_operator
        self.internal_port_name = internal_port_name


class Subgraph:
    """Operators that are made together; their names begin with its own."""

    def __init__(self, fragment, name=None, *, instance_name=None):
        check_owner(fragment, "Subgraph")
        if name is not None and instance_name is not None:
            raise ValueError("Cannot specify both 'name' and 'instance_name'; the latter is "
                             "deprecated")
        if instance_name is not None:
            _deprecated(3)
            name = instance_name
        if name is None:
            raise ValueError("A 'name' argument must be provided to a Subgraph")
        self._parent = fragment if isinstance(fragment, Subgraph) else None
        self._name = name if self._parent is None else "%s_%s" % (fragment.name, name)
        self.fragment = fragment.fragment if self._parent is not None else fragment
        self._ports = {}
        self._operators = []
        self._is_composed = False
        if not self._is_composed:
            self.compose()
            self._is_composed = True

    def compose(self):
        pass

    @property
    def name(self):
        return self._name

    @property
    def instance_name(self):
        _deprecated(3)
        return self._name

    def is_composed(self):
        return self._is_composed

    def set_composed(self, composed):
        self._is_composed = composed

    def operators(self):
        return list(self._operators)

    def _qualify(self, op):
        """Puts the name of the subgraph before that of an operator, once."""
        prefix = self._name + "_"
        if op not in self._operators:
            self._operators.append(op)
            if op.name and not op.name.startswith(prefix):
                op._name = prefix + op.name

    def add_operator(self, op):
        self._qualify(op)
        self.fragment.add_operator(op)

    def add_flow(self, upstream, downstream, port_pairs=None, connector_type=None):
        for end in (upstream, downstream):
            if isinstance(end, OperatorBase):
                self.add_operator(end)
        self.fragment.add_flow(upstream, downstream, port_pairs, connector_type)

    def add_subgraph(self, subgraph):
        pass

    def set_dynamic_flows(self, op, func):
        self.add_operator(op)
        self.fragment.set_dynamic_flows(op, func)

    def add_data_logger(self, logger):
        self.fragment.add_data_logger(logger)

    def register_service(self, service, id=""):
        self.fragment.register_service(service, id)

    def config(self, *args):
        return self.fragment.config(*args)

    def config_keys(self):
        return self.fragment.config_keys()

    def from_config(self, key):
        return self.fragment.from_config(key)

    def kwargs(self, key):
        return self.fragment.kwargs(key)

    # Interface ports.

    def _expose(self, name, inner, port, is_input, port_type):
        if name in self._ports:
            fail("Interface port '%s' of subgraph '%s' already exists", name, self._name)
        if isinstance(inner, Subgraph):
            found = inner._ports.get(port or name)
            if found is None:
                fail("Interface port '%s' not found in subgraph '%s'", port or name, inner.name)
            if found.port_type != port_type:
                fail("Interface port '%s' of subgraph '%s' is %s interface port", port or name,
                     inner.name, "a data" if found.port_type == InterfacePortType.DATA
                     else "an execution")
            if is_input is not None and found.is_input != is_input:
                fail("Interface port '%s' of subgraph '%s' is an %s", port or name, inner.name,
                     "input" if found.is_input else "output")
            self._ports[name] = found
            return
        self.add_operator(inner)
        if port_type == InterfacePortType.DATA:
            if port is None:
                port = name
            if is_input is None:
                is_input = port in inner._spec.inputs
            ports = inner._spec.inputs if is_input else inner._spec.outputs
            if port not in ports:
                fail("Port '%s' not found among the %s ports of operator '%s'", port,
                     "input" if is_input else "output", inner.name)
        self._ports[name] = InterfacePort(inner, port, is_input, port_type)

    def add_interface_port(self, external_name, internal, internal_port=None, is_input=None):
        """Names a port of an operator or subgraph inside."""
        self._expose(external_name, internal, internal_port, is_input, InterfacePortType.DATA)

    def add_input_interface_port(self, external_name, internal, internal_port=None):
        self._expose(external_name, internal, internal_port, True, InterfacePortType.DATA)

    def add_output_interface_port(self, external_name, internal, internal_port=None):
        self._expose(external_name, internal, internal_port, False, InterfacePortType.DATA)

    def add_input_exec_interface_port(self, external_name, internal, internal_port=None):
        self._expose(external_name, internal, internal_port or INPUT_EXEC if isinstance(
            internal, OperatorBase) else internal_port, True, InterfacePortType.EXECUTION)

    def add_output_exec_interface_port(self, external_name, internal, internal_port=None):
        self._expose(external_name, internal, internal_port or OUTPUT_EXEC if isinstance(
            internal, OperatorBase) else internal_port, False, InterfacePortType.EXECUTION)

    def _of_type(self, port_type):
        return {k: v for k, v in self._ports.items() if v.port_type == port_type}

    def interface_ports(self):
        return self._of_type(InterfacePortType.DATA)

    def exec_interface_ports(self):
        return self._of_type(InterfacePortType.EXECUTION)

    def interface_port_names(self):
        return list(self.interface_ports())

    def _operator_port(self, ports, name):
        found = ports.get(name)
        if found is None:
            return None, ""
        return found.mappings[0].internal_operator, found.mappings[0].internal_port_name

    def get_interface_operator_port(self, port_name):
        return self._operator_port(self.interface_ports(), port_name)

    def get_exec_interface_operator_port(self, port_name):
        return self._operator_port(self.exec_interface_ports(), port_name)

    def _find(self, name):
        if name not in self._ports:
            fail("Interface port '%s' not found in subgraph '%s'. It has: %s", name, self._name,
                 ", ".join(self._ports) or "none")
        return self._operator_port(self._ports, name)

    def _choose(self, other, is_input):
        """The only port that a flow without ports can mean: one for data first."""
        kind = "input" if is_input else "output"
        data = [n for n, p in self.interface_ports().items() if p.is_input == is_input]
        execution = [n for n, p in self.exec_interface_ports().items() if p.is_input == is_input]
        if isinstance(other, OperatorBase) and not (
                other._spec.outputs if is_input else other._spec.inputs):
            data = data if not execution else []
        if len(data) == 1:
            return self._find(data[0])
        if len(data) > 1:
            fail("Subgraph '%s' has more than one data %s port; name one in port_pairs",
                 self._name, kind)
        if len(execution) > 1:
            fail("Subgraph '%s' has more than one execution %s port; name one in port_pairs",
                 self._name, kind)
        if not execution:
            fail("Subgraph '%s' has no data or execution interface ports for %s", self._name, kind)
        return self._find(execution[0])

    def __repr__(self):
        return "<holoscan.Subgraph: name:%s>" % self._name


def _deprecated(level):
    import warnings
    warnings.warn("instance_name is deprecated; use name", DeprecationWarning, stacklevel=level)
