# SPDX-License-Identifier: Apache-2.0
"""Runs of applications: waiting, signals, and what the failure of an operator becomes."""
import atexit
import sys
import time

from . import _frag
from ._failure import Error, forget, last_exception

_SLICE_NS = 50_000_000  # between two looks for signals
_present = None


def _close_present():
    if _present is not None:
        _present.close()


atexit.register(_close_present)


def _start(run):
    global _present
    forget()
    try:
        run.start()
    except BaseException:
        run.close()
        raise
    _present = run


def _close(run, plugin):
    global _present
    run.close()
    _present = None
    if plugin is not None:
        _frag.plugin_remove(plugin)


def _finish(run, plugin, error):
    """Returns the summary; raises the failure of the run, with what it was caused by."""
    text = run.summary()
    lines = run.lines
    _close(run, plugin)
    if error is not None:
        if lines and str(error) not in lines[0]:
            error.args = ("\n".join(lines),)
        raise error from last_exception()
    import json
    return json.loads(text) if text else {}


class _Signals:
    """The first SIGINT or SIGTERM ends the application in order, the second one at once, from
    before it is started until its summary is there. Other handlers of the program are kept."""

    def __init__(self, run):
        self.run = run
        self.before = {}
        self.came = self.passed = 0
        self.runs = False

    def __enter__(self):
        import signal
        import threading
        if threading.current_thread() is threading.main_thread():
            for number, default in ((signal.SIGINT, signal.default_int_handler),
                                    (signal.SIGTERM, signal.SIG_DFL)):
                if signal.getsignal(number) == default:
                    self.before[number] = signal.signal(number, self._on_signal)
        return self

    def _on_signal(self, number, frame):
        self.came += 1
        self.pass_on()

    def pass_on(self):
        """Also those that came before it ran."""
        while self.runs and self.passed < self.came:
            self.passed += 1
            self.run.stop()

    def __exit__(self, *unused):
        import signal
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _trace_threads():
    """Lets what traces or profiles this thread, as coverage and cProfile, see operators too."""
    trace, profile = sys.gettrace(), sys.getprofile()

    def begin():
        if trace is not None:
            sys.settrace(trace)
        if hasattr(profile, "enable"):  # cProfile's, which is no function
            profile.enable()
        elif profile is not None:
            sys.setprofile(profile)

    _frag.on_thread(None if trace is None and profile is None else begin)


def _wait(run):
    """Waits for the end. Returns its failure, or None."""
    while True:
        try:
            if run.wait(_SLICE_NS):
                return None
        except KeyboardInterrupt:
            run.stop()
        except Error as failure:
            return failure


def _give_up(run, plugin):
    """The program's own handler of a signal has raised: the run ends in order, a further one at
    once."""
    for _ in range(2):
        try:
            run.stop()
            _wait(run)
            break
        except BaseException:  # what the first one raised counts
            pass
    _close(run, plugin)  # ends at once what still runs


def execute(run, plugin=None):
    """Runs to the end."""
    with _Signals(run) as signals:
        _trace_threads()
        _start(run)
        try:
            signals.runs = True
            signals.pass_on()
            error = _wait(run)
            signals.runs = False
        except BaseException:
            _give_up(run, plugin)
            raise
        return _finish(run, plugin, error)


class Future:
    """An application that runs: result() waits for its end and returns the summary."""

    def __init__(self, run, plugin=None):
        self._run = run
        self._plugin = plugin
        import threading
        self._lock = threading.Lock()
        self._result = None
        self._error = None
        self._is_over = False
        _start(run)

    def _wait(self, timeout_ns):
        """Whether it has ended."""
        try:
            if not self._run.wait(timeout_ns):
                return False
        except Error as failure:
            self._error = failure
        try:
            self._result = _finish(self._run, self._plugin, self._error)
        except Error as failure:
            self._error = failure
        self._is_over = True
        return True

    def result(self, timeout=None):
        """Waits for the end. Raises frag.Error, or TimeoutError."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                if self._is_over or self._wait(_SLICE_NS if until is None else max(0, min(
                        _SLICE_NS, int((until - time.monotonic()) * 1e9)))):
                    break
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("the application still runs")
        if self._error is not None:
            raise self._error
        return self._result

    def done(self):
        with self._lock:
            return self._is_over or self._wait(0)

    def stop(self):
        """Ends it in order; the second call at once."""
        with self._lock:
            if not self._is_over:
                self._run.stop()

    def set(self, text):
        """Changes a dynamic parameter: "fragment.operator.parameter=value"."""
        with self._lock:
            if self._is_over:
                raise Error("the application has ended")
            self._run.set(text)


def run(graph, args=(), *, configs=(), sets=(), library_path=None):
    """Runs a graph: the path of a YAML file, or its text. Returns the summary; raises Error."""
    is_text = "\n" in graph
    return execute(_frag.Run(None if is_text else graph, graph if is_text else None, tuple(args),
                             tuple(configs), tuple(sets), library_path))
