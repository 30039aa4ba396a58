# SPDX-License-Identifier: Apache-2.0
"""Runs what was composed: a graph of frag, whose operators call those of the program."""
import frag
from frag import _run as frag_run
from frag._application import _valid

from . import _environment, _log
from ._component import ConditionType, SchedulingStatusType
from ._data_logger import listen
from ._contexts import ExecutionContext, InputContext, OutputContext
from ._gpu import has_gpu
from ._graph import in_order
from ._metadata import MetadataPolicy
from ._operator import INPUT_EXEC, OUTPUT_EXEC, OperatorStatus, check_sizes
from ._spec import IOSpec
from .conditions import AsynchronousCondition
from .resources import CudaStreamPool, RealtimeClock

_ANY = IOSpec.ANY_SIZE
_STATUS = {"idle": OperatorStatus.IDLE, "ticking": OperatorStatus.TICKING,
           "done": OperatorStatus.IDLE, "failed": OperatorStatus.IDLE}
_KEY = "holoscan."  # of metadata that execution flows carry
_DEFAULTS = {"pop": IOSpec.QueuePolicy.POP, "reject": IOSpec.QueuePolicy.REJECT,
             "fail": IOSpec.QueuePolicy.FAULT}
_POLICIES = {IOSpec.QueuePolicy.POP: "pop", IOSpec.QueuePolicy.REJECT: "reject",
             IOSpec.QueuePolicy.FAULT: None, None: None}


class Body(frag.Operator):
    """The operator of frag that calls one of the program."""

    def __init__(self, part, name, operator, run):
        self.operator = operator
        self.run = run
        self.compute = self._make_compute()
        if operator._dynamic_flows is not None:
            self.choose_flows = self._choose_flows
        super().__init__(part, *_conditions(operator, part, run),
                         _condition(operator._async, part, operator._async.name, run), name=name)
        self.metadata_policy = "update"

    def setup(self, spec):
        operator = self.operator
        # A condition in Python about a port takes the place of that port's own.
        taken = {value for condition in operator._conditions.values()
                 if condition._frag_type is None
                 for name, value in condition._values().items()
                 if name in ("receiver_name", "transmitter_name")}
        for name, port in operator._spec.inputs.items():
            _input(spec, port._frag_name, port, operator._senders.get(name, ()))
        for name, port in operator._spec.outputs.items():
            spec.output(port._frag_name)
        for ports, declared in ((operator._spec.inputs, spec.inputs),
                                (operator._spec.outputs, spec.outputs)):
            for name, port in ports.items():
                if port.queue_size != _ANY and (name in taken or any(
                        kind == ConditionType.NONE for kind, _ in port.conditions)):
                    declared[port._frag_name].condition(frag.ConditionType.NONE)

    def _type_name(self):
        cls = type(self.operator)
        return "python:" + "".join(
            c if c.isascii() and (c.isalnum() or c in "._") else "_"
            for c in "%s.%s" % (cls.__module__, cls.__qualname__))[-50:].lstrip("._")

    def _set_params(self, params):
        if self.run.is_elsewhere:
            self.run.initialize(self.operator)
            self.run.living += 1

    def initialize(self):
        scheduler = self.operator.fragment._scheduler
        if scheduler is not None and scheduler._clock is not None:
            scheduler._clock.clock_impl()._live = self.clock
        if self.operator._async.event_state != self.operator._async._state:
            self.operator._async.event_state = self.operator._async._state

    def _give_metadata(self, context):
        context._metadata_set(_KEY + self.name, self.operator._metadata.__copy__())

    def _choose_flows(self, context):
        """What the program's function has chosen, by operators, becomes numbers of flows."""
        operator = self.operator
        operator._chosen.clear()
        try:
            operator._dynamic_flows(operator)
        except BaseException as error:
            self.run.fail(operator, "the function of set_dynamic_flows", error)
            raise
        if OUTPUT_EXEC in operator._receivers and operator._has_metadata:
            self._give_metadata(context)
        known = context.flows()
        for flow in operator._chosen:
            part, name = self.run.names[flow.next_operator]
            context.take_flow(known.index((
                _port(operator._spec.outputs, flow.output_port_name),
                "%s.%s" % (part.name, name),
                _port(flow.next_operator._spec.inputs, flow.input_port_name))))

    def start(self):
        operator = self.operator
        try:
            operator.start()
        except BaseException as error:
            self.run.fail(operator, "start", error)
            raise

    def stop(self):
        scheduler = self.operator.fragment._scheduler
        if scheduler is not None and scheduler._clock is not None:
            scheduler._clock.clock_impl()._note()
        try:
            self.operator.stop()
        except BaseException as error:
            self.run.fail(self.operator, "stop", error)
        self.run.stopped()

    def _make_compute(self):
        operator = self.operator
        inputs, outputs, context = operator._input, operator._output, operator._context
        metadata = operator._metadata
        compute = operator.compute

        follows = INPUT_EXEC in operator._senders
        leads = OUTPUT_EXEC in operator._receivers and operator._has_metadata

        def run(op_input, op_output, op_context):
            if inputs._receive is None:
                inputs._receive, outputs._emit = op_input.receive, op_output.emit
                inputs._context = outputs._context = op_context
            inputs._is_open = True
            metadata.clear()
            inputs._stamps.clear()
            inputs._ahead.clear()
            try:
                if follows:
                    _take_metadata(op_context, operator)
                compute(inputs, outputs, context)
                outputs._flush()
                if leads:
                    self._give_metadata(op_context)
            except BaseException as error:
                self.run.fail(operator, "compute", error)
                raise
            inputs._is_open = False

        return run


