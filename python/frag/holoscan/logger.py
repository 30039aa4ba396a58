# SPDX-License-Identifier: Apache-2.0
"""holoscan.logger: the level of the log."""
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
    """Accepted without effect: lines of frag have one form, and json (FRAG_LOG_FORMAT=json)."""
