# SPDX-License-Identifier: Apache-2.0
"""A function as an operator."""
from ._operator import DONE, Operator

_NONE = object()


def _options(ports):
    """{name: options of spec.input or spec.output} of a name, names, or such a dict."""
    if isinstance(ports, str):
        return {ports: {}}
    return dict(ports) if isinstance(ports, dict) else {name: {} for name in ports}


def _hints(function):
    if not getattr(function, "__annotations__", None):
        return {}
    import typing
    return typing.get_type_hints(function, include_extras=True)


def _arguments(function):
    """{name: default} of its parameters; _NONE: it has no default."""
    code = function.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 0x0c:  # *args, **kwargs
        raise TypeError("%s takes any arguments; an operator's function names its inputs and "
                        "parameters" % function.__qualname__)
    defaults = function.__defaults__ or ()
    found = dict.fromkeys(names, _NONE)
    found.update(zip(code.co_varnames[code.co_argcount - len(defaults):code.co_argcount], defaults))
    found.update(function.__kwdefaults__ or {})
    return found


def _type(hint):
    """Only what a port can have is its type."""
    return {"type": hint} if isinstance(hint, type) and hint is not object else {}


def operator(function=None, *, inputs=None, outputs=None):
    """Makes a class of operators of a function:

        @frag.operator
        def scale(value: float, factor=2.0) -> float:
            return value * factor

        scale(self, name="scale", factor=3.0)

    Arguments that are inputs get what was received, `context` gets the context, and all others are
    parameters. What the function returns is emitted; None emits nothing. A generator emits what it
    yields, one value in each tick, and ends the operator with itself.

    inputs: names, or {name: options of spec.input}; left out: the arguments without a default.
    outputs: the same; left out: "out", or none for a function that returns None by its annotation.
    With several outputs the function returns a tuple or a dict of values.
    """
    if function is None:
        return lambda function: operator(function, inputs=inputs, outputs=outputs)
    arguments, hints = _arguments(function), _hints(function)
    takes_context = arguments.pop("context", None) is not None
    if inputs is None:
        inputs = [name for name, default in arguments.items() if default is _NONE]
    inputs = _options(inputs)
    for name in inputs:
        if name not in arguments:
            raise TypeError("%s has no argument for its input %s" % (function.__qualname__, name))
        inputs[name] = {**_type(hints.get(name)), **inputs[name]}
    parameters = {k: v for k, v in arguments.items() if k not in inputs}
    returned = hints.get("return", object)
    if outputs is None:
        outputs = () if returned is type(None) else "out"
    outputs = _options(outputs)
    is_generator = bool(function.__code__.co_flags & 0x20)
    if len(outputs) == 1 and not is_generator:
        outputs = {name: {**_type(returned), **options} for name, options in outputs.items()}

    class FunctionOperator(Operator):
        __doc__ = function.__doc__

        def setup(self, spec):
            for name, options in inputs.items():
                spec.input(name, **options)
            for name, options in outputs.items():
                spec.output(name, **options)
            for name, default in parameters.items():
                if default is _NONE:
                    spec.param(name)
                else:
                    spec.param(name, default)

        def start(self):
            self._generator = None

        def compute(self, op_input, op_output, context):
            if self._generator is not None:
                return self._next(op_output)
            values = {name: op_input.receive(name) for name in inputs}
            values.update((name, getattr(self, name)) for name in parameters)
            if takes_context:
                values["context"] = context
            result = function(**values)
            if is_generator:
                self._generator = result
                return self._next(op_output)
            self._emit(result, op_output)

        def _next(self, op_output):
            value = next(self._generator, _NONE)
            if value is _NONE:
                return DONE
            self._emit(value, op_output)

        def _emit(self, result, op_output):
            if result is None:
                return
            by_name = isinstance(result, dict) and result.keys() == outputs.keys()
            if len(outputs) == 1 and not by_name:
                result = (result,)
            if not isinstance(result, dict):
                if not isinstance(result, tuple) or len(result) != len(outputs):
                    raise TypeError("%s has returned %r; its outputs are %s"
                                    % (function.__qualname__, result, ", ".join(outputs) or "none"))
                result = dict(zip(outputs, result))
            for name, value in result.items():
                if value is not None:
                    op_output.emit(value, name)

    FunctionOperator.__name__ = function.__name__
    FunctionOperator.__qualname__ = function.__qualname__
    FunctionOperator.__module__ = function.__module__
    FunctionOperator.function = staticmethod(function)
    return FunctionOperator