def _take_metadata(context, operator):
    """What the operators before it gave to execution flows, each under a key of its own."""
    for key in context._metadata_keys():
        if key.startswith(_KEY):
            if operator._has_metadata:
                operator._metadata._update(context._metadata_get(key)._items)
            context._metadata_erase(key)


def _input(spec, name, port, senders):
    """Declares an input for frag."""
    policy = _POLICIES[port._queue_policy()]
    if port.connector_type == IOSpec.ConnectorType.ASYNC_BUFFER:
        policy = "async_buffer"
    size = port.queue_size
    declared = spec.input(name, size=frag.IOSpec.ANY_SIZE if size == _ANY else None, policy=policy,
                          optional=not senders)
    declared.capacity = port._capacity() or (len(senders) if size == 0 else 0)
    if size == IOSpec.PRECEDING_COUNT:
        declared.min_size = 0xffffffff
    elif size > 1:
        declared.min_size = size


def _port_conditions(operator, part):
    """Conditions of frag for those that setup() gave to ports."""
    spec = operator._spec
    for ports, key in ((spec.inputs, "receiver"), (spec.outputs, "transmitter")):
        for name, port in ports.items():
            for kind, condition in port.conditions:
                values = {} if condition is None else {
                    k: v for k, v in condition._given.items() if k != "front_stage_max_size"}
                if kind == ConditionType.MESSAGE_AVAILABLE:
                    type = "message_available"
                elif kind == ConditionType.DOWNSTREAM_MESSAGE_AFFORDABLE:
                    type = "downstream_affordable"
                elif kind == ConditionType.EXPIRING_MESSAGE_AVAILABLE:
                    type = "expiring_message_available"
                    values = {"max_batch_size": values.get("max_batch_size", 1),
                              "max_delay_ns": values.get("max_delay_ns", 0)}
                elif kind in (ConditionType.MULTI_MESSAGE_AVAILABLE,
                              ConditionType.MULTI_MESSAGE_AVAILABLE_TIMEOUT):
                    yield frag.Condition(part, kind.name.lower(), "port_" + port._frag_name,
                                         receivers=[port._frag_name], **values)
                    continue
                else:
                    continue
                if ports is spec.inputs and port.queue_size == _ANY:
                    continue
                yield frag.Condition(part, type, "port_%s_%s" % (key, port._frag_name),
                                     **{key: port._frag_name}, **values)
    for number, info in enumerate(spec._multi):
        values = {arg.name: arg._value for arg in info.args.args}
        yield frag.Condition(part, info.kind.name.lower(), "multi_%d" % number,
                             receivers=[spec.inputs[n]._frag_name for n in info.port_names],
                             **values)
    for number, names in enumerate(spec._or):
        yield frag.Condition(part, "or", "or_%d" % number,
                             ports=[(spec.inputs.get(n) or spec.outputs[n])._frag_name
                                    for n in names])


