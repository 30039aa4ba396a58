# SPDX-License-Identifier: Apache-2.0
"""holoscan.logger: the level and the form of the log."""
import os

from . import _log
from ._enums import make

LogLevel = make("LogLevel", "TRACE DEBUG INFO WARN ERROR CRITICAL OFF")

__all__ = ["LogLevel", "log_level", "set_log_level", "set_log_pattern"]


def log_level():
    return LogLevel(_log.level)


def set_log_level(level):
    """HOLOSCAN_LOG_LEVEL wins, as in Holoscan."""
    chosen = _log.of_environment()
    _log.level = int(LogLevel(level)) if chosen is None else chosen


def set_log_pattern(pattern):
    """A pattern of spdlog, or SHORT, DEFAULT, LONG or FULL; HOLOSCAN_LOG_FORMAT wins."""
    _log.pattern = os.environ.get("HOLOSCAN_LOG_FORMAT") or pattern
