# SPDX-License-Identifier: Apache-2.0
"""What compute() gets: InputContext, OutputContext, ExecutionContext."""
from collections import deque

from . import _log
from ._component import unsupported
from ._gpu import Streams, default_stream, has_gpu
from ._message import Message, clear_metadata
from ._operator import OperatorStatus
from ._spec import IOSpec
from ._tensor import Tensor, as_array, is_tensor_like

_ANY, _POP, _REJECT = IOSpec.ANY_SIZE, IOSpec.QueuePolicy.POP, IOSpec.QueuePolicy.REJECT


class InputContextBase:
    """The base of InputContext."""

    def __init__(self):
        raise TypeError("only operators get one")


class InputContext(InputContextBase):
    """The inputs of an operator during compute()."""

    def __init__(self):
        raise TypeError("only operators get one")

    @classmethod
    def _of(cls, operator):
        self = cls.__new__(cls)
        self._operator = operator
        self._inputs = operator._spec.inputs
        self._receive = self._context = None  # frag's, from the first tick on
        self._stamps = {}
        self._ahead = {}  # messages that were taken to count them
        self._taken = dict.fromkeys(self._inputs, 0)
        self._is_open = False  # a tick is under way
        return self

    def _take(self, name):
        """The next messages of an input: a Message of each flow, or None: there is none."""
        ahead = self._ahead.get(name)
        if ahead:
            return ahead.popleft()
        found = self._receive(self._inputs[name]._frag_name)
        self._taken[name] += found is not None
        if found is None or type(found) is Message:
            return found
        if type(found) is tuple and self._inputs[name].queue_size == _ANY:
            return [x if type(x) is Message else Message.of_frag(x, self._context) for x in found]
        return Message.of_frag(found, self._context)

    def _open(self, name, message, flow=None):
        """Takes the metadata and timestamp of a message. Returns its value.

        flow: its number at an input that takes any number of flows.
        """
        self._stamps.setdefault(name, []).append(message.timestamp)
        operator = self._operator
        if message.metadata and operator._has_metadata:
            operator._metadata._update(message.metadata)
        value = message.value
        for logger in operator._loggers:
            logger._log_message(operator, name if flow is None else "%s:%d" % (name, flow), value,
                                operator._metadata, IOSpec.IOType.INPUT)
        if type(value) is dict and message.is_tensor_map:
            return dict(value)
        return value

    def receive(self, name, *, kind=""):
        """The next message of an input, None: there is none.

        A tuple where the input takes any number of flows, or several messages in a tick.
        """
        port = self._inputs.get(name)
        if port is None:
            raise RuntimeError("%s has no input '%s'; it has: %s" % (
                self._operator.name, name, ", ".join(self._inputs) or "none"))
        if kind == "single" and port._size == _ANY:
            raise RuntimeError("Invalid kind 'single' for receive() method, cannot be 'single' for "
                               "the input port with 'IOSpec.ANY_SIZE' (%s)" % name)
        if port._size == 1 or kind == "single":
            message = self._take(name)
            if message is None:
                return None
            if type(message) is list:
                message = message[0]
            value = self._open(name, message)
            return (value,) if kind == "multi" else value
        if port._size == _ANY:
            messages = self._take(name) or ()
        else:
            messages = []
            count = port._size or len(self._operator._senders[name])
            while len(messages) < count:
                message = self._take(name)
                if message is None:
                    break
                messages.append(message)
        if not messages:
            _log.error("Unable to receive input with name '%s'", name)
            return None
        is_any = port._size == _ANY
        return tuple([self._open(name, message, number if is_any else None)
                      for number, message in enumerate(messages)])

    def get_acquisition_timestamp(self, input_port_name=None):
        """When what was received last was acquired; None: its sender has not stated it."""
        stamps = self.get_acquisition_timestamps(input_port_name)
        return stamps[0] if stamps else None

    def get_acquisition_timestamps(self, input_port_name=None):
        return self._stamps.get(self._name(input_port_name), [])

    def _name(self, name):
        if name is None and len(self._inputs) == 1:
            return next(iter(self._inputs))
        if name not in self._inputs:
            raise RuntimeError("%s has no input '%s'" % (self._operator.name, name))
        return name

    def receive_cuda_stream(self, input_port_name=None, allocate=True):
        """The operator's own stream, or the default stream: what was received is written already.
        """
        return self._operator._context._streams.get("") if allocate else default_stream()

    def receive_cuda_streams(self, input_port_name=None):
        return [default_stream() or None]

    def _queue(self, name):
        return _InputQueue(self, name)


class _InputQueue:
    """What a Receiver shows. In a tick it takes what can be received, to count it."""
    __slots__ = ("_input", "_name")

    def __init__(self, input, name):
        self._input = input
        self._name = name

    def size(self):
        if not self._input._is_open:
            return 0
        ahead = self._input._ahead.setdefault(self._name, deque())
        waiting = deque()
        while (message := self._input._take(self._name)) is not None:
            waiting.append(message)
        ahead.extend(waiting)
        return len(ahead)

    def back_size(self):
        """Outside of a tick: what operators in Python have sent and nobody has taken."""
        if self._input._is_open:
            return 0
        sent = sum(source._output._outputs[output].sent
                   for source, output in self._input._operator._senders.get(self._name, ()))
        return sent - self._input._taken[self._name]


class OutputContextBase:
    """The base of OutputContext."""

    def __init__(self):
        raise TypeError("only operators get one")