def _conditions(operator, part, run):
    """The conditions of frag for those of an operator."""
    for condition in _conditions_as_given(operator, part, run):
        if condition.type == "multi_message_available_timeout" and run.is_greedy(operator.fragment):
            # Holoscan looks at the time again when another operator has been ticked.
            condition.params["tolerance"] = condition.params.get("execution_frequency")
        yield condition


def _conditions_as_given(operator, part, run):
    for name, condition in operator._conditions.items():
        yield _condition(condition, part, name, run)
    yield from _port_conditions(operator, part)
    if operator._joins > 1:
        yield frag.Condition(part, "message_available", "holoscan_join", receiver=INPUT_EXEC,
                             min_size=operator._joins)
    for name, port in operator._spec.inputs.items():
        if name not in operator._senders and not any(
                kind == ConditionType.NONE for kind, _ in port.conditions):
            _log.warning("Input port '%s' of operator '%s' is not connected; it never ticks", name,
                         operator.name)
            yield frag.Condition(part, "boolean", "unconnected_" + port._frag_name,
                                 enable_tick=False)
    for resource in operator._resources.values():
        if hasattr(resource, "terms"):
            yield frag.Condition(part, "or", _valid(resource.name),
                                 terms=[_valid(term.name) for term in resource.terms])


class NativeCondition(frag.Condition):
    """The condition of frag that calls one of the program."""
    _executed = None  # when its operator was ticked, and no check has followed

    def __init__(self, part, name, condition, run):
        self.condition = condition
        self.run = run
        super().__init__(part, name=name)

    def _guarded(self, method, timestamp):
        try:
            return method(timestamp)
        except BaseException as error:
            self.run.fail(self.condition._operator, "condition '%s'" % self.condition.name, error)
            raise

    def update_state(self, timestamp):
        self._executed = None
        self._guarded(self.condition.update_state, timestamp)

    def on_execute(self, timestamp):
        self._executed = timestamp
        self._guarded(self.condition.on_execute, timestamp)

    def stop(self):
        """Holoscan asks once more before it finds that the operator will not be ticked again."""
        if self._executed is not None and self.run.error is None:
            timestamp = self._executed
            self.update_state(timestamp)
            self.check(timestamp)

    def check(self, timestamp):
        return self._guarded(self._check, timestamp)

    def _check(self, timestamp):
        answer = self.condition.check(timestamp)
        if not isinstance(answer, tuple):
            raise RuntimeError("The check method must return a tuple, not %r" % (answer,))
        if len(answer) != 2:
            raise RuntimeError("The check method must return a tuple of size 2, not %d"
                               % len(answer))
        status, until = answer
        if not isinstance(status, SchedulingStatusType):
            raise RuntimeError("The first element of the tuple returned by check must be a "
                               "`holoscan.core.SchedulingStatusType` enum value, not %r"
                               % (status,))
        if until is not None and not isinstance(until, int):
            raise RuntimeError("The second element of the tuple returned by check must be a "
                               "Python int or None, not %r" % (until,))
        ready = getattr(frag.Ready, status.name)
        return (ready, until) if ready == frag.Ready.WAIT_TIME and until is not None else ready


def _condition(condition, part, name, run):
    if condition._frag_type is None:
        condition._live = NativeCondition(part, _valid(name), condition, run)
        return condition._live
    values = {key: _value(value, part) for key, value in condition._declare().items()}
    condition._live = frag.Condition(part, condition._frag_type, _valid(name), **values)
    return condition._live


def _value(value, part):
    """An argument as a graph holds it: a resource becomes one of frag."""
    if getattr(value, "_frag_type", None) is None:
        return value
    known = part._made.get(value)
    if known is None:
        known = part._made[value] = frag.Resource(
            part, value._frag_type, "%s_%d" % (_valid(value.name)[:50], len(part._made)),
            **{k: _value(v, part) for k, v in value._declare().items()})
    return known


class Part(frag.Fragment):
    """A fragment of the graph."""

    def __init__(self, fragment, name):
        super().__init__(None, name)
        self.of = fragment
        self.sections = {}
        self._made = {}
        self._is_composed = True

    def _declare(self, types):
        sections = super()._declare(types)
        sections["host"] = "holoscan"  # as in Holoscan, a process runs all fragments of a worker
        sections.update(self.sections)
        return sections


