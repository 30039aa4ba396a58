# SPDX-License-Identifier: Apache-2.0
"""The environment variables of Holoscan that have a meaning here."""
import os

from . import _log

# _log.py obeys those of the log. Health checks are always on: hosts and workers send beats. There
# are no backtraces that one could disable.
_KNOWN = ("CONFIG_PATH", "LOG_LEVEL", "LOG_FORMAT", "INPUT_PATH", "MAX_DURATION_MS",
          "STOP_ON_DEADLOCK", "STOP_ON_DEADLOCK_TIMEOUT", "CHECK_RECESSION_PERIOD_MS",
          "QUEUE_POLICY", "ENABLE_HEALTH_CHECK", "DISABLE_BACKTRACE")
_FALSE = ("false", "0", "off", "no")
_warned = False


def _value(name, convert):
    """A variable, converted; None: it is not set, or its value is reported as wrong."""
    text = os.environ.get("HOLOSCAN_" + name, "").strip()
    if not text:
        return None
    try:
        return convert(text)
    except ValueError:
        _log.error("Invalid value for HOLOSCAN_%s: %s", name, text)
        return None


def warn_of_others():
    """Names, once, the variables that have no effect."""
    global _warned
    others = sorted(name for name in os.environ if name.startswith("HOLOSCAN_")
                    and name.removeprefix("HOLOSCAN_") not in _KNOWN)
    if others and not _warned:
        _warned = True
        _log.warning("frag does not use %s; docs/FROM_HOLOSCAN.md says what to use instead",
                     ", ".join(others))


def config_path():
    return os.environ.get("HOLOSCAN_CONFIG_PATH", "")


def input_path(folder):
    """Where a folder of data is: as it is named, or below HOLOSCAN_INPUT_PATH."""
    below = os.path.join(os.environ.get("HOLOSCAN_INPUT_PATH", ""), folder)
    return below if not os.path.exists(folder) and os.path.exists(below) else folder


def queue_policy():
    """Of queues of which the program states none: "pop", "reject" or "fail"."""
    text = os.environ.get("HOLOSCAN_QUEUE_POLICY", "").strip().lower()
    if text in ("", "pop", "reject", "fail"):
        return text or "fail"
    _log.error("Unrecognized HOLOSCAN_QUEUE_POLICY: %s; it is pop, reject or fail, and fail is "
               "used", text)
    return "fail"


def scheduler():
    """The section "scheduler" of a fragment that has none of its own; {}: nothing is set."""
    stop = _value("STOP_ON_DEADLOCK", lambda text: text.lower() not in _FALSE)
    timeout = _value("STOP_ON_DEADLOCK_TIMEOUT", int)
    duration = _value("MAX_DURATION_MS", int)
    period = _value("CHECK_RECESSION_PERIOD_MS", float)
    section = {}
    if stop is not None:
        section["stop_on_deadlock"] = stop
    if timeout is not None and timeout < 0:
        section["stop_on_deadlock"] = False
    elif timeout:
        section["stop_on_deadlock_timeout_ms"] = timeout
    if duration is not None and duration >= 0:
        section["max_duration_ms"] = max(1, duration)
    if period:
        section["check_recession_period_ms"] = max(1, round(period))
    return {"scheduler": {"type": "event_based", **section}} if section else {}
