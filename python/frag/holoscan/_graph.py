# SPDX-License-Identifier: Apache-2.0
"""The graph that a fragment, or an application of several, composed."""


class Flow:
    """A flow between ports of operators, or of operators of fragments."""
    __slots__ = ("source", "output", "target", "input", "connector", "is_execution")

    def __init__(self, source, output, target, input, connector=None, is_execution=False):
        self.source = source
        self.output = output
        self.target = target
        self.input = input
        self.connector = connector
        self.is_execution = is_execution


class _Graph:
    """Nodes, and the flows between them."""
    __slots__ = ("context", "_nodes", "_flows")

    def __init__(self, nodes=None, flows=None):
        self.context = None
        self._nodes = [] if nodes is None else nodes
        self._flows = [] if flows is None else flows

    def add_node(self, node):
        if node not in self._nodes:
            self._nodes.append(node)

    def add_flow(self, node_u, node_v, port_map):
        """port_map: a dict from outputs to sets of inputs."""
        self.add_node(node_u)
        self.add_node(node_v)
        self._flows += [Flow(node_u, output, node_v, name)
                        for output, names in port_map.items() for name in names]

    def remove_node(self, node):
        self._nodes.remove(node)
        self._flows[:] = [f for f in self._flows if node not in (f.source, f.target)]

    def get_nodes(self):
        return list(self._nodes)

    def find_node(self, name):
        return next((node for node in self._nodes if node.name == name), None)

    def get_next_nodes(self, node):
        return list(dict.fromkeys(f.target for f in self._flows if f.source is node))

    def get_previous_nodes(self, node):
        return list(dict.fromkeys(f.source for f in self._flows if f.target is node))

    def is_root(self, node):
        return not self.get_previous_nodes(node)

    def is_leaf(self, node):
        return not self.get_next_nodes(node)

    def get_root_nodes(self):
        return [node for node in self._nodes if self.is_root(node)]

    def get_port_map(self, node_u, node_v):
        """The connections of two nodes: a dict from outputs to sets of inputs."""
        ports = {}
        for flow in self._flows:
            if flow.source is node_u and flow.target is node_v:
                ports.setdefault(flow.output, set()).add(flow.input)
        return ports

    def get_port_connectivity_maps(self):
        """Two dicts: from each input to its outputs, from each output to its inputs.

        The flows of an input that takes any number of them have numbers: "rx.receivers:0".
        """
        inputs, outputs, counts = {}, {}, {}
        for flow in self._flows:
            output = _full_name(flow.source, flow.output)
            name = _full_name(flow.target, flow.input)
            if _takes_any(flow.target, flow.input):
                counts[name] = number = counts.get(name, -1) + 1
                name = "%s:%d" % (name, number)
            inputs.setdefault(name, []).append(output)
            outputs.setdefault(output, []).append(name)
        return tuple({name: sorted(ports[name]) for name in sorted(ports)}
                     for ports in (inputs, outputs))

    def port_map_description(self):
        lines = []
        for title, ports in zip(("input_to_output", "output_to_input"),
                                self.get_port_connectivity_maps()):
            lines.append(title + (":" if ports else ": ~"))
            for name, others in ports.items():
                lines.append("  %s:" % name)
                lines += ["    - " + other for other in others]
        return "\n".join(lines)


def _full_name(node, port):
    """"operator.port", behind the name of its fragment if it has one; or "fragment.port"."""
    fragment = node.fragment.name if hasattr(node, "_spec") and node.fragment else ""
    return "%s%s.%s" % (fragment and fragment + ".", node.name, port)


def _takes_any(node, port):
    spec = getattr(node, "_spec", None)
    return spec is not None and port in spec.inputs and spec.inputs[port].queue_size < 0


class OperatorGraph(_Graph):
    """The operators of a fragment."""
    __slots__ = ()


class OperatorFlowGraph(OperatorGraph):
    __slots__ = ()


class FragmentGraph(_Graph):
    """The fragments of an application."""
    __slots__ = ()


class FragmentFlowGraph(FragmentGraph):
    __slots__ = ()


def in_order(nodes, flows):
    """The nodes in topological order; what loops hold comes in its own."""
    left, done, result = list(nodes), set(), []
    before = {}
    for flow in flows:
        before.setdefault(flow.target, set()).add(flow.source)
    while left:
        ready = next((n for n in left if before.get(n, set()) <= done | {n}), left[0])
        left.remove(ready)
        done.add(ready)
        result.append(ready)
    return result
