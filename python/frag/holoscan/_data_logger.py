# SPDX-License-Identifier: Apache-2.0
"""The bases of data loggers (holoscan.data_loggers)."""
import time

from ._component import ResourceBase
from ._enums import make

AsyncQueuePolicy = make("AsyncQueuePolicy", "REJECT RAISE")
DataLoggerQueueType = make("DataLoggerQueueType", "LOCK_FREE ORDERED")


class DataLogger:
    """Sees what operators receive and emit."""

    def _log_message(self, operator, port, value, metadata, io_type):
        """An operator has received or emits a value; its metadata are a MetadataDictionary."""


class DataLoggerResource(DataLogger, ResourceBase):
    _clock = None  # nanoseconds since 1970 without one

    def get_timestamp(self):
        return time.time_ns() if self._clock is None else self._clock.timestamp()


class AsyncDataLoggerResource(DataLoggerResource):
    """One with a thread and a queue of its own."""