class _Output:
    """The queue of an output: its messages leave at the end of the tick."""
    __slots__ = ("name", "frag_name", "capacity", "policy", "messages", "is_native", "convert",
                 "leaves", "sent")

    def __init__(self, port, default_policy):
        self.name = port.name
        self.frag_name = port._frag_name
        self.capacity = port._capacity() or 1
        self.policy = port._queue_policy()
        if self.policy is None:
            self.policy = default_policy
        self.messages = []
        self.is_native = False  # an operator in C receives from it
        self.convert = None  # makes the value that it takes; None: it takes the value
        self.leaves = False  # an operator of another process receives from it
        self.sent = 0

    def size(self):
        return 0

    def back_size(self):
        return len(self.messages)

    def put(self, message):
        if len(self.messages) < self.capacity:
            self.messages.append(message)
        elif self.policy == _POP:
            del self.messages[0]
            self.messages.append(message)
        elif self.policy != _REJECT:
            _log.error("Push failed on '%s': its queue holds %d messages "
                       "(GXF_EXCEEDING_PREALLOCATED_SIZE)", self.name, self.capacity)
            raise RuntimeError("Failed to publish output message with error: "
                               "GXF_EXCEEDING_PREALLOCATED_SIZE: the queue of '%s' holds %d "
                               "messages" % (self.name, self.capacity))


class OutputContext(OutputContextBase):
    """The outputs of an operator during compute()."""

    def __init__(self):
        raise TypeError("only operators get one")

    @classmethod
    def _of(cls, operator, default_policy):
        self = cls.__new__(cls)
        self._operator = operator
        self._outputs = {name: _Output(port, default_policy)
                         for name, port in operator._spec.outputs.items()}
        self._emit = self._context = None  # frag's, from the first tick on
        return self

    def emit(self, data, name=None, emitter_name="", acq_timestamp=-1):
        """Sends a value at the end of the tick; in this process it arrives as the same object."""
        output = self._outputs.get(name)
        if output is None:
            output = self._only(name)
        is_tensor_map = False
        if type(data) is dict:
            if data and all(map(is_tensor_like, data.values())):
                data = {key: Tensor.as_tensor(value) for key, value in data.items()}
                is_tensor_map = True
        elif emitter_name == "holoscan::Tensor":
            data = as_array(data)
        operator = self._operator
        for logger in operator._loggers:
            logger._log_message(operator, output.name, data, operator._metadata,
                                IOSpec.IOType.OUTPUT)
        metadata = operator._metadata
        output.put(Message(
            data, dict(metadata._items) if metadata._items and operator._has_metadata else None,
            None if acq_timestamp < 0 else acq_timestamp, is_tensor_map))

    def _only(self, name):
        if name in (None, "") and len(self._outputs) == 1:
            return next(iter(self._outputs.values()))
        raise RuntimeError("%s has no output '%s'; it has: %s" % (
            self._operator.name, name, ", ".join(self._outputs) or "none"))

    def _send_layers_first(self):
        """What is converted says how tensors are drawn, which must not arrive before it."""
        self._outputs = dict(sorted(self._outputs.items(), key=lambda x: x[1].convert is None))

    def _flush(self):
        """The end of the tick."""
        self._operator._context._streams.wait()
        for output in self._outputs.values():
            for message in output.messages:
                self._send(output, message)
            output.messages.clear()

    def _send(self, output, message):
        try:
            if output.is_native or output.leaves and message.is_tensor_map:
                clear_metadata(self._context)
                value = message.to_frag(self._context)
                if output.convert is not None:
                    value = output.convert(value)
                self._emit(value, output.frag_name)
                clear_metadata(self._context)
            else:
                self._emit(message, output.frag_name)
            output.sent += 1
        except Exception as error:
            if getattr(error, "code", 0) != -105:  # ENOBUFS: no room, and nothing waits for it
                raise
            for target, port in self._operator._receivers.get(output.name, ()):
                _log.warning("Push failed on '%s' of operator '%s': its queue is full, and the "
                             "message is dropped", port, target.name)
                break

    def _queue(self, name):
        return self._outputs[name]

    def set_cuda_stream(self, stream_ptr, output_port_name=None):
        """Of a stream of the operator; it is waited for before its messages leave."""
        if stream_ptr not in (0, default_stream()) and \
                stream_ptr not in self._operator._context._streams:
            unsupported("OutputContext.set_cuda_stream with a stream that frag has not made",
                        "take one by allocate_cuda_stream, or synchronize it before emit")


class ExecutionContextBase:
    """The base of ExecutionContext."""

    def __init__(self):
        raise TypeError("only operators get one")


class ExecutionContext(ExecutionContextBase):
    """The surroundings of an operator."""

    def __init__(self):
        raise TypeError("only operators get one")

    @classmethod
    def _of(cls, operator, input, output):
        self = cls.__new__(cls)
        self._operator = operator
        self.input = input
        self.output = output
        self._streams = Streams()
        return self

    def find_operator(self, op_name=""):
        """The operator of this name in the fragment; None: there is none."""
        if not op_name:
            return self._operator
        return self._operator.fragment.graph.find_node(op_name)

    def get_operator_status(self, op_name=""):
        operator = self.find_operator(op_name)
        if operator is None:
            raise RuntimeError("there is no operator called '%s'" % op_name)
        runner = operator.fragment._runner
        return OperatorStatus.NOT_STARTED if runner is None else runner.status(operator)

    @property
    def is_gpu_available(self):
        return has_gpu()

    def allocate_cuda_stream(self, stream_name=""):
        """The operator's stream of this name."""
        return self._streams.get(stream_name)

    def synchronize_streams(self, cuda_stream_ptrs, target_cuda_stream_ptr):
        """Work on the target comes after what the others were given."""
        self._streams.wait()

    def device_from_stream(self, cuda_stream_ptr):
        known = cuda_stream_ptr and (cuda_stream_ptr == default_stream()
                                     or cuda_stream_ptr in self._streams)
        return 0 if known else None