class Run:
    """One run of an application."""

    def __init__(self, app, is_elsewhere=False):
        """is_elsewhere: a host that makes an operator initializes it."""
        self.is_elsewhere = is_elsewhere
        self.app = app
        self.error = None
        self.default_policy = _DEFAULTS[_environment.queue_policy()]
        _environment.warn_of_others()
        self.names = {}  # operator -> (part, its name there)
        app.compose_graph()
        fragments = getattr(app, "_fragments", ()) or [app]
        if app._nodes and fragments != [app]:
            raise RuntimeError("application '%s' has operators beside its fragments; put them "
                               "into one" % app.name)
        self.fragments = [f for f in fragments if f._nodes]
        if not self.fragments:
            return
        self.graph = frag.Application([], name=_valid(app.name or type(app).__name__))
        self.graph._is_composed = True
        self.parts = [self._part(f) for f in self.fragments]
        for part in self.parts:
            self.graph.add_fragment(part)
        self._flow_between()
        self._note_receivers()
        tracker = app._tracker or next((f._tracker for f in fragments if f._tracker), None)
        if tracker is not None:
            self.graph._tracker = tracker._tracker

    def fail(self, operator, method, error):
        """Keeps the first exception of an operator, which run() raises."""
        _log.error("Exception occurred for operator: '%s' in %s - %s: %s", operator.name, method,
                   type(error).__name__, error)
        if self.error is None:
            self.error = error

    living = 0  # operators that a host has made and that have not stopped

    def stopped(self):
        """An operator has stopped: behind the last one of a host nothing is logged any more."""
        self.living -= 1
        if self.living == 0:
            self.finish_loggers()

    def context(self, fragment):
        """The context of an operator in Python of the fragment, which can find all others."""
        return next((context for node in fragment._nodes if (
            context := getattr(node._body, "_context", None)) is not None), None)

    def status(self, node):
        context = self.context(node.fragment)
        text = context and context.operator_status(self.names[node][1])
        return _STATUS.get(text, OperatorStatus.NOT_STARTED)

    def finish_loggers(self):
        for fragment in {*self.fragments, self.app}:
            for logger in fragment.data_loggers:
                logger._finish()

    def _unique(self, name, taken):
        name = _valid(name or "fragment")
        number, result = 1, name
        while result in taken:
            number += 1
            result = "%s_%d" % (name[:58], number)
        return result

    def _part(self, fragment):
        taken = [part.name for part in getattr(self, "parts", ())]
        part = Part(fragment, self._unique(fragment.name or "fragment", taken + list(
            getattr(self, "_taken", ()))))
        self._taken = [*getattr(self, "_taken", ()), part.name]
        nodes = in_order(fragment._nodes, fragment._flows)
        names = {}
        for number, node in enumerate(nodes):
            node._joins = _joins(node, fragment._flows, nodes[:number])
            names[node] = self._unique(
                "start" if node is fragment._start_op else node.name, names.values())
            self.names[node] = (part, names[node])
            self._prepare(node, fragment)
        for node in nodes:
            part.add_operator(self._operator(node, part, names[node]))
        for flow in fragment._flows:
            part._flows.append(_flow(flow, names))
        self._sections(part, fragment)
        return part

    def _prepare(self, node, fragment):
        """What Holoscan does before anything runs: initialize(), in the order of the flows."""
        check_sizes(node)
        node._async = AsynchronousCondition(fragment, "holoscan_async")
        node._input = InputContext._of(node)
        node._output = OutputContext._of(node, self.default_policy)
        node._context = ExecutionContext._of(node, node._input, node._output)
        if has_gpu() and not any(isinstance(x, CudaStreamPool) for x in node._resources.values()):
            pool = node.name + "_stream_pool"
            node._resources[pool] = CudaStreamPool(fragment, name=pool)
        policy = node._metadata_policy
        if policy == MetadataPolicy.DEFAULT:
            policy = fragment.metadata_policy
        node._metadata.policy = policy
        node._has_metadata = node.is_metadata_enabled
        node._loggers = fragment.data_loggers
        node._receivers = {}
        node._senders = {}
        for flow in fragment._flows:
            if flow.source is node:
                node._receivers.setdefault(flow.output, []).append((flow.target, flow.input))
            if flow.target is node:
                node._senders.setdefault(flow.input, []).append((flow.source, flow.output))
        for flow in getattr(self.app, "_fragment_flows", ()):
            if flow.target is fragment:
                target, name = self._end(fragment, flow.input)
                if target is node:
                    name = name or next(iter(node._spec.inputs), None)
                    node._senders.setdefault(name, []).append(self._sender(flow))
        for name, port in node._spec.inputs.items():
            if port._policy is not None and port._connector is not None:
                _log.warning("The queue policy set for input port '%s' of operator '%s' will be "
                             "ignored because a connector (receiver) was explicitly set",
                             name, node.name)
        for name, port in node._spec.outputs.items():
            if port._policy is not None and port._connector is not None:
                _log.warning("The queue policy set for output port '%s' of operator '%s' will be "
                             "ignored because a connector (transmitter) was explicitly set",
                             name, node.name)
        if not self.is_elsewhere:
            self.initialize(node)

    def initialize(self, node):
        prepare = getattr(node, "_prepare", None)
        if prepare is not None:
            prepare()
        for component in (*node._conditions.values(), *node._resources.values()):
            component.initialize()
        try:
            node.initialize()
        except BaseException as error:
            self.fail(node, "initialize", error)
            raise

    def _operator(self, node, part, name):
        if node._native_type is not None:
            body = frag.NativeOperator(
                part, node._native_type, *_conditions(node, part, self), name=name,
                **{k: _value(v, part) for k, v in node._native_parameters().items()})
            # Operators of frag send metadata of their own, as numbers of frames: those of two
            # flows clash in programs that know nothing of them.
            policy = node._metadata_policy
            body.metadata_policy = "update" if policy == MetadataPolicy.DEFAULT \
                else policy.name.lower()
        else:
            body = Body(part, name, node, self)
        node._body = body
        return body

    def _scheduler(self, fragment):
        """None: that of frag."""
        if fragment._scheduler is None and self.fragments == [fragment]:
            return fragment.scheduler()
        return fragment._scheduler

    def is_greedy(self, fragment):
        scheduler = self._scheduler(fragment)
        return scheduler is not None and scheduler._frag_type == "greedy"

    def _sections(self, part, fragment):
        """Scheduler, clock, thread pools and data loggers."""
        scheduler = self._scheduler(fragment)
        if scheduler is not None:
            part.sections["scheduler"] = scheduler._declare()
            scheduler._start(RealtimeClock(fragment))
            part.sections["clock"] = scheduler._clock.clock_impl()._declare()
        else:
            part.sections.update(_environment.scheduler())
        pools = {_valid(pool.name): pool._declare(lambda op: self.names[op][1])
                 for pool in fragment._pools}
        if pools and (scheduler is None or scheduler._frag_type != "greedy"):
            part.sections["thread_pools"] = pools
        native = [self._id_of(node) for node in fragment._nodes if node._native_type is not None]
        if native and fragment.data_loggers:
            part.sections["data_loggers"] = listen(self, native)

    def _id_of(self, node):
        part, name = self.names[node]
        return "%s.%s" % (part.name, name)

    def find(self, operator_id):
        """The operator of "fragment.operator", or None."""
        return next((node for node in self.names if self._id_of(node) == operator_id), None)

    def _flow_between(self):
        """The flows between fragments: "operator.port" of each, or "operator"."""
        for flow in getattr(self.app, "_fragment_flows", ()):
            ends = []
            for fragment, text in ((flow.source, flow.output), (flow.target, flow.input)):
                ends.append(self._end(fragment, text))
            (source, output), (target, name) = ends
            if output is None and name is None and not (
                    source._spec.outputs and target._spec.inputs):
                output, name = OUTPUT_EXEC, INPUT_EXEC
            output = output or _only(source, source._spec.outputs, "output")
            name = name or _only(target, target._spec.inputs, "input")
            source._receivers.setdefault(output, []).append((target, name))
            ends = ["%s.%s.%s" % (self.names[op][0].name, self.names[op][1], _port(ports, port))
                    for op, ports, port in ((source, source._spec.outputs, output),
                                            (target, target._spec.inputs, name))]
            self.graph._flows.append({"from": ends[0], "to": ends[1]})

    def _note_receivers(self):
        """Who gets values of frag instead of a Message: operators in C, and other processes.

        An input of any number of flows has one dictionary of metadata for all of them, so what
        leaves for one goes as a Message.
        """
        for node in self.names:
            for name, output in (node._output._outputs if node._output else {}).items():
                receivers = node._receivers.get(name, ())
                native = [(op, port) for op, port in receivers if op._native_type is not None]
                output.is_native = bool(native)
                output.convert = next(filter(None, (op._converter(port) for op, port in native)),
                                      None)
                output.leaves = self.is_elsewhere and not output.is_native and all(
                    op.fragment is not node.fragment and port in op._spec.inputs
                    and op._spec.inputs[port]._size != _ANY for op, port in receivers)
            if node._output:
                node._output._send_layers_first()

    def _sender(self, flow):
        source, name = self._end(flow.source, flow.output)
        return source, name or next(iter(source._spec.outputs), None)

    def _end(self, fragment, text):
        operator, _, port = text.partition(".")
        found = fragment.graph.find_node(operator)
        if found is None:
            raise RuntimeError("fragment '%s' has no operator '%s'" % (fragment.name, operator))
        return found, port or None

    def run(self):
        if not self.fragments:
            _log.info("application '%s' has no operators", self.app.name)
            return
        for fragment in {*self.fragments, self.app}:
            fragment._runner = self
        try:
            frag_run.execute(*self.graph._prepare())
        except frag.Error as error:
            if self.error is None:
                text = str(error)
                for node in self.names:
                    if node._native_type is not None and self._id_of(node) + ": " in text:
                        text = node._in_holoscans_words(text)
                _log.error("%s", text)
                raise RuntimeError(text) from error
        finally:
            for fragment in {*self.fragments, self.app}:
                fragment._runner = None
                if fragment._scheduler is not None and fragment._scheduler._clock is not None:
                    fragment._scheduler._clock.clock_impl()._live = None
            self.finish_loggers()
            for node in self.names:
                if node._context is not None:
                    node._context._streams.close()
                node._body = node._input = node._output = node._context = node._async = None
                for condition in node._conditions.values():
                    condition._live = None
        if self.error is not None:
            raise self.error


def _joins(node, flows, earlier):
    """For how many messages of execution flows an operator waits: those of all, but in a loop."""
    sources = [flow.source for flow in flows
               if flow.target is node and flow.input == INPUT_EXEC]
    return len(sources) if all(source in earlier for source in sources) else 1


def _only(operator, ports, kind):
    if len(ports) != 1:
        raise RuntimeError("operator '%s' has %d %s ports; name one in port_pairs"
                           % (operator.name, len(ports), kind))
    return next(iter(ports))


def _port(ports, name):
    """The name of a port in the graph; those for execution have none of their own."""
    return ports[name]._frag_name if name in ports else name


def _flow(flow, names):
    """A flow inside a fragment, as a graph holds it."""
    result = {"from": "%s.%s" % (names[flow.source], _port(flow.source._spec.outputs, flow.output)),
              "to": "%s.%s" % (names[flow.target], _port(flow.target._spec.inputs, flow.input))}
    if flow.connector == IOSpec.ConnectorType.ASYNC_BUFFER:
        result["policy"] = "async_buffer"
    return result


def run(app):
    """Runs an application, or a fragment alone."""
    from . import _roles
    if not _roles.run(app):
        Run(app).run()


def stop(fragment, op_name):
    """Ends an operator, or everything."""
    runner = fragment._runner
    if runner is None:
        raise RuntimeError("'%s' does not run" % fragment.name)
    node = fragment.graph.find_node(op_name) if op_name else None
    if op_name and node is None:
        raise RuntimeError("there is no operator called '%s'" % op_name)
    for part in [fragment] if fragment._nodes else fragment._fragments:
        context = runner.context(part)
        if context is not None and node is not None:
            context.stop_operator(runner.names[node][1])
        elif context is not None:
            context.stop()


